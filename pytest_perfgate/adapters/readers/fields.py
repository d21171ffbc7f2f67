"""Parts shared by readers of text: rows of CSV, numbers of other locales, members of JSON, whom a file names."""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_perfgate.adapters.system.files import first_bytes, unpacked_head
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.privacy import Names
from pytest_perfgate.model.profiles import REPORTS, SQLITE
from pytest_perfgate.model.values import regex

Row = dict[str, str]

Fault = Callable[[str, str], PerfgateError]
"""Makes an error from a fault and its consequence."""

_SHIFTED = "a missing or extra cell moves every later figure into the wrong column"


_WINDOWS = {0xDC00 + byte: bytes([byte]).decode("cp1252", "replace") for byte in range(0x80, 0x100)}
"""Bytes that are no UTF-8, as a Windows of western Europe means them: the space between its thousands is one."""


def text_of(data: bytes) -> str:
    """Return a table's text, of any line ends; Windows may have written it in UTF-16 or in its own code page."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = data.decode("utf-16", "replace")
    else:
        text = data.decode("utf-8-sig", "surrogateescape").translate(_WINDOWS)
    return text.replace("\r\n", "\n").replace("\r", "\n")


class PageLines:
    """The lines of a page from its header on, numbered as in the file."""

    def __init__(self, lines: Iterable[str], mark: str, first: int, fault: Fault) -> None:
        self._lines, self._mark, self._first, self._fault = lines, mark, first, fault

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield (line, cells) of every record; a record may span several lines."""
        csv.field_size_limit(1 << 24)
        reader = csv.reader(self._lines, delimiter=self._mark, strict=True)
        while True:
            begins = reader.line_num
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise self._fault(f"the table cannot be read, at line {self._first + begins}: {error}", "") from error
            if cells:
                yield self._first + begins, cells


def header_of(cells: Sequence[str], line: int, fault: Fault) -> list[str]:
    """Return the column names; refuse two columns of one name, which would be read as one."""
    twice = [name for name, count in Counter(cells).items() if count > 1 and name]
    if twice:
        raise fault(f"the header in line {line} has the column {twice[0]!r} {cells.count(twice[0])} times", "")
    return list(cells)


def row_of(header: list[str], cells: list[str], line: int, fault: Fault, widths: Collection[int]) -> Row:
    """Return a record by column."""
    return dict(zip(header, cells_of(header, cells, line, fault, widths)))


def cells_of(header: list[str], cells: list[str], line: int, fault: Fault, widths: Collection[int] = ()) -> list[str]:
    """Return the cells of a record: as many as the header has, or one of the other ``widths``."""
    if cells == header:
        raise fault(f"the header is repeated in line {line}", "a file that was appended to itself counts twice")
    if len(cells) != len(header) and len(cells) not in widths:
        short = "it is cut short: " if len(cells) < len(header) else ""
        raise fault(f"{short}line {line} has {len(cells)} cells, and the header has {len(header)}", _SHIFTED)
    return cells


def refuse_zeros(text: str, fault: Fault) -> None:
    """Refuse a text with NUL bytes, which replace lost content."""
    at = text.find("\0")
    if at >= 0:
        line = 1 + text.count("\n", 0, at)
        why = "a part of the file was overwritten or never written, and what was there is missing from every figure"
        raise fault(f"line {line} holds {text.count(chr(0)):,} NUL bytes", why)


def refuse_repeated(keys: Iterable[tuple[int, tuple[str, ...]]], what: str, fault: Fault) -> None:
    """Refuse two rows with the same (line, key), since the second would be counted too."""
    lines: dict[tuple[str, ...], int] = {}
    for line, key in keys:
        before = lines.setdefault(key, line)
        if before != line:
            named = " ".join(filter(None, key))[:80]
            raise fault(f"{what} {named} appears twice, in line {before} and in line {line}", "both would count")


