"""The call tree of the host: which event caused which, by containment in time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pytest_perfgate.model.trace import HOST, Category, Trace
from pytest_perfgate.model.values import array_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

STRADDLE_NS = 1000
"""Events that outlive their parent by less than this belong to the grandparent."""


@array_value
class Tree:
    """Parents of host rows by row; -1 is a root or a row that is not in the tree."""

    parent: Ints
    operator: Ints
    """The nearest operator at or above each row, -1 where there is none."""
    dropped: int
    """Events that end outside what they started in."""


def call_tree(trace: Trace) -> Tree:
    """Containment per thread, and the operator above every row."""
    parent = np.full(len(trace), -1, np.int64)
    host = np.flatnonzero(np.isin(trace.category, HOST))
    order = host[np.lexsort((-trace.end[host], trace.start[host], trace.place[host]))]
    places = trace.place[order]
    edges = np.flatnonzero(np.diff(places)) + 1
    dropped = 0
    for rows in np.split(order, edges):
        if len(rows):
            above, lost = nest(trace.start[rows], trace.end[rows])
            parent[rows] = np.where(above >= 0, rows[above], -1)
            dropped += lost
    return Tree(parent=parent, operator=_nearest(parent, trace.category == Category.OPERATOR), dropped=dropped)


def nest(starts: Ints, ends: Ints) -> tuple[Ints, int]:
    """Parents within one thread, sorted by start and falling end; -1 for roots."""
    above = _nested(starts, ends)
    inside = (above < 0) | (ends <= ends[above])
    return (above, 0) if inside.all() else _stacked(starts, ends)


def _nested(starts: Ints, ends: Ints) -> Ints:
    """Parents of well-nested intervals, level by level: the last event one level up."""
    above = np.full(len(starts), -1, np.int64)
    lasting = np.flatnonzero(ends > starts)
    closed = np.searchsorted(np.sort(ends[lasting]), starts, side="right")
    before = np.searchsorted(lasting, np.arange(len(starts)), side="left")
    depth = before - closed
    levels = depth[lasting]
    for level in range(1, int(depth.max(initial=0)) + 1):
        upper = lasting[levels == level - 1]
        here = np.flatnonzero(depth == level)
        at = np.searchsorted(upper, here) - 1
        above[here] = np.where(at >= 0, upper[np.maximum(at, 0)], -1) if len(upper) else -1
    return above


def _stacked(starts: Ints, ends: Ints) -> tuple[Ints, int]:
    """The same with a stack, for threads whose events straddle."""
    above, dropped = [-1] * len(starts), 0
    stack: list[int] = []
    begin, finish = starts.tolist(), ends.tolist()
    for at, (start, end) in enumerate(zip(begin, finish)):
        while stack and start >= finish[stack[-1]]:
            stack.pop()
        if stack and end > finish[stack[-1]]:
            if end - finish[stack[-1]] >= STRADDLE_NS:
                dropped += 1
                continue
            above[at] = next((row for row in reversed(stack) if end <= finish[row]), -1)
        elif stack:
            above[at] = stack[-1]
        stack.append(at)
    return np.array(above, np.int64), dropped


def _nearest(parent: Ints, wanted: NDArray[np.bool_]) -> Ints:
    """For each row the nearest wanted row at or above it, by following parents all at once."""
    found = np.where(wanted, np.arange(len(parent)), parent)
    while True:
        open_rows = np.flatnonzero((found >= 0) & ~wanted[np.maximum(found, 0)])
        if not len(open_rows):
            return found
        found[open_rows] = parent[found[open_rows]]
