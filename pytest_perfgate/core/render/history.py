"""Sittings over time as a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_perfgate.core.gate.anchor import LIMIT, drift
from pytest_perfgate.core.gate.clocks import how_measured
from pytest_perfgate.core.render.block import printable
from pytest_perfgate.core.render.quantity import quantity, signed
from pytest_perfgate.core.render.timeline import timeline, told
from pytest_perfgate.core.stats.change_points import ChangePoint, change_points
from pytest_perfgate.model.baseline import Baseline, Sitting, short_commit
from pytest_perfgate.model.document import Block, Column, Document, Paragraph, Section, Table
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.quantity import Dimension

Told = tuple[CaseKey, str, Sequence[Sitting], "Baseline | None"]
_BARS = "▁▂▃▄▅▆▇█"
_TIME = Dimension.TIME


Anchors = Mapping[tuple[str, str], Baseline]
"""(device, case) to the line of the revision that is the fixed anchor."""


def history_document(cases: Sequence[Told], *, overview: bool, anchors: Anchors | None = None) -> Document:
    """All cases with their last sitting, or each case with all of its own."""
    held = anchors or {}
    blocks: tuple[Block, ...] = (_overview(cases),) if overview else tuple(_section(case, held) for case in cases)
    return Document(title="History", blocks=blocks)


def _overview(cases: Sequence[Told]) -> Table:
    columns = (
        Column(name="case"),
        Column(name="device"),
        Column(name="last", dimension=_TIME),
        Column(name="accepted", dimension=_TIME, absent="-"),
        Column(name="when"),
    )
    rows = tuple(
        (printable(str(key)), device, s[-1].time if s else None, b.time if b else "none", s[-1].when[:16] if s else "")
        for key, device, s, b in cases
    )
    return Table(columns=columns, rows=rows)


def _section(case: Told, anchors: Anchors) -> Section:
    key, device, sittings, baseline = case
    accepted = baseline.time if baseline else None
    changes = change_points([s.time for s in sittings]) if all(s.time > 0 for s in sittings) else ()
    line = f"{bars([s.time for s in sittings])}  accepted: {quantity(accepted, _TIME) if accepted else 'nothing'}"
    said = [line, told(sittings, changes), anchored(sittings, anchors.get((device, str(key)), baseline))]
    paragraphs = tuple(Paragraph(text=text) for text in said if text)
    drawn = (timeline(printable(str(key)), sittings, changes, accepted),) if len(sittings) > 1 else ()
    return Section(
        title=f"{printable(str(key))} on {device}", blocks=(*paragraphs, *drawn, _sittings(sittings, baseline, changes))
    )


def _sittings(sittings: Sequence[Sitting], accepted: Baseline | None, changes: Sequence[ChangePoint]) -> Table:
    """A row a sitting; what never occurs has no column, and how it was measured one only where that changed."""
    hows = [s.identity for s in sittings] if len({s.identity for s in sittings} - {""}) > 1 else []
    before: list[float | None] = [None, *(s.time for s in sittings)]
    new = {change.index: signed(change.change) for change in changes}
    columns: list[tuple[Column, Sequence[object]]] = [
        (Column(name="when"), [s.when[:16] for s in sittings]),
        (Column(name="commit"), [short_commit(s.commit, 7) for s in sittings]),
        (Column(name="time", dimension=_TIME), [s.time for s in sittings]),
        (
            Column(name="against accepted"),
            [_change(s.time, accepted.time if accepted and _like(s, accepted) else None) for s in sittings],
        ),
        (Column(name="against the one before"), [_change(s.time, then) for s, then in zip(sittings, before)]),
        (Column(name="new level"), [new.get(at, "") for at in range(len(sittings))]),
        (Column(name="processes", dimension=Dimension.COUNT), [s.processes for s in sittings]),
        (Column(name="measured with"), [printable(how) for how in hows]),
    ]
    shown = [(column, cells) for column, cells in columns if any(cell != "" for cell in cells)]
    return Table(columns=tuple(column for column, _ in shown), rows=tuple(zip(*(cells for _, cells in shown))))


def anchored(sittings: Sequence[Sitting], baseline: Baseline | None) -> str:
    """How the line stands against its fixed anchor, the accepted time where none is named; empty while it holds."""
    alike = [s for s in sittings if baseline is not None and _like(s, baseline)]
    found = drift(alike, baseline.time, LIMIT, since=baseline.commit) if baseline else None
    return f"ANCHOR  {signed(found.change)}: {found.sentence}" if found and found.alarms else ""


def _like(sitting: Sitting, line: Baseline) -> bool:
    """Whether it was measured as the accepted time was, as far as both say how."""
    if not sitting.identity or line.identity is None:
        return True
    return sitting.identity == how_measured(line.identity, at_limit=line.limited)


def _change(time: float, then: float | None) -> str:
    return signed(time / then - 1) if then else ""


def bars(times: Sequence[float]) -> str:
    """A line of bars from the fastest to the slowest."""
    low, high = min(times, default=0.0), max(times, default=0.0)
    if high <= low:
        return _BARS[3] * len(times)
    return "".join(_BARS[round((t - low) / (high - low) * (len(_BARS) - 1))] for t in times)
