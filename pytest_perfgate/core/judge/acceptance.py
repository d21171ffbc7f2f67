"""What accepting changes in a line, and lines that were loosened by hand."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_perfgate.core.changes.tests import successors
from pytest_perfgate.core.judge.accepted_line import (
    FigureStep,
    Signature,
    anchored,
    between_runs,
    carried,
    committed,
    counts_run,
    judged_moved,
    line_of,
    moves_end,
    noise,
    other_identity,
    renewed,
    shift,
    uncompared,
    unconfirmed,
    unexplained,
    why_separate,
    with_run,
)
from pytest_perfgate.core.judge.samples import busy_processors, of_level
from pytest_perfgate.core.render.words import plural, quantity
from pytest_perfgate.model.plan import ANCHOR, SPEEDUP, Mode, Outcome, Plan
from pytest_perfgate.model.values import Dimension, value

if TYPE_CHECKING:
    from pytest_perfgate.model.measurement import Baseline, HistoryEntry, Measurement
    from pytest_perfgate.model.metric import Metric
    from pytest_perfgate.model.verdict import CaseReport, RunReport

_WIDE = 0.25
"""The half-width from which an interval counts as too wide, if no slowdown limit states what is needed."""

_CLEARLY = 0.9
"""The ratio of detectable slowdowns from which a run counts as clearly better than the accepted one."""

TOO_FAR = "further from its anchor than the setting anchor allows, so CI fails; if intended: perfgate accept --anchor"
"""The text for a decision that takes a line too far from its anchor."""


class Change(str, enum.Enum):
    """What accepting a case does to its line."""

    NEW = "new"
    FASTER = "faster"
    SLOWER = "slower"
    OTHER = "measured differently"
    RENEWED = "renewed"
    """Within its noise, and its acceptance has expired or is given another end."""
    ONE_MORE = "one more run"
    ANCHORED = "counted anew"
    """Within its noise, and its drift is counted anew from it."""
    COUNTED = "counted already"
    """The line was made from this run, or counts it already."""
    LESS_NOISY = "less noisy"
    """Within its noise, and this run detects more than the accepted one."""
    COMMITTED = "commit updated"
    """Within its noise, and what the line measured is in a commit now, which can be built."""
    MOVED = "moved"
    """Slower, but base and head were equally fast: the machine changed, not the code."""
    PINNED = "measured on one core"
    UNASKED = "asked for by no limit"
    """New, and no limit on the slowdown would ever be compared with it."""
    KEPT = "kept"
    UNTRUSTED = "not to be trusted"
    UNTIMED = "without a time"

    WORSE = "worse"
    """Its time is unchanged, and another accepted figure got worse or is missing."""
    BETTER = "better"
    ADDED = "figure added"


MEASURED = frozenset({Change.NEW, Change.FASTER, Change.SLOWER, Change.OTHER, Change.LESS_NOISY})
"""Changes whose line is made from this run alone."""


@value
class Proposal:
    """One case of a record, and what accepting it would write."""

    report: CaseReport
    change: Change
    before: Baseline | None = None
    after: Baseline | None = None
    why: str = ""
    detects: float | None = None
    """The smallest slowdown that the run could detect, if that is more than its limit allows."""
    few_processes: str = ""
    predecessor: Baseline | None = None
    """The line of a removed test that this line replaces with a slower time."""
    ends: bool = False
    """Whether an earlier acceptance had an end that has passed or is changed, which needs a decision."""
    anchor: float = ANCHOR
    """How far accepted steps may take a line."""
    figures: tuple[FigureStep, ...] = ()
    """Accepted figures other than time that are new, changed or missing."""

    @property
    def asks(self) -> bool:
        """Return whether this is written only with a reason."""
        if any(step.asks for step in self.figures) and not (self.before and self.before.local):
            return True
        if self.change is Change.OTHER and self.before is not None and not self.ends:
            return not self.before.local
        return (
            self.change in {Change.SLOWER, Change.RENEWED, Change.ANCHORED} or self.ends or self.predecessor is not None
        )

    @property
    def drifts_too_far(self) -> bool:
        """Return whether CI fails this acceptance: a slower step, far from the anchor."""
        before, after = self.before, self.after
        if before is None or after is None or before.local:
            return False
        return after.time > before.time and after.drift_from_anchor > self.anchor

    @property
    def writes(self) -> bool:
        return self.after is not None


def decide(
    report: CaseReport,
    before: Baseline | None,
    entries: Sequence[HistoryEntry],
    signature: Signature,
    *,
    add: bool = False,
) -> Proposal:
    """Decide what accepting this case would write, without writing."""
    timed = before if before is not None and before.time else None
    decision = replace(_decision(report, timed, entries, signature, add=add), before=before)
    if decision.after is None or decision.change in {Change.RENEWED, Change.ANCHORED}:
        return decision
    detects = detectable(report)
    after = decision.after
    if decision.change in MEASURED:
        after = anchored(replace(after, detects=detects or 0.0), timed, signature)
    elif signature.anchor:
        after = replace(after, anchor=0.0, anchored="")
    return replace(decision, detects=detects, after=after)


def requested_slowdown(report: CaseReport) -> float:
    """Return the slowdown that the case's limits allow."""
    bounds = [v.limit.bound for v in report.verdicts if v.limit.metric == "slowdown" and v.limit.bound > 0]
    return min(bounds, default=_WIDE)


