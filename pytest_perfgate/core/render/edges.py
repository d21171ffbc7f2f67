"""Between what a figure lies, or that too little was measured to say."""

from __future__ import annotations

from pytest_perfgate.core.render.quantity import quantity, signed
from pytest_perfgate.model.metric import Metric

SAYING = 10.0
"""Ten times either way and more is no range that a reader can use: two processes that disagree give one."""


def edges(metric: Metric, *, change: bool, rests_on: str = "", decided: bool = False) -> str:
    """``[371.4 µs, 424 µs]``, of a change ``[+7.1, +8.6]``; empty for a figure without an interval.

    An interval that ``decided`` said enough, however wide it is.
    """
    if metric.interval is None:
        return ""
    if not decided and says_nothing(metric, change=change):
        return f"[too wide to say{': ' if rests_on else ''}{rests_on}]"
    if change:
        return f"[{_sign(metric.low)}, {_sign(metric.high)}]"
    return f"[{quantity(metric.low, metric.dimension)}, {quantity(metric.high, metric.dimension)}]"


def says_nothing(metric: Metric, *, change: bool) -> bool:
    """Whether the truth may be ten times more and ten times less; a change is of a ratio, one above it."""
    base = 1.0 if change else 0.0
    value, low, high = (base + number for number in (metric.value, metric.low, metric.high))
    return value > 0 and high >= SAYING * value and low <= value / SAYING


def _sign(fraction: float) -> str:
    return signed(fraction).removesuffix(" %")
