"""Matching of operators and trees of two traces."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pytest_perfgate.core.analysis.roofline import bound
from pytest_perfgate.model.values import grouped, regex, value

if TYPE_CHECKING:
    from pytest_perfgate.core.analysis.trace.operators import KernelRow, OperatorRow
    from pytest_perfgate.core.analysis.trace.tree import OperatorNode
    from pytest_perfgate.model.device import Roof

BEYOND = 1.5
"""The largest difference from the expected ratio that the hardware explains."""

SELECTION = 2.0
"""From this ratio on, kernel selection is the likely cause."""


@value
class Match:
    """One thing in both traces, or in one."""

    name: str
    detail: str
    before: float | None
    """Nanoseconds a call in the reference."""
    after: float | None
    calls: tuple[int, int]
    total: tuple[float, float]
    bound: str = ""
    expected: float | None = None
    """The ratio of times that the hardware explains."""
    kernels: tuple[str, str] = ("", "")
    """The longest kernel of each side."""

    @property
    def ratio(self) -> float | None:
        return self.after / self.before if self.before and self.after is not None else None

    @property
    def remark(self) -> str:
        """The difference in neutral words."""
        if self.before is None or self.after is None:
            return "only in the target" if self.before is None else "only in the reference"
        if self.ratio is None:
            return "no time in the reference"
        slow = f", {(self.ratio - 1) * 100:.0f} % slower: look at kernel selection" if self.doubled else ""
        if self.expected is None:
            return f"no expectation{slow}"
        off = self.ratio / self.expected
        if off > BEYOND:
            return f"unexpected: investigate{slow}"
        return "faster than expected: the reference may have room" if off < 1 / BEYOND else "expected"

    @property
    def doubled(self) -> bool:
        """Whether it takes so much longer that kernel selection is the likely cause."""
        return (self.ratio or 0.0) > SELECTION

    @property
    def unexpected(self) -> bool:
        return self.remark.startswith("unexpected")


def by_arguments(before: Sequence[OperatorRow], after: Sequence[OperatorRow], roofs: Roofs) -> tuple[Match, ...]:
    """Match operators with equal arguments; of a layer, those that every library's operator has."""
    shared = shared_names(before, after)
    return _paired(
        before,
        after,
        lambda row: (shared[row.name], row.first_arguments(2)) if row.name in shared else (row.name, row.arguments),
        roofs,
    )


def by_operator(before: Sequence[OperatorRow], after: Sequence[OperatorRow], roofs: Roofs) -> tuple[Match, ...]:
    shared = shared_names(before, after)
    return _paired(before, after, lambda row: (shared.get(row.name, row.name), ""), roofs)


_LIBRARY = regex(r"(?<=^aten::)(?:cudnn|miopen|native|mkldnn)_(?=convolution|batch_norm)")


def shared_names(before: Sequence[OperatorRow], after: Sequence[OperatorRow]) -> dict[str, str]:
    """Return the layer of operators that name their library, where each trace has only its own."""
    first, second = {row.name for row in before}, {row.name for row in after}
    layers = [{name: _LIBRARY.sub("", name) for name in own} for own in (first - second, second - first)]
    both = set(layers[0].values()) & set(layers[1].values())
    return {name: layer for side in layers for name, layer in side.items() if layer in both}


def by_category(before: Sequence[OperatorRow], after: Sequence[OperatorRow], roofs: Roofs) -> tuple[Match, ...]:
    return _paired(before, after, lambda row: (row.category, ""), roofs)


def by_kernel(before: Sequence[KernelRow], after: Sequence[KernelRow]) -> tuple[Match, ...]:
    first, second = _kernels(before), _kernels(after)
    pairs = [_pair(name, "", first.get(name), second.get(name)) for name in dict.fromkeys((*first, *second))]
    return tuple(sorted(pairs, key=lambda pair: -max(pair.total)))


@value
class Roofs:
    """The roofs of reference and target, if known."""

    before: Roof | None = None
    after: Roof | None = None

    def expected(self, row: OperatorRow) -> tuple[str, float | None]:
        """Return what limits an operator in the reference, and the ratio of times that the hardware explains."""
        if row.work is None or self.before is None or self.after is None:
            return "", None
        bind = bound(row.work, self.before)
        if bind == "compute":
            rates = self.before.rate(row.work.dtype), self.after.rate(row.work.dtype)
        elif bind == "memory":
            rates = self.before.bandwidth, self.after.bandwidth
        else:
            return bind, None
        return bind, rates[0] / rates[1] if rates[0] and rates[1] else None


