"""Tables of a trace, for people and for data formats alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from pytest_perfgate.core.analysis.roofline import place
from pytest_perfgate.core.analysis.trace.kernels import KernelRow
from pytest_perfgate.core.analysis.trace.operators import OperatorRow
from pytest_perfgate.core.analysis.trace.timeline import Timeline
from pytest_perfgate.model.device import Basis, Roof
from pytest_perfgate.model.document import Cell, Column, Table
from pytest_perfgate.model.quantity import Dimension

_TIME, _PART, _COUNT = Dimension.TIME, Dimension.FRACTION, Dimension.COUNT


def timeline_table(line: Timeline, title: str = "") -> Table:
    """Where the time went; the first six parts sum to the total."""
    parts = (
        ("computation", line.computation),
        ("exposed communication", line.exposed_comm),
        ("exposed copies", line.exposed_memcpy),
        ("exposed memory sets", line.exposed_memset),
        ("idle, in gaps up to the threshold", line.idle_micro),
        ("idle, in longer gaps", line.idle_macro),
        ("total", line.total),
        ("all communication", line.communication),
        ("all copies", line.memcpy),
    )
    rows = tuple((name, part, line.share(part)) for name, part in parts)
    note = f"Communication hidden by compute: {line.overlap:.1%}." if line.overlap is not None else ""
    columns = (Column(name="part"), Column(name="time", dimension=_TIME), Column(name="of the window", dimension=_PART))
    return Table(columns=columns, rows=rows, title=title, note=note or "No communication, so no overlap.")


def category_table(rows: Sequence[OperatorRow]) -> Table:
    """Operators by family."""
    spent: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for row in rows:
        entry = spent[row.category]
        entry[0] += row.total
        entry[1] += row.count
        entry[2] += row.share
    ordered = sorted(spent.items(), key=lambda item: -item[1][0])
    return Table(
        columns=(
            Column(name="category"),
            Column(name="GPU time", dimension=_TIME),
            Column(name="share", dimension=_PART),
            Column(name="calls", dimension=_COUNT),
        ),
        rows=tuple((name, total, share, count) for name, (total, count, share) in ordered),
    )


def operator_table(rows: Sequence[OperatorRow], limit: int = 0) -> Table:
    """Operators by name."""
    merged: dict[str, list[OperatorRow]] = defaultdict(list)
    for row in rows:
        merged[row.name].append(row)
    table, running = [], 0.0
    for name, group in sorted(merged.items(), key=lambda item: -sum(r.total for r in item[1])):
        share = sum(r.share for r in group)
        running += share
        count = sum(r.count for r in group)
        total = sum(r.total for r in group)
        table.append((name, group[0].category, total, share, running, count, total / count, len(group)))
    return Table(
        columns=(
            Column(name="operator"),
            Column(name="category"),
            Column(name="GPU time", dimension=_TIME),
            Column(name="share", dimension=_PART),
            Column(name="running", dimension=_PART),
            Column(name="calls", dimension=_COUNT),
            Column(name="mean", dimension=_TIME),
            Column(name="argument sets", dimension=_COUNT),
        ),
        rows=tuple(table),
        limit=limit,
    )


def argument_table(rows: Sequence[OperatorRow], limit: int = 0) -> Table:
    """Operators by name, shapes, types and strides."""
    times = ("total", "mean", "median", "std", "low", "high")
    return Table(
        columns=(
            Column(name="operator"),
            Column(name="shapes"),
            Column(name="types"),
            Column(name="strides"),
            Column(name="scalars"),
            Column(name="calls", dimension=_COUNT),
            *(Column(name=name, dimension=_TIME) for name in ("total", "mean", "median", "deviation", "min", "max")),
            Column(name="share", dimension=_PART),
            Column(name="kernels a call"),
            Column(name="event", dimension=_COUNT),
        ),
        rows=tuple(
            (
                row.name,
                listed(row.call.dims),
                " ".join(row.call.types),
                listed(row.call.strides),
                " ".join(str(c) for c in row.call.concrete if c not in ("", None)),
                row.count,
                *(_number(getattr(row, name)) for name in times),
                row.share,
                f"{row.kernels:g}",
                row.example,
            )
            for row in rows
        ),
        limit=limit,
    )


def kernel_table(rows: Sequence[KernelRow], limit: int = 0) -> Table:
    """Kernels by launcher and stream."""
    times = ("total", "mean", "median", "std", "low", "high")
    return Table(
        columns=(
            Column(name="kernel"),
            Column(name="launcher"),
            Column(name="kind"),
            Column(name="stream"),
            Column(name="count", dimension=_COUNT),
            *(Column(name=name, dimension=_TIME) for name in ("total", "mean", "median", "deviation", "min", "max")),
            Column(name="share", dimension=_PART),
        ),
        rows=tuple(
            (
                row.name,
                row.launcher,
                row.kind,
                row.stream,
                row.count,
                *(_number(getattr(row, name)) for name in times),
                row.share,
            )
            for row in rows
        ),
        limit=limit,
    )


def roofline_table(rows: Sequence[OperatorRow], roof: Roof | None, limit: int = 0) -> Table:
    """What each operator computed and moved, and how near that is to the roof."""
    table: list[tuple[Cell, ...]] = []
    for row in rows:
        head = (row.name, shapes(row), row.count, row.total)
        if row.work is None:
            table.append((*head, None, None, None, None, None, None, row.why))
            continue
        at = place(row.work, row.total / row.count, roof or Roof(basis=Basis.DATASHEET))
        rates = (at.flops_rate, at.bandwidth, at.fraction)
        table.append((*head, row.work.flops, row.work.bytes, row.work.intensity, *rates, at.bound or row.work.note))
    return Table(
        columns=(
            Column(name="operator"),
            Column(name="shapes"),
            Column(name="calls", dimension=_COUNT),
            Column(name="GPU time", dimension=_TIME),
            Column(name="work", dimension=Dimension.WORK),
            Column(name="bytes", dimension=Dimension.BYTES),
            Column(name="intensity", dimension=Dimension.INTENSITY),
            Column(name="rate", dimension=Dimension.FLOPS),
            Column(name="bandwidth", dimension=Dimension.BANDWIDTH),
            Column(name="of the roof", dimension=_PART),
            Column(name="bound, or why there is no model"),
        ),
        rows=tuple(table),
        note=f"Roof: {roof.note}." if roof else "No roof: the device is unknown; give device= or peak= and bandwidth=.",
        limit=limit,
    )


def shapes(row: OperatorRow) -> str:
    """The shapes of the tensors of a call."""
    return " ".join("×".join(map(str, row.call.dims[at])) or "scalar" for at in row.call.tensors())


def listed(found: object) -> str:
    """Nested tuples as JSON writes them."""
    if isinstance(found, tuple):
        return "[" + ", ".join(listed(item) for item in found) + "]"
    return str(found)


def _number(number: float) -> float | None:
    return number if number == number else None  # noqa: PLR0124 - NaN is not collected


def ranks_table(lines: Sequence[tuple[str, Timeline]], of: str = "rank") -> Table:
    """One line a rank or step."""
    return Table(
        columns=(
            Column(name=of),
            Column(name="window", dimension=_TIME),
            *(
                Column(name=name, dimension=_PART)
                for name in ("computation", "exposed comm", "exposed copies", "idle", "overlap")
            ),
            Column(name="communication", dimension=_TIME),
        ),
        rows=tuple(
            (
                name,
                line.total,
                line.share(line.computation),
                line.share(line.exposed_comm),
                line.share(line.exposed_memcpy),
                line.share(line.idle),
                line.overlap,
                line.communication,
            )
            for name, line in lines
        ),
    )
