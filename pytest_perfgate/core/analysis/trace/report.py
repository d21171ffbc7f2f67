"""The default report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_perfgate.core.analysis.decisions import findings_block, four_sections
from pytest_perfgate.core.analysis.roofline import band
from pytest_perfgate.core.analysis.trace import bottleneck, tables
from pytest_perfgate.core.analysis.trace.operators import (
    KernelRow,
    OperatorRow,
    hardware_table,
    library,
    selection_table,
    short_name,
)
from pytest_perfgate.core.analysis.trace.passes import fusion_candidates, fusion_table, stack_document
from pytest_perfgate.core.analysis.trace.rates import Impact, impact, impact_table, utilised
from pytest_perfgate.core.analysis.trace.survey import OUTSIDE, Survey, timelines
from pytest_perfgate.core.analysis.trace.tables import kernel_table, of_host, operator_table, timeline_table
from pytest_perfgate.core.render.words import plural, quantity
from pytest_perfgate.model.metric import Block, Bullets, Column, Document, Finding, Paragraph, Section, Table
from pytest_perfgate.model.profiles import Category
from pytest_perfgate.model.values import Dimension, array_value

if TYPE_CHECKING:
    from pytest_perfgate.core.analysis.trace.timeline import Timeline
    from pytest_perfgate.model.device import Roof


def report_document(
    survey: Survey,
    rows: Sequence[OperatorRow],
    kernels: Sequence[KernelRow],
    findings: Sequence[Finding],
    roof: Roof | None,
) -> Document:
    """Return the report of one trace in one window."""
    none = Paragraph(text="The trace has no GPU activity: this report has no kernels and no overlap.")
    lines = _timelines(survey)
    blocks: list[Block] = [Section(title="Where the time went", blocks=lines) if lines else none]
    if rows:
        blocks += _tables(survey, rows, kernels, roof)
    blocks.append(Section(title="Findings", blocks=(findings_block([f for f in findings if not _is_class(f)]),)))
    blocks.append(Section(title="Not observable in a trace", blocks=(tables.not_recorded_block(),)))
    return _page(survey, f"Trace {name_of(survey)}", blocks)


def _page(survey: Survey, title: str, blocks: Sequence[Block]) -> Document:
    shown = map(of_host, blocks) if survey.on_host else blocks
    return Document(title=title, subtitle=subtitle(survey), blocks=tuple(shown))


def _tables(
    survey: Survey, rows: Sequence[OperatorRow], kernels: Sequence[KernelRow], roof: Roof | None
) -> Iterator[Section]:
    """Yield what took the time; without a GPU there are no kernels."""
    top = 2 * survey.settings.top
    yield Section(title="Operators", blocks=(tables.brief(operator_table(rows, limit=top), "running"),))
    if any(row.work is not None for row in rows):
        placed = tables.brief(tables.roofline_table(rows, roof, limit=top), "work", "bytes")
        together = utilised(survey, rows, roof)
        yield Section(title="Roofline", blocks=(placed, Paragraph(text=together)) if together else (placed,))
    else:
        yield Section(title="Roofline", blocks=(Paragraph(text=f"No operator's work is known: {_unknown(rows)}."),))
    if not survey.on_host:
        table = tables.brief(kernel_table(kernels, limit=top), "stream", "median", "deviation", "min", "max")
        yield Section(title="Kernels", blocks=(table,))


def _unknown(rows: Sequence[OperatorRow]) -> str:
    """Return why no operator has a rate: the reason with most of the time of operators."""
    reasons: Counter[str] = Counter()
    for row in rows:
        reasons[row.why] += int(row.total) * (row.name != OUTSIDE)
    return max(reasons, key=reasons.__getitem__)


def _rank(rank: int, world: int | None) -> str:
    """Return ``rank 1 of 2``; ranks count from 0, so a trace may contradict itself."""
    if world and rank >= world:
        return f"rank {rank}, though the trace names only {plural(world, 'rank')}"
    return f"rank {rank} of {world}" if world else f"rank {rank}"


def subtitle(survey: Survey) -> str:
    """Return window, rank, device and coverage, on which every figure depends."""
    trace = survey.trace
    parts = [f"window: {survey.label}"]
    parts += [_rank(trace.rank, trace.world)] if trace.rank is not None else []
    named = sorted(filter(None, trace.devices))
    parts += named[:1]
    if not survey.on_host:
        parts.append(f"coverage {survey.coverage * 100:.1f} %" if survey.coverage is not None else "no GPU activity")
    parts += ["no shapes recorded"] if not trace.shapes else []
    lost = survey.tree.dropped
    parts += [f"{plural(lost, 'straddling host event')} left out of the tree"] if lost else []
    return " · ".join(parts)


def name_of(survey: Survey) -> str:
    return survey.trace.path.rpartition("/")[2]


_TIME, _PART = Dimension.TIME, Dimension.FRACTION


def summary_blocks(content: ReportContent) -> tuple[Block, ...]:
    """Return a summary of at most twenty lines."""
    survey, line = content.survey, content.line
    ranked = ranked_operators(content.rows)[: survey.settings.top]
    table = Table(
        columns=Column.header("# | operation | time: time | of operators' time: fraction 3"),
        rows=tuple((str(n), *row) for n, row in enumerate(ranked, 1)),
        title="Top bottlenecks",
    )
    devices = _timelines(survey) if line is None else ()
    return (Paragraph(text=_summary(content, ranked)), _metrics(survey, line), *devices, *((table,) if ranked else ()))


def _timelines(survey: Survey) -> tuple[Table, ...]:
    lines, host = timelines(survey), survey.on_host
    return tuple(
        timeline_table(timeline, f"Device {n}" if len(lines) > 1 else "", on_host=host) for n, timeline in lines.items()
    )


def ranked_operators(rows: Sequence[OperatorRow]) -> list[tuple[str, float, float]]:
    """Return the operators that took longest: name, time, share."""
    spent: dict[str, tuple[float, float]] = {}
    for row in rows:
        total, share = spent.get(row.name, (0.0, 0.0))
        spent[row.name] = (total + row.total, share + row.share)
    return [(name, *spans) for name, spans in sorted(spent.items(), key=lambda item: -item[1][0])]


def _summary(content: ReportContent, ranked: Sequence[tuple[str, float, float]]) -> str:
    """Return what limits the window, then the main figures."""
    classes = (f"{finding.title}: {finding.detail}" for finding in content.findings if _is_class(finding))
    return " ".join((*classes, _sentence(content.survey, content.line, ranked)))


def _is_class(finding: Finding) -> bool:
    return finding.trigger.startswith("class=") and not finding.advice


def _sentence(survey: Survey, line: Timeline | None, ranked: Sequence[tuple[str, float, float]]) -> str:
    """Return the main result in a sentence."""
    if line is None:
        devices = len(timelines(survey))
        return f"{devices} devices worked, each with its times." if devices else "The trace has no GPU activity."
    subject = "The host's operators run" if survey.on_host else "The GPU works"
    text = f"{subject} {_part(line.share(line.busy))} of a window of {quantity(line.total, _TIME)}"
    if line.communication:
        text += f", and {_part(line.overlap or 0.0)} of its communication is hidden by compute"
    if not ranked:
        return f"{text}."
    name, spent, share = ranked[0]
    if name == OUTSIDE:
        return f"{text}. No operator launched {_part(share)} of what ran: a graph did, or the trace has no operators."
    return f"{text}. {name} is the largest operator: {quantity(spent, _TIME)}, {_part(share)} of operators' time."


def _metrics(survey: Survey, line: Timeline | None) -> Table:
    cells: list[tuple[str, str]] = []
    if line is not None:
        cells += [("window", quantity(line.total, _TIME)), ("total compute time", quantity(line.computation, _TIME))]
    if line is not None and survey.on_host:
        cells.append(("operators run", _part(line.share(line.computation))))
    elif line is not None:
        cells += [
            ("GPU utilisation", _part(line.share(line.busy))),
            ("computation", _part(line.share(line.computation))),
            ("idle", _part(line.share(line.idle))),
            ("exposed communication", _part(line.share(line.exposed_comm))),
            ("overlap", _part(line.overlap) if line.overlap is not None else "no communication"),
        ]
    if not survey.on_host:
        cells.append(("coverage", _part(survey.coverage) if survey.coverage is not None else "no GPU activity"))
    return Table(columns=Column.header("metric | value"), rows=tuple(cells))


def _part(fraction: float) -> str:
    return quantity(fraction, _PART, 3)


@array_value
class ReportContent:
    survey: Survey
    line: Timeline | None
    rows: tuple[OperatorRow, ...]
    kernels: tuple[KernelRow, ...]
    findings: tuple[Finding, ...]
    roof: Roof | None
    stacks: Callable[[], Survey]
    """The same with Python's frames in the call tree."""

    @property
    def top(self) -> tuple[OperatorRow, ...]:
        """The argument sets that took longest, up to so many operators."""
        names: dict[str, None] = {}
        rows = []
        for row in self.rows[: 4 * self.survey.settings.top]:
            names.setdefault(row.name)
            if len(names) > self.survey.settings.top:
                break
            rows.append(row)
        return tuple(rows)


