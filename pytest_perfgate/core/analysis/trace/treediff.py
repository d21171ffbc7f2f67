"""The structural difference of two call trees, by edit distance over children."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from pytest_perfgate.core.analysis.trace.survey import Survey
from pytest_perfgate.model.trace import Category
from pytest_perfgate.model.values import value

CELLS = 4_000_000
"""Size of the largest table of distances; longer lists are compared by their counts only."""


@value
class Node:
    """An operator with the operators below it that reach the GPU."""

    name: str
    children: tuple[Node, ...] = ()
    size: int = 1
    key: int = 0


@value
class Edit:
    """One difference: its path from the root, and what stands on each side."""

    path: str
    before: str
    after: str
    size: int
    """Operators that the difference holds."""


def forest(seen: Survey) -> Node:
    """Operators that launch GPU work, under one root."""
    trace = seen.trace
    alive = np.zeros(len(trace), bool)
    at = seen.link.launch[seen.link.launch >= 0]
    while len(at):
        alive[at] = True
        at = seen.tree.parent[at]
        at = np.unique(at[at >= 0])
    children: dict[int, list[int]] = defaultdict(list)
    rows = np.flatnonzero(alive & (trace.category == Category.OPERATOR))
    order = rows[np.lexsort((-trace.end[rows], trace.start[rows]))]
    above = np.where(seen.tree.parent[order] >= 0, seen.tree.operator[np.maximum(seen.tree.parent[order], 0)], -1)
    for row, parent in zip(order.tolist(), above.tolist()):
        children[parent].append(row)
    made: dict[int, Node] = {}
    for row in _deepest_first(children):
        made[row] = node(trace.names[trace.name[row]], tuple(made[c] for c in children[row]))
    return node("", tuple(made[c] for c in children[-1]))


def _deepest_first(children: dict[int, list[int]]) -> list[int]:
    """Rows in an order that has every child before its parent, whatever their times say."""
    walked, ahead = [], list(children[-1])
    while ahead:
        row = ahead.pop()
        walked.append(row)
        ahead += children[row]
    return walked[::-1]


def node(name: str, children: tuple[Node, ...] = ()) -> Node:
    """A node with the key by which equal subtrees are known."""
    return Node(
        name=name,
        children=children,
        size=1 + sum(c.size for c in children),
        key=hash((name, tuple(c.key for c in children))),
    )


def edits(before: Node, after: Node, path: str = "") -> tuple[Edit, ...]:
    """What has to change to make one tree the other."""
    if before.key == after.key:
        return ()
    if len(before.children) * len(after.children) > CELLS:
        return _counted(before, after, path)
    found: list[Edit] = []
    for one, two in aligned(before.children, after.children):
        if one is not None and two is not None and one.name == two.name:
            found += edits(one, two, f"{path}/{one.name}")
        else:
            size = max(one.size if one else 0, two.size if two else 0)
            found.append(
                Edit(path=path or "/", before=one.name if one else "", after=two.name if two else "", size=size)
            )
    return tuple(found)


def aligned(one: Sequence[Node], two: Sequence[Node]) -> list[tuple[Node | None, Node | None]]:
    """Children matched at the least cost: equal ones free, namesakes for little, others left out."""
    head = 0
    while head < min(len(one), len(two)) and one[head].key == two[head].key:
        head += 1
    first, second = one[head:], two[head:]
    cost = np.zeros((len(first) + 1, len(second) + 1), np.int64)
    cost[:, 0] = np.cumsum([0, *(n.size for n in first)])
    cost[0, :] = np.cumsum([0, *(n.size for n in second)])
    for i, left in enumerate(first, 1):
        for j, right in enumerate(second, 1):
            best = min(cost[i - 1, j] + left.size, cost[i, j - 1] + right.size)
            cost[i, j] = min(best, cost[i - 1, j - 1] + _swap(left, right))
    return _backtracked(cost, first, second)


def _swap(left: Node, right: Node) -> int:
    if left.key == right.key:
        return 0
    return 1 + abs(left.size - right.size) if left.name == right.name else left.size + right.size


def _backtracked(
    cost: np.ndarray[tuple[int, ...], np.dtype[np.int64]], first: Sequence[Node], second: Sequence[Node]
) -> list[tuple[Node | None, Node | None]]:
    i, j = len(first), len(second)
    pairs: list[tuple[Node | None, Node | None]] = []
    while i or j:
        if i and j and cost[i, j] == cost[i - 1, j - 1] + _swap(first[i - 1], second[j - 1]):
            i, j = i - 1, j - 1
            if first[i].name == second[j].name:
                pairs.append((first[i], second[j]))
            else:
                pairs += [(None, second[j]), (first[i], None)]
        elif i and cost[i, j] == cost[i - 1, j] + first[i - 1].size:
            i -= 1
            pairs.append((first[i], None))
        else:
            j -= 1
            pairs.append((None, second[j]))
    return pairs[::-1]


def _counted(before: Node, after: Node, path: str) -> tuple[Edit, ...]:
    counts: dict[str, int] = defaultdict(int)
    for sign, side in ((-1, before), (1, after)):
        for child in side.children:
            counts[child.name] += sign
    return tuple(
        Edit(
            path=path or "/",
            before=f"{name} ×{-n}" if n < 0 else "",
            after=f"{name} ×{n}" if n > 0 else "",
            size=abs(n),
        )
        for name, n in counts.items()
        if n
    )
