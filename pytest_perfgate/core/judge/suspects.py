"""Confirms or clears suspected slowdowns, or leaves them undecided."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from pytest_perfgate.core.changes.marks import cause_of_change
from pytest_perfgate.core.judge.context import (
    REASON,
    JudgeContext,
    JudgedMeasurement,
    Ruling,
    Unpaired,
    clock_of,
    incomparable,
    limited,
    named,
)
from pytest_perfgate.core.judge.rounds import OFTEN
from pytest_perfgate.core.judge.samples import (
    LEAST,
    MOST,
    base_words,
    excused,
    indistinguishable,
    is_host,
    power_facts,
    slow_words,
    time_to_decide,
    with_confirmation,
)
from pytest_perfgate.core.render.words import UNBUILT, detectable, plural, quantity, signed
from pytest_perfgate.core.stats.inference import Prediction, degrees_of_freedom, predict, prior
from pytest_perfgate.model.measurement import DIRTY, Baseline, short_commit
from pytest_perfgate.model.plan import LEAST as LEAST_ROUNDS
from pytest_perfgate.model.plan import Decision, Limit, Mode, Outcome
from pytest_perfgate.model.values import Dimension

if TYPE_CHECKING:
    from pytest_perfgate.model.metric import Metric
    from pytest_perfgate.model.verdict import Paired

SLOWER = "slower than accepted"
AGAINST, ROUNDS, DOCTOR = "--perfgate-against", "--perfgate-rounds=", "perfgate doctor"

OPEN = frozenset({Outcome.SUSPECT, Outcome.UNDECIDED, Outcome.UNSTABLE})  # outcomes that a second build would decide
SAME = "though both builds hold the same code: the machine or the measurement moves, not the code"


class Suspicion(NamedTuple):
    """A slowdown above the threshold that is not confirmed yet."""

    limit: Limit
    metric: Metric
    threshold: float  # the smallest slowdown that counts
    visible: float  # the smallest slowdown that this measurement would have shown


def confirm(suspicion: Suspicion, trial: JudgedMeasurement) -> Ruling:
    """Judge by the change's own line, then by two arms, then by the prediction of a new run."""
    ruling = _accepted_by_change(suspicion, trial)
    if ruling is not None:
        return ruling
    ruling = _by_builds_or_prediction(suspicion, trial)
    return ruling._replace(evidence=(*ruling.evidence, *_reason_out_of_reach(trial)))


def _by_builds_or_prediction(suspicion: Suspicion, trial: JudgedMeasurement) -> Ruling:
    """Judge by two arms, or by the prediction of a new run."""
    if trial.paired is not None:
        return by_arms(suspicion, trial)
    if trial.context.mode is Mode.QUICK:
        return _suspect(suspicion, "measured in one process; a full run decides", (f"{trial.rerun} --perfgate=full",))
    if trial.context.paired_available:
        return _suspect(suspicion, "not confirmed: compare with the accepted commit", ())
    return _by_prediction(suspicion, trial)


def expired(line: Baseline, context: JudgeContext) -> bool:
    """Return whether an acceptance has expired; it is valid on its last day."""
    return bool(line.expires) and line.expires < context.today


def comparable_edit(trial: JudgedMeasurement) -> Baseline | None:
    """Return the line of the change under test, if it has not expired and this measurement is comparable with it."""
    edited, context = trial.context.edited, trial.context
    if edited is None or expired(edited, context) or incomparable(edited, trial.measurement, context):
        return None
    return edited


def run_out(baseline: Baseline) -> str:
    """Return when the acceptance of a line ended, and its reason."""
    why = f': "{baseline.why}"' if baseline.why else ""
    return f"the acceptance expired on {baseline.expires}{why}"


def renewed(suspicion: Suspicion, trial: JudgedMeasurement) -> Ruling | None:
    """Return the ruling on an expired acceptance that the change renews; None if the two do not agree."""
    edited = trial.context.edited
    return _if_agreeing(suspicion, trial, edited, "the earlier acceptance has expired") if edited is not None else None


