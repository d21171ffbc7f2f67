"""The Hodges-Lehmann shift: the median of all pairwise averages, and the interval that inverts the signed rank."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_perfgate.core.stats.interval import median
from pytest_perfgate.core.stats.signed_rank import walsh_rank
from pytest_perfgate.model.quantity import Interval

CONFIDENCE = 0.95


def hodges_lehmann(differences: Sequence[float]) -> float:
    """The shift of paired differences; robust against close to a third of them being wrong."""
    return median(walsh_averages(differences))


def walsh_averages(differences: Sequence[float]) -> list[float]:
    """The averages of all pairs of differences, each with itself too, sorted."""
    return sorted((d + other) / 2 for at, d in enumerate(differences) for other in differences[at:])


def shift_interval(differences: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """The exact interval of the shift.

    Below six pairs even all of the averages cover less than 95 %: the interval then states what it covers.
    """
    averages = walsh_averages(differences)
    rank, covered = walsh_rank(len(differences), round(1 - confidence, 12))
    at = max(rank - 1, 0)
    return Interval(low=averages[at], high=averages[len(averages) - 1 - at], confidence=covered)
