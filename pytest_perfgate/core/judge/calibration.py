"""Error rates of the gate from A/A rounds, and the page on them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from statistics import stdev

import numpy as np

from pytest_perfgate.core.judge.rounds import MARGIN, SURELY, Design, Pairs, all_looks, more_slow
from pytest_perfgate.core.render.drawing import MARK, OTHER, SOFT, Axis, Frame, dot, line, percent, picture, words
from pytest_perfgate.core.render.words import exact_change, signed, span
from pytest_perfgate.core.stats.inference import clopper_pearson, hodges_lehmann
from pytest_perfgate.model.metric import Block, Column, Document, Interval, Paragraph, Picture, Table
from pytest_perfgate.model.plan import Decision
from pytest_perfgate.model.values import value

INJECTED = (0.02, 0.03, 0.05, 0.10)

FORKED = "forked"
"""The phase of calibration rounds whose processes are forks of preloads."""

LIMITS = (0.01, 0.02, 0.03, 0.05, 0.08, 0.10, 0.15, 0.20)

LEAST = 15
"""The least rounds of a case; fewer would mostly repeat each other when drawn."""


@value
class Rate:
    """A count of a total, with the exact bounds of the rate."""

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
    """A slowdown that was injected by keeping one side busy."""

    by: float
    measured: float
    """The median of the measured shifts."""
    detected: Rate
    rounds: int


def forkable(fresh: Pairs, forked: Pairs) -> float | None:
    """Return the scatter of fresh pairs, if enough forked pairs are shown to scatter no more, else None."""
    few = min(len(fresh.base), len(forked.base)) < LEAST
    return None if few or 0 in (forked.preloads or (0,)) or _scatter(forked) > _scatter(fresh) else _scatter(fresh)


def _scatter(pairs: Pairs) -> float:
    return stdev(pairs.differences) if len(pairs.base) > 1 else 0.0


@value
class Recorded:
    """Measured rounds: with the same code on both sides, and with one side kept busy."""

    pairs: Mapping[str, Pairs]
    slowed: Mapping[float, Mapping[str, Pairs]] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    """Seconds of a round by test."""
    forked: Mapping[str, Pairs] = field(default_factory=dict)  # of the same code, by forks of preloads


@value
class Calibration:
    """The behaviour of the gate on this machine."""

    limit: float
    rounds: int
    tests: int
    alarms: Rate
    """Suites of unchanged code that confirmed anything."""
    undecided: Rate
    power: tuple[tuple[float, Rate], ...]
    """Slowed tests that were confirmed, by slowdown."""
    processes: float
    """Processes of each side, on average over the suite."""
    own: tuple[tuple[str, float, float, int], ...]
    """Test, the 99th percentile of its own A/A shift, the smallest suitable limit, rounds that detect it."""
    seconds: float
    """The time of one verdict on the whole suite, if the rounds were timed."""
    injected: tuple[Injected, ...]
    forks: tuple[tuple[str, float, float], ...] = ()  # test, scatter of fresh pairs, scatter of forked pairs

    @property
    def suits(self) -> float:
        """Return the smallest usual limit that suits every test."""
        return max((limit for _, _, limit, _ in self.own), default=self.limit)


def calibration(recorded: Recorded, limit: float, *, suites: int) -> Calibration:
    """Draw suites from the measured rounds and judge them; slowdowns scale the head's times, or were injected."""
    dice = np.random.default_rng(0)
    measured, names = recorded.pairs, list(recorded.pairs)
    drawn = [{name: int(dice.integers(len(measured[name].base))) for name in names} for _ in range(suites)]
    clean = [_judge_suite(measured, starts, limit, recorded.shares) for starts in drawn]
    decisions = [decision for judged in clean for decision in judged.decisions.values()]
    scaled = {by: {name: _scaled(pairs, by) for name, pairs in measured.items()} for by in INJECTED}
    return Calibration(
        limit=limit,
        rounds=min(len(pairs.base) for pairs in measured.values()),
        tests=len(measured),
        alarms=Rate(hits=sum(Decision.SLOWER in judged.decisions.values() for judged in clean), count=suites),
        undecided=Rate(hits=decisions.count(Decision.UNDECIDED), count=len(decisions)),
        power=tuple((by, _power(recorded, slowed, drawn, limit)) for by, slowed in scaled.items()),
        processes=float(np.mean([judged.processes for judged in clean])),
        own=tuple((name, *_own_limit(measured[name])) for name in names),
        seconds=float(np.mean([judged.seconds for judged in clean])),
        injected=tuple(
            Injected(
                by=by,
                measured=float(np.median([np.expm1(hodges_lehmann(pairs.differences)) for pairs in slowed.values()])),
                detected=_power(recorded, slowed, drawn, limit),
                rounds=min(len(pairs.base) for pairs in slowed.values()),
            )
            for by, slowed in sorted(recorded.slowed.items())
            if slowed
        ),
        forks=tuple((name, _scatter(measured[name]), _scatter(pairs)) for name, pairs in recorded.forked.items()),
    )


