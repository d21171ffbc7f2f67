"""A budget of seconds, spent where it decides most; what it leaves undecided says what it asks for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from statistics import NormalDist

from pytest_perfgate.core.gate.rounds import CLEARS, LEAST, MARGIN, Design, Finding
from pytest_perfgate.model.paired import Decision
from pytest_perfgate.model.values import value

MOST = 200
"""Rounds beyond which a case is not worth its time: its shift all but equals what counts."""
SCREENING = 0.4
"""The part of a budget that the accepted times may take: the rest is for the two builds."""
_POWER = 0.8


@value
class Want:
    """What one case asks for before it is decided."""

    rounds: int
    seconds: float
    """Of one round."""
    suspected: bool
    """It reads slower than its limit."""

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


def wanted(found: Finding, counts: float, design: Design) -> int:
    """Rounds that are still to come before a case of this shift and scatter is decided, in four of five cases."""
    if found.decision is not Decision.UNDECIDED:
        return max(0, design.looks[0] - found.rounds)
    needs = slower_rounds if found.shift >= counts else clearing_rounds
    return max(1, needs(found, counts, design) - found.rounds)


def slower_rounds(found: Finding, counts: float, design: Design) -> int:
    """The first look to come at which a case of this shift and scatter is found slower."""
    gap = math.log1p(found.shift) - MARGIN * math.log1p(max(counts, 0.0))
    needs = _rounds(NormalDist().inv_cdf(1 - design.level), found.scatter, gap)
    ahead = (look for look in design.looks if look >= needs and look > found.rounds)
    return next(ahead, max(needs, found.rounds + 1))


def clearing_rounds(found: Finding, counts: float, design: Design) -> int:  # noqa: ARG001 - as the other one is asked
    """Rounds after which the interval of this shift and scatter keeps below what counts."""
    gap = math.log1p(max(counts, 0.0)) - math.log1p(found.shift)
    return max(LEAST, _rounds(NormalDist().inv_cdf(1 - CLEARS), found.scatter, gap))


def _rounds(level: float, scatter: float, gap: float) -> int:
    if gap <= 0:
        return MOST
    standard = (level + NormalDist().inv_cdf(_POWER)) * scatter / gap
    return min(MOST, math.ceil(standard**2))


def allotted(wants: Mapping[str, Want], left_s: float, start_s: float) -> Allotment:
    """What reads slower first, then the rest; of each those that are nearest to a decision.

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
    """Seconds of rounds that are played together."""
    wants = list(wants)
    return max((want.rounds for want in wants), default=0) * start_s + math.fsum(want.cost for want in wants)


def shrunk(needed_s: float, has_s: float, least: float) -> float:
    """The part of the usual sampling time that a budget allows, at least so much."""
    return 1.0 if needed_s <= has_s else max(least, has_s / needed_s)
