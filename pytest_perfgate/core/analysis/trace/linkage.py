"""Which launch each GPU row came from, and how much of the GPU time that explains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pytest_perfgate.core.analysis.trace.tree import Tree
from pytest_perfgate.model.trace import Category, Trace
from pytest_perfgate.model.values import array_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


_RECORDERS = {"record_param_comms"}


@array_value
class Linkage:
    """For each GPU row of a trace, in the order of ``rows``; -1 where unknown."""

    rows: Ints
    launch: Ints
    """The runtime call, or the operator where only ``External id`` tells."""
    leaf: Ints
    """The nearest operator above the launch."""
    coverage: float | None
    """GPU time linked to a launch over all GPU time; ``None`` without GPU time."""


def link(trace: Trace, tree: Tree, rows: Ints) -> Linkage:
    """Link by correlation, then by external id."""
    runtime = np.flatnonzero((trace.category == Category.RUNTIME) & (trace.correlation > 0))
    launch = _latest(trace.correlation[runtime], runtime, trace.correlation[rows])
    open_rows = launch < 0
    if open_rows.any():
        named = np.flatnonzero((trace.category == Category.OPERATOR) & (trace.external > 0))
        launch[open_rows] = _latest(trace.external[named], named, trace.external[rows[open_rows]])
    leaf = np.where(launch >= 0, tree.operator[np.maximum(launch, 0)], -1)
    orphans = (launch >= 0) & (leaf < 0)
    if orphans.any():
        leaf[orphans] = _by_external(trace, rows[orphans])
    spent = trace.end[rows] - trace.start[rows]
    total = int(spent.sum())
    return Linkage(
        rows=rows,
        launch=launch,
        leaf=leaf,
        coverage=float(spent[launch >= 0].sum() / total) if total else None,
    )


def sent(trace: Trace, found: Linkage) -> NDArray[np.bool_]:
    """GPU rows that carry a recorded collective, or were launched where the framework records one."""
    marked = np.zeros(len(trace), np.bool_)
    marked[list(trace.messages)] = True
    recorder = np.array([name in _RECORDERS for name in trace.names] or [False])
    under: NDArray[np.bool_] = recorder[trace.name[np.maximum(found.leaf, 0)]] & (found.leaf >= 0)
    return marked[found.rows] | under


def _by_external(trace: Trace, rows: Ints) -> Ints:
    named = np.flatnonzero((trace.category == Category.OPERATOR) & (trace.external > 0))
    return _latest(trace.external[named], named, trace.external[rows])


def _latest(keys: Ints, rows: Ints, wanted: Ints) -> Ints:
    """For each wanted key the last row that has it, else -1."""
    if not len(keys):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(keys, kind="stable")
    at = np.searchsorted(keys, wanted, side="right", sorter=order) - 1
    hit = rows[order[np.maximum(at, 0)]]
    same = (at >= 0) & (keys[order[np.maximum(at, 0)]] == wanted) & (wanted > 0)
    return np.where(same, hit, -1)
