"""Limits on the mean over a parametrised test."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from pytest_perfgate.core.judge.against_limit import holds, interval_keeps, speed_up
from pytest_perfgate.core.judge.policy import effect
from pytest_perfgate.core.judge.rounds import Design, excess_of_each
from pytest_perfgate.core.judge.samples import excused
from pytest_perfgate.core.judge.suspects import AGAINST, SAME
from pytest_perfgate.core.limits.grammar import FAMILY_MEAN, FAMILY_WORST, OF_FAMILIES, scope_of
from pytest_perfgate.core.limits.merge import applies_on, case_of
from pytest_perfgate.core.limits.scope import noun
from pytest_perfgate.core.render.words import detectable, edges, plural, signed, value_text
from pytest_perfgate.core.stats.inference import pairs_needed, predict, prior, shift_and_interval, signed_rank
from pytest_perfgate.model.metric import Interval, Labels, Metric, MetricSet
from pytest_perfgate.model.plan import CHANGES, LEAST, Case, CaseKey, Limit, Mode, Operator, Outcome
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.model.verdict import Arms, CaseReport, SuiteNote

if TYPE_CHECKING:
    from pytest_perfgate.core.judge.context import JudgeContext
    from pytest_perfgate.model.measurement import Baseline, Measurement

Families = Mapping[str, Sequence[Limit]]

_OPEN = frozenset({Outcome.SUSPECT, Outcome.UNDECIDED})


def family_limits(cases: Iterable[Case]) -> dict[str, tuple[Limit, ...]]:
    """Return the limits on means, by the family that they apply to."""
    by_family: dict[str, dict[tuple[object, ...], Limit]] = {}
    for case in cases:
        family = case.family or case.nodeid.partition("[")[0]
        for limit in (limit for limit in case.limits if limit.metric in OF_FAMILIES):
            by_family.setdefault(family, {})[limit.key, limit.operator, limit.on] = limit
    return {family: tuple(limits.values()) for family, limits in by_family.items()}


def family_notes(reports: Sequence[CaseReport], families: Families, context: JudgeContext) -> Iterable[SuiteNote]:
    """Yield a note for each limit on a mean, with its outcome and its cases."""
    for family, limit, outcome, text in _judged_means(reports, families, context, _among(families, context)):
        yield SuiteNote(
            kind=FAMILY_MEAN if outcome is not Outcome.NOT_MEASURED else "unmeasured",
            effect=effect(outcome, context.policy, context.mode),
            text=f"{outcome.value}: {family}: {limit.text}: {text}",
            names=(family,),
        )


def _among(families: Families, context: JudgeContext) -> float:
    """Return the number of means that share the error rate, of which a shard has its part."""
    return sum(map(len, families.values())) / context.share


def _judged_means(
    reports: Sequence[CaseReport], families: Families, context: JudgeContext, among: float
) -> Iterator[tuple[str, Limit, Outcome, str]]:
    for family, limits in families.items():
        for limit in limits:
            if not _covers(limit, family):
                continue
            members = [r for r in reports if r.key.family == family or r.key.family.startswith(f"{family}#")]
            judged = _judge_family(limit, members, context, among)
            if judged is not None:
                yield family, limit, *judged


def open_means(reports: Sequence[CaseReport], families: Families, context: JudgeContext) -> set[CaseKey]:
    """Return the cases of the means of slowdowns that the accepted times leave open."""
    slowdowns = {family: list(filter(_is_of_slowdown, limits)) for family, limits in families.items()}
    judged = _judged_means(reports, slowdowns, context, _among(families, context))
    left = {family for family, _, outcome, _ in judged if outcome in _OPEN}
    return {report.key for report in reports if report.key.family.partition("#")[0] in left}


def open_in_rounds(
    families: Families, context: JudgeContext, rounds: Mapping[CaseKey, tuple[Measurement, tuple[float, ...]]]
) -> set[CaseKey]:
    """Return the cases of the means of slowdowns that these rounds of two builds leave open."""
    reports = [
        CaseReport(key=key, verdicts=(), measurement=measurement, builds=Arms(base="", differences=played))
        for key, (measurement, played) in rounds.items()
    ]
    return open_means(reports, families, context)


def _is_of_slowdown(limit: Limit) -> bool:
    """Return whether it limits a mean of slowdowns, which two builds can decide."""
    return limit.bound >= 0 and dict(limit.labels)["of"].partition("(")[0].strip() in CHANGES


def is_in_a_mean(key: CaseKey, families: Families) -> bool:
    """Return whether a limit on a mean judges this case with the others of its family."""
    family = key.nodeid.partition("[")[0]
    return any(_covers(limit, family) for limit in families.get(family, ()))


def _covers(limit: Limit, family: str) -> bool:
    """Return whether the pattern of a limit fits a family, or its test; a limit without one fits all."""
    pattern = dict(limit.labels).get("family") or "*"
    return fnmatchcase(family, pattern) or fnmatchcase(family.rpartition("::")[2], pattern)


class _LimitMean(NamedTuple):
    """The mean of one limit, with the cases that have a figure for it."""

    limit: Limit
    of: str  # the metric that it is a mean of
    members: list[CaseReport]
    figures: list[Metric]
    metric: Metric  # the mean of the figures
    context: JudgeContext
    among: float  # the number of means that share the error rate


def _judge_family(
    limit: Limit, members: list[CaseReport], context: JudgeContext, among: float
) -> tuple[Outcome, str] | None:
    """Return the outcome of a limit with what it rests on; None on a device that the limit does not apply to."""
    devices = [report.measurement.device for report in members if report.measurement is not None]
    if devices and not applies_on(limit, devices[0]):
        return None
    of, scope = scope_of(dict(limit.labels)["of"], context.kinds)
    members = _selected(limit, dict(scope), members)
    scope, change = tuple((label, text) for label, text in scope if label != "case"), of in CHANGES
    meant = [effective_member(report, limit) for report in members] if change else members
    accepted = [_metric(report, of, scope) for report in meant]
    readings = [line or _of_builds(report) for line, report in zip(accepted, meant)] if change else accepted
    figures = [reading for reading in readings if reading is not None]
    if not members or len(figures) < len(members):
        gaps = [report for report, reading in zip(meant, readings) if reading is None]
        return Outcome.NOT_MEASURED, _gaps(limit, of, gaps, members, ci=context.policy.ci)
    if others := [figure.dimension for figure in figures if figure.dimension is not limit.dimension]:
        return Outcome.INVALID, f"{of} is {noun(others[0])}, its limit {noun(limit.dimension)}"
    if limit.metric == FAMILY_WORST:
        return _worst_case(limit, [(figure, report.key) for figure, report in zip(figures, meant)])
    mean = _LimitMean(limit, of, meant, figures, geometric_mean(figures, change=change), context, among)
    builds = change and (context.policy.ci or context.mode is Mode.FULL)  # decide, not lines that came with the change
    first = [line for line in map(_line, meant) if builds and line is not None and not line.runs]
    outcome, why = _judge_mean(mean, compared=None not in accepted and not first)
    reach = math.log1p(max(limit.bound, _detects(meant), 0.0))
    agrees = bool(first) and abs(math.log1p(mean.metric.value)) <= reach
    if outcome is Outcome.REGRESSED and agrees and all(line.explains(None) for line in first):
        return Outcome.ACCEPTED, f"{why}; this change accepts the times of {plural(len(first), 'case')}"
    return accepted_by_change(outcome, why, members, meant)


def _selected(limit: Limit, scope: Mapping[str, str], members: Iterable[CaseReport]) -> list[CaseReport]:
    """Return the cases that a limit names, without the reference of a speed-up."""
    pattern = case_of(limit) or scope.get("case") or "*"
    return [m for m in members if m.key.name != scope.get("over") and fnmatchcase(m.key.name, pattern)]


def _judge_mean(mean: _LimitMean, *, compared: bool) -> tuple[Outcome, str]:
    """Judge by the accepted times, if all cases are compared with one, then by two builds where that leaves it open."""
    outcome, why = Outcome.UNDECIDED, "; some cases have no accepted time from before the change"
    if compared:
        outcome, why = _by_lines(mean)
    in_rounds = all(member.arms for member in mean.members)  # then they decide, since they share what the machine does
    if _is_of_slowdown(mean.limit) and (in_rounds or outcome in _OPEN):
        outcome, why = _by_builds(mean) or (outcome, why)
    return outcome, f"{_reading(mean.metric, mean.of)} over {plural(len(mean.members), 'case')}{why}"


def _gaps(limit: Limit, of: str, gaps: Sequence[CaseReport], members: Sequence[CaseReport], *, ci: bool) -> str:
    """Return how many cases have no figure, and why."""
    if not members:
        return "no case was measured"
    measured = all(report.measurement and not report.problems for report in gaps)
    if of in CHANGES and measured and not any(report.baseline or report.arms or report.unheld for report in gaps):
        step = f"perfgate accept {'--from RECORD ' if ci else ''}--new"
        return f"no accepted time yet for {len(gaps)} of {plural(len(members), 'case')}; next: {step}"
    why = next((report.unheld for report in gaps if report.unheld and of in CHANGES), "")
    names = {report.key.name for report in members} - {report.key.name for report in gaps}
    if measured and not why and len(names) == 1 and names != {""}:  # a figure of one call in each test
        (call,) = names
        why = f"it is a figure of the call {call}: {limit.metric}({dict(limit.labels)['of']}, case={call})"
    count = f"{of} of {len(gaps)} of {plural(len(members), 'case')} was not measured"
    return f"{count}: {why}" if why else count


def _metric(report: CaseReport, of: str, scope: Labels = ()) -> Metric | None:
    """Return the one figure of a case; None for a slowdown that is not comparable for its own limit either."""
    if report.measurement is None or report.problems or (of in CHANGES and report.unheld):
        return None
    metrics = report.measurement.metrics.find(of, scope)
    return metrics[0] if len(metrics) == 1 and (scope or not metrics[0].labels) else None


def _worst_case(limit: Limit, figures: Sequence[tuple[Metric, CaseKey]]) -> tuple[Outcome, str]:
    """Return the outcome of the worst case, as if each case had this limit."""
    upper = limit.operator in {Operator.AT_MOST, Operator.LESS}
    metric, key = (max if upper else min)(figures, key=lambda figure: figure[0].value)
    kept = [interval_keeps(limit, metric) for metric, _ in figures]
    not_missed = Outcome.UNDECIDED if None in kept else Outcome.PASSED
    outcome = Outcome.BROKEN if False in kept else not_missed
    where = f"at {key.test}, of {plural(len(figures), 'case')}"
    return outcome, f"{value_text(metric)} {edges(metric, change=False)} {where}"


def geometric_mean(metrics: Sequence[Metric], *, change: bool) -> Metric:
    """Return the mean of logarithms, with the errors of the members taken as independent of each other."""
    base, count = 1.0 if change else 0.0, len(metrics)
    factors = [[max(base + edge, 1e-300) for edge in (m.low, m.value, m.high)] for m in metrics]
    middle = math.fsum(math.log(centre) for _, centre, _ in factors) / count
    down = math.sqrt(math.fsum(math.log(centre / low) ** 2 for low, centre, _ in factors)) / count
    up = math.sqrt(math.fsum(math.log(high / centre) ** 2 for _, centre, high in factors)) / count
    return Metric(
        name=FAMILY_MEAN,
        value=math.exp(middle) - base,
        dimension=metrics[0].dimension,
        interval=Interval(low=math.exp(middle - down) - base, high=math.exp(middle + up) - base),
    )


def extremes(figures: Sequence[tuple[Metric, str]], *, higher: bool) -> tuple[float, float, str]:
    """Return the geometric mean of a family's figures, the worst of them, and where that is."""
    metrics = [metric for metric, _ in figures]
    mean = geometric_mean(metrics, change=metrics[0].name in CHANGES)
    worst, place = (min if higher else max)(figures, key=lambda figure: figure[0].value)
    return mean.value, worst.value, place


