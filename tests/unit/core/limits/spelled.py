"""Limits written out again, so that reading what was written can be held against what was read."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_perfgate.core.limits.scope import render_scope
from pytest_perfgate.model.metric import MetricKind
from pytest_perfgate.model.plan import Limit
from pytest_perfgate.model.values import Dimension

CANONICAL: Mapping[Dimension, str] = {
    Dimension.TIME: "ns",
    Dimension.FRACTION: "",
    Dimension.RATIO: "x",
    Dimension.BYTES: "B",
    Dimension.BANDWIDTH: "B/s",
    Dimension.FLOPS: "FLOPS",
    Dimension.WORK: "FLOP",
    Dimension.RATE: "/s",
    Dimension.INTENSITY: "FLOP/B",
    Dimension.CLOCK: "Hz",
    Dimension.TEMPERATURE: "°C",
    Dimension.POWER: "W",
    Dimension.ENERGY: "J",
}
"""The unit whose factor is one: how a limit formats back without losing a bit."""


def explicit_selection(limit: Limit, kinds: Mapping[str, MetricKind] | None = None) -> str:
    """The limit as text that reads back as the same limit."""
    kind = (kinds or {}).get(limit.metric)
    scope = render_scope(limit.labels, kind)
    return f"{limit.metric}{scope} {limit.operator.value} {_bound(limit.bound, limit.dimension)}"


def _bound(bound: float, dimension: Dimension) -> str:
    """The bound so that reading it back gives the same number, bit for bit."""
    number = repr(float(bound))
    number = number.removesuffix(".0")
    unit = CANONICAL.get(dimension, "")
    if dimension is Dimension.FRACTION:
        return _percent(bound)
    return f"{number} {unit}" if unit[:1].isalpha() and len(unit) > 2 else f"{number}{unit}"


def _percent(bound: float) -> str:
    """Percent where no bit is lost, with more digits where some would be."""
    for digits in range(15, 19):
        text = f"{bound * 100:.{digits}g}"
        if float(text) * 0.01 == bound:
            return f"{text}%"
    return repr(bound) if abs(bound) < 1 else f"{bound * 100!r}%"
