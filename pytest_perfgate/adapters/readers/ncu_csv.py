"""``ncu --csv``: pages in long form (one line a metric), summaries of it, and wide form (one column a metric)."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from pytest_perfgate.adapters.readers import ncu_labels
from pytest_perfgate.adapters.readers.fields import (
    PageLines,
    Row,
    decimal_comma,
    header_of,
    parse_numeral,
    refuse_repeated,
    refuse_zeros,
    row_of,
    text_of,
    with_point,
)
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Finding, Interval
from pytest_perfgate.model.profiles import Counter, KernelFacts

_FIRST, _NAME = "ID", "Kernel Name"

_SUMMED = ("Process ID", _NAME, "Context", "Stream", "Block Size", "Grid Size", "Device")
"""Columns that distinguish the lines of a summary, which has no ``ID``."""

_LAUNCH = (_FIRST, "Host Name", "Process ID", "Process Name", _NAME)
"""Columns that distinguish launches, since every process counts its own from zero."""

_WHO = frozenset((*_SUMMED, _FIRST, "Process Name", "Host Name", "CC", "Invocations"))
"""Columns that are no metrics."""

_VALUES = frozenset(("Metric Value", "Minimum", "Maximum", "Average", "Estimated Speedup"))

_HEADER = re.compile(r'(?:^"?|")(?:ID|Process ID)"?[,;].*"?Kernel Name"?', re.MULTILINE)
"""A quoted header may follow what the program printed without a line end."""

_SESSION = re.compile(r'^"?(?:Launch|Session|Device) Attribute"?[,;]', re.MULTILINE)

_AS_TEXT = re.compile(r"^ +Section: .+\n +-{5,}|^ +Metric Name +Metric Unit", re.MULTILINE)

_DIMENSIONS = re.compile(r"\(\s*(\d{1,10}),\s*(\d{1,10}),\s*(\d{1,10})\s*\)")

_SHAPE = re.compile(r"(?<=,)\(\d+, *\d+, *\d+\)(?=,)")
"""Texts with commas, whose quotes may have been removed."""

_WITH_UNITS = "export it again with its units: ncu --import FILE.ncu-rep --csv --page raw"

_TICKS = ("ns", "nsecond")

_RULES = ("Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup")
"""Columns of a page for results of rules; lines of metrics may end before them."""

_DIFFERS = 0.02
"""The tolerance between two roundings of one figure."""

Numbered = tuple[int, Row]
"""A row and its line."""


def parse_csv(data: bytes, place: str) -> Iterator[KernelFacts]:
    """Yield every launch of the pages, also of several runs that wrote one file."""
    text = text_of(data)
    refuse_zeros(text, partial(_fault, place))
    pages = _pages(text)
    if not pages and ncu_labels.PAGE.search(text):
        yield from ncu_labels.parse_source(text, place)
        return
    if not pages:
        raise _no_page(text, place)
    launches = [launch for line, page in pages for launch in _kernels(page, line, place)]
    if not launches:
        raise PerfgateError("ncu-nothing", "the page holds no kernel", place=place)
    _refuse_copies(launches, place)
    yield from (replace(facts, index=index) for index, (_, _, facts) in enumerate(launches))


Found = tuple[int, tuple[str, ...], KernelFacts]
"""A launch with its first line and the fields that distinguish it."""


def _fault(place: str, what: str, why: str) -> PerfgateError:
    return PerfgateError("ncu-report", what, why=why, place=place)


def _refuse_copies(rows: Sequence[Found], place: str) -> None:
    """Refuse a launch that two pages hold with equal figures, as when a file was appended to itself."""
    lines: dict[tuple[str, ...], int] = {}
    for line, launch, facts in rows:
        before = lines.setdefault((*launch, *map(str, facts.counters.values())), line)
        if before != line:
            named = " ".join(filter(None, launch))
            what = f"launch {named} appears twice with the same figures, in line {before} and in line {line}"
            raise _fault(place, what, "a file that was appended to itself counts twice")


def _pages(text: str) -> list[tuple[int, str]]:
    """Return (line, text) from each header to the next, after the output of ncu and of the program."""
    starts = [match.start() for match in _HEADER.finditer(text)]
    lines = (text.count("\n", 0, begin) + 1 for begin in starts)
    return [(line, text[begin:end]) for line, begin, end in zip(lines, starts, [*starts[1:], len(text)])]


def _kernels(page: str, first: int, place: str) -> Iterator[Found]:
    rows = _rows(page, first, place)
    if rows:
        parse = _of_long_page if "Metric Name" in rows[0][1] else _of_wide_page
        yield from parse(_with_points(rows), place)


def _no_page(text: str, place: str) -> PerfgateError:
    """Return the error for a text without a page, with what it is instead and which page to export."""
    what, fix = "neither an .ncu-rep nor a page of ncu --csv", ""
    if _SESSION.search(text):
        what = "it is the session page, which holds no kernel"
        fix = "export the metrics: ncu --import FILE.ncu-rep --csv --page raw"
    elif _AS_TEXT.search(text):
        what = "it is a page as text, which only people can read"
        fix = "add --csv: ncu --import FILE.ncu-rep --csv --page raw"
    elif "==PROF==" in text or "==ERROR==" in text:
        problems = [line for line in text.splitlines() if line.startswith(("==ERROR==", "==WARNING=="))]
        if "ERR_NVGPUCTRPERM" in text:
            what = "ncu had no permission to read the counters: ERR_NVGPUCTRPERM"
            return PerfgateError("ncu-permission", what, place=place)
        what = f"ncu printed no page: {problems[-1].rpartition('== ')[2]}" if problems else "ncu printed no page"
    return PerfgateError("ncu-report", what, place=place, fix=fix)


def _rows(page: str, first: int, place: str) -> list[Numbered]:
    """Return the rows of a page with their lines, without output of the program between them."""
    fault = partial(_fault, place)
    lines = [line if '"' in line else _SHAPE.sub(r'"\g<0>"', line) for line in io.StringIO(page)]
    quoted, mark = lines[0].startswith('"'), ";" if lines[0].count(";") > lines[0].count(",") else ","
    table_lines = [line if not line.startswith("==") else "\n" for line in lines]
    records = list(PageLines(table_lines, mark, first, fault).records())
    header = header_of(records[0][1], first, fault)
    shortest = _shortest(header)
    rows, table = list[Numbered](), 0
    for line, cells in records[1:]:
        if _printed(lines[line - first], cells, header, quoted=quoted):
            continue
        table = _own_table(cells, table) if quoted and len(cells) < shortest else 0
        if table:
            continue
        if len(cells) > len(header) and any(cells[len(header) :]) and not quoted:
            what = f"line {line} has more cells than the page has columns: the quotes around names with commas are gone"
            raise fault(what, "")
        row = row_of(header, _without_rules(header, cells, shortest), line, fault, {shortest})
        if len(row) < len(header) and not row["Metric Value"]:
            raise fault(f"line {line} has {len(cells)} cells and no value among them", "a cell before it is missing")
        rows.append((line, row))
    if rows and not lines[-1].endswith("\n") and lines[-1].count('"') % 2:
        raise fault(f"it is cut short: line {first + len(lines) - 1} ends inside its row", "")
    return rows


def _own_table(cells: Sequence[str], width: int) -> int:
    """Return the width of a section's own table (as of NUMA) if this is its header, which has no number, or its row."""
    heads = not any(parse_numeral(cell) is not None for cell in cells)
    return len(cells) if heads or len(cells) == width else 0


