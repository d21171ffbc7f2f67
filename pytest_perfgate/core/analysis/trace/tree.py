"""The host's call tree, and the links from GPU rows to launches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from pytest_perfgate.core.analysis.operators import CATEGORIES, model_of
from pytest_perfgate.model.profiles import HOST, Category, Trace
from pytest_perfgate.model.values import Work, array_value, value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pytest_perfgate.core.analysis.trace.survey import Survey

    Ints = NDArray[np.int64]


STRADDLE_NS = 1000
"""An event that outlives its parent by less than this belongs to the grandparent."""


@array_value
class Tree:
    """Parents of host rows by row; -1 for a root or a row outside of the tree."""

    parent: Ints
    operator: Ints
    """The nearest operator at or above each row, or -1."""
    dropped: int
    """The number of events that end outside of their parent."""


def call_tree(trace: Trace) -> Tree:
    """Build the tree by containment in each thread, and find the operator above every row."""
    parent = np.full(len(trace), -1, np.int64)
    host = np.flatnonzero(np.isin(trace.category, HOST))
    order = host[np.lexsort((-trace.end[host], trace.start[host], trace.place[host]))]
    places = trace.place[order]
    edges = np.flatnonzero(np.diff(places)) + 1
    dropped = 0
    for rows in np.split(order, edges):
        if len(rows):
            above, lost = nested_parents(trace.start[rows], trace.end[rows])
            parent[rows] = np.where(above >= 0, rows[above], -1)
            dropped += lost
    return Tree(parent=parent, operator=_nearest(parent, trace.category == Category.OPERATOR), dropped=dropped)


def nested_parents(starts: Ints, ends: Ints) -> tuple[Ints, int]:
    """Return parents within one thread, sorted by start and falling end; -1 for roots."""
    above = _nested(starts, ends)
    inside = (above < 0) | (ends <= ends[above])
    return (above, 0) if inside.all() else _stacked(starts, ends)


def _nested(starts: Ints, ends: Ints) -> Ints:
    """Return parents of well-nested intervals, level by level: the last event one level up."""
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
    """Return parents by a stack, for threads with overlapping events."""
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
    """Return the nearest wanted row at or above each row, by following all parents at once."""
    nearest = np.where(wanted, np.arange(len(parent)), parent)
    while True:
        open_rows = np.flatnonzero((nearest >= 0) & ~wanted[np.maximum(nearest, 0)])
        if not len(open_rows):
            return nearest
        nearest[open_rows] = parent[nearest[open_rows]]


_ALLOCATES = ("empty", "empty_like", "empty_strided", "new_empty", "resize_", "set_")

_VIEWS = (
    "alias", "as_strided", "detach", "expand", "narrow", "permute", "_reshape_alias", "reshape", "resolve_conj",
    "resolve_neg", "result_type", "select", "slice", "squeeze", "t", "transpose", "unsqueeze", "_unsafe_view", "view",
)  # fmt: skip

_BESIDE = frozenset(f"aten::{name}" for name in (*_ALLOCATES, *_VIEWS))
"""Allocations and views, which are never the main work of their caller."""

_COPIES = frozenset(f"aten::{name}" for name in ("copy_", "_to_copy", "clone", "fill_", "zero_"))
"""Never more than an operator without a model: the copy of the 2 in `x * 2` takes little of its time."""

_LIGHT = "elementwise"
"""Operators that count as part of a caller with more work: a product copies its bias, a sum fills its result."""


def outer_operators(trace: Trace, tree: Tree, models: Mapping[str, Callable[..., Work]]) -> Ints:
    """Return operators that outrank all beneath them and are not within another such one."""
    rows = np.flatnonzero(trace.category == Category.OPERATOR)
    above = _callers(rows, tree)
    calling = above >= 0
    ranks = np.array([_rank(name, models) for name in trace.names] or [0], np.int64)[trace.name[rows]]
    beneath = _highest_beneath(ranks, above)
    innermost = np.ones(len(rows), bool)
    innermost[above[calling]] = False
    stands = innermost | (ranks > beneath)
    return rows[stands & ~_called_by(stands, above)]


def operators(trace: Trace) -> Ints:
    """Return all operators, for the time in which any of them runs."""
    rows: Ints = np.flatnonzero(trace.category == Category.OPERATOR)
    return rows


def _callers(rows: Ints, tree: Tree) -> Ints:
    """Return the position of each operator's caller among these rows, or -1."""
    parents = tree.parent[rows]
    callers = np.where(parents >= 0, tree.operator[np.maximum(parents, 0)], -1)
    caller_rows: Ints = np.where(callers >= 0, np.searchsorted(rows, callers), -1)
    return caller_rows


def _rank(name: str, models: Mapping[str, Callable[..., Work]]) -> int:
    if name in _BESIDE:
        return -1
    if name in models:
        return 2
    if name in _COPIES or model_of(name, models) is None:
        return 0
    return 2 if CATEGORIES.get(name, _LIGHT) != _LIGHT else 1


