"""Whether parts of a job do the same amount of computing."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_perfgate.model.nsys_job import RankResult
from pytest_perfgate.model.values import value


@value
class Balance:
    """Compute per coordinate of one dimension of the mesh; ``over`` is ``rank`` where there is none."""

    over: str
    parts: tuple[tuple[str, float, int], ...]
    """(coordinate, mean compute in ns, ranks)."""

    @property
    def excess(self) -> float:
        """The busiest part over the mean of the parts, minus one."""
        amounts = [amount for _, amount, _ in self.parts]
        mean = sum(amounts) / len(amounts)
        return max(amounts) / mean - 1 if mean else float("nan")


def balances(ranks: Sequence[RankResult], stage: str = "") -> tuple[Balance, ...]:
    """One per dimension that has two coordinates or more, and one over all ranks; of one stage where it is named."""
    amounts = [(result, amount) for result in ranks if (amount := _computed(result, stage)) is not None]
    axes = sorted({axis for result, _ in amounts for axis, _, size in result.rank.mesh if size > 1})
    found = [_over(axis, [(_coordinates(result).get(axis), amount) for result, amount in amounts]) for axis in axes]
    everyone: list[tuple[str | None, int]] = [(result.rank.name, amount) for result, amount in amounts]
    return tuple(balance for balance in (*found, _over("rank", everyone)) if len(balance.parts) > 1)


def stages(ranks: Sequence[RankResult]) -> tuple[str, ...]:
    """Every stage that computes anywhere."""
    return tuple(sorted({stage for result in ranks for stage, _ in result.compute}))


def _computed(result: RankResult, stage: str) -> int | None:
    """Compute of a rank, or of one stage on it; a rank that has not the stage takes no part."""
    return dict(result.compute).get(stage) if stage else result.time.computation_ns


def _coordinates(result: RankResult) -> dict[str, str]:
    """A rank's coordinate in every dimension."""
    return {axis: str(at) for axis, at, _ in result.rank.mesh}


def _over(axis: str, members: Sequence[tuple[str | None, int]]) -> Balance:
    parts: dict[str, list[int]] = {}
    for coordinate, amount in members:
        if coordinate is not None:
            parts.setdefault(coordinate, []).append(amount)
    listed = ((name, sum(amounts) / len(amounts), len(amounts)) for name, amounts in parts.items())
    return Balance(over=axis, parts=tuple(sorted(listed, key=lambda part: (len(part[0]), part[0]))))
