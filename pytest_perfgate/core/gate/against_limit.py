"""Holding a metric against a number: its interval decides."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pytest_perfgate.core.gate.context import Trial
from pytest_perfgate.core.gate.full_name import not_in_the_report
from pytest_perfgate.core.gate.merge import scope_within
from pytest_perfgate.core.gate.metrics import DERIVED
from pytest_perfgate.core.gate.nearest import proposal
from pytest_perfgate.core.gate.opcode_named import no_instruction
from pytest_perfgate.core.gate.ruling import Ruling
from pytest_perfgate.core.gate.scope import render_scope
from pytest_perfgate.core.gate.units import noun
from pytest_perfgate.model.limit import Limit, Operator, Outcome
from pytest_perfgate.model.metric import Absent, Labels, Metric, MetricSet, matches
from pytest_perfgate.model.plan import Mode

PLAY = 1.05
"""How far a figure may pass a measured ceiling before the ceiling is doubted."""
BELIEVED = 2.0
"""Past twice a measured ceiling no noise of measuring it explains the figure."""
FAR_PAST_CEILING = "more than twice the measured ceiling, so the ceiling or the work count is wrong"
CHECK_CEILING = ("perfgate ceilings, on a quiet machine; and count the work= of this call again",)

_HOLDS: Mapping[Operator, Callable[[float, float], bool]] = {
    Operator.AT_MOST: operator.le,
    Operator.LESS: operator.lt,
    Operator.AT_LEAST: operator.ge,
    Operator.MORE: operator.gt,
    Operator.EQUAL: operator.eq,
}
PAST_PEAK = "more than the hardware can do, so the peak or the work count is wrong"
CHECK_PEAK = ("check --peak and --bandwidth, or --device",)
OF_A_PEAK = ("mfu", "mfu_datasheet", "sol", "sol_datasheet")
"""Fractions of a peak, which no true figure exceeds by more than the play."""
_OF_CEILING = frozenset({"mfu_ceiling", "sol_ceiling"})
_ALIASED = frozenset({"mfu", "sol"})
_SEVERITY = (Outcome.PASSED, Outcome.UNSTABLE, Outcome.UNDECIDED, Outcome.NOT_MEASURED, Outcome.INVALID, Outcome.BROKEN)


def against_limit(limit: Limit, trial: Trial) -> Ruling:
    """The worst of all metrics that the limit's scope selects; each must hold."""
    scope = scope_within(limit, trial.measurement.key)
    found = trial.metrics.find(limit.metric, scope)
    if not found:
        return _not_found(limit, trial)
    rulings = [_one(limit, metric, trial) for metric in found]
    rulings += [_lacking(limit, gap) for gap in beside(limit.metric, scope, found, trial.metrics)]
    return worst_first(limit, rulings)[0]


def worst_first(limit: Limit, rulings: Sequence[Ruling]) -> list[Ruling]:
    """Rulings of one limit by outcome, and those of one outcome by how far they are on the wrong side."""
    sign = -1.0 if limit.operator in {Operator.AT_LEAST, Operator.MORE} else 1.0

    def badness(ruling: Ruling) -> tuple[int, float]:
        if ruling.metric is None:
            return _SEVERITY.index(ruling.outcome), 0.0
        number = ruling.metric.value
        far = abs(number - limit.bound) if limit.operator is Operator.EQUAL else sign * number
        return _SEVERITY.index(ruling.outcome), far

    return sorted(rulings, key=badness, reverse=True)


def beside(name: str, scope: Labels, found: Sequence[Metric], metrics: MetricSet) -> tuple[Absent, ...]:
    """What a limit means as well and is not there: the stage of a rank among ranks that have it."""
    absences = metrics.absences(name)
    if not absences:
        return ()
    level = {label for label, _ in found[0].labels}
    return tuple(
        absent
        for absent in absences
        if absent.labels and {label for label, _ in absent.labels} == level and matches(absent.labels, scope)
    )


def _lacking(limit: Limit, absent: Absent) -> Ruling:
    """What was not collected, or is not to be trusted."""
    coded = f"  [{absent.code}]" if absent.code else ""
    return Ruling(
        outcome=Outcome.INVALID if absent.code else Outcome.NOT_MEASURED,
        sentence=f"{limit.metric}{render_scope(absent.labels)}: {absent.why}{coded}",
        next=(absent.mend,) if absent.mend else (),
    )


