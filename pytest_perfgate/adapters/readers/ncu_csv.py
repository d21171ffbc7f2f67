"""``ncu --csv``: pages in long form (a line a metric), summaries of it, and wide form (a column a metric)."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pytest_perfgate.adapters.readers.ncu_csv_source import PAGE as SOURCE_PAGE
from pytest_perfgate.adapters.readers.ncu_csv_source import parse_source
from pytest_perfgate.adapters.readers.ncu_facts import kernel_facts
from pytest_perfgate.adapters.readers.ncu_labels import full_name, scaled
from pytest_perfgate.adapters.readers.numerals import decimal_comma, parse_numeral, with_point
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.kernel import Counter, KernelFacts
from pytest_perfgate.model.problem import Finding
from pytest_perfgate.model.quantity import Interval

_FIRST, _NAME = "ID", "Kernel Name"
_SUMMED = ("Process ID", _NAME, "Context", "Stream", "Block Size", "Grid Size", "Device")
"""What tells the lines of a summary apart, which has no ``ID``."""
_LAUNCH = (_FIRST, "Host Name", "Process ID", "Process Name", _NAME)
"""What tells launches apart: every process counts its own from zero."""
_WHO = frozenset((*_SUMMED, _FIRST, "Process Name", "Host Name", "CC", "Invocations"))
_VALUES = frozenset(("Metric Value", "Minimum", "Maximum", "Average", "Estimated Speedup"))
_HEADER = re.compile(r'(?:^"?|")(?:ID|Process ID)"?[,;].*"?Kernel Name"?', re.MULTILINE)
"""Quoted, it may follow what the program printed without ending its line."""
_SESSION = re.compile(r'^"?(?:Launch|Session|Device) Attribute"?[,;]', re.MULTILINE)
_AS_TEXT = re.compile(r"^ +Section: .+\n +-{5,}|^ +-{5,}[ -]*\n +Metric Name +Metric Unit", re.MULTILINE)
_DIMENSIONS = re.compile(r"\(\s*(\d+),\s*(\d+),\s*(\d+)\s*\)")
_SHAPE = re.compile(r"(?<=,)\(\d+, *\d+, *\d+\)(?=,)")
_DURATION = "gpu__time_duration.sum"
_WITH_UNITS = "export it again with its units: ncu --import FILE.ncu-rep --csv --page raw"
_TICKS = ("ns", "nsecond")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
Row = dict[str, str]


def parse_csv(data: bytes, place: str) -> Iterator[KernelFacts]:
    """Every launch of the pages; several runs may have written one file."""
    text = data.decode("utf-16" if data.startswith(_UTF16) else "utf-8-sig", "replace")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    pages = _pages(text)
    if not pages and SOURCE_PAGE.search(text):
        yield from parse_source(text, place)
        return
    kernels = [facts for page in pages for facts in _kernels(page, place)]
    if not kernels:
        raise (
            _no_page(text, place)
            if not pages
            else PerfgateError("ncu-nothing", "the page holds no kernel", place=place)
        )
    yield from (replace(facts, index=index) for index, facts in enumerate(kernels))


def _pages(text: str) -> list[str]:
    """From each header to the next: after whatever ncu and the program printed."""
    starts = [found.start() for found in _HEADER.finditer(text)]
    return [text[begin:end] for begin, end in zip(starts, [*starts[1:], len(text)])]


def _kernels(page: str, place: str) -> Iterator[KernelFacts]:
    rows = [row for row in _rows(page, place) if not _printed(row)]
    if rows:
        parse = _long if "Metric Name" in rows[0] else _wide
        yield from parse(_pointed(rows), place)


def _no_page(text: str, place: str) -> PerfgateError:
    """What it is instead, and which page to export."""
    what, mend = "neither an .ncu-rep nor a page of ncu --csv", ""
    if _SESSION.search(text):
        what = "it is the session page, which holds no kernel"
        mend = "export the metrics: ncu --import FILE.ncu-rep --csv --page raw"
    elif _AS_TEXT.search(text):
        what = "it is a page as text, which only people can read"
        mend = "add --csv: ncu --import FILE.ncu-rep --csv --page raw"
    elif "==PROF==" in text or "==ERROR==" in text:
        said = [line for line in text.splitlines() if line.startswith(("==ERROR==", "==WARNING=="))]
        if "ERR_NVGPUCTRPERM" in text:
            return PerfgateError("ncu-permission", "ncu might not read the counters: ERR_NVGPUCTRPERM", place=place)
        what = f"ncu printed no page: {said[-1].rpartition('== ')[2]}" if said else "ncu printed no page"
    return PerfgateError("ncu-report", what, place=place, mend=mend)


def _rows(page: str, place: str) -> list[Row]:
    csv.field_size_limit(1 << 24)
    lines = [_quoted(line) for line in io.StringIO(page) if not line.startswith("==")]
    mark = ";" if lines[0].count(";") > lines[0].count(",") else ","
    try:
        rows = [dict(row) for row in csv.DictReader(lines, delimiter=mark, strict=True)]
    except csv.Error as error:
        raise PerfgateError("ncu-report", f"the CSV does not read: {error}", place=place) from error
    if any(map(_overflows, rows)):
        what = "a row has more cells than the page has columns: the quotes around names that hold commas are gone"
        raise PerfgateError("ncu-report", what, place=place)
    if rows and (_ends_inside(lines[-1], rows[-1]) or any(_short(row) and not _printed(row) for row in rows)):
        raise PerfgateError("ncu-report", "the page is cut short: a line ends inside its row", place=place)
    return rows


def _overflows(row: Row) -> bool:
    """Whether a line of a metric goes on behind the last column: then a comma of a name has moved its cells."""
    behind = row.get(None)  # type: ignore[call-overload]
    return "Metric Name" in row and bool(behind) and any(behind) and _is_number(next(iter(row.values())))


def _quoted(line: str) -> str:
    """A line whose quotes something has taken away, with those again that its shapes need."""
    return line if '"' in line else _SHAPE.sub(r'"\g<0>"', line)


def _ends_inside(line: str, row: Row) -> bool:
    """Whether the last line of a page ends before its row does."""
    whole = line.endswith("\n") or not (line.count('"') % 2 or (_short(row) and _is_number(next(iter(row.values())))))
    return not whole


def _printed(row: Row) -> bool:
    """Whether a line is none of the page: the program printed it, and it says no kernel."""
    return _short(row) and (row.get(_NAME) is None or not _is_number(next(iter(row.values()))))


def _is_number(cell: str | None) -> bool:
    return parse_numeral(cell) is not None


def _short(row: Row) -> bool:
    """Whether a row ends before its value; lines of metrics end before the columns of rules."""
    if "Metric Name" not in row:
        return None in row.values()
    return _value(row) is None


def _value(row: Row) -> str | None:
    """Of a line of a metric; the mean of all launches in a summary."""
    return row.get("Average") if "Average" in row else row.get("Metric Value")


def _pointed(rows: list[Row]) -> list[Row]:
    """Numbers with a decimal point, whatever the locale that ncu ran under."""
    told = _VALUES if "Metric Name" in rows[0] else frozenset(k for k in rows[0] if isinstance(k, str)) - _WHO
    if not decimal_comma((row.get(name) for row in rows for name in told), _without_parts(rows)):
        return rows
    return [{k: with_point(v) if k in told and isinstance(v, str) else v for k, v in row.items()} for row in rows]


def _without_parts(rows: Sequence[Row]) -> list[str | None]:
    """Times in nanoseconds, of which the timer counts whole ones."""
    if "Metric Name" in rows[0]:
        return [row.get("Metric Value") for row in rows if row.get("Metric Unit") in _TICKS]
    columns = [name for name, unit in _cells(rows[0]) if unit in _TICKS]
    return [row.get(name) for row in rows[1:] for name in columns]


def _long(rows: Sequence[Row], place: str) -> Iterator[KernelFacts]:
    """A line a metric: lines of one ``ID`` are one launch, results of rules among them."""
    launches: dict[tuple[str | None, ...], list[Row]] = {}
    for row in rows:
        which = tuple(row.get(name) for name in (_LAUNCH if row.get(_FIRST) else _SUMMED))
        launches.setdefault(which, []).append(row)
    for index, lines in enumerate(launches.values()):
        counters = dict(_launch_counters(lines[0]))
        for line in lines:
            counters.update(_counters(line.get("Metric Name"), line.get("Metric Unit"), _value(line)))
        yield _facts(lines[0], counters, tuple(_rules(lines)), (place, index))


def _wide(rows: Sequence[Row], place: str) -> Iterator[KernelFacts]:
    """A column a metric; the line under the header holds the units."""
    units = rows[0] if not (rows[0].get(_FIRST) or rows[0].get(_NAME) or "").strip() else {}
    launches = rows[1:] if units else rows
    for index, row in enumerate(launches):
        counters = dict(_launch_counters(row))
        for name, cell in _cells(row):
            counters.update(_counters(name, units.get(name, ""), cell))
        yield _facts(row, counters, (), (place, index))


def _cells(row: Row) -> Iterator[tuple[str, str | None]]:
    """What stands under a column; cells behind the last column have no name."""
    return ((name, cell) for name, cell in row.items() if isinstance(name, str))


def _facts(
    row: Row, counters: Mapping[str, Counter], findings: tuple[Finding, ...], place: tuple[str, int]
) -> KernelFacts:
    time = counters.get(_DURATION)
    if time is not None and time.unit != "ns":
        said = f"in '{time.unit}', which is no unit of time" if time.unit else "without a unit"
        what, why = f"{_DURATION} is told {said}", "the number alone may be of nanoseconds or of seconds"
        raise PerfgateError("ncu-report", what, why=why, place=place[0], mend=_WITH_UNITS)
    capability = (row.get("CC") or "").strip()
    arch = f"sm_{capability.replace('.', '')}" if re.fullmatch(r"\d+\.\d", capability) else ""
    return kernel_facts(row.get(_NAME) or "", counters, texts={"arch": arch}, place=place, findings=findings)


def _counters(name: str | None, unit: str | None, cell: str | None) -> Iterator[tuple[str, Counter]]:
    """The cell under its full name, in base units; a cell that is no number is no counter."""
    number = parse_numeral(cell)
    if not name or number is None or not math.isfinite(number):
        return
    value, base = scaled(number, (unit or "").strip())
    full = full_name(name.strip(), base)
    yield full, Counter(name=full, value=value, unit=base)


def _launch_counters(row: Row) -> Iterator[tuple[str, Counter]]:
    for column, stem in (("Block Size", "launch__block_dim_"), ("Grid Size", "launch__grid_dim_")):
        found = _DIMENSIONS.search(row.get(column) or "")
        if found:
            for axis, text in zip("xyz", found.groups()):
                yield f"{stem}{axis}", Counter(name=f"{stem}{axis}", value=float(text))


def _rules(lines: Sequence[Row]) -> Iterator[Finding]:
    for line in lines:
        if line.get("Rule Name"):
            speedup = parse_numeral(line.get("Estimated Speedup"))
            yield Finding(
                title=line["Rule Name"],
                detail=line.get("Rule Description") or "",
                trigger=f"rule={line['Rule Name']}",
                gain=Interval(low=0.0, high=speedup / 100) if speedup else None,
                doubt="a local estimate: of the part it concerns, not end to end"
                if line.get("Estimated Speedup Type") == "local"
                else "",
                scope="ncu rule",
            )
