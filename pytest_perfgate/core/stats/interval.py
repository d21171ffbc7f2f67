"""Intervals for the time of a call: of few processes, and of one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from pytest_perfgate.core.stats.student import t_quantile
from pytest_perfgate.model.quantity import Interval

CONFIDENCE = 0.95
NORMAL = 1.959963984540054
"""The normal quantile that goes with it."""
RANKED = 6
"""Samples whose range covers their median at 95 %."""
MANY = 1000
"""Samples from which on the normal approximation is as good."""


def median(ordered: Sequence[float]) -> float:
    """The middle of sorted numbers."""
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


class Logs(NamedTuple):
    """The logarithms of some numbers, as far as an interval asks: they scatter alike at every scale."""

    size: int
    mean: float
    deviation: float


def logs_of(numbers: Sequence[float]) -> Logs:
    """Sum up the logarithms of positive numbers."""
    logs = [math.log(number) for number in numbers]
    mean = math.fsum(logs) / len(logs)
    return Logs(len(logs), mean, deviation(logs, mean))


def of_processes(logs: Logs, centre: float) -> Interval:
    """Student's interval from the logarithms of two or more process medians, widened to hold their median."""
    half = t_quantile((1 + CONFIDENCE) / 2, logs.size - 1) * logs.deviation / math.sqrt(logs.size)
    low, high = math.exp(logs.mean - half), math.exp(logs.mean + half)
    return Interval(low=min(low, centre), high=max(high, centre), confidence=CONFIDENCE)


def deviation(numbers: Sequence[float], mean: float) -> float:
    """The standard deviation of a sample; zero for fewer than two."""
    if len(numbers) < 2:
        return 0.0
    return math.sqrt(math.fsum([(n - mean) ** 2 for n in numbers]) / (len(numbers) - 1))


def of_samples(ordered: Sequence[float]) -> Interval:
    """The interval of a median by order statistics, of one process: exact, whatever the distribution.

    Below six samples no rank covers 95 %, and Student's stands in; one alone says nothing of its error.
    """
    if 1 < len(ordered) < RANKED:
        return of_processes(logs_of(ordered), median(ordered))
    rank, confidence = median_rank(len(ordered))
    return Interval(low=ordered[rank], high=ordered[len(ordered) - 1 - rank], confidence=confidence)


@lru_cache(maxsize=4096)
def median_rank(count: int) -> tuple[int, float]:
    """How many samples to leave out on each side, and the confidence that is left.

    The widest rank whose coverage is still 95 %; below six samples even all of them cover less.
    """
    if count >= MANY:
        return int((count - NORMAL * math.sqrt(count)) / 2) - 1, CONFIDENCE
    total, rank = 2.0**count, 0
    below = 1 / total
    while 2 * (following := below + math.comb(count, rank + 1) / total) <= 1 - CONFIDENCE:
        below, rank = following, rank + 1
    return rank, max(0.0, 1 - 2 * below)
