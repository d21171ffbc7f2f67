"""Turns surveys of traces into an analysis: metrics for limits, findings, and views."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING

from pytest_perfgate.core.analysis.decisions import findings_block
from pytest_perfgate.core.analysis.roofline import place
from pytest_perfgate.core.analysis.trace import rates, tables
from pytest_perfgate.core.analysis.trace.bottleneck import step_metrics_of_all, wants_replay, window_class
from pytest_perfgate.core.analysis.trace.job import RankFigures, TraceJob, collectives_document, job_sentence
from pytest_perfgate.core.analysis.trace.operators import OperatorRow, collectives, operators, selection_table
from pytest_perfgate.core.analysis.trace.passes import (
    fusion_candidates,
    fusion_table,
    passes,
    passes_table,
    render_ir,
    replay_ir,
    stack_document,
)
from pytest_perfgate.core.analysis.trace.ranks import JobCollectives, collective_metrics
from pytest_perfgate.core.analysis.trace.report import (
    ReportContent,
    analysis_document,
    name_of,
    neutral_report,
    report_document,
    rough_report,
    subtitle,
)
from pytest_perfgate.core.analysis.trace.survey import Survey, step_lines, timelines
from pytest_perfgate.core.analysis.trace.timeline import steps
from pytest_perfgate.core.metric_kinds import KERNEL_KINDS
from pytest_perfgate.core.render.words import plural, quantity
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import (
    Absent,
    Analysis,
    Block,
    Code,
    Column,
    Document,
    MetricSet,
    Paragraph,
    Picture,
    Section,
    labels,
)
from pytest_perfgate.model.values import Dimension

if TYPE_CHECKING:
    from pytest_perfgate.app.inspections.kineto_trace import TraceView
    from pytest_perfgate.model.device import Roof

TRACE_TABLES = (
    "timeline",
    "steps",
    "categories",
    "ops",
    "arguments",
    "kernels",
    "roofline",
    "impact",
    "fusion",
    "backward",
    "selection",
    "ranks",
)
"""Views that are tables."""

_OF_RANK = ("overlap", "roofline", "tree", "kernels")
"""Pictures of a single rank."""

_FEW = 32
"""The most steps for which operators' roofs are computed."""
_GLANCE = 16
"""Ranks that a report shows before it folds the others."""


def _draw(name: str, again: Callable[[], Iterator[TraceView]], job: TraceJob | None = None) -> Picture:
    """Draw one picture; its code is imported only here."""
    from pytest_perfgate.core.analysis.trace import pictures

    return pictures.of_job(name, job, again()) if job else pictures.of_trace(name, next(again()))


_TOOLS = {
    "ncu": "profile the kernel with ncu, or with rocprof on AMD, and check that report",
    "cubin": "check the cubin: perfgate check KERNEL.cubin",
    "rocprof": "profile the kernel with rocprof and check its CSV",
}


def _unobservable() -> MetricSet:
    """Return the figures of counters and machine code as absent, since no trace has them."""
    why = "not observable in a trace"
    return MetricSet(absent=tuple(Absent(name=k.name, why=why, fix=_TOOLS[k.source]) for k in KERNEL_KINDS))


def analysis_of(view: TraceView) -> Analysis:
    """Return the analysis of one rank's trace."""
    rank = view.whole.trace.rank or 0
    subject = name_of(view.survey)
    meeting = JobCollectives(parts=collectives(view.survey, rank), present=frozenset({rank}))
    views = _pages(subject, lambda: iter((view,)))
    own = {"ranks": lambda: collectives_document(meeting, subject)}
    metrics = view.metrics() | collective_metrics(meeting) | _unobservable()
    return Analysis(
        kind="kineto",
        subject=subject,
        metrics=metrics,
        views={"report": lambda: _report(view), **views, **own},
        findings=view.findings,
        problems=view.problems,
        window=view.survey.label,
        devices=tuple(dict.fromkeys(view.whole.trace.devices)),
        reports=_REPORTS,
        tables=TRACE_TABLES,
        pictures={
            name: partial(_draw, name, lambda: iter((view,))) for name in ("steps", "timeline", "mfu", *_OF_RANK)
        },
    )


