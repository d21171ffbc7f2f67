"""Plain names of NVIDIA's and AMD's counters."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pytest_perfgate.model.values import value

if TYPE_CHECKING:
    from pytest_perfgate.model.device import DeviceSpec
    from pytest_perfgate.model.profiles import Counter, KernelFacts

_ELAPSED = ".avg.pct_of_peak_sustained_elapsed"


@value
class Plain:
    """A plain name, the full names that provide it in order, and the section that collects them."""

    name: str
    full: tuple[str, ...]
    section: str = ""
    scale: float = 1.0

    @property
    def fix(self) -> str:
        if self.section:
            return f"collect it with --section {self.section}"
        return f"collect it with --metrics {self.full[0]}, or perfgate profile NODEID --mode cubin"


PLAIN: tuple[Plain, ...] = (
    Plain(
        name="tc_util",
        full=(
            f"sm__pipe_tensor_cycles_active{_ELAPSED}",
            f"sm__pipe_tensor_op_hmma_cycles_active{_ELAPSED}",
            f"sm__inst_executed_pipe_tensor{_ELAPSED}",
            "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
        ),
        section="ComputeWorkloadAnalysis",
        scale=0.01,
    ),
    Plain(
        name="dram",
        full=(f"dram__throughput{_ELAPSED}", f"gpu__dram_throughput{_ELAPSED}"),
        section="SpeedOfLight",
        scale=0.01,
    ),
    Plain(name="sm", full=(f"sm__throughput{_ELAPSED}",), section="SpeedOfLight", scale=0.01),
    Plain(
        name="occupancy",
        full=("sm__warps_active.avg.pct_of_peak_sustained_active",),
        section="Occupancy",
        scale=0.01,
    ),
    Plain(name="l2_hit", full=("lts__t_sector_hit_rate.pct",), section="MemoryWorkloadAnalysis", scale=0.01),
    Plain(name="l1_hit", full=("l1tex__t_sector_hit_rate.pct",), section="MemoryWorkloadAnalysis", scale=0.01),
    Plain(name="waves", full=("launch__waves_per_multiprocessor",), section="LaunchStats"),
    Plain(name="registers", full=("launch__registers_per_thread",), section="LaunchStats"),
    Plain(name="duration", full=("gpu__time_duration.sum",), section="SpeedOfLight"),
    Plain(name="spills", full=("launch__local_mem_per_thread",)),
)

PIPES = (
    ("tensor cores", f"sm__pipe_tensor_cycles_active{_ELAPSED}"),
    ("tensor cores", f"sm__pipe_tensor_op_hmma_cycles_active{_ELAPSED}"),
    ("FMA", f"sm__pipe_fma_cycles_active{_ELAPSED}"),
    ("FMA", f"sm__pipe_fmaheavy_cycles_active{_ELAPSED}"),
    ("FP64", f"sm__pipe_fp64_cycles_active{_ELAPSED}"),
    ("ALU", f"sm__pipe_alu_cycles_active{_ELAPSED}"),
    ("FP64 tensor cores", f"sm__pipe_tensor_op_dmma_cycles_active{_ELAPSED}"),
    ("FP16", f"sm__inst_executed_pipe_fp16{_ELAPSED}"),
    ("XU (transcendentals, conversions)", f"sm__inst_executed_pipe_xu{_ELAPSED}"),
)
"""Pipes that compute. ``sm__throughput`` also includes the load-store pipe, whose use is not computation."""

INSIDE = (
    ("L1 data", f"l1tex__data_pipe_lsu_wavefronts{_ELAPSED}"),
    ("load-store", f"sm__inst_executed_pipe_lsu{_ELAPSED}"),
    ("L2", f"lts__throughput{_ELAPSED}"),
)
"""On-chip memory, whose use is neither compute nor DRAM."""

_STALL = ("smsp__average_warps_issue_stalled_", "_per_issue_active.ratio")

_STALL_LATENCY = ("smsp__average_warp_latency_issue_stalled_", ".ratio")

_NO_STALL = "selected"

_ALL_STALLS = "smsp__average_warp_latency_per_inst_issued.ratio"
"""The sum over all reasons, including issuing."""

_REASONS = frozenset((
    "barrier", "branch_resolving", "dispatch_stall", "drain", "imc_miss", "lg_throttle", "long_scoreboard",
    "math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instruction", "not_selected", "selected",
    "short_scoreboard", "sleeping", "tex_throttle", "wait",
))  # fmt: skip
"""Reasons of every architecture from Volta on; newer ones have more."""

_WHOLE = 0.99


def plain(counters: Mapping[str, Counter]) -> Iterator[tuple[Plain, str, float]]:
    """Yield (plain name, full name, value in internal units) of all that was collected."""
    for entry in PLAIN:
        for full in entry.full:
            counter = counters.get(full)
            if counter is not None and math.isfinite(counter.value):
                yield entry, full, counter.value * entry.scale
                break


def launches_of(counters: Mapping[str, Counter]) -> int:
    """Return the launches that a row stands for: several in a table of statistics, whose times are means."""
    calls = counters.get("Calls")
    return round(calls.value) if calls else 1


def leading(counters: Mapping[str, Counter], table: tuple[tuple[str, str], ...]) -> tuple[str, float] | None:
    """Return the busiest of these, as a fraction of its peak."""
    shares = [(words, counters[full].value * 0.01) for words, full in table if full in counters]
    return max((pair for pair in shares if math.isfinite(pair[1])), key=lambda pair: pair[1], default=None)


def stalls(counters: Mapping[str, Counter]) -> dict[str, float]:
    """Return the share of a warp's time by stall reason, without issuing, which the total includes."""
    # A share is of all reasons, so it is empty if neither their sum nor every one of them was collected.
    for head, tail in (_STALL, _STALL_LATENCY):
        reasons = _reasons(counters, head, tail)
        total = _total(reasons, counters)
        if total is not None:
            return {reason: number / total for reason, number in reasons.items() if reason != _NO_STALL}
    return {}


