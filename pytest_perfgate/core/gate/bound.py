"""The number and the unit at the end of a limit."""

from __future__ import annotations

import math
import re

from pytest_perfgate.core.gate.fault import Span, Written
from pytest_perfgate.core.gate.nearest import proposal
from pytest_perfgate.core.gate.units import KNOWN, UNITLESS, UNITS, USUAL, dimension_of, noun
from pytest_perfgate.model.limit import Operator
from pytest_perfgate.model.quantity import Dimension

_NUMBER = re.compile(r"[+\-−]?(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+\-−]?\d+)?", re.ASCII)
_COMMAS = re.compile(r"([+\-−]?\d+(?:,\d+)+(?:\.\d+)?)(?: ?[^\s\d,.][^\s,]*)?", re.ASCII)
_GROUPED = re.compile(r"[+\-−]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?", re.ASCII)
_MAY_BE_NEGATIVE = frozenset({Dimension.FRACTION, Dimension.PLAIN, Dimension.TEMPERATURE, Dimension.COUNT})


def parse_bound(written: Written, span: Span, dimension: Dimension, head: str) -> tuple[float, Dimension]:
    """The bound in the units of the inside, and what it measures; ``head`` is the limit up to the number."""
    begin = span.start + _blanks(written.text[span.start : span.end])
    match = _NUMBER.match(written.text, begin, span.end)
    if not match:
        raise _no_number(written, Span(start=begin, end=max(begin, span.end)), head, dimension)
    number = _number(written, Span(start=begin, end=match.end()))
    rest = Span(start=match.end() + _blanks(written.text[match.end() : span.end]), end=span.end)
    unit = written.text[rest.start : rest.end].strip()
    rest = Span(start=rest.start, end=rest.start + len(unit))
    whole = Span(start=begin, end=rest.end if unit else match.end())
    if unit[:1] == "," and not any(op.value in unit for op in Operator):
        raise _comma(written, whole, head, dimension)
    if not unit:
        return _bare(written, whole, number, dimension, head), dimension
    bound, measured = _with_unit(written, rest, number, dimension, head)
    if bound < 0 and measured not in _MAY_BE_NEGATIVE:
        raise _negative(written, whole)
    return bound, measured


def _blanks(text: str) -> int:
    return len(text) - len(text.lstrip())


def _number(written: Written, span: Span) -> float:
    text = written.text[span.start : span.end].replace("−", "-")
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise written.fault("limit-number", f"'{text}' is no number that a metric can reach", span)
    return number


def _no_number(written: Written, span: Span, head: str, dimension: Dimension) -> Exception:
    shown = written.text[span.start : span.end].strip()
    what = f"'{shown}' is not a number" if shown else "the number is missing"
    span = Span(start=span.start, end=span.start + len(shown))
    return written.fault("limit-number", what, span, f"write a number and its unit: {_examples(head, '5', dimension)}")


def _examples(head: str, number: str, dimension: Dimension) -> str:
    units = USUAL.get(dimension, ()) or ("",)
    return " or ".join(f"{head} {number}{' ' if len(unit) > 2 else ''}{unit}" for unit in units)


def _bare(written: Written, span: Span, number: float, dimension: Dimension, head: str) -> float:
    shown = written.text[span.start : span.end]
    if dimension is Dimension.FRACTION:
        if abs(number) < 1:
            return number
        raise written.fault(
            "limit-unit",
            f"{shown} of what? a bare number is a fraction below 1",
            span,
            f"write {head} {shown}% (or {head} {number / 100:g})",
        )
    if number < 0 and dimension not in _MAY_BE_NEGATIVE:
        raise _negative(written, span)
    if not number or dimension in UNITLESS:
        return number
    raise written.fault(
        "limit-unit",
        f"{shown} needs a unit: the metric is {noun(dimension)}",
        span,
        f"write {_examples(head, shown, dimension)}",
    )


def _negative(written: Written, span: Span) -> Exception:
    return written.fault("limit-number", "the metric is never negative, so the limit means nothing", span)


def _with_unit(written: Written, span: Span, number: float, dimension: Dimension, head: str) -> tuple[float, Dimension]:
    unit = written.text[span.start : span.end]
    if unit in UNITS[dimension]:
        return number * UNITS[dimension][unit], dimension
    measured = dimension_of(unit)
    if measured and dimension is Dimension.PLAIN:
        return number * UNITS[measured][unit], measured
    if measured:
        raise _misfit(written, span, dimension, measured, head)
    if any(op.value in unit for op in Operator):
        raise written.fault("limit-syntax", "one limit compares once", span, "write two limits, each in its own string")
    raise written.fault(
        "limit-unit",
        f"unknown unit '{unit}'",
        span,
        proposal(unit, UNITS[dimension] or KNOWN) or _wanted(dimension),
    )


def _misfit(written: Written, span: Span, dimension: Dimension, measured: Dimension, head: str) -> Exception:
    unit = written.text[span.start : span.end]
    what = f"'{unit}' measures {noun(measured)}, '{head.split(maxsplit=1)[0]}' is {noun(dimension)}"
    mend = _wanted(dimension)
    if dimension is Dimension.FRACTION and measured is Dimension.RATIO:
        mend = "a change is written in percent: 1.03x is 3%"
    return written.fault("limit-unit", what, span, mend)


def _wanted(dimension: Dimension) -> str:
    units = USUAL.get(dimension, ())
    return f"units that fit: {', '.join(units)}" if units else "write the number without a unit"


def _comma(written: Written, whole: Span, head: str, dimension: Dimension) -> Exception:
    """A comma is the decimal point of some and groups the thousands of others; where it can be both, both are said."""
    text = written.text[whole.start : whole.end]
    at = whole.start + text.index(",")
    span = Span(start=at, end=whole.end)
    match = _COMMAS.fullmatch(text)
    if match is None:
        return written.fault("limit-number", "a comma ends the number", span, "write 1000 or 1_000")
    number, unit = match[1], text[match.end(1) :]
    readings = [number.replace(",", "_")] if _GROUPED.fullmatch(number) else []
    readings += [number.replace(",", ".")] if number.count(",") == 1 and "." not in number else []
    if not readings:
        return written.fault("limit-number", "a comma ends the number", span, "write 1000 or 1_000")
    below_one = dimension is Dimension.FRACTION and number.lstrip("+-−")[0] == "0"
    said = (f"{head} {one}{unit}" if unit or below_one else _examples(head, one, dimension) for one in readings)
    return written.fault("limit-number", "a comma ends the number", span, f"write {' or '.join(said)}")