def job_analysis(job: TraceJob, again: Callable[[], Iterator[TraceView]]) -> Analysis:
    """Return the analysis of several ranks; ``again`` reads their traces once more, one at a time."""
    meeting, subject = job.meeting, job.subject
    problems = tuple(problem for one in job.ranks for problem in one.problems)
    views = _pages(subject, again)
    own = {
        "ranks": lambda: collectives_document(meeting, subject),
        "analysis": lambda: _of_job(job, subject, views["analysis"]()),
        "fair": lambda: _of_job(job, subject, views["fair"]()),
        "rough": lambda: _of_job(job, subject, views["rough"]()),
    }
    metrics = job.metrics | collective_metrics(meeting) | _unobservable()
    return Analysis(
        kind="kineto",
        subject=subject,
        metrics=metrics,
        views={"report": lambda: _overview(job, subject), **views, **own},
        findings=job.findings,
        problems=problems,
        window=job.window,
        devices=tuple(dict.fromkeys(name for rank in job.ranks for name in rank.devices)),
        reports=_REPORTS,
        tables=TRACE_TABLES,
        pictures={name: partial(_draw, name, again, job) for name in ("ranks", "timeline", *_OF_RANK)},
    )


_REPORTS = {"report": "analysis", **{f"standalone_analysis_{kind}": kind for kind in ("rough", "fair")}}


def _pages(subject: str, again: Callable[[], Iterator[TraceView]]) -> dict[str, Callable[[], Document]]:
    """Return views by name; callers add the report and the ranks."""
    from pytest_perfgate.core.analysis.trace.metrics import kernel_block

    def first() -> TraceView:
        return next(again())

    def page(title: str, block: Callable[[TraceView], Block]) -> Callable[[], Document]:
        return lambda: _page(title, subject, again, block)

    return {
        "timeline": page("Timeline", _timeline_block),
        "steps": page("Steps", _steps_block),
        "categories": page("Categories", lambda view: tables.category_table(view.rows)),
        "ops": page("Operators", lambda view: tables.operator_table(view.rows)),
        "arguments": page("Operators by arguments", lambda view: tables.argument_table(view.rows)),
        "kernels": page("Kernels", lambda view: kernel_block(view.survey, view.rows, view.kernels, view.roof)),
        "roofline": page("Roofline", lambda view: tables.roofline_table(view.rows, view.roof)),
        "impact": page("Impact", _impact_block),
        "fusion": page("Fusion candidates", lambda view: fusion_table(fusion_candidates(view.survey))),
        "backward": page("Forward and backward", lambda view: passes_table(passes(view.survey))),
        "findings": page("Findings", lambda view: findings_block(view.findings)),
        "tracelens": lambda: _reference_page(first(), subject),
        "selection": page("Kernel selection", lambda view: selection_table(view.rows)),
        "replay": lambda: _replay_page(first(), subject),
        "analysis": lambda: _analysis_page(first()),
        "fair": lambda: neutral_report(content_of(first())),
        "rough": lambda: rough_report(content_of(first())),
        "stack": lambda: _stack(first()),
    }


def _page(
    title: str, subject: str, again: Callable[[], Iterator[TraceView]], block: Callable[[TraceView], Block]
) -> Document:
    parts = [(name_of(view.survey), subtitle(view.survey), _of_its_times(view, block(view))) for view in again()]
    if parts[0][0] == subject:
        _, note, only = parts[0]
        return Document(title=f"{title} of {subject}", subtitle=note, blocks=(only,))
    sections = tuple(Section(title=name, blocks=(Paragraph(text=note), each)) for name, note, each in parts)
    return Document(title=f"{title} of {subject}", blocks=sections)


def _of_its_times(view: TraceView, block: Block) -> Block:
    """Return a block with the host's times for a program without a GPU."""
    return tables.of_host(block) if view.survey.on_host else block