def _by_lines(mean: _LimitMean) -> tuple[Outcome, str]:
    """Judge a mean by the measurements and the accepted times of its cases."""
    limit, metric, members = mean.limit, mean.metric, mean.members
    low, high = holds(limit, metric.low), holds(limit, metric.high)
    if low and high:
        return _within_limit(mean)
    if low or high:
        return Outcome.UNDECIDED, "; the interval spans the limit"
    if not _is_of_slowdown(limit):
        return Outcome.BROKEN, "; the whole interval misses the limit"
    reach = max(_reach(members, mean.context), _detects(members))
    if metric.value <= reach and all(member.arms and member.arms.differences for member in members):
        return open_in_family(members, mean.among)
    if metric.value <= reach:
        text = f"; a whole run may be off by {detectable(reach)} here, so this is not confirmed"
        return Outcome.SUSPECT, f"{text}; {AGAINST} REV can confirm it"
    if any(member.arms and member.arms.same for member in members):
        return Outcome.MOVED, f"; {SAME}"
    excuses = [excuse for excuse in (_why_excused(member, reach) for member in members) if excuse]
    if excuses:
        more = f" ({len(excuses)} of {plural(len(members), 'case')})" if len(members) > 1 else ""
        return Outcome.SUSPECT, f"; chance explains up to {signed(reach)}; {excuses[0]}{more}"
    return Outcome.REGRESSED, f"; chance explains up to {signed(reach)}"