def _not_found(limit: Limit, trial: Trial) -> Ruling:
    scope = scope_within(limit, trial.measurement.key)
    meant = trial.metrics.missing(limit.metric, scope)
    if meant is not None and scope:
        return _lacking(limit, meant)
    uncollected = not_in_the_report(limit, trial.metrics)
    if uncollected is not None and trial.metrics.find(limit.metric):
        return _lacking(limit, uncollected)
    missing = trial.metrics.missing(limit.metric)
    others = [m for m in trial.metrics.metrics if m.name == limit.metric]
    if others:
        held = sorted({render_scope(m.labels) for m in others if m.labels})
        strange = no_instruction(limit, trial.metrics)
        if strange is not None:
            said = f"{strange[0]}; {strange[1]}"
            return Ruling(outcome=Outcome.NOT_MEASURED, sentence=said, fails=True)
        what = render_scope(limit.labels)
        near = proposal(what, held, all_of="there are")
        return Ruling(
            outcome=Outcome.NOT_MEASURED,
            sentence=f"the scope {what} of {limit.metric} matches nothing; {near}".rstrip("; "),
            fails=True,
        )
    kind = trial.context.kinds.get(limit.metric)
    why = missing.why if missing else f"nothing here produces {limit.metric}"
    if missing and (missing.mend or missing.code):
        return _lacking(limit, replace(missing, labels=()))
    source = f"capture it: it comes from {kind.source}" if kind and kind.source != "time" else ""
    return Ruling(
        outcome=Outcome.NOT_MEASURED,
        sentence=f"{limit.metric}: {why}",
        next=(source,) if source else (),
    )


def _one(limit: Limit, metric: Metric, trial: Trial) -> Ruling:
    if metric.dimension is not limit.dimension:
        return Ruling(
            outcome=Outcome.INVALID,
            sentence=f"{metric.name} is {noun(metric.dimension)}, its limit {noun(limit.dimension)}",
            metric=metric,
        )
    if _past_ceiling(metric, trial):
        if metric.value > BELIEVED:
            return Ruling(outcome=Outcome.INVALID, sentence=FAR_PAST_CEILING, next=CHECK_CEILING, metric=metric)
        return Ruling(
            outcome=Outcome.UNDECIDED,
            sentence="above the measured ceiling: the ceiling is too low to judge by",
            next=("perfgate ceilings",),
            metric=metric,
        )
    if above_peak(metric):
        return Ruling(outcome=Outcome.INVALID, sentence=PAST_PEAK, next=CHECK_PEAK, metric=metric)
    return _held(limit, metric, trial)


def above_peak(metric: Metric) -> bool:
    """Whether a profile says more than the hardware can do."""
    return metric.source == "trace" and metric.name in OF_A_PEAK and metric.value > PLAY


def _past_ceiling(metric: Metric, trial: Trial) -> bool:
    measured = metric.name in _OF_CEILING or (metric.name in _ALIASED and trial.measurement.device.kind != "gpu")
    return measured and metric.value > PLAY


def _held(limit: Limit, metric: Metric, trial: Trial) -> Ruling:
    keeps = kept(limit, metric)
    if keeps:
        return Ruling(
            outcome=Outcome.PASSED,
            sentence="the whole interval keeps the limit" if metric.interval else "keeps the limit",
            metric=metric,
        )
    return undecided(metric, trial) if keeps is None else _broken(metric, trial)


def kept(limit: Limit, metric: Metric) -> bool | None:
    """Whether the whole interval keeps a limit, or misses it; nothing where it spans that."""
    low, high = holds(limit, metric.low), holds(limit, metric.high)
    if limit.operator is Operator.EQUAL:
        return low and high
    return low if low is high else None


def speed_up(metric: Metric) -> float:
    """How much faster a slowdown's upper bound is at the least; where nothing is left of the time, without end."""
    return 1 / (1 + metric.high) - 1 if metric.high > -1 else math.inf


def holds(limit: Limit, number: float) -> bool:
    """Whether one number keeps a limit."""
    return _HOLDS[limit.operator](number, limit.bound)


def _broken(metric: Metric, trial: Trial) -> Ruling:
    sentence = "the whole interval misses the limit" if metric.interval else "misses the limit"
    return Ruling(outcome=Outcome.BROKEN, sentence=sentence, next=_looks(metric, trial), metric=metric)


def _looks(metric: Metric, trial: Trial) -> tuple[str, ...]:
    """What tells more of a figure that misses its limit: where the time goes, and since when."""
    if not trial.measurement.processes:
        return ()
    if metric.name not in DERIVED:
        return trial.profiles
    full = trial.context.mode is Mode.FULL
    return (*trial.profiles, f"perfgate history {trial.name}" if full else f"{trial.rerun} --perfgate=full")


def undecided(metric: Metric, trial: Trial) -> Ruling:
    """The interval spans the limit: because the processes disagree in groups, or for want of evidence."""
    if trial.modes and metric.name in DERIVED:
        return Ruling(
            outcome=Outcome.UNSTABLE,
            sentence="the processes fall into groups on both sides of the limit",
            next=("perfgate doctor",),
            metric=metric,
        )
    more = f"{trial.rerun} --perfgate=full --perfgate-rounds={2 * max(len(trial.measurement.processes), 3)}"
    return Ruling(
        outcome=Outcome.UNDECIDED,
        sentence="the interval spans the limit",
        next=(more,) if metric.name in DERIVED else (),
        metric=metric,
    )
