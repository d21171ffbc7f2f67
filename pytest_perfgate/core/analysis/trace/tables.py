"""Tables of a trace, for people and for data formats."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_perfgate.model.device import Basis, Roof
from pytest_perfgate.model.metric import Block, Bullets, Cell, Column, Section, Table
from pytest_perfgate.model.values import grouped

if TYPE_CHECKING:
    from pytest_perfgate.core.analysis.trace.operators import KernelRow, OperatorRow
    from pytest_perfgate.core.analysis.trace.timeline import Spread, Timeline


NO_ROOF = "No roof: the device is unknown; add --device, or --peak and --bandwidth."

NO_ROOF_OF_HOST = "No roof: a trace does not say the host's peaks; add --peak and --bandwidth."

_TIMES = Column.header("total: time | mean: time | median: time | deviation: time | min: time | max: time")


def timeline_table(line: Timeline, title: str, *, on_host: bool) -> Table:
    """Return how the time was spent; the parts above the total sum to it."""
    idle = (
        ("idle, in short gaps", line.idle_micro),
        ("idle, in longer gaps", line.idle_macro),
        ("total", line.total),
    )
    if on_host:
        parts: tuple[tuple[str, int], ...] = (("operators run", line.computation), *idle)
        note = "No GPU: copies, communication and overlap are not observable here."
    else:
        parts = (
            ("computation", line.computation),
            ("exposed communication", line.exposed_comm),
            ("exposed copies", line.exposed_memcpy),
            ("exposed memory sets", line.exposed_memset),
            *idle,
            ("all communication", line.communication),
            ("all copies", line.memcpy),
        )
        hidden = f"Communication hidden by compute: {line.overlap * 100:.1f} %." if line.overlap is not None else ""
        note = hidden or "No communication, so no overlap."
    columns = Column.header("part | time: time | of the window: fraction")
    rows = tuple((name, part, line.share(part)) for name, part in parts)
    return Table(columns=columns, rows=rows, title=title, note=note)


def of_host(block: Block) -> Block:
    """Return a block whose tables have the times and the peaks of a program without a GPU."""
    if isinstance(block, Section):
        return replace(block, blocks=tuple(map(of_host, block.blocks)))
    if not isinstance(block, Table):
        return block
    columns = tuple(replace(c, name=c.name.replace("GPU time", "host time")) for c in block.columns)
    return replace(block, columns=columns, note=block.note.replace(NO_ROOF, NO_ROOF_OF_HOST))


def category_table(rows: Sequence[OperatorRow]) -> Table:
    """Return operators by family."""
    spent: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for row in rows:
        entry = spent[row.category]
        entry[0] += row.total
        entry[1] += row.count
        entry[2] += row.share
    ordered = sorted(spent.items(), key=lambda item: (-item[1][0], item[0]))
    return Table(
        columns=Column.header("category | GPU time: time | share: fraction | calls: count"),
        rows=tuple((name, total, share, count) for name, (total, count, share) in ordered),
    )


def operator_table(rows: Sequence[OperatorRow], limit: int = 0) -> Table:
    """Return operators by name."""
    merged = grouped(rows, lambda row: row.name)
    table, running, shaped = [], 0.0, any(row.call.recorded for row in rows)
    for name, group in sorted(merged.items(), key=lambda item: (-sum(r.total for r in item[1]), item[0])):
        share = sum(r.share for r in group)
        running += share
        count = sum(r.count for r in group)
        total = sum(r.total for r in group)
        variants = len(group) if shaped else None
        table.append((name, group[0].category, total, share, running, count, total / count, variants))
    return Table(
        columns=Column.header(
            "operator | category | GPU time: time | share: fraction | running: fraction | calls: count | "
            "mean: time | argument sets: count"
        ),
        rows=tuple(table),
        limit=limit,
    )


def argument_table(rows: Sequence[OperatorRow]) -> Table:
    return Table(
        columns=(
            *Column.header("operator | shapes | types | strides | scalars | calls: count"),
            *_TIMES,
            *Column.header("share: fraction | kernels a call: count 3 | event: count"),
        ),
        rows=tuple(
            (
                row.name,
                listed(row.call.dims),
                " ".join(row.call.types),
                listed(row.call.strides),
                scalars(row),
                row.count,
                *_times(row),
                row.share,
                row.kernels,
                row.event,
            )
            for row in rows
        ),
    )


def kernel_table(rows: Sequence[KernelRow], limit: int = 0) -> Table:
    return Table(
        columns=(
            *Column.header("kernel | launcher | kind | stream | count: count"),
            *_TIMES,
            *Column.header("share: fraction"),
        ),
        rows=tuple(
            (
                row.name,
                row.launcher,
                row.kind,
                row.stream,
                row.count,
                *_times(row),
                row.share,
            )
            for row in rows
        ),
        limit=limit,
    )


def brief(table: Table, *names: str) -> Table:
    """Return a table without these columns, for a short page."""
    columns = [at for at, column in enumerate(table.columns) if column.name not in names]
    rows = tuple(tuple(row[at] for at in columns) for row in table.rows)
    return replace(table, columns=tuple(table.columns[at] for at in columns), rows=rows)


def roofline_table(rows: Sequence[OperatorRow], roof: Roof | None, limit: int = 0) -> Table:
    """Return each operator's operations and bytes, and its fractions of the roof."""
    table: list[tuple[Cell, ...]] = []
    for row in rows:
        head = (row.name, row.call.shapes(), row.count, row.total)
        at = row.placement(roof or Roof(basis=Basis.DATASHEET))
        if row.work is None or at is None:
            table.append((*head, None, None, None, None, None, None, row.why))
            continue
        rates = (at.flops_rate, at.bandwidth, at.fraction)
        warning = "INVALID: more than the hardware can do" if at.impossible else ""
        text = "; ".join(filter(None, (at.bound, warning, row.work.note)))
        table.append((*head, row.work.flops, row.work.bytes, row.work.intensity, *rates, text))
    return Table(
        columns=Column.header(
            "operator | shapes | calls: count | GPU time: time | work: work | bytes: bytes | "
            "intensity: intensity | rate: flops | bandwidth: bandwidth | of the roof: fraction | "
            "bound, or why there is no model"
        ),
        rows=tuple(table),
        note=f"{roof_note(roof)}{_modelled(rows)}",
        limit=limit,
    )


