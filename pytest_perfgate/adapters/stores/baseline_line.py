"""One line of a baseline file: the accepted values of one case, as text that people review."""

from __future__ import annotations

import datetime as dt
import difflib
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Baseline, Identity, short_commit
from pytest_perfgate.model.metric import Figure, parse_figure_title
from pytest_perfgate.model.values import TIME_UNITS, Dimension, dimension_of, from_unit, written_number

_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*([a-zµμ%]+)\Z")

WORD = r"[0-9A-Za-z][0-9A-Za-z.+-]*"
"""Pattern of a text that needs no quotes."""

_PLAIN = re.compile(rf"{WORD}\Z")

_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")

_HALF = re.compile("[\ud800-\udfff]")
"""A surrogate: it stands for a byte that was not text, and a text file cannot hold it."""

_DIGITS = 5

_COMMIT = 12

_LONGEST_KEY = 1000
"""YAML searches 1024 characters for the colon of a key; after a question mark a key may have any length."""

_LARGEST_DETECTED = 100.0
"""The largest detectable change that is written: above a hundredfold slowdown a larger figure has no use."""

_YEAR = 365 * 86400e9
"""In nanoseconds: no call takes longer."""

_TYPO, _NEAR_RENAMED = 0.75, 0.85
"""The similarity above which an unknown field counts as a typo of ours; older lines have a figure ``rounds``."""

_BELOW = "\n  : "

FIELDS = (
    "time", "scatter", "runs", "detects", "processes", "anchor", "anchored", "commit", "who", "when", "why",
    "expires", "environment", "counted", "power", "identity",
)  # fmt: skip
"""All fields, in the order in which they are written."""

FORMER = {"sittings": "runs", "blind": "detects"}
"""Fields of older lines and records, with their present names."""

IDENTITY = ("device", "clocks", "timer", "cache", "data", "threads", "affinity", "notes", "calls")

Node = str | Mapping[str, Any] | list[Any]
"""A node of the file: texts, mappings and lists; no type is guessed from a text."""


def render_line(name: str, baseline: Baseline) -> str:
    """Return the line of one case, or two lines if its name is very long."""
    parts = [f"time: {_time(baseline.time)}"] if baseline.time else []
    parts += [render_figure(figure) for figure in sorted(baseline.figures, key=lambda one: one.title)]
    if baseline.scatter:
        parts.append(f"scatter: {_fixed(baseline.scatter * 100, 3)}%")
    if baseline.runs != 1:
        parts.append(f"runs: {baseline.runs}")
    if baseline.detects:
        parts.append(f"detects: {_fixed(min(baseline.detects, _LARGEST_DETECTED) * 100, 3)}%")
    if baseline.processes:
        parts.append(f"processes: {baseline.processes}")
    if baseline.anchor:
        parts += [f"anchor: {_time(baseline.anchor)}", f"anchored: {_word(baseline.anchored)}"]
    parts += [f"commit: {_word(short_commit(baseline.commit, _COMMIT))}"] if baseline.commit else []
    parts += [f"who: {_quoted(baseline.who)}"] if baseline.who else []
    parts += [f"when: {_word(baseline.when)}"] if baseline.when else []
    parts += [f"why: {_quoted(baseline.why)}"] if baseline.why else []
    parts += [f"expires: {_word(baseline.expires)}"] if baseline.expires else []
    parts += [f"environment: {_word(baseline.environment)}"] if baseline.environment else []
    parts += [f"counted: {_quoted(baseline.counted)}"] if baseline.counted else []
    parts += ["power: limited"] if baseline.limited else []
    if baseline.identity is not None:
        parts.append(f"identity: {_identity_text(baseline.identity, baseline.device)}")
    key = render_key(name)
    return f"  {_key(key, _BELOW if len(key) > _LONGEST_KEY else ': ')}{{{', '.join(parts)}}}"


def _key(rendered: str, between: str = ": ") -> str:
    """Return a key and its separator; YAML requires a question mark before a long key."""
    return f"? {rendered}{between}" if len(rendered) > _LONGEST_KEY else f"{rendered}{between}"


def render_key(name: str) -> str:
    """Return a case's name as a key, in single quotes unless it contains characters that they cannot hold."""
    if _HALF.search(name):
        raise PerfgateError(
            "baseline-path",
            f"{name!a} holds half a character",
            why="no file of text can hold it, so its line would stop every later run",
            fix="give the parameter an id: pytest.param(..., id='...')",
        )
    return _quoted(name) if _UNSAFE.search(name) else "'" + name.replace("'", "''") + "'"


def _time(nanoseconds: float) -> str:
    """Return a time in the unit of its rounded value, so 999,999 ns are 1.0000ms, also when written again."""
    whole = float(f"{nanoseconds:.{_DIGITS - 1}e}")
    step, unit = next(((f, u) for u, f in (("s", 1e9), ("ms", 1e6), ("us", 1e3)) if whole >= f), (1.0, "ns"))
    return f"{_fixed(whole / step, _DIGITS)}{unit}"


