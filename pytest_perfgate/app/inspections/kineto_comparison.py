"""Two traces into one analysis: the first is the reference, the second the target."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_perfgate.app.inspections.kineto_seen import Seen
from pytest_perfgate.core.analysis.trace.comparative import comparative_fair, comparative_rough
from pytest_perfgate.core.analysis.trace.comparison import (
    ON_HOST,
    PARTS,
    UNLIKE,
    comparison_document,
    edit_block,
    pair_metrics,
    pair_table,
    tree_metrics,
    unlike_metrics,
    whole_slowdown,
)
from pytest_perfgate.core.analysis.trace.identity import selection_table
from pytest_perfgate.core.analysis.trace.joined import Pair, Roofs, by_arguments, by_category, by_kernel, by_operator
from pytest_perfgate.core.analysis.trace.report import name_of
from pytest_perfgate.core.analysis.trace.timeline import Timeline
from pytest_perfgate.core.analysis.trace.treediff import Edit, edits, forest
from pytest_perfgate.model.analysis import Analysis
from pytest_perfgate.model.document import Block, Document
from pytest_perfgate.model.metric import MetricSet
from pytest_perfgate.model.problem import Finding, Severity

REPORTS = {f"comparative_analysis_{kind}": kind for kind in ("rough", "fair")}
TABLES = ("ops", "arguments", "categories", "kernels", "tree", "selection")


def comparison_of(before: Seen, after: Seen) -> Analysis:
    """What differs between two traces; nothing is said of times that do not compare."""
    roofs = Roofs(before=before.roof, after=after.roof)
    alike, host = before.survey.on_host == after.survey.on_host, after.survey.on_host
    first, second = (before.rows, after.rows) if alike else ((), ())
    ops = by_operator(first, second, roofs)
    exact = by_arguments(first, second, roofs)
    categories = by_category(first, second, roofs)
    kernels = by_kernel(before.kernels, after.kernels) if alike and not host else ()
    differing = edits(forest(before.survey), forest(after.survey)) if alike else ()
    lines = (before.line, after.line) if alike else (None, None)
    subject = f"{name_of(before.survey)} and {name_of(after.survey)}"
    note = _framing(before, after)

    def page(title: str, block: Block) -> Document:
        return Document(title=f"{title}: {subject}", subtitle=note, blocks=(block,))

    def overview() -> Document:
        top = before.asked.settings.top * 2
        tables: tuple[tuple[str, Block], ...] = (
            ("Operators", pair_table(ops, "operator", top)),
            ("Operators by arguments", pair_table(exact, "operator", top)),
            ("Call trees", edit_block(differing, top, compared=alike)),
        )
        return comparison_document(f"Comparison of {subject}", lines, tables, note)

    return Analysis(
        kind="kineto",
        subject=subject,
        metrics=_metrics(lines, (ops, exact, categories, kernels), differing, host=host) if alike else unlike_metrics(),
        views={
            "report": overview,
            "ops": lambda: page("Operators", pair_table(ops, "operator")),
            "arguments": lambda: page("Operators by arguments", pair_table(exact, "operator")),
            "categories": lambda: page("Categories", pair_table(categories, "category")),
            "kernels": lambda: page("Kernels", pair_table(kernels, "kernel")),
            "tree": lambda: page("Call trees", edit_block(differing, compared=alike)),
            "selection": lambda: page("Kernel selection in the target", selection_table(after.rows)),
            "fair": lambda: comparative_fair(subject, lines, exact, (before.roof, after.roof)),
            "rough": lambda: comparative_rough(subject, lines, (ops, exact, kernels), note),
        },
        findings=_findings(exact),
        problems=(*before.problems, *after.problems),
        window=after.survey.label,
        reports=REPORTS,
        tables=TABLES,
    )


def _metrics(
    lines: tuple[Timeline | None, Timeline | None],
    pairs: tuple[Sequence[Pair], Sequence[Pair], Sequence[Pair], Sequence[Pair]],
    differing: Sequence[Edit],
    *,
    host: bool,
) -> MetricSet:
    ops, exact, categories, kernels = pairs
    return (
        whole_slowdown(*lines, ON_HOST if host else PARTS)
        | _by_scope(op=ops, category=categories, kernel=kernels)
        | pair_metrics("op", [pair for pair in exact if pair.detail])
        | tree_metrics(differing)
    )


def _by_scope(**scopes: Sequence[Pair]) -> MetricSet:
    found = MetricSet()
    for scope, pairs in scopes.items():
        found |= pair_metrics(scope, pairs)
    return found


def _framing(before: Seen, after: Seen) -> str:
    said = [f"reference {name_of(before.survey)}, target {name_of(after.survey)}"]
    said += [f"windows: {before.survey.label} and {after.survey.label}"]
    said += [UNLIKE] if before.survey.on_host != after.survey.on_host else []
    for side, seen in (("reference", before), ("target", after)):
        said += [f"{side} roof: {seen.roof.note}"] if seen.roof else [f"{side} roof unknown: no expectation"]
    return " · ".join(said)


def _findings(pairs: Sequence[Pair]) -> tuple[Finding, ...]:
    found = []
    for pair in pairs:
        if not pair.unexpected or pair.ratio is None or pair.expected is None:
            continue
        found.append(
            Finding(
                title=f"{pair.name} takes {pair.ratio:.2f} times the reference; hardware explains {pair.expected:.2f}",
                detail=f"{pair.detail}; {pair.calls[1]:,} calls, {pair.bound}-bound.",
                trigger=f"slowdown={pair.ratio - 1:.3f}",
                advice="replay it on the target and look at which kernel is selected",
                scope=pair.name,
                severity=Severity.WARNING,
            )
        )
    return tuple(found)
