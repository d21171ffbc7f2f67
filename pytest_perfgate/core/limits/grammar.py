"""`METRIC[(SCOPE)] OP VALUE[UNIT]`: parser, bounds, units."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pytest_perfgate.core.limits.merge import check_tail
from pytest_perfgate.core.limits.scope import (
    CHANGE,
    CHANGE_SHAPE,
    CHANGE_WORD,
    ITEMS,
    Span,
    Written,
    change_bound,
    change_end,
    check_change,
    check_changing,
    check_reference,
    check_sense,
    closing,
    items_in,
    noun,
    parse_scope,
    render_scope,
)
from pytest_perfgate.core.metric_kinds import EXAMPLES, OWN_KIND, own_kind, own_title
from pytest_perfgate.model.errors import PerfgateError, proposal
from pytest_perfgate.model.plan import CHANGES, Compare, Limit, Operator
from pytest_perfgate.model.values import DECIMAL, UNITS, USUAL, Dimension, dimension_of

if TYPE_CHECKING:
    from pytest_perfgate.model.metric import Labels, MetricKind

    Kinds = Mapping[str, MetricKind]

_METRIC = re.compile(r"\s*([A-Za-z_][\w.]*)\s*", re.ASCII)

_NAMED = re.compile(r"[(,]\s*name\s*=")

_OPERATOR = re.compile(r"\s*(<=|>=|==|=<|=>|!=|≤|≥|=|<|>)")

_SPELLINGS = {"≤": "<=", "≥": ">="}

_MISTAKES = {"=<": "<=", "=>": ">=", "=": "<= or >=", "!=": "<= or >="}

_SHAPE = "a limit reads METRIC[(SCOPE)] OP VALUE[UNIT], such as 'mfu >= 55%'"

FAMILY_MEAN, FAMILY_WORST = "geomean", "worst"

OF_FAMILIES = frozenset({FAMILY_MEAN, FAMILY_WORST})
"""Metrics whose positional scope is another metric with its scope, whose dimension they have."""


def _no_figure(_: str) -> str:
    """Return "": no name is a figure of the test's own."""
    return ""


def parse_limit(
    text: str,
    *,
    kinds: Kinds,
    source: str = "marker",
    place: str = "",
    on: tuple[str, ...] = (),
    own: Callable[[str], str] = _no_figure,
) -> Limit:
    """Parse one limit; every kind of mistake has an error of its own, with the place in the text."""
    # ``own`` returns, for an unknown name, the test's own figure of that name or of a similar one.
    written = Written(text=text, place=place)
    change = CHANGE.match(text)
    kind, at = _kind(written, kinds, own, change.end() if change else 0)
    labels, at = _labels(written, at, kind)
    if kind.name == OWN_KIND.name:
        kind, labels = _own_figure(written, labels, kinds)
    check_reference(written, kind, labels)
    labels = check_tail(written, kind, labels)
    at = change_end(written, change.end() - 1, at) if change else at
    operator, at, sign = _operator(written, at)
    measured = _kind_measured(written, kind, labels, (kinds, own))
    title, rest = f"{kind.name}{render_scope(labels, kind)}", Span(start=at, end=len(text))
    compare = Compare.FIGURE
    if change:
        check_changing(written, kind, labels)
        bound, dimension, compare = parse_change(written, rest, kind, f"change({title}) {operator.value}")
        check_change(written, sign, (kind, labels), operator, bound)
    else:
        bound, dimension = parse_bound(written, rest, measured.dimension, f"{title} {operator.value}")
        check_sense(written, sign, measured, operator, bound)
    return Limit(
        metric=kind.name,
        labels=labels,
        operator=operator,
        bound=bound,
        dimension=dimension,
        text=" ".join(text.split()),
        source=source,
        on=tuple(on),
        compare=compare,
    )


_TIME_WORDS = dict.fromkeys(("latency", "duration", "runtime", "elapsed"), "time")
"""Other tools' names for the time of a call."""


def _kind(written: Written, kinds: Kinds, own: Callable[[str], str], at: int) -> tuple[MetricKind, int]:
    match = _METRIC.match(written.text, at)
    if not match:
        what = "the limit is empty" if not written.text.strip() else "the limit does not start with a metric"
        raise written.fault("limit-syntax", what, Span(start=0, end=1), _SHAPE)
    metric = (own(match[1]) or _TIME_WORDS.get(match[1].casefold(), "")) if match[1] not in kinds else ""
    if metric == match[1]:
        return own_kind(match[1]), match.end()
    if match[1] == CHANGE_WORD:
        start = Span(start=match.start(1), end=match.end(1))
        raise written.fault("limit-syntax", "a change of what?", start, CHANGE_SHAPE)
    if match[1] not in kinds:
        raise written.fault(
            "limit-unknown-metric",
            f"nothing produces a metric '{match[1]}'",
            Span(start=match.start(1), end=match.end(1)),
            f"did you mean {metric!r}?" if metric else _near_metrics(match[1], kinds, in_test=own is not _no_figure),
        )
    return kinds[match[1]], match.end()


