"""The reference's tables as a document, with their columns as it names them."""

from __future__ import annotations

from pytest_perfgate.core.analysis.trace.compat.stats import Row
from pytest_perfgate.core.analysis.trace.compat.tables import reference_tables
from pytest_perfgate.core.analysis.trace.survey import Survey
from pytest_perfgate.model.document import Block, Cell, Column, Document, Section, Table
from pytest_perfgate.model.metric import Labels, Metric, MetricSet, labels
from pytest_perfgate.model.quantity import Dimension


def reference_document(seen: Survey, subject: str) -> Document:
    """Every table the reference writes for this trace, in its units and with its omissions."""
    tables = reference_tables(seen)
    blocks: tuple[Block, ...] = tuple(
        Section(title=name, blocks=(as_table(rows, name),)) for name, rows in tables.items() if rows
    )
    return Document(title=f"{subject} as TraceLens counts it", subtitle="window: whole trace", blocks=blocks)


def as_table(rows: list[Row], title: str = "") -> Table:
    """Rows of named cells as a table; a column of numbers is one of plain numbers."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = tuple(Column(name=name, dimension=_dimension([row.get(name) for row in rows])) for name in names)
    return Table(
        columns=columns, rows=tuple(tuple(_cell(row.get(name)) for name in names) for row in rows), title=title
    )


def _dimension(cells: list[object]) -> Dimension:
    known = [cell for cell in cells if cell is not None]
    numbers = all(isinstance(cell, (int, float)) and not isinstance(cell, bool) for cell in known)
    return Dimension.PLAIN if known and numbers else Dimension.TEXT


def _cell(cell: object) -> Cell:
    if cell is None or (isinstance(cell, (int, float)) and not isinstance(cell, bool)):
        return cell
    return str(cell)


_NAMES = {
    "exposed_comm_time": "exposed_comm",
    "exposed_memcpy_time": "exposed_memcpy",
    "total_comm_time": "communication_time",
    "total_memcpy_time": "memcpy_time",
}


def reference_metrics(seen: Survey) -> MetricSet:
    """The reference's timeline and operator times as metrics, in our units."""
    tables = reference_tables(seen)
    found = [
        _metric(_NAMES.get(str(row["type"]), str(row["type"])), float(str(row["time ms"])) * 1e6, ())
        for row in tables["gpu_timeline"]
    ]
    found += [
        _metric("op_time", float(str(row["total_direct_kernel_time_sum"])) * 1e3, labels(op=row["name"]))
        for row in tables.get("ops_summary", [])
    ]
    return MetricSet(metrics=tuple(found))


def _metric(name: str, number: float, where: Labels) -> Metric:
    return Metric(
        name=name, value=number, dimension=Dimension.TIME, labels=where, source="trace", note="as TraceLens counts it"
    )
