"""Judges all measured cases of a run by their limits, accepted times and history."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from pytest_perfgate.app.accepted import Accepted, PastRuns
from pytest_perfgate.app.measure import measurements
from pytest_perfgate.core.changes.marks import EnvironmentEdits, environment_files, requirements
from pytest_perfgate.core.judge.acceptance import detectable
from pytest_perfgate.core.judge.accepting_figures import first_figures
from pytest_perfgate.core.judge.against_baseline import judging_lines
from pytest_perfgate.core.judge.against_revision import new_test_verdicts
from pytest_perfgate.core.judge.context import JudgeContext, Unpaired, accepted_clock, limited, moved, surroundings
from pytest_perfgate.core.judge.judge import (
    JUDGING_FAILED,
    judge,
    judging_failed,
    not_called,
    not_measured,
    nothing_measured,
    unmatched_limits,
    with_trouble,
)
from pytest_perfgate.core.judge.samples import of_level
from pytest_perfgate.core.judge.suspects import uncommitted
from pytest_perfgate.core.limits.grammar import OF_FAMILIES, check_items, parse_limit
from pytest_perfgate.core.limits.merge import limits_on_times, merge_limits, of_other_calls, own_name
from pytest_perfgate.core.stats.inference import scatter_of_neighbours
from pytest_perfgate.model.errors import PerfgateError, error_summary, fault_sentence
from pytest_perfgate.model.measurement import (
    DIRTY,
    Baseline,
    Environment,
    HistoryEntry,
    Measurement,
    commit_name,
    short_commit,
)
from pytest_perfgate.model.metric import MetricKind, MetricSet
from pytest_perfgate.model.plan import Base, Case, CaseKey, Compare, Limit, Mode, Outcome
from pytest_perfgate.model.project import DEPENDENCIES
from pytest_perfgate.model.protocol import STATIC, TIMED, WAITED, CaseResult
from pytest_perfgate.model.verdict import CaseReport, Excuse, Paired

if TYPE_CHECKING:
    from pytest_perfgate.core.changes.limits import Merged
    from pytest_perfgate.model.ports import GateTools
    from pytest_perfgate.model.values import Work

COMMIT_FIRST = "commit, run again, and accept that"
IMPORT_LATER = "import what the base lacks inside the fixture that uses it, not at the top of conftest.py"

_NO_COMMIT = frozenset({"arm-no-commit", "revision-missing"})
"""Faults that name no commit which could have been built."""


class GateJudge:
    """Judges all cases of a run."""

    def __init__(self, tools: GateTools, context: JudgeContext) -> None:
        self.tools, self.context = tools, context
        self.accepted = Accepted(tools)
        self.past = PastRuns(tools.history)
        self.paired: Mapping[CaseKey, Paired] = {}
        """The results of base and head, if the run compares with a revision."""
        self.revision = ""
        """The revision that the run compares with, if one was named."""
        self.same_code = False
        """Whether both arms of that comparison held the same code."""
        self.new: frozenset[str] = frozenset()
        """Tests that this revision does not have; they need no stored baseline either."""
        self.unready: Mapping[str, str] = {}
        """Tests that this revision cannot run as they are now, with the error: their stored lines judge."""
        self.untimed: Mapping[CaseKey, str] = {}
        """Calls without a time at this revision, with the reason: their stored lines judge too."""
        self._own: dict[str, frozenset[str]] = {}
        """Names of the figures that a test took itself, by node id."""
        self.merged: Merged = lambda _nodeid, layers: merge_limits(*layers)
        """Merges the limits of a test with those of its marks and the project's settings."""

    def read_baselines(self, cases: Iterable[Case]) -> None:
        """Read every file that may judge these cases, and the history; raise if one is unreadable."""
        self.past.probe()
        self.accepted.read_files(case.path for case in cases)

    def judge_all(self, results: Mapping[str, CaseResult]) -> dict[str, tuple[CaseReport, ...]]:
        """Judge every case by its accepted time; the paired confirmation, if there is one, decides suspects."""
        self.context = replace(self.context, gates=gates_of(results.values(), self.context.share))
        reports = {nodeid: self.judge_result(result) for nodeid, result in results.items()}
        if self.tools.confirm is not None:
            flat = {report.key: report for cases in reports.values() for report in cases}
            tried = self.tools.confirm(flat, {nodeid: result.case for nodeid, result in results.items()})
            reports = {n: tuple(tried.get(report.key, report) for report in cases) for n, cases in reports.items()}
        return reports

    def judge_result(self, result: CaseResult) -> tuple[CaseReport, ...]:
        """Return the reports of one case, one for each of its calls and at least one."""
        case = result.case
        if result.outcome == "died" or not (result.captures or result.raised):
            return (self.unmeasured(case, CaseKey(nodeid=case.nodeid), _why(result), waited=result.outcome == WAITED),)
        self._own[case.nodeid] = frozenset(_own_names(result))
        measured = [with_trouble(measurement, result) for measurement in measurements(result, self.tools)]
        judged = [self.judged(case, measurement) for measurement in measured]
        reports = with_raised_calls(judged, result.raised, partial(self.unmeasured, case))
        if not reports:
            return (self._uncalled(case),)
        return (*reports, *unmatched_limits(reports, self._all_limits(case, reports), self.context))

    def unmeasured(self, case: Case, key: CaseKey, why: str, *, waited: bool = False) -> CaseReport:
        """Return the report of a case without a measurement, with the reason."""
        return not_measured(key, case.limits, why, self.context, waited=waited)

    def _uncalled(self, case: Case) -> CaseReport:
        """Return the report of a test that timed nothing; limits on machine code lack their capture, not a call."""
        why = "the test did not call perfgate() and entered no region"
        key = CaseKey(nodeid=case.nodeid)
        if set(case.plan.captures) - {TIMED} or self.context.mode is Mode.OFF:
            return self.unmeasured(case, key, why)
        reason, step = case.unreached
        return not_called(key, case.limits, (f"{why}: {reason}" if reason else why, step), self.context)

    def _all_limits(self, case: Case, reports: Iterable[CaseReport]) -> Iterable[Limit]:
        brought = [report.measurement for report in reports if report.measurement and report.measurement.limits]
        return (*case.limits, *(limit for measurement in brought for limit in self.limits(case, measurement)))

    def judged(self, case: Case, measurement: Measurement, unpaired: Unpaired | None = None) -> CaseReport:
        """Judge one measurement by its limits; ``unpaired`` says why two builds could not decide."""
        if not measurement.processes and measurement.metrics == MetricSet() and not measurement.problems:
            return self.unmeasured(case, measurement.key, nothing_measured(measurement.identity.timer))
        baseline, edited, replaced = judging_lines(measurement, *self.accepted.judging(measurement), self.context)
        past = self.past.newest(measurement)
        scatter, runs = _scatter(past, baseline, measurement.environment)
        context = replace(
            self.context,
            scatter=scatter,
            runs=runs,
            floor_ns=case.plan.floor_ns,
            edited=edited,
            replaced=replaced,
            new_line=self.accepted.is_new_line(measurement),
            then_hz=accepted_clock(baseline, past),
            unbaselined=_unbaselined(measurement.device.key, self.tools),
            paired_available=self.tools.confirm is not None and unpaired is None,
            unpaired=unpaired or _unversioned(self.accepted.base),
            environment_edits=self.environment_edits if measurement.key in self.paired else EnvironmentEdits(),
        )
        if measurement.key.nodeid in self.new:
            baseline, context = None, new_test_verdicts(context)
        reason = self.unready.get(measurement.key.nodeid, "") or self.untimed.get(measurement.key, "")
        if reason:
            context = replace(context, unpaired=Unpaired(why=reason))
        if reason and baseline is None:
            context = new_test_verdicts(context, "nothing to compare with")
        paired, limits = self.paired.get(measurement.key), self.limits(case, measurement)
        try:
            return judge(measurement, limits, baseline=baseline, context=context, paired=paired)
        except PerfgateError:
            raise
        except Exception as fault:  # noqa: BLE001 - a case that breaks the judge must not lose the others' verdicts
            return judging_failed(measurement, limits, fault_sentence(fault, "judged this", JUDGING_FAILED), context)

    @cached_property
    def environment_edits(self) -> EnvironmentEdits:
        """The installed software that the change under test edits."""
        base, repository = self.revision or self.accepted.base.commit, self.tools.repository
        if not base or repository is None:
            return EnvironmentEdits()
        then, now = (self.tools.settings(revision).get(DEPENDENCIES, "[]") for revision in (base, ""))
        return EnvironmentEdits(requirements=requirements(then, now), files=environment_files(repository.changed(base)))

    def with_arms(self, case: Case, report: CaseReport, paired: Paired) -> CaseReport:
        """Judge a suspect again by the rounds of both arms."""
        if report.measurement is None:
            return report
        facts = moved(report.baseline, report.measurement, self.past.newest(report.measurement))
        self.paired = {**self.paired, report.key: replace(paired, moved=facts)}
        return self.judged(case, report.measurement)

    def without_arms(self, case: Case, report: CaseReport, fault: PerfgateError | None, error: str = "") -> CaseReport:
        """Judge a suspect without arms, by the prediction interval, with the reason."""
        if report.measurement is None:
            return report
        return self.judged(case, report.measurement, _unpaired(report.baseline, fault, error))

    def limits(self, case: Case, measurement: Measurement) -> tuple[Limit, ...]:
        """Return the limits of case and call, without those that cannot apply to what was measured."""
        kinds, code = self.tools.kinds, measurement.identity.timer == STATIC
        limits = case.limits if code else _with_brought(case, measurement, kinds)
        _check_items(limits, measurement.work)
        own = self._own.get(measurement.key.nodeid, frozenset())
        others = (*limits_on_times(limits, measurement, kinds), *of_other_calls(limits, measurement, own))
        return tuple(limit for limit in limits if limit not in others or limit.source == "command line")

    def read_limits(self, result: CaseResult) -> None:
        """Raise if a limit of the result's calls is unreadable."""
        kinds = self.tools.kinds
        own = _own_names(result)
        calls = [call for captures in result.captures for call in captures]
        texts = dict.fromkeys(text for call in calls for text in call.limits)
        limits = {text: _call_limit(text, kinds, result.case.location, own) for text in texts}
        for call in calls:
            _check_items([*result.case.limits, *(limits[text] for text in call.limits)], call.work)