_SPACES = regex(r"(?<=\d)[\s'\u2019](?=\d{3}(?:\D|$))")
"""Matches thousands separators other than comma and point: any space, an apostrophe."""

_NUMERAL = regex(r"[+-]?[\d.,]*\d[\d.,]*(?:[eE][+-]?\d+)?%?")

_COMMA_DECIMAL = regex(r"[+-]?(?:\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}|\d+,(?!\d{3}$)\d+|(?:0|\d{4,}),\d+)")

_POINT_DECIMAL = regex(r"[+-]?(?:\d{1,3}(?:,\d{2,3})+\.\d+|\d{1,3}(?:,\d{3}){2,}|\d+\.(?!\d{3}$)\d+|(?:0|\d{4,})\.\d+)")

_POINT_THOUSANDS = regex(r"[+-]?\d{1,3}(?:\.\d{3})+,\d+")


def numeral(cell: str | None) -> str:
    """Return the numeral at the start of a cell, without instances in brackets and spaces between thousands."""
    return _SPACES.sub("", (cell or "").partition(" (")[0].strip())


_POINT_GROUPS = regex(r"[+-]?[1-9]\d{0,2}(?:\.\d{3})+")


def decimal_comma(cells: Iterable[str | None], counts: Iterable[str | None] = ()) -> bool:
    """Return whether more of these numerals require a decimal comma than a decimal point.

    ``counts`` are those in a unit without fractions: a point in ``117.344`` ns separates thousands.
    """
    texts = [numeral(cell) for cell in cells]
    commas = sum(1 for text in texts if _COMMA_DECIMAL.fullmatch(text))
    commas += sum(1 for cell in counts if _POINT_GROUPS.fullmatch(numeral(cell)))
    return commas > sum(1 for text in texts if _POINT_DECIMAL.fullmatch(text))


def with_point(cell: str) -> str:
    """Return a numeral with a decimal comma written with a point; other text unchanged."""
    text = numeral(cell)
    return text.replace(".", "").replace(",", ".") if _NUMERAL.fullmatch(text) else cell


def parse_numeral(cell: str | None) -> float | None:
    """Return ``4,963,609.19`` as a number, with any thousands separators; ``1.234,56`` can be read in one way only."""
    text = numeral(cell)
    try:
        return float(with_point(text) if _POINT_THOUSANDS.fullmatch(text) else text.replace(",", ""))
    except ValueError:
        return None


_YEAR = 365 * 86400e9


def read_json(path: Path, tool: str) -> dict[str, Any]:
    """Return the JSON object of a file."""
    import msgspec

    try:
        data = path.read_bytes()
    except OSError as fault:
        raise PerfgateError("artifact-unreadable", f"it cannot be opened: {fault}", place=str(path)) from fault
    try:
        body = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        body = _lenient(data, path, tool, fault)
    if not isinstance(body, dict):
        raise PerfgateError("artifact-unreadable", f"{tool} writes an object, not this", place=str(path))
    return body


def _lenient(data: bytes, path: Path, tool: str, fault: Exception) -> Any:
    """Parse with Python's own JSON, which accepts NaN and a byte-order mark, as some tools write."""
    import json

    try:
        return json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as later:
        cause = later if isinstance(later, json.JSONDecodeError) and b"NaN" in data else fault  # NaN itself is read
        raise PerfgateError("artifact-unreadable", f"it is no JSON of {tool}: {cause}", place=str(path)) from fault


def number(field: Any) -> float | None:
    """Return a finite number, also from text; None for anything else."""
    try:
        read = float(field) if not isinstance(field, bool) and field is not None else math.nan
    except (OverflowError, TypeError, ValueError):
        return None
    return read if math.isfinite(read) else None


def nanoseconds(field: Any, unit: float = 1e9) -> float | None:
    """Return a time in nanoseconds, positive and less than a year, or None."""
    read = number(field)
    return read * unit if read is not None and 0 < read * unit < _YEAR else None


