"""Surveys of traces into an analysis: metrics for limits, findings, and views for people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import cached_property

from pytest_perfgate.app.inspections.kineto_options import Asked
from pytest_perfgate.core.analysis.roofline import place
from pytest_perfgate.core.analysis.trace import tables
from pytest_perfgate.core.analysis.trace.advice import wants_replay
from pytest_perfgate.core.analysis.trace.backward import passes, passes_table
from pytest_perfgate.core.analysis.trace.collectives import collectives
from pytest_perfgate.core.analysis.trace.compat.document import reference_document, reference_metrics
from pytest_perfgate.core.analysis.trace.findings import findings
from pytest_perfgate.core.analysis.trace.fusion import fusion_candidates, fusion_table
from pytest_perfgate.core.analysis.trace.identity import selection_table
from pytest_perfgate.core.analysis.trace.impact import impact, impact_table
from pytest_perfgate.core.analysis.trace.kernels import KernelRow, kernels
from pytest_perfgate.core.analysis.trace.metrics import (
    kernel_metrics,
    operator_metrics,
    scopes_of,
    step_metrics,
    timeline_metrics,
)
from pytest_perfgate.core.analysis.trace.operators import OperatorRow, operators
from pytest_perfgate.core.analysis.trace.peaks import given_roof, sheet_roof
from pytest_perfgate.core.analysis.trace.ranks import Meeting, meeting_document, meeting_metrics
from pytest_perfgate.core.analysis.trace.replay import render_ir, replay_ir
from pytest_perfgate.core.analysis.trace.report import findings_block, name_of, report_document, subtitle
from pytest_perfgate.core.analysis.trace.stack import stack_document
from pytest_perfgate.core.analysis.trace.survey import Survey, pooled, through, timelines
from pytest_perfgate.core.analysis.trace.timeline import Timeline
from pytest_perfgate.core.analysis.trace.window import parse_window, steps
from pytest_perfgate.core.analysis.trace.written import Material, standalone_fair, standalone_rough
from pytest_perfgate.model.analysis import Analysis
from pytest_perfgate.model.device import Roof
from pytest_perfgate.model.document import Block, Code, Document, Paragraph, Section
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import MetricSet
from pytest_perfgate.model.ports import Catalogue
from pytest_perfgate.model.problem import Finding, Problem


class Seen:
    """One trace in its window with what is worked out of it once."""

    def __init__(self, survey: Survey, asked: Asked, catalogue: Catalogue) -> None:
        self.whole = survey
        self.asked = asked
        self._catalogue = catalogue

    @cached_property
    def windows(self) -> tuple[Survey, ...]:
        """The stretches asked for; the whole trace where none was."""
        found = parse_window(self.whole.trace, self.asked.window)
        return tuple(through(self.whole, found)) or (self.whole,)

    @property
    def survey(self) -> Survey:
        return self.windows[0] if len(self.windows) == 1 else self.whole

    @cached_property
    def rows(self) -> tuple[OperatorRow, ...]:
        return operators(self.survey)

    @cached_property
    def kernels(self) -> tuple[KernelRow, ...]:
        return kernels(self.survey)

    @cached_property
    def line(self) -> Timeline | None:
        return pooled(list(timelines(self.survey).values()))

    @cached_property
    def roof(self) -> Roof | None:
        """Peaks as given, else the catalogue's for the named device, else for what the trace says it ran on."""
        given = given_roof(self.asked.peak, self.asked.bandwidth)
        if given is not None:
            return given
        devices = set(self.survey.trace.devices)
        name = self.asked.device or (devices.pop() if len(devices) == 1 else "")
        spec = self._catalogue.lookup(name) if name else None
        if spec is None and self.asked.device:
            raise PerfgateError("trace-option", f"no device {self.asked.device!r} in the catalogue")
        return sheet_roof(spec, self.asked.rates) if spec else None

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        return findings(self.survey, self.line, self.rows, self.kernels, self.roof)

    def metrics(self, ranks: int) -> MetricSet:
        scopes = scopes_of(self.whole.trace.rank, ranks)
        parts = through(self.whole, steps(self.whole.trace)) if not self.asked.window else []
        inner = [part for part in self.windows if part.window] if len(self.windows) > 1 else parts
        return (
            timeline_metrics(self.survey, scopes)
            | operator_metrics(self.rows, self.roof, scopes)
            | kernel_metrics(self.kernels, self.survey, scopes)
            | step_metrics(inner, scopes)
        )