@array_value
class Advice:
    """Recommendations with their reasons, for decisions."""

    impacts: tuple[Impact, ...]
    recommendations: tuple[bottleneck.Recommendation, ...]
    others: tuple[Finding, ...]
    """Findings that are neither in a recommendation nor in the summary."""


def advice_of(content: ReportContent) -> Advice:
    """Return recommendations of a window, each finding once."""
    total = content.line.total if content.line else 0
    impacts = tuple(one for row in content.top if (one := impact(row, content.roof, total)) is not None)
    recommendations = bottleneck.advised(impacts, content.findings)
    others = tuple(
        finding for finding in bottleneck.left_over(recommendations, content.findings) if not _is_class(finding)
    )
    return Advice(impacts=impacts, recommendations=recommendations, others=others)


def neutral_report(content: ReportContent) -> Document:
    """Return summary, recommendations, then all detail once."""
    advice = advice_of(content)
    detail = [Section(title="Other findings", blocks=(findings_block(advice.others),))] if advice.others else []
    names = dict.fromkeys(row.name for row in content.top)
    detail += [_operator_section([row for row in content.top if row.name == name], content) for name in names]
    replays = ", ".join(dict.fromkeys(i.row.name for i in advice.impacts if bottleneck.wants_replay(i.row, i.fraction)))
    how = "Write them: perfgate inspect FILE --view replay --set replay=replay.zip" if replays else ""
    artifacts = Paragraph(text=f"Replay artifacts: {replays or 'none recommended'}. {how}".rstrip())
    none = "No roof is known, so no gain is projected." if content.roof is None else "No top operator has a work model."
    gains = impact_table(advice.impacts) if advice.impacts else Paragraph(text=none)
    blocks = (
        Section(title="Executive summary", blocks=summary_blocks(content)),
        Section(title="Recommendations", blocks=bottleneck.advice_blocks(advice.recommendations)),
        Section(title="Detailed analysis", blocks=tuple(detail) or (Paragraph(text="No operator ran."),)),
        Section(title="Impact", blocks=(gains,)),
        Section(title="Appendix", blocks=(hardware_table(device=content.roof), artifacts)),
    )
    return _page(content.survey, f"{name_of(content.survey)}: standalone analysis", blocks)


