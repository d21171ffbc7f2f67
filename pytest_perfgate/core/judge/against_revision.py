"""Judges the head against a named revision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_perfgate.core.judge.against_limit import interval_keeps
from pytest_perfgate.core.judge.context import JudgeContext, JudgedMeasurement, Ruling, incomparable, tolerance
from pytest_perfgate.core.judge.policy import verdicts_to_decide
from pytest_perfgate.core.judge.rounds import is_look
from pytest_perfgate.core.judge.samples import (
    base_words,
    indistinguishable,
    power_facts,
    shift_metric,
    slow_words,
    time_to_decide,
)
from pytest_perfgate.core.judge.suspects import SAME, Suspicion, agrees, clock_event, expired, more_rounds, run_out
from pytest_perfgate.core.limits.merge import applies_on, limits_for, without_case
from pytest_perfgate.core.render.words import BUILDS, IN_TURNS, OWN_TEST, plural, quantity, signed
from pytest_perfgate.model.metric import Metric, Problem
from pytest_perfgate.model.plan import LEAST, CaseKey, Choice, Decision, Limit, Outcome
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.model.verdict import THEN, Arm, Arms, CaseReport, Paired

if TYPE_CHECKING:
    from pytest_perfgate.model.device import Device
    from pytest_perfgate.model.measurement import Baseline, Measurement, Samples

_CLOSE, _FAR, _CLOCK_NS = 0.02, 4.0, 1e3  # a turn takes short calls in small batches, each with the cost of the clock
"""How far a time may lie outside of the interval, and times in turns above those of the run, without a note."""

BARE = "it loads nothing of the package"


def against_revision(limit: Limit, trial: JudgedMeasurement) -> Ruling:
    """Judge by the rounds: the exact test confirms, the interval clears, otherwise it is undecided."""
    paired, timing = trial.paired, trial.timing
    assert paired is not None
    assert timing is not None
    if paired.without_rounds:
        return Ruling(Outcome.PASSED, f"no slower than {base_words(paired)}", (), _shared(paired), against=True)
    if limit.bound < 0:
        return _demanded_speed_up(limit, trial, shift_metric(paired))
    allowed = tolerance(limit, trial, timing, timing.time / (1 + paired.shift))
    return _by_decision(limit, trial, shift_metric(paired), allowed.threshold)._replace(raised=allowed.raised)


def _demanded_speed_up(limit: Limit, trial: JudgedMeasurement, metric: Metric) -> Ruling:
    """Judge a demanded speed-up by the interval of the pairs, without a significance test."""
    paired = trial.paired
    assert paired is not None
    if paired.edited:
        return _ruling(trial, Outcome.SUSPECT, not_compared(paired), metric, (f"{trial.rerun} --perfgate=full",))
    if paired.rounds < LEAST:
        return _ruling(trial, Outcome.UNDECIDED, _why_undecided(paired), metric, more_rounds(trial, paired))
    keeps = interval_keeps(limit, metric)
    if keeps is None and paired.unstable:
        return _ruling(trial, Outcome.UNSTABLE, _groups_text(paired), metric, more_rounds(trial, paired))
    if keeps is None:
        return _ruling(trial, Outcome.UNDECIDED, _spanning(paired), metric, more_rounds(trial, paired))
    if keeps and paired.same:
        return _ruling(trial, Outcome.MOVED, f"faster in {_rounds_text(paired)}, {SAME}", metric, ("perfgate doctor",))
    text = f"the whole interval of {_rounds_text(paired)} {'keeps' if keeps else 'misses'} the limit"
    then = () if keeps else trial.profiles
    return _ruling(trial, Outcome.PASSED if keeps else Outcome.BROKEN, text, metric, then)


def _by_decision(limit: Limit, trial: JudgedMeasurement, metric: Metric, threshold: float) -> Ruling:
    paired = trial.paired
    assert paired is not None
    source = _rounds_text(paired)
    if paired.edited:
        return _ruling(trial, Outcome.SUSPECT, not_compared(paired), metric, (f"{trial.rerun} --perfgate=full",))
    slower = paired.decision is Decision.SLOWER and paired.shift >= threshold
    if slower and paired.same:
        return _ruling(trial, Outcome.MOVED, f"slower in {source}, {SAME}", metric, ("perfgate doctor",))
    if slower:
        suspicion = Suspicion(limit=limit, metric=metric, threshold=threshold, visible=paired.visible or threshold)
        look = (*trial.profiles, f"git diff --stat {paired.base}")
        how = slow_words(paired) or "slower"
        confirmed = _ruling(trial, Outcome.REGRESSED, f"{how} in {source}", metric, look)
        return clock_event(suspicion, trial) or confirmed
    below = metric.high < threshold and is_look(paired.rounds)
    if below or paired.decision is Decision.NOT_SLOWER:  # an earlier look may have cleared it
        outcome = Outcome.IMPROVED if paired.faster else Outcome.PASSED
        return _ruling(trial, outcome, f"{'faster' if paired.faster else 'no slower'} in {source}", metric, ())
    if paired.unstable:
        return _ruling(trial, Outcome.UNSTABLE, _groups_text(paired), metric, more_rounds(trial, paired))
    text = f"{_why_undecided(paired)}{time_to_decide(paired)}"
    return _ruling(trial, Outcome.UNDECIDED, text, metric, more_rounds(trial, paired))


def _rounds_text(paired: Paired) -> str:
    return f"{plural(paired.rounds, 'round')} against {paired.base}"


def _groups_text(paired: Paired) -> str:
    return f"processes fall into groups in {_rounds_text(paired)}: the machine or the code has two states"


def not_compared(paired: Paired) -> str:
    """Return why two arms do not compare a test that the change edits apart from the package."""
    return f"{BARE}. The change edits {', '.join(paired.edited)}, and both builds use the new version"


def arm_facts(paired: Paired) -> Iterator[tuple[str, str]]:
    """Yield how the arms differ from a package of two revisions under one test tree."""
    if paired.outside and not (paired.edited or paired.own_file):
        same = "base and head are the same, except for programs that it starts"
        outside = "the difference comes from a program that it starts, a file that it reads, or the machine"
        yield BUILDS, f"{BARE}: {outside if paired.decision is Decision.SLOWER else same}"
    yield from _shared(paired) if paired.revision else ()
    if paired.own_file:
        yield BUILDS, f"the base {paired.own_file}"
    if paired.own_test:
        yield (
            OWN_TEST,
            "the base ran another version of it or of what it uses: more work now counts as a slowdown, less hides one",
        )
    yield from paired.tunings


def _shared(paired: Paired) -> tuple[tuple[str, str], ...]:
    return ((BUILDS, indistinguishable(paired)),) if paired.shared else ()


TUNING = "tuning "  # begins a process's note on a tuned kernel; the name of the kernel follows


def tuning_facts(sides: Mapping[str, Sequence[Samples]]) -> tuple[tuple[str, str], ...]:
    """Return kernels that were tuned differently between processes or builds, so that the code may be equal."""
    if not any(process.notes for processes in sides.values() for process in processes):
        return ()
    choices: dict[str, Counter[tuple[str, str]]] = {}
    for side, processes in sides.items():
        for process in processes:
            for name, choice in process.notes:
                if name.startswith(TUNING):
                    choices.setdefault(name[len(TUNING) :], Counter())[side, choice] += 1
    unlike = {kernel: counts for kernel, counts in choices.items() if len({choice for _, choice in counts}) > 1}
    return tuple((TUNING.strip(), f"{kernel} ran as {_shares(counts)}") for kernel, counts in sorted(unlike.items()))


def _shares(counts: Counter[tuple[str, str]]) -> str:
    """Return ``"num_warps: 4" in 3 processes of the base, "num_warps: 8" in 4 of the head``."""
    words = [
        f"({choice}) in {plural(count, 'process', 'processes')}{f' of the {side}' if side else ''}"
        for (side, choice), count in sorted(counts.items())
    ]
    return ", ".join(words)


def _facts(paired: Paired, seen_ns: float) -> Iterator[tuple[str, str]]:
    if paired.base_ns:
        yield THEN, f"{quantity(paired.base_ns, Dimension.TIME)}  {paired.base}, the base"
        yield from _differing_times(paired, seen_ns / paired.base_ns - 1)
    yield from (*arm_facts(paired), *(() if paired.revision else _shared(paired)))
    yield from (*power_facts(paired), *far_in_turns(paired, seen_ns))
    yield from (("moved", f"{name} {then} -> {now}") for name, then, now in paired.moved)


def far_in_turns(paired: Paired, seen_ns: float) -> Iterator[tuple[str, str]]:
    """Yield that both builds took several times as long as the run: they may lack what made it fast."""
    took, run = min(1.0, 1 + paired.shift) * paired.base_ns, quantity(seen_ns, Dimension.TIME)
    if not paired.same and took > _FAR * (seen_ns + _CLOCK_NS):
        yield IN_TURNS, f"{quantity(took, Dimension.TIME)} in both builds, {run} in this run"


def _differing_times(paired: Paired, change: float) -> Iterator[tuple[str, str]]:
    """Yield why the two shown times differ by more, or less, than the verdict states."""
    bounds = paired.interval
    if bounds is not None and not bounds.low - _CLOSE <= change <= bounds.high + _CLOSE:
        yield (
            "busy",
            f"{signed(change)} from then to now; both include other programs. The verdict comes from the turns",
        )


def _why_undecided(paired: Paired) -> str:
    if paired.rounds < LEAST:
        return f"the budget ended after {paired.rounds} of at least {LEAST} rounds against {paired.base}"
    return _spanning(paired)


def _spanning(paired: Paired) -> str:
    return f"the interval of {_rounds_text(paired)} spans the limit"


def _ruling(trial: JudgedMeasurement, outcome: Outcome, sentence: str, metric: Metric, then: tuple[str, ...]) -> Ruling:
    paired, timing = trial.paired, trial.timing
    assert paired is not None
    assert timing is not None
    return Ruling(outcome, sentence, then, tuple(_facts(paired, timing.time)), metric, paired.visible, paired.rounds)


def why_not_comparable(trial: JudgedMeasurement) -> str:
    """Return why the line or the base is not comparable; "" if it is, or if there is no line."""
    if trial.paired is not None and trial.paired.revision:
        return not_compared(trial.paired) if trial.paired.edited else ""
    return trial.incomparable if trial.baseline is not None else ""


def why_line_not_comparable(line: Baseline | None, measurement: Measurement, context: JudgeContext) -> str:
    """Return why a line cannot be compared with this measurement, or has expired; "" if it can be compared."""
    reason = incomparable(line, measurement, context)
    return reason or (run_out(line) if line is not None and expired(line, context) else "")


def renewed_line(trial: JudgedMeasurement) -> Baseline | None:
    """Return the edited baseline line, if it has a reason and is comparable with the old line and this run."""
    edited, before = trial.context.edited, trial.baseline
    if edited is None or expired(edited, trial.context) or not edited.explains(before):
        return None
    incomparable_now = any(incomparable(line, trial.measurement, trial.context) for line in (before, edited))
    return None if incomparable_now else edited


def accepted_line(trial: JudgedMeasurement) -> Baseline | None:
    """Return the same if the edited line replaces an earlier one that has expired or is faster."""
    line, before = renewed_line(trial), trial.baseline
    if line is None or before is None or (trial.paired is not None and trial.paired.revision):
        return None
    return line if expired(before, trial.context) or line.time > before.time else None


def arms_of(paired: Paired | None, *, revision: bool) -> Arms | None:
    """Return the rounds of base and head, against a revision that the user named or else beside an accepted time."""
    # Beside an accepted time, rounds count only where both builds differ in all that the change edits.
    if paired is None or paired.revision is not revision:
        return None
    if not revision and (paired.shared or paired.edited or paired.problems):
        return None
    return Arms(base=paired.base, same=paired.same, differences=paired.differences + paired.further)


def or_accepted(ruling: Ruling, trial: JudgedMeasurement, threshold: float) -> Ruling:
    """Return ACCEPTED for a slowdown if the change brings the case's first line, with a reason, and the run agrees."""
    line = trial.baseline
    if line is None or line.local or (line.runs and not trial.context.new_line):
        return ruling
    if ruling.outcome is not Outcome.REGRESSED:
        return ruling
    why = "" if line.explains(None) else "the line of this change has no reason in a commit"
    if not why and not agrees(trial, line, max(threshold, line.detects)):
        why = f"the line of this change has another time, {quantity(line.time, Dimension.TIME)}"
    if why:
        return ruling._replace(sentence=f"{ruling.sentence}, and {why}")
    accepts = f'{ruling.sentence}; this change accepts {quantity(line.time, Dimension.TIME)}: "{line.why}"'
    return ruling._replace(outcome=Outcome.ACCEPTED, sentence=accepts, next=())