def _fixed(number: float, digits: int) -> str:
    """Return the number with always so many significant digits, so that a diff shows only real changes."""
    if number <= 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(number)))
    return f"{number:.{min(places, 12)}f}"


def _word(text: str) -> str:
    return text if _PLAIN.match(text) else _quoted(text)


def _quoted(text: str) -> str:
    """Return a double-quoted text that YAML reads back unchanged; surrogates are shown as lost."""
    whole = json.dumps(_HALF.sub("\ufffd", text), ensure_ascii=False)
    return _UNSAFE.sub(lambda hit: f"\\u{ord(hit[0]):04x}", whole)


def _flow(node: Node) -> str:
    if isinstance(node, str):
        return _word(node)
    if isinstance(node, list):
        return f"[{', '.join(map(_flow, node))}]"
    return f"{{{', '.join(f'{_word(key)}: {_flow(value)}' for key, value in node.items())}}}"


_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?"

FIGURE = rf"{_NUMBER}(?:[A-Za-z%][A-Za-z/]*|/s)?(?: \+- [0-9.e+-]+(?:%|pp) of [1-9][0-9]* runs)?"
"""Pattern of an accepted figure: ``83.1% +- 0.21pp of 3 runs``."""

_FIGURE = re.compile(
    rf"({_NUMBER})([A-Za-z%][A-Za-z/]*|/s)?(?: \+- ([0-9.]+(?:e-?[0-9]+)?)(%|pp) of ([1-9][0-9]{{0,8}}) runs)?\Z"
)

TITLE = r"[A-Za-z_][\w.]*(?:\([\w.*/+@$~|=-]*(?: [\w.*/+@$~|=-]+)*\))?"
"""Pattern of a metric with its scope that needs no quotes."""

_TITLE = re.compile(rf"{TITLE}\Z", re.ASCII)


def render_figure(figure: Figure) -> str:
    """Return ``registers: 128``; a name that could be taken for a field of ours gets empty brackets."""
    title = f"{figure.title}()" if not figure.labels and is_reserved(figure.title) else figure.title
    return f"{title if _TITLE.match(title) else render_key(title)}: {_figure_value(figure)}"


def _figure_value(figure: Figure) -> str:
    text = written_number(figure.value, figure.dimension)
    if figure.runs <= 1:
        return text
    unit = "pp" if figure.dimension is Dimension.FRACTION else "%"
    return f"{text} +- {_fixed(figure.scatter * 100, 3)}{unit} of {figure.runs} runs"


def figure_text(figure: Figure) -> str:
    """Return ``registers(kernel=gemm): 128``, as in a record."""
    plain = " plain" if figure.dimension is Dimension.PLAIN else ""
    return f"{figure.title}: {_figure_value(figure)}{plain}"


def figure_of(text: str) -> Figure | None:
    """Return the figure that ``figure_text`` wrote; None for another text."""
    title, _, number = text.rpartition(": ")
    figure = parse_figure(title, number.removesuffix(" plain"))
    if figure is not None and number.endswith(" plain"):
        return replace(figure, dimension=Dimension.PLAIN)
    return figure


@lru_cache(maxsize=4096)
def is_reserved(name: str) -> bool:
    """Return whether a name could be meant as a field of ours; one with brackets could not."""
    first = [*FORMER, *(field for field in FIELDS if field not in FORMER.values())]
    renamed = difflib.get_close_matches(name, FORMER.values(), n=1, cutoff=_NEAR_RENAMED)
    return "(" not in name and bool(renamed or difflib.get_close_matches(name, first, n=1, cutoff=_TYPO))


@lru_cache(maxsize=4096)
def parse_figure(title: str, text: str) -> Figure | None:
    """Return an accepted figure; None for anything else, such as a field of a later version."""
    match, named = _FIGURE.match(text), parse_figure_title(title)
    if match is None or named is None:
        return None
    number, unit, scatter, _, runs = match.groups()
    dimension = dimension_of(unit) if unit else Dimension.COUNT
    value = from_unit(float(number), unit or "") if dimension is not None else math.inf
    if dimension is None or not math.isfinite(value):
        return None
    return Figure(
        name=named[0],
        value=value,
        dimension=dimension,
        labels=named[1],
        scatter=float(scatter) / 100 if scatter else 0.0,
        runs=int(runs or 1),
    )


def _identity_text(identity: Identity, device: str) -> str:
    default = Identity(device=device)
    differing = {
        name: getattr(identity, name) for name in IDENTITY if getattr(identity, name) != getattr(default, name)
    }
    parts = [f"{name}: {_word(str(text))}" for name, text in differing.items() if name != "notes"]
    if "notes" in differing:
        parts.append(f"notes: {{{', '.join(_key(_quoted(k)) + _quoted(v) for k, v in identity.notes)}}}")
    return f"{{{', '.join(parts)}}}"


