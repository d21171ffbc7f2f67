"""Small recordings of our own kernels on a real GPU: a trace with overlap, compiled kernels."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

from ci.gpu.parts import Check, Row

LARGEST = 100_000
"""Bytes of a recording that may be committed."""


def recordings(check: Check, out: Path) -> Iterator[Row]:
    """Yield each recording by itself; one that cannot be made here says why."""
    folder = out / "recordings"
    folder.mkdir(parents=True, exist_ok=True)
    for name, record in (("trace", trace), ("cubins", cubins)):
        try:
            paths = list(record(check, folder))
        except Exception as error:
            yield {"what": name, "refused": type(error).__name__, "why": str(error)[:300]}
            continue
        for path in paths:
            size = path.stat().st_size
            yield {"what": name, "file": path.name, "bytes": size, "held": size <= LARGEST}


def trace(check: Check, folder: Path) -> Iterator[Path]:
    """Yield a trace of two streams at work at the same time, for three steps."""
    torch = check.runtime_module()
    from torch.profiler import ProfilerActivity, profile, record_function

    side = torch.cuda.Stream()
    a = torch.randn(2048, 2048, device="cuda")
    source = torch.randn(8 << 20, device="cuda")
    target = torch.empty_like(source)

    def step() -> None:
        with torch.cuda.stream(side):
            target.copy_(source)
        a @ a

    step()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        for number in range(3):
            with record_function(f"step {number}"):
                step()
        torch.cuda.synchronize()
    plain, packed = folder / "overlap.json", folder / "overlap.json.gz"
    profiler.export_chrome_trace(str(plain))
    packed.write_bytes(gzip.compress(json.dumps(json.loads(plain.read_text())).encode(), 9, mtime=0))
    plain.unlink()
    yield packed


def cubins(check: Check, folder: Path) -> Iterator[Path]:
    """Yield the Triton softmax as this machine compiles it."""
    torch = check.runtime_module()
    from ci.gpu.kernels import softmax_rows

    rows = torch.randn(64, 1024, device="cuda")
    made = softmax_rows(torch.empty_like(rows), rows)
    target = folder / f"softmax-{check.runtime.device().arch}.cubin"
    target.write_bytes(made.asm["cubin"])
    yield target
