"""Dimensions, directions and intervals: what a number means.

Inside, times are nanoseconds, fractions are 0-1, rates are per second, clocks are hertz.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping

from pytest_perfgate.model.values import value

TIME_UNITS: Mapping[str, float] = {
    "ns": 1.0,
    "us": 1e3,
    "µs": 1e3,
    "μs": 1e3,
    "ms": 1e6,
    "s": 1e9,
    "min": 60e9,
    "h": 3600e9,
}
"""Nanoseconds in each unit of time that a person or a tool may write."""
TIME_UNIT = "|".join(TIME_UNITS)
"""A unit of time, as part of a pattern."""
_SPAN = re.compile(rf"\s*((?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*({TIME_UNIT})?\s*")


def span_seconds(text: str) -> float | None:
    """Seconds in a text such as ``500 ms``, where a bare number is in seconds; nothing where it is no time."""
    match = _SPAN.fullmatch(text)
    return float(match[1]) * TIME_UNITS[match[2] or "s"] / TIME_UNITS["s"] if match else None


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
