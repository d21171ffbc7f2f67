"""Judges one measurement against all its limits, and limits without a measurement."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from pytest_perfgate.core.judge.against_baseline import against_baseline
from pytest_perfgate.core.judge.against_figure import against_figure
from pytest_perfgate.core.judge.against_limit import against_limit
from pytest_perfgate.core.judge.against_revision import (
    accepted_line,
    against_revision,
    arm_facts,
    arms_of,
    tuning_facts,
    why_line_not_comparable,
    why_not_comparable,
)
from pytest_perfgate.core.judge.context import JudgeContext, JudgedMeasurement, Ruling, verdict
from pytest_perfgate.core.judge.metrics import DERIVED, MAKERS, CallMetrics, DerivedMetrics, timed_metrics, timing
from pytest_perfgate.core.judge.readings import FILE, is_reference, references_of
from pytest_perfgate.core.judge.samples import problems_of, shift_metric
from pytest_perfgate.core.judge.suspects import unpaired_ruling
from pytest_perfgate.core.limits.grammar import OF_FAMILIES
from pytest_perfgate.core.limits.merge import (
    applies_on,
    case_of,
    limits_for,
    limits_on_times,
    parts_of,
    replaced_on,
    tails_in,
    unmatched_cases,
    with_directions,
    without_case,
)
from pytest_perfgate.core.metric_kinds import CODE_NAMES
from pytest_perfgate.core.render.words import plural
from pytest_perfgate.core.stats.summary import Summary, group_gap
from pytest_perfgate.model.errors import codes, proposal
from pytest_perfgate.model.metric import Absent, Finding, Interval, Labels, Metric, MetricSet, Problem, selected
from pytest_perfgate.model.plan import SPEEDUP, CaseKey, Compare, Effect, Limit, Mode, Outcome
from pytest_perfgate.model.protocol import READ, STATIC, CaseResult
from pytest_perfgate.model.verdict import CaseReport, Paired, SuiteNote

if TYPE_CHECKING:
    from pytest_perfgate.model.measurement import Baseline, Measurement

RECORDED = "give record() times above zero, and unit= if they are not nanoseconds"
NOTHING_READ = "the file lacks it; next: perfgate inspect FILE lists its figures"
JUDGING_FAILED = "judging-failed"
OF_OTHERS = Ruling(outcome=Outcome.NOT_APPLICABLE, sentence="it needs a timed call, and this test timed none")


def judge(
    measurement: Measurement,
    limits: Sequence[Limit],
    *,
    baseline: Baseline | None,
    context: JudgeContext,
    paired: Paired | None = None,
) -> CaseReport:
    """Judge every limit that applies to this call; the report's measurement carries all metrics."""
    # ``paired`` confirms or clears a suspect, or, if the user named a revision, replaces the stored baseline.
    measurement = with_directions(measurement, limits)
    trial = _judged_measurement(measurement, limits, baseline, context, paired)
    of_calls = any(map(case_of, limits))
    meant = limits_for(limits, measurement.key, parts_of(measurement.metrics)) if of_calls else limits
    meant = [limit for limit in meant if not replaced_on(limit, measurement.device)]
    others = limits_on_times(meant, measurement, context.kinds)
    verdicts = []
    for limit in meant:
        if limit.metric not in OF_FAMILIES:
            ruling = OF_OTHERS if limit in others else _with_arms(_ruling(limit, trial), limit, trial)
            verdicts.append(verdict(limit, ruling, context, trial))
    return CaseReport(
        key=measurement.key,
        verdicts=tuple(verdicts),
        measurement=measurement.with_metrics(trial.metrics),
        baseline=baseline,
        problems=trial.problems,
        unheld=why_not_comparable(trial),
        accepts=accepted_line(trial),
        arms=arms_of(paired, revision=True),
        builds=arms_of(paired, revision=False),
    )


def _judged_measurement(
    measurement: Measurement,
    limits: Sequence[Limit],
    baseline: Baseline | None,
    context: JudgeContext,
    paired: Paired | None,
) -> JudgedMeasurement:
    call, in_groups = timing(measurement), False
    if call is not None and group_gap(call.medians, call.spread, call.resolution) is not None:
        call, in_groups = call._replace(interval=_hull(call)), True
    derived = timed_metrics(measurement, baseline, call, tails_in([limit.text for limit in limits]))
    if paired is not None and paired.revision and paired.differences:
        derived = _with_shift(derived, paired)
    metrics = _with_captures(derived, measurement.metrics, timed=bool(measurement.processes))
    problems = problems_of(measurement, metrics, timed=call is not None)
    return JudgedMeasurement(
        measurement=measurement, context=context, metrics=metrics, baseline=baseline, timing=call,
        in_groups=in_groups, paired=paired, problems=problems + (paired.problems if paired else ()),
        unheld=why_line_not_comparable(baseline, measurement, context),
        references=references_of(limits),
        several=_several(baseline) if baseline is not None else frozenset(),
    )  # fmt: skip