def _near_metrics(name: str, kinds: Kinds, *, in_test: bool) -> str:
    """Return the near metrics, or how a figure of one's own is named; if there are no near ones, all metrics."""
    near = proposal(name, kinds)
    if not in_test:
        own = f"{near} A" if near else "a"
        all_of = "" if near else f"; {proposal(name, kinds, all_of='the metrics')}"
        return f"{own} figure of your own is {OWN_KIND.name}({name}){all_of}"
    figure = f'for a figure of the test\'s own, call perfgate.metric("{name}", value) in it; '
    return near or f"{figure}{proposal(name, kinds, all_of='the metrics')}"


def _own_figure(written: Written, labels: Labels, kinds: Kinds) -> tuple[MetricKind, Labels]:
    """Return the figure ``loss`` for ``metric(loss)``; its unit determines the dimension."""
    name = dict(labels).get("name", "")
    start = written.text.index(OWN_KIND.name)
    span = Span(start=start, end=start + len(OWN_KIND.name))
    if not name or set(name) & set("*?"):
        raise written.fault("limit-scope", "a figure of which name?", span, f"name it: {OWN_KIND.name}(loss) <= 0.1")
    if name in kinds and kinds[name].source != OWN_KIND.source and not _NAMED.search(written.text):
        fix = f"write {name} alone, or {OWN_KIND.name}(name={name}) for a figure that a file calls so"
        raise written.fault("limit-scope", f"{name} is a metric of perfgate's own", span, fix)
    title, label = own_title(name)
    return (OWN_KIND, labels) if label else (own_kind(title), tuple(pair for pair in labels if pair[0] != "name"))


def _labels(written: Written, at: int, kind: MetricKind) -> tuple[Labels, int]:
    if written.text[at : at + 1] != "(":
        return (), at
    end = closing(written, at)
    return parse_scope(written, Span(start=at + 1, end=end), kind), end + 1


def _operator(written: Written, at: int) -> tuple[Operator, int, Span]:
    match = _OPERATOR.match(written.text, at)
    if not match:
        rest = written.text[at:].strip()
        what = f"an operator is expected, not '{rest.split()[0]}'" if rest else "the limit ends before it compares"
        start = at + (len(written.text[at:]) - len(written.text[at:].lstrip()))
        raise written.fault("limit-syntax", what, Span(start=start, end=start), _SHAPE)
    sign, span = match[1], Span(start=match.start(1), end=match.end(1))
    if sign in _MISTAKES:
        raise written.fault("limit-syntax", f"'{sign}' is not an operator of limits", span, f"write {_MISTAKES[sign]}")
    return Operator(_SPELLINGS.get(sign, sign)), match.end(), span


def _kind_measured(
    written: Written, kind: MetricKind, labels: Labels, context: tuple[Kinds, Callable[[str], str]]
) -> MetricKind:
    """Return the kind that is compared: for a mean over a family, that of the metric or own figure it names."""
    if kind.name not in OF_FAMILIES:
        return kind
    name, (kinds, own) = dict(labels).get("of", ""), context
    of = name.partition("(")[0].strip()
    start = written.text.index(kind.name)
    span = Span(start=start, end=start + len(kind.name))
    if of == CHANGE_WORD:
        fix = f"write {name} <= ... alone: each case of the test keeps it by itself"
        raise written.fault("limit-scope", f"'{kind.name}' is of a metric, and not of its change", span, fix)
    if of and of not in kinds and own(of) == of:
        scope_of(name, kinds)
        return own_kind(of)
    if of not in kinds or kinds[of].name in OF_FAMILIES:
        word = "a mean of what?" if kind.name == FAMILY_MEAN else "the worst of what?"
        near = own(of) if of not in kinds else ""
        fix = f"did you mean {near!r}?"
        if not near:
            fix = proposal(of, kinds) if of else f"name the metric: {EXAMPLES[kind.name]}"
        raise written.fault("limit-scope", f"{word} '{of}' is not a metric" if of else word, span, fix)
    if kind.name == FAMILY_WORST and of in CHANGES:
        raise written.fault("limit-scope", f"every case of a test keeps its {of} by itself", span, f"write {of} alone")
    check_reference(written, kinds[of], scope_of(name, kinds)[1])
    return kinds[of]


def scope_of(text: str, kinds: Kinds) -> tuple[str, Labels]:
    """Return the metric of a mean, and its scope: ``speedup(over=eager)``."""
    name, bracket, _ = text.partition("(")
    written, name = Written(text=text), name.strip()
    if not bracket:
        return name, ()
    start = text.index(bracket)
    kind = kinds.get(name) or own_kind(name)
    return name, parse_scope(written, Span(start=start + 1, end=closing(written, start)), kind)


_NUMBER = re.compile(r"[+\-−]?(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+\-−]?\d+)?", re.ASCII)

_COMMAS = re.compile(r"([+\-−]?\d+(?:,\d+)+(?:\.\d+)?)(?: ?[^\s\d,.][^\s,]*)?", re.ASCII)

_GROUPED = re.compile(r"[+\-−]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?", re.ASCII)

_MAY_BE_NEGATIVE = frozenset({Dimension.FRACTION, Dimension.PLAIN, Dimension.TEMPERATURE, Dimension.COUNT})


