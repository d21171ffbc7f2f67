"""Other tools' results as metrics and tables, alone and against each other."""

from __future__ import annotations

from collections import Counter
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


def _keyed(results: Results) -> dict[tuple[str, str, int], BenchResult]:
    """What has a time, by name and device; the second of one name on one device meets the second."""
    found: dict[tuple[str, str, int], BenchResult] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for result in results:
        found[result.name, result.device, counts[result.name, result.device]] = result
        counts[result.name, result.device] += 1
    return {key: result for key, result in found.items() if result.time}


def _both(old: BenchResult, new: BenchResult) -> tuple[float, float] | None:
    """One statistic of both sides: the later file's own, else the first that the earlier one has too."""
    known = {old.statistic: old.time, **dict(old.also)}
    for said, time in ((new.statistic, new.time), *new.also):
        was = known.get(said)
        if was and time is not None:
            return was, time
    return None


def _pairs(before: Results, after: Results) -> list[tuple[BenchResult, float, float]]:
    """Benchmarks that both sides timed by one statistic."""
    old = _keyed(before)
    met = ((new, _both(old[key], new)) for key, new in _keyed(after).items() if key in old)
    return [(new, *both) for new, both in met if both]


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
    """What only one side has: new ones are a finding, dropped and unlike ones make the comparison doubtful."""
    old, new = _keyed(before), _keyed(after)
    fresh, gone = sorted(new.keys() - old.keys()), sorted(old.keys() - new.keys())
    unlike = sorted(key for key in old.keys() & new.keys() if not _both(old[key], new[key]))
    findings = (Finding(title=f"{len(fresh)} new benchmarks", detail=_some(fresh)),) if fresh else ()
    problems = []
    if gone:
        what = f"{len(gone)} benchmarks are gone: {_some(gone)}"
        problems.append(Problem(code="benchmark-dropped", what=what, retry=False))
    if unlike:
        one = (old[unlike[0]].statistic, new[unlike[0]].statistic)
        what = f"{len(unlike)} benchmarks have no figure in common ({one[0]}, then {one[1]}): {_some(unlike)}"
        problems.append(Problem(code="benchmark-unlike", what=what, retry=False))
    return findings, tuple(problems)


def unread(count: int) -> tuple[Finding, ...]:
    """What a file holds beside times."""
    return (Finding(title=f"{count} benchmarks of memory or another unit are not read"),) if count else ()


def _some(keys: Sequence[tuple[str, str, int]]) -> str:
    return ", ".join(name for name, _, _ in keys[:5]) + (", ..." if len(keys) > 5 else "")
