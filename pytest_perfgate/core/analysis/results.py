"""Runs and other tools' benchmarks as figures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pytest_perfgate.core.metric_kinds import own_title
from pytest_perfgate.core.render.words import plural, quantity, shown
from pytest_perfgate.model.measurement import Baseline, Measurement, commit_name, short_commit
from pytest_perfgate.model.metric import (
    Absent,
    Column,
    FigureName,
    Finding,
    Interval,
    Labels,
    Metric,
    MetricSet,
    Problem,
    Table,
    labels,
    quoted,
)
from pytest_perfgate.model.plan import CaseKey, Outcome
from pytest_perfgate.model.profiles import BenchResult
from pytest_perfgate.model.values import Better, Dimension, value

if TYPE_CHECKING:
    from pytest_perfgate.model.verdict import CaseReport, RunReport, Verdict

Place = tuple[CaseKey, str]
"""A case on a device, by its key: a merged run has several devices."""


def place_of(key: CaseKey, measurement: Measurement) -> Place:
    return key, measurement.device.key


def _several(run: RunReport) -> bool:
    return len({case.device for case in run.cases} - {""}) > 1


def _scope(case: CaseReport, *, several: bool) -> Labels:
    device = {"device": case.device} if several and case.measurement else {}
    return labels(case=str(case.key), **device)


def metrics_of_run(run: RunReport) -> MetricSet:
    """Return the metrics of all cases, scoped by case, and by device if there are several."""
    several = _several(run)
    measured = [(_scope(case, several=several), case.measurement) for case in run.cases if case.measurement]
    return MetricSet(
        metrics=tuple(
            replace(m, labels=tuple(sorted((*m.labels, *scope)))) for scope, of in measured for m in of.metrics.metrics
        ),
        absent=tuple(
            Absent(name="time", labels=labels(case=str(c.key)), why="not measured")
            for c in run.cases
            if not c.measurement
        ),
    )


def pairs(before: RunReport, after: RunReport) -> list[tuple[CaseReport, Metric, Metric]]:
    """Return the times, before and after, of cases that both measured on one device with the same identity."""
    old = {place_of(c.key, c.measurement): c.measurement for c in before.cases if c.measurement}
    matched = []
    for case in after.cases:
        now = case.measurement
        then = old.get(place_of(case.key, now)) if now else None
        if then and now and not then.identity.differences(now.identity):
            times = (_time(then), _time(now))
            if times[0] and times[1]:
                matched.append((case, times[0], times[1]))
    return matched


def _time(measurement: Measurement) -> Metric | None:
    times = measurement.metrics.find("time")
    return times[0] if times and min(times[0].low, times[0].value, times[0].high) > 0 else None


def compared(before: RunReport, after: RunReport) -> MetricSet:
    """Return the slowdown of every case, with the widest interval that both times allow."""
    several = _several(after)
    return MetricSet(
        metrics=tuple(
            Metric(
                name="slowdown",
                value=new.value / old.value - 1,
                dimension=Dimension.FRACTION,
                labels=_scope(case, several=several),
                interval=Interval(low=new.low / old.high - 1, high=new.high / old.low - 1),
                note="two runs: the machine may have changed between them",
            )
            for case, old, new in pairs(before, after)
        )
    )


def comparison_table(before: RunReport, after: RunReport) -> Table:
    matched, several = sorted(pairs(before, after), key=lambda pair: -pair[2].value / pair[1].value), _several(after)
    rows = tuple(
        (_named(case, several=several), old.value, new.value, new.value / old.value - 1) for case, old, new in matched
    )
    columns = Column.header("case | before: time | after: time | slowdown: fraction 3")
    return Table(columns=columns, rows=rows, note="; ".join(filter(None, _unpaired(before, after))))


def _named(case: CaseReport, *, several: bool) -> str:
    return f"{case.key}, {case.device}" if several and case.measurement else str(case.key)


def dropped(before: RunReport, after: RunReport) -> tuple[Problem, ...]:
    """Return the cases that the later run lacks, or measured in another way."""
    what, _ = _unpaired(before, after)
    return (Problem(code="benchmark-dropped", what=what, retry=False),) if what else ()


def _unpaired(before: RunReport, after: RunReport) -> tuple[str, str]:
    """Return the cases that only the earlier and only the later run timed in this way."""
    paired = {place_of(case.key, case.measurement) for case, *_ in pairs(before, after) if case.measurement}

    def of(report: RunReport, which: str) -> str:
        timed = ((c, c.measurement) for c in report.cases if c.measurement and c.measurement.metrics.find("time"))
        names = [_named(c, several=_several(report)) for c, own in timed if place_of(c.key, own) not in paired]
        if not names:
            return ""
        alone = f"{plural(len(names), 'case')} of the {which} run without a counterpart measured alike"
        return f"{alone}: {_first_names(names)}"

    return of(before, "earlier"), of(after, "later")


@value
class Previous:
    """One case as it was before."""

    commit: str
    """The short commit, marked if the tree had changes; "" if unknown."""
    when: str
    """ISO date."""
    metrics: MetricSet | None = None
    """What was measured then; None if only a time was accepted."""
    time: float | None = None
    """The accepted time."""
    undecided: bool = False
    """Whether that run left open whether the case had become slower."""


def previous_of(cases: Sequence[CaseReport], report: RunReport, earlier: Iterable[RunReport]) -> dict[Place, Previous]:
    """Return previous cases by case and device; ``earlier`` runs, newest first, are read as far as needed."""
    version = _version(report)
    wanted = {place_of(case.key, case.measurement): case.measurement for case in cases if case.measurement is not None}
    previous: dict[Place, Previous] = {}
    tried: dict[Place, Previous] = {}
    older = (run for run in earlier if version and run.started < report.started)
    for run in older:
        if _version(run) not in ("", version):
            before = tried if run.environment.dirty else previous
            before |= dict(_same_cases(run, {key: now for key, now in wanted.items() if key not in before}))
        if len(previous) == len(wanted):
            break
    for case in cases:
        line = case.baseline
        if line is None or not line.time or not _of_other_version(line, version):
            continue
        place = (case.key, case.device if case.measurement else line.device)
        if place not in previous:
            previous[place] = Previous(commit=short_commit(line.commit, 7), when=line.when[:10], time=line.time)
    return tried | previous  # a run just before a commit is often of that commit, so it is checked last


def previous_at(cases: Sequence[CaseReport], lines: Mapping[Place, Baseline], revision: str) -> dict[Place, Previous]:
    """Return the accepted times of a revision for the cases that are still measured in the same way."""
    measured = (case.measurement for case in cases if case.measurement is not None)
    pairs = [(now, lines.get(place_of(now.key, now))) for now in measured]
    return {
        place_of(now.key, now): Previous(commit=revision, when=line.when[:10], time=line.time)
        for now, line in pairs
        if line is not None and line.time and not (line.identity and now.identity.differences(line.identity))
    }


def _version(run: RunReport) -> str:
    return short_commit(commit_name(run.environment.commit, dirty=run.environment.dirty))


def _of_other_version(line: Baseline, version: str) -> bool:
    """Return whether a line is of another version; a line of this commit is not a previous one."""
    commit = short_commit(line.commit)
    return not (commit and version) or not (version.startswith(commit) or commit.startswith(version))


def _same_cases(run: RunReport, wanted: dict[Place, Measurement]) -> Iterator[tuple[Place, Previous]]:
    """Yield cases that this run measured in the same way, on the same device."""
    for case in run.cases:
        then = case.measurement
        now = wanted.get(place_of(case.key, then)) if then is not None else None
        if now is None or then is None or case.problems or then.problems:
            continue
        timed = any(then.metrics.find(name) for name in ("time", "duration", "total_time"))
        if timed and not now.identity.differences(then.identity):
            commit = short_commit(commit_name(run.environment.commit, dirty=run.environment.dirty), 7)
            open_then = any(verdict.outcome is Outcome.UNDECIDED for verdict in case.verdicts)
            before = Previous(commit=commit, when=run.started[:10], metrics=then.metrics, undecided=open_then)
            yield place_of(case.key, then), before


_TIME, _PART = Dimension.TIME, Dimension.FRACTION

Results = Sequence[BenchResult]


def metrics_of(results: Results) -> MetricSet:
    """Return the time, the tool's rates and the user's figures of each benchmark, and why one lacks them."""
    of_family: dict[str, dict[FigureName, None]] = {}
    for result in results:
        names = [*((name, ()) for name, *_ in result.rates), *(own_title(name) for name, *_ in result.own)]
        of_family.setdefault(result.family, {}).update(dict.fromkeys(names))
    return MetricSet(
        metrics=tuple(metric for result in results for metric in _metrics(result)),
        absent=tuple(gap for result in results for gap in _absent(result, of_family[result.family])),
    )


def _metrics(result: BenchResult) -> Iterator[Metric]:
    scope = labels(case=result.name)
    if result.time is not None:
        note = f"{result.statistic} of {result.samples}" if result.samples else result.statistic
        yield Metric(name="time", value=result.time, dimension=_TIME, labels=scope, note=note)
        rates = ((name, rate, dimension) for name, rate, dimension in result.rates if rate is not None)
        yield from (Metric(name=n, value=rate, dimension=d, labels=scope) for n, rate, d in rates)
    for name, figure, dimension in result.own if not result.skipped else ():
        if figure is not None:
            title, label = own_title(name)
            better = _better(name, dimension)
            yield Metric(name=title, value=figure, dimension=dimension, labels=(*scope, *label), better=better)


def limited_as(metric: Metric) -> str:
    """Return a benchmark's figure as a limit selects it, without the benchmark."""
    name = dict(metric.labels).get("name")
    own = metric.name if metric.better is None else f"metric({metric.name})"
    return f"metric(name={quoted(name)})" if name else own


