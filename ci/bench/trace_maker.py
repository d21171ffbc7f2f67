"""Writes a trace of any size in the layout of PyTorch's profiler, with a truth that can be counted.

Each operation is six events: two nested operators, a launch, its kernel, and the two ends of their flow.
Every hundredth operation is a collective that half overlaps the next kernel.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

HEAD = """{
  "schemaVersion": 1,
  "deviceProperties": [
    {
      "id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85024112640, "numSms": 132
    }
  ],
  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8},
  "record_shapes": 1,
  "traceEvents": [
"""
TAIL = """
  ],
  "traceName": "generated.json",
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1727143530000000000
}
"""
BLOCK = """  {{
    "ph": "X", "cat": "cpu_op", "name": "{outer}", "pid": 4711, "tid": 4711,
    "ts": {t0:.3f}, "dur": 39.500,
    "args": {{
      "External id": {i}, "Record function id": 0, "Concrete Inputs": ["", "", ""],
      "Input type": ["c10::BFloat16", "c10::BFloat16"], "Input Strides": [[1024, 1], [1, 1024]],
      "Input Dims": [[{m}, 1024], [1024, {n}]], "Ev Idx": {i}
    }}
  }},
  {{
    "ph": "X", "cat": "cpu_op", "name": "{inner}", "pid": 4711, "tid": 4711,
    "ts": {t1:.3f}, "dur": 35.250,
    "args": {{
      "External id": {j}, "Record function id": 0, "Concrete Inputs": ["", "", ""],
      "Input type": ["c10::BFloat16", "c10::BFloat16"], "Input Strides": [[1024, 1], [1, 1024]],
      "Input Dims": [[{m}, 1024], [1024, {n}]], "Ev Idx": {j}
    }}
  }},
  {{
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4711, "tid": 4711,
    "ts": {t2:.3f}, "dur": 5.125,
    "args": {{
      "External id": {j}, "cbid": 211, "correlation": {c}
    }}
  }},
  {{
    "ph": "s", "id": {c}, "pid": 4711, "tid": 4711, "ts": {t2:.3f},
    "cat": "ac2g", "name": "ac2g"
  }},
  {{
    "ph": "X", "cat": "kernel", "name": "{kernel}", "pid": 0, "tid": {stream},
    "ts": {t3:.3f}, "dur": {dur:.3f},
    "args": {{
      "External id": {j}, "queued": 0, "device": 0, "context": 1, "stream": {stream}, "correlation": {c},
      "registers per thread": 168, "shared memory": 213248, "blocks per SM": 0.969697, "warps per SM": 11.636364,
      "grid": [128, 1, 1], "block": [384, 1, 1], "est. achieved occupancy %": 18
    }}
  }},
  {{
    "ph": "f", "id": {c}, "pid": 0, "tid": {stream}, "ts": {t3:.3f},
    "cat": "ac2g", "name": "ac2g", "bp": "e"
  }}"""
STEP = """  {{
    "ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{n}", "pid": 4711, "tid": 4711,
    "ts": {start:.3f}, "dur": {dur:.3f},
    "args": {{
      "External id": {ext}, "Ev Idx": 0
    }}
  }}"""
KERNELS = (
    ("aten::linear", "aten::mm", "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1"),
    (
        "aten::layer_norm",
        "aten::native_layer_norm",
        "void at::native::vectorized_layer_norm_kernel<c10::BFloat16, float>",
    ),
    (
        "aten::add",
        "aten::add",
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16> >",
    ),
    ("aten::matmul", "aten::bmm", "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn"),
)
PERIOD = 40.0
OPERATIONS_A_STEP = 1000


def write_trace(path: Path, events: int) -> int:
    """Write about so many events; return the number written."""
    operations, base = max(events // 6, 1), 1414456661601.577
    written = 0
    with path.open("w", encoding="utf-8") as out:
        out.write(HEAD)
        for first in range(0, operations, OPERATIONS_A_STEP):
            count = min(OPERATIONS_A_STEP, operations - first)
            start, dur = base + first * PERIOD - 0.25, count * PERIOD - 0.25
            parts = [STEP.format(n=first // OPERATIONS_A_STEP, start=start, dur=dur, ext=3 * operations + first)]
            parts += [_operation(n, base) for n in range(first, first + count)]
            out.write((",\n" if first else "") + ",\n".join(parts))
            written += 1 + 6 * count
        out.write(TAIL)
    return written


def _operation(n: int, base: float) -> str:
    outer, inner, kernel = KERNELS[n % 4]
    collective = n % 100 == 99
    start = base + n * PERIOD
    return BLOCK.format(
        outer="c10d::allreduce_" if collective else outer,
        inner="record_param_comms" if collective else inner,
        kernel="ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)" if collective else kernel,
        stream=20 if collective else 7,
        i=2 * n + 1,
        j=2 * n + 2,
        c=n + 1,
        m=512 * (1 + n % 16),
        n=256 * (1 + n % 8),
        t0=start,
        t1=start + 2.125,
        t2=start + 20.5,
        t3=start + 28.25,
        dur=40.0 if collective else 30.0 + (n % 7),
    )


_NUMBERED = ("correlation", "External id", "Ev Idx", "Record function id", "Sequence number")
"""Arguments that number an event: each copy of a trace has numbers of its own."""


def repeat_trace(source: Path, path: Path, megabytes: float) -> int:
    """Repeat a real trace until it has so many megabytes unpacked; return the number of events."""
    opened = gzip.open if source.suffix == ".gz" else open
    with opened(source, "rt", encoding="utf-8") as file:
        document = json.load(file)
    events = document["traceEvents"]
    timed = [event for event in events if event.get("ph") == "X"]
    span = max(event["ts"] + event.get("dur", 0) for event in timed) - min(event["ts"] for event in timed) + 100
    numbers = [event.get("args", {}).get(name) for event in events for name in _NUMBERED]
    step = 1 + max(number for number in (*numbers, *(e.get("id") for e in events)) if isinstance(number, int))
    copies = max(1, round(megabytes * 1e6 / len(json.dumps(events))))
    document["traceEvents"] = [
        _shifted(event, span * at, step * at)
        for at in range(copies)
        for event in events
        if not at or event["ph"] != "M"
    ]
    with gzip.open(path, "wt", compresslevel=6, encoding="utf-8") as file:
        json.dump(document, file)
    return len(document["traceEvents"])


def _shifted(event: dict[str, Any], microseconds: float, numbers: int) -> dict[str, Any]:
    if not numbers or event.get("ph") == "M":
        return event
    args = event.get("args", {})
    moved = {**event, "args": {**args, **{n: args[n] + numbers for n in _NUMBERED if isinstance(args.get(n), int)}}}
    moved |= {"ts": event["ts"] + microseconds} if "ts" in event else {}
    return moved | ({"id": event["id"] + numbers} if isinstance(event.get("id"), int) else {})