def detectable(report: CaseReport) -> float | None:
    """Return the slowdown that this run could not detect; None if it detects what the case's limit allows."""
    # Beside busy programs all its processes may be slow and still agree, so what those programs took is included.
    time = _time(report.measurement)
    if time is None:
        return None
    assert report.measurement is not None
    half = (time.high - time.low) / (2 * time.value)
    asking = [v for v in report.verdicts if v.limit.metric == "slowdown"]
    busy = busy_processors(report.measurement.processes)
    if max(half, busy) <= requested_slowdown(report):
        return None
    accepted = report.baseline.detects if report.baseline else 0.0
    return max([half, busy, *(v.visible for v in asking if v.visible is not None and v.visible > accepted)])


def _decision(
    report: CaseReport, before: Baseline | None, entries: Sequence[HistoryEntry], signature: Signature, *, add: bool
) -> Proposal:
    measurement = report.measurement
    time = _time(measurement)
    if time is None:
        return Proposal(report=report, change=Change.UNTIMED, before=before, why="nothing was timed")
    assert measurement is not None
    problems = (*report.problems, *measurement.problems)
    if problems or not 0 < time.value < math.inf:
        why = problems[0].what if problems else f"a time of {time.value} ns is impossible"
        return Proposal(report=report, change=Change.UNTRUSTED, before=before, why=why)
    change = _change(report, before, time, by_run=not (add or signature.named))
    if before is not None and uncompared(report, before, time, signature.when):
        change = Change.OTHER
    reason = ""
    if add and before is not None and change is not Change.OTHER:
        still = change is Change.KEPT
        reason = why_separate(before, measurement, signature, still=still, far=_fails(report, before, time))
        if not reason:
            counted = _counted_already(before, time, signature)
            if counted:
                return Proposal(report=report, change=Change.COUNTED, before=before, why=counted)
            after = with_run(before, time.value, measurement, signature)
            why = "" if still else signature.pages
            return Proposal(report=report, change=Change.ONE_MORE, before=before, after=after, why=why)
    line = line_of(measurement, time, entries, signature)
    if change is Change.KEPT:
        assert before is not None
        return _with_kept_time(report, before, line, signature, shift(before, time))
    ends = before is not None and bool(before.expires) and _runs_out(before, signature)
    decision = Proposal(
        report=report, change=change, before=before, after=line, why=reason, ends=ends, anchor=signature.creep
    )
    if before is None or not before.expires or decision.asks:
        return decision
    return replace(decision, after=carried(line, before, signature))  # no reason is needed: its end is in the future


def _fails(report: CaseReport, before: Baseline, time: Metric) -> bool:
    """Return whether a time is slower by more than its limit, and nothing else cleared it."""
    outcomes = {v.outcome for v in report.verdicts if v.limit.metric == "slowdown"}
    return time.value / before.time - 1 > requested_slowdown(report) and not outcomes <= {Outcome.PASSED}


