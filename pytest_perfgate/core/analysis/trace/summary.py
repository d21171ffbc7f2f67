"""The first page of a report: what the device did, in a sentence and two tables."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_perfgate.core.analysis.trace.operators import OperatorRow
from pytest_perfgate.core.analysis.trace.survey import Survey
from pytest_perfgate.core.analysis.trace.timeline import Timeline
from pytest_perfgate.core.render.quantity import quantity
from pytest_perfgate.model.document import Block, Column, Paragraph, Table
from pytest_perfgate.model.quantity import Dimension

_TIME, _PART = Dimension.TIME, Dimension.FRACTION


def summary_blocks(seen: Survey, line: Timeline | None, rows: Sequence[OperatorRow]) -> tuple[Block, ...]:
    """At most twenty lines."""
    ranked = ranked_operators(rows)[: seen.settings.top]
    table = Table(
        columns=(
            Column(name="#"),
            Column(name="operation"),
            Column(name="time", dimension=_TIME),
            Column(name="of operators' time", dimension=_PART, digits=3),
        ),
        rows=tuple((str(n), *row) for n, row in enumerate(ranked, 1)),
        title="Top bottlenecks",
    )
    return (Paragraph(text=_sentence(seen, line, ranked)), _metrics(seen, line), table)


def ranked_operators(rows: Sequence[OperatorRow]) -> list[tuple[str, float, float]]:
    """The operators that took longest: name, time, share."""
    spent: dict[str, tuple[float, float]] = {}
    for row in rows:
        total, share = spent.get(row.name, (0.0, 0.0))
        spent[row.name] = (total + row.total, share + row.share)
    return [(name, *found) for name, found in sorted(spent.items(), key=lambda item: -item[1][0])]


def _sentence(seen: Survey, line: Timeline | None, ranked: Sequence[tuple[str, float, float]]) -> str:
    """What a reader should remember."""
    if line is None:
        return "Several devices, or none, were at work: the detail has each for itself."
    who = "The host's operators run" if seen.on_host else "The GPU works"
    said = f"{who} {_part(line.share(line.busy))} of a window of {quantity(line.total, _TIME)}"
    if line.communication:
        said += f", and {_part(line.overlap or 0.0)} of its communication is hidden by compute"
    if not ranked:
        return f"{said}."
    name, spent, share = ranked[0]
    return f"{said}. {name} is the largest operator: {quantity(spent, _TIME)}, {_part(share)} of operators' time."


def _metrics(seen: Survey, line: Timeline | None) -> Table:
    cells: list[tuple[str, str]] = []
    if line is not None:
        cells.append(("window", quantity(line.total, _TIME)))
    if line is not None and seen.on_host:
        cells.append(("operators run", _part(line.share(line.computation))))
    elif line is not None:
        cells += [
            ("GPU utilisation", _part(line.share(line.busy))),
            ("computation", _part(line.share(line.computation))),
            ("idle", _part(line.share(line.idle))),
            ("exposed communication", _part(line.share(line.exposed_comm))),
            ("overlap", _part(line.overlap) if line.overlap is not None else "no communication"),
        ]
    cells.append(("coverage", _part(seen.coverage) if seen.coverage is not None else "no GPU activity"))
    return Table(columns=(Column(name="metric"), Column(name="value")), rows=tuple(cells))


def _part(fraction: float) -> str:
    return quantity(fraction, _PART, 3)