def _report(view: TraceView) -> Document:
    page = report_document(view.survey, view.rows, view.kernels, view.findings, view.roof)
    if view.bottleneck is not None:
        page = replace(page, blocks=(Paragraph(text=view.bottleneck.of_window), *page.blocks))
    if (several := len(view.windows)) > 1:
        page = replace(page, subtitle=f"{page.subtitle} · each of {several} windows: --view steps")
    if not view.options.replay:
        return page
    return replace(page, blocks=(*page.blocks, Section(title="Replay", blocks=(Paragraph(text=_replayed(view)),))))


def _replayed(view: TraceView) -> str:
    """Return how to write the replay package, or how to use it."""
    zipped = view.options.replay
    if not zipped:
        return "Write it with its runner as a zip by --set replay=FILE.zip; one operation by --set op=NAME beside it."
    return f"Written to {zipped}. Run it where PyTorch is: unzip {zipped} -d replay && python replay/replay.py"


def _ranks_section(job: TraceJob, limit: int = 0) -> Section:
    """Return every rank with all its devices in one table."""
    lines = [
        (str(rank.rank) if len(rank.lines) == 1 else f"{rank.rank}, device {device}", line)
        for rank in job.ranks
        for device, line in rank.lines
    ]
    silent = [str(rank.rank) for rank in job.ranks if not rank.lines]
    covered = [_coverage(rank) for rank in job.ranks for _ in rank.lines]
    blocks: list[Block] = [
        Paragraph(text=f"Limits are INVALID: rank {rank.rank}: {problem.what}.")
        for rank in job.ranks
        for problem in rank.problems
    ]
    host = all(rank.on_host for rank in job.ranks)
    table = tables.ranks_table(lines, on_host=True) if host else tables.covered_table(lines, covered)
    blocks.append(replace(table, limit=limit))
    blocks += [Paragraph(text=f"Without GPU activity: rank {', '.join(silent)}.")] if silent else []
    return Section(title="Ranks", blocks=tuple(blocks))


def _coverage(rank: RankFigures) -> float | None:
    """Return the share of a rank's GPU time that is linked to a launch; ``None`` without GPU time."""
    metrics = rank.metrics.find("coverage", labels(rank=rank.rank))
    return metrics[0].value if metrics else None


def _overview(job: TraceJob, subject: str) -> Document:
    return Document(
        title=f"Traces of {subject}",
        subtitle=f"window: {job.window}",
        blocks=(
            Paragraph(text=job_sentence(job)),
            _ranks_section(job),
            *collectives_document(job.meeting, subject).blocks,
            Section(title="Findings", blocks=(findings_block(job.findings),)),
        ),
    )


def _of_job(job: TraceJob, subject: str, page: Document) -> Document:
    """Return the report of the first rank after the summary of all ranks."""
    note = Paragraph(text=f"What follows is of rank {job.measured.ranks[0].rank} alone.")
    blocks = (
        Paragraph(text=job_sentence(job)),
        *_ranks_section(job, _GLANCE).blocks,
        *collectives_document(job.meeting, subject).blocks,
    )
    everybody = Section(title="All ranks", blocks=(*blocks, Section(title="One rank", blocks=(note,))))
    return replace(page, title=f"{subject}: {page.title.rpartition(': ')[2]}", blocks=(everybody, *page.blocks))


def _timeline_block(view: TraceView) -> Block:
    lines = timelines(view.survey)
    if not lines:
        return Paragraph(text="The trace has no GPU activity.")
    host, several = view.survey.on_host, len(lines) > 1
    parts = tuple(
        tables.timeline_table(line, f"Device {device}" if several else "", on_host=host)
        for device, line in lines.items()
    )
    return parts[0] if len(parts) == 1 else Section(title="Devices", blocks=parts)


def _steps_block(view: TraceView) -> Block:
    parts = view.stretches
    lines = [*step_lines(parts)]
    if not lines:
        marked = len(steps(view.whole.trace))
        if not marked:
            return Paragraph(text="The trace marks no steps.")
        work = "operator" if view.survey.on_host else "GPU work"
        return Paragraph(text=f"The trace marks {plural(marked, 'step')}, and no {work} lies in one of them.")
    table = tables.ranks_table(lines, "step", on_host=view.survey.on_host)
    classes = {part.stretch: _class_of(view, part, len(parts)) for part in parts}
    if not any(classes.values()):
        return table
    return replace(
        table,
        columns=(*table.columns, *Column.header("limited by")),
        rows=tuple((*row, classes.get(str(row[0]), "")) for row in table.rows),
    )


