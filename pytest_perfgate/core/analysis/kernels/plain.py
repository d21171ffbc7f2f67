"""Plain names of profiler metrics: which full names answer, in which scale, where to get them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from pytest_perfgate.model.kernel import Counter
from pytest_perfgate.model.values import value

_ELAPSED = ".avg.pct_of_peak_sustained_elapsed"


@value
class Plain:
    """A plain name, the full names that answer it in order, and the section that collects them, where one does."""

    name: str
    full: tuple[str, ...]
    section: str = ""
    scale: float = 1.0

    @property
    def mend(self) -> str:
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
"""What computes. The load-store pipe is in ``sm__throughput`` too, and a kernel bound by it computes nothing."""
INSIDE = (
    ("L1 data", f"l1tex__data_pipe_lsu_wavefronts{_ELAPSED}"),
    ("load-store", f"sm__inst_executed_pipe_lsu{_ELAPSED}"),
    ("L2", f"lts__throughput{_ELAPSED}"),
)
"""Memory inside the chip: busy here is neither compute nor DRAM."""
_STALL = ("smsp__average_warps_issue_stalled_", "_per_issue_active.ratio")
_STALL_LATENCY = ("smsp__average_warp_latency_issue_stalled_", ".ratio")
_NO_STALL = "selected"
_ALL_STALLS = "smsp__average_warp_latency_per_inst_issued.ratio"
"""What all reasons come to, issuing itself among them."""
_REASONS = frozenset((
    "barrier", "branch_resolving", "dispatch_stall", "drain", "imc_miss", "lg_throttle", "long_scoreboard",
    "math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instruction", "not_selected", "selected",
    "short_scoreboard", "sleeping", "tex_throttle", "wait",
))  # fmt: skip
"""Reasons of every architecture from Volta on; newer ones have more."""
_WHOLE = 0.99


def plain(counters: Mapping[str, Counter]) -> Iterator[tuple[Plain, str, float]]:
    """(plain name, full name that answered, value inside) of all that was collected."""
    for entry in PLAIN:
        for full in entry.full:
            seen = counters.get(full)
            if seen is not None and math.isfinite(seen.value):
                yield entry, full, seen.value * entry.scale
                break


def leading(counters: Mapping[str, Counter], table: tuple[tuple[str, str], ...]) -> tuple[str, float] | None:
    """The busiest of these, as a fraction of its peak."""
    seen = [(words, counters[full].value * 0.01) for words, full in table if full in counters]
    return max((pair for pair in seen if math.isfinite(pair[1])), key=lambda pair: pair[1], default=None)


def stalls(counters: Mapping[str, Counter]) -> dict[str, float]:
    """Share of a warp's time by the reason it waits for; issuing itself is left out of the names, not of the sum.

    A share is of all reasons: nothing is said where neither their sum nor every one of them was collected.
    """
    for head, tail in (_STALL, _STALL_LATENCY):
        found = _reasons(counters, head, tail)
        total = _total(found, counters)
        if total is not None:
            return {reason: number / total for reason, number in found.items() if reason != _NO_STALL}
    return {}


def stalls_missing(counters: Mapping[str, Counter]) -> str:
    """Why there is no share of stalls; empty where nothing of them was collected."""
    found = _reasons(counters, *_STALL) or _reasons(counters, *_STALL_LATENCY)
    if not found:
        return ""
    return f"{len(found)} of at least {len(_REASONS)} reasons were collected, and a share is of all of them"


def _reasons(counters: Mapping[str, Counter], head: str, tail: str) -> dict[str, float]:
    return {
        name[len(head) : -len(tail)]: counter.value
        for name, counter in counters.items()
        if name.startswith(head) and name.endswith(tail) and not name[len(head) :].startswith("not_issued")
    }


def _total(found: Mapping[str, float], counters: Mapping[str, Counter]) -> float | None:
    """What the reasons are shares of; none where a part of them is all there is."""
    known, told = sum(found.values()), counters.get(_ALL_STALLS)
    if not 0 < known < math.inf:
        return None
    if told is not None and math.isfinite(told.value) and told.value >= known * _WHOLE:
        return max(told.value, known)
    return known if found.keys() >= _REASONS else None
