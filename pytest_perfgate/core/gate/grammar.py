"""``METRIC[(SCOPE)] OP VALUE[UNIT]``: one grammar for marker, configuration and command line."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pytest_perfgate.core.gate.bound import parse_bound
from pytest_perfgate.core.gate.fault import Span, Written
from pytest_perfgate.core.gate.nearest import proposal
from pytest_perfgate.core.gate.scope import closing, parse_scope, render_scope
from pytest_perfgate.core.gate.sense import check_sense
from pytest_perfgate.model.limit import Limit, Operator
from pytest_perfgate.model.metric import Labels, MetricKind

Kinds = Mapping[str, MetricKind]

_METRIC = re.compile(r"\s*([A-Za-z_][\w.]*)\s*", re.ASCII)
_OPERATOR = re.compile(r"\s*(<=|>=|==|=<|=>|!=|≤|≥|=|<|>)")
_SPELLINGS = {"≤": "<=", "≥": ">="}
_MISTAKES = {"=<": "<=", "=>": ">=", "=": "<= or >=", "!=": "<= or >="}
_SHAPE = "a limit reads METRIC[(SCOPE)] OP VALUE[UNIT], such as 'mfu >= 55%'"
FAMILY_MEAN = "geomean"
"""The one metric whose positional scope names another metric and takes its dimension."""


def parse_limit(text: str, *, kinds: Kinds, source: str = "marker", place: str = "", on: tuple[str, ...] = ()) -> Limit:
    """Read one limit; every way of being wrong raises an error of its own, with the place in the text."""
    written = Written(text=text, place=place)
    kind, at = _kind(written, kinds)
    labels, at = _labels(written, at, kind)
    operator, at, sign = _operator(written, at)
    measured = _measured(written, kind, labels, kinds)
    head = f"{kind.name}{render_scope(labels, kind)} {operator.value}"
    bound, dimension = parse_bound(written, Span(start=at, end=len(text)), measured.dimension, head)
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
    )


def _kind(written: Written, kinds: Kinds) -> tuple[MetricKind, int]:
    match = _METRIC.match(written.text)
    if not match:
        what = "the limit is empty" if not written.text.strip() else "the limit does not start with a metric"
        raise written.fault("limit-syntax", what, Span(start=0, end=1), _SHAPE)
    if match[1] not in kinds:
        raise written.fault(
            "limit-unknown-metric",
            f"nothing produces a metric '{match[1]}'",
            Span(start=match.start(1), end=match.end(1)),
            proposal(match[1], kinds, all_of="the metrics"),
        )
    return kinds[match[1]], match.end()


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
        raise written.fault("limit-syntax", what, Span(start=start, end=start + 1), _SHAPE)
    sign, span = match[1], Span(start=match.start(1), end=match.end(1))
    if sign in _MISTAKES:
        raise written.fault("limit-syntax", f"'{sign}' is no operator of limits", span, f"write {_MISTAKES[sign]}")
    return Operator(_SPELLINGS.get(sign, sign)), match.end(), span


def _measured(written: Written, kind: MetricKind, labels: Labels, kinds: Kinds) -> MetricKind:
    """The kind whose number is compared: for a mean over a family, that of the metric it names."""
    if kind.name != FAMILY_MEAN:
        return kind
    of = dict(labels).get("of", "")
    if of not in kinds or kinds[of].name == FAMILY_MEAN:
        start = written.text.index(kind.name)
        raise written.fault(
            "limit-scope",
            f"a mean of what? '{of}' is no metric" if of else "a mean of what?",
            Span(start=start, end=start + len(kind.name)),
            proposal(of, kinds) if of else f"name the metric: {FAMILY_MEAN}(slowdown) <= 1%",
        )
    return kinds[of]
