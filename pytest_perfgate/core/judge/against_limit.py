"""Judges a metric against a number."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_perfgate.core.judge.context import JudgeContext, JudgedMeasurement, Ruling, verdict
from pytest_perfgate.core.judge.metrics import DERIVED, rounds_to_decide
from pytest_perfgate.core.judge.policy import CI
from pytest_perfgate.core.judge.readings import FILE, Sides, moved_sides, no_reference, reach_in_turns
from pytest_perfgate.core.judge.samples import busy_processors
from pytest_perfgate.core.limits.merge import no_instruction, not_in_the_report, own_name, scope_within
from pytest_perfgate.core.limits.scope import items_in, noun, render_scope
from pytest_perfgate.core.render.words import bound_text, plural, quantity, value_text
from pytest_perfgate.model.errors import PerfgateError, codes, proposal, some_of
from pytest_perfgate.model.metric import HALF, Absent, Analysis, Figure, Labels, Metric, MetricSet, Problem, matches
from pytest_perfgate.model.plan import SPEEDUP, Limit, Mode, Operator, Outcome, Policy
from pytest_perfgate.model.protocol import READ
from pytest_perfgate.model.values import OF_ITEMS, Dimension

if TYPE_CHECKING:
    from pytest_perfgate.model.verdict import Verdict

PLAY = 1.05
"""How far a figure may exceed a measured ceiling before the ceiling is doubted."""

BELIEVED = 2.0
"""The multiple of a measured ceiling that its noise cannot explain."""

FAR_PAST_CEILING = "more than twice the measured ceiling: the ceiling or the work count is wrong"

CHECK_CEILING = ("run perfgate ceilings on a quiet machine, and check the work= of this call",)

_HOLDS: Mapping[Operator, Callable[[float, float], bool]] = {
    Operator.AT_MOST: operator.le,
    Operator.LESS: operator.lt,
    Operator.AT_LEAST: operator.ge,
    Operator.MORE: operator.gt,
    Operator.EQUAL: operator.eq,
}

PAST_PEAK = "more than the hardware can do: the peak or the work count is wrong"

CHECK_PEAK = ("check --peak and --bandwidth, or --device",)

OF_A_PEAK = ("mfu", "mfu_datasheet", "sol", "sol_datasheet")
"""Fractions of a peak, which a correct figure does not exceed by more than the tolerance."""

_TAKES = {"trace": "capture='torch'", "nsys": "capture='nsys'", "ncu": "capture='ncu'", "cubin": "capture='cubin'"}

_OF_CEILING = frozenset({"mfu_ceiling", "sol_ceiling"})

_ALIASED = frozenset({"mfu", "sol"})

_OF_TIME = DERIVED - {SPEEDUP, "cv", "launch_gap"}
"""Figures whose interval holds all groups of processes, because that of the time does."""

_SEVERITY = (Outcome.PASSED, Outcome.UNSTABLE, Outcome.UNDECIDED, Outcome.NOT_MEASURED, Outcome.INVALID, Outcome.BROKEN)


def against_limit(limit: Limit, trial: JudgedMeasurement) -> Ruling:
    """Return the worst ruling of all metrics that the limit's scope selects; each must keep the limit."""
    scope = scope_within(limit, trial.measurement.key)
    metrics = trial.metrics.find(limit.metric, scope)
    if not metrics:
        return without_metric(limit, trial)
    rulings = [_ruling_of_metric(limit, metric, trial) for metric in metrics]
    rulings += [_lacking(limit, gap) for gap in missing_siblings(limit.metric, scope, metrics, trial.metrics)]
    return worst_first(limit, rulings)[0]


def worst_first(limit: Limit, rulings: Sequence[Ruling]) -> list[Ruling]:
    """Return rulings of one limit, worst outcome first, within an outcome the farthest beyond the limit."""
    less_is_worse = limit.operator in {Operator.AT_LEAST, Operator.MORE}

    def severity_of(ruling: Ruling) -> tuple[int, float]:
        if ruling.metric is None:
            return _SEVERITY.index(ruling.outcome), 0.0
        number = ruling.metric.value
        excess = abs(number - limit.bound) if limit.operator is Operator.EQUAL else number
        return _SEVERITY.index(ruling.outcome), -excess if less_is_worse else excess

    return sorted(rulings, key=severity_of, reverse=True)