def _power(recorded: Recorded, slowed: Mapping[str, Pairs], drawn: Sequence[Mapping[str, int]], limit: float) -> Rate:
    """Return how often one slowed test in an otherwise clean suite is confirmed, with each test in turn."""
    names, hits = list(slowed), 0
    for number, starts in enumerate(drawn):
        name = names[number % len(names)]
        judged = _judge_suite({**recorded.pairs, name: slowed[name]}, starts, limit, {})
        hits += judged.decisions[name] is Decision.SLOWER
    return Rate(hits=hits, count=len(drawn))


def own_shift(differences: Sequence[float], count: int = 5) -> float:
    """Return the 99th percentile of the shifts that unchanged code would show."""
    ahead = [*differences, *differences[: count - 1]]
    shifts = [abs(hodges_lehmann(ahead[at : at + count])) for at in range(len(differences))]
    return float(np.expm1(np.quantile(shifts, 0.99)))


def _own_limit(pairs: Pairs) -> tuple[float, float, int]:
    """Return a test's own shift, the smallest usual limit above it for ten rounds, and the rounds that detect it."""
    design, own = Design(), own_shift(pairs.differences)
    scatter = float(np.std(pairs.differences, ddof=1))
    need = max(own, math.expm1(SURELY * scatter / math.sqrt(design.looks[0])) / 2)
    limit = next((limit for limit in LIMITS if limit >= need), LIMITS[-1])
    rounds = math.ceil((SURELY * scatter / math.log1p(limit) / (1 - MARGIN)) ** 2)
    return own, limit, max(design.looks[0], rounds)


@value
class _Judged:
    decisions: Mapping[str, Decision]
    processes: float
    seconds: float


def _judge_suite(
    measured: Mapping[str, Pairs], starts: Mapping[str, int], limit: float, shares: Mapping[str, float]
) -> _Judged:
    design = Design(cases=len(measured))
    drawn = {name: _block(pairs, starts[name], design.last) for name, pairs in measured.items()}
    looks = {name: all_looks(None, pairs, limit, design) for name, pairs in drawn.items()}
    played = {name: drawn[name].first(result.rounds) for name, result in looks.items()}
    looks = more_slow(looks, played, dict.fromkeys(measured, limit), design.alpha)
    return _Judged(
        decisions={name: result.decision for name, result in looks.items()},
        processes=math.fsum(result.rounds for result in looks.values()) / len(measured),
        seconds=math.fsum(result.rounds * shares.get(name, 0.0) for name, result in looks.items()),
    )


def _scaled(pairs: Pairs, by: float) -> Pairs:
    return replace(pairs, head=tuple(time * (1 + by) for time in pairs.head))


def _block(pairs: Pairs, start: int, count: int) -> Pairs:
    at = [(start + step) % len(pairs.base) for step in range(count)]
    return Pairs(base=tuple(pairs.base[i] for i in at), head=tuple(pairs.head[i] for i in at), spread=pairs.spread)


