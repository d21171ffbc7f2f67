"""``ncu --csv``: pages in long form (a line a metric) and wide form (a column a metric)."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence

from pytest_perfgate.adapters.readers.ncu_facts import kernel_facts
from pytest_perfgate.adapters.readers.ncu_labels import LABELS, scaled
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.kernel import Counter, KernelFacts
from pytest_perfgate.model.problem import Finding
from pytest_perfgate.model.quantity import Interval

_FIRST, _NAME = "ID", "Kernel Name"
_DIMENSIONS = re.compile(r"\(\s*(\d+),\s*(\d+),\s*(\d+)\s*\)")
Row = dict[str, str]


def parse_csv(data: bytes, place: str) -> Iterator[KernelFacts]:
    """Every launch of the page."""
    text = data.decode("utf-8-sig", "replace")
    start = _header(text)
    if start is None:
        raise PerfgateError("ncu-report", "neither an .ncu-rep nor a page of ncu --csv", place=place)
    csv.field_size_limit(1 << 24)
    lines = (line for line in io.StringIO(text[start:]) if not line.startswith("=="))
    try:
        rows = [dict(row) for row in csv.DictReader(lines)]
    except csv.Error as error:
        raise PerfgateError("ncu-report", f"the CSV does not read: {error}", place=place) from error
    if not rows:
        raise PerfgateError("ncu-nothing", "the page holds no kernel", place=place)
    parse = _long if "Metric Name" in rows[0] else _wide
    yield from parse(rows, place)


def _header(text: str) -> int | None:
    """Where the header line starts: after whatever ncu and the program printed."""
    found = re.search(r'^"?ID"?,.*"?Kernel Name"?', text, re.MULTILINE)
    return found.start() if found else None


def _long(rows: Sequence[Row], place: str) -> Iterator[KernelFacts]:
    """A line a metric: lines of one ``ID`` are one launch, results of rules among them."""
    launches: dict[str, list[Row]] = {}
    for row in rows:
        launches.setdefault(row.get(_FIRST) or "", []).append(row)
    for index, lines in enumerate(launches.values()):
        counters = dict(_launch_counters(lines[0]))
        for line in lines:
            counters.update(_counters(line.get("Metric Name"), line.get("Metric Unit"), line.get("Metric Value")))
        yield _facts(lines[0], counters, tuple(_rules(lines)), (place, index))


def _wide(rows: Sequence[Row], place: str) -> Iterator[KernelFacts]:
    """A column a metric; the line under the header holds the units."""
    units = rows[0] if not (rows[0].get(_FIRST) or "").strip() else {}
    launches = rows[1:] if units else rows
    if not launches:
        raise PerfgateError("ncu-nothing", "the page holds no kernel", place=place)
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
    capability = (row.get("CC") or "").strip()
    arch = f"sm_{capability.replace('.', '')}" if re.fullmatch(r"\d+\.\d", capability) else ""
    return kernel_facts(row.get(_NAME) or "", counters, texts={"arch": arch}, place=place, findings=findings)


def _counters(name: str | None, unit: str | None, cell: str | None) -> Iterator[tuple[str, Counter]]:
    """The cell under its full name, in base units; a cell that is no number is no counter."""
    number = _number(cell)
    if not name or number is None:
        return
    value, base = scaled(number, (unit or "").strip())
    full = LABELS.get((name.strip(), base)) or LABELS.get((name.strip(), "")) or name.strip()
    yield full, Counter(name=full, value=value, unit=base)


def _number(cell: str | None) -> float | None:
    """``4,963,609.19`` is a number: thousands are separated whatever the locale says."""
    try:
        return float((cell or "").replace(",", "").strip())
    except ValueError:
        return None


def _launch_counters(row: Row) -> Iterator[tuple[str, Counter]]:
    for column, stem in (("Block Size", "launch__block_dim_"), ("Grid Size", "launch__grid_dim_")):
        found = _DIMENSIONS.search(row.get(column) or "")
        if found:
            for axis, text in zip("xyz", found.groups()):
                yield f"{stem}{axis}", Counter(name=f"{stem}{axis}", value=float(text))


def _rules(lines: Sequence[Row]) -> Iterator[Finding]:
    for line in lines:
        if line.get("Rule Name"):
            speedup = _number(line.get("Estimated Speedup"))
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
