"""Scopes, directions and changes of a limit, and errors in them."""

from __future__ import annotations

import re

from pytest_perfgate.model.errors import PerfgateError, proposal
from pytest_perfgate.model.metric import Labels, MetricKind, quoted
from pytest_perfgate.model.plan import CHANGES, Compare, Operator
from pytest_perfgate.model.values import UNITS, USUAL, Better, Dimension, dimension_of, value

ALWAYS = ("case",)
"""The scope of every metric of a call: the ``name=`` of that call."""

_NAME = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)\s*")

_OPEN, _CLOSE = "([{<", ")]}>"


def scopes_of(kind: MetricKind) -> tuple[str, ...]:
    """Return every scope of a metric."""
    return tuple(dict.fromkeys((*filter(None, (kind.positional,)), *kind.scopes, *ALWAYS)))


def closing(written: Written, start: int) -> int:
    """Return where the parenthesis opened at ``start`` closes; those in quotes are ignored."""
    depth, at, text = 0, start, written.text
    while at < len(text):
        char = text[at]
        if char in "\"'":
            at = _quote_end(written, at)
        elif char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
            if not depth:
                return at
        at += 1
    raise written.fault(
        "limit-syntax",
        "the parenthesis is never closed",
        Span(start=start, end=start),
        "close it, or quote the text that holds parentheses of its own",
    )


def _quote_end(written: Written, start: int) -> int:
    text, at = written.text, start + 1
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == text[start]:
            return at
        at += 1
    raise written.fault(
        "limit-syntax", "the quote is never closed", Span(start=start, end=start), f"add a closing {text[start]}"
    )


def pieces(written: Written, span: Span) -> list[Span]:
    """Return the spans between commas outside of quotes and brackets."""
    text, parts, depth, begin, at = written.text, [], 0, span.start, span.start
    while at < span.end:
        char = text[at]
        if char in "\"'":
            at = _quote_end(written, at)
        elif char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            depth = max(0, depth - 1)
        elif char == "," and not depth:
            parts.append(Span(start=begin, end=at))
            begin = at + 1
        at += 1
    return [*parts, Span(start=begin, end=span.end)]


def parse_scope(written: Written, span: Span, kind: MetricKind) -> Labels:
    """Return the labels of a scope: named, or the bare word that the metric's kind has a name for."""
    labels_by_name: dict[str, str] = {}
    for piece in pieces(written, span):
        name, text = _label(written, piece, kind)
        if name in labels_by_name:
            raise written.fault("limit-scope", f"the scope '{name}' is given twice", piece, "keep one of them")
        labels_by_name[name] = text.replace("×", "x") if name == "shapes" else text  # as tables print them
    return tuple(sorted(labels_by_name.items()))


def _label(written: Written, piece: Span, kind: MetricKind) -> tuple[str, str]:
    raw = written.text[piece.start : piece.end]
    named = _NAME.match(raw)
    if named:
        _check_name(written, piece, kind, named[1])
        return named[1], _text(written, Span(start=piece.start + named.end(), end=piece.end))
    text = _text(written, piece)
    if not kind.positional:
        raise written.fault(
            "limit-scope",
            f"'{kind.name}' does not say which scope '{text}' is",
            piece,
            f"name it: {' or '.join(f'{kind.name}({name}={text})' for name in scopes_of(kind)[:4])}",
        )
    return kind.positional, text


def _check_name(written: Written, piece: Span, kind: MetricKind, name: str) -> None:
    allowed = scopes_of(kind)
    if name not in allowed:
        start = piece.start + written.text[piece.start : piece.end].index(name)
        raise written.fault(
            "limit-scope",
            f"'{kind.name}' has no scope '{name}'",
            Span(start=start, end=start + len(name)),
            proposal(name, allowed, all_of=f"scopes of {kind.name}"),
        )


def _text(written: Written, span: Span) -> str:
    raw = written.text[span.start : span.end]
    text = raw.strip()
    if text[:1] in {'"', "'"}:
        end = _quote_end(written, span.start + raw.index(text[0]))
        if end != span.start + len(raw.rstrip()) - 1:
            raise written.fault(
                "limit-syntax",
                "text follows the closing quote",
                Span(start=end + 1, end=span.end),
                "quote the whole value",
            )
        text = re.sub(r"\\([\\\"'])", r"\1", text[1:-1])
    if not text:
        raise written.fault("limit-scope", "an empty scope selects nothing", span, "write what it selects, or drop it")
    return text