def _highest_beneath(ranks: Ints, above: Ints) -> Ints:
    """Return the highest rank of what each operator calls, at any depth; the lowest for one without calls."""
    beneath = np.full(len(ranks), -2, np.int64)
    calling = np.flatnonzero(above >= 0)
    while True:
        highest = beneath.copy()
        np.maximum.at(highest, above[calling], np.maximum(ranks, beneath)[calling])
        if (highest == beneath).all():
            return beneath
        beneath = highest


def _called_by(stands: NDArray[np.bool_], above: Ints) -> NDArray[np.bool_]:
    """Return what a standing operator calls, at any depth."""
    inside = np.zeros(len(stands), bool)
    calling = np.flatnonzero(above >= 0)
    while True:
        covered = inside.copy()
        covered[calling] |= (stands | inside)[above[calling]]
        if (covered == inside).all():
            return inside
        inside = covered


_RECORDERS = {"record_param_comms"}


@array_value
class Linkage:
    """For each GPU row of a trace, in the order of ``rows``; -1 if unknown."""

    rows: Ints
    launch: Ints
    """The runtime call, or the operator if only ``External id`` names it."""
    leaf: Ints
    """The nearest operator above the launch."""
    coverage: float | None
    """Linked GPU time over all GPU time; ``None`` without GPU time."""


def link(trace: Trace, tree: Tree, rows: Ints) -> Linkage:
    """Link by correlation, then by external id."""
    runtime = np.flatnonzero((trace.category == Category.RUNTIME) & (trace.correlation > 0))
    launch = _latest(trace.correlation[runtime], runtime, trace.correlation[rows])
    open_rows = launch < 0
    if open_rows.any():
        launch[open_rows] = _by_external(trace, rows[open_rows])
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


def collectives_of(trace: Trace, link: Linkage) -> NDArray[np.bool_]:
    """Return GPU rows with a recorded collective, or launched where the framework records one."""
    marked = np.zeros(len(trace), np.bool_)
    marked[list(trace.messages)] = True
    recorder = np.array([name in _RECORDERS for name in trace.names] or [False])
    under: NDArray[np.bool_] = recorder[trace.name[np.maximum(link.leaf, 0)]] & (link.leaf >= 0)
    return marked[link.rows] | under


def _by_external(trace: Trace, rows: Ints) -> Ints:
    """Return the operator that each GPU row names, or -1."""
    named = np.flatnonzero((trace.category == Category.OPERATOR) & (trace.external > 0))
    return _latest(trace.external[named], named, trace.external[rows])


def _latest(keys: Ints, rows: Ints, wanted: Ints) -> Ints:
    """Return the last row of each wanted key, or -1."""
    if not len(keys):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(keys, kind="stable")
    at = np.searchsorted(keys, wanted, side="right", sorter=order) - 1
    hit = rows[order[np.maximum(at, 0)]]
    same = (at >= 0) & (keys[order[np.maximum(at, 0)]] == wanted) & (wanted > 0)
    return np.where(same, hit, -1)


@value
class OperatorNode:
    """An operator with the operators below it that launch GPU work."""

    name: str
    children: tuple[OperatorNode, ...] = ()
    size: int = 1
    key: int = 0


def forest(survey: Survey) -> OperatorNode:
    """Return operators that launch GPU work, under one root."""
    trace = survey.trace
    alive = np.zeros(len(trace), bool)
    at = survey.link.launch[survey.link.launch >= 0]
    while len(at):
        alive[at] = True
        at = survey.tree.parent[at]
        at = np.unique(at[at >= 0])
    children: dict[int, list[int]] = defaultdict(list)
    rows = np.flatnonzero(alive & (trace.category == Category.OPERATOR))
    order = rows[np.lexsort((-trace.end[rows], trace.start[rows]))]
    above = np.where(survey.tree.parent[order] >= 0, survey.tree.operator[np.maximum(survey.tree.parent[order], 0)], -1)
    for row, parent in zip(order.tolist(), above.tolist()):
        children[parent].append(row)
    made: dict[int, OperatorNode] = {}
    for row in _deepest_first(children):
        made[row] = node(trace.names[trace.name[row]], tuple(made[c] for c in children[row]))
    return node("", tuple(made[c] for c in children[-1]))


def _deepest_first(children: dict[int, list[int]]) -> list[int]:
    """Return rows with every child before its parent, whatever their times."""
    walked, ahead = [], list(children[-1])
    while ahead:
        row = ahead.pop()
        walked.append(row)
        ahead += children[row]
    return walked[::-1]


def node(name: str, children: tuple[OperatorNode, ...] = ()) -> OperatorNode:
    """Return a node with the key that equal subtrees share."""
    return OperatorNode(
        name=name,
        children=children,
        size=1 + sum(c.size for c in children),
        key=hash((name, tuple(c.key for c in children))),
    )
