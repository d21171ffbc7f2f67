"""Dimensions, directions and intervals: what a number means.

Inside, times are nanoseconds, fractions are 0-1, rates are per second, clocks are hertz.
"""

from __future__ import annotations

import enum

from pytest_perfgate.model.values import value


class Dimension(str, enum.Enum):
    """What a number counts, and so which units a person may write for it."""

    TIME = "time"
    FRACTION = "fraction"
    RATIO = "ratio"
    COUNT = "count"
    BYTES = "bytes"
    BANDWIDTH = "bandwidth"
    FLOPS = "flops"
    WORK = "work"
    RATE = "rate"
    INTENSITY = "intensity"
    CLOCK = "clock"
    TEMPERATURE = "temperature"
    POWER = "power"
    PLAIN = "plain"
    TEXT = "text"


class Better(str, enum.Enum):
    """The direction in which a metric improves."""

    LOWER = "lower"
    HIGHER = "higher"
    NEITHER = "neither"


@value
class Interval:
    """A closed range that holds the truth with the stated confidence."""

    low: float
    high: float
    confidence: float = 0.95

    @property
    def width(self) -> float:
        return self.high - self.low

    def holds(self, number: float) -> bool:
        return self.low <= number <= self.high
