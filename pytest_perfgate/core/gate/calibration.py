"""Error rates of the gate on a machine and its tests, from rounds in which both sides were the same code."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from pytest_perfgate.core.gate.rounds import MARGIN, SURELY, Design, Pairs, finding, look, more_slow
from pytest_perfgate.core.stats.binomial import clopper_pearson
from pytest_perfgate.core.stats.hodges_lehmann import hodges_lehmann
from pytest_perfgate.model.paired import Decision
from pytest_perfgate.model.quantity import Interval
from pytest_perfgate.model.values import value

INJECTED = (0.02, 0.03, 0.05, 0.10)
LIMITS = (0.01, 0.02, 0.03, 0.05, 0.08, 0.10, 0.15, 0.20)
LEAST = 15
"""Rounds below which those of a case would mostly repeat one another."""


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
class Injected:
    """A slowdown that was really there: one side was kept busy for so much longer."""

    by: float
    found: float
    """The middle of the shifts that were measured."""
    seen: Rate
    rounds: int


@value
class Recorded:
    """Rounds as they were measured: the same code on both sides, and with one side kept busy."""

    pairs: Mapping[str, Pairs]
    slowed: Mapping[float, Mapping[str, Pairs]] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    """Seconds of a round by test."""


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
    own: tuple[tuple[str, float, float, int], ...]
    """Test, the 99th percentile of its own A/A shift, the smallest limit that suits it, rounds that show it."""
    seconds: float
    """Of one verdict on the whole suite, where the rounds were clocked."""
    injected: tuple[Injected, ...]

    @property
    def suits(self) -> float:
        """The smallest usual limit that suits every test."""
        return max((limit for _, _, limit, _ in self.own), default=self.limit)


def calibration(recorded: Recorded, limit: float, *, suites: int, seed: int = 0) -> Calibration:
    """Draw suites from the measured rounds and judge them; slowdowns scale the head's times, or were injected."""
    dice = np.random.default_rng(seed)
    measured, names = recorded.pairs, list(recorded.pairs)
    drawn = [{name: int(dice.integers(len(measured[name].base))) for name in names} for _ in range(suites)]
    clean = [_judged(measured, starts, limit, recorded.shares) for starts in drawn]
    decisions = [one for judged in clean for one in judged.decisions.values()]
    scaled = {by: {name: _scaled(pairs, by) for name, pairs in measured.items()} for by in INJECTED}
    return Calibration(
        limit=limit,
        rounds=min(len(pairs.base) for pairs in measured.values()),
        tests=len(measured),
        alarms=Rate(hits=sum(Decision.SLOWER in judged.decisions.values() for judged in clean), count=suites),
        undecided=Rate(hits=decisions.count(Decision.UNDECIDED), count=len(decisions)),
        power=tuple((by, _seen(recorded, slowed, drawn, limit)) for by, slowed in scaled.items()),
        processes=float(np.mean([judged.processes for judged in clean])),
        own=tuple((name, *_suits(measured[name])) for name in names),
        seconds=float(np.mean([judged.seconds for judged in clean])),
        injected=tuple(
            Injected(
                by=by,
                found=float(np.median([np.expm1(hodges_lehmann(pairs.differences)) for pairs in slowed.values()])),
                seen=_seen(recorded, slowed, drawn, limit),
                rounds=min(len(pairs.base) for pairs in slowed.values()),
            )
            for by, slowed in sorted(recorded.slowed.items())
            if slowed
        ),
    )


def _seen(recorded: Recorded, slowed: Mapping[str, Pairs], drawn: Sequence[Mapping[str, int]], limit: float) -> Rate:
    """How often one slowed test in an otherwise clean suite is convicted, each test in its turn."""
    names, hits = list(slowed), 0
    for number, starts in enumerate(drawn):
        name = names[number % len(names)]
        judged = _judged({**recorded.pairs, name: slowed[name]}, starts, limit, {})
        hits += judged.decisions[name] is Decision.SLOWER
    return Rate(hits=hits, count=len(drawn))


def own_shift(differences: Sequence[float], count: int = 5) -> float:
    """The 99th percentile of what screening would have read on unchanged code."""
    ahead = [*differences, *differences[: count - 1]]
    shifts = [abs(hodges_lehmann(ahead[at : at + count])) for at in range(len(differences))]
    return float(np.expm1(np.quantile(shifts, 0.99)))


def _suits(pairs: Pairs) -> tuple[float, float, int]:
    """The test's own shift, the smallest usual limit above it that ten rounds show, and the rounds that surely do."""
    design, own = Design(), own_shift(pairs.differences)
    scatter = finding(pairs, 0.0).scatter
    need = max(own, math.expm1(SURELY * scatter / math.sqrt(design.looks[0])) / 2)
    limit = next((limit for limit in LIMITS if limit >= need), LIMITS[-1])
    rounds = math.ceil((SURELY * scatter / math.log1p(limit) / (1 - MARGIN)) ** 2)
    return own, limit, max(design.looks[0], rounds)


@value
class _Judged:
    decisions: Mapping[str, Decision]
    processes: float
    seconds: float


def _judged(
    measured: Mapping[str, Pairs], starts: Mapping[str, int], limit: float, shares: Mapping[str, float]
) -> _Judged:
    design = Design(cases=len(measured))
    drawn = {name: _block(pairs, starts[name], design.last) for name, pairs in measured.items()}
    found = {name: look(None, pairs, limit, design) for name, pairs in drawn.items()}
    played = {name: drawn[name].first(one.rounds) for name, one in found.items()}
    found = more_slow(found, played, dict.fromkeys(measured, limit), design.alpha)
    return _Judged(
        decisions={name: one.decision for name, one in found.items()},
        processes=math.fsum(one.rounds for one in found.values()) / len(measured),
        seconds=math.fsum(one.rounds * shares.get(name, 0.0) for name, one in found.items()),
    )


def _scaled(pairs: Pairs, by: float) -> Pairs:
    return replace(pairs, head=tuple(time * (1 + by) for time in pairs.head))


def _block(pairs: Pairs, start: int, count: int) -> Pairs:
    at = [(start + step) % len(pairs.base) for step in range(count)]
    return Pairs(base=tuple(pairs.base[i] for i in at), head=tuple(pairs.head[i] for i in at), spread=pairs.spread)
