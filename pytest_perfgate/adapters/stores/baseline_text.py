"""The text of baseline files, edited line by line."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pytest_perfgate.adapters.stores.baseline_line import (
    FIELDS,
    FIGURE,
    FORMER,
    IDENTITY,
    TITLE,
    WORD,
    Node,
    is_taken,
    parse_fields,
    parse_figure,
    render_line,
)
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Baseline, Identity
from pytest_perfgate.model.values import TIME_UNITS, value

if TYPE_CHECKING:
    import yaml


SCHEMA = 1

HEADER = (
    "# Accepted figures, one line a case; written by `perfgate accept`, reviewed by people.\n"
    f"perfgate: {SCHEMA}\nbaselines:\n"
)

_MARKERS = ("<<<<<<<", "=======", ">>>>>>>", "|||||||")


@value
class Entry:
    """One case as written in the file."""

    name: str
    fields: dict[str, Any]
    first: int
    """Its first line, counted from 0."""
    after: int
    """The line after its last."""


def parse_entries(text: str, *, place: str, device: str) -> dict[str, Entry]:
    """Return every case of a file by name; anything ambiguous is an error with its path inside the file."""
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if line.startswith(_MARKERS):
            raise PerfgateError("baseline-conflict", f"line {number} reads '{line[:40]}'", place=place)
    entries = own_entries(lines, place, device)
    return _yaml_entries(text, place, device) if entries is None else entries


def own_entries(lines: list[str], place: str, device: str) -> dict[str, Entry] | None:
    """Return the cases of a file if all its lines have our form, else None."""
    body = _body(lines)
    if body is None:
        return None
    entries: dict[str, Entry] = {}
    for number in range(body, len(lines)):
        line = lines[number].rstrip("\r")
        if not line or line.startswith("#"):
            continue
        entry = _own(line, number, device) or _single(line, number, place, device)
        if entry is None:
            return None
        if entry.name in entries:
            raise _duplicate(f"{place}: baselines", entry.name, number)
        entries[entry.name] = entry
    return entries


def _body(lines: list[str]) -> int | None:
    """Return the line after ``baselines:`` if the head has our form, else None."""
    heads = [(n, line.rstrip("\r")) for n, line in enumerate(lines) if line.rstrip("\r") and not line.startswith("#")][
        :2
    ]
    if [line for _, line in heads] != [f"perfgate: {SCHEMA}", "baselines:"]:
        return None
    return heads[1][0] + 1


def _own(line: str, number: int, device: str) -> Entry | None:
    own = own_fields(line, device)
    return Entry(name=own[0], fields=own[1], first=number, after=number + 1) if own is not None else None


def _single(line: str, number: int, place: str, device: str) -> Entry | None:
    """Return the entry of a line that is YAML by itself, such as one with an identity, else None."""
    import yaml

    if not re.match(r"  ['\"]", line):
        return None
    try:
        node = yaml.compose(line.strip(), _loader())
    except yaml.YAMLError:
        return None
    if not isinstance(node, yaml.MappingNode) or len(node.value) != 1:
        return None
    key, fields = node.value[0]
    if isinstance(fields, yaml.ScalarNode) and not fields.value:
        return None  # its fields follow, one a line
    return _entry(key, fields, place, device, number)


def _yaml_entries(text: str, place: str, device: str) -> dict[str, Entry]:
    import yaml

    try:
        root = yaml.compose(text, _loader())
    except (yaml.YAMLError, ValueError) as fault:
        raise PerfgateError("baseline-unreadable", " ".join(str(fault).split()), place=place) from fault
    pairs = dict(_pairs(root, f"{place}: "))
    _check_schema(pairs, place)
    if "baselines" not in pairs:
        raise PerfgateError("baseline-unreadable", "there is no 'baselines:'", place=place)
    unknown = [name for name in pairs if name not in {"perfgate", "baselines"}]
    if unknown:
        raise PerfgateError("baseline-unreadable", f"'{unknown[0]}' does not belong at the top", place=place)
    cases = pairs["baselines"][1]
    if isinstance(cases, yaml.ScalarNode) and not cases.value:
        return {}
    entries = [_entry(key, node, place, device, None) for _, (key, node) in _pairs(cases, f"{place}: baselines")]
    return {entry.name: entry for entry in entries}


def _check_schema(pairs: Mapping[str, tuple[Any, Any]], place: str) -> None:
    written = getattr(pairs["perfgate"][1], "value", None) if "perfgate" in pairs else None
    if not isinstance(written, str) or not written.isdigit():
        raise PerfgateError("baseline-unreadable", f"there is no 'perfgate: {SCHEMA}' at the top", place=place)
    if int(written) > SCHEMA:
        raise PerfgateError(
            "baseline-version", f"its form is version {written}, this one reads {SCHEMA}", place=f"{place}: perfgate"
        )


def _pairs(node: Any, place: str) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yield (key, (key node, value node)) of a mapping; raise for a repeated key."""
    import yaml

    if not isinstance(node, yaml.MappingNode):
        raise PerfgateError("baseline-unreadable", "a mapping is expected", place=place.removesuffix(": "))
    keys: set[str] = set()
    for key, child in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise PerfgateError("baseline-unreadable", "a key must be a text", place=place.removesuffix(": "))
        if key.value in keys:
            raise _duplicate(place.removesuffix(": "), key.value, key.start_mark.line)
        keys.add(key.value)
        yield key.value, (key, child)