def _several(line: Baseline) -> frozenset[str]:
    counts = Counter(figure.name for figure in line.figures)
    return frozenset(name for name, count in counts.items() if count > 1)


def _hull(summary: Summary) -> Interval:
    """Return the interval that includes all process medians, since any of the groups may be right."""
    return Interval(
        low=min(summary.interval.low, *summary.medians),
        high=max(summary.interval.high, *summary.medians),
        confidence=summary.interval.confidence,
    )


def _with_shift(derived: MetricSet, paired: Paired) -> MetricSet:
    others = tuple(m for m in derived.metrics if m.name != "slowdown")
    return MetricSet(
        metrics=(*others, shift_metric(paired)),
        absent=tuple(a for a in derived.absent if a.name != "slowdown"),
    )


def _with_captures(derived: MetricSet, others: MetricSet, *, timed: bool) -> MetricSet:
    """Return derived metrics with those of captures; for a timed call the derived ones win."""
    if not others.metrics and not others.absent:
        return derived
    if not timed:
        have = set(others.names())
        return MetricSet(
            metrics=others.metrics, absent=others.absent + tuple(a for a in derived.absent if a.name not in have)
        )
    if isinstance(derived, DerivedMetrics):
        return ExtendedMetrics(derived.call, others)
    own = {(m.name, m.labels) for m in derived.metrics}
    strange = (m for m in others.metrics if (m.name, m.labels) not in own)
    return derived | MetricSet(
        metrics=tuple(m for m in strange if m.labels or m.name not in DERIVED),
        absent=tuple(a for a in others.absent if a.name not in DERIVED),
    )


class ExtendedMetrics(DerivedMetrics):
    """Derived metrics with those that the call read, and those of captures and further passes."""

    __slots__ = ("_gaps", "_others")
    _others: dict[str, list[Metric]]
    _gaps: tuple[Absent, ...]

    def __init__(self, call: CallMetrics, others: MetricSet) -> None:
        super().__init__(call)
        by_name: dict[str, list[Metric]] = {}
        for metric in others.metrics:
            if metric.name in MAKERS:
                own = not metric.labels and metric.name in DERIVED
                if own or metric.labels in _labels(call.metrics_named(metric.name)):
                    continue
            by_name.setdefault(metric.name, []).append(metric)
        object.__setattr__(self, "_others", by_name)
        object.__setattr__(self, "_gaps", tuple([absent for absent in others.absent if absent.name not in DERIVED]))

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return (*super().metrics, *chain.from_iterable(self._others.values()))

    @property
    def absent(self) -> tuple[Absent, ...]:
        return (*super().absent, *self._gaps)

    def absences(self, name: str) -> tuple[Absent, ...]:
        return (*super().absences(name), *(absent for absent in self._gaps if absent.name == name))

    def find(self, name: str, scope: Labels = ()) -> tuple[Metric, ...]:
        others = self._others.get(name, [])
        if name in MAKERS:
            metrics = (metric for metric in self.call.metrics_named(name) if isinstance(metric, Metric))
            others = [*(metric for metric in metrics if metric.name == name), *others]
        return selected(others, scope)


def _labels(figures: Sequence[Metric | Absent]) -> list[Labels]:
    return [figure.labels for figure in figures if isinstance(figure, Metric)]


def _ruling(limit: Limit, trial: JudgedMeasurement) -> Ruling:
    if (limit.on or limit.except_on) and not applies_on(limit, trial.measurement.device):
        device = trial.measurement.device
        sentence = f"for {', '.join(limit.on)} only; this is {device.name or device.key}"
        return Ruling(outcome=Outcome.NOT_APPLICABLE, sentence=sentence)
    if limit.metric == SPEEDUP and is_reference(limit, trial.measurement.key, trial.references):
        return Ruling(outcome=Outcome.NOT_APPLICABLE, sentence="it is the reference itself")
    if trial.problems:
        return _invalid(trial.problems, trial)
    if limit.compare is not Compare.FIGURE:
        return against_figure(limit, trial)
    if limit.metric == "slowdown" and not without_case(limit) and trial.measurement.processes:
        by_revision = trial.paired is not None and trial.paired.revision
        return against_revision(limit, trial) if by_revision else against_baseline(limit, trial)
    return against_limit(limit, trial)