_RATE = re.compile(r"(?:/s|per[_ ]s(?:ec(?:ond)?)?|flops)\Z", re.IGNORECASE)


def _better(name: str, dimension: Dimension) -> Better:
    """Return the direction of a user's figure, as far as its name and unit show it."""
    plain = Better.HIGHER if _RATE.search(name) else Better.NEITHER
    return plain if dimension is Dimension.PLAIN else Better.LOWER


def _absent(result: BenchResult, of_family: Iterable[FigureName]) -> Iterator[Absent]:
    """Yield what a benchmark has no number for; one that was skipped lacks all that others of its name have."""
    scope = labels(case=result.name)
    if result.time is None and result.timed:
        yield Absent(name="time", labels=scope, why=result.skipped or "the file has no time for it")
    rates = [(name, ()) for name, rate, _ in result.rates if rate is None]
    own = [own_title(name) for name, figure, _ in result.own if figure is None]
    for name, label in of_family if result.skipped else (*rates, *own):
        yield Absent(name=name, labels=(*scope, *label), why=result.skipped or "the file has no finite number for it")


def result_table(results: Results) -> Table:
    """Return one row for each benchmark that has a time, or should have one."""
    columns = Column.header(
        "benchmark | time: time | of samples | scatter: fraction 2 | samples: count | device | note"
    )
    timed = (result for result in results if result.timed)
    rows = ((r.name, r.time, r.statistic, r.scatter, r.samples, r.device, r.skipped or r.label) for r in timed)
    return Table(columns=columns, rows=tuple(rows))