def _duplicate(place: str, name: str, line: int) -> PerfgateError:
    return PerfgateError("baseline-duplicate", f"'{name}' appears twice, again in line {line + 1}", place=place)


def _entry(key: yaml.ScalarNode, node: yaml.Node, place: str, device: str, line: int | None) -> Entry:
    where = f"{place}: baselines.'{key.value}'"
    if not key.value:
        raise PerfgateError("baseline-value", "a case without a name", place=f"{place}: baselines")
    fields = parse_fields(_plain(node, where, set()), where, device)
    first = key.start_mark.line if line is None else line
    after = first + 1 if line is not None else max(first + 1, _line_after(node))
    return Entry(name=key.value, fields=fields, first=first, after=after)


def _line_after(node: yaml.Node) -> int:
    """Return the line after a value; a block ends where the next token begins."""
    block = getattr(node, "flow_style", None) is False
    return int(node.end_mark.line + (0 if block or not node.end_mark.column else 1))


def _plain(node: yaml.Node, place: str, met: set[int]) -> Node:
    """Return a node as texts, lists and mappings; refuse repeated aliases, which could expand without end."""
    import yaml

    if isinstance(node, yaml.ScalarNode):
        return str(node.value)
    if id(node) in met:
        what = "an alias (*name) stands for a list or a mapping that this case has already"
        raise PerfgateError("baseline-unreadable", what, place=place)
    met.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        return [_plain(child, place, met) for child in node.value]
    return {key: _plain(child, f"{place}.{key}", met) for key, (_, child) in _pairs(node, place)}


def _loader() -> Any:
    """Return a loader that keeps every scalar as text, so that a commit of digits stays a commit."""
    import yaml

    return getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def edited(text: str, put: Mapping[str, Baseline], drop: Iterable[str] = (), *, place: str, device: str) -> str:
    """Return the text with these lines added and those removed; "" if no case is left."""
    entries = parse_entries(text, place=place, device=device) if text.strip() else {}
    gone = set(drop) - set(put)
    names = (set(entries) | set(put)) - gone
    if not names:
        return ""
    written = {name: render_line(name, baseline) for name, baseline in put.items()}
    lines = (text if text.strip() else HEADER).rstrip("\n").split("\n")
    result = "\n".join(_spliced(lines, entries, written, gone)) + "\n"
    if not _holds(result, names, place, device):
        result = _rewritten(entries, written, gone, device)
        _check_written(result, names, place, device)
    return result


def is_in_windows_lines(text: str) -> bool:
    """Return whether most lines end in CRLF, as in a checkout of git on Windows."""
    return 2 * text.count("\r\n") > text.count("\n")


def _spliced(lines: list[str], entries: Mapping[str, Entry], written: Mapping[str, str], gone: set[str]) -> list[str]:
    """Return the lines with some replaced, removed and added, each new one before the next name."""
    replaced: dict[int, list[str]] = {}
    for name, entry in entries.items():
        if name in gone or name in written:
            replaced |= {number: [] for number in range(entry.first, trimmed(lines, entry))}
        if name in written:
            replaced[entry.first] = [written[name]]
    ahead: dict[int, list[str]] = {}
    for name in sorted(set(written) - set(entries)):
        behind = min((n for n in entries if n > name), default=None)
        at = len(lines) if behind is None else _above_comments(lines, entries[behind].first)
        ahead.setdefault(at, []).append(written[name])
    lines_after = [line for n, old in enumerate(lines) for line in (*ahead.get(n, ()), *replaced.get(n, [old]))]
    return [*lines_after, *ahead.get(len(lines), ())]


def _above_comments(lines: list[str], number: int) -> int:
    while lines[number - 1].lstrip().startswith("#"):
        number -= 1
    return number


def _holds(text: str, names: set[str], place: str, device: str) -> bool:
    """Return whether the edited text has these cases; a file indented by hand may not."""
    try:
        return set(parse_entries(text, place=place, device=device)) == names
    except PerfgateError:
        return False


def _check_written(text: str, names: set[str], place: str, device: str) -> None:
    """Refuse to write a text that later runs could not read."""
    written = set(parse_entries(text, place=place, device=device))
    if written != names:
        missing = ", ".join(ascii(name) for name in sorted(written ^ names)[:3])
        raise PerfgateError("baseline-unwritable", f"the line of {missing} does not read back", place=place)


def trimmed(lines: list[str], entry: Entry) -> int:
    """Return the end of a block without trailing blank lines and comments, which belong to what follows."""
    after = min(entry.after, len(lines))
    while after - 1 > entry.first and (not lines[after - 1].strip() or lines[after - 1].lstrip().startswith("#")):
        after -= 1
    return after


