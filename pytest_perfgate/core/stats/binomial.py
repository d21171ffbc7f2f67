"""Rates with bounds: the Clopper-Pearson interval, which holds at least as often as it says."""

from __future__ import annotations

import math
from collections.abc import Callable

from pytest_perfgate.model.quantity import Interval

CONFIDENCE = 0.95


def clopper_pearson(hits: int, count: int, confidence: float = CONFIDENCE) -> Interval:
    """The exact two-sided interval of a rate, found where the binomial tails meet the level."""
    if not 0 <= hits <= count or count < 1:
        raise ValueError(f"{hits} hits of {count}")
    tail = (1 - confidence) / 2
    if 2 * hits > count:  # the sums are over the rarer kind
        other = clopper_pearson(count - hits, count, confidence)
        return Interval(low=1 - other.high, high=1 - other.low, confidence=confidence)
    low = 0.0 if hits == 0 else _crossing(lambda rate: 1 - tail - at_most(hits - 1, count, rate))
    high = _crossing(lambda rate: tail - at_most(hits, count, rate))
    return Interval(low=low, high=high, confidence=confidence)


def at_most(hits: int, count: int, rate: float) -> float:
    """Probability of so many hits or fewer."""
    if rate <= 0 or rate >= 1:
        return float(rate <= 0 or hits >= count)
    up, down = math.log(rate), math.log1p(-rate)
    whole = math.lgamma(count + 1)
    terms = (
        whole - math.lgamma(k + 1) - math.lgamma(count - k + 1) + k * up + (count - k) * down for k in range(hits + 1)
    )
    return min(1.0, math.fsum(math.exp(term) for term in terms))


def fisher(hits: int, others: int, count: int) -> float:
    """Fisher's exact test of two groups of ``count``: the chance of so many of all hits, or more, in the first."""
    both = hits + others
    ways = sum(math.comb(count, k) * math.comb(count, both - k) for k in range(hits, min(both, count) + 1))
    return ways / math.comb(2 * count, both)


def _crossing(rising: Callable[[float], float]) -> float:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return (low + high) / 2
