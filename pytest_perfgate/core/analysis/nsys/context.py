"""Which range encloses a point: exact for any set of intervals, with no bound on how far back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pytest_perfgate.model.nsys import Activity, Calls, Ranges, pid_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


def innermost(start: Ints, end: Ints, points: Ints) -> Ints:
    """For each point the index of the last-started range that holds it, or -1.

    A range that ended before the point is left for the nearest earlier one that ends later;
    whatever lies between those two has ended as well, so nothing is missed.
    """
    order = np.lexsort((-end, start))
    ends = end[order]
    later = _ends_later(ends)
    at = np.searchsorted(start[order], points, side="right") - 1
    pending = np.flatnonzero(at >= 0)
    while len(pending):
        pending = pending[ends[at[pending]] < points[pending]]
        at[pending] = later[at[pending]]
        pending = pending[at[pending] >= 0]
    return np.where(at >= 0, order[np.maximum(at, 0)], -1) if len(order) else np.full(len(points), -1)


def _ends_later(ends: Ints) -> Ints:
    """For each interval in order of start, the nearest earlier one that ends later, or -1.

    All look one back at once; whoever finds one that ended takes over where that one has got to, since
    nothing between those two ends later. The way doubles with every round.
    """
    found = np.arange(-1, len(ends) - 1, dtype=np.int64)
    pending = np.flatnonzero(found >= 0)
    while len(pending):
        pending = pending[ends[found[pending]] <= ends[pending]]
        found[pending] = found[found[pending]]
        pending = pending[found[pending] >= 0]
    return found


def launches(kernels: Activity, calls: Calls) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Launch time and thread of each kernel, and whether its call was recorded."""
    wanted = _key(kernels.pid, kernels.correlation)
    have = _key(pid_of(calls.tid), calls.correlation)
    order = np.lexsort((calls.start, have))
    have = have[order]
    at = np.minimum(np.searchsorted(have, wanted), max(len(have) - 1, 0))
    if not len(have):
        none = np.full(len(wanted), -1, dtype=np.int64)
        return none, none, np.zeros(len(wanted), dtype=bool)
    linked = have[at] == wanted
    row = order[at]
    return np.where(linked, calls.start[row], -1), np.where(linked, calls.tid[row], -1), linked


def _key(pid: Ints, correlation: Ints) -> Ints:
    return (pid << 32) | correlation


def contexts(ranges: Ranges, label: Ints, when: Ints, thread: Ints) -> Ints:
    """The label of the innermost labelled range around each launch on its own thread, or -1.

    ``label`` holds one index per text of the ranges; -1 does not count as a range here.
    """
    found = np.full(len(when), -1, dtype=np.int64)
    named = label[ranges.text] >= 0 if len(ranges) else np.zeros(0, dtype=bool)
    rows = np.flatnonzero(named)
    for tid in np.unique(thread[thread >= 0]):
        mine = rows[ranges.tid[rows] == tid]
        here = np.flatnonzero(thread == tid)
        low, high = when[here].min(), when[here].max()
        mine = mine[(ranges.start[mine] <= high) & (ranges.end[mine] >= low)]
        if len(mine):
            at = innermost(ranges.start[mine], ranges.end[mine], when[here])
            found[here] = np.where(at >= 0, label[ranges.text[mine[np.maximum(at, 0)]]], -1)
    return found