def _with_kept_time(
    report: CaseReport, before: Baseline, line: Baseline, signature: Signature, shifted: float
) -> Proposal:
    """Decide what a line gains if its time is unchanged, or if nothing confirms that it changed."""
    # Other programs only slow a run, so a faster one that detects more is the better estimate, and a slower one is not.
    if _runs_out(before, signature):
        return Proposal(report=report, change=Change.RENEWED, before=before, after=renewed(before, signature))
    if _is_better_evidence(report, before) and -before.detects <= shifted <= 0:
        own = signature if signature.named else replace(signature, why="")  # among many cases it is a reason for others
        return Proposal(report=report, change=Change.LESS_NOISY, before=before, after=carried(line, before, own))
    if signature.anchor and before.anchor:
        after = renewed(before, replace(signature, expires=before.expires))
        return Proposal(report=report, change=Change.ANCHORED, before=before, after=after)
    after = committed(before, signature)
    if after.commit != before.commit and abs(shifted) <= before.detects:
        return Proposal(report=report, change=Change.COMMITTED, before=before, after=after)
    why = "nothing confirms that it moved: name the test or case to accept it" if shifted else "within noise"
    return Proposal(report=report, change=Change.KEPT, before=before, why=why)


def _is_better_evidence(report: CaseReport, before: Baseline) -> bool:
    """Return whether this run is better evidence of the same time: less noisy, or with more processes."""
    processes = report.measurement.processes if report.measurement else ()
    detects, more = detectable(report) or 0.0, 0 < before.processes < len(processes)
    return detects < _CLEARLY * before.detects or (more and detects <= before.detects)


def _counted_already(before: Baseline, time: Metric, signature: Signature) -> str:
    """Return why the line counts this run already; "" if it does not."""
    return counts_run(before, signature, "this time" if f"{time.value:.5g}" == f"{before.time:.5g}" else "")


def _runs_out(before: Baseline, signature: Signature) -> bool:
    """Return whether the end of an acceptance has passed, or is being changed."""
    over = before.expires < signature.when[:10]
    return bool(before.expires and over) or moves_end(before, signature)


def _time(measurement: Measurement | None) -> Metric | None:
    times = measurement.metrics.find("time") if measurement else ()
    return times[0] if times and not times[0].labels else None


def _change(report: CaseReport, before: Baseline | None, time: Metric, *, by_run: bool) -> Change:
    """Return what became of a line; ``by_run`` leaves to the run's verdict whether a time moved."""
    if before is None:
        return Change.NEW
    assert report.measurement is not None
    if before.identity is not None and before.identity.differences(report.measurement.identity):
        return Change.OTHER
    quiet, within_noise = not shift(before, time), by_run and unconfirmed(report, before, time)
    if (quiet or within_noise) and unexplained(before, report.baseline, noise(before, time)):
        return Change.OTHER if other_identity(before, report.baseline) else Change.SLOWER
    if within_noise or (quiet and not judged_moved(report, before)):
        return Change.KEPT
    return Change.SLOWER if time.value > before.time else Change.FASTER


def too_few_processes(decision: Proposal, report: RunReport) -> Proposal:
    """Add what the run lacks to the decision, and the number of its processes to the line."""
    if decision.change not in MEASURED | {Change.ONE_MORE}:
        return decision
    measurement = decision.report.measurement
    assert measurement is not None
    assert decision.after is not None
    count = len(measurement.processes)
    reason = _lacking(report, count)
    if not reason:
        return decision
    after = replace(decision.after, processes=count) if decision.change in MEASURED else decision.after
    return replace(decision, after=after, few_processes=reason)


def _lacking(report: RunReport, count: int) -> str:
    """Return why a run is incomplete; "" if it is complete."""
    if report.mode == Mode.QUICK.value:
        return "from a quick run: one process, that of the tests"
    counts = [len(case.measurement.processes) for case in report.cases if case.measurement is not None]
    if not report.complete and count < max(Plan().rounds, *counts):
        return f"from an interrupted run: {plural(count, 'process', 'processes')}"
    return ""