def _paired(
    before: Sequence[OperatorRow],
    after: Sequence[OperatorRow],
    key: Callable[[OperatorRow], tuple[str, str]],
    roofs: Roofs,
) -> tuple[Match, ...]:
    first, second = grouped(before, key), grouped(after, key)
    pairs = []
    for name in dict.fromkeys((*first, *second)):
        one, two = first.get(name, []), second.get(name, [])
        bind, expected = _expectation(one or two, roofs)
        longest = [max(group, key=lambda row: row.total).kernel if group else "" for group in (one, two)]
        pair = _pair(*name, _sums(one), _sums(two), bind, expected if one and two else None)
        pairs.append(replace(pair, kernels=(longest[0], longest[1])))
    return tuple(sorted(pairs, key=lambda pair: -max(pair.total)))


def _expectation(rows: Sequence[OperatorRow], roofs: Roofs) -> tuple[str, float | None]:
    """Return the time-weighted expectation of a group; None unless every modelled part has one."""
    times = [(row.total, *roofs.expected(row)) for row in rows]
    binds = {bind for _, bind, _ in times if bind}
    known = [(total, ratio) for total, _, ratio in times if ratio is not None]
    if not known or len(known) < len(times):
        return binds.pop() if len(binds) == 1 else "", None
    weight = sum(total for total, _ in known)
    return binds.pop() if len(binds) == 1 else "mixed", sum(t * r for t, r in known) / weight if weight else None


def _sums(rows: Sequence[OperatorRow]) -> tuple[int, float] | None:
    return (sum(row.count for row in rows), sum(row.total for row in rows)) if rows else None


def _kernels(rows: Sequence[KernelRow]) -> dict[str, tuple[int, float]]:
    totals: dict[str, tuple[int, float]] = {}
    for row in rows:
        count, total = totals.get(row.name, (0, 0.0))
        totals[row.name] = (count + row.count, total + row.total)
    return totals


def _pair(
    name: str,
    detail: str,
    before: tuple[int, float] | None,
    after: tuple[int, float] | None,
    bind: str = "",
    expected: float | None = None,
) -> Match:
    return Match(
        name=name,
        detail=detail,
        before=before[1] / before[0] if before else None,
        after=after[1] / after[0] if after else None,
        calls=(before[0] if before else 0, after[0] if after else 0),
        total=(before[1] if before else 0.0, after[1] if after else 0.0),
        bound=bind,
        expected=expected,
    )


CELLS = 4_000_000
"""The size of the largest table of distances; longer lists are compared by counts only."""


@value
class Edit:
    """One difference: its path from the root, and what each side has."""

    path: str
    before: str
    after: str
    size: int
    """The number of operators in the difference."""


def edits(before: OperatorNode, after: OperatorNode) -> tuple[Edit, ...]:
    """Return the changes that turn one tree into the other, from the top; calls may nest to any depth."""
    changes: list[Edit] = []
    ahead: list[tuple[OperatorNode | None, OperatorNode | None, str]] = [(before, after, "")]
    while ahead:
        old, new, path = ahead.pop()
        if old is None or new is None or old.name != new.name:
            size = max(old.size if old else 0, new.size if new else 0)
            changes.append(
                Edit(path=path or "/", before=old.name if old else "", after=new.name if new else "", size=size)
            )
        elif old.key != new.key:
            inside = f"{path}/{old.name}" if old.name else path
            if len(old.children) * len(new.children) > CELLS:
                changes += _counted(old, new, inside)
            else:
                ahead += [(*pair, inside) for pair in reversed(aligned(old.children, new.children))]
    return tuple(changes)


def aligned(
    one: Sequence[OperatorNode], two: Sequence[OperatorNode]
) -> list[tuple[OperatorNode | None, OperatorNode | None]]:
    """Match children at the least cost: equal ones cost nothing, those of one name little."""
    head = 0
    while head < min(len(one), len(two)) and one[head].key == two[head].key:
        head += 1
    first, second = one[head:], two[head:]
    cost = np.zeros((len(first) + 1, len(second) + 1), np.int64)
    cost[:, 0] = np.cumsum([0, *(n.size for n in first)])
    cost[0, :] = np.cumsum([0, *(n.size for n in second)])
    for i, row in enumerate(first, 1):
        for j, right in enumerate(second, 1):
            best = min(cost[i - 1, j] + row.size, cost[i, j - 1] + right.size)
            cost[i, j] = min(best, cost[i - 1, j - 1] + _swap(row, right))
    return _backtracked(cost, first, second)


def _swap(left: OperatorNode, right: OperatorNode) -> int:
    if left.key == right.key:
        return 0
    return 1 + abs(left.size - right.size) if left.name == right.name else left.size + right.size


def _backtracked(
    cost: np.ndarray[tuple[int, ...], np.dtype[np.int64]], first: Sequence[OperatorNode], second: Sequence[OperatorNode]
) -> list[tuple[OperatorNode | None, OperatorNode | None]]:
    i, j = len(first), len(second)
    pairs: list[tuple[OperatorNode | None, OperatorNode | None]] = []
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


def _counted(before: OperatorNode, after: OperatorNode, path: str) -> tuple[Edit, ...]:
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
