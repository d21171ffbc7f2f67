"""Student's t: tail and quantile, exact to double precision without a library."""

from __future__ import annotations

import math
from functools import lru_cache

_TINY = 1e-300
_EPSILON = 1e-16


def t_tail(t: float, dof: float) -> float:
    """Probability that Student's t lies above ``t``."""
    half = 0.5 * _incomplete_beta(dof / (dof + t * t), dof / 2, 0.5)
    return half if t >= 0 else 1 - half


@lru_cache(maxsize=4096)
def t_quantile(confidence: float, dof: float) -> float:
    """The number that Student's t stays below with this probability; a half is zero."""
    if not 0 < confidence < 1:
        raise ValueError(f"a probability between 0 and 1, not {confidence}")
    if confidence < 0.5:
        return -t_quantile(1 - confidence, dof)
    tail = 1 - confidence
    low, high = 0.0, 1.0
    while t_tail(high, dof) > tail:
        low, high = high, high * 2
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        if middle in {low, high}:
            break
        low, high = (middle, high) if t_tail(middle, dof) > tail else (low, middle)
    return (low + high) / 2


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function, by its continued fraction."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1 - front * _fraction(1 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """Lentz's evaluation of the continued fraction (DLMF 8.17.22)."""
    c, d = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        before = value
        for term in (even, odd):
            d = 1 / _away(1 + term * d)
            c = _away(1 + term / c)
            value *= c * d
        if abs(value - before) <= _EPSILON * abs(value):
            break
    return value


def _away(number: float) -> float:
    """The number, kept off zero."""
    return number if abs(number) > _TINY else _TINY
