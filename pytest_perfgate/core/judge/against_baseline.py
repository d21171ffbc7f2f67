"""Judges a time against the accepted one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from pytest_perfgate.core.judge.against_limit import against_limit, holds, speed_up, undecided
from pytest_perfgate.core.judge.against_revision import against_revision, far_in_turns, or_accepted, renewed_line
from pytest_perfgate.core.judge.context import (
    REASON,
    JudgeContext,
    JudgedMeasurement,
    Ruling,
    Tolerance,
    incomparable,
    moves,
    tolerance,
)
from pytest_perfgate.core.judge.rounds import is_look
from pytest_perfgate.core.judge.samples import base_words, busy_processors, excused, shift_metric, with_confirmation
from pytest_perfgate.core.judge.suspects import (
    AGAINST,
    ROUNDS,
    SLOWER,
    Suspicion,
    against_accepted,
    agrees,
    by_arms,
    clock_event,
    comparable_edit,
    confirm,
    deciding,
    expired,
    other_state,
    prediction,
    renewed,
    run_out,
    uncommitted,
)
from pytest_perfgate.core.render.words import NO_LINE, by_floor, detectable, plural, quantity
from pytest_perfgate.model.plan import Decision, Limit, Mode, Operator, Outcome
from pytest_perfgate.model.values import Dimension

if TYPE_CHECKING:
    from pytest_perfgate.model.measurement import Baseline, Measurement
    from pytest_perfgate.model.metric import Metric

SUSPICIOUS = 9.0  # a suspiciously large speed-up: ten times
_LEAST_RUNS = 2  # the least runs of an accepted time that can clear a case
_FAR = 1.25  # of the logarithm that chance explains: no clean suite of the recordings is beyond it
MISSES = 0.05  # the error rate of an accepted time in clearing code that is slower by exactly its limit

_MAY_BE_OFF = "the accepted time may be off by as much"

DOUBTFUL = "ten times faster: is the work still done?"


def against_baseline(limit: Limit, trial: JudgedMeasurement) -> Ruling:
    """Screen against the accepted time; a suspect goes on to confirmation."""
    ruling = _against_line(limit, trial)
    if trial.context.replaced is None:
        return ruling
    assert trial.baseline is not None
    return remeasured(ruling, trial.baseline, trial.measurement, trial.context)


def _against_line(limit: Limit, trial: JudgedMeasurement) -> Ruling:
    reason = trial.incomparable
    if trial.baseline is None or not trial.baseline.time:
        reason = reason or "no time is accepted for this case"
        undemanded = trial.paired is None or (trial.paired.without_rounds and limit.bound < 0)
        return _unbaselined(trial, reason) if undemanded else _without_line(limit, trial)
    if reason and renewed_line(trial) is None:
        unexplained = "; this change's line has no new reason" if comparable_edit(trial) is not None else ""
        return _unbaselined(trial, f"{reason}{unexplained}", REASON)
    assert trial.timing is not None
    metric = trial.metrics.find("slowdown")[0]
    allowed = tolerance(limit, trial, trial.timing, trial.baseline.time, trial.baseline.detects)
    if expired(trial.baseline, trial.context):
        visible = max(allowed.threshold, trial.timing.visible)
        suspicion = Suspicion(limit=limit, metric=metric, threshold=allowed.threshold, visible=visible)
        return renewed(suspicion, trial) or _unbaselined(trial, run_out(trial.baseline), REASON)
    if limit.bound < 0:
        return _demanded_speed_up(limit, trial, metric, allowed)
    ruling, since = _screen(limit, trial, metric, allowed), _changed_versions(trial, trial.baseline)
    if not since and allowed.raised is None:  # usual: copying would take as long as comparing
        return ruling
    return ruling._replace(evidence=(*ruling.evidence, *since), raised=allowed.raised)


def _without_line(limit: Limit, trial: JudgedMeasurement) -> Ruling:
    """Judge by base and head without an accepted time, and note that the line is missing."""
    ruling = against_revision(limit, trial)
    note = (NO_LINE, f"base and head decided; {trial.accepting()} adds one")
    return ruling._replace(evidence=(*ruling.evidence, note))


def _demanded_speed_up(limit: Limit, trial: JudgedMeasurement, metric: Metric, allowed: Tolerance) -> Ruling:
    """Judge a demanded speed-up, which must exceed the uncertainty of the accepted time."""
    assert trial.timing is not None
    ruling = against_limit(limit, trial)._replace(against=True)
    if ruling.outcome is not Outcome.PASSED or holds(limit, (1 + metric.high) * (1 + allowed.detects) - 1):
        return ruling
    text, visible = f"{_too_noisy(allowed)}: {_MAY_BE_OFF}", max(trial.timing.visible, allowed.detects)
    steps = tuple(against_accepted(trial))
    return ruling._replace(outcome=Outcome.UNDECIDED, sentence=text, next=steps, visible=visible)


def _changed_versions(trial: JudgedMeasurement, baseline: Baseline) -> tuple[tuple[str, str], ...]:
    """Return the versions that have changed since the time was accepted."""
    if trial.context.facts == "off":
        return ()
    differences = moves(baseline, trial.measurement.device)
    return tuple(("since accepted", f"{name} {then} -> {now}") for name, then, now in differences)


def _unbaselined(trial: JudgedMeasurement, reason: str, then: str = "") -> Ruling:
    """Return the ruling without an accepted time, with the commands that accept one; a first local one needs none."""
    local = trial.context.policy.records and trial.baseline is None and not trial.context.unbaselined
    text = "; this measurement is stored under .perfgate/ and judges the next local run" if local else ""
    timing = trial.timing if trial.paired is None else None
    visible = max(timing.visible, busy_processors(trial.measurement.processes)) if timing else None  # as the line says
    return Ruling(
        outcome=Outcome.UNBASELINED,
        sentence=f"{reason}{text}",
        next=() if local else (trial.accepting(then),),
        visible=visible,
        against=trial.baseline is not None,
    )


def _screen(limit: Limit, trial: JudgedMeasurement, metric: Metric, allowed: Tolerance) -> Ruling:
    timing, threshold = trial.timing, allowed.threshold
    assert timing is not None
    visible = max(threshold, timing.visible, allowed.detects)
    suspicion = Suspicion(limit=limit, metric=metric, threshold=threshold, visible=visible)
    keeps = metric.high < allowed.bound if limit.operator is Operator.LESS else metric.high <= allowed.bound
    if other_power := other_state(suspicion, trial, keeps=keeps):
        return other_power
    if trial.paired is not None:
        return _by_builds(limit, trial, metric, allowed)
    if keeps:
        return _kept_ruling(metric, allowed, visible, trial)
    if metric.value > threshold:
        clocked = clock_event(suspicion, trial)
        return clocked or _unless_grouped(confirm(suspicion, trial), limit, metric, trial, visible)
    return _spanning(metric, trial, allowed, visible)


def _by_builds(limit: Limit, trial: JudgedMeasurement, metric: Metric, allowed: Tolerance) -> Ruling:
    """Judge by two builds in turns, whatever the accepted time; a change may accept a slower time with a reason."""
    from pytest_perfgate.model.verdict import EQUAL_TIMES

    paired, threshold = trial.paired, allowed.threshold
    assert paired is not None
    suspicion = Suspicion(limit=limit, metric=metric, threshold=threshold, visible=paired.visible or threshold)
    below = paired.interval is not None and paired.interval.high < threshold
    clear = paired.decision is Decision.NOT_SLOWER or (below and is_look(paired.rounds))
    if not clear:
        reads_slower = paired.decision is Decision.SLOWER or metric.value > threshold
        ruling = confirm(suspicion, trial) if reads_slower else by_arms(suspicion, trial)
        return clock_event(suspicion, trial) or or_accepted(ruling, trial, threshold)
    untested = paired.shared == (EQUAL_TIMES,) and _came_with_change(trial)
    if untested or _slower_since(trial, metric, threshold):
        return confirm(suspicion, trial)
    if metric.value > threshold and (unexplained := _unexplained_time(suspicion, trial)) is not None:
        return unexplained
    ruling = Ruling(Outcome.PASSED, f"no slower than {base_words(paired)}", visible=paired.visible, against=True)
    if paired.faster and not _accepted_speed_up(trial, allowed):
        text = f"faster than {base_words(paired)}"
        if speed_up(shift_metric(paired)) >= SUSPICIOUS:
            text += f"; {DOUBTFUL}"
        step = trial.accepting(REASON if metric.value > 0 else " --improved")  # accept calls it slower than its line
        ruling = ruling._replace(outcome=Outcome.IMPROVED, sentence=text, next=(step,))
    facts = (("base", paired.stands_in),) if paired.stands_in else ()
    facts = (*facts, *far_in_turns(paired, trial.timing.time if trial.timing else math.inf))
    if _beyond_chance(metric, trial):
        facts = (*facts, ("passing", f"base {quantity(paired.base_ns, Dimension.TIME)} in turns: the cause is gone"))
    return with_confirmation(ruling._replace(evidence=facts), metric, paired, len(trial.measurement.processes))


def _slower_since(trial: JudgedMeasurement, metric: Metric, threshold: float) -> bool:
    """Return whether a case that two builds cleared is slower than accepted, beyond noise or with a known cause."""
    # A change to what is installed, or to how its job runs, is the cause unless neighbours explain the slowdown.
    paired, line = trial.paired, trial.baseline
    assert paired is not None
    assert line is not None
    if metric.low <= threshold:
        return False
    reach = prediction(trial).reach
    by_change = trial.context.environment_edits and not excused(trial.measurement.processes, line.time, reach)
    beyond = metric.value > max(reach, line.detects) and bool(_scatters(trial) or by_change)
    return bool(paired.moved or paired.shared) or beyond


def _beyond_chance(metric: Metric, trial: JudgedMeasurement) -> bool:
    """Return whether neither chance, nor a busy machine, nor the noise of the accepted run explains a time."""
    paired, timing, line, reach = trial.paired, trial.timing, trial.baseline, prediction(trial).log_reach
    assert paired is not None
    assert timing is not None
    assert line is not None
    # an interval down to 0 and a process within chance show nothing, unless the change edits what both builds share
    fastest = (1 + metric.value) * min(timing.medians) / timing.time
    shared = trial.context.environment_edits or paired.shared
    shows = bool(metric.low > 0 or math.log(fastest) > reach or shared)
    return shows and math.log1p(max(metric.value, 0.0)) > max(_FAR * reach, math.log1p(min(line.detects, 1.0)))


def _unexplained_time(suspicion: Suspicion, trial: JudgedMeasurement) -> Ruling | None:
    """Return the ruling on a time of cleared code that chance does not explain, however few processes; else None."""
    # The base was built from the accepted code, so its own time in the turns shows whether the machine moved.
    paired, line, reach = trial.paired, trial.baseline, prediction(trial).reach
    assert paired is not None
    assert line is not None
    if not _beyond_chance(suspicion.metric, trial):
        return None
    then = paired.base_ns / line.time - 1
    if paired.base_ns and then <= reach:
        return None  # the base ran as fast as accepted: what slowed the first processes is over
    ruling = confirm(suspicion, trial)
    if ruling.outcome is not Outcome.MOVED or paired.same or then > max(reach, line.detects):
        excuse = excused(trial.measurement.processes, line.time, reach)
        return ruling._replace(policy="") if excuse else ruling
    accepted = f"the accepted run may be {detectable(line.detects)} off"
    off = accepted if paired.base_ns else "no time of the base is known"
    text = f"{SLOWER}, but not slower than {base_words(paired)}; {off}: it is open whether the machine moved"
    steps = (f"{trial.rerun} --perfgate=full {ROUNDS}6", trial.accepting(REASON))
    return ruling._replace(outcome=Outcome.UNDECIDED, sentence=text, next=steps, policy="")


def _scatters(trial: JudgedMeasurement) -> bool:
    """Return whether the scatter between runs is known, which takes at least two of them."""
    assert trial.baseline is not None
    return max(trial.baseline.runs, trial.context.runs) >= _LEAST_RUNS


def clears(trial: JudgedMeasurement, metric: Metric, allowed: Tolerance) -> bool:
    """Return whether the accepted time can detect its limit between runs, and this time is below it."""
    # The scatter between runs is the error of an accepted time; processes of one run agree with each other.
    if _came_with_change(trial) or not _scatters(trial):
        return False
    between = prediction(trial).log_within(MISSES)
    return max(math.expm1(between), allowed.detects) <= allowed.threshold and (
        math.log1p(max(metric.value, -0.99)) + between < math.log1p(allowed.threshold)
    )


def _came_with_change(trial: JudgedMeasurement) -> bool:
    """Return whether the change brought its line, which then clears nothing, or nothing that two builds can decide."""
    line, context = trial.baseline, trial.context
    return line is not None and not line.local and (not line.runs or (context.new_line and context.paired_available))


def _kept_ruling(metric: Metric, allowed: Tolerance, visible: float, trial: JudgedMeasurement) -> Ruling:
    amount, threshold = speed_up(metric), allowed.threshold
    faster = amount > max(threshold, allowed.detects)
    if faster:
        if note := _accepted_speed_up(trial, allowed):
            return _passed(note, metric, visible)
        if _shown_faster(metric, trial):
            sentence = "faster than accepted" if amount < SUSPICIOUS else DOUBTFUL
            then = (trial.accepting(" --improved"),)
            return _passed(sentence, metric, visible)._replace(outcome=Outcome.IMPROVED, next=then)
    elif allowed.detects > threshold:
        return _of_a_noisy_run(metric, allowed, visible, trial)
    if _asks_more(trial) and not clears(trial, metric, allowed):
        return _undetected(metric, trial, visible)
    if faster:
        warning = "" if amount < SUSPICIOUS else f"; {DOUBTFUL}"
        return _passed(f"faster than accepted, but not confirmed{warning}", metric, visible)
    return _passed(f"the upper bound of the slowdown keeps {by_floor('the limit', allowed.raised)}", metric, visible)


def _passed(sentence: str, metric: Metric, visible: float) -> Ruling:
    return Ruling(outcome=Outcome.PASSED, sentence=sentence, metric=metric, visible=visible, against=True)


def _shown_faster(metric: Metric, trial: JudgedMeasurement) -> bool:
    """Return whether the whole interval is faster than accepted code can be; one process is not enough."""
    if trial.context.mode is Mode.QUICK:
        return False
    return math.log1p(max(metric.high, -0.999)) < -prediction(trial).log_reach


def _undetected(metric: Metric, trial: JudgedMeasurement, visible: float) -> Ruling:
    """Return the ruling that an accepted time is too noisy for its limit, with what decides instead."""
    between = math.expm1(prediction(trial).log_within(MISSES))
    assert trial.baseline is not None
    count = plural(max(trial.baseline.runs, trial.context.runs), "run")
    decides = "two builds decide" if trial.context.paired_available else "it clears nothing by itself"
    rests = f"rests on {count}, and the next run may be {detectable(between)} off"
    what = "came with this change" if _came_with_change(trial) else rests
    again = (trial.accepting(REASON),) if uncommitted(trial.baseline) else ()  # from a commit, which can be built
    return Ruling(
        outcome=Outcome.UNDECIDED,
        sentence=f"the accepted time {what}: {decides}",
        next=tuple(against_accepted(trial)) or again,
        metric=metric,
        visible=max(visible, between),
        against=True,
    )


def _asks_more(trial: JudgedMeasurement) -> bool:
    """Return whether an accepted time clears only what it can detect: in CI, or if two builds can decide."""
    context = trial.context
    decidable = context.mode is Mode.FULL and context.paired_available
    return context.replaced is None and (decidable or context.policy.ci)


def _accepted_speed_up(trial: JudgedMeasurement, allowed: Tolerance) -> str:
    """Return a note if the change accepts its own speed-up and the measurement agrees, so nothing is left to accept."""
    edited = _agreeing(trial, allowed)
    assert trial.baseline is not None
    if edited is None or edited.time >= trial.baseline.time:
        return ""
    return f"faster, and this change accepts {quantity(edited.time, Dimension.TIME)}"


def _agreeing(trial: JudgedMeasurement, allowed: Tolerance) -> Baseline | None:
    """Return the line of the change if it is valid and the measurement agrees with it."""
    edited = comparable_edit(trial)
    agreeing = edited is not None and agrees(trial, edited, max(allowed.threshold, edited.detects))
    return edited if agreeing else None


def _of_a_noisy_run(metric: Metric, allowed: Tolerance, visible: float, trial: JudgedMeasurement) -> Ruling:
    """Return UNDECIDED for a time within its limit if the accepted time is too noisy to detect the limit."""
    better = _agreeing(trial, allowed)
    if better is not None and better.detects < allowed.detects:
        now, steps = quantity(better.time, Dimension.TIME), tuple[str, ...]()
        then = f"this change accepts {now} from a run that detects more; it judges the next change"
    else:
        then, steps = _MAY_BE_OFF, _better_accepted(trial)
    text = f"{_too_noisy(allowed)}: {then}"
    return Ruling(outcome=Outcome.UNDECIDED, sentence=text, next=steps, metric=metric, visible=visible, against=True)


def _better_accepted(trial: JudgedMeasurement) -> tuple[str, ...]:
    """Return what decides where the accepted run is too noisy: two builds, not more rounds of this one."""
    steps = tuple(deciding(trial))
    if trial.context.mode is Mode.QUICK and any(AGAINST in step for step in steps):
        return (f"{trial.rerun} --perfgate=full",)
    return tuple(step for step in steps if ROUNDS not in step) or (*steps, trial.accepting(REASON))


def _too_noisy(allowed: Tolerance) -> str:
    return f"the accepted run was too noisy to detect less than {detectable(allowed.detects)}"


def _unless_grouped(ruling: Ruling, limit: Limit, metric: Metric, trial: JudgedMeasurement, visible: float) -> Ruling:
    """Return UNSTABLE if processes form groups and some are not slower: only two builds decide."""
    grouped = trial.in_groups and metric.low <= limit.bound and ruling.outcome is Outcome.SUSPECT
    return _with_visible(undecided(metric, trial, limit.bound), visible) if grouped else ruling


def _spanning(metric: Metric, trial: JudgedMeasurement, allowed: Tolerance, visible: float) -> Ruling:
    ruling = undecided(metric, trial, allowed.threshold)
    if allowed.detects > allowed.threshold:  # the accepted time itself is too vague
        ruling = ruling._replace(next=_better_accepted(trial))
    if allowed.resolution > allowed.bound:
        tick = f"the timer's resolution is {detectable(allowed.resolution)} of this time, which is more than the limit"
        ruling = ruling._replace(sentence=f"{ruling.sentence}; {tick}")
    return _with_visible(ruling, visible)


def _with_visible(ruling: Ruling, visible: float) -> Ruling:
    text = f"{ruling.sentence}; the smallest slowdown it can detect is {detectable(visible)}"
    return ruling._replace(sentence=text, visible=visible, against=True)


class JudgingLines(NamedTuple):
    """The lines that a measurement is compared with."""

    baseline: Baseline | None
    edited: Baseline | None = None
    replaced: Baseline | None = None
    """The merge base's line, if it is not comparable and the change accepts another with a reason."""


def judging_lines(
    measurement: Measurement, then: Baseline | None, edited: Baseline | None, context: JudgeContext
) -> JudgingLines:
    """Return the lines that judge: the change's own only if the merge base's is not comparable, and with a reason."""
    if not incomparable(then, measurement, context) or incomparable(edited, measurement, context):
        return JudgingLines(then, edited)
    assert edited is not None
    return JudgingLines(edited, None, then) if edited.explains(then) else JudgingLines(then, edited)


def remeasured(ruling: Ruling, baseline: Baseline, measurement: Measurement, context: JudgeContext) -> Ruling:
    """Judge a time that is not comparable with earlier ones: within the new line it is ACCEPTED, not PASSED."""
    assert context.replaced is not None
    was, now = (quantity(line.time, Dimension.TIME) for line in (context.replaced, baseline))
    reason = incomparable(context.replaced, measurement, context)
    text = f'{reason}; {was} was accepted before, this change accepts {now}: "{baseline.why}"'
    if ruling.outcome is Outcome.PASSED:
        return ruling._replace(outcome=Outcome.ACCEPTED, sentence=text)
    return ruling._replace(evidence=(*ruling.evidence, ("accepted", text)))