def analysis_document(content: ReportContent, extra: Sequence[tuple[str, str]], limited: str) -> Document:
    """Return the report in four sections; ``extra`` adds metrics, ``limited`` says what limits the window."""
    advice, survey, line = advice_of(content), content.survey, content.line
    summary = f"{limited} {_sentence(survey, line, ranked_operators(content.rows))}".strip()
    findings = [finding for finding in content.findings if not _is_class(finding)]
    texts = [*extra, *((str(name), str(text)) for name, text in _metrics(survey, line).rows)]
    if not survey.on_host:
        launched = sum(k.count for k in content.kernels if k.kind in ("compute", "communication"))
        texts.append(("kernels launched", quantity(launched, Dimension.COUNT)))
    texts += _bounds(content.rows, content.roof)
    blocks = bottleneck.advice_blocks([replace(recommendation, anchor="") for recommendation in advice.recommendations])
    heading, lines = (f"Trace {name_of(survey)}", subtitle(survey)), (f"{name}: {text}" for name, text in texts)
    return four_sections(heading, summary, lines, findings, blocks)


def _bounds(rows: Sequence[OperatorRow], roof: Roof | None) -> Iterator[tuple[str, str]]:
    """Yield the largest MFU of this mix of operators, and the operator with most impact on it."""
    moved: Counter[str] = Counter()
    at_peak, least, wrong = 0.0, 0.0, False
    for row in rows:
        if row.work is None:
            continue
        moved[row.name] += int((row.work.bytes or 0) * row.count)
        at = row.placement(roof)
        wrong = wrong or bool(at and at.impossible)
        if at and at.compute is not None and at.ideal_ns:
            at_peak += at.compute * row.total
            least += at.ideal_ns * row.count
    if least and not wrong:
        alone = "" if all(row.work is not None for row in rows) else " (of operators with a model)"
        yield "MFU with every operator at its roof, without idle time", _part(at_peak / least) + alone
    if moved.total():
        name, most = moved.most_common(1)[0]
        yield "most bytes", f"{name}, {_part(most / moved.total())} of those of operators with a model"