def _by_builds(mean: _LimitMean) -> tuple[Outcome, str] | None:
    """Return what two builds make of a mean that the accepted times leave open; None if they were not measured."""
    # A case that was not measured in two builds counts by its accepted time.
    members, beside = mean.members, [_of_builds(member) for member in mean.members]
    if not any(beside) or (None in beside and all(member.arms for member in members)):
        return None
    every, rounds = all(beside), mean_logarithms(members)
    metric = geometric_mean([built or accepted for built, accepted in zip(beside, mean.figures)], change=True)
    if every and len(rounds) >= LEAST:
        metric = _slowdown(rounds)  # processes of one round share what the machine does to them
    kept, text = interval_keeps(mean.limit, metric), f"; in two builds {_reading(metric, 'slowdown')}"
    if kept:
        return Outcome.PASSED, text
    if kept is None:
        return Outcome.UNDECIDED, f"{text}, which spans the limit"
    if not every:
        return Outcome.UNDECIDED, text
    if not slower_in_family(rounds, mean.limit.bound, mean.among):
        return open_in_family(members, mean.among)
    if any(both.same for member in members if (both := member.arms or member.builds)):
        return Outcome.MOVED, f"{text}; {SAME}"
    return Outcome.REGRESSED, f"{text}; slower side by side"


