"""Inspects PyTorch traces: one, a job of several ranks, or two to compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pytest_perfgate.app.inspections.kineto_trace import (
    OPTIONS,
    Spread,
    TraceOptions,
    TraceReader,
    TraceView,
    job_of,
    parse_options,
)
from pytest_perfgate.app.inspections.kineto_views import (
    TRACE_TABLES,
    analysis_of,
    content_of,
    job_analysis,
    replay_text,
)
from pytest_perfgate.core.analysis.trace.comparison import (
    ON_HOST,
    PARTS,
    UNLIKE,
    Lines,
    comparative_rough,
    comparison_document,
    edit_block,
    neutral_comparison,
    no_common_metrics,
    pair_metrics,
    pair_table,
    timeline_pair_table,
    tree_metrics,
    window_slowdown,
)
from pytest_perfgate.core.analysis.trace.matching import (
    Edit,
    Match,
    Roofs,
    by_arguments,
    by_category,
    by_kernel,
    by_operator,
    edits,
)
from pytest_perfgate.core.analysis.trace.operators import collectives, selection_table
from pytest_perfgate.core.analysis.trace.report import name_of, neutral_report
from pytest_perfgate.core.analysis.trace.survey import MOST, OUTSIDE, survey
from pytest_perfgate.core.analysis.trace.tree import forest
from pytest_perfgate.core.render.words import pair_of_names
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import (
    Analysis,
    Block,
    Document,
    Finding,
    MetricSet,
    Paragraph,
    Picture,
    Problem,
    Severity,
    Table,
)

if TYPE_CHECKING:
    from pytest_perfgate.core.analysis.tracelens import ReferenceTables
    from pytest_perfgate.model.ports import Catalogue
    from pytest_perfgate.model.profiles import Trace
    from pytest_perfgate.model.values import Work


class Read(Protocol):
    """Reads the traces of a file; with frames, also Python's call stacks."""

    def __call__(self, path: Path, *, frames: bool = False) -> tuple[Trace, ...]: ...


WriteReplay = Callable[[Path, str], Path]

Recognise = Callable[[Path, bytes], bool]