def rough_report(content: ReportContent) -> Document:
    """Return working notes: every table, what is missing, open questions."""
    unmodelled = [row for row in content.rows if row.work is None]
    gaps = Table(
        columns=Column.header("operator | share: fraction | why it has no work model"),
        rows=tuple((row.name, row.share, row.why) for row in unmodelled),
        note="An operator that is not here has a work model; a model is one function: pytest_perfgate_operators.",
    )
    candidates, lines = fusion_candidates(content.survey), _timelines(content.survey)
    missing = gaps if unmodelled else Paragraph(text="Every operator has a work model.")
    blocks: list[Block] = [
        Section(title="Analysis process summary", blocks=(Bullets(items=tuple(_process(content))),)),
        Section(title="Findings", blocks=(findings_block(content.findings),)),
    ]
    blocks += [Section(title="Timeline", blocks=lines)] if lines else []
    blocks += [
        Section(title="Categories", blocks=(tables.category_table(content.rows),)),
        Section(title="Operators by arguments", blocks=(tables.argument_table(content.rows),)),
        Section(title="Roofline", blocks=(tables.roofline_table(content.rows, content.roof),)),
        *(() if content.survey.on_host else _kernel_tables(content)),
        *([Section(title="Fusion candidates", blocks=(fusion_table(candidates),))] if candidates else ()),
        *_trees(content),
        Section(title="Gaps", blocks=(missing, Paragraph(text=_dropped(content.survey)))),
        Section(title="Questions", blocks=(Bullets(items=_questions(content)),)),
        Section(title="Not observable in a trace", blocks=(tables.not_recorded_block(),)),
    ]
    return _page(content.survey, f"{name_of(content.survey)}: standalone analysis (rough)", blocks)


def _kernel_tables(content: ReportContent) -> Iterator[Section]:
    yield Section(title="Kernels", blocks=(tables.kernel_table(content.kernels),))
    yield Section(title="Kernel selection", blocks=(selection_table(content.rows),))