def missing_siblings(name: str, scope: Labels, present: Sequence[Metric], metrics: MetricSet) -> tuple[Absent, ...]:
    """Return absent metrics that the limit selects too, such as a stage that only other ranks have."""
    absences = metrics.absences(name)
    if not absences:
        return ()
    level = {label for label, _ in present[0].labels}
    return tuple(
        absent
        for absent in absences
        if absent.labels and {label for label, _ in absent.labels} == level and matches(absent.labels, scope)
    )


def _lacking(limit: Limit, absent: Absent) -> Ruling:
    """Judge a metric of a test that was not collected, or cannot be trusted."""
    return _missing_metric(f"{limit.metric}{render_scope(absent.labels)}", absent, "")


def without_metric(limit: Limit, trial: JudgedMeasurement) -> Ruling:
    """Return why nothing that a limit names was measured."""
    scope = scope_within(limit, trial.measurement.key)
    absent = trial.metrics.missing(limit.metric, scope)
    if absent is not None and scope:
        return _lacking(limit, absent)
    if (uncollected := not_in_the_report(limit, trial.metrics)) and trial.metrics.find(limit.metric):
        return _lacking(limit, uncollected)
    others = [m for m in trial.metrics.metrics if m.name == limit.metric]
    return _outside_scope(limit, trial.metrics, others) if others else _metric_not_taken(limit, trial)


def _outside_scope(limit: Limit, metrics: MetricSet, others: Sequence[Metric]) -> Ruling:
    """Return the ruling on a scope that matches none of the metrics of this name."""
    if (instruction := no_instruction(limit, metrics)) is not None:
        return Ruling(Outcome.NOT_MEASURED, f"{instruction[0]}; {instruction[1]}", fails=True)
    what, scopes = render_scope(limit.labels), sorted({render_scope(m.labels) for m in others if m.labels})
    nearest = proposal(what, scopes, all_of="there are")
    text = f"the scope {what} of {limit.metric} matches nothing; {nearest}".rstrip("; ")
    return Ruling(Outcome.NOT_MEASURED, text, fails=True)


def _metric_not_taken(limit: Limit, trial: JudgedMeasurement) -> Ruling:
    """Return the ruling on a metric that is missing altogether, with what would take it."""
    absent = trial.metrics.missing(limit.metric)
    if limit.metric == SPEEDUP:  # another reference that cannot be compared is not the reason
        absent = no_reference(dict(limit.labels)["over"])
    if absent is not None and (absent.fix or absent.code):
        return _lacking(limit, replace(absent, labels=()))
    of_file, kind, step = trial.measurement.identity.timer == READ, trial.context.kinds.get(limit.metric), ""
    why = absent.why if absent else "no file has it" if of_file else f"this test does not measure {limit.metric}"
    if kind is None:
        nearest = own_name(limit.metric, [m.name for m in trial.metrics.metrics if m.better is not None])
        take = "" if of_file else f"take it in the test, perfgate.metric({limit.metric!r}, ...), after its call"
        step = f"did you mean {nearest!r}?" if nearest else take
    elif kind.source != "time" and not of_file:  # a file does not get what it lacks
        takes = " or ".join(capture for word, capture in _TAKES.items() if word in kind.source)
        step = f"add {takes} to the marker" if takes else f"it comes from {kind.source}"
    return Ruling(Outcome.NOT_MEASURED, f"{limit.metric}: {why}", (step,) if step else ())


def _ruling_of_metric(limit: Limit, metric: Metric, trial: JudgedMeasurement) -> Ruling:
    if mismatch := _mismatch(limit, metric):
        return Ruling(outcome=Outcome.INVALID, sentence=mismatch, metric=metric)
    if _past_ceiling(metric, trial):
        if metric.value > BELIEVED:
            return Ruling(outcome=Outcome.INVALID, sentence=FAR_PAST_CEILING, next=CHECK_CEILING, metric=metric)
        return Ruling(
            outcome=Outcome.UNDECIDED,
            sentence="above the measured ceiling: the ceiling is too low",
            next=("perfgate ceilings",),
            metric=metric,
        )
    if above_peak(metric):
        return Ruling(outcome=Outcome.INVALID, sentence=PAST_PEAK, next=CHECK_PEAK, metric=metric)
    return _against_bound(limit, metric, trial)


def above_peak(metric: Metric) -> bool:
    """Return whether a profile shows more than the hardware can do."""
    return metric.source == "trace" and metric.name in OF_A_PEAK and metric.value > PLAY


def _past_ceiling(metric: Metric, trial: JudgedMeasurement) -> bool:
    measured = metric.name in _OF_CEILING or (metric.name in _ALIASED and trial.measurement.device.kind != "gpu")
    return measured and metric.value > PLAY