def _unbaselined(device: str, tools: GateTools) -> str:
    """Return why a device with committed baselines has none for this case."""
    return f"nothing has been accepted for this case on {device} yet" if tools.committed(device) else ""


def _own_names(result: CaseResult) -> set[str]:
    """Return the figures that a test took itself, in all of its calls."""
    readings = (reading for captures in result.captures for call in captures for reading in call.readings)
    return {reading.name for reading in readings if reading.better is not None}


def _with_brought(case: Case, measurement: Measurement, kinds: Mapping[str, MetricKind]) -> tuple[Limit, ...]:
    if not measurement.limits:
        return case.limits
    own = {metric.name for metric in measurement.metrics.metrics if metric.better is not None}
    brought = tuple(_call_limit(text, kinds, case.location, own) for text in measurement.limits)
    far = tuple(limit for limit in case.limits if limit.source not in {"default", "command line"})
    commanded = tuple(limit for limit in case.limits if limit.source == "command line")
    return merge_limits(far, brought, commanded)


def _check_items(limits: Iterable[Limit], work: Work | None) -> None:
    """Raise if a limit on a rate names other items than the work of its call counts."""
    if work is not None and work.items is not None:
        for limit in limits:
            check_items(limit, work.unit)


def _call_limit(text: str, kinds: Mapping[str, MetricKind], place: str, own: Collection[str]) -> Limit:
    """Return a limit of one call; a mean over the family is refused, because a single call cannot be judged by it."""
    limit = parse_limit(text, kinds=kinds, source="fixture", place=place, own=partial(own_name, names=own))
    if limit.metric in OF_FAMILIES:
        raise PerfgateError(
            "call-wrong",
            f"{limit.text!r} applies to the whole parametrised test, and limits= to one call",
            fix=f"write it on the test: @pytest.mark.perfgate({limit.text!r})",
            place=place,
        )
    return limit


