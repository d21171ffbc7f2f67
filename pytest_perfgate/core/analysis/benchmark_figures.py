"""The figures that pytest-benchmark gives of a benchmark, of the same name and meaning; times in seconds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from statistics import fmean, median, stdev
from typing import Any

FIGURES = (
    "min", "max", "mean", "stddev", "rounds", "median", "iqr", "q1", "q3", "iqr_outliers", "stddev_outliers",
    "outliers", "ld15iqr", "hd15iqr", "ops", "total",
)  # fmt: skip
FENCE = 1.5
"""Interquartile ranges from a quartile to Tukey's fence."""


class Figures:
    """What the samples of one benchmark come to; of none at all there is nothing to say."""

    def __init__(self, data: Sequence[float]) -> None:
        if not data:
            raise ValueError("figures need at least one sample")
        self.data = list(data)

    def __bool__(self) -> bool:
        return True

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in FIGURES}

    @cached_property
    def sorted_data(self) -> list[float]:
        return sorted(self.data)

    @property
    def min(self) -> float:
        return self.sorted_data[0]

    @property
    def max(self) -> float:
        return self.sorted_data[-1]

    @property
    def mean(self) -> float:
        return fmean(self.data)

    @property
    def stddev(self) -> float:
        return stdev(self.data) if len(self.data) > 1 else 0.0

    @property
    def rounds(self) -> int:
        return len(self.data)

    @property
    def median(self) -> float:
        return median(self.data)

    @property
    def total(self) -> float:
        return math.fsum(self.data)

    @property
    def ops(self) -> float:
        return self.rounds / self.total if self.total else 0.0

    @property
    def q1(self) -> float:
        return self._at((self.rounds - 2) / 4)

    @property
    def q3(self) -> float:
        return self._at((3 * self.rounds - 2) / 4)

    @property
    def iqr(self) -> float:
        return self.q3 - self.q1

    @property
    def ld15iqr(self) -> float:
        """The lowest sample inside of Tukey's fence."""
        return next(sample for sample in self.sorted_data if sample >= self.q1 - FENCE * self.iqr)

    @property
    def hd15iqr(self) -> float:
        """The highest sample inside of Tukey's fence."""
        return next(sample for sample in reversed(self.sorted_data) if sample <= self.q3 + FENCE * self.iqr)

    @property
    def stddev_outliers(self) -> int:
        return self._outside(self.mean - self.stddev, self.mean + self.stddev)

    @property
    def iqr_outliers(self) -> int:
        return self._outside(self.q1 - FENCE * self.iqr, self.q3 + FENCE * self.iqr)

    @property
    def outliers(self) -> str:
        return f"{self.stddev_outliers};{self.iqr_outliers}"

    def _at(self, place: float) -> float:
        """The sample at a place between two, from zero; outside of them the nearest."""
        place = min(max(place, 0.0), self.rounds - 1.0)
        below = math.floor(place)
        share = place - below
        return self.sorted_data[below] * (1 - share) + self.sorted_data[math.ceil(place)] * share

    def _outside(self, low: float, high: float) -> int:
        return sum(not low <= sample <= high for sample in self.data)