def render_scope(labels: Labels, kind: MetricKind | None = None) -> str:
    """Return labels in parentheses, the bare word first; "" if there are none."""
    positional = kind.positional if kind else ""
    ordered = sorted(labels, key=lambda pair: (pair[0] != positional, pair[0]))
    words = [quoted(text) if name == positional else f"{name}={quoted(text)}" for name, text in ordered]
    return f"({', '.join(words)})" if words else ""


OF_A_PEAK = frozenset({"mfu", "sol"})
"""Fractions of a physical peak, which cannot exceed 1."""

_EXACT = frozenset({Dimension.COUNT, Dimension.BYTES, Dimension.WORK, Dimension.PLAIN})

UPPER_BOUNDS = frozenset({Operator.AT_MOST, Operator.LESS})

LOWER_BOUNDS = frozenset({Operator.AT_LEAST, Operator.MORE})


def check_sense(written: Written, sign: Span, kind: MetricKind, operator: Operator, bound: float) -> None:
    """Refuse a limit that no measurement could keep, or that would demand a regression."""
    if operator is Operator.EQUAL and kind.dimension not in _EXACT:
        raise written.fault(
            "limit-direction", f"a measured {kind.dimension.value} never equals a number", sign, "write <= or >="
        )
    if kind.name in CHANGES and operator in LOWER_BOUNDS:
        raise written.fault(
            "limit-direction",
            "this would demand a regression",
            sign,
            f"write {kind.name} <= ...; to demand an improvement, {kind.name} <= -5%",
        )
    if kind.name in OF_A_PEAK and operator in LOWER_BOUNDS and bound > 1:
        raise written.fault("limit-direction", "nothing reaches more than the whole of a physical peak", sign)
    if fault := _out_of_reach(kind.name, operator, bound):
        raise written.fault("limit-number", f"{fault}, so the limit means nothing", sign)


def _out_of_reach(name: str, operator: Operator, bound: float) -> str:
    """Return why no call can keep a limit; ``mfu >= 0%`` is allowed, because it requires a measurement."""
    if name in CHANGES and bound <= -1:
        return "nothing is faster by all of its time"
    if name == "time" and operator in UPPER_BOUNDS and bound <= 0:
        return "every call takes some time"
    return ""


def check_reference(written: Written, kind: MetricKind, labels: Labels) -> None:
    """Refuse a speed-up without a reference: a limit names the call, or the file, to compare with."""
    if kind.name == "speedup" and not dict(labels).get("over"):
        start = written.text.index(kind.name)
        fix = "name the reference, a call of the same test: speedup(over=eager) >= 1.2x"
        raise written.fault("limit-scope", "faster than what?", Span(start=start, end=start + len(kind.name)), fix)


_SPEEDUP = re.compile(r"\bspeedup\s*(?=\()")


def references_in(text: str, kind: MetricKind) -> tuple[tuple[str, str], ...]:
    """Return (call, reference) of every speed-up that a limit names, also within other metrics; call "" means all."""
    pairs = []
    for match in _SPEEDUP.finditer(text):
        written = Written(text=text)
        scope = dict(parse_scope(written, Span(start=match.end() + 1, end=closing(written, match.end())), kind))
        pairs.append((scope.get("case", ""), scope.get("over", "")))
    return tuple(pair for pair in pairs if pair[1])


@value
class Span:
    """A piece of a limit's text."""

    start: int
    end: int


@value
class Written:
    """A limit as written, and where."""

    text: str
    place: str = ""

    def fault(self, code: str, what: str, span: Span, fix: str = "") -> PerfgateError:
        """Return the error: the sentence, the text, and a caret under the place."""
        marks = " " * span.start + "^" * max(1, span.end - span.start)
        shown = "".join(c if c.isprintable() else " " for c in self.text)
        return PerfgateError(code, f"{what}\n    {shown}\n    {marks}", fix=fix, place=self.place)


CHANGE = re.compile(r"\s*change\s*\(", re.ASCII)

CHANGE_WORD = "change"

CHANGE_SHAPE = "a change reads change(METRIC[(SCOPE)]) OP VALUE, such as 'change(registers) <= 0'"

_POINTS = "pp"
"""Points of a percentage: 80 % less 2pp is 78 %."""


def change_end(written: Written, opened: int, at: int) -> int:
    """Return where ``change(METRIC`` ends: it only contains the metric with its scope."""
    rest = written.text[at:]
    if not rest.lstrip().startswith(")"):
        span = Span(start=opened, end=opened)
        raise written.fault("limit-syntax", "change(...) holds one metric with its scope", span, CHANGE_SHAPE)
    return at + rest.index(")") + 1