def _against_bound(limit: Limit, metric: Metric, trial: JudgedMeasurement) -> Ruling:
    keeps = interval_keeps(limit, metric)
    if keeps:
        return Ruling(
            outcome=Outcome.PASSED,
            sentence="the whole interval keeps the limit" if metric.interval else "keeps the limit",
            metric=metric,
            evidence=_in_turns(metric, trial),
        )
    if keeps is False and metric.name == SPEEDUP and disturbed_by_others(metric, limit.bound, trial):
        sentence = "busy programs may explain the miss: they slow two calls by different amounts"
        again = f"on a quieter machine: {trial.rerun} --perfgate=full"
        return undecided(metric, trial, limit.bound)._replace(sentence=sentence, next=(again,))
    return undecided(metric, trial, limit.bound) if keeps is None else _beyond_bound(limit, metric, trial)


def disturbed_by_others(metric: Metric, bound: float, trial: JudgedMeasurement) -> bool:
    """Return whether other programs kept processors busy during a speed-up that is near its limit."""
    processes = trial.measurement.processes
    if len(processes) < 2 or bound <= 0 or not busy_processors(processes):
        return False
    then = Figure(name=SPEEDUP, value=bound, dimension=metric.dimension)
    reach = reach_in_turns(metric, then, 0.0, processes, trial.context.gates)
    return abs(math.log(metric.value / bound)) <= math.log1p(reach)


def interval_keeps(limit: Limit, metric: Metric) -> bool | None:
    """Return True if the whole interval keeps the limit, False if it misses it, None if it spans the bound."""
    low, high = holds(limit, metric.low), holds(limit, metric.high)
    if limit.operator is Operator.EQUAL:
        return low and high
    return low if low is high else None


def speed_up(metric: Metric) -> float:
    """Return the least speed-up of a slowdown's interval; infinite if the new time is zero."""
    return 1 / (1 + metric.high) - 1 if metric.high > -1 else math.inf


def holds(limit: Limit, number: float) -> bool:
    return _HOLDS[limit.operator](number, limit.bound)


def _beyond_bound(limit: Limit, metric: Metric, trial: JudgedMeasurement) -> Ruling:
    sentence = "the whole interval misses the limit" if metric.interval else "misses the limit"
    if limit.operator is Operator.EQUAL and metric.low <= limit.bound <= metric.high:
        sentence = "it varies, and must always equal the limit"
    if metric.name in _OF_TIME and (others := busy_processors(trial.measurement.processes)):
        sentence = f"{sentence}; other programs used {others:.1f} processors meanwhile"
    sides = _in_turns(metric, trial)
    return Ruling(Outcome.BROKEN, sentence, _commands(metric, trial), metric=metric, evidence=sides)


def _in_turns(metric: Metric, trial: JudgedMeasurement) -> tuple[tuple[str, str], ...]:
    """Return the times of both sides of a speed-up, and which of them changed since it was accepted."""
    if metric.name != SPEEDUP:
        return ()
    label = "against a file" if dict(metric.labels)["over"].startswith(FILE) else "in turns"
    then = trial.baseline.figure(metric.name, metric.labels) if trial.baseline else None
    sides = sides_of(metric, then, trial) if then else None
    return (label, metric.note), *(sides.facts if sides else ())


def sides_of(metric: Metric, then: Figure, trial: JudgedMeasurement) -> Sides | None:
    """Return which side of a speed-up changed, if the line also has a time."""
    assert trial.baseline is not None
    return moved_sides(metric, then.value, trial.baseline.time, trial.timing.time) if trial.timing else None


def _commands(metric: Metric, trial: JudgedMeasurement) -> tuple[str, ...]:
    """Return commands that explain a missed limit: where the time goes, and since when."""
    if not trial.measurement.processes:
        return ()
    if metric.name not in DERIVED:
        return trial.profiles
    full = trial.context.mode is Mode.FULL
    return (*trial.profiles, f"perfgate history {trial.name}" if full else f"{trial.rerun} --perfgate=full")