UNASKED = 0.03  # the slowdown for a call that no limit applies to


def arm_limit(limits: Iterable[Limit], key: CaseKey, device: Device) -> float:
    """Return the slowdown of a call that counts, from all limits of its test."""
    meant = (limit for limit in limits_for(limits, key) if applies_on(limit, device))
    return min((limit.bound for limit in meant if _allows(limit)), default=UNASKED)


def limit_to_decide(report: CaseReport) -> float:
    """Return the slowdown that counts for a case that two builds decide, from its open verdicts."""
    return min((v.limit.bound for v in verdicts_to_decide(report, ci=True) if _allows(v.limit)), default=UNASKED)


def _allows(limit: Limit) -> bool:
    """Return whether a limit allows a slowdown; one that demands an improvement is judged in another way."""
    return limit.metric == "slowdown" and limit.bound >= 0 and not without_case(limit)


NEW = "new here: nothing to compare with"


def new_test_verdicts(context: JudgeContext, why: str = NEW) -> JudgeContext:
    """Return the context of a new test: it has no base to compare with, and needs no acceptance first."""
    policy = replace(context.policy, missing=Choice.WARN)
    return replace(context, policy=policy, unbaselined=why)


def foreign_modules(arm: Arm, loaded: Sequence[tuple[str, str]], *, own: bool = False) -> Problem | None:
    """Return the problem of an arm that loaded foreign files, or none of its own, as its ``own`` test file may do."""
    root = arm.root.rstrip("/") + "/"
    foreign = [file for file, _ in loaded if not file.startswith(root)]
    if foreign:
        evidence = (("arm", arm.name), ("belongs below", arm.root), *(("loaded", file) for file in foreign[:5]))
        more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        what = f"the {arm.name} build loaded files of the package under test from elsewhere: {foreign[0]}{more}"
        return Problem(code="arm-foreign-module", what=what, evidence=evidence, retry=False)
    built = dict(arm.sources)
    written = [file for file, digest in loaded if built.get(file, digest) != digest]
    if not written and (loaded or own or not arm.modules):
        return None
    wrong = f"a file that was changed after the build: {written[0]}" if written else ""
    wrong = wrong or f"no module of the package under test ({', '.join(arm.modules)})"
    what = f"the {arm.name} build loaded {wrong}"
    return Problem(code="arm-foreign-module", what=what, evidence=(("arm", arm.name),), retry=False)


def same_code(base: Sequence[tuple[str, str]], other: Sequence[tuple[str, str]]) -> bool:
    """Return whether both arms loaded the same contents, so that any difference is the machine's."""
    return bool(base) and sorted(digest for _, digest in base) == sorted(digest for _, digest in other)
