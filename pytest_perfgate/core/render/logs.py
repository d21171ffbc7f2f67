"""History, acceptance pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_perfgate.core.judge.acceptance import Change, Decision
from pytest_perfgate.core.judge.accepted_line import LIMIT, drift
from pytest_perfgate.core.judge.context import how_measured
from pytest_perfgate.core.judge.samples import busy_processors
from pytest_perfgate.core.render.block import accepted_text, printable
from pytest_perfgate.core.render.pictures import sittings_text, timeline
from pytest_perfgate.core.render.words import plural, quantity, signed
from pytest_perfgate.core.stats.change_points import ChangePoint, change_points
from pytest_perfgate.model.measurement import Baseline, Sitting, short_commit
from pytest_perfgate.model.metric import Block, Column, Document, Paragraph, Section, Table
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.values import Dimension

Told = tuple[CaseKey, str, Sequence[Sitting], "Baseline | None"]

_BARS = "▁▂▃▄▅▆▇█"

_TIME = Dimension.TIME

Anchors = Mapping[tuple[str, str], Baseline]
"""(device, case) to the line of the revision that is the fixed anchor."""


def history_document(cases: Sequence[Told], *, overview: bool, anchors: Anchors | None = None) -> Document:
    """All cases with their last sitting, or each case with all of its own."""
    anchored_lines = anchors or {}
    blocks: tuple[Block, ...] = (
        (_overview(cases),) if overview else tuple(_section(case, anchored_lines) for case in cases)
    )
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
    line = f"{bars([s.time for s in sittings])}  accepted: {accepted_text(baseline) if baseline else 'nothing'}"
    lines = [line, sittings_text(sittings, changes), anchored(sittings, anchors.get((device, str(key)), baseline))]
    paragraphs = tuple(Paragraph(text=text) for text in lines if text)
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
            [_history_change(s.time, accepted.time if accepted and _like(s, accepted) else None) for s in sittings],
        ),
        (Column(name="against the one before"), [_history_change(s.time, then) for s, then in zip(sittings, before)]),
        (Column(name="new level"), [new.get(at, "") for at in range(len(sittings))]),
        (Column(name="processes", dimension=Dimension.COUNT), [s.processes for s in sittings]),
        (Column(name="measured with"), [printable(how) for how in hows]),
    ]
    shown = [(column, cells) for column, cells in columns if any(cell != "" for cell in cells)]
    return Table(columns=tuple(column for column, _ in shown), rows=tuple(zip(*(cells for _, cells in shown))))


def anchored(sittings: Sequence[Sitting], baseline: Baseline | None) -> str:
    """How the line stands against its fixed anchor, the accepted time where none is named; empty while it holds."""
    alike = [s for s in sittings if baseline is not None and _like(s, baseline)]
    drifted = drift(alike, baseline.time, LIMIT, since=baseline.commit) if baseline else None
    return f"ANCHOR  {signed(drifted.change)}: {drifted.sentence}" if drifted and drifted.alarms else ""


def _like(sitting: Sitting, line: Baseline) -> bool:
    """Whether it was measured as the accepted time was, as far as both say how."""
    if not sitting.identity or line.identity is None:
        return True
    return sitting.identity == how_measured(line.identity, at_limit=line.limited)


def _history_change(time: float, then: float | None) -> str:
    return signed(time / then - 1) if then else ""


def bars(times: Sequence[float]) -> str:
    """A line of bars from the fastest to the slowest."""
    low, high = min(times, default=0.0), max(times, default=0.0)
    if high <= low:
        return _BARS[3] * len(times)
    return "".join(_BARS[round((t - low) / (high - low) * (len(_BARS) - 1))] for t in times)


_WHOLE = "a full run sees more, and takes its place"

_AGAIN = "run again on a quieter machine, or keep it"

_SAID = (Change.UNTRUSTED, Change.UNTIMED, Change.COUNTED, Change.MOVED, Change.PINNED)


def acceptance_lines(found: Sequence[Decision], *, dry: bool = False) -> Iterator[str]:
    """One line for each case that changes or cannot; the rest is counted, and each warning stands once."""
    for decision in found:
        if decision.writes or decision.change in _SAID:
            blind = "" if decision.blind is None else f"  can detect {signed(decision.blind)}"
            yield f"{_line(decision)}{blind}"
    written = sum(d.writes for d in found)
    counts = Counter(d.change for d in found if not d.writes)
    rest = ", ".join(f"{count} {change.value}" for change, count in counts.items())
    verb = "would be accepted" if dry else "accepted"
    yield f"{written} {verb}" + (f"; {rest}" if rest else "") if found else "nothing to accept"
    yield from _warnings([d for d in found if d.writes or d.change in _SAID])


def _warnings(shown: Sequence[Decision]) -> Iterator[str]:
    """What is to be known of several decisions at once, with how many."""
    few = Counter(d.scanty for d in shown if d.scanty)
    for scanty, count in few.items():
        yield f"warning  {count} of {plural(len(shown), 'case')}, {scanty}; {_WHOLE}"
    if blind := sum(d.blind is not None for d in shown):
        share = f"{blind} of {plural(len(shown), 'case')}"
        yield f"warning  {share} could not have seen a slowdown as small as the limit{_busy_note(shown)}; {_AGAIN}"


def _busy_note(shown: Sequence[Decision]) -> str:
    """How busy others kept the machine meanwhile."""
    most = max((busy_processors(d.report.measurement.processes) for d in shown if d.report.measurement), default=0.0)
    return f": others kept {most:.1f} processors busy beside them" if most else ""


def _warning(decision: Decision) -> str:
    """What a sitting is worth that is too wide for its limit, or of too few processes; empty where it is neither."""
    warnings = [f"{decision.scanty}; {_WHOLE}"] if decision.scanty else []
    if decision.blind is not None:
        text = f"the smallest slowdown this run can detect is {signed(decision.blind)}"
        warnings.append(f"{text}; {_AGAIN}")
    return "; ".join(warnings)


def decision_lines(decision: Decision) -> Iterator[str]:
    """The case, then and now, and what is to be known before it is accepted."""
    yield _line(decision)
    if warning := _warning(decision):
        yield f"  warning  {warning}"


def _line(decision: Decision) -> str:
    name = printable(str(decision.report.key))
    if decision.after is None:
        return f"{decision.change.value:<9}  {name}  {decision.why}"
    now = quantity(decision.after.time, Dimension.TIME)
    if decision.before is None:
        return f"{decision.change.value:<9}  {name}  {now}{_heritage(decision)}"
    then = quantity(decision.before.time, Dimension.TIME)
    shift = signed(decision.after.time / decision.before.time - 1)
    return f"{decision.change.value:<9}  {name}  {then} -> {now}  {shift}"


def _heritage(decision: Decision) -> str:
    """Whose place a new line takes, where that was faster."""
    if decision.twin is None or decision.after is None:
        return ""
    shift = signed(decision.after.time / decision.twin.time - 1)
    then = quantity(decision.twin.time, Dimension.TIME)
    return f"  {shift} after {printable(str(decision.twin.key))}, which is gone ({then})"


def acceptance_json(found: Sequence[Decision]) -> list[dict[str, Any]]:
    return [
        {
            "case": str(d.report.key),
            "change": d.change.value,
            "before_ns": d.before.time if d.before else None,
            "twin": str(d.twin.key) if d.twin else "",
            "after_ns": d.after.time if d.after else None,
            "why": d.why,
            "warning": _warning(d),
        }
        for d in found
    ]
