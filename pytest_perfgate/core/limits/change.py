"""``change(METRIC) OP VALUE``: which changes there are, their units and their direction."""

from __future__ import annotations

import re

from pytest_perfgate.core.limits.scope import (
    ALWAYS,
    CHANGES,
    LOWER_BOUNDS,
    UPPER_BOUNDS,
    Span,
    Written,
    render_scope,
)
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Labels, MetricKind
from pytest_perfgate.model.plan import Compare, Operator
from pytest_perfgate.model.values import UNITS, USUAL, Better, Dimension, dimension_of

CHANGE = re.compile(r"\s*change\s*\(", re.ASCII)

_CHANGE_SHAPE = "a change reads change(METRIC[(SCOPE)]) OP VALUE, such as 'change(registers) <= 0'"

_POINTS = "pp"
"""Points of a percentage: 80 % less 2pp is 78 %."""


def change_end(written: Written, opened: int, at: int) -> int:
    """Where ``change(METRIC`` ends: nothing but the metric with its scope stands inside."""
    rest = written.text[at:]
    if not rest.lstrip().startswith(")"):
        span = Span(start=opened, end=opened + 1)
        raise written.fault("limit-syntax", "change(...) holds one metric with its scope", span, _CHANGE_SHAPE)
    return at + rest.index(")") + 1


def change_bound(
    written: Written, span: Span, kind: MetricKind, asked: tuple[float, str, str]
) -> tuple[float, Dimension, Compare]:
    """The bound of a number with its unit, behind the head of the limit.

    A percentage has points only: "2 %" of it could be either. What a figure of the test's own measures is known when
    it ran: any unit may be its own.
    """
    number, unit, head = asked
    own = kind.dimension
    points = f"write {head} {number:g}{_POINTS}, {_POINTS} for points of a percentage"
    if own is Dimension.FRACTION:
        if unit == "%":
            what = f"'{kind.name}' is a percentage itself: its change is written in points"
            raise written.fault("limit-unit", what, span, points)
        if number and unit != _POINTS:
            raise _wrong_unit(written, span, unit, points)
        return number * 0.01, own, Compare.ABSOLUTE
    if not number or (not unit and own in _COUNTED and number.is_integer()):
        return number, own, Compare.ABSOLUTE
    if unit == "%" or (not unit and abs(number) < 1):
        return number * (0.01 if unit else 1.0), Dimension.FRACTION, Compare.RELATIVE
    if unit == _POINTS and own is Dimension.PLAIN:
        return number * 0.01, Dimension.FRACTION, Compare.ABSOLUTE
    measured = dimension_of(unit) if own is Dimension.PLAIN else own
    if measured is not None and unit in UNITS[measured]:
        return number * UNITS[measured][unit], measured, Compare.ABSOLUTE
    amounts = "".join(f", or {head} {number:g}{one}" for one in USUAL[own][:1])
    raise _wrong_unit(written, span, unit, f"write {head} {number:g}%{amounts}")


_COUNTED = frozenset({Dimension.COUNT, Dimension.PLAIN})


def _wrong_unit(written: Written, span: Span, unit: str, mend: str) -> PerfgateError:
    what = f"'{unit}' is no unit of this change" if unit else "the change needs a unit"
    return written.fault("limit-unit", what, span, mend)


_NAMED_OTHERWISE = {
    "time": "slowdown <= 3%",
    "slowdown": "slowdown <= 3%",
    "geomean": "geomean(slowdown) <= 1%",
}
"""Metrics that are changes already, and the time, whose change has a name of its own."""


def check_changing(written: Written, kind: MetricKind, labels: Labels) -> None:
    """Refuse the change of what has another sentence; a quantile of the time has none."""
    own = kind.name in _NAMED_OTHERWISE and all(name in ALWAYS for name, _ in labels)
    if own or kind.name in CHANGES:
        start = written.text.index(kind.name)
        what = f"the change of '{kind.name}' has a sentence of its own"
        span = Span(start=start, end=start + len(kind.name))
        raise written.fault("limit-unknown-metric", what, span, f"write {_NAMED_OTHERWISE[kind.name]}")


def check_change(
    written: Written, sign: Span, figure: tuple[MetricKind, Labels], operator: Operator, bound: float
) -> None:
    """Refuse a direction that would demand a regression, and that what is measured repeats itself."""
    kind, labels = figure
    if operator is Operator.EQUAL and not kind.exact and kind.dimension is not Dimension.PLAIN:
        raise written.fault("limit-direction", "a measured figure never repeats itself", sign, "write <= or >=")
    if demands_regression(kind.better, operator):
        right, demand = ("<=", "-5%") if kind.better is Better.LOWER else (">=", "5%")
        demand = demand.replace("%", "pp") if kind.dimension is Dimension.FRACTION else demand
        head = f"change({kind.name}{render_scope(labels, kind)}) {right}"
        what = f"{'less' if right == '<=' else 'more'} {kind.name} is better, so this would demand a regression"
        mend = f"write {head} {'...' if bound else '0'}; to demand an improvement, {head} {demand}"
        raise written.fault("limit-direction", what, sign, mend)


def demands_regression(better: Better, operator: Operator) -> bool:
    """Whether an operator holds a change from the wrong side."""
    wrong = {Better.LOWER: LOWER_BOUNDS, Better.HIGHER: UPPER_BOUNDS}.get(better, frozenset())
    return operator in wrong