class Kineto:
    """The inspector of PyTorch traces."""

    name = "kineto"
    views = ("report", *TRACE_TABLES, "findings", "tracelens", "stack", "tree", "replay", "analysis", "fair", "rough")
    options = OPTIONS

    def __init__(
        self,
        read: Read,
        recognise: Recognise,
        catalogue: Callable[[], Catalogue],
        replay: WriteReplay,
        spread: Callable[[str], Spread],
        project: Callable[[], Sequence[str]],
    ) -> None:
        self._read = read
        self._recognise = recognise
        self._catalogue = catalogue
        self._replay = replay
        self._spread = spread
        self._project = project
        self.operators: Mapping[str, Callable[..., Work]] = {}
        """Work of the user's operators, from ``pytest_perfgate_operators``."""

    def recognises(self, path: Path, head: bytes) -> bool:
        return self._recognise(path, head)

    def inspect(self, paths: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        choices = parse_options(options, self.operators, self._project())
        refuse_twice(paths)
        most, stacks = MOST // max(len(paths), 1), partial(self._read, frames=True)
        trace_reader = TraceReader(
            read=self._read, stacks=stacks, catalogue=self._catalogue(), options=choices, most=most
        )
        if len(paths) == 1:
            refuse_workers(choices, "one file was given")
            traces = self._read(paths[0])
            if len(traces) == 1:
                return self._single_rank(trace_reader.view_of(traces[0]))
            job = job_of(trace_reader.figures(trace, at) for at, trace in enumerate(traces))
            trace_reader = replace(trace_reader, read=lambda _: traces)
        else:
            spread = self._spread(choices.workers)
            job = job_of(rank for part in spread(trace_reader.ranks_of, tuple(enumerate(paths))) for rank in part)
        again = partial(trace_reader.reread, job.measured)
        if choices.replay:
            self._replay(Path(choices.replay), replay_text(next(again())))
        if choices.compat:
            problems = tuple(problem for rank in job.ranks for problem in rank.problems)
            return as_the_reference(job.subject, again, job.findings, problems, job.window)
        return job_analysis(job, again)

    def _single_rank(self, view: TraceView) -> Analysis:
        if view.options.replay:
            self._replay(Path(view.options.replay), replay_text(view))
        if view.options.compat:
            subject = name_of(view.survey)
            return as_the_reference(subject, lambda: iter((view,)), view.findings, view.problems, view.survey.label)
        return analysis_of(view)

    def compare(self, before: Sequence[Path], after: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        choices = parse_options(options, self.operators, self._project())
        refuse_workers(choices, "a comparison is of two")
        if choices.compat:
            what = f"compat={choices.compat} applies to one trace, not to a comparison"
            raise PerfgateError("trace-option", what, fix="compare without it, or inspect each side with it")
        reference, target = self._single("reference", before), self._single("target", after)
        alike = set(reference.devices) == set(target.devices) and not choices.has_reference_hardware()
        sides = ((reference, choices if alike else choices.of_reference), (target, choices))
        catalogue = self._catalogue()
        stacks = partial(self._read, frames=True)
        views = [TraceView(survey(trace, one.settings), one, catalogue, stacks) for trace, one in sides]
        return comparison_of(*views)

    def _single(self, side: str, paths: Sequence[Path]) -> Trace:
        traces = [trace for path in paths for trace in self._read(path)]
        if len(traces) != 1:
            what = f"the {side} has {len(traces)} ranks"
            raise PerfgateError("trace-ranks", what, fix="compare one rank with one rank")
        return traces[0]


def refuse_twice(paths: Sequence[Path]) -> None:
    """Refuse one file under two names, which would count as two ranks of one job."""
    files: dict[Path, Path] = {}
    for path in paths:
        resolved = path.resolve()
        if resolved in files:
            what = f"{path} is given twice" if files[resolved] == path else f"{files[resolved]} and {path} are one file"
            raise PerfgateError("trace-ranks", what)
        files[resolved] = path


def refuse_workers(options: TraceOptions, why: str) -> None:
    """Refuse the option for a cluster if it would have no effect."""
    if options.workers:
        raise PerfgateError("trace-option", f"workers={options.workers!r} spreads the files of many ranks, and {why}")


def as_the_reference(
    subject: str,
    again: Callable[[], Iterator[TraceView]],
    findings: tuple[Finding, ...],
    problems: tuple[Problem, ...],
    window: str,
) -> Analysis:
    """Return the reference tool's analysis of a trace; its tables are made once for figures and pages."""
    from pytest_perfgate.core.analysis.tracelens import reference_metrics, reference_tables

    tables = reference_tables(next(again()).whole)
    views = {"tracelens": partial(_reference_page, tables, "report", subject)}
    views |= {name: partial(_reference_page, tables, name, subject) for name in TRACE_TABLES}
    return Analysis(
        kind="kineto",
        subject=subject,
        metrics=reference_metrics(tables),
        views=views,
        findings=findings,
        problems=problems,
        window=window,
        tables=("tracelens",),
    )


_THEIRS = {
    "timeline": "gpu_timeline",
    "categories": "ops_summary_by_category",
    "ops": "ops_summary",
    "arguments": "ops_unique_args",
    "kernels": "kernel_summary",
    "roofline": "unified_perf_summary",
}
"""The reference tool's table for each of our views."""


def _reference_page(tables: ReferenceTables, name: str, subject: str) -> Document:
    """Return the reference tool's table instead of one of our views; raise if it has none."""
    from pytest_perfgate.core.analysis.tracelens import reference_document

    if name == "report":
        return reference_document(tables, subject)
    sheet = _THEIRS.get(name, "")
    if sheet not in tables:
        what = f"TraceLens has no table for the view {name!r}" + (" of this trace" if sheet else "")
        names = ", ".join(("tracelens", *(view for view, table in _THEIRS.items() if table in tables)))
        raise PerfgateError("view-unknown", what, fix=f"leave out --compat, or one of: {names}")
    return reference_document({sheet: tables[sheet]}, subject)


REPORTS = {
    **{f"comparative_analysis_{kind}": kind for kind in ("rough", "fair")},
    "reference_analysis": "reference",
    "target_analysis": "target",
}

TABLES = (
    "timeline", "ops", "arguments", "both", "only_reference", "only_target", "categories", "kernels", "collectives",
    "tree", "selection",
)  # fmt: skip


_APART = "the two have no operator and no kernel in common"


def comparison_of(before: TraceView, after: TraceView) -> Analysis:
    """Return the differences between two traces, without times that cannot be compared."""
    roofs = Roofs(before=before.roof, after=after.roof)
    alike, host = before.survey.on_host == after.survey.on_host, after.survey.on_host
    first, second = (before.rows, after.rows) if alike else ((), ())
    ops = by_operator(first, second, roofs)
    exact = by_arguments(first, second, roofs)
    categories = by_category(first, second, roofs)
    kernels = by_kernel(before.kernels, after.kernels) if alike and not host else ()
    differing = edits(forest(before.survey), forest(after.survey)) if alike else ()
    lines = (before.line, after.line) if alike else (None, None)
    subject = pair_of_names([before.survey.trace.path], [after.survey.trace.path], " and ")
    either = [pair for pair in (*ops, *kernels) if pair.name != OUTSIDE]
    incomparable = bool(either) and all(pair.ratio is None for pair in either)
    sent = partial(_collectives, before, after)
    note = _framing(before, after) + (f" · {_APART}" if incomparable else "")

    def overview() -> Document:
        top = before.options.settings.top * 2
        tables: tuple[tuple[str, Block], ...] = (
            ("Operators", replace(pair_table(ops, "operator", top), note="")),
            ("Operators by arguments", pair_table(exact, "operator", top)),
            ("Call trees", edit_block(differing, top, compared=alike)),
        )
        return comparison_document(f"Comparison of {subject}", lines, tables, note)

    return Analysis(
        kind="kineto",
        subject=subject,
        metrics=_metrics(lines, (ops, exact, categories, kernels), differing, host=host)
        if alike
        else no_common_metrics(),
        views={
            "report": overview,
            **_pair_pages(partial(_page, subject, note), lines, (ops, exact, categories, kernels)),
            "collectives": lambda: _page(subject, note, "Collectives", sent()),
            "tree": lambda: _page(subject, note, "Call trees", edit_block(differing, compared=alike)),
            "selection": lambda: _page(subject, note, "Kernel selection in the target", selection_table(after.rows)),
            "reference": lambda: neutral_report(content_of(before)),
            "target": lambda: neutral_report(content_of(after)),
            "fair": lambda: neutral_comparison(subject, lines, exact, roofs),
            "rough": lambda: comparative_rough(subject, lines, (ops, exact, kernels), note, sent()),
        },
        findings=_findings(exact),
        problems=(*before.problems, *after.problems),
        window=f"{after.survey.label}; {_APART}" if incomparable else after.survey.label,
        reports=REPORTS,
        tables=TABLES,
        pictures={name: partial(_draw, name, before, after) for name in ("steps", "roofline", "tree")} if alike else {},
    )


def _page(subject: str, note: str, title: str, block: Block) -> Document:
    return Document(title=f"{title}: {subject}", subtitle=note, blocks=(block,))


def _collectives(before: TraceView, after: TraceView) -> Table:
    """Return the collectives of both sides."""
    from pytest_perfgate.core.analysis.trace.ranks import collective_pairs

    return collective_pairs(collectives(before.survey, 0), collectives(after.survey, 0))


Pairs = tuple[Sequence[Match], Sequence[Match], Sequence[Match], Sequence[Match]]


def _pair_pages(
    page: Callable[[str, Block], Document], lines: Lines, pairs: Pairs
) -> dict[str, Callable[[], Document]]:
    """Return pages of what both sides have, of what only one has, and of where each spends its time."""
    ops, exact, categories, kernels = pairs
    before, after = lines
    both = [pair for pair in exact if pair.before is not None and pair.after is not None]
    parts: dict[str, tuple[str, Block]] = {
        "timeline": (
            "Where the time went",
            timeline_pair_table(before, after)
            if before and after
            else Paragraph(text="One has no single device's activity."),
        ),
        "ops": ("Operators", pair_table(ops, "operator")),
        "arguments": ("Operators by arguments", pair_table(exact, "operator")),
        "both": ("Operators in both", pair_table(both, "operator")),
        "only_reference": ("Only in the reference", pair_table([p for p in exact if p.after is None], "operator")),
        "only_target": ("Only in the target", pair_table([p for p in exact if p.before is None], "operator")),
        "categories": ("Categories", pair_table(categories, "category")),
        "kernels": ("Kernels", pair_table(kernels, "kernel")),
    }
    full = {
        name: replace(block, note="None.") if isinstance(block, Table) and not block.rows else block
        for name, (_, block) in parts.items()
    }
    return {name: partial(page, title, full[name]) for name, (title, _) in parts.items()}


def _draw(name: str, before: TraceView, after: TraceView) -> Picture:
    """Draw one picture; its code is imported only here."""
    from pytest_perfgate.core.analysis.trace.pictures import of_pair

    return of_pair(name, before, after)


def _metrics(lines: Lines, pairs: Pairs, differing: Sequence[Edit], *, host: bool) -> MetricSet:
    ops, exact, categories, kernels = pairs
    return (
        window_slowdown(*lines, ON_HOST if host else PARTS)
        | _by_scope(op=ops, category=categories, kernel=kernels)
        | pair_metrics("op", [pair for pair in exact if pair.detail])
        | tree_metrics(differing)
    )


def _by_scope(**scopes: Sequence[Match]) -> MetricSet:
    metrics = MetricSet()
    for scope, pairs in scopes.items():
        metrics |= pair_metrics(scope, pairs)
    return metrics


def _framing(before: TraceView, after: TraceView) -> str:
    lines = ["reference " + pair_of_names([before.survey.trace.path], [after.survey.trace.path], ", target ")]
    windows = dict.fromkeys((before.survey.label, after.survey.label))
    lines += [f"{'window' if len(windows) == 1 else 'windows'}: {' and '.join(windows)}"]
    lines += [UNLIKE] if before.survey.on_host != after.survey.on_host else []
    for side, view in (("reference", before), ("target", after)):
        lines += [f"{side} roof: {view.roof.note}"] if view.roof else [f"{side} roof unknown: no expectation"]
    return " · ".join(lines)


def _findings(pairs: Sequence[Match]) -> tuple[Finding, ...]:
    findings_of_all = []
    for pair in pairs:
        if not pair.unexpected or pair.ratio is None or pair.expected is None:
            continue
        findings_of_all.append(
            Finding(
                title=f"{pair.name} takes {pair.ratio:.2f} times the reference; hardware explains {pair.expected:.2f}",
                detail=f"{pair.detail}; {pair.calls[1]:,} calls, {pair.bound}-bound.",
                trigger=f"slowdown={pair.ratio - 1:.3f}",
                advice="replay it on the target and look at which kernel is selected",
                scope=pair.name,
                severity=Severity.WARNING,
            )
        )
    return tuple(findings_of_all)
