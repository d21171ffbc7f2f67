"""Holding the head against a revision that the user named: two arms, no stored baseline."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_perfgate.core.gate.against_limit import kept
from pytest_perfgate.core.gate.context import Trial
from pytest_perfgate.core.gate.conviction import SAME, Suspicion, not_told_apart, slow_processes, wanting
from pytest_perfgate.core.gate.cycles import clock_event
from pytest_perfgate.core.gate.rounds import LEAST
from pytest_perfgate.core.gate.ruling import Ruling
from pytest_perfgate.core.gate.shift import power_facts, shift_metric
from pytest_perfgate.core.gate.tolerance import tolerance
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.core.render.quantity import quantity, signed
from pytest_perfgate.model.limit import Limit, Outcome
from pytest_perfgate.model.metric import Metric
from pytest_perfgate.model.paired import Decision, Paired
from pytest_perfgate.model.quantity import Dimension
from pytest_perfgate.model.verdict import THEN

_CLOSE = 0.02
"""So far outside of its interval nobody sees that two times do not agree with the verdict."""
BARE = "it loads nothing of the package"


def against_revision(limit: Limit, trial: Trial) -> Ruling:
    """The exact test convicts, the interval acquits, and what is left says what it could have seen."""
    paired, seen = trial.paired, trial.seen
    assert paired is not None
    assert seen is not None
    if limit.bound < 0:
        return _demanded(limit, trial, shift_metric(paired))
    allowed = tolerance(limit, trial, seen, seen.time / (1 + paired.shift))
    return _decided(limit, trial, shift_metric(paired), allowed.counts)._replace(raised=allowed.raised)


def _demanded(limit: Limit, trial: Trial, metric: Metric) -> Ruling:
    """A speed-up that must be there: the interval of the pairs decides, and nobody is convicted for want of one."""
    paired = trial.paired
    assert paired is not None
    if paired.edited:
        return _ruling(trial, Outcome.SUSPECT, not_compared(paired), metric, (f"{trial.rerun} --perfgate=full",))
    if paired.rounds < LEAST:
        return _ruling(trial, Outcome.UNDECIDED, _open(paired), metric, (_more(trial, paired),))
    keeps = kept(limit, metric)
    if keeps is None and paired.unstable:
        return _ruling(trial, Outcome.UNSTABLE, _grouped(paired), metric, ())
    if keeps is None:
        return _ruling(trial, Outcome.UNDECIDED, _spanning(paired), metric, (_more(trial, paired),))
    if keeps and paired.same:
        return _ruling(trial, Outcome.MOVED, f"faster in {_beside(paired)}, {SAME}", metric, ("perfgate doctor",))
    said = f"the whole interval of {_beside(paired)} {'keeps' if keeps else 'misses'} the limit"
    then = () if keeps else trial.profiles
    return _ruling(trial, Outcome.PASSED if keeps else Outcome.BROKEN, said, metric, then)


def _decided(limit: Limit, trial: Trial, metric: Metric, counts: float) -> Ruling:
    paired = trial.paired
    assert paired is not None
    said = _beside(paired)
    if paired.edited:
        return _ruling(trial, Outcome.SUSPECT, not_compared(paired), metric, (f"{trial.rerun} --perfgate=full",))
    slower = paired.decision is Decision.SLOWER and paired.shift >= counts
    if slower and paired.same:
        return _ruling(trial, Outcome.MOVED, f"slower in {said}, {SAME}", metric, ("perfgate doctor",))
    if slower:
        suspicion = Suspicion(limit=limit, metric=metric, counts=counts, visible=paired.visible or counts)
        look = (*trial.profiles, f"git diff --stat {paired.base}")
        how = slow_processes(paired) or "slower"
        convicted = _ruling(trial, Outcome.REGRESSED, f"{how} in {said}", metric, look)
        return clock_event(suspicion, trial) or convicted
    if metric.high < counts and paired.rounds >= LEAST:
        outcome = Outcome.IMPROVED if paired.faster else Outcome.PASSED
        return _ruling(trial, outcome, f"{'faster' if paired.faster else 'no slower'} in {said}", metric, ())
    if paired.unstable:
        return _ruling(trial, Outcome.UNSTABLE, _grouped(paired), metric, ())
    return _ruling(trial, Outcome.UNDECIDED, f"{_open(paired)}{wanting(paired)}", metric, (_more(trial, paired),))


def _beside(paired: Paired) -> str:
    return f"{plural(paired.rounds, 'round')} beside {paired.base}"


def _grouped(paired: Paired) -> str:
    return f"processes stand in groups over {_beside(paired)}: the machine or the code is in two states"


def _more(trial: Trial, paired: Paired) -> str:
    """The command that plays twice as many rounds."""
    return f"{trial.rerun} --perfgate-against {paired.base} --perfgate-rounds={2 * max(paired.rounds, LEAST)}"


def not_compared(paired: Paired) -> str:
    """Why two arms say nothing of a test that the change edits beside the package."""
    files = ", ".join(paired.edited)
    return f"{BARE}, and the change under test edits {files}: both arms take that from the head, so it is not compared"


def arm_facts(paired: Paired) -> Iterator[tuple[str, str]]:
    """How the arms differ from a package of two revisions under one test tree."""
    if paired.bare and not paired.edited:
        apart = "what differs is a file that it reads, or the machine"
        yield "arms", f"{BARE}: {apart if paired.decision is Decision.SLOWER else 'both arms are the same'}"
    if paired.shared and paired.revision:
        yield "arms", not_told_apart(paired)
    if paired.own_file:
        yield "arms", f"the base arm {paired.own_file}, and ran the file of {paired.base}"
    if paired.own_test:
        yield "arms", "the test says something else there: where it has more to do now, that is in the slowdown"


def _facts(paired: Paired, seen_ns: float) -> Iterator[tuple[str, str]]:
    if paired.base_ns:
        yield THEN, f"{quantity(paired.base_ns, Dimension.TIME)}  {paired.base}, beside it"
        yield from _stretched(paired, seen_ns / paired.base_ns - 1)
    yield from arm_facts(paired)
    yield from power_facts(paired)
    for name, then, now in paired.moved:
        yield "moved", f"{name} {then} -> {now}"


def _stretched(paired: Paired, apart: float) -> Iterator[tuple[str, str]]:
    """Why the two times that are shown are further apart than the verdict says, or less far."""
    bounds = paired.interval
    if bounds is not None and not bounds.low - _CLOSE <= apart <= bounds.high + _CLOSE:
        yield "busy", f"{signed(apart)} from then to now: other work is in both; the verdict is of turns side by side"


def _open(paired: Paired) -> str:
    """Why it is undecided."""
    if paired.rounds < LEAST:
        return f"the budget ended after {paired.rounds} of at least {LEAST} rounds beside {paired.base}"
    return _spanning(paired)


def _spanning(paired: Paired) -> str:
    return f"the interval of {_beside(paired)} spans the limit"


def _ruling(trial: Trial, outcome: Outcome, sentence: str, metric: Metric, then: tuple[str, ...]) -> Ruling:
    paired, seen = trial.paired, trial.seen
    assert paired is not None
    assert seen is not None
    return Ruling(
        outcome=outcome,
        sentence=sentence,
        next=then,
        metric=metric,
        visible=paired.visible,
        rounds=paired.rounds,
        evidence=tuple(_facts(paired, seen.time)),
    )