def _accepted_by_change(suspicion: Suspicion, trial: JudgedMeasurement) -> Ruling | None:
    """Return ACCEPTED if the change edits the line with a reason, the line is valid and the measurement agrees."""
    edited = comparable_edit(trial)
    assert trial.baseline is not None
    if edited is None or edited.time <= trial.baseline.time:
        return None
    if not edited.explains(trial.baseline):
        earlier = f' of its own: "{edited.why}" stood there before' if edited.why.strip() else ""
        text = f"{SLOWER}, and this change edits the baseline without a reason{earlier}"
        return _ruling(suspicion, Outcome.REGRESSED, text, (trial.accepting(REASON),))
    return _if_agreeing(suspicion, trial, edited, SLOWER)


def _reason_out_of_reach(trial: JudgedMeasurement) -> Iterator[tuple[str, str]]:
    """Yield the change's reason for a time that is not comparable with this one."""
    edited = trial.context.edited
    if edited is None or expired(edited, trial.context) or not edited.explains(trial.baseline):
        return
    if reason := incomparable(edited, trial.measurement, trial.context):
        accepts = f'this change accepts {quantity(edited.time, Dimension.TIME)}, "{edited.why}"'
        yield "why", f"{accepts}, which does not explain it: {reason}"


def _if_agreeing(suspicion: Suspicion, trial: JudgedMeasurement, edited: Baseline, sentence: str) -> Ruling | None:
    """Return ACCEPTED if the measurement agrees with the new value, alone or against the old one's commit."""
    assert trial.timing is not None
    accepts = f'{sentence}; this change accepts {quantity(edited.time, Dimension.TIME)}: "{edited.why}"'
    if agrees(trial, edited, suspicion.threshold) or _rounds_agree(suspicion, trial, edited):
        return _ruling(suspicion, Outcome.ACCEPTED, accepts, ())
    if agrees(trial, edited, edited.detects):
        noisy = f"{accepts}, from a run too noisy to detect less than {detectable(edited.detects)}"
        shown = trial.paired is not None and trial.paired.decision is Decision.SLOWER  # two builds say nothing more
        steps = (trial.accepting(REASON),) if shown else tuple(deciding(trial))
        return _ruling(suspicion, Outcome.UNDECIDED, noisy, steps)
    return None


def agrees(trial: JudgedMeasurement, edited: Baseline, play: float) -> bool:
    """Return whether the measured time agrees with a line of the change."""
    assert trial.timing is not None
    return abs(math.log(trial.timing.time / edited.time)) <= math.log1p(play)


def _rounds_agree(suspicion: Suspicion, trial: JudgedMeasurement, edited: Baseline) -> bool:
    """Return whether two arms found the accepted slowdown; a run that is off as a whole affects both arms."""
    paired, before = trial.paired, trial.baseline
    assert before is not None
    if paired is None or paired.interval is None:
        return False
    accepted, play = edited.time / before.time, 1 + suspicion.threshold
    return (1 + paired.interval.low) / play <= accepted <= (1 + paired.interval.high) * play


def by_arms(suspicion: Suspicion, trial: JudgedMeasurement) -> Ruling:
    """Judge by base and head, measured in turns."""
    paired, processes = trial.paired, len(trial.measurement.processes)
    assert paired is not None
    assert trial.baseline is not None
    than = f"than {base_words(paired)}"
    facts = (("base", paired.stands_in),) if paired.stands_in else ()
    moved = (("moved", f"{name} {then} -> {now}") for name, then, now in paired.moved)
    facts = (*facts, *moved, *power_facts(paired))
    slower = paired.decision is Decision.SLOWER and paired.shift >= suspicion.threshold
    if slower and paired.same:
        return _ruling(suspicion, Outcome.MOVED, f"slower {than}, {SAME}", (DOCTOR,), facts)
    if slower:
        how = slow_words(paired) or "slower"
        confirmed = _ruling(suspicion, Outcome.REGRESSED, f"{how} {than}", _examine_or_accept(trial), facts)
        return with_confirmation(confirmed, suspicion.metric, paired, processes)
    if paired.decision is Decision.NOT_SLOWER and paired.shared:
        sentence = f"{SLOWER}, but not slower {than}; {indistinguishable(paired)}: the cause is that, or the machine"
        if suspicion.metric.value <= suspicion.threshold:  # not slower than accepted either
            sentence = f"the accepted time came with this change, and {indistinguishable(paired)}"
        return _ruling(suspicion, Outcome.SUSPECT, sentence, cause_commands(trial), facts)
    if paired.decision is Decision.NOT_SLOWER:
        sentence = f"{SLOWER}, but not slower {than}; what differs: {named(trial.baseline, paired.moved)}"
        if cause := cause_of_change(paired.moved, trial.context.environment_edits, _installed(trial)):
            sentence = f"{sentence}; {cause}, which base and head share"
            ruling = _ruling(suspicion, Outcome.MOVED, sentence, (trial.accepting(REASON),), facts)
            return ruling._replace(policy="moved_by_change")
        explained = paired.moved or trial.baseline.surroundings is None
        return _ruling(suspicion, Outcome.MOVED, sentence, (trial.accepting(REASON) if explained else DOCTOR,), facts)
    all_slower = min(paired.differences, default=0.0) > math.log1p(suspicion.threshold) and not paired.same
    if all_slower and paired.rounds < LEAST_ROUNDS:  # as where the call became so slow that the budget ends
        ruling = _by_prediction(suspicion, trial)
        if ruling.outcome is Outcome.REGRESSED:
            return ruling._replace(sentence=f"{ruling.sentence}; slower {than} too", evidence=facts)
    return with_confirmation(_undecided_ruling(suspicion, trial, facts), suspicion.metric, paired, processes)


