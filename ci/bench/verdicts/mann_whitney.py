"""The rank-sum test of two unpaired groups: exact while small and without ties, else by its normal limit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

EXACT_UP_TO = 20


def mann_whitney(now: Sequence[float], then: Sequence[float]) -> float:
    """One-sided p of "now is larger"."""
    a, b = np.asarray(now, dtype=float), np.sort(np.asarray(then, dtype=float))
    wins = np.searchsorted(b, a, side="left").sum() + np.searchsorted(b, a, side="right").sum()
    values, ties = np.unique(np.concatenate([a, b]), return_counts=True)
    if len(values) == len(a) + len(b) and max(len(a), len(b)) <= EXACT_UP_TO:
        return _exact_tail(int(wins) // 2, len(a), len(b))
    return _normal_tail(float(wins) / 2, len(a), len(b), ties)


def _exact_tail(wins: int, a: int, b: int) -> float:
    ways = _ways(a, b)
    return sum(ways[wins:]) / sum(ways)


@lru_cache(maxsize=1024)
def _ways(a: int, b: int) -> tuple[int, ...]:
    """In how many orders of the two groups the first wins 0, 1, 2 … comparisons."""
    ways = [1]
    for k in range(1, a + 1):
        ways = _divide(_times(ways, b + k), k)
    return tuple(ways)


def _times(ways: list[int], power: int) -> list[int]:
    """Multiply a polynomial by 1 - x^power."""
    grown = ways + [0] * power
    for at, number in enumerate(ways):
        grown[at + power] -= number
    return grown


def _divide(ways: list[int], power: int) -> list[int]:
    """Divide a polynomial by 1 - x^power without a remainder."""
    quotient = list(ways)
    for at in range(power, len(quotient)):
        quotient[at] += quotient[at - power]
    return quotient[:-power]  # the rest are zeros


def _normal_tail(wins: float, a: int, b: int, ties: Iterable[int]) -> float:
    count = a + b
    tied = sum(int(t) ** 3 - int(t) for t in ties)
    variance = a * b / 12 * (count + 1 - tied / (count * (count - 1)))
    if variance <= 0:
        return 1.0
    return 0.5 * math.erfc((wins - a * b / 2 - 0.5) / math.sqrt(2 * variance))