def _keyed(results: Results) -> dict[tuple[str, str, int], BenchResult]:
    """Return timed benchmarks by name and device; a repeated name is matched by position."""
    by_key: dict[tuple[str, str, int], BenchResult] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for result in results:
        by_key[result.name, result.device, counts[result.name, result.device]] = result
        counts[result.name, result.device] += 1
    return {key: result for key, result in by_key.items() if result.time}


def _common_statistic(old: BenchResult, new: BenchResult) -> tuple[float, float] | None:
    """Return one statistic of both sides: the later file's own, else the first that the earlier one has too."""
    known = {old.statistic: old.time, **dict(old.also)}
    for statistic, time in ((new.statistic, new.time), *new.also):
        was = known.get(statistic)
        if was and time is not None:
            return was, time
    return None


def _pairs(before: Results, after: Results) -> list[tuple[BenchResult, float, float]]:
    """Return benchmarks that both sides timed by one statistic."""
    old = _keyed(before)
    common = ((new, _common_statistic(old[key], new)) for key, new in _keyed(after).items() if key in old)
    return [(new, *both) for new, both in common if both]


def comparison_metrics(before: Results, after: Results) -> MetricSet:
    """Return the slowdown of each benchmark that both sides have."""
    slowdowns = (
        Metric(name="slowdown", value=new / old - 1, dimension=_PART, labels=labels(case=r.name))
        for r, old, new in _pairs(before, after)
    )
    return MetricSet(metrics=tuple(slowdowns))


def benchmark_comparison_table(before: Results, after: Results) -> Table:
    columns = Column.header("benchmark | before: time | after: time | slowdown: fraction 3 | device")
    pairs = sorted(_pairs(before, after), key=lambda pair: -(pair[2] / pair[1]))
    rows = [(result.name, old, new, new / old - 1, result.device) for result, old, new in pairs]
    findings, problems = differing(before, after)
    facts = (*(problem.what for problem in problems), *(f"{one.title}: {one.detail}" for one in findings))
    note = "; ".join((*facts, "within-process figures of one run each: a screen, no confirmation"))
    return Table(columns=columns, rows=tuple(rows), note=note)