def _of_builds(member: CaseReport) -> Metric | None:
    """Return the slowdown of a case in two builds, if enough rounds were measured or its code is the same in both."""
    builds = member.arms or member.builds
    if builds is None or not all(map(math.isfinite, builds.differences)):
        return None
    if not builds.differences and builds.same:
        return _slowdown((0.0,))
    return _slowdown(builds.differences) if len(builds.differences) >= LEAST else None


def _slowdown(differences: Sequence[float]) -> Metric:
    shift, bounds = shift_and_interval(differences)
    interval = Interval(low=math.expm1(bounds.low), high=math.expm1(bounds.high), confidence=bounds.confidence)
    return Metric(name="slowdown", value=math.expm1(shift), dimension=Dimension.FRACTION, interval=interval)


def _within_limit(mean: _LimitMean) -> tuple[Outcome, str]:
    """Judge a mean against noisy lines: it keeps its limit only if it is faster by more than their noise."""
    detects = _detects(mean.members)
    if mean.of in CHANGES and detects > max(mean.limit.bound, 0.0) and speed_up(mean.metric) <= detects:
        return Outcome.UNDECIDED, f"; the accepted runs were too noisy to detect less than {detectable(detects)}"
    return Outcome.PASSED, ""


def _detects(members: list[CaseReport]) -> float:
    """Return the mean of the slowdowns that the accepted runs could not detect, if those are used."""
    unknown = [math.log1p(line.detects) for line in map(_line, members) if line]
    return math.expm1(math.fsum(unknown) / len(members))


def _line(member: CaseReport) -> Baseline | None:
    """Return the accepted time that its slowdown is against; None if that is another arm."""
    return None if member.arms else member.baseline