def _class_of(view: TraceView, part: Survey, count: int) -> str:
    """Return the class of one step; for many steps, without roofs."""
    rows = operators(part) if count <= _FEW else ()
    classified = window_class(part, rows, view.roof, view.problems)
    return classified.bottleneck.value if classified is not None else ""


def _impact_block(view: TraceView) -> Block:
    total = view.line.total if view.line else 0
    top = view.rows[: view.options.settings.top]
    impacts = [impact for row in top if (impact := rates.impact(row, view.roof, total)) is not None]
    if not impacts:
        why = "no roof is known: add --device, or --peak and --bandwidth" if view.roof is None else "no model"
        return Paragraph(text=f"No gain can be estimated: {why}.")
    return rates.impact_table(impacts)


def replay_text(view: TraceView) -> str:
    """Return operations for a replay as JSON: the named one, else those that are large and slow enough."""
    if view.options.op:
        chosen = [row for row in view.rows if fnmatchcase(row.name, view.options.op) and row.call.recorded]
    else:
        chosen = [row for row in view.rows if wants_replay(row, _fraction(row, view.roof))]
    if not chosen:
        what = (
            f"no recorded operation fits {view.options.op!r}"
            if view.options.op
            else "no operation is large and slow enough"
        )
        fix = "name one with --set op=NAME; shapes need record_shapes=True"
        raise PerfgateError("trace-no-operation", what, place=view.whole.trace.path, fix=fix)
    return render_ir(replay_ir(chosen, name_of(view.survey)))


def _fraction(row: OperatorRow, roof: Roof | None) -> float | None:
    return place(row.work, row.total / row.count, roof).fraction if row.work and roof else None


def _replay_page(view: TraceView, subject: str) -> Document:
    note = Paragraph(text=_replayed(view))
    return Document(title=f"Replay of {subject}", blocks=(note, Code(text=replay_text(view), language="json")))


def _reference_page(view: TraceView, subject: str) -> Document:
    from pytest_perfgate.core.analysis.tracelens import reference_document, reference_tables

    return reference_document(reference_tables(view.whole), subject)


_FIGURES = {
    "step_to_step": "step to step",
    "tflops": "achieved rate",
    "bandwidth": "bandwidth of unique bytes",
    "mfu_datasheet": "MFU",
    "sol_datasheet": "% of SOL",
}
"""Metrics of the whole window in the four-section report."""


def _analysis_page(view: TraceView) -> Document:
    """Return the report in four sections, with the rates of the window."""
    metrics = rates.utilisation(view.survey, view.rows, (), view.roof, ((),)).metrics
    of_steps = step_metrics_of_all(view.whole, view.steps, ((),))
    rate = rates.throughput(view.whole, view.steps, view.options.items)
    extra = [("throughput", quantity(rate[0], Dimension.RATE, noun=f"{rate[1]}/s"))] if rate else []
    shown = {m.name: rates.rate_text(m) for m in (*of_steps, *metrics)}
    extra += [(title, shown[name]) for name, title in _FIGURES.items() if name in shown]
    extra += [("known work", part)] if (part := rates.known_part(view.rows)) and shown else []
    return analysis_document(content_of(view), extra, view.bottleneck.of_window if view.bottleneck else "")


def content_of(view: TraceView) -> ReportContent:
    return ReportContent(
        survey=view.survey,
        line=view.line,
        rows=view.rows,
        kernels=view.kernels,
        findings=view.findings,
        roof=view.roof,
        stacks=lambda: view.stacked,
    )


def _stack(view: TraceView) -> Document:
    if view.options.op:
        return stack_document(view.stacked, view.options.op)
    named = [row for row in view.rows if row.example >= 0]
    if not named:
        raise PerfgateError("trace-no-operation", "no operator reached the GPU; name one with --set op=NAME")
    return stack_document(view.stacked, str(named[0].event))
