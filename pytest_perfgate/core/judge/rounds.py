"""Lock-step rounds: how many, who is suspected, modes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import TypeVar

from pytest_perfgate.core.stats.inference import adjusted, hodges_lehmann, pairs_needed, shift_interval, signed_rank
from pytest_perfgate.core.stats.summary import deviation
from pytest_perfgate.model.values import Interval, value
from pytest_perfgate.model.verdict import Decision

K = TypeVar("K")

SURELY = 2.33 + 0.84
"""A shift of so many standard errors passes the 99 % point with a power of 80 %."""

MARGIN = 1 / 3
"""Part of the limit that the test has to rule out: where code lies in memory alone shifts unchanged code by 1 %."""

LEAST = 5
"""Rounds below which no interval covers 90 %: nothing is acquitted."""

SURE = 7
"""Rounds of which all must speak for a suspect before it is let go early: by chance they do once in 128.

To look at the interval from the fifth on would acquit twice as many that are slower by just what counts.
"""

FURTHEST = 709
"""No two times are as far apart as that, in logarithms."""


@value
class Design:
    """How a comparison spends its rounds."""

    screen: int = 5
    """Rounds for every case: below five no interval could bound a slowdown at 95 %."""
    confirm: int = 10
    """Fresh rounds for suspects; those of the screening are not counted again."""
    alpha: float = 0.01
    """The chance that a clean suite convicts anything."""


@value
class Pairs:
    """The rounds of one case: nanoseconds of a process on each side, in order."""

    base: tuple[float, ...]
    head: tuple[float, ...]
    spread: float
    """The interquartile range within a process, as a fraction."""

    @property
    def differences(self) -> tuple[float, ...]:
        """Logarithms of head over base."""
        return tuple(math.log(h / b) for b, h in zip(self.base, self.head))


@value
class Finding:
    """What the pairs of one case say."""

    shift: float
    """As a fraction."""
    interval: Interval
    p: float
    """One-sided, of "slower by more than a third of what counts"; after Holm where a suite was asked."""
    visible: float
    unstable: bool
    least: float
    """The difference of the fastest round."""
    decision: Decision
    scatter: float
    """Standard deviation of the differences."""


def finding(pairs: Pairs, counts: float) -> Finding:
    """Shift, exact interval, and whether the processes stand in groups."""
    d = pairs.differences
    interval = shift_interval(d)
    shift = math.expm1(hodges_lehmann(d))
    bounds = Interval(low=math.expm1(interval.low), high=math.expm1(interval.high), confidence=interval.confidence)
    return Finding(
        shift=shift,
        interval=bounds,
        p=signed_rank(beyond(d, counts)),
        visible=max(counts, visible(d)),
        unstable=unstable(pairs),
        least=math.expm1(min(d)),
        decision=Decision.NOT_SLOWER if bounds.high < counts and len(d) >= LEAST else Decision.UNDECIDED,
        scatter=deviation(d, math.fsum(d) / len(d)),
    )


def visible(differences: Sequence[float]) -> float:
    """The smallest slowdown that so many rounds of this scatter surely show."""
    count = len(differences)
    if count < 2:
        return math.inf
    return math.expm1(SURELY * deviation(differences, math.fsum(differences) / count) / math.sqrt(count))


def unstable(pairs: Pairs) -> bool:
    """Whether the processes of a side stand in two groups, and the sides of a round not always in the same one.

    A machine that drifts takes both sides along: that is no instability of theirs.
    """
    d, within = pairs.differences, math.log1p(pairs.spread)
    if max(d) - min(d) <= GAP * within:
        return False
    sides = [[math.log(time) for time in side] for side in (pairs.base, pairs.head)]
    return any(split(side, within) is not None for side in sides)


def suspected(findings: Mapping[K, Finding], counts: Mapping[K, float]) -> tuple[K, ...]:
    """Cases whose shift is beyond what counts: they go on to fresh rounds.

    Not those in two states, unless every single round is beyond: more rounds would show the states again.
    """
    return tuple(
        key
        for key, found in findings.items()
        if found.shift > counts[key] and not (found.unstable and found.least < counts[key])
    )


def confirming_rounds(suspects: int, design: Design) -> int:
    """Fresh rounds: enough that the exact test could reject even the last of so many suspects."""
    return max(design.confirm, pairs_needed(design.alpha / max(suspects, 1)))


def cleared(fresh: Pairs, counts: float, planned: int, design: Design) -> bool:
    """Whether every round so far lies below what counts, and all that are left could not convict any more.

    The rest of its rounds is then spared: no verdict "slower" is lost, and hardly a slowdown acquitted for it.
    """
    differences = fresh.differences
    if len(differences) < SURE or max(differences) >= math.log1p(counts):
        return False
    so_far = beyond(differences, counts)
    worst = [*so_far, *range(FURTHEST, FURTHEST + planned - len(so_far))]
    return signed_rank(worst) > design.alpha


def served(fresh: Pairs, counts: float, design: Design) -> Pairs:
    """Those of the rounds planned for a suspect that it goes through before it is cleared."""
    planned = len(fresh.base)
    for count in range(SURE, planned):
        part = replace(fresh, base=fresh.base[:count], head=fresh.head[:count])
        if cleared(part, counts, planned, design):
            return part
    return fresh


def beyond(differences: Iterable[float], counts: float) -> list[float]:
    """How far each difference is above what the test has to rule out."""
    return [x - MARGIN * math.log1p(max(counts, 0.0)) for x in differences]


def convicted(fresh: Mapping[K, Pairs], counts: Mapping[K, float], design: Design, among: int = 0) -> dict[K, Finding]:
    """Suspects tried together: slower iff the exact test survives Holm and the shift counts.

    ``among`` is how many the run suspects in all, where others are tried elsewhere.
    """
    found = {key: finding(pairs, counts[key]) for key, pairs in fresh.items()}
    levels = adjusted([f.p for f in found.values()], among)
    return {key: _sentenced(f, level, counts[key], design) for (key, f), level in zip(found.items(), levels)}


def _sentenced(found: Finding, level: float, counts: float, design: Design) -> Finding:
    slower = level <= design.alpha and found.shift >= counts
    return replace(found, p=level, decision=Decision.SLOWER if slower else found.decision)


GAP = 3
"""Within-process interquartile ranges between two groups."""

LEAST_PER_MODE = 2
"""Processes on each side: one alone is an outlier."""


def split(medians: Sequence[float], spread: float, resolution: float = 0.0) -> tuple[float, float] | None:
    """The two edges of the widest gap that separates the process medians into groups."""
    if len(medians) < 2 * LEAST_PER_MODE:
        return None
    ordered = sorted(medians)
    places = range(LEAST_PER_MODE, len(ordered) - LEAST_PER_MODE + 1)
    gaps = [(ordered[at] - ordered[at - 1], ordered[at - 1], ordered[at]) for at in places]
    widest = max(gaps)
    return widest[1:] if widest[0] > max(GAP * spread, 2 * resolution) else None


MOST = 200
"""Rounds beyond which a case is not worth its time: its shift all but equals what counts."""

SCREENING = 0.6
"""The part of a budget that screening may take: the rest is for suspects."""

_POWER, _ACQUITTAL = 0.8, 0.975


@value
class Want:
    """What one case asks for before it is decided."""

    rounds: int
    seconds: float
    """Of one round."""
    suspected: bool
    """Fresh rounds convict or acquit a suspect; of others the screening goes on."""

    @property
    def cost(self) -> float:
        return self.rounds * self.seconds


@value
class Allotment:
    """Rounds by case, and those that the budget does not reach."""

    rounds: Mapping[str, int]
    beyond: Mapping[str, Want]
    cost: float
    """Seconds, the starting of processes included."""


def conviction_rounds(found: Finding, counts: float, suspects: int, design: Design) -> int:
    """Fresh rounds that convict a suspect of this shift and scatter in four of five cases."""
    gap = math.log1p(found.shift) - MARGIN * math.log1p(max(counts, 0.0))
    level = NormalDist().inv_cdf(1 - design.alpha / max(suspects, 1))
    return max(confirming_rounds(suspects, design), _rounds(level, found.scatter, gap))


def acquittal_rounds(found: Finding, counts: float) -> int:
    """Rounds, those of the screening included, after which the interval of this shift keeps below what counts.

    A second look after more rounds acquits wrongly in at most 5 % instead of 2.5 %.
    """
    gap = math.log1p(max(counts, 0.0)) - math.log1p(found.shift)
    return max(LEAST, _rounds(NormalDist().inv_cdf(_ACQUITTAL), found.scatter, gap))


def _rounds(level: float, scatter: float, gap: float) -> int:
    if gap <= 0:
        return MOST
    standard = (level + NormalDist().inv_cdf(_POWER)) * scatter / gap
    return min(MOST, math.ceil(standard**2))


def allotted(wants: Mapping[str, Want], left_s: float, start_s: float) -> Allotment:
    """Suspects first, then the undecided; of each those that are nearest to a decision.

    A round starts its processes once for all cases in it, so rounds that others have anyway cost less.
    """
    given: dict[str, Want] = {}
    beyond: dict[str, Want] = {}
    for name, want in sorted(wants.items(), key=lambda pair: (not pair[1].suspected, pair[1].cost)):
        fits = cost_of({**given, name: want}.values(), start_s) <= left_s
        (given if fits else beyond)[name] = want
    rounds = {name: want.rounds for name, want in given.items()}
    return Allotment(rounds=rounds, beyond=beyond, cost=cost_of(given.values(), start_s))


def cost_of(wants: Iterable[Want], start_s: float) -> float:
    """Seconds of rounds that are played together, suspects apart from the rest."""
    wants = list(wants)
    laps = sum(max((w.rounds for w in wants if w.suspected is kind), default=0) for kind in (True, False))
    return laps * start_s + math.fsum(want.cost for want in wants)


def shrunk(needed_s: float, has_s: float, least: float) -> float:
    """The part of the usual sampling time that a budget allows, at least so much."""
    return 1.0 if needed_s <= has_s else max(least, has_s / needed_s)
