"""The Hodges-Lehmann shift: the median of all pairwise averages, and the interval that inverts the signed rank."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pytest_perfgate.core.stats.signed_rank import walsh_rank
from pytest_perfgate.model.quantity import Interval

CONFIDENCE = 0.95


def hodges_lehmann(differences: Sequence[float]) -> float:
    """The shift of paired differences; robust against close to a third of them being wrong."""
    return float(np.median(walsh_averages(differences)))


def walsh_averages(differences: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The averages of all pairs of differences, each with itself too, sorted."""
    d = np.asarray(differences, dtype=float)
    first, second = np.triu_indices(len(d))
    return np.sort((d[first] + d[second]) / 2)


def shift_interval(differences: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """The exact interval of the shift.

    Below six pairs even all of the averages cover less than 95 %: the interval then states what it covers.
    """
    averages = walsh_averages(differences)
    left, covered = walsh_rank(len(differences), round(1 - confidence, 12))
    at = max(left - 1, 0)
    return Interval(low=float(averages[at]), high=float(averages[len(averages) - 1 - at]), confidence=covered)
