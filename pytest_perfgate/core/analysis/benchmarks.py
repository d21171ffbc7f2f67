"""Other tools' results as metrics and tables, alone and against each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_perfgate.model.benchmark import BenchResult
from pytest_perfgate.model.document import Column, Table
from pytest_perfgate.model.metric import Absent, Metric, MetricSet, labels
from pytest_perfgate.model.problem import Finding, Problem
from pytest_perfgate.model.quantity import Dimension

_TIME, _PART = Dimension.TIME, Dimension.FRACTION
Results = Sequence[BenchResult]


def metrics_of(results: Results) -> MetricSet:
    """A time for each benchmark and whatever rates its tool derived; what was skipped is absent with its reason."""
    return MetricSet(
        metrics=tuple(metric for result in results for metric in _metrics(result)),
        absent=tuple(
            Absent(name="time", labels=labels(case=r.name), why=r.skipped or "the file has no time for it")
            for r in results
            if r.time is None
        ),
    )


def _metrics(result: BenchResult) -> Iterator[Metric]:
    scope = labels(case=result.name)
    if result.time is not None:
        note = f"{result.statistic} of {result.samples}" if result.samples else result.statistic
        yield Metric(name="time", value=result.time, dimension=_TIME, labels=scope, note=note)
        for name, rate, dimension in result.rates:
            yield Metric(name=name, value=rate, dimension=dimension, labels=scope)


def result_table(results: Results) -> Table:
    columns = (
        Column(name="benchmark"),
        Column(name="time", dimension=_TIME),
        Column(name="of samples"),
        Column(name="scatter", dimension=_PART, digits=2),
        Column(name="samples", dimension=Dimension.COUNT),
        Column(name="device"),
        Column(name="note"),
    )
    rows = tuple((r.name, r.time, r.statistic, r.scatter, r.samples, r.device, r.skipped) for r in results)
    return Table(columns=columns, rows=rows)


def _pairs(before: Results, after: Results) -> list[tuple[BenchResult, float, float]]:
    """Benchmarks that both sides timed, told apart by device where the names repeat."""
    old = {(r.name, r.device): r.time for r in before if r.time}
    return [(r, old[r.name, r.device], r.time) for r in after if r.time and (r.name, r.device) in old]


def comparison_metrics(before: Results, after: Results) -> MetricSet:
    """The slowdown of each benchmark that both sides have."""
    found = _pairs(before, after)
    return MetricSet(
        metrics=tuple(
            Metric(name="slowdown", value=new / old - 1, dimension=_PART, labels=labels(case=r.name))
            for r, old, new in found
        )
    )


def comparison_table(before: Results, after: Results) -> Table:
    columns = (
        Column(name="benchmark"),
        Column(name="before", dimension=_TIME),
        Column(name="after", dimension=_TIME),
        Column(name="slowdown", dimension=_PART, digits=3),
        Column(name="device"),
    )
    rows = sorted(((r.name, old, new, new / old - 1, r.device) for r, old, new in _pairs(before, after)), key=_slowest)
    return Table(
        columns=columns, rows=tuple(rows), note="within-process figures of one run each: a screen, no conviction"
    )


def _slowest(row: tuple[str, float, float, float, str]) -> float:
    return -row[3]


def differing(before: Results, after: Results) -> tuple[tuple[Finding, ...], tuple[Problem, ...]]:
    """What only one side has: new ones are a finding, dropped ones make the comparison doubtful."""
    old, new = ({(r.name, r.device) for r in side if r.time} for side in (before, after))
    fresh, gone = sorted(new - old), sorted(old - new)
    findings = (Finding(title=f"{len(fresh)} new benchmarks", detail=_some(fresh)),) if fresh else ()
    problems = (
        (Problem(code="benchmark-dropped", what=f"{len(gone)} benchmarks are gone: {_some(gone)}", retry=False),)
        if gone
        else ()
    )
    return findings, problems


def _some(names: Sequence[tuple[str, str]]) -> str:
    return ", ".join(name for name, _ in names[:5]) + (", ..." if len(names) > 5 else "")
