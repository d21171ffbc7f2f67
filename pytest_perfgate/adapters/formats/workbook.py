"""Tables of documents as one workbook, a sheet a table; numbers stay numbers, text is never a formula."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

from pytest_perfgate.adapters.formats.tables import tables_of
from pytest_perfgate.model.document import Cell, Column, Document, Table
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.quantity import Dimension
from pytest_perfgate.model.refusals import written

ROWS = 2**20
_TITLE = 31
_ILLEGAL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_NO_TITLE = re.compile(r"[\[\]:*?/\\]")
_UNITS = {
    Dimension.TIME: "ns",
    Dimension.BYTES: "B",
    Dimension.FLOPS: "FLOP/s",
    Dimension.BANDWIDTH: "B/s",
    Dimension.WORK: "FLOP",
    Dimension.INTENSITY: "FLOP/B",
}


def writes_workbooks() -> bool:
    """Whether openpyxl is here."""
    return find_spec("openpyxl") is not None


def write_workbook(path: Path, documents: Mapping[str, Document]) -> Path:
    """One sheet a table, named after its view and title."""
    if not writes_workbooks():
        raise PerfgateError("workbook-tool", "openpyxl is not installed", place=str(path))
    from openpyxl import Workbook  # type: ignore[import-untyped, unused-ignore]

    book, packed = Workbook(write_only=True), BytesIO()
    with written(f"{path} (or the folder for temporary files, {tempfile.gettempdir()})"), _given_up_whole(book):
        taken: set[str] = set()
        for view, document in documents.items():
            for table in tables_of(document.blocks):
                _fill(book.create_sheet(_title(f"{view} {table.title}".strip(), taken)), table)
        if not taken:
            book.create_sheet("no tables")
        book.save(packed)
    with written(str(path)):
        path.write_bytes(packed.getvalue())
    return path


@contextmanager
def _given_up_whole(book: Any) -> Iterator[None]:
    """A workbook that fails closes its sheets: left open, each would complain on its own when it is collected."""
    try:
        yield
    except BaseException:
        for sheet in book.worksheets:
            writer: Any = getattr(sheet, "_writer", None)
            parts: tuple[Any, ...] = (getattr(sheet, "_rows", None), getattr(writer, "xf", None))
            for part in parts:
                with suppress(Exception):
                    part.close()
            with suppress(Exception):
                writer.cleanup()
        raise


def _fill(sheet: Any, table: Table) -> None:
    from openpyxl.cell import WriteOnlyCell  # type: ignore[import-untyped, unused-ignore]
    from openpyxl.styles import Font  # type: ignore[import-untyped, unused-ignore]

    if len(table.rows) >= ROWS:
        raise PerfgateError("workbook-rows", f"{len(table.rows):,} rows in {table.title or sheet.title!r}")

    def written(cell: Cell) -> Any:
        if not isinstance(cell, str):
            return cell if cell is not None and abs(cell) < float("inf") else None
        made = WriteOnlyCell(sheet, value=_ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", cell)[:32_767])
        made.data_type = "s"
        return made

    sheet.freeze_panes = "A2"
    heads = [WriteOnlyCell(sheet, value=_heading(column)) for column in table.columns]
    for head in heads:
        head.font = Font(bold=True)
    sheet.append(heads)
    for row in table.rows:
        sheet.append([written(cell) for cell in row])


def _heading(column: Column) -> str:
    unit = _UNITS.get(column.dimension)
    return f"{column.name} ({unit})" if unit else column.name


def _title(wanted: str, taken: set[str]) -> str:
    """A name that a sheet may have and no other sheet has."""
    plain = _NO_TITLE.sub(" ", wanted)[:_TITLE].strip() or "table"
    name, number = plain, 2
    while name.casefold() in taken:
        tail = f" {number}"
        name, number = plain[: _TITLE - len(tail)] + tail, number + 1
    taken.add(name.casefold())
    return name
