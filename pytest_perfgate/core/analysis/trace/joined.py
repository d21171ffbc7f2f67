"""Two traces beside each other: what changed by operator, by arguments, by kernel, and whether hardware explains it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from pytest_perfgate.core.analysis.roofline import bound
from pytest_perfgate.core.analysis.trace.kernels import KernelRow
from pytest_perfgate.core.analysis.trace.operators import OperatorRow
from pytest_perfgate.model.device import Roof
from pytest_perfgate.model.values import value

BEYOND = 1.5
"""A ratio further than this from the expected one is not explained by the hardware."""
SELECTION = 2.0
"""Twice as slow and more points at kernel selection."""


@value
class Pair:
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

    @property
    def ratio(self) -> float | None:
        return self.after / self.before if self.before and self.after is not None else None

    @property
    def remark(self) -> str:
        """Neutral words on the difference."""
        if self.before is None or self.after is None:
            return "only in the target" if self.before is None else "only in the reference"
        ratio = self.ratio or 0.0
        slow = f", {ratio - 1:.0%} slower: look at kernel selection" if ratio > SELECTION else ""
        if self.expected is None:
            return f"no expectation{slow}"
        off = ratio / self.expected
        if off > BEYOND:
            return f"unexpected: investigate{slow}"
        return "faster than expected: the reference may have room" if off < 1 / BEYOND else "expected"

    @property
    def unexpected(self) -> bool:
        return self.remark.startswith("unexpected")


def by_arguments(before: Sequence[OperatorRow], after: Sequence[OperatorRow], roofs: Roofs) -> tuple[Pair, ...]:
    """Operators with equal arguments."""
    return _paired(before, after, lambda row: (row.name, arguments(row)), roofs)


def by_operator(before: Sequence[OperatorRow], after: Sequence[OperatorRow], roofs: Roofs) -> tuple[Pair, ...]:
    """Operators by name."""
    return _paired(before, after, lambda row: (row.name, ""), roofs)


def by_category(before: Sequence[OperatorRow], after: Sequence[OperatorRow], roofs: Roofs) -> tuple[Pair, ...]:
    """Families of operators."""
    return _paired(before, after, lambda row: (row.category, ""), roofs)


def by_kernel(before: Sequence[KernelRow], after: Sequence[KernelRow]) -> tuple[Pair, ...]:
    """Kernels by name."""
    first, second = _kernels(before), _kernels(after)
    pairs = [_pair(name, "", first.get(name), second.get(name)) for name in dict.fromkeys((*first, *second))]
    return tuple(sorted(pairs, key=lambda pair: -max(pair.total)))


def arguments(row: OperatorRow) -> str:
    """Shapes and types as one text: what two calls must share to be compared."""
    call = row.call
    shapes = " ".join("×".join(map(str, call.dims[at])) or "scalar" for at in call.tensors())
    return f"{shapes} {'/'.join(dict.fromkeys(call.dtype(at) for at in call.tensors()))}".strip()


@value
class Roofs:
    """The roofs of reference and target, where they are known."""

    before: Roof | None = None
    after: Roof | None = None

    def expected(self, row: OperatorRow) -> tuple[str, float | None]:
        """What binds an operator in the reference, and the ratio of times that the hardware explains."""
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
) -> tuple[Pair, ...]:
    first, second = _grouped(before, key), _grouped(after, key)
    pairs = []
    for found in dict.fromkeys((*first, *second)):
        one, two = first.get(found, []), second.get(found, [])
        bind, expected = _expectation(one or two, roofs)
        pairs.append(_pair(*found, _sums(one), _sums(two), bind, expected))
    return tuple(sorted(pairs, key=lambda pair: -max(pair.total)))


def _expectation(rows: Sequence[OperatorRow], roofs: Roofs) -> tuple[str, float | None]:
    """The time-weighted expectation of a group; none unless every modelled part has one."""
    found = [(row.total, *roofs.expected(row)) for row in rows]
    binds = {bind for _, bind, _ in found if bind}
    known = [(total, ratio) for total, _, ratio in found if ratio is not None]
    if not known or len(known) < len(found):
        return binds.pop() if len(binds) == 1 else "", None
    weight = sum(total for total, _ in known)
    return binds.pop() if len(binds) == 1 else "mixed", sum(t * r for t, r in known) / weight if weight else None


def _grouped(
    rows: Sequence[OperatorRow], key: Callable[[OperatorRow], tuple[str, str]]
) -> Mapping[tuple[str, str], list[OperatorRow]]:
    groups: dict[tuple[str, str], list[OperatorRow]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups


def _sums(rows: Sequence[OperatorRow]) -> tuple[int, float] | None:
    return (sum(row.count for row in rows), sum(row.total for row in rows)) if rows else None


def _kernels(rows: Sequence[KernelRow]) -> dict[str, tuple[int, float]]:
    found: dict[str, tuple[int, float]] = {}
    for row in rows:
        count, total = found.get(row.name, (0, 0.0))
        found[row.name] = (count + row.count, total + row.total)
    return found


def _pair(
    name: str,
    detail: str,
    before: tuple[int, float] | None,
    after: tuple[int, float] | None,
    bind: str = "",
    expected: float | None = None,
) -> Pair:
    return Pair(
        name=name,
        detail=detail,
        before=before[1] / before[0] if before else None,
        after=after[1] / after[0] if after else None,
        calls=(before[0] if before else 0, after[0] if after else 0),
        total=(before[1] if before else 0.0, after[1] if after else 0.0),
        bound=bind,
        expected=expected,
    )