def objects(field: Any, place: str) -> list[Any]:
    """Return a list of objects; None gives an empty one."""
    listed = [] if field is None else field
    if not isinstance(listed, list) or not all(isinstance(one, Mapping) for one in listed):
        raise PerfgateError("artifact-unreadable", "a list of objects belongs here", place=place)
    return listed


def mapping(field: Any) -> Mapping[str, Any]:
    """Return an object, or ``{}``. Use it only for facts that no figure needs."""
    return field if isinstance(field, Mapping) else {}


def list_of(field: Any) -> list[Any]:
    return field if isinstance(field, list) else []


def member(node: Any, name: str, kind: type, place: str) -> Any:
    """Return a member; raise if it is missing or of another type."""
    value = node.get(name) if isinstance(node, Mapping) else None
    if not isinstance(value, kind):
        raise PerfgateError("artifact-unreadable", f"'{name}' is missing or of another type", place=place)
    return value


PAIR = regex(r"(?<![A-Za-z_])([A-Za-z_]\w{0,200})=([^\0\n]*)")
"""A variable and its text; names are bounded, since each place in one long word would else be tried to its end."""

_USER, _HOST, _FOLDER = (
    regex(rf"(?:\w+[ _])?(?:{words})\Z", re.IGNORECASE)
    for words in (
        "user|user[ _]?name|logname|login|author",
        "host|host[ _]?name|computer[ _]?name|machine[ _]?name|node[ _]?name|nodename|target[ _]?name",
        "pwd|oldpwd|cwd|submit_dir|working[ _]director(?:y|ies)",
    )
)
"""Variables that name a person, a machine, or the folder in which the program was started."""


_NAMES = regex(r'"((?i:host_?name|computer_?name|user_?name|logname)|USER|HOST)"\s*:\s*"([^"\\]+)"')
_MACHINES = (
    regex(r'"machine_info"\s*:.{,4096}?"node"\s*:\s*"([^"\\]+)"', re.DOTALL),
    regex(r'"params"\s*:\s*\{[^{}]*?"machine"\s*:\s*"([^"\\]+)"'),
    regex(r"(?<![A-Za-z])([A-Za-z][\w.-]{0,253}?)_\d+\.\d+\.pt\.trace\.json"),
)
"""Keys of the machine in files of pytest-benchmark and asv, and in the names of torch's traces."""


_EDGE = 1 << 16


def named_by(paths: Iterable[Path]) -> Names:
    """Return the names that files give: in a heading, a variable, a column, or the file's own name."""
    return known_names([pair for path in paths if path.is_file() for pair in _pairs(path, first_bytes(path, _EDGE))])


def _pairs(path: Path, head: bytes) -> Iterator[tuple[str, str]]:
    if head.startswith(SQLITE):
        from pytest_perfgate.adapters.readers.nsys_report import pairs_of_export

        yield from pairs_of_export(path)
        return
    text = (unpacked_head(head, _EDGE) or head).decode(errors="replace")
    yield from _NAMES.findall(text)
    yield from PAIR.findall(text) if path.suffix in REPORTS else ()
    yield from (("host", host) for pattern in _MACHINES for host in pattern.findall(f"{text}\n{path.name}"))
    before, header, rows = text.partition('"Host Name"')
    if header:
        place = before.rpartition("\n")[2].count('",')
        yield from (("host", row[place]) for row in csv.reader(rows.splitlines()[1:]) if row[place : place + 1] > [""])


def known_names(pairs: Sequence[tuple[str, str]]) -> Names:
    """Return the names in pairs of a variable and its text."""
    users, hosts, folders = (
        {text.strip() for name, text in pairs if pattern.match(name)} for pattern in (_USER, _HOST, _FOLDER)
    )
    short = {host.partition(".")[0] for host in hosts}
    roots = frozenset(folder.rstrip("/") for folder in folders if folder.count("/") > 2)
    return Names(users=frozenset(users), hosts=frozenset(hosts | short), roots=roots)