def _installed(trial: JudgedMeasurement) -> set[str]:
    """Return the facts of both runs that files of a project decide."""
    sides = [trial.measurement.environment, trial.baseline.surroundings if trial.baseline else None]
    return {"python", *(name for side in sides if side is not None for name, _ in side.packages)}


def _undecided_ruling(suspicion: Suspicion, trial: JudgedMeasurement, facts: tuple[tuple[str, str], ...]) -> Ruling:
    """Return UNSTABLE or UNDECIDED if all rounds leave a case open, with nothing to accept."""
    paired = trial.paired
    assert paired is not None
    if paired.unstable:
        text = f"processes fall into groups, and do not show that more are slow than in {paired.base or 'the base'}"
        return _ruling(suspicion, Outcome.UNSTABLE, text, more_rounds(trial, paired), facts)
    text = f"undecided whether slower than {base_words(paired)}{time_to_decide(paired)}"
    return _ruling(suspicion, Outcome.UNDECIDED, text, more_rounds(trial, paired), facts)


def more_rounds(trial: JudgedMeasurement, paired: Paired) -> tuple[str, ...]:
    """Return the command that runs this test alone, so with the whole budget; more rounds only above the usual."""
    if not paired.base:
        return ()
    command = f"{trial.rerun} {AGAINST} {paired.base}"
    if not (math.isinf(paired.wants_s) or paired.unstable):
        return (f"{command} {ROUNDS}{2 * paired.rounds}" if paired.rounds >= OFTEN else command,)
    # threads that wait for one another scatter most on busy cores
    threaded = any(samples.threaded and is_host(samples) for samples in trial.measurement.processes)
    numba = " NUMBA_NUM_THREADS=1" if "numba" in _installed(trial) else ""  # it does not read the other
    one_thread = f"with OMP_NUM_THREADS=1{numba}, or " if threaded else ""
    return (f"{one_thread}on a quieter machine: {command}",)


def _by_prediction(suspicion: Suspicion, trial: JudgedMeasurement) -> Ruling:
    assert trial.baseline is not None
    reach = max((chance := prediction(trial)).reach, trial.baseline.detects)
    runs = f"{chance.runs} runs" if chance.runs > 1 else "one run"
    explained = f"after {runs} chance explains up to {detectable(reach)}"
    if suspicion.metric.value > reach and suspicion.metric.low > suspicion.threshold:
        in_turns = min(trial.paired.differences, default=0.0) if trial.paired is not None else 0.0
        unexcused = in_turns > math.log1p(reach) + math.log1p(MOST)  # others slow the base in turns as well
        excuse = "" if unexcused else excused(trial.measurement.processes, trial.baseline.time, reach)
        if not excuse:
            sentence = f"{SLOWER}, beyond chance: {explained}"
            return _ruling(suspicion, Outcome.REGRESSED, sentence, _examine_or_accept(trial))
        explained = f"{explained}; {excuse}"
    elif suspicion.metric.value > reach:
        explained = f"{explained}, and this is more. It is not confirmed because of {_own_interval(suspicion, trial)}"
        if _unversioned(trial):
            rounds = f"{ROUNDS}{2 * max(len(trial.measurement.processes), LEAST)}"
            return _suspect(suspicion, explained, (f"{trial.rerun} --perfgate=full {rounds}",))
    return _suspect(suspicion, explained, tuple(deciding(trial)))


