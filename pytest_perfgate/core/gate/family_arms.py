"""A mean of slowdowns that two arms measured side by side: no sitting lies between them, and rounds convict it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from pytest_perfgate.core.gate.rounds import Design, beyond
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.core.stats.hodges_lehmann import hodges_lehmann
from pytest_perfgate.core.stats.signed_rank import pairs_needed, signed_rank
from pytest_perfgate.model.limit import Outcome
from pytest_perfgate.model.verdict import CaseReport

ALPHA = Design().alpha


def together(members: Sequence[CaseReport]) -> tuple[float, ...]:
    """Logarithms of head over base, one a round: the mean over all cases, in the rounds that all of them had."""
    sides = [member.arms.differences if member.arms else () for member in members]
    return tuple(fmean(column) for column in zip(*sides))


def slower_together(differences: Sequence[float], bound: float, among: int) -> bool:
    """The exact test of one case, of the mean of each round; of so many means together."""
    if not differences or math.expm1(hodges_lehmann(differences)) < bound:
        return False
    return signed_rank(beyond(differences, bound)) <= ALPHA / among


def open_together(members: Sequence[CaseReport], among: int) -> tuple[Outcome, str]:
    """Why rounds of two arms do not convict a mean that exceeds its limit, and how many could."""
    needed = pairs_needed(ALPHA / among)
    shared = len(together(members))
    if shared >= needed:
        return Outcome.UNDECIDED, f"; {plural(shared, 'round')} do not convict it"
    return Outcome.SUSPECT, f"; {plural(shared, 'round')} of all its cases convict no mean, {needed} could"