def _rewritten(entries: Mapping[str, Entry], written: Mapping[str, str], gone: set[str], device: str) -> str:
    from pytest_perfgate.model.plan import CaseKey

    def line(name: str) -> str:
        entry = entries[name]
        return render_line(name, Baseline(key=CaseKey(nodeid=name), device=device, **entry.fields))

    names = sorted((set(entries) | set(written)) - gone)
    return HEADER + "".join(f"{written.get(name) or line(name)}\n" for name in names)


_SAFE = r"[^\"\\\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]*"

_SHARE, _COUNT, _DAY = r"([0-9]+(?:\.[0-9]+)?)%", r"([1-9][0-9]{0,8})", r"([0-9]{4}-[0-9]{2}-[0-9]{2})"

_TEXT = rf"\"({_SAFE})\""

_FORMS = {
    "scatter": _SHARE,
    "runs": _COUNT,
    "detects": _SHARE,
    "processes": _COUNT,
    "anchor": r"([0-9]+(?:\.[0-9]+)?)(ns|us|ms|s)",
    "anchored": _DAY,
    "commit": f"({WORD})",
    "who": _TEXT,
    "when": _DAY,
    "why": _TEXT,
    "expires": _DAY,
    "environment": f"({WORD})",
    "counted": _TEXT,
    "power": "(limited)",
    "identity": rf"\{{((?:(?:, )?[a-z]+: (?:{WORD}|\"{_SAFE}\"))*)\}}",
}
"""The form of each field after the time; a missing form raises at import."""

_NAME = r"'((?:[^'\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]|'')+)'"

_ONE_FIGURE = rf"(?!(?:{'|'.join((*FIELDS, *FORMER))}): )(?:{TITLE}|{_NAME.replace('((', '(?:(')}): {FIGURE}"

_EACH_FIGURE = re.compile(rf"(?:, )?(?:({TITLE})|{_NAME}): ({FIGURE})", re.ASCII)

_SPELLINGS = [(name, *(old for old, new in FORMER.items() if new == name)) for name in FIELDS[1:]]

_OWN = re.compile(
    rf"  {_NAME}: \{{(?:time: ([0-9]+(?:\.[0-9]+)?)(ns|us|ms|s)(?=[,}}]))?((?:(?:, |(?<=\{{)){_ONE_FIGURE})*)"
    + "".join(f"(?:, (?:{'|'.join(names)}): {_FORMS[names[0]]})?" for names in _SPELLINGS)
    + r"\}\Z"
)
"""Matches a line without notes in its identity; others are read as YAML."""

_PART = re.compile(rf"(?:, )?([a-z]+): (?:({WORD})|\"({_SAFE})\")")

_PARTS = frozenset(IDENTITY) - {"notes"}

_TEXTS = tuple(name for name in FIELDS if _FORMS.get(name) in {f"({WORD})", _TEXT, _DAY})

_DAYS = tuple(name for name in FIELDS if _FORMS.get(name) == _DAY)

_LARGEST = 1e30


def own_fields(line: str, device: str) -> tuple[str, dict[str, Any]] | None:
    """Return a case's name and the fields of a Baseline; None if the line has another form."""
    match = _OWN.match(line)
    if match is None:
        return None
    name, time, unit, figures, *rest = match.groups()
    scatter, runs, detects, processes, anchor, anchor_unit, *texts, power, identity = rest
    if not all(0 < float(number) < _LARGEST for number in (time, anchor) if number) or not (time or figures):
        return None
    if not all(float(number) < _LARGEST for number in (scatter, detects) if number):
        return None
    fields: dict[str, Any] = {"time": float(time) * TIME_UNITS[unit]} if time else {}
    if figures:
        accepted = _EACH_FIGURE.findall(figures)
        titles = [bare or own.replace("''", "'") for bare, own, _ in accepted]
        read = tuple(parse_figure(title, text) for title, (_, _, text) in zip(titles, accepted))
        if any(map(is_taken, titles)) or None in read or len({one.title for one in read if one}) < len(read):
            return None
        fields["figures"] = read
    if scatter:
        fields["scatter"] = float(scatter) / 100
    if runs:
        fields["runs"] = int(runs)
    if detects:
        fields["detects"] = float(detects) / 100
    if processes:
        fields["processes"] = int(processes)
    if anchor:
        fields["anchor"] = float(anchor) * TIME_UNITS[anchor_unit]
    fields |= {k: t for k, t in zip(_TEXTS, texts) if t is not None}
    if not all(_on_the_calendar(fields[name]) for name in _DAYS if name in fields):
        return None
    if power:
        fields["limited"] = True
    if identity is not None:
        fields["identity"] = _identity(identity, device)
        if fields["identity"] is None:
            return None
    return name.replace("''", "'"), fields


@lru_cache(maxsize=4096)
def _on_the_calendar(day: str) -> bool:
    try:
        dt.date.fromisoformat(day)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=256)
def _identity(text: str, device: str) -> Identity | None:
    """Return an identity without notes; most lines of a file have the same one."""
    pairs = [(key, word or quoted) for key, word, quoted in _PART.findall(text)]
    parts = dict(pairs)
    return Identity(**{"device": device, **parts}) if len(parts) == len(pairs) and parts.keys() <= _PARTS else None