def deciding(trial: JudgedMeasurement) -> Iterator[str]:
    """Yield what would decide: two builds if the accepted one can be made, more processes if there were too few."""
    # Accepting is not offered for a slowdown that was not confirmed.
    assert trial.baseline is not None
    accepted = tuple(against_accepted(trial))
    yield from accepted
    if len(trial.measurement.processes) < LEAST:
        yield f"{trial.rerun} --perfgate=full {ROUNDS}{LEAST}"
    elif not accepted and not _unversioned(trial):
        yield f"{trial.rerun} {AGAINST}" if trial.baseline.commit else DOCTOR


def against_accepted(trial: JudgedMeasurement) -> Iterator[str]:
    """Yield the command that measures against what was accepted, if that can be built."""
    unpaired = trial.context.unpaired
    assert trial.baseline is not None
    if unpaired is not None and (unpaired.base_missing or unpaired.unversioned):
        return
    if trial.baseline.commit and not uncommitted(trial.baseline):
        yield f"{trial.rerun} {AGAINST} {trial.baseline.commit if trial.baseline.runs else ''}".rstrip()


def _own_interval(suspicion: Suspicion, trial: JudgedMeasurement) -> str:
    """Return why the run's own interval reaches below the threshold."""
    rests = plural(len(trial.measurement.processes), "process", "processes")
    begins = f"it begins at {signed(suspicion.metric.low)}"
    return f"its own interval of {rests}: {begins}, and only {signed(suspicion.threshold)} or more counts"


def _unversioned(trial: JudgedMeasurement) -> bool:
    return trial.context.unpaired is not None and trial.context.unpaired.unversioned


def unpaired_ruling(ruling: Ruling, unpaired: Unpaired, trial: JudgedMeasurement) -> Ruling:
    """Return a ruling by the stored line, with why two builds did not decide; more processes are no substitute."""
    others = (step for step in ruling.next if ROUNDS not in step)
    steps = (unpaired.step, *others) if unpaired.step else ruling.next
    if unpaired.unversioned:
        if ruling.outcome not in OPEN or trial.context.mode is not Mode.FULL:
            return ruling
        steps = (*ruling.next, _where_versioned(trial))
        if unpaired.step and unpaired.why.startswith("git "):  # where it works, a full run decides
            steps = (unpaired.step, f"{trial.rerun} --perfgate=full")
    return ruling._replace(evidence=(*ruling.evidence, (UNBUILT, unpaired.why)), next=steps)


def _where_versioned(trial: JudgedMeasurement) -> str:
    """Return where two builds could decide, if no revision can be named here."""
    line = trial.baseline
    if line is not None and line.commit and not uncommitted(line):
        return f"in a clone with its history: {trial.rerun} {AGAINST} {line.commit}"
    return f"commit the accepted code (git init, git commit); with the change on top: {trial.rerun} {AGAINST} HEAD"


def uncommitted(baseline: Baseline | None) -> str:
    """Return why the tree of a line cannot be built, because it is in no commit; "" if it is in one."""
    if baseline is None or not baseline.commit.endswith(DIRTY):
        return ""
    commit = short_commit(baseline.commit.removesuffix(DIRTY), 7)
    return f"it was accepted from {commit} with changes that were never committed: that tree cannot be built again"


def prediction(trial: JudgedMeasurement) -> Prediction:
    """Return the prediction for one more run, by the history's scatter or the baseline's."""
    context, baseline = trial.context, trial.baseline
    expected = prior(trial.measurement.device.kind, trial.measurement.identity.clocks)
    assert baseline is not None
    scatter, runs, degrees = baseline.scatter, baseline.runs, None
    if context.scatter is not None and context.runs > 1:
        scatter, runs, degrees = context.scatter, context.runs, degrees_of_freedom(context.runs)
    return predict(expected, scatter=scatter, runs=runs, gates=context.gates, freedom=degrees)


