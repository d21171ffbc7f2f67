"""Error rates of the gate on a machine and its tests, from rounds in which both sides were the same code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

from pytest_perfgate.core.gate.rounds import Design, Pairs, confirming_rounds, convicted, finding, suspected
from pytest_perfgate.core.stats.binomial import clopper_pearson
from pytest_perfgate.core.stats.hodges_lehmann import hodges_lehmann
from pytest_perfgate.model.paired import Decision
from pytest_perfgate.model.quantity import Interval
from pytest_perfgate.model.values import value

K = TypeVar("K")
INJECTED = (0.02, 0.03, 0.05, 0.10)
LIMITS = (0.01, 0.02, 0.03, 0.05, 0.08, 0.10, 0.15, 0.20)
LEAST = 15
"""Rounds below which screening and confirming would share their data."""


@value
class Rate:
    """So many of so many, with the exact bounds of the rate."""

    hits: int
    count: int

    @property
    def rate(self) -> float:
        return self.hits / self.count

    @property
    def bounds(self) -> Interval:
        return clopper_pearson(self.hits, self.count)


@value
class Calibration:
    """What the gate does here."""

    limit: float
    rounds: int
    tests: int
    alarms: Rate
    """Suites of unchanged code that convicted anything."""
    undecided: Rate
    power: tuple[tuple[float, Rate], ...]
    """Slowed tests that were convicted, by slowdown."""
    processes: float
    """A side, on average over the suite."""
    own: tuple[tuple[str, float, float], ...]
    """Test, the 99th percentile of its own A/A shift, the smallest limit that suits it."""


def calibration(measured: Mapping[str, Pairs], limit: float, *, suites: int, seed: int = 0) -> Calibration:
    """Draw suites from the measured rounds and judge them; slowdowns scale the head's times."""
    dice = np.random.default_rng(seed)
    alarms = undecided = 0
    seen = dict.fromkeys(INJECTED, 0)
    spent: list[float] = []
    names = list(measured)
    for number in range(suites):
        starts = {name: int(dice.integers(len(measured[name].base))) for name in names}
        outcome, rounds = _judged(measured, starts, limit, {})
        alarms += Decision.SLOWER in outcome.values()
        undecided += sum(one is Decision.UNDECIDED for one in outcome.values())
        spent.append(rounds)
        slowed = names[number % len(names)]
        for by in INJECTED:
            seen[by] += _judged(measured, starts, limit, {slowed: by})[0][slowed] is Decision.SLOWER
    return Calibration(
        limit=limit,
        rounds=min(len(pairs.base) for pairs in measured.values()),
        tests=len(measured),
        alarms=Rate(hits=alarms, count=suites),
        undecided=Rate(hits=undecided, count=suites * len(names)),
        power=tuple((by, Rate(hits=hits, count=suites)) for by, hits in seen.items()),
        processes=float(np.mean(spent)),
        own=tuple((name, own_shift(measured[name].differences), _suits(measured[name])) for name in names),
    )


def own_shift(differences: Sequence[float], count: int = 5) -> float:
    """The 99th percentile of what screening would have read on unchanged code."""
    ahead = [*differences, *differences[: count - 1]]
    shifts = [abs(hodges_lehmann(ahead[at : at + count])) for at in range(len(differences))]
    return float(np.expm1(np.quantile(shifts, 0.99)))


def _suits(pairs: Pairs) -> float:
    """The smallest usual limit above the test's own shift, and above what ten of its rounds surely show."""
    count = len(pairs.base)
    shown = finding(pairs, 0.0).visible * (count / Design().confirm) ** 0.5
    need = max(own_shift(pairs.differences), shown / 2)
    return next((limit for limit in LIMITS if limit >= need), LIMITS[-1])


def _judged(
    measured: Mapping[str, Pairs], starts: Mapping[str, int], limit: float, slowed: Mapping[str, float]
) -> tuple[dict[str, Decision], float]:
    design, counts = Design(), dict.fromkeys(measured, limit)
    cut = {n: _block(p, starts[n], 0, design.screen, slowed.get(n, 0.0)) for n, p in measured.items()}
    found = {name: finding(pairs, limit) for name, pairs in cut.items()}
    suspects = suspected(found, counts)
    more = confirming_rounds(len(suspects), design) if suspects else 0
    fresh = {n: _block(measured[n], starts[n], design.screen, more, slowed.get(n, 0.0)) for n in suspects}
    found |= convicted(fresh, counts, design)
    return {name: one.decision for name, one in found.items()}, design.screen + more * len(suspects) / len(measured)


def _block(pairs: Pairs, start: int, skip: int, count: int, slower: float) -> Pairs:
    at = [(start + skip + step) % len(pairs.base) for step in range(count)]
    head = tuple(pairs.head[i] * (1 + slower) for i in at)
    return Pairs(base=tuple(pairs.base[i] for i in at), head=head, spread=pairs.spread)
