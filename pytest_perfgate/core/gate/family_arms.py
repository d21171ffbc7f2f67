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
    """Logarithms of head over base, one a round: the mean over all cases; none where their rounds are not alike."""
    sides = [member.arms.differences if member.arms else () for member in members]
    if len({len(side) for side in sides}) != 1:
        return ()
    return tuple(fmean(column) for column in zip(*sides))


def slower_together(differences: Sequence[float], bound: float, among: int) -> bool:
    """The exact test of one case, of the mean of each round; of so many means together."""
    if not differences or math.expm1(hodges_lehmann(differences)) < bound:
        return False
    return signed_rank(beyond(differences, bound)) <= ALPHA / among


def open_together(members: Sequence[CaseReport], among: int) -> tuple[Outcome, str]:
    """Why rounds of two arms do not convict a mean that exceeds its limit, and how many could."""
    needed = pairs_needed(ALPHA / among)
    played = sorted({len(member.arms.differences) for member in members if member.arms})
    if len(played) == 1 and played[0] >= needed:
        return Outcome.UNDECIDED, f"; {plural(played[0], 'round')} do not convict it"
    said = " to ".join(map(str, (played[0], played[-1]) if len(played) > 1 else played))
    rounds = max(needed, Design().confirm)
    return Outcome.SUSPECT, f"; {said} rounds a case convict no mean, --perfgate-rounds={rounds} could"
