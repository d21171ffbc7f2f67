"""What accepting does to the figures of a line, apart from its time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_perfgate.core.judge.acceptance import Change, Proposal
from pytest_perfgate.core.judge.accepted_line import (
    FigureStep,
    Signature,
    carried,
    counts_run,
    signed_line,
    why_separate,
)
from pytest_perfgate.core.judge.against_figure import accepted_elsewhere, selected_figures
from pytest_perfgate.core.judge.readings import COUNTS, better_of, comparable
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.model.errors import PerfgateError, proposal
from pytest_perfgate.model.measurement import Baseline, Measurement, short_commit
from pytest_perfgate.model.metric import Figure, Labels, Metric, parse_figure_title
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.values import Better, Dimension, rounded

if TYPE_CHECKING:
    from pytest_perfgate.model.verdict import CaseReport

_BETWEEN = 2.0
"""Standard deviations between runs that count as noise."""

_ROUNDING = 1e-4

_WHOLE = 2.0**53
"""Whole numbers below it are exact."""

_LEFT = frozenset({Change.UNTRUSTED, Change.PINNED})

_KINDS = by_name()

_MISSED = frozenset({Outcome.REGRESSED, Outcome.SUSPECT, Outcome.MOVED})

_MOVED = frozenset({Outcome.REGRESSED, Outcome.IMPROVED, Outcome.SUSPECT, Outcome.MOVED})

Known = Mapping[tuple[str, Labels], Figure]


def with_figures(decision: Proposal, named: Sequence[str], signature: Signature, *, add: bool) -> Proposal:
    """Return the decision with the figures that the limits of its case name, and those requested by name."""
    report, before = decision.report, decision.before
    measurement = report.measurement
    if measurement is None or decision.change in _LEFT or report.problems:
        return decision
    accepted = {(figure.name, figure.labels): figure for figure in before.figures} if before else {}
    metrics, reason = _requested(report, measurement, named), ""
    if add and before is not None:
        if decision.after is None and (why := _counted_already(before, metrics, signature)):
            metrics = {key: metric for key, metric in metrics.items() if key not in accepted}
            if not metrics:
                return replace(decision, change=Change.COUNTED, why=why)
        reason = why_separate(before, measurement, signature, still=False, far=_fails(report))
    steps = tuple(_steps(report, measurement, metrics, accepted, add=add, again=add and not reason))
    figures = dict(accepted)
    for step in steps:
        figures.pop(step.key, None)
        if step.after is not None:
            figures[step.key] = step.after
    stored = tuple(sorted(figures.values(), key=lambda figure: figure.title))
    if decision.after is not None:
        return replace(decision, after=replace(decision.after, figures=stored), figures=steps)
    if not steps:
        untouched = decision.change is Change.UNTIMED and accepted
        return replace(decision, change=Change.KEPT, why="as accepted") if untouched else decision
    line = _line(decision, measurement, signature)
    counted = max(line.counted, signature.started) if add and before is not None else line.counted
    change, after = _change(before, steps), replace(line, figures=stored, counted=counted)
    return replace(decision, change=change, after=after, figures=steps, why=reason if change is Change.WORSE else "")


def _counted_already(before: Baseline, metrics: Mapping[tuple[str, Labels], Metric], signature: Signature) -> str:
    """Return why the line counts this run already; "" if it does not."""
    pairs = [(before.figure(*key), accepted_figure(m)) for key, m in metrics.items() if not _is_exact(m)]
    same = bool(pairs) and all(then == now for then, now in pairs if then is not None)
    return counts_run(before, signature, "these figures" if same else "")


def _fails(report: CaseReport) -> bool:
    """Return whether a figure misses a limit on its change."""
    return any(verdict.figure is not None and verdict.outcome in _MISSED for verdict in report.verdicts)


def _change(before: Baseline | None, steps: Sequence[FigureStep]) -> Change:
    if before is None:
        return Change.NEW
    if any(step.asks for step in steps):
        return Change.WORSE
    if any(step.better for step in steps):
        return Change.BETTER
    return Change.ADDED if any(step.before is None for step in steps) else Change.ONE_MORE


def _line(decision: Proposal, measurement: Measurement, signature: Signature) -> Baseline:
    """Return the earlier line under this signature, or an empty one without a time."""
    before = decision.before
    if before is not None:
        line = replace(before, commit=short_commit(signature.commit) or before.commit)
        return carried(line, before, signature)
    return signed_line(measurement, signature)


def _requested(report: CaseReport, measurement: Measurement, named: Sequence[str]) -> dict[tuple[str, Labels], Metric]:
    """Return the metrics that limits on a change select, and those of these names."""
    metrics = [m for v in report.verdicts for m in selected_figures(v.limit, measurement)]
    for text in named:
        metrics += _metrics_named(text, measurement)
    return {(m.name, m.labels): m for m in metrics if math.isfinite(m.value)}


def _metrics_named(text: str, measurement: Measurement) -> tuple[Metric, ...]:
    """Return the metrics by the text of ``--metric``; cases without such a metric are skipped."""
    parsed = parse_figure_title(text)
    if parsed is None:
        raise PerfgateError(
            "command-usage", f"--metric {text!r} is not a metric", fix="write registers, or NAME(SCOPE)"
        )
    if parsed[0] == "slowdown" or parsed == ("time", ()):  # the line has the time in any case
        return ()
    return measurement.metrics.find(*parsed)


def check_named(reports: Iterable[CaseReport], named: Sequence[str]) -> None:
    """Refuse a metric that no case of the selection measured."""
    measured = [report.measurement for report in reports if report.measurement is not None]
    for text in named:
        if not any(_metrics_named(text, measurement) for measurement in measured):
            names = {name for measurement in measured for name in measurement.metrics.names()} - {"time", "slowdown"}
            fix = proposal(text, sorted(names), all_of="they have")
            raise PerfgateError("accept-selection", f"no selected case measured the metric '{text}'", fix=fix)


def _steps(
    report: CaseReport,
    measurement: Measurement,
    metrics: Mapping[tuple[str, Labels], Metric],
    accepted: Known,
    *,
    add: bool,
    again: bool,
) -> Iterator[FigureStep]:
    for key, metric in sorted(metrics.items()):
        before = accepted.get(key)
        judged = _judged_outcome(report, metric, before) if before is not None else None
        step = _step(metric, before, judged, add=add, again=again)
        if step is not None:
            yield step
    for verdict in report.verdicts:
        for missing in accepted_elsewhere(verdict.limit, measurement, tuple(accepted.values())):
            yield FigureStep(before=missing, after=None, asks=True)


def first_figures(report: CaseReport) -> tuple[Figure, ...]:
    """Return the figures that a first run stores besides the time: those that limits name."""
    measurement = report.measurement
    metrics = _requested(report, measurement, ()) if measurement is not None else {}
    figures = map(accepted_figure, metrics.values())
    return tuple(sorted(figures, key=lambda figure: figure.title))


def accepted_figure(metric: Metric) -> Figure:
    """Return a metric in the form in which a line stores it."""
    return _figure(metric, exact=_is_exact(metric))


def _is_exact(metric: Metric) -> bool:
    kind = _KINDS.get(metric.name)
    return metric.exact or (kind is not None and kind.exact)


def _stored(number: float, dimension: Dimension) -> float:
    """Return a figure as a line stores it: a count as it is, others with five digits."""
    counts = dimension in COUNTS and float(number).is_integer()
    return number if counts and abs(number) < _WHOLE else rounded(number, dimension)


def _figure(metric: Metric, *, exact: bool) -> Figure:
    value = metric.value if exact else _stored(metric.value, metric.dimension)
    return Figure(name=metric.name, value=value, dimension=metric.dimension, labels=metric.labels)


def _step(
    metric: Metric, before: Figure | None, judged: Outcome | None, *, add: bool, again: bool
) -> FigureStep | None:
    """Return the change of one figure by accepting, or None if it does not change; ``again`` counts one that moved."""
    exact = _is_exact(metric)
    now = _figure(metric, exact=exact)
    value = now.value
    if before is None or not comparable(before.dimension, metric.dimension):
        return FigureStep(before=before, after=now, asks=before is not None)
    tolerance = 0.0 if exact else _noise(metric, before)
    moved = abs(value - before.value) > tolerance
    if exact and not moved:
        return None
    if not exact and judged is not None:  # a figure that keeps its limit has only changed if its scatter is known
        moved = judged in _MOVED or (moved and before.runs > 1)
    if not moved or (again and not exact):
        return FigureStep(before=before, after=with_run(before, metric.value)) if add else None
    better = better_of(metric, _KINDS) is (Better.HIGHER if value > before.value else Better.LOWER)
    return FigureStep(before=before, after=now, asks=not better, better=better)


def _judged_outcome(report: CaseReport, metric: Metric, before: Figure) -> Outcome | None:
    """Return the outcome of a limit on the change of this figure; None for a value that was accepted since."""
    key = (metric.name, metric.labels)
    judged = [(v.outcome, v.figure) for v in report.verdicts if v.figure is not None]
    same = (o for o, figure in judged if (figure.name, figure.labels) == key and figure.value == before.value)
    return next(same, None)


def _noise(metric: Metric, before: Figure) -> float:
    """Return the difference that is within noise, in the unit of the figure."""
    unit = 1.0 if metric.dimension is Dimension.FRACTION else abs(before.value)
    within = (metric.high - metric.low) / 2
    between = _BETWEEN * before.scatter * unit
    return max(math.hypot(within, between), _ROUNDING * abs(before.value))


def with_run(before: Figure, value: float) -> Figure:
    """Return the figure with the mean over one more run, and the scatter after it."""
    n, points = before.runs, before.dimension is Dimension.FRACTION
    step = value - before.value
    share = step
    if not points:
        share = step / abs(before.value) if before.value else 0.0
    variance = ((n - 1) * before.scatter**2 + share**2 * n / (n + 1)) / n
    mean = _stored(before.value + step / (n + 1), before.dimension)
    return replace(before, value=mean, scatter=math.sqrt(variance), runs=n + 1)