def _unpaired(baseline: Baseline | None, fault: PerfgateError | None, error: str) -> Unpaired:
    """Return why two builds did not decide: a tree is in no commit, cannot be built, or the test failed.

    For a line whose tree is in no commit, the base of the change was tried, so both reasons count.
    """
    lost = uncommitted(baseline)
    if lost and (fault.code.name in _NO_COMMIT if fault is not None else not error):
        return Unpaired(why=lost, step=COMMIT_FIRST)
    if fault is not None and fault.code.name == "revision-missing":
        return Unpaired(why=error_summary(fault), base_missing=True)
    why, _, step = (error or "no round timed it in both builds: the base may not make this call").partition("; next: ")
    if fault is not None:
        why, step = error_summary(fault), fault.fix
    step = IMPORT_LATER if "while loading conftest" in why else step
    return Unpaired(why=f"{why}\n{lost}" if lost else why, step=step)


def _unversioned(base: Base) -> Unpaired | None:
    return Unpaired(why=base.why, step=base.fix, unversioned=True) if base.unversioned else None


def _scatter(past: Sequence[HistoryEntry], line: Baseline | None, environment: Environment) -> tuple[float | None, int]:
    """Return the relative scatter between runs of accepted code: the judged commit must not widen its own limit.

    Runs of other commits count if their time is near the accepted one; runs of the accepted commit always count.
    """
    judged = short_commit(commit_name(environment.commit, dirty=environment.dirty))
    own = "" if line is not None and judged == line.commit and not environment.dirty else judged
    earlier = [s for s in past if 0 < s.time < math.inf and not (own and short_commit(s.commit) == own)]
    same = "" if line is None or line.commit.endswith(DIRTY) else short_commit(line.commit)
    times = [
        s.time
        for s in earlier
        if line is None or of_level(s.time, line.time) or (same and short_commit(s.commit) == same)
    ]
    return (scatter_of_neighbours(times), len(times)) if len(times) > 2 else (None, len(times))