def undecided(metric: Metric, trial: JudgedMeasurement, bound: float) -> Ruling:
    """Judge an interval that spans the limit: UNSTABLE if processes form groups, else UNDECIDED."""
    if trial.in_groups and metric.name in _OF_TIME:
        sentence = "the processes fall into groups on both sides of the limit"
        return Ruling(Outcome.UNSTABLE, sentence, ("perfgate doctor",), metric=metric)
    needs = rounds_to_decide(metric, bound, len(trial.measurement.processes))
    again = (f"{trial.rerun} --perfgate=full --perfgate-rounds={needs}",) if metric.name in DERIVED else ()
    evidence = _in_turns(metric, trial)
    return Ruling(Outcome.UNDECIDED, "the interval spans the limit", again, metric=metric, evidence=evidence)


def _mismatch(limit: Limit, metric: Metric) -> str:
    """Return why a figure cannot be held against a limit: it is no number, of another unit, or counts other items."""
    items, mismatch = items_in(limit.text) if metric.noun else "", ""
    if metric.dimension is not limit.dimension:
        mismatch = f"{noun(metric.dimension)}, its limit {noun(limit.dimension)}"
    elif items and len({metric.noun, f"{items}/s"} - {"items/s"}) > 1:  # items are those of any name
        mismatch = f"{OF_ITEMS}{metric.noun}, its limit {OF_ITEMS}{items}/s"
    elif not math.isfinite(metric.value):
        mismatch = "not a finite number"
    return f"{metric.name}{render_scope(metric.labels)} is {mismatch}" if mismatch else ""


def judge_artifact(analysis: Analysis, limits: Sequence[Limit], policy: Policy = CI) -> tuple[Verdict, ...]:
    """Return one verdict for each metric that each limit selects; every one of them must keep the limit."""
    # A check of files needs a definite answer, so anything that was not measured fails everywhere, unless the policy
    # says otherwise.
    context = JudgeContext(policy=policy)
    return tuple(verdict(limit, ruling, context) for limit in limits for ruling in _rulings(analysis, limit, context))


def _rulings(analysis: Analysis, limit: Limit, context: JudgeContext) -> list[Ruling]:
    if analysis.problems:
        return [_invalid(limit, analysis.problems)]
    selected = analysis.metrics.find(limit.metric, limit.labels)
    if selected:
        lacking = missing_siblings(limit.metric, limit.labels, selected, analysis.metrics)
        parts = MetricSet(metrics=tuple(one for one in analysis.metrics.metrics if one.name == "window_coverage"))
        rulings = [_artifact_ruling(limit, metric, _window_of(metric, analysis, parts)) for metric in selected]
        rulings += [_missing_metric(f"{limit.metric}{render_scope(absent.labels)}", absent) for absent in lacking]
        return worst_first(limit, rulings)
    absent = analysis.metrics.missing(limit.metric, limit.labels)
    if absent is None and limit.metric not in analysis.metrics.names():
        absent = analysis.metrics.missing(limit.metric)
    if absent is not None or limit.metric not in analysis.metrics.names():
        return [_missing_metric(limit.metric, absent or _unknown(limit, analysis, context))]
    if (uncollected := not_in_the_report(limit, analysis.metrics)) is not None:
        return [_missing_metric(limit.metric, uncollected)]
    raise _no_such_scope(limit, analysis.metrics)


_HOLDERS = {"kineto": "a PyTorch trace", "nsys": "an nsys export", "ncu": "an ncu report", "cubin": "machine code"}
_OF_WORK = {"tflops", "bandwidth", "intensity", "throughput", "mfu", "sol", "mfu_datasheet", "sol_datasheet"}


def _unknown(limit: Limit, analysis: Analysis, context: JudgeContext) -> Absent:
    """Return the absence of a figure that this kind of file never has, or that nothing in this one has."""
    metric, kind = limit.metric, analysis.kind
    metric_kind, named = context.kinds.get(metric), dict(limit.labels).get("name", "")
    if metric_kind is None or named:  # a figure of the user's own
        own = {dict(m.labels).get("name", m.name) for m in analysis.metrics.metrics if m.better is not None}
        return Absent(name=metric, why="the file lacks it", fix=proposal(named or metric, own, all_of="there are"))
    source, doc = metric_kind.source, metric_kind.doc
    if metric == "slowdown" or doc.startswith("of two "):
        fix = "compare two: perfgate compare BEFORE AFTER LIMIT"
        if metric == "slowdown" and kind not in _HOLDERS:  # the times of another tool can have accepted values
            fix = "perfgate check FILE LIMIT --baseline, or perfgate compare BEFORE AFTER LIMIT"
        return Absent(name=metric, why="one file has nothing to be compared with", fix=fix)
    if source in (kind, _HOLDERS.get(kind)):
        return Absent(name=metric, why=f"no part of this file has it: {doc}")
    fix = "limit it in a timed test: pytest --perfgate" if source == "time" else f"take it from {source}"
    fix = "state its work: --set flops=137.4GFLOP --set dtype=bf16" if kind == "nsys" and metric in _OF_WORK else fix
    return Absent(name=metric, why=f"{_HOLDERS.get(kind, kind)} does not hold this metric", fix=fix)