def refuse_unconfirmed(decision: Proposal) -> Proposal:
    """Refuse a slower time if base and head were equally fast: the line would hide a slowdown of that size."""
    if decision.change is not Change.SLOWER or not _machine_moved(decision.report):
        return decision
    what = f"not one more run: {decision.why}" if decision.why else "the machine moved, not the code"
    why = f"{what}; name the test or case to accept it"
    return Proposal(report=decision.report, change=Change.MOVED, before=decision.before, why=why)


def refuse_unneeded(decision: Proposal, families: Mapping[str, bool]) -> Proposal:
    """Refuse a new line that no limit needs: the next complete run would report it as superfluous."""
    # ``families`` are those with a limit on a mean, and whether one of these is on the slowdown.
    report, before = decision.report, decision.before
    wants_slowdown = families.get(report.key.nodeid.partition("[")[0], not report.verdicts)
    wants_slowdown |= any(v.limit.metric == "slowdown" for v in report.verdicts)
    wants_slowdown |= any(v.limit.metric == SPEEDUP and v.metric is not None for v in report.verdicts)
    if decision.change is not Change.NEW or wants_slowdown:
        return decision
    change = Change.UNASKED if before is None else Change.KEPT
    return Proposal(report=report, change=change, before=before, why="none of its limits needs an accepted time")


def on_one_core(reports: Iterable[CaseReport]) -> bool:
    """Return whether cases were measured pinned to one core, as base and head are on the host."""
    cases = tuple(reports)
    return any(case.arms is not None for case in cases) and any(map(pinned, cases))


def unpinned(decision: Proposal, *, one_core: bool) -> Proposal:
    """Refuse a line measured on one core, unless the earlier line was too: ordinary runs are not comparable with it."""
    report, before = decision.report, decision.before
    if not (one_core and decision.writes and pinned(report)):
        return decision
    assert report.measurement is not None
    was = before.identity if before is not None else None
    if was is not None and was.affinity == report.measurement.identity.affinity:
        return decision
    why = "--perfgate-against pins base and head; no other run could be compared with such a line"
    return Proposal(report=report, change=Change.PINNED, before=before, why=why)


def pinned(report: CaseReport) -> bool:
    return report.measurement is not None and report.measurement.identity.affinity.isdecimal()


def _machine_moved(report: CaseReport) -> bool:
    outcomes = {v.outcome for v in report.verdicts if v.limit.metric == "slowdown"}
    return Outcome.MOVED in outcomes and Outcome.REGRESSED not in outcomes


def mark_slower_successors(decisions: Sequence[Proposal], removed: Sequence[Baseline]) -> tuple[Proposal, ...]:
    """Mark new lines that are slower than a removed line of a similar name; these need a reason."""
    new = {str(d.report.key): d for d in decisions if d.change is Change.NEW}
    slower = {
        str(successor.new.key): successor.removed
        for successor in successors(removed, [d.after for d in new.values() if d.after is not None])
        if successor.slower > _undetected_slowdown(new[str(successor.new.key)].report, successor.removed)
    }
    return tuple(replace(d, predecessor=slower.get(str(d.report.key))) for d in decisions)


def _undetected_slowdown(report: CaseReport, removed: Baseline) -> float:
    """Return the slowdown that is not reported: below the limit, or below what the removed line could detect."""
    return max(requested_slowdown(report), removed.detects, between_runs(removed))


def loosened(then: Baseline, edited: Baseline, measurement: Measurement | None) -> str:
    """Return how the change loosens the line, and what is measured; "" if accepting could have written that."""
    # Accepting writes measured times, and runs of one code are at one level. A time outside of that level was written
    # by hand, or measured with other code or on another machine.
    times = [metric for metric in measurement.metrics.find("time") if not metric.labels] if measurement else []
    if not times or edited.time <= then.time or not 0 < times[0].value < math.inf:
        return ""
    assert measurement is not None
    if edited.identity is not None and edited.identity.differences(measurement.identity):
        return ""
    time = times[0]
    within = edited.time <= time.high or edited.time / time.value - 1 <= noise(edited, time)
    if within or of_level(time.value, edited.time):
        return ""
    was, now, measured = (quantity(each, Dimension.TIME) for each in (then.time, edited.time, time.value))
    return f"{was} -> {now}, measured {measured}"