def _shortest(header: Sequence[str]) -> int:
    """Return the fewest cells of a metric's row, which may end before the columns of rules; 0 on other pages."""
    rules = min((header.index(name) for name in _RULES if name in header), default=0)
    return rules if "Metric Value" in header[:rules] else 0


def _without_rules(header: Sequence[str], cells: list[str], width: int) -> list[str]:
    """Return a metric's row without the empty cell of a rule that ncu appends."""
    appended = 0 < width < len(cells) < len(header) and not any(cells[width:])
    return cells[:width] if appended and cells[header.index("Metric Value")] else cells


def _printed(line: str, cells: Sequence[str], header: Sequence[str], *, quoted: bool) -> bool:
    """Return whether the program printed this line, which lacks the quote of the page's rows."""
    if quoted:
        return not line.startswith('"')
    return len(cells) < len(header) and (len(cells) <= header.index(_NAME) or parse_numeral(cells[0]) is None)


def _with_points(rows: list[Numbered]) -> list[Numbered]:
    """Return the rows with decimal points, whatever the locale of ncu was."""
    _, first = rows[0]
    columns = _VALUES if "Metric Name" in first else frozenset(first) - _WHO
    if not decimal_comma((row.get(name) for _, row in rows for name in columns), _without_parts(rows)):
        return rows
    pointed = [{name: with_point(row[name]) for name in columns & row.keys()} for _, row in rows]
    return [(line, row | numbers) for (line, row), numbers in zip(rows, pointed)]


def _without_parts(rows: Sequence[Numbered]) -> list[str | None]:
    """Return the times in nanoseconds, which the timer counts in whole ones."""
    _, first = rows[0]  # the units, where each launch has one line
    if "Metric Name" in first:
        return [row.get("Metric Value") for _, row in rows if row.get("Metric Unit") in _TICKS]
    return [row.get(name) for name, unit in first.items() if unit in _TICKS for _, row in rows[1:]]


