"""The text of baseline files, edited line by line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pytest_perfgate.adapters.stores.baseline_line import TITLE, Node, parse_fields, render_line
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Baseline
from pytest_perfgate.model.values import value

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
        own = own_nodes(line)
        if own is None:
            return None
        name, nodes = own
        if name in entries:
            raise _duplicate(f"{place}: baselines", name, number)
        entries[name] = _entry(name, nodes, place, device, (number, number + 1))
    return entries


def _body(lines: list[str]) -> int | None:
    """Return the line after ``baselines:`` if the head has our form, else None."""
    texts = [line.rstrip("\r") for line in lines]
    heads = [number for number, text in enumerate(texts) if text and not text.startswith("#")][:2]
    if [texts[number] for number in heads] != [f"perfgate: {SCHEMA}", "baselines:"]:
        return None
    return heads[1] + 1


def _yaml_entries(text: str, place: str, device: str) -> dict[str, Entry]:
    import yaml

    try:
        # This loader keeps every scalar as text, so that a commit of digits stays a commit.
        root = yaml.compose(text, getattr(yaml, "CBaseLoader", yaml.BaseLoader))
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
    entries: dict[str, Entry] = {}
    for name, (key, node) in _pairs(cases, f"{place}: baselines"):
        first = key.start_mark.line
        nodes = _plain(node, f"{place}: baselines.'{name}'", set())
        entries[name] = _entry(name, nodes, place, device, (first, max(first + 1, _line_after(node))))
    return entries


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


def _entry(name: str, nodes: Node, place: str, device: str, lines: tuple[int, int]) -> Entry:
    if not name:
        raise PerfgateError("baseline-value", "a case without a name", place=f"{place}: baselines")
    fields = parse_fields(nodes, f"{place}: baselines.'{name}'", device)
    return Entry(name=name, fields=fields, first=lines[0], after=lines[1])


def _line_after(node: yaml.Node) -> int:
    """Return the line after a value; a block ends where the next token begins."""
    block = getattr(node, "flow_style", None) is False
    return int(node.end_mark.line + (0 if block or not node.end_mark.column else 1))


def _plain(node: yaml.Node, place: str, above: set[int]) -> Node:
    """Return a node as texts, lists and mappings; refuse repeated aliases, which could expand without end."""
    import yaml

    if isinstance(node, yaml.ScalarNode):
        return str(node.value)
    if id(node) in above:
        what = "an alias (*name) stands for a list or a mapping that this case has already"
        raise PerfgateError("baseline-unreadable", what, place=place)
    above.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        return [_plain(child, place, above) for child in node.value]
    return {key: _plain(child, f"{place}.{key}", above) for key, (_, child) in _pairs(node, place)}


def edited(text: str, put: Mapping[str, Baseline], drop: Iterable[str] = (), *, place: str, device: str) -> str:
    """Return the text with these lines added and those removed; "" if no case is left."""
    entries = parse_entries(text, place=place, device=device) if text.strip() else {}
    removed = set(drop) - set(put)
    names = (set(entries) | set(put)) - removed
    if not names:
        return ""
    written = {name: render_line(name, baseline) for name, baseline in put.items()}
    lines = (text if text.strip() else HEADER).rstrip("\n").split("\n")
    result = "\n".join(_edited_lines(lines, entries, written, removed)) + "\n"
    if not _holds(result, names, place, device):
        result = _rewritten(entries, written, removed, device)
        _check_written(result, names, place, device)
    return result


def is_in_windows_lines(text: str) -> bool:
    """Return whether most lines end in CRLF, as in a checkout of git on Windows."""
    return 2 * text.count("\r\n") > text.count("\n")


def _edited_lines(
    lines: list[str], entries: Mapping[str, Entry], written: Mapping[str, str], removed: set[str]
) -> list[str]:
    """Return the lines with some replaced, removed and added, each new one before the next name."""
    replaced: dict[int, list[str]] = {}
    for name, entry in entries.items():
        if name in removed or name in written:
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


def _rewritten(entries: Mapping[str, Entry], written: Mapping[str, str], removed: set[str], device: str) -> str:
    from pytest_perfgate.model.plan import CaseKey

    lines = dict(written)
    for name in entries.keys() - written.keys() - removed:
        lines[name] = render_line(name, Baseline(key=CaseKey(nodeid=name), device=device, **entries[name].fields))
    return HEADER + "".join(f"{lines[name]}\n" for name in sorted(lines))


_CONTROL = r"\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff"

_ESCAPE = r'\\(?:["\\bfnrt]|u(?![dD][89a-fA-F])[0-9a-fA-F]{4})'

_QUOTED = rf'"[^"\\{_CONTROL}]*(?:{_ESCAPE}[^"\\{_CONTROL}]*)*"'

_KEY = rf"{TITLE}|'(?:[^'{_CONTROL}]|'')+'|{_QUOTED}"

_PLAIN = r"-?[0-9A-Za-z][0-9A-Za-z.+%/-]*(?: [0-9A-Za-z.+%/-]+)*"

_LEAF = rf'[^{{}}"]*(?:{_QUOTED}[^{{}}"]*)*'

_FIELD = re.compile(
    rf"({_KEY}): (?:({_PLAIN}|{_QUOTED})|\{{((?:{_LEAF}\{{{_LEAF}\}})*{_LEAF})\}})(?:, (?!\Z)|\Z)", re.ASCII
)

_LINE = re.compile(rf"  ({_KEY}): \{{(.*)\}}\Z", re.ASCII)


def own_nodes(line: str) -> tuple[str, Node] | None:
    """Return a case's name and its fields, as YAML would read them; None if the line has another form than ours."""
    match = _LINE.match(line)
    nodes = _nodes(match[2]) if match else None
    return (_unquoted(match[1]), nodes) if match and nodes is not None else None


@lru_cache(maxsize=256)
def _nodes(text: str) -> Node | None:
    """Return the fields between two braces; most lines of a file have the same identity."""
    nodes: dict[str, Any] = {}
    end = 0
    while end < len(text):
        match = _FIELD.match(text, end)
        if match is None:
            return None
        key, leaf, inner = match.groups()
        name, node = _unquoted(key), _nodes(inner) if leaf is None else _unquoted(leaf)
        if node is None or name in nodes:
            return None
        nodes[name] = node
        end = match.end()
    return nodes


def _unquoted(text: str) -> str:
    if text[0] == "'":
        return text[1:-1].replace("''", "'")
    if text[0] == '"':
        return str(json.loads(text)) if "\\" in text else text[1:-1]
    return text