def _with_arms(ruling: Ruling, limit: Limit, trial: JudgedMeasurement) -> Ruling:
    """Return the ruling on a slowdown with how its two builds differ, or why they were not compared."""
    if limit.metric in {"time", "slowdown"} and trial.paired is None:
        facts = tuning_facts({"": trial.measurement.processes})
        ruling = ruling._replace(evidence=(*ruling.evidence, *facts)) if facts else ruling
    if limit.metric != "slowdown":
        return ruling
    if trial.context.unpaired is not None:
        return unpaired_ruling(ruling, trial.context.unpaired, trial)
    if trial.paired is not None and not trial.paired.revision:  # a named revision has its facts already
        return ruling._replace(evidence=(*ruling.evidence, *arm_facts(trial.paired)))
    return ruling


def _records_no_times(trial: JudgedMeasurement, problems: tuple[Problem, ...]) -> bool:
    """Return whether recorded values are not times, so that measuring again would not help."""
    timers = {process.timer for process in trial.measurement.processes}
    return timers == {"record"} and any(p.code == "bad-timing" for p in problems)


def _invalid(problems: tuple[Problem, ...], trial: JudgedMeasurement) -> Ruling:
    """Return INVALID with the first problem's evidence and the others; several processes may have the same."""
    others = dict.fromkeys(("problem", f"{p.what}  [{p.code}]") for p in problems)
    more = f" (and {len(others) - 1} more)" if len(others) > 1 else ""
    first, code = problems[0], codes().get(problems[0].code)
    step = RECORDED if _records_no_times(trial, problems) else code.fix if code else ""
    if any(problem.retry for problem in problems):
        step = f"{trial.rerun} --perfgate=full"
    return Ruling(
        outcome=Outcome.INVALID,
        sentence=f"{first.what}  [{first.code}]{more}",
        next=(step,) if step else (),
        evidence=(*first.evidence, *others),
    )


def not_measured(
    key: CaseKey, limits: Sequence[Limit], why: str, context: JudgeContext, *, waited: bool = False
) -> CaseReport:
    """Return the report of a case that was never measured: each limit has the reason; open if the budget ended."""
    sentence, _, fix = why.partition("; next: ")
    outcome = Outcome.NOT_MEASURED
    if waited:
        outcome, fix = Outcome.UNDECIDED, "a larger --perfgate-budget, or this test alone"
    elif context.mode is Mode.OFF:
        fix = f"{context.pytest} {shlex.quote(key.nodeid)} --perfgate=full"
    ruling = Ruling(outcome=outcome, sentence=sentence, next=(fix,) if fix else ())
    return without_measurement(key, limits, context, lambda _: ruling)


def nothing_measured(timer: str) -> str:
    """Return why a measurement of this timer has no figure, with the next step."""
    return NOTHING_READ if timer == READ else f"nothing was recorded; next: {RECORDED}"


def not_called(key: CaseKey, limits: Sequence[Limit], why: tuple[str, str], context: JudgeContext) -> CaseReport:
    """Return the report of a test that timed nothing, with why and what to do."""
    # A limit on machine code lacks the capture that reads it, not a call.

    def ruling(limit: Limit) -> Ruling:
        if limit.metric not in CODE_NAMES:
            return Ruling(
                outcome=Outcome.NOT_MEASURED, sentence=why[0], next=(why[1] or "call perfgate(fn) in the test",)
            )
        unread = f"no capture reads its machine code: the test has no capture={STATIC!r}"
        step = f"@pytest.mark.perfgate({limit.text!r}, capture={STATIC!r})"
        return Ruling(outcome=Outcome.NOT_MEASURED, sentence=unread, next=(step,))

    return without_measurement(key, limits, context, ruling)


def judging_failed(measurement: Measurement, limits: Sequence[Limit], what: str, context: JudgeContext) -> CaseReport:
    """Return INVALID under each limit, whatever the policy; the measurement stays in the record."""
    ruling = Ruling(outcome=Outcome.INVALID, sentence=what, next=("report this: it is a fault of perfgate",))
    report = without_measurement(measurement.key, limits, context, lambda _: ruling)
    problem = Problem(code=JUDGING_FAILED, what=what, retry=False)
    return replace(report, measurement=measurement, problems=(problem,))


def without_measurement(
    key: CaseKey, limits: Sequence[Limit], context: JudgeContext, ruling: Callable[[Limit], Ruling]
) -> CaseReport:
    """Return the report of a case without a measurement: one ruling for each limit except those on means."""
    meant = [limit for limit in limits if limit.metric not in OF_FAMILIES]
    return CaseReport(key=key, verdicts=tuple(verdict(limit, ruling(limit), context) for limit in meant))


NOBODY = "(no such call)"

WIDE = frozenset({"configuration", "command line"})
"""Sources of limits for all gated tests, which need not apply to every one of them."""


