"""Forward operators and the backward passes they caused, matched by sequence number."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from pytest_perfgate.core.analysis.trace.stack import subtree_times
from pytest_perfgate.core.analysis.trace.survey import Survey
from pytest_perfgate.model.document import Column, Table
from pytest_perfgate.model.quantity import Dimension
from pytest_perfgate.model.trace import Category
from pytest_perfgate.model.values import value

ENGINE = "autograd::engine::evaluate_function"


@value
class Passes:
    """A forward operator's calls and GPU time, and what its gradients took."""

    name: str
    calls: int
    matched: int
    """Calls whose backward pass is in the trace."""
    forward: float
    backward: float


def passes(seen: Survey) -> tuple[Passes, ...]:
    """Forward operators that recorded a sequence number, those with the longest passes first."""
    trace = seen.trace
    numbered = np.flatnonzero((trace.sequence >= 0) & (trace.category == Category.OPERATOR))
    engine = np.array([name.startswith(ENGINE) for name in trace.names] or [False])
    behind = {int(trace.sequence[r]): r for r in numbered[engine[trace.name[numbered]]].tolist()}
    times = subtree_times(seen)
    found: dict[str, list[float]] = defaultdict(lambda: [0, 0, 0.0, 0.0])
    for row in _outermost(seen, numbered[~engine[trace.name[numbered]]]):
        entry = found[trace.names[trace.name[row]]]
        other = behind.get(int(trace.sequence[row]))
        entry[0] += 1
        entry[2] += float(times[row])
        if other is not None:
            entry[1] += 1
            entry[3] += float(times[other])
    made = (
        Passes(name=name, calls=int(calls), matched=int(matched), forward=forward, backward=backward)
        for name, (calls, matched, forward, backward) in found.items()
        if forward or backward
    )
    return tuple(sorted(made, key=lambda p: -(p.forward + p.backward)))


def _outermost(seen: Survey, rows: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> list[int]:
    """Of forward operators with one number, the last that no other of them holds: it took the number.

    An operator without a gradient reads the number that the next one takes.
    """
    trace = seen.trace
    taken: dict[tuple[int, int], int] = {}
    for row in rows[np.lexsort((-trace.end[rows], trace.start[rows]))].tolist():
        key = (int(trace.place[row]), int(trace.sequence[row]))
        holder = taken.get(key)
        inside = holder is not None and trace.end[row] <= trace.end[holder]
        if not inside and not _in_backward(seen, row):
            taken[key] = row
    return list(taken.values())


def _in_backward(seen: Survey, row: int) -> bool:
    above = int(seen.tree.parent[row])
    while above >= 0:
        if seen.trace.names[seen.trace.name[above]].startswith(ENGINE):
            return True
        above = int(seen.tree.parent[above])
    return False


def passes_table(found: tuple[Passes, ...]) -> Table:
    """One line a forward operator."""
    time, count = Dimension.TIME, Dimension.COUNT
    return Table(
        columns=(
            Column(name="forward operator"),
            Column(name="calls", dimension=count),
            Column(name="with a backward pass", dimension=count),
            Column(name="forward GPU time", dimension=time),
            Column(name="backward GPU time", dimension=time),
            Column(name="backward / forward", dimension=Dimension.RATIO),
        ),
        rows=tuple(
            (p.name, p.calls, p.matched, p.forward, p.backward, p.backward / p.forward if p.forward else None)
            for p in found
        ),
        note="Matched by sequence number; an operator holds what runs inside it.",
    )