def stalls_missing(counters: Mapping[str, Counter]) -> str:
    """Return why there are no shares of stalls; "" if none of their counters was collected."""
    reasons = _reasons(counters, *_STALL) or _reasons(counters, *_STALL_LATENCY)
    if not reasons:
        return ""
    return f"{len(reasons)} of at least {len(_REASONS)} reasons were collected, and a share is of all of them"


def _reasons(counters: Mapping[str, Counter], head: str, tail: str) -> dict[str, float]:
    return {
        name[len(head) : -len(tail)]: counter.value
        for name, counter in counters.items()
        if name.startswith(head) and name.endswith(tail)
    }


def _total(stalls: Mapping[str, float], counters: Mapping[str, Counter]) -> float | None:
    """Return the total of the reasons; None if only some of them were collected."""
    known, total = sum(stalls.values()), counters.get(_ALL_STALLS)
    if not 0 < known < math.inf:
        return None
    if total is not None and math.isfinite(total.value) and total.value >= known * _WHOLE:
        return max(total.value, known)
    return known if stalls.keys() >= _REASONS else None


_WAVE = 64

_MOPS = 512
"""Operations for each count of MFMA_MOPS."""

_VECTOR = (("F16", "fp32"), ("F32", "fp32"), ("F64", "fp64"))
"""The peaks of vector units: halves run at the rate of singles there, and ``fp16`` is that of the matrix units."""

_MATRIX = (("F16", "fp16"), ("BF16", "bf16"), ("F32", "fp32_tc"), ("F64", "fp64_tc"), ("I8", "int8"))

_DERIVED = (("tc_util", "MfmaUtil"), ("occupancy", "OccupancyPercent"))
"""Plain names that rocprof provides itself."""

COLLECT = {
    "tc_util": "--pmc MfmaUtil",
    "occupancy": "--pmc OccupancyPercent",
    "l2_hit": "--pmc TCC_HIT_sum TCC_MISS_sum",
    "dram": "--pmc FETCH_SIZE WRITE_SIZE, with --kernel-trace and --device",
    "sm": "with --kernel-trace and --device",
    "duration": "--kernel-trace",
}
"""How to collect each plain metric; counters of AMD cannot provide the others."""

_EACH = ("ADD", "MUL", "TRANS", "FMA")

_OPERATIONS = (
    *(f"SQ_INSTS_VALU_{op}_{suffix}" for suffix, _ in _VECTOR for op in _EACH),
    *(f"SQ_INSTS_VALU_MFMA_MOPS_{suffix}" for suffix, _ in _MATRIX),
)
"""All parts of the ``sm`` sum; a missing one is not zero."""


