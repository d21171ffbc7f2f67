"""Where the time of a device went: compute, what is exposed beside it, idle."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

    @property
    def busy(self) -> int:
        return self.total - self.idle

    @property
    def overlap(self) -> float | None:
        """The share of communication that compute hides; ``None`` where there is none."""
        return 1 - self.exposed_comm / self.communication if self.communication else None

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
    )


def _pauses(every: Spans, low: int, high: int) -> Ints:
    """Lengths of what nothing covers between two ends of a window."""
    edges = (np.concatenate([[low], every[1]]), np.concatenate([every[0], [high]]))
    lengths: Ints = np.maximum(edges[1] - edges[0], 0)
    return lengths[lengths > 0]
