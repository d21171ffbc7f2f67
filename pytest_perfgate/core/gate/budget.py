"""A budget of seconds, spent where it decides most; what it leaves undecided says what it asks for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from statistics import NormalDist

from pytest_perfgate.core.gate.rounds import LEAST, MARGIN, Design, Finding, confirming_rounds
from pytest_perfgate.model.values import value

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