def collected_with(name: str, counters: Mapping[str, Counter]) -> str:
    """Return rocprofv3's options for a plain metric, as far as these counters lack it."""
    lacking = " ".join(counter for counter in _OPERATIONS if counter not in counters) if name == "sm" else ""
    return f"--pmc {lacking}, {COLLECT[name]}" if lacking else COLLECT[name]


def amd_numbers(facts: KernelFacts, spec: DeviceSpec | None) -> Iterator[tuple[str, float]]:
    """Yield (plain name, value) of all that these counters and this data sheet allow."""
    counters = facts.counters
    hit = _l2_hit(counters)
    if hit is not None:
        yield "l2_hit", hit
    for name, derived in _DERIVED:
        share = _share(counters, derived)
        if share is not None:
            yield name, share
    if facts.resources is not None and "stack" not in facts.resources.unstated:
        yield "spills", facts.resources.stack
    moved = memory_bytes(counters)
    if moved is not None and facts.duration and spec and spec.bandwidth:
        yield "dram", moved / (facts.duration * 1e-9) / spec.bandwidth
    busy = _compute(counters, facts.duration, spec)
    if busy is not None:
        yield "sm", busy


def _l2_hit(counters: Mapping[str, Counter]) -> float | None:
    hits, misses = (_of(counters, name) for name in ("TCC_HIT_sum", "TCC_MISS_sum"))
    if hits is not None and misses is not None and hits + misses:
        return hits / (hits + misses)
    return _share(counters, "L2CacheHit")


def _share(counters: Mapping[str, Counter], name: str) -> float | None:
    """Return a percentage of rocprof; None above 100 %, which means that it was summed over something."""
    derived = _of(counters, name)
    return derived / 100 if derived is not None and 0 <= derived <= 100 else None


def _of(counters: Mapping[str, Counter], *names: str) -> float | None:
    return next((counters[name].value for name in names if name in counters), None)


def memory_bytes(counters: Mapping[str, Counter]) -> float | None:
    """Return the bytes between L2 and memory: requests of 32, 64 and 128 bytes, by names of gfx90a and gfx942."""
    # If some were not collected, rocprof's kilobytes are used. Counters with names of gfx90a have no requests of 128
    # bytes.
    reads = _of(counters, "TCC_EA0_RDREQ_sum", "TCC_EA_RDREQ_sum")
    small = _of(counters, "TCC_EA0_RDREQ_32B_sum", "TCC_EA_RDREQ_32B_sum")
    writes = _of(counters, "TCC_EA0_WRREQ_sum", "TCC_EA_WRREQ_sum")
    large = _of(counters, "TCC_EA0_WRREQ_64B_sum", "TCC_EA_WRREQ_64B_sum")
    double = _of(counters, "TCC_BUBBLE_sum")
    if double is None and "TCC_EA0_RDREQ_sum" not in counters:
        double = 0.0
    if reads is None or small is None or writes is None or large is None or double is None:
        fetched, written = _of(counters, "FETCH_SIZE"), _of(counters, "WRITE_SIZE")
        return None if fetched is None or written is None else 1024 * (fetched + written)
    return 128 * double + 64 * (reads - small - double) + 32 * small + 64 * large + 32 * (writes - large)


def _compute(counters: Mapping[str, Counter], duration: float | None, spec: DeviceSpec | None) -> float | None:
    """Return the time of the counted operations at the data sheet's rates, as a fraction of the time taken."""
    if not duration or spec is None or any(name not in counters for name in _OPERATIONS):
        return None
    seconds = 0.0
    for operations, dtype in (*_vector(counters), *_matrix(counters)):
        peak = spec.peak(dtype) or spec.peak(dtype.partition("_")[0])
        if operations and (peak is None or not peak.datasheet):
            return None
        seconds += operations / peak.datasheet if operations and peak and peak.datasheet else 0.0
    return seconds / (duration * 1e-9)


def _vector(counters: Mapping[str, Counter]) -> Iterator[tuple[float, str]]:
    for suffix, dtype in _VECTOR:
        each = {op: counters[f"SQ_INSTS_VALU_{op}_{suffix}"].value for op in _EACH}
        yield _WAVE * (sum(each.values()) + each["FMA"]), dtype


def _matrix(counters: Mapping[str, Counter]) -> Iterator[tuple[float, str]]:
    for suffix, dtype in _MATRIX:
        yield _MOPS * counters[f"SQ_INSTS_VALU_MFMA_MOPS_{suffix}"].value, dtype