def unmatched_limits(
    reports: Sequence[CaseReport], limits: Iterable[Limit], context: JudgeContext
) -> tuple[CaseReport, ...]:
    """Return the report of limits whose ``case=`` or ``over=`` names no call of their test."""
    parts = {part for report in reports if report.measurement for part in parts_of(report.measurement.metrics)}
    limits, keys = tuple(dict.fromkeys(limits)), [report.key for report in reports]
    lost = (*unmatched_cases(limits, keys, parts), *_unmatched_references(limits, keys))
    devices = [report.measurement.device for report in reports if report.measurement is not None]
    meant = [limit for limit in lost if not devices or applies_on(limit, devices[0])]
    if not meant:
        return ()
    calls = sorted({key.name for key in keys if key.name} | parts)
    rulings = ((limit, _lost_ruling(limit, calls, of_file=bool(parts))) for limit in meant)
    key = CaseKey(nodeid=reports[0].key.nodeid, name=NOBODY)
    return (CaseReport(key=key, verdicts=tuple(verdict(limit, ruling, context) for limit, ruling in rulings)),)


def unrepeated(reports: Sequence[CaseReport]) -> list[CaseReport]:
    """Return the reports without those of calls that only repeat a limit that matches no call."""
    lost = {(report.key.nodeid, v.limit) for report in reports if report.key.name == NOBODY for v in report.verdicts}

    def repeats(report: CaseReport) -> bool:
        limits = {(v.outcome, (report.key.nodeid, v.limit)) for v in report.verdicts if v.effect is not Effect.PASS}
        only = all(outcome is Outcome.NOT_MEASURED and limit in lost for outcome, limit in limits)
        return report.key.name != NOBODY and bool(limits) and only

    return [report for report in reports if not repeats(report)]


def _unmatched_references(limits: Sequence[Limit], keys: Sequence[CaseKey]) -> Iterator[Limit]:
    """Yield limits on a speed-up over a missing call, or without another call than references."""
    references = references_of(limits)
    for limit in limits:
        over = dict(limit.labels).get("over", "")
        if limit.metric == SPEEDUP and limit.source not in WIDE and not over.startswith(FILE):
            compared = any(not is_reference(limit, key, references) for key in keys)
            if not compared or all(key.name != over for key in keys):
                yield limit


def _lost_ruling(limit: Limit, calls: Sequence[str], *, of_file: bool) -> Ruling:
    """Return the ruling on a limit that matches no call: wrong on the test itself, not applicable from elsewhere."""
    named = case_of(limit)
    if limit.source in WIDE:
        return Ruling(outcome=Outcome.NOT_APPLICABLE, sentence=f"no call of this test has the name '{named}'")
    if not named:  # so its reference is lost
        return _without_reference(dict(limit.labels)["over"], calls)
    nearest = proposal(named, calls, all_of="there are") if calls else "none of its calls has a name"
    return Ruling(
        outcome=Outcome.NOT_MEASURED,
        sentence=f"case={named} names no call of the test{' and nothing in its files' if of_file else ''}; {nearest}",
        next=() if of_file else (f"name the call: perfgate(..., name={named!r})",),
        fails=True,
    )


def _without_reference(over: str, calls: Sequence[str]) -> Ruling:
    """Return NOT MEASURED for a speed-up whose reference is missing, or the only call."""
    if over in calls:
        sentence = f"the test times only its reference {over}"
        step = f"also call the function that should be faster than {over}"
    else:
        nearest = proposal(over, calls, all_of="there are") if calls else "none of its calls has a name"
        sentence = f"over={over} names no call of the test; {nearest}"
        step = f"measure it in the same test: perfgate(reference, name={over!r})"
    return Ruling(outcome=Outcome.NOT_MEASURED, sentence=sentence, next=(step,), fails=True)


UNFINISHED = "measured in fewer processes than asked for"


def with_trouble(measurement: Measurement, result: CaseResult) -> Measurement:
    """Return the measurement with what ended its rounds early."""
    if not result.trouble:
        return measurement
    ran, wanted = len(result.captures), result.case.plan.rounds  # a comparison may have had more
    processes = f"{ran} of {wanted} processes" if ran < wanted else plural(ran, "process", "processes")
    finding = Finding(title=UNFINISHED, detail=f"{processes}, then {' '.join(result.trouble[0].split())}")
    return replace(measurement, findings=(*measurement.findings, finding))


def unfinished(reports: Sequence[CaseReport]) -> Iterator[SuiteNote]:
    """Yield one note on cases with fewer rounds than planned, whose tests failed in some of them."""
    findings = [(r.key, finding) for r in reports if r.measurement for finding in r.measurement.findings]
    names = tuple(f"{key}: {finding.detail}" for key, finding in findings if finding.title == UNFINISHED)
    if names:
        yield SuiteNote(
            kind="unfinished", effect=Effect.WARN, text=f"{plural(len(names), 'case')} {UNFINISHED}", names=names
        )
