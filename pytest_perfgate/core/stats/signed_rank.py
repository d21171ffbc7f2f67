"""The exact signed-rank test: how surprising it would be, without a shift, to see differences so far above zero."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

EXACT_UP_TO = 200
"""Differences up to which the null distribution is counted out; beyond, its normal limit is as good."""


def signed_rank(differences: Sequence[float]) -> float:
    """One-sided p of "above zero": exact with ties and zeros, since ranks are kept at their doubled middles.

    Zeros take part in the ranking and count for neither side (Pratt), so that one more pair that shows no
    difference never makes a shift more certain.
    """
    ranks = doubled_ranks(differences)
    moving = [rank for rank, d in zip(ranks, differences) if d != 0]
    above = sum(rank for rank, d in zip(ranks, differences) if d > 0)
    if not moving:
        return 1.0
    if len(moving) > EXACT_UP_TO:
        return _normal_tail(above, moving)
    return float(_tail(tuple(sorted(moving)))[above])


def pairs_needed(alpha: float) -> int:
    """Pairs below which the exact test can never reject at this level."""
    return max(1, math.ceil(-math.log2(alpha) - 1e-12))


def doubled_ranks(differences: Sequence[float]) -> list[int]:
    """Twice the rank of each absolute difference; those that tie share their middle."""
    order = sorted(abs(d) for d in differences)
    return [bisect_left(order, abs(d)) + bisect_right(order, abs(d)) + 1 for d in differences]


@lru_cache(maxsize=512)
def _tail(ranks: tuple[int, ...]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Probability that the ranks that fall above zero sum to at least each number."""
    import numpy as np

    chance = np.zeros(sum(ranks) + 1)
    chance[0] = 1.0
    reach = 0
    for rank in ranks:
        chance[rank : reach + rank + 1] += chance[: reach + 1].copy()
        chance *= 0.5
        reach += rank
    return np.minimum(np.cumsum(chance[::-1])[::-1], 1.0)


def _normal_tail(above: int, ranks: Sequence[int]) -> float:
    mean = math.fsum(ranks) / 2
    deviation = math.sqrt(math.fsum(r * r for r in ranks) / 4)
    return 0.5 * math.erfc((above - 1 - mean) / deviation / math.sqrt(2))


@lru_cache(maxsize=512)
def walsh_rank(count: int, alpha: float) -> tuple[int, float]:
    """Which Walsh average from either end bounds the interval, and what it covers; 0 where the last ones do not reach.

    A hair above the level is on it: a level is a rounded number, the probabilities are not.
    """
    below = [1 - chance for chance in _tail(tuple(range(1, count + 1))).tolist()]
    rank = bisect_right(below, alpha / 2 + 1e-15, lo=1) - 1
    return rank, 1 - 2 * below[max(rank, 1)]