def _of_long_page(rows: Sequence[Numbered], place: str) -> Iterator[Found]:
    """Yield the launches of a page with one line a metric; lines and rules of one ``ID`` belong together."""
    launches: dict[tuple[str, ...], list[Numbered]] = {}
    for line, row in rows:
        which = tuple(row.get(name, "") for name in (_LAUNCH if row.get(_FIRST) else _SUMMED))
        launches.setdefault(which, []).append((line, row))
    for index, (which, lines) in enumerate(launches.items()):
        first, head = lines[0]
        counters = dict(_launch_counters(head))
        for line, row in lines:
            cell = row.get("Average", row.get("Metric Value"))  # in a summary, the mean of all launches
            for name, counter in _counters(row.get("Metric Name"), row.get("Metric Unit"), cell, line, place):
                _refuse_other(counters.get(name), counter, line, place)
                counters[name] = counter
        yield first, which, _facts(head, counters, tuple(_rules(lines, place)), (place, index))


def _refuse_other(before: Counter | None, now: Counter, line: int, place: str) -> None:
    """Refuse a repeated metric with another value beyond rounding; labels shared by tables are excepted."""
    if before is None or "__" not in now.name or before.unit != now.unit:
        return
    if abs(before.value - now.value) > _DIFFERS * max(abs(before.value), abs(now.value)):
        what = f"{now.name} is {before.value:g}, and {now.value:g} in line {line}, of the same launch"
        raise _fault(place, what, "two lines of one launch and one metric, or a line under another launch's number")


def _of_wide_page(rows: Sequence[Numbered], place: str) -> Iterator[Found]:
    """Yield the launches of a page with one column a metric; units stand in a line of their own or in the header."""
    head = rows[0][1]
    has_unit_row = not (head.get(_FIRST) or head.get(_NAME) or "").strip()
    units = head if has_unit_row else {name: name.rpartition("[")[2][:-1] for name in head if name.endswith("]")}
    launches = rows[1:] if has_unit_row else rows
    identities = [(line, tuple(row.get(name, "") for name in _LAUNCH)) for line, row in launches]
    if "Process ID" in head and _FIRST in head:
        refuse_repeated(identities, "launch", partial(_fault, place))
    for index, ((line, row), (_, which)) in enumerate(zip(launches, identities)):
        counters = dict(_launch_counters(row))
        for name, cell in row.items():
            if name not in _WHO:
                counters.update(_counters(name, units.get(name, ""), cell, line, place))
        yield line, which, _facts(row, counters, (), (place, index))


def _facts(
    row: Row, counters: Mapping[str, Counter], findings: tuple[Finding, ...], place: tuple[str, int]
) -> KernelFacts:
    time = ncu_labels.time_of(counters)
    if time is not None and time.unit != "ns":
        reason = f"in '{time.unit}', which is not a unit of time" if time.unit else "without a unit"
        what, why = f"{time.name} is given {reason}", "the number alone could mean nanoseconds or seconds"
        raise PerfgateError("ncu-report", what, why=why, place=place[0], fix=_WITH_UNITS)
    capability = (row.get("CC") or "").strip().replace(",", ".")
    arch = f"sm_{capability.replace('.', '')}" if re.fullmatch(r"\d+\.\d", capability) else ""
    return ncu_labels.kernel_facts(row.get(_NAME) or "", counters, texts={"arch": arch}, place=place, findings=findings)


def _counters(
    name: str | None, unit: str | None, cell: str | None, line: int, place: str
) -> Iterator[tuple[str, Counter]]:
    """Yield the cell under its full name in base units, unless it is not a number."""
    number = parse_numeral(cell)
    if not name or number is None or not math.isfinite(number):
        return
    value, base = ncu_labels.scaled(number, (unit or "").strip())
    full = ncu_labels.full_name(name.strip(), base)
    if wrong := ncu_labels.impossible(full, value):
        raise _fault(place, f"line {line}: {name.strip()} is {cell}, and {wrong}", "a cell under the wrong column?")
    yield full, Counter(name=full, value=value, unit=base)


def _launch_counters(row: Row) -> Iterator[tuple[str, Counter]]:
    for column, stem in (("Block Size", "launch__block_dim_"), ("Grid Size", "launch__grid_dim_")):
        if match := _DIMENSIONS.search(row.get(column) or ""):
            for axis, text in zip("xyz", match.groups()):
                yield f"{stem}{axis}", Counter(name=f"{stem}{axis}", value=float(text))


def _rules(lines: Sequence[tuple[int, Row]], place: str) -> Iterator[Finding]:
    for number, line in lines:
        if line.get("Rule Name"):
            speedup, local = parse_numeral(line.get("Estimated Speedup")), line.get("Estimated Speedup Type") == "local"
            if speedup and not 0 < speedup <= 100:
                what = f"line {number}: a speedup of {speedup:.3g} %, where a rule can save 100 % at most"
                raise _fault(place, what, "a cell under the wrong column?")
            yield Finding(
                title=line["Rule Name"],
                detail=line.get("Rule Description") or "",
                trigger=f"rule={line['Rule Name']}",
                gain=Interval(low=0.0, high=speedup / 100) if speedup else None,
                doubt="a local estimate: of the part it concerns, not end to end" if local else "",
                scope="ncu rule",
            )