def _worsening(head: str, number: float, better: Better | None) -> str:
    """Return a limit on a change without its unit, in the direction that limits what gets worse."""
    figure, _, sign = head.rpartition(" ")
    if better is Better.HIGHER and "<" in sign:
        return f"{figure} {sign.replace('<', '>')} {-abs(number):g}"
    if better is Better.LOWER and ">" in sign:
        return f"{figure} {sign.replace('>', '<')} {abs(number):g}"
    return f"{head} {number:g}"


def change_bound(
    written: Written, span: Span, kind: MetricKind, bound: tuple[float, str, str]
) -> tuple[float, Dimension, Compare]:
    """Return the bound of a number with its unit, after the head of the limit."""
    # A change of a percentage needs points, since "2 %" of it is ambiguous. The dimension of a test's own figure is
    # known after the run, so it may have any unit.
    number, unit, head = bound
    own = kind.dimension
    points = f"write {_worsening(head, number, kind.better)}{_POINTS}, {_POINTS} for points of a percentage"
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


def _wrong_unit(written: Written, span: Span, unit: str, fix: str) -> PerfgateError:
    what = f"'{unit}' is no unit of this change" if unit else "the change needs a unit"
    return written.fault("limit-unit", what, span, fix)


_NAMED_OTHERWISE = {
    "time": "slowdown <= 3%",
    "slowdown": "slowdown <= 3%",
    "geomean": "geomean(slowdown) <= 1%, or change(METRIC), which each case of the test keeps by itself",
    "worst": "change(METRIC), which each case of the test keeps by itself",
}
"""Metrics that are changes already, and the time, whose change has its own name."""


def check_changing(written: Written, kind: MetricKind, labels: Labels) -> None:
    """Refuse the change of a metric whose change has another name; a quantile of the time has none."""
    of_calls = kind.name != "time" or all(name in ALWAYS for name, _ in labels)
    if kind.name in _NAMED_OTHERWISE and of_calls:
        start = written.text.index(kind.name)
        what = f"the change of '{kind.name}' has a name of its own"
        span = Span(start=start, end=start + len(kind.name))
        raise written.fault("limit-unknown-metric", what, span, f"write {_NAMED_OTHERWISE[kind.name]}")


def check_change(
    written: Written, sign: Span, figure: tuple[MetricKind, Labels], operator: Operator, bound: float
) -> None:
    """Refuse a direction that would demand a regression, and equality of figures that vary."""
    kind, labels = figure
    if operator is Operator.EQUAL and not kind.exact and kind.dimension is not Dimension.PLAIN:
        raise written.fault("limit-direction", "a measured figure never repeats itself", sign, "write <= or >=")
    if demands_regression(kind.better, operator):
        right, demand = ("<=", "-5%") if kind.better is Better.LOWER else (">=", "5%")
        demand = demand.replace("%", "pp") if kind.dimension is Dimension.FRACTION else demand
        head = f"change({kind.name}{render_scope(labels, kind)}) {right}"
        what = f"{'less' if right == '<=' else 'more'} {kind.name} is better, so this would demand a regression"
        number = written.text[sign.end :].strip().lstrip("+-−") if bound else "0"
        fix = (
            f"write {head} {'-' if right == '>=' and bound else ''}{number}; to demand an improvement, {head} {demand}"
        )
        raise written.fault("limit-direction", what, sign, fix)


def demands_regression(better: Better | None, operator: Operator) -> bool:
    """Return whether an operator limits a change in the wrong direction."""
    if better is Better.LOWER:
        return operator in LOWER_BOUNDS
    return better is Better.HIGHER and operator in UPPER_BOUNDS


ITEMS = re.compile(r"([MGTP]?)([a-z][a-z_-]+)/s", re.ASCII)
"""Matches a rate of items of the user's own, such as ``values/s``, in which a first k is a letter."""


def items_in(text: str) -> str:
    """Return what a limit counts, such as ``tokens`` where it ends in ``2 Mtokens/s``; "" if it names no items."""
    match = re.search(rf"[\d._\s]{ITEMS.pattern}\Z", text)
    return match[2] if match else ""


_NOUNS = {
    Dimension.BYTES: "a number of bytes",
    Dimension.FLOPS: "a rate of operations",
    Dimension.WORK: "a number of operations",
    Dimension.ENERGY: "an amount of energy",
    Dimension.INTENSITY: "an intensity",
    Dimension.PLAIN: "a plain number",
}


def noun(dimension: Dimension) -> str:
    return _NOUNS.get(dimension, f"a {dimension.value}")