def _why_excused(member: CaseReport, reach: float) -> str:
    """Return why a case that is slower beyond chance does not count against its family."""
    slowdown, line = _metric(member, "slowdown"), _line(member)
    assert slowdown is not None
    if line is None or slowdown.value <= reach:
        return ""
    assert member.measurement is not None
    return excused(member.measurement.processes, line.time, reach)


def _reach(members: list[CaseReport], context: JudgeContext) -> float:
    """Return what chance explains; a run shifts a whole family, so a mean is judged like a single case."""
    measurement = members[0].measurement
    runs = min((line.runs for line in map(_line, members) if line), default=1)
    device, clocks = (measurement.device.kind, measurement.identity.clocks) if measurement else ("host", "off")
    expected = prior(device, clocks)
    return predict(expected, scatter=expected, runs=runs, gates=context.gates).reach


def _reading(mean: Metric, of: str) -> str:
    return f"{signed(mean.value) if of in CHANGES else value_text(mean)} {edges(mean, change=of in CHANGES)}"


ALPHA = Design().alpha
LOOKS = 2  # at a mean: once its cases are decided, and if that leaves it open, after the last round


def mean_logarithms(members: Sequence[CaseReport]) -> tuple[float, ...]:
    """Return the mean logarithm of head over base over all cases, for each round that all of them had."""
    builds = [member.arms or member.builds for member in members]
    differences = [both.differences if both else () for both in builds]
    return tuple(fmean(of_a_round) for of_a_round in zip(*differences))


def rounds_needed(among: float) -> int:
    """Return the rounds below which none of so many means can be confirmed."""
    return pairs_needed(ALPHA / (LOOKS * among))


def slower_in_family(differences: Sequence[float], bound: float, among: float) -> bool:
    """Return whether the exact test of the mean of each round finds a slowdown, among so many means."""
    counts = bool(differences) and _slowdown(differences).value >= bound
    return counts and signed_rank(excess_of_each(differences, bound)) <= ALPHA / (LOOKS * among)


def open_in_family(members: Sequence[CaseReport], among: float) -> tuple[Outcome, str]:
    """Return why rounds of two arms do not confirm a mean that exceeds its limit, and how many could."""
    needed, shared = rounds_needed(among), len(mean_logarithms(members))
    if shared >= needed:
        return Outcome.UNDECIDED, f"; {plural(shared, 'round')} do not confirm it"
    return Outcome.SUSPECT, f"; {needed} rounds of all its cases could confirm it, and there were {shared}"


def effective_member(report: CaseReport, limit: Limit) -> CaseReport:
    """Return the case against the line that the change accepts with a reason, if the measurement agrees."""
    # A case within its limit against a comparable earlier line stays as it is.
    line, measurement = report.accepts, report.measurement
    if line is None:
        return report
    assert measurement is not None
    time, before = _plain(measurement, "time"), _plain(measurement, "slowdown")
    if before is None or (before.value <= limit.bound and not report.unheld):
        return report
    assert time is not None
    if abs(math.log(time.value / line.time)) > math.log1p(limit.bound):
        return report
    value, low, high = (figure / line.time - 1 for figure in (time.value, time.low, time.high))
    slowdown = Metric(name="slowdown", value=value, dimension=Dimension.FRACTION, interval=Interval(low=low, high=high))
    with_slowdown = measurement.with_metrics(MetricSet(metrics=(slowdown,)))
    return replace(report, measurement=with_slowdown, baseline=line, unheld="", arms=None, builds=None)


def _plain(measurement: Measurement, name: str) -> Metric | None:
    return next((metric for metric in measurement.metrics.find(name) if not metric.labels), None)


def accepted_by_change(
    outcome: Outcome, why: str, members: list[CaseReport], meant: list[CaseReport]
) -> tuple[Outcome, str]:
    """Return ACCEPTED instead of PASSED for a mean that only keeps its limit by what the change accepts."""
    count = sum(now is not then for now, then in zip(meant, members))
    if not count:
        return outcome, why
    outcome = Outcome.ACCEPTED if outcome is Outcome.PASSED else outcome
    return outcome, f"{why}; {count} of {plural(len(members), 'case')} against what this change accepts"