def calibration_document(result: Calibration) -> Document:
    """Return the rates with their bounds, the power curve, and a limit for each test."""
    cost = f"; {span(result.seconds)} a run" if result.seconds else ""
    alarms = (
        f"With a limit of {exact_change(result.limit)}, {_rate(result.alarms)} of suites of this project's "
        f"{result.tests} tests raise a false alarm. {_rate(result.undecided)} of verdicts stay undecided. "
        f"A verdict takes {result.processes:.1f} processes a side on average{cost}."
    )
    note = (
        f"Suites are drawn from {result.rounds} rounds with the same code on both sides. A slowdown multiplies the "
        "times of one side. The bounds count drawn suites. With few rounds these repeat each other, and another day "
        "may differ by more."
    )
    power = Table(
        title="Slowdowns that are confirmed",
        columns=Column.header("slowdown | found | bounds"),
        rows=tuple((exact_change(by), f"{rate.rate * 100:.1f} %", _bounds(rate)) for by, rate in result.power),
    )
    own = Table(
        title="Tests",
        columns=(
            *Column.header("test"),
            *Column.header("noise, 99 %: fraction 2 | smallest limit: fraction 2 | rounds for it: count", absent="-"),
        ),
        rows=result.own,
    )
    kinds = Column.header("fresh pairs: fraction 2 | pairs of forks: fraction 2", absent="-")
    forks = Table(title="Noise of unchanged code", columns=(*Column.header("test"), *kinds), rows=result.forks)
    first: tuple[Block, ...] = (Paragraph(text=alarms), Paragraph(text=note), power, *_injection(result))
    last: tuple[Block, ...] = (Paragraph(text=_advice(result)), own, *((forks,) if result.forks else ()))
    return Document(title="Calibration", blocks=(*first, curve(result), *last))


def _injection(result: Calibration) -> tuple[Table, ...]:
    """Return injected slowdowns, beside those that only scale times."""
    if not result.injected:
        return ()
    rows = tuple(
        (exact_change(s.by), signed(s.measured), s.rounds, f"{s.detected.rate * 100:.1f} %", _bounds(s.detected))
        for s in result.injected
    )
    columns = (
        *Column.header("injected | measured"),
        *Column.header("rounds: count", absent="-"),
        *Column.header("found | bounds"),
    )
    return (Table(title="Injected slowdowns that are confirmed: one side was kept busy", columns=columns, rows=rows),)


def _advice(result: Calibration) -> str:
    """Return the recommended limit and rounds."""
    rounds = max((rounds for *_, rounds in result.own), default=Design().most)
    text = f'"slowdown <= {result.suits:.0%}" suits all tests here'
    return f"{text}; --perfgate-rounds={rounds} shows it in every test." if rounds > Design().most else f"{text}."


def curve(result: Calibration) -> Picture:
    """Draw how surely a slowdown is detected, scaled or injected."""
    scaled = [(0.0, result.alarms), *result.power]
    real = [(slowdown.measured, slowdown.detected) for slowdown in result.injected]
    frame = Frame(
        x=Axis(low=-0.002, high=1.05 * max(by for by, _ in (*scaled, *real)), label="slowdown", text=exact_change),
        y=Axis(low=0, high=1.04, label="confirmed", text=percent),
        top=34,
    )
    across, _ = frame.at(result.limit, 0)
    marks = [
        line(frame, [(result.limit, 0), (result.limit, 1.04)], colour=SOFT, dash="5 4"),
        words(across + 5, frame.top + 30, f"limit {exact_change(result.limit)}", colour=SOFT),
        line(frame, [(by, rate.rate) for by, rate in scaled]),
        *_points(frame, scaled, MARK),
        *_points(frame, real, OTHER),
        *_legend(frame, result),
    ]
    alt = f"power: {', '.join(f'{exact_change(by)} {rate.rate * 100:.0f} %' for by, rate in result.power)}"
    return Picture(svg=picture(frame, marks, alt), alt=alt)


def _points(frame: Frame, points: Sequence[tuple[float, Rate]], colour: str) -> list[str]:
    """Return points with their bounds, and their figures on hover."""
    bands = [line(frame, [(by, r.bounds.low), (by, r.bounds.high)], colour=colour) for by, r in points]
    dots = [dot(frame, by, r.rate, title=f"{signed(by)}: {_rate(r)}", colour=colour) for by, r in points]
    return [*bands, *dots]


def _legend(frame: Frame, result: Calibration) -> list[str]:
    kinds = [("times scaled", MARK), *([("one side kept busy", OTHER)] if result.injected else [])]
    label = words(frame.left, 18, f"Slowdowns that are confirmed; rounds: {result.rounds}")
    named = [
        words(frame.left + 330 + 110 * at, 18, f"● {kind}", colour=colour) for at, (kind, colour) in enumerate(kinds)
    ]
    return [label, *named]


def _rate(rate: Rate) -> str:
    return f"{rate.rate * 100:.1f} % ({rate.hits}/{rate.count}, {_bounds(rate)})"


def _bounds(rate: Rate) -> str:
    return f"{rate.bounds.low * 100:.1f} % to {rate.bounds.high * 100:.1f} %"