def parse_bound(written: Written, span: Span, dimension: Dimension, head: str) -> tuple[float, Dimension]:
    """Return the bound in internal units, and its dimension; ``head`` is the limit up to the number."""
    number, whole, rest = _amount(written, span, dimension, head)
    unit = written.text[rest.start : rest.end]
    if unit[:1] == "," and not any(op.value in unit for op in Operator):
        raise _comma(written, whole, head, dimension)
    if not unit:
        return _bare(written, whole, number, dimension, head), dimension
    bound, measured = _with_unit(written, rest, number, dimension, head)
    if bound < 0 and measured not in _MAY_BE_NEGATIVE:
        raise _negative(written, whole)
    return bound, measured


def parse_change(written: Written, span: Span, kind: MetricKind, head: str) -> tuple[float, Dimension, Compare]:
    """Return the bound of a change: a fraction of the accepted value, or an amount in the figure's own unit."""
    number, whole, rest = _amount(written, span, Dimension.FRACTION, head)
    return change_bound(written, whole, kind, (number, written.text[rest.start : rest.end], head))


def _amount(written: Written, span: Span, dimension: Dimension, head: str) -> tuple[float, Span, Span]:
    """Return a number, its place with the unit, and the place of what stands behind it."""
    begin = span.start + _blanks(written.text[span.start : span.end])
    match = _NUMBER.match(written.text, begin, span.end)
    if not match:
        raise _no_number(written, Span(start=begin, end=span.end), head, dimension)
    number = _number(written, Span(start=begin, end=match.end()))
    at = match.end() + _blanks(written.text[match.end() : span.end])
    end = at + len(written.text[at : span.end].rstrip())
    return number, Span(start=begin, end=end if end > at else match.end()), Span(start=at, end=max(at, end))


def _blanks(text: str) -> int:
    return len(text) - len(text.lstrip())


def _number(written: Written, span: Span) -> float:
    text = written.text[span.start : span.end].replace("−", "-")
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise written.fault("limit-number", f"'{text}' is not a number that a metric can reach", span)
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
    if dimension in {Dimension.PLAIN, Dimension.RATE} and (named := ITEMS.fullmatch(unit)):  # the test's own items
        if thousands := _THOUSANDS.fullmatch(unit):
            fix = f"write k/s, or {thousands[1]}/s and the whole number"
            raise written.fault("limit-unit", "k is no prefix of items: it could be their first letter", span, fix)
        return number * dict(DECIMAL)[named[1]], Dimension.RATE
    if measured:
        raise _unit_fault(written, span, dimension, measured, head)
    if any(op.value in unit for op in Operator):
        raise written.fault("limit-syntax", "one limit compares once", span, "write two limits, each in its own string")
    raise written.fault(
        "limit-unit",
        f"unknown unit '{unit}'",
        span,
        proposal(unit, UNITS[dimension] or KNOWN) or _fitting_units(dimension),
    )


def _unit_fault(written: Written, span: Span, dimension: Dimension, measured: Dimension, head: str) -> Exception:
    unit = written.text[span.start : span.end]
    metric, _, _ = head.partition(" ")
    what = f"'{unit}' measures {noun(measured)}, '{metric}' is {noun(dimension)}"
    fix = _fitting_units(dimension)
    if dimension is Dimension.FRACTION and measured is Dimension.RATIO:
        fix = "a change is written in percent: 1.03x is 3%"
    return written.fault("limit-unit", what, span, fix)


def _fitting_units(dimension: Dimension) -> str:
    units = USUAL.get(dimension, ())
    return f"units that fit: {', '.join(units)}" if units else "write the number without a unit"


def _comma(written: Written, whole: Span, head: str, dimension: Dimension) -> Exception:
    """Return the error on a comma, which may be a decimal point or separate thousands; both readings if unclear."""
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
    examples = (f"{head} {one}{unit}" if unit or below_one else _examples(head, one, dimension) for one in readings)
    return written.fault("limit-number", "a comma ends the number", span, f"write {' or '.join(examples)}")


_THOUSANDS = re.compile(r"k(calls|elements|examples|frames|images|items|queries|requests|rows|samples|tokens|values)/s")
"""Matches usual items with a k in front, which would be read as items of that name and a thousandth of the limit."""


def check_items(limit: Limit, unit: str) -> None:
    """Raise if a limit names other items than the work, which is known once it was measured."""
    of = dict(limit.labels).get("of", "") if limit.metric in OF_FAMILIES else limit.metric
    items = items_in(limit.text) if of.partition("(")[0].strip() == "throughput" else ""
    if items not in ("", unit):
        what = f"{limit.text!r} counts {items}, and work= counts {unit}"
        raise PerfgateError("limit-unit", what, fix=f"write {unit}/s, or a number with k/s or M/s")


UNITLESS = frozenset({Dimension.COUNT, Dimension.PLAIN, Dimension.RATIO, Dimension.INTENSITY})
"""Dimensions in which a number without a unit is unambiguous."""

KNOWN: tuple[str, ...] = tuple(dict.fromkeys(unit for table in UNITS.values() for unit in table))
