"""What no trace can tell, and which tool can: said to whoever reads a report, and to a limit that asks."""

from __future__ import annotations

from pytest_perfgate.core.metrics.kernel import KINDS
from pytest_perfgate.model.metric import Absent, MetricSet

UNSEEN = (
    ("bank conflicts, coalescing, cache hits, stall reasons", "ncu, or rocprof on AMD"),
    ("occupancy and registers", "ncu, or the cubin: perfgate inspect KERNEL.cubin"),
    ("why the host was late", "a profile with stacks, or the trace in Perfetto"),
)
"""What a trace cannot tell, and what can."""
_TOOLS = {
    "ncu": "profile the kernel with ncu, or with rocprof on AMD, and check that report",
    "cubin": "check the cubin: perfgate check KERNEL.cubin",
    "rocprof": "profile the kernel with rocprof and check its CSV",
}


def unobservable() -> MetricSet:
    """The figures of counters and machine code, absent from every trace."""
    why = "not observable in a trace"
    return MetricSet(absent=tuple(Absent(name=k.name, why=why, mend=_TOOLS[k.source]) for k in KINDS))