def _invalid(limit: Limit, problems: Sequence[Problem]) -> Ruling:
    """Judge a limit as INVALID and name it, since several limits of a run may be invalid."""
    first, more = problems[0], len(problems) - 1
    others = f" (and {plural(more, 'more problem')})" if more else ""
    code = codes().get(first.code)
    return Ruling(
        outcome=Outcome.INVALID,
        sentence=f"{limit.text}: {first.what}{others}",
        next=(code.fix,) if code else (),
        evidence=first.evidence,
    )


def _missing_metric(name: str, absent: Absent, lacks: str = " was not collected") -> Ruling:
    """Return NOT MEASURED for what was not collected, INVALID for what makes no sense here or cannot be trusted."""
    why = "" if lacks and absent.why == "not collected" else f": {absent.why}"
    code = codes().get(absent.code)
    fix = absent.fix or (code.fix if code else "")
    return Ruling(
        outcome=Outcome.INVALID if absent.code else Outcome.NOT_MEASURED,
        sentence=f"{name}: {absent.why}  [{absent.code}]" if absent.code else f"{name}{lacks}{why}",
        next=(fix,) if fix else (),
    )


def _window_of(metric: Metric, analysis: Analysis, parts: MetricSet) -> str:
    """Return what a figure covers, with a note if steps cover little of a capture."""
    stepwise = any(name == "step" for name, _ in metric.labels)
    window = analysis.window.removeprefix("window ") + (", each step by itself" if stepwise else "")
    of_rank = tuple(pair for pair in metric.labels if pair[0] == "rank")
    covered = min((one.value for one in parts.find("window_coverage", of_rank)), default=1.0)
    between = metric.name in {"window_coverage", "step_to_step"}
    if covered >= HALF or between or not (stepwise or analysis.kind == "nsys"):
        return window
    share = quantity(covered, Dimension.FRACTION, 2)
    return f"{window}; such windows cover {share} of the capture; their figures leave out the rest"


def _artifact_ruling(limit: Limit, metric: Metric, window: str) -> Ruling:
    what = f"{metric.name}{render_scope(metric.labels)} is {value_text(metric, limit=limit)}"
    evidence = tuple(note for note in (("at", window), ("note", metric.note)) if note[1])
    doubted = Ruling(outcome=Outcome.INVALID, sentence="", metric=metric, evidence=evidence)
    if mismatch := _mismatch(limit, metric):
        return doubted._replace(sentence=mismatch)
    if above_peak(metric):  # the peak or the work count is wrong
        return doubted._replace(sentence=f"{what}: {PAST_PEAK}", next=CHECK_PEAK)
    return Ruling(
        outcome=Outcome.PASSED if holds(limit, metric.value) else Outcome.BROKEN,
        sentence=f"{what}, limit {limit.operator.value} {bound_text(limit)}",
        metric=metric,
        evidence=evidence,
    )


def _no_such_scope(limit: Limit, metrics: MetricSet) -> PerfgateError:
    """Return the error for a scope that matched nothing; it lists the existing ones, nearest first."""
    there = [m for m in metrics.metrics if m.name == limit.metric]
    names = sorted({name for m in there for name, _ in m.labels})
    unknown = [name for name, _ in limit.labels if name not in names]
    if unknown:
        scopes = ", ".join(names) or "no scopes"
        what = f"'{limit.text}': {limit.metric} has no scope '{unknown[0]}' here, only {scopes}"
        return PerfgateError("limit-scope", what, place=limit.source, fix=proposal(unknown[0], names))
    no_such = no_instruction(limit, metrics)
    if no_such is not None:
        return PerfgateError("limit-scope", f"'{limit.text}': {no_such[0]}", place=limit.source, fix=no_such[1])
    missing = {name for name, text in limit.labels if not any(matches(m.labels, ((name, text),)) for m in there)}
    missing = missing or {name for name, _ in limit.labels}
    values = sorted({text for m in there for name, text in m.labels if name in missing})
    what = f"'{limit.text}': no {limit.metric} matches {render_scope(limit.labels)}"
    return PerfgateError("limit-scope", what, place=limit.source, fix=f"there are: {some_of(values)}")
