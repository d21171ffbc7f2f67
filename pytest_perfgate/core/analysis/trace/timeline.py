"""Where the time of a device went: compute, what is exposed beside it, idle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_perfgate.core.analysis import intervals
from pytest_perfgate.core.analysis.trace.classes import Kind
from pytest_perfgate.model.values import value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pytest_perfgate.core.analysis.intervals import Spans

    Ints = NDArray[np.int64]

MICRO_NS = 10_000
"""Gaps up to this long are micro idle: launch latency rather than waiting."""


@value
class Timeline:
    """Nanoseconds of one device in one window; the parts of ``total`` sum to it."""

    computation: int
    exposed_comm: int
    exposed_memcpy: int
    exposed_memset: int
    idle: int
    total: int
    communication: int
    memcpy: int
    memset: int
    idle_micro: int
    idle_macro: int
    gaps: int
    rows: int
    exposed_sum: int = 0
    """Communication that no compute covers, summed kernel by kernel."""
    comm_sum: int = 0
    least_covered: float | None = None
    """The smallest part of a communication kernel that compute covers."""
    most_covered: float | None = None

    @property
    def busy(self) -> int:
        return self.total - self.idle

    @property
    def overlap(self) -> float | None:
        """The share of communication that compute hides; ``None`` where there is none."""
        return 1 - self.exposed_comm / self.communication if self.communication else None

    @property
    def overlap_sum(self) -> float | None:
        """The same, each communication kernel for itself."""
        return 1 - self.exposed_sum / self.comm_sum if self.comm_sum else None

    def share(self, part: int) -> float:
        return part / self.total if self.total else 0.0


def timeline(
    starts: Ints, ends: Ints, kinds: NDArray[np.uint8], window: tuple[int, int] | None = None, micro: int = MICRO_NS
) -> Timeline:
    """The breakdown of GPU rows of one device; without a window, from the first start to the last end."""
    if window is not None:
        starts, ends = np.clip(starts, *window), np.clip(ends, *window)
    low, high = window or (int(starts.min(initial=0)), int(ends.max(initial=0)))
    every = intervals.union(starts, ends)
    if window is None and len(starts):
        low, high = int(starts.min()), int(ends.max())
    part = {kind: intervals.union(starts[kinds == kind], ends[kinds == kind]) for kind in Kind}
    exposed, covered = {}, part[Kind.COMPUTE]
    for kind in (Kind.COMMUNICATION, Kind.MEMCPY, Kind.MEMSET):
        together = intervals.together(covered, part[kind])
        exposed[kind] = intervals.length(together) - intervals.length(covered)
        covered = together
    pauses = _pauses(every, low, high)
    short = pauses <= micro
    return Timeline(
        computation=intervals.length(part[Kind.COMPUTE]),
        exposed_comm=exposed[Kind.COMMUNICATION],
        exposed_memcpy=exposed[Kind.MEMCPY],
        exposed_memset=exposed[Kind.MEMSET],
        idle=int(pauses.sum()),
        total=high - low,
        communication=intervals.length(part[Kind.COMMUNICATION]),
        memcpy=intervals.length(part[Kind.MEMCPY]),
        memset=intervals.length(part[Kind.MEMSET]),
        idle_micro=int(pauses[short].sum()),
        idle_macro=int(pauses[~short].sum()),
        gaps=len(pauses),
        rows=int(np.count_nonzero(ends > starts)),
        **_each(starts[kinds == Kind.COMMUNICATION], ends[kinds == Kind.COMMUNICATION], part[Kind.COMPUTE]),
    )


def _each(starts: Ints, ends: Ints, cover: Spans) -> dict[str, Any]:
    """How much of each communication kernel compute covers."""
    lengths = ends - starts
    hidden, real = intervals.covered_by(starts, ends, cover), lengths > 0
    parts = hidden[real] / lengths[real]
    return {
        "exposed_sum": int((lengths - hidden).sum()),
        "comm_sum": int(lengths.sum()),
        "least_covered": float(parts.min()) if len(parts) else None,
        "most_covered": float(parts.max()) if len(parts) else None,
    }


def _pauses(every: Spans, low: int, high: int) -> Ints:
    """Lengths of what nothing covers between two ends of a window."""
    edges = (np.concatenate([[low], every[1]]), np.concatenate([every[0], [high]]))
    lengths: Ints = np.maximum(edges[1] - edges[0], 0)
    return lengths[lengths > 0]