def roof_note(roof: Roof | None) -> str:
    """Return what the fractions of a table are of."""
    return f"Roof: {roof.note}." if roof else NO_ROOF


def _modelled(rows: Sequence[OperatorRow]) -> str:
    """Return which part of the time the table's rates cover."""
    known, total = sum(row.total for row in rows if row.work is not None), sum(row.total for row in rows)
    return f" Operators with a work model hold {known / total * 100:.1f} % of operators' time." if total else ""


def scalars(row: OperatorRow) -> str:
    """Return the recorded arguments of a call that are no tensors."""
    return " ".join(str(scalar) for scalar in row.call.concrete if scalar not in ("", None))


def listed(items: object) -> str:
    """Return nested tuples as JSON."""
    if isinstance(items, tuple):
        return "[" + ", ".join(listed(item) for item in items) + "]"
    return str(items)


def _times(row: Spread) -> Iterator[float | None]:
    """Yield the columns of times; a single call has no deviation."""
    for number in (row.total, row.mean, row.median, row.std, row.low, row.high):
        yield number if number == number else None  # noqa: PLR0124 - NaN means not collected


def ranks_table(lines: Sequence[tuple[str, Timeline]], of: str = "rank", *, on_host: bool = False) -> Table:
    """Return one row for each rank or step; a program without a GPU has no columns of one."""
    table = Table(
        columns=Column.header(
            f"{of} | window: time | computation: fraction | exposed communication: fraction | "
            "exposed copies: fraction | idle: fraction | overlap: fraction | communication: time"
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
    return brief(table, "exposed communication", "exposed copies", "overlap", "communication") if on_host else table


def covered_table(lines: Sequence[tuple[str, Timeline]], coverage: Sequence[float | None]) -> Table:
    """Return one row for each rank, with the part of its GPU time that is linked to a launch."""
    table = ranks_table(lines)
    return Table(
        columns=(*table.columns, *Column.header("coverage: fraction")),
        rows=tuple((*row, share) for row, share in zip(table.rows, coverage)),
    )


def not_recorded_block() -> Block:
    """Return what a trace cannot show, and what can."""
    return Bullets(
        items=(
            "bank conflicts, coalescing, cache hits, stall reasons: use ncu, or rocprof on AMD",
            "occupancy and registers: use ncu, or the cubin: perfgate inspect KERNEL.cubin",
            "why the host was late: use a profile with stacks, or the trace in Perfetto",
        )
    )
