"""``ncu --csv --page source``: instructions and source lines with their samples; no metric of a kernel is on it."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pytest_perfgate.adapters.readers.csv_rows import Lines, parse_numeral
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.profiles import KernelFacts, SourceLine

PAGE = re.compile(r'^"?(?:#"?[,;]"?|Line No"?[,;]"?(?:Source"?[,;]"?)?)?Address"?[,;]"?Source"?[,;]', re.MULTILINE)
"""The header of such a page, in its forms: machine code alone, source alone, both beside each other."""

_NAMES = frozenset(("Kernel Name", "Function Name"))

_SAMPLES = ("# Samples", "Warp Stall Sampling (All Samples)", "Warp Stall Sampling (All Cycles)")

_EXECUTED, _STALL = "Instructions Executed", "stall_"

_ISSUING = frozenset(("stall_selected",))

_NOT_ISSUED = ("(Not Issued)", "_not_issued")

_MOST = 2.0**64

_OPCODE = re.compile(r"(?:@!?U?P\w+\s+)?([A-Z][\w.]*)")


@dataclass
class _Block:
    """What stands under one name of a kernel."""

    name: str
    file: str = ""
    header: Sequence[str] = ()
    code: list[tuple[int, SourceLine]] = field(default_factory=list)
    source: list[SourceLine] = field(default_factory=list)


def parse_source(text: str, place: str) -> Iterator[KernelFacts]:
    """Every kernel of the page: where it waits, and how often its instructions ran."""
    try:
        blocks = [block for block in _blocks(_rows(text, place), place) if block.code or block.source]
    except PerfgateError as error:
        error.place_at(error.place or place)
        raise
    if not blocks:
        raise PerfgateError("ncu-nothing", "the source page holds no instruction", place=place)
    for index, block in enumerate(blocks):
        start = min((address for address, _ in block.code), default=0)
        lines = tuple(_moved(line, address - start) for address, line in block.code) or tuple(block.source)
        yield KernelFacts(
            name=block.name or "not said",
            arch="",
            source=place,
            index=index,
            lines=lines,
            sources={block.file or "source": "\n".join(line.text for line in block.source)} if block.source else {},
            executed=_executed(lines) if block.code else {},
            notes={"page": "source"},
        )


def _rows(text: str, place: str) -> Iterator[tuple[int, list[str]]]:
    match = PAGE.search(text)
    header = match[0] if match else ""
    mark = ";" if header.count(";") > header.count(",") else ","
    lines = [line if not line.startswith("==") else "\n" for line in io.StringIO(text)]
    return Lines(lines, mark, 1, lambda what, why: PerfgateError("ncu-report", what, why=why, place=place)).records()


def _blocks(rows: Iterator[tuple[int, list[str]]], place: str) -> Iterator[_Block]:
    block, file = _Block(name=""), ""
    for line, row in rows:
        if len(row) > 1 and row[0] in _NAMES:
            yield block
            block = _Block(name=row[1], file=file)
        elif len(row) > 1 and row[0] == "File Path":
            file = block.file = row[1]
        elif "Address" in row and "Source" in row:
            block.header = row
        elif block.header and len(row) == len(block.header):
            _take(block, row)
        elif block.header and len(row) > 1:
            short = "it is cut short: " if len(row) < len(block.header) else ""
            what = f"{short}line {line} has {len(row)} cells, and the header has {len(block.header)}"
            raise PerfgateError("ncu-report", what, place=place)
    yield block


def _take(block: _Block, row: Sequence[str]) -> None:
    """One row: an instruction where it has an address, a line of source where it has a number."""
    header = list(block.header)
    at = header.index("Address")
    address = _address(row[at])
    number = next((row[header.index(name)] for name in ("Line No", "#") if name in header), "")
    if address is not None:
        block.code.append((address, _line(header, row, row[at + 1], "")))
    elif number.isdigit():
        where = f"{block.file or 'source'}:{number}"
        block.source.append(_line(header, row, row[header.index("Source")], where))


def _address(cell: str) -> int | None:
    try:
        return int(cell, 16 if cell.startswith("0x") else 10)
    except ValueError:
        return None


def _line(header: Sequence[str], row: Sequence[str], text: str, place: str) -> SourceLine:
    """A name that stands in several columns means the first."""
    cells = dict(reversed(list(zip(header, row))))
    samples = next((_count(cells[name]) for name in _SAMPLES if name in cells), None)
    waits = {
        name.removeprefix(_STALL): _count(cell) or 0.0
        for name, cell in cells.items()
        if name.startswith(_STALL) and not name.endswith(_NOT_ISSUED) and name not in _ISSUING
    }
    leading = max(waits, key=lambda name: waits[name], default="")
    return SourceLine(
        place=place,
        text=text.strip() if not place else text.rstrip(),
        samples=samples,
        executed=_count(cells.get(_EXECUTED)),
        reason=leading if leading and waits[leading] else "",
    )


def _count(cell: str | None) -> float | None:
    """A count, or nothing; none is below zero or beyond what the profiler counts in."""
    found = parse_numeral(cell)
    if found is not None and not 0 <= found < _MOST:
        raise PerfgateError("ncu-report", f"the source page has a count of {cell!r:.40}")
    return found


def _moved(line: SourceLine, offset: int) -> SourceLine:
    return SourceLine(
        place=line.place,
        text=line.text,
        samples=line.samples,
        executed=line.executed,
        reason=line.reason,
        offset=offset,
    )


def _executed(lines: Sequence[SourceLine]) -> dict[str, float]:
    """Warp instructions by opcode."""
    counts: dict[str, float] = {}
    for line in lines:
        match = _OPCODE.match(line.text)
        if match and line.executed is not None:
            counts[match[1]] = counts.get(match[1], 0.0) + line.executed
    return counts