def new_baselines(
    reports: Iterable[CaseReport], committed: Callable[[str], bool], when: str, commit: str
) -> tuple[Baseline, ...]:
    """Return the lines that a first run stores under ``.perfgate/``, on devices without committed baselines."""
    bare = ((report, report.measurement) for report in reports if _bare(report))
    return tuple(_new_line(report, m, when, commit) for report, m in bare if m and not committed(m.device.key))


def _new_line(report: CaseReport, measurement: Measurement, when: str, commit: str) -> Baseline:
    figures = first_figures(report)
    if report.baseline is not None:
        new = [figure for figure in figures if report.baseline.figure(figure.name, figure.labels) is None]
        return replace(report.baseline, figures=(*report.baseline.figures, *new))
    times = [metric for metric in measurement.metrics.find("time") if not metric.labels and measurement.processes]
    return Baseline(
        key=report.key,
        device=measurement.device.key,
        time=times[0].value if times else 0.0,
        figures=figures,
        commit=commit,
        who="perfgate",
        when=when,
        why="first run on this machine",
        detects=detectable(report) or 0.0,
        identity=measurement.identity,
        local=True,
        surroundings=surroundings(measurement),
        limited=bool(limited(measurement.processes)),
    )


def _bare(report: CaseReport) -> bool:
    """Return whether a case has a time without a line, or a figure that its local line lacks."""
    if report.measurement is None:
        return False
    unbaselined = [v for v in report.verdicts if v.outcome is Outcome.UNBASELINED]
    figures = any(v.limit.compare is not Compare.FIGURE and v.metric is not None for v in unbaselined)
    if report.baseline is not None:
        return report.baseline.local and figures
    return bool(unbaselined) and (figures or bool(report.measurement.metrics.find("time")))