def _process(content: ReportContent) -> Iterator[str]:
    """Yield what was read, and how the figures were computed."""
    survey, trace = content.survey, content.survey.trace
    host, dropped = int((trace.category == Category.OPERATOR).sum()), sum(trace.dropped.values())
    rows, share = len(survey.rows), survey.coverage
    timed = f"{rows:,} of them timed by themselves" if survey.on_host else f"{rows:,} rows of the GPU"
    yield f"Read {name_of(survey)}: {host:,} operators of the host, {timed}; {dropped:,} left out"
    linked = f", and linked {share * 100:.1f} % of the GPU time to what launched it" if share is not None else ""
    yield f"Nested the host's calls by time, a thread at a time{linked}"
    yield f"Added up the window ({survey.label}): computation, what it does not cover, idle time"
    known = sum(row.share for row in content.rows if row.work is not None)
    calls = f"{sum(row.count for row in content.rows):,} calls into {len(content.rows):,} argument sets"
    yield f"Grouped {calls}; the work of {known * 100:.1f} % of their time is known"
    roof = content.roof.note if content.roof is not None else "no roof: neither device nor peaks are known"
    yield f"Compared them with {roof}"
    yield f"Looked for the known patterns ({len(content.findings):,} found) and at the call trees of the longest calls"


def _trees(content: ReportContent) -> list[Section]:
    """Return the callers of the three longest operators, and what one call of each launched."""
    names = dict.fromkeys(row.name for row in content.top if row.example >= 0)
    rows = [next(row for row in content.top if row.name == name and row.example >= 0) for name in list(names)[:3]]
    parts = [Section(title=row.name, blocks=stack_document(content.stacks(), str(row.event)).blocks) for row in rows]
    return [Section(title="Tree analysis", blocks=tuple(parts))] if parts else []


def _operator_section(rows: Sequence[OperatorRow], content: ReportContent) -> Section:
    """Return one operator with its top argument sets; kernels that no operator launched one by one."""
    lines, roof = [], content.roof
    if rows[0].name == OUTSIDE:
        outside = [kernel for kernel in content.kernels if kernel.launcher == OUTSIDE]
        table = kernel_table(outside, limit=2 * content.survey.settings.top)
        return Section(title=OUTSIDE, blocks=(tables.brief(table, "launcher"),), anchor=bottleneck.anchor_of(OUTSIDE))
    for row in rows:
        at = row.placement(roof)
        reached = f"{at.fraction * 100:.0f} % of its roof, {band(at.fraction)}" if at and at.fraction else ""
        of = library(row.kernel)
        kernel = f"longest kernel {short_name(row.kernel)}" if not content.survey.on_host else ""
        kernel += f" ({of})" if kernel and of else ""
        parts = "; ".join(filter(None, (reached, at.impossible if at else "", kernel)))
        lines.append(": ".join(filter(None, (row.call.shapes() or "no shapes", parts))))
    rates = () if any(row.work is not None for row in rows) else ("intensity", "rate", "bandwidth", "of the roof")
    table = tables.brief(tables.roofline_table(rows, roof), "operator", "work", "bytes", *rates)
    blocks = (Bullets(items=tuple(lines)), replace(table, note=""))
    return Section(title=rows[0].name, blocks=blocks, anchor=bottleneck.anchor_of(rows[0].name))


def _dropped(survey: Survey) -> str:
    parts = [f"{name}: {count:,}" for name, count in sorted(survey.trace.dropped.items())]
    return "Events left out: " + ("; ".join(parts) if parts else "none") + "."


def _questions(content: ReportContent) -> tuple[str, ...]:
    questions = []
    if content.line and content.line.share(content.line.idle) > 0.05:
        questions.append("What does the host do in the idle gaps? Look at the trace in Perfetto.")
    if content.line and content.line.communication:
        questions.append("Is communication slow or is a rank late? That needs the traces of all ranks.")
    if not content.survey.trace.shapes:
        questions.append("Shapes were not recorded: profile with record_shapes=True for work and roofline.")
    return (*questions, "Were the clocks locked while this was recorded? A trace does not say.")