def analysis_of(surveys: Sequence[Survey], asked: Asked, catalogue: Catalogue) -> Analysis:
    """One analysis of one or several ranks."""
    seen = [Seen(survey, asked, catalogue) for survey in surveys]
    meeting = Meeting()
    for number, one in enumerate(seen):
        rank = one.whole.trace.rank if one.whole.trace.rank is not None else number
        meeting |= Meeting(parts=collectives(one.survey, rank), present=frozenset({rank}))
    metrics = MetricSet()
    for one in seen:
        metrics |= one.metrics(len(seen))
    metrics |= meeting_metrics(meeting)
    if asked.compat:
        metrics = reference_metrics(surveys[0])
    subject = name_of(surveys[0]) if len(surveys) == 1 else f"{len(surveys)} ranks"
    return Analysis(
        kind="kineto",
        subject=subject,
        metrics=metrics,
        views=_views(seen, meeting, subject, asked.compat),
        findings=tuple(f for one in seen for f in one.findings),
        problems=tuple(p for one in seen for p in _problems(one)),
        window=seen[0].survey.label,
    )


def _problems(one: Seen) -> tuple[Problem, ...]:
    coverage, floor = one.survey.coverage, one.asked.settings.floor
    if coverage is None or coverage >= floor:
        return ()
    what = f"only {coverage:.1%} of the GPU time is linked to a launch; the floor is {floor:.0%}"
    return (Problem(code="trace-coverage", what=what, evidence=(("trace", one.whole.trace.path),), retry=False),)


def _views(seen: Sequence[Seen], meeting: Meeting, subject: str, compat: str) -> dict[str, Callable[[], Document]]:
    if compat:
        return {"tracelens": lambda: reference_document(seen[0].whole, subject)}

    def page(title: str, block: Callable[[Seen], Block]) -> Callable[[], Document]:
        return lambda: _page(title, seen, block)

    several = len(seen) > 1
    return {
        "report": lambda: _overview(seen, meeting, subject) if several else _report(seen[0]),
        "timeline": page("Timeline", _timeline_block),
        "steps": page("Steps", _steps_block),
        "categories": page("Categories", lambda one: tables.category_table(one.rows)),
        "ops": page("Operators", lambda one: tables.operator_table(one.rows)),
        "arguments": page("Operators by arguments", lambda one: tables.argument_table(one.rows)),
        "kernels": page("Kernels", lambda one: tables.kernel_table(one.kernels)),
        "roofline": page("Roofline", lambda one: tables.roofline_table(one.rows, one.roof)),
        "impact": page("Impact", _impact_block),
        "fusion": page("Fusion candidates", lambda one: fusion_table(fusion_candidates(one.survey))),
        "backward": page("Forward and backward", lambda one: passes_table(passes(one.survey))),
        "findings": page("Findings", lambda one: findings_block(one.findings)),
        "ranks": lambda: meeting_document(meeting, subject),
        "tracelens": lambda: reference_document(seen[0].whole, subject),
        "selection": page("Kernel selection", lambda one: selection_table(one.rows)),
        "replay": lambda: _replay_page(seen[0], subject),
        "fair": lambda: standalone_fair(_material(seen[0])),
        "rough": lambda: standalone_rough(_material(seen[0])),
        "stack": lambda: stack_document(seen[0].survey, _operation(seen[0])),
    }


