"""Cells of a table as text."""

from __future__ import annotations

import math
from functools import partial

from pytest_perfgate.core.render.guard import shown
from pytest_perfgate.core.render.quantity import quantity, significant
from pytest_perfgate.model.document import Cell, Column, Table
from pytest_perfgate.model.quantity import TIME_UNITS, Dimension

_UNITS = {**TIME_UNITS, "%": 0.01}


def cell_text(cell: Cell, column: Column) -> str:
    """One cell as a person reads it."""
    if cell is None or is_absent(cell):
        return column.absent
    if isinstance(cell, str):
        return cell
    if column.unit == "ns":
        return f"{cell:.0f}"
    if column.unit:
        return significant(cell / _UNITS.get(column.unit, 1.0), column.digits)
    return quantity(float(cell), column.dimension, column.digits)


def is_absent(cell: Cell) -> bool:
    """Whether there is no number in it, nor a text."""
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def heading(column: Column) -> str:
    """The name with its unit, unless the name ends in it."""
    named = not column.unit or column.name.endswith(f"_{column.unit}")
    return column.name if named else f"{column.name} ({column.unit})"


def is_number(column: Column) -> bool:
    return column.dimension is not Dimension.TEXT


def shown_rows(table: Table) -> list[list[str]]:
    """The rows a person sees, as text."""
    rows = table.rows[: table.limit] if table.limit else table.rows
    return [[_safe_text(cell, column) for cell, column in zip(row, table.columns)] for row in rows]


def _safe_text(cell: Cell, column: Column) -> str:
    return shown(partial(cell_text, cell, column), lambda why: why)


def left_out(table: Table) -> str:
    """The line that owns up to rows not shown."""
    more = len(table.rows) - table.limit if table.limit else 0
    return f"... and {more:,} more rows ({table.rest})" if more > 0 else ""