def _why(result: CaseResult) -> str:
    reason = "; ".join(result.trouble) or "its measurement is missing"
    if result.outcome == "died":
        return f"{reason}; the test was not run again; next: pytest {shlex.quote(result.case.nodeid)} --perfgate=off -s"
    words = {"skipped": "skipped", "xfailed": "xfailed", "failed": "the test failed while it was measured"}
    return f"{words[result.outcome]}: {reason}" if result.outcome in words else reason


def with_excuse(report: CaseReport) -> CaseReport:
    """Excuse a case whose test was skipped or failed by itself, so that the gate adds no failure of its own."""
    if report.measurement is not None:
        return report
    return replace(report, excuse=Excuse.NOT_RUN)


def off_reason(mode: Mode, pdb: bool) -> str:
    """Return why nothing is measured."""
    return "--pdb skips measuring" if pdb else f"--perfgate={mode.value}: nothing is measured"


Unmeasured = Callable[[CaseKey, str], CaseReport]


def with_raised_calls(
    reports: Sequence[CaseReport], raised: Sequence[tuple[CaseKey, str]], unmeasured: Unmeasured
) -> tuple[CaseReport, ...]:
    """Return the reports of a test, with those of its calls that raised.

    A region that raised once is not measured even if other entries passed: which of them did the work is unknown.
    """
    why = {key: f"its {reason}, and the test caught that" for key, reason in raised}
    measured = {report.key for report in reports}
    replaced = [unmeasured(report.key, why[report.key]) if report.key in why else report for report in reports]
    return (*replaced, *(unmeasured(key, reason) for key, reason in why.items() if key not in measured))


_STRANGE = "called in the test, but not in the measuring process: the call does not always happen"
_UNCALLED = "measured before the tests, but never called in the test itself: the call does not always happen"


def agreed(
    gate_judge: GateJudge, case: Case, stored: tuple[CaseReport, ...], called: Sequence[CaseKey]
) -> tuple[CaseReport, ...]:
    """Return the stored verdicts of calls that happened in both processes, and NOT MEASURED for the others."""
    measured = {report.key for report in stored if report.measurement is not None}
    stored_keys = {report.key for report in stored}
    if not measured:
        return stored
    uncalled = {report.key for report in stored if report.key in measured and not _static(report)} - set(called)
    reports = (_uncalled(gate_judge, case, report) if report.key in uncalled else report for report in stored)
    return (*reports, *(gate_judge.unmeasured(case, key, _STRANGE) for key in called if key not in stored_keys))


def _static(report: CaseReport) -> bool:
    """Return whether the report is of attached machine code, which belongs to no call."""
    return report.measurement is not None and report.measurement.identity.timer == STATIC


def _uncalled(gate_judge: GateJudge, case: Case, report: CaseReport) -> CaseReport:
    return replace(gate_judge.unmeasured(case, report.key, _UNCALLED), measurement=report.measurement)


def gates_of(results: Iterable[CaseResult], share: float) -> int:
    """Return the number of times and gated figures that are judged together, since each may cause a false alarm."""
    gates = 0
    for result in results:
        calls = {call.key for captures in result.captures for call in captures}
        gates += len(calls) * (1 + sum(limit.compare is not Compare.FIGURE for limit in result.case.limits))
    return max(1, math.ceil(gates / share))
