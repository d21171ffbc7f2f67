"""Sittings over time as a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_perfgate.core.gate.anchor import LIMIT, drift
from pytest_perfgate.core.render.block import printable
from pytest_perfgate.core.render.quantity import quantity, signed
from pytest_perfgate.core.render.timeline import timeline, told
from pytest_perfgate.core.stats.change_points import change_points
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
        Column(name="accepted", dimension=_TIME),
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
    columns = (
        Column(name="when"),
        Column(name="commit"),
        Column(name="time", dimension=_TIME),
        Column(name="against accepted"),
        Column(name="against the one before"),
        Column(name="processes", dimension=Dimension.COUNT),
    )
    before: list[float | None] = [None, *(s.time for s in sittings)]
    rows = tuple(
        (s.when[:16], short_commit(s.commit, 7), s.time, _change(s.time, accepted), _change(s.time, last), s.processes)
        for s, last in zip(sittings, before)
    )
    line = f"{bars([s.time for s in sittings])}  accepted: {quantity(accepted, _TIME) if accepted else 'nothing'}"
    table = Table(columns=columns, rows=rows)
    changes = change_points([s.time for s in sittings]) if all(s.time > 0 for s in sittings) else ()
    said = [line, told(sittings, changes), anchored(sittings, anchors.get((device, str(key)), baseline))]
    paragraphs = tuple(Paragraph(text=text) for text in said if text)
    drawn = (timeline(printable(str(key)), sittings, changes, accepted),) if len(sittings) > 1 else ()
    return Section(title=f"{printable(str(key))} on {device}", blocks=(*paragraphs, *drawn, table))


def anchored(sittings: Sequence[Sitting], baseline: Baseline | None) -> str:
    """How the line stands against its fixed anchor, the accepted time where none is named; empty while it holds."""
    found = drift(sittings, baseline.time, LIMIT, since=baseline.commit) if baseline else None
    return f"ANCHOR  {signed(found.change)}: {found.sentence}" if found and found.alarms else ""


def _change(time: float, then: float | None) -> str:
    return signed(time / then - 1) if then else ""


def bars(times: Sequence[float]) -> str:
    """A line of bars from the fastest to the slowest."""
    low, high = min(times, default=0.0), max(times, default=0.0)
    if high <= low:
        return _BARS[3] * len(times)
    return "".join(_BARS[round((t - low) / (high - low) * (len(_BARS) - 1))] for t in times)