def _page(title: str, seen: Sequence[Seen], block: Callable[[Seen], Block]) -> Document:
    if len(seen) == 1:
        one = seen[0]
        return Document(title=f"{title} of {name_of(one.survey)}", subtitle=subtitle(one.survey), blocks=(block(one),))
    sections = tuple(
        Section(title=f"{name_of(one.survey)}", blocks=(Paragraph(text=subtitle(one.survey)), block(one)))
        for one in seen
    )
    return Document(title=f"{title} of {len(seen)} ranks", blocks=sections)


def _report(one: Seen) -> Document:
    return report_document(one.survey, one.rows, one.kernels, one.findings, one.roof)


def _overview(seen: Sequence[Seen], meeting: Meeting, subject: str) -> Document:
    lines = [(str(one.whole.trace.rank), line) for one in seen if (line := one.line) is not None]
    ranks = meeting_document(meeting, subject)
    first = Section(title="Ranks", blocks=(tables.ranks_table(lines),))
    return Document(
        title=f"Traces of {subject}", subtitle=f"window: {seen[0].survey.label}", blocks=(first, *ranks.blocks)
    )


def _timeline_block(one: Seen) -> Block:
    lines = timelines(one.survey)
    if not lines:
        return Paragraph(text="The trace has no GPU activity.")
    parts = tuple(tables.timeline_table(line, f"Device {d}" if len(lines) > 1 else "") for d, line in lines.items())
    return parts[0] if len(parts) == 1 else Section(title="Devices", blocks=parts)


def _steps_block(one: Seen) -> Block:
    parts = one.windows if len(one.windows) > 1 else through(one.whole, steps(one.whole.trace))
    lines = [(part.label, line) for part in parts if (line := pooled(list(timelines(part).values()))) is not None]
    return tables.ranks_table(lines, "step") if lines else Paragraph(text="The trace marks no steps.")


def _impact_block(one: Seen) -> Block:
    total = one.line.total if one.line else 0
    top = one.rows[: one.asked.settings.top]
    found = [made for row in top if (made := impact(row, one.roof, total)) is not None]
    if not found:
        why = "no roof is known: give device= or peak= and bandwidth=" if one.roof is None else "no model"
        return Paragraph(text=f"No gain can be estimated: {why}.")
    return impact_table(found)


def replay_text(one: Seen) -> str:
    """Operations worth a reproducer as JSON: the one that was named, else those large and slow enough."""
    if one.asked.op:
        chosen = [row for row in one.rows if fnmatchcase(row.name, one.asked.op) and row.call.recorded]
    else:
        chosen = [row for row in one.rows if wants_replay(row, _fraction(row, one.roof))]
    if not chosen:
        what = (
            f"no recorded operation fits {one.asked.op!r}" if one.asked.op else "no operation is large and slow enough"
        )
        mend = "name one with --set op=NAME; shapes need record_shapes=True"
        raise PerfgateError("trace-no-operation", what, place=one.whole.trace.path, mend=mend)
    return render_ir(replay_ir(chosen, name_of(one.survey)))


def _fraction(row: OperatorRow, roof: Roof | None) -> float | None:
    return place(row.work, row.total / row.count, roof).fraction if row.work and roof else None


def _replay_page(one: Seen, subject: str) -> Document:
    note = Paragraph(text="Write it with its runner as a zip: --set replay=FILE.zip")
    return Document(title=f"Replay of {subject}", blocks=(note, Code(text=replay_text(one), language="json")))


def _material(one: Seen) -> Material:
    return Material(
        seen=one.survey,
        line=one.line,
        rows=one.rows,
        kernels=one.kernels,
        findings=one.findings,
        roof=one.roof,
    )


def _operation(one: Seen) -> str:
    if one.asked.op:
        return one.asked.op
    named = [row for row in one.rows if row.example >= 0]
    if not named:
        raise PerfgateError("trace-no-operation", "no operator reached the GPU; name one with --set op=NAME")
    return str(named[0].example)