def _examine_or_accept(trial: JudgedMeasurement) -> tuple[str, ...]:
    """Return the next steps: examine what is slower, then accept it."""
    return (*cause_commands(trial), trial.accepting(REASON))


def cause_commands(trial: JudgedMeasurement) -> tuple[str, ...]:
    """Return commands on what may have made it slower: its kernels, or what the change edits."""
    base = trial.paired.base if trial.paired is not None else ""
    return trial.profiles or ((f"git diff --stat {base}",) if base else ())


def _suspect(suspicion: Suspicion, why: str, then: tuple[str, ...]) -> Ruling:
    return _ruling(suspicion, Outcome.SUSPECT, f"{SLOWER}; {why}", then)


def _ruling(
    suspicion: Suspicion,
    outcome: Outcome,
    sentence: str,
    then: tuple[str, ...],
    evidence: tuple[tuple[str, str], ...] = (),
) -> Ruling:
    return Ruling(outcome, sentence, then, evidence, suspicion.metric, suspicion.visible, against=True)


def clock_event(suspicion: Suspicion, trial: JudgedMeasurement) -> Ruling | None:
    """Return INVALID if the cycles of a call stayed within the threshold; None if a clock is unknown."""
    # If two arms can be made, they decide: at one clock for both, with what changed named.
    if trial.paired is None and trial.context.paired_available:
        return None
    if limited(trial.measurement.processes) or (trial.paired is not None and trial.paired.limited is not None):
        return None  # at the power limit the clock follows from what the code draws
    if trial.paired is not None:
        then, now = trial.paired.clocks_hz or (None, None)
        shift, since = trial.paired.shift, f"in {trial.paired.base or 'the base'} at the same time"
    else:
        then = trial.context.then_hz
        now = clock_of(trial.measurement.processes) if then is not None else None
        shift, since = suspicion.metric.value, "when it was accepted"
    if now is None:
        return None
    assert then is not None
    cycles = (1 + shift) * now / then - 1
    if shift < suspicion.threshold or cycles > suspicion.threshold:
        return None
    clock_now, clock_then = quantity(now, Dimension.CLOCK), quantity(then, Dimension.CLOCK)
    text = f"{signed(shift)} in time but {signed(cycles)} in cycles"
    return Ruling(
        outcome=Outcome.INVALID,
        sentence=f"{text}: the clock ran at {clock_now}, and at {clock_then} {since}",
        next=(f"{trial.rerun} --perfgate=full --perfgate-clocks=lock", "perfgate clocks"),
        evidence=(("clock now", clock_now), ("clock then", clock_then)),
        metric=suspicion.metric,
        visible=suspicion.visible,
        rounds=trial.paired.rounds if trial.paired is not None else 0,
        against=trial.paired is None or not trial.paired.revision,
    )


def other_state(suspicion: Suspicion, trial: JudgedMeasurement, *, keeps: bool) -> Ruling | None:
    """Leave it to two builds if only one of run and line was at the power limit, whose clock is 10 to 30 % lower."""
    # No history shows by how much for this code, but a clock explains no time that is more than twice as long. A run at
    # the limit that keeps to its limit nevertheless needs no excuse.
    now, clocks_explain = limited(trial.measurement.processes), suspicion.metric.value <= 1.0
    assert trial.baseline is not None
    if now in (None, trial.baseline.limited) or (now and keeps) or not clocks_explain:
        return None
    states = ("at the device's power limit", "below the device's power limit")
    then, here = states if trial.baseline.limited else states[::-1]
    text = f"accepted {then}, measured {here}"
    if trial.paired is not None and trial.paired.decision is not Decision.NOT_SLOWER:
        return by_arms(suspicion, trial)
    if trial.paired is not None:
        rounds = plural(trial.paired.rounds, "round")
        return _ruling(suspicion, Outcome.PASSED, f"{text}; no slower in {rounds} against {trial.paired.base}", ())
    if trial.context.paired_available:
        return _ruling(suspicion, Outcome.SUSPECT, f"{text}; undecided: compare with the accepted commit", ())
    then_what = tuple(deciding(trial))
    return _ruling(suspicion, Outcome.UNDECIDED, f"{text}: a line of the other state is not compared", then_what)