def differing(before: Results, after: Results) -> tuple[tuple[Finding, ...], tuple[Problem, ...]]:
    """Return what only one side timed: new benchmarks are a finding, dropped and unlike ones a problem."""
    old, new = _keyed(before), _keyed(after)
    why = {one.name: f" ({one.skipped})" for one in after if one.skipped}
    fresh, gone = (_names(one.keys() - other.keys()) for one, other in ((new, old), (old, new)))
    unlike = sorted(key for key in old.keys() & new.keys() if not _common_statistic(old[key], new[key]))
    never = set.intersection(*({one.name for one in side if one.timed and not one.time} for side in (before, after)))
    untimed = [name + why.get(name, "") for name in sorted(never - {*fresh, *gone})]
    findings = [Finding(title=plural(len(fresh), "new benchmark"), detail=_first_names(fresh))] if fresh else []
    if untimed:
        title = f"{plural(len(untimed), 'benchmark')} without a time in both"
        findings.append(Finding(title=title, detail=_first_names(untimed)))
    problems = []
    if gone:
        names = [name + why.get(name, "") for name in gone]
        what = f"{plural(len(gone), 'benchmark')} gone or without a time now: {_first_names(names)}"
        problems.append(Problem(code="benchmark-dropped", what=what, retry=False))
    if unlike:
        sides = f"{old[unlike[0]].statistic}, then {new[unlike[0]].statistic}"
        what = f"no figure in common for {plural(len(unlike), 'benchmark')} ({sides}): {_first_names(_names(unlike))}"
        problems.append(Problem(code="benchmark-unlike", what=what, retry=False))
    return tuple(findings), tuple(problems)


def _names(keys: Iterable[tuple[str, str, int]]) -> list[str]:
    return [name for name, _, _ in sorted(keys)]


def _first_names(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def of_longest(metrics: MetricSet, name: str) -> Metric | None:
    """Return the metric of the call, or of the longest kernel; None for several kernels without times."""
    matching = metrics.find(name)
    plain = next((m for m in matching if not m.labels), None)
    if plain or len(matching) < 2:
        return plain or (matching[0] if matching else None)
    times = {m.labels: m.value for m in metrics.find("duration")}
    known = [m for m in matching if m.labels in times]
    return max(known, key=lambda m: times[m.labels], default=None)


def issues_of(cases: Sequence[CaseReport]) -> Iterator[str]:
    """Yield limits that were missed or not measured, and unhealthy figures."""
    from pytest_perfgate.core.analysis.kernels.views import health_sentence, unhealthy_metrics

    several = len({case.device for case in cases} - {""}) > 1
    for case in cases:
        device = case.measurement.device if several and case.measurement is not None else None
        name = f"{case.key} ({device.name or device.key})" if device is not None else str(case.key)
        yield from (f"{name}: {_missed(verdict)}" for verdict in case.verdicts if verdict.outcome in _ISSUES)
        metrics = case.measurement.metrics if case.measurement is not None else MetricSet()
        of_kernel = [(key, of_longest(metrics, key)) for key in _HEALTH]
        longest = {key: metric for key, metric in of_kernel if metric is not None}
        archs = {dict(metric.labels).get("arch", "") for metric in longest.values()} - {""}
        if archs and device is not None and device.kind == "host":  # the figures are of the device of a report
            name = f"{case.key} ({', '.join(sorted(archs))})"
        numbers = {key: metric.value for key, metric in longest.items()}
        yield from (f"{name}: {health_sentence(row, number, numbers)}" for row, number in unhealthy_metrics(numbers))


def _missed(verdict: Verdict) -> str:
    """Return ``broken, 92 %, limit tc_util >= 95%; ...``."""
    metric = verdict.metric
    figure = shown(partial(quantity, metric.value, metric.dimension), str) if metric is not None else ""
    limit = f"{figure}, limit {verdict.limit.text}" if figure else verdict.limit.text
    return f"{verdict.outcome.value}, {limit}; {verdict.sentence}"


_ISSUES = (Outcome.BROKEN, Outcome.REGRESSED, Outcome.INVALID, Outcome.NOT_MEASURED)
_HEALTH = ("tc_util", "dram", "occupancy", "l2_hit", "spills", "waves")