def parse_fields(fields: Node, place: str, device: str) -> dict[str, Any]:
    """Return the fields of a Baseline; an unknown field is an error, since nothing would be compared with it."""
    if not isinstance(fields, Mapping):
        raise _wrong(place, "a mapping such as {time: 412.31us}", fields)
    fields = {FORMER.get(name, name): node for name, node in fields.items()}
    parsed: dict[str, Any] = {
        name: _PARSERS[name](fields[name], f"{place}.{name}") for name in _PARSERS if name in fields
    }
    if "power" in fields:
        if fields["power"] != "limited":
            raise _wrong(f"{place}.power", "'limited', or no such field", fields["power"])
        parsed["limited"] = True
    if "identity" in fields:
        parsed["identity"] = _identity(fields["identity"], f"{place}.identity", device)
    figures: dict[str, Figure] = {}
    for name in fields:
        figure = parse_figure(name, fields[name]) if _is_figure(name, fields[name]) else None
        if figure is None:
            if name not in FIELDS:
                raise _foreign(name, place)
            continue
        if figure.title in {one.title for one in figures.values()}:
            raise PerfgateError("baseline-duplicate", f"{figure.title} is accepted twice", place=place)
        figures[name] = figure
    if "time" not in fields and not figures:
        raise PerfgateError("baseline-value", "the line has neither an accepted time nor another figure", place=place)
    if figures:
        parsed["figures"] = tuple(figures.values())
    return parsed


def _is_figure(name: str, node: Node) -> bool:
    """Return whether a field may be an accepted figure; a name that resembles one of our fields is a typo."""
    return name not in FIELDS and isinstance(node, str) and not is_reserved(name)


def _foreign(name: str, place: str) -> PerfgateError:
    near = difflib.get_close_matches(name, FIELDS, n=1, cutoff=_TYPO)
    fix = f"did you mean {near[0]}?" if near else "delete it, or install the version of pytest-perfgate that wrote it"
    return PerfgateError("baseline-value", f"{name!r} is no field and no figure", fix=fix, place=place)


def _wrong(place: str, wanted: str, node: Node) -> PerfgateError:
    return PerfgateError("baseline-value", f"expected {wanted}, found {_flow(node)[:60]}", place=place)


def _parse_time(node: Node, place: str) -> float:
    match = _QUANTITY.match(node) if isinstance(node, str) else None
    if not match or match[2] not in TIME_UNITS:
        raise _wrong(place, "a time with its unit, such as 412.31us", node)
    nanoseconds = float(match[1]) * TIME_UNITS[match[2]]
    if not 0 < nanoseconds < _YEAR:
        raise _wrong(place, "a time above zero and below a year", node)
    return nanoseconds


def _parse_share(node: Node, place: str) -> float:
    match = _QUANTITY.match(node) if isinstance(node, str) else None
    if not match or match[2] != "%":
        raise _wrong(place, "a percentage such as 0.41%", node)
    share = float(match[1]) / 100
    if not math.isfinite(share):
        raise _wrong(place, "a percentage that is a number", node)
    return share


def _parse_count(node: Node, place: str) -> int:
    if not isinstance(node, str) or not re.match(r"[1-9][0-9]{0,8}\Z", node):
        raise _wrong(place, "a whole number of at least 1", node)
    return int(node)


def _parse_text(node: Node, place: str) -> str:
    if not isinstance(node, str):
        raise _wrong(place, "a text", node)
    return node


def _parse_date(node: Node, place: str) -> str:
    if not isinstance(node, str) or not re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9:.+Z-]+)?\Z", node):
        raise _wrong(place, "a date such as 2026-05-02", node)
    try:
        dt.date.fromisoformat(node[:10])
    except ValueError:
        raise _wrong(place, "a day of the calendar", node) from None
    return node


def _identity(node: Node, place: str, device: str) -> Identity:
    if not isinstance(node, Mapping):
        raise _wrong(place, "a mapping", node)
    unknown = [name for name in node if name not in IDENTITY]
    if unknown:
        raise PerfgateError("baseline-value", f"'{unknown[0]}' is not part of an identity", place=place)
    texts = {name: _parse_text(text, f"{place}.{name}") for name, text in node.items() if name != "notes"}
    notes = node.get("notes", {})
    if not isinstance(notes, Mapping):
        raise _wrong(f"{place}.notes", "a mapping", notes)
    pairs = tuple((key, _parse_text(text, f"{place}.notes.{key}")) for key, text in notes.items())
    return Identity(**{"device": device, **texts}, notes=pairs)


_PARSERS: dict[str, Callable[[Node, str], Any]] = {
    "time": _parse_time,
    "scatter": _parse_share,
    "runs": _parse_count,
    "detects": _parse_share,
    "processes": _parse_count,
    "commit": _parse_text,
    "who": _parse_text,
    "when": _parse_date,
    "why": _parse_text,
    "expires": _parse_date,
    "anchor": _parse_time,
    "anchored": _parse_date,
    "environment": _parse_text,
    "counted": _parse_text,
}
