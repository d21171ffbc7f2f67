"""Slower in time but not in cycles: the clock fell, and the code did what it did before."""

from __future__ import annotations

from pytest_perfgate.core.gate.clocks import clock_of, limited
from pytest_perfgate.core.gate.context import REASON, Trial
from pytest_perfgate.core.gate.conviction import Suspicion, beside_accepted, by_arms
from pytest_perfgate.core.gate.ruling import Ruling
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.core.render.quantity import quantity, signed
from pytest_perfgate.model.limit import Outcome
from pytest_perfgate.model.paired import Decision
from pytest_perfgate.model.quantity import Dimension


def clock_event(suspicion: Suspicion, trial: Trial) -> Ruling | None:
    """INVALID where the cycles of a call stayed within what counts; nothing where a clock is not known.

    Where two arms can be made, they decide: at one clock for both, and what moved is named.
    """
    if trial.paired is None and trial.context.paired_available:
        return None
    if limited(trial.measurement.processes) or (trial.paired is not None and trial.paired.limited is not None):
        return None  # at the power limit the clock follows from what the code draws
    if trial.paired is not None:
        then, now = trial.paired.clocks_hz or (None, None)
        shift, since = trial.paired.shift, f"in {trial.paired.base or 'the base'} beside it"
    else:
        then = trial.context.then_hz
        now = clock_of(trial.measurement.processes) if then is not None else None
        shift, since = suspicion.metric.value, "when it was accepted"
    if now is None or then is None:
        return None
    cycles = (1 + shift) * now / then - 1
    if shift < suspicion.counts or cycles > suspicion.counts:
        return None
    clocks = tuple((name, quantity(hz, Dimension.CLOCK)) for name, hz in (("clock now", now), ("clock then", then)))
    said = f"{signed(shift)} in time but {signed(cycles)} in cycles"
    return Ruling(
        outcome=Outcome.INVALID,
        sentence=f"{said}: the clock ran at {clocks[0][1]}, and at {clocks[1][1]} {since}",
        next=(f"{trial.rerun} --perfgate=full --perfgate-clocks=lock", "perfgate clocks"),
        evidence=clocks,
        metric=suspicion.metric,
        visible=suspicion.visible,
        rounds=trial.paired.rounds if trial.paired is not None else 0,
        against=trial.paired is None or not trial.paired.revision,
    )


def other_state(suspicion: Suspicion, trial: Trial) -> Ruling | None:
    """A sitting at the power limit and a line that was not, or the other way round: two builds decide, nothing else.

    The clocks of the two states are 10 to 30 % apart, and no history says by how much for this code.
    """
    now = limited(trial.measurement.processes)
    if trial.baseline is None or now is None or now == trial.baseline.limited:
        return None
    states = ("at the device's power limit", "below the device's power limit")
    then, here = states if trial.baseline.limited else states[::-1]
    said = f"accepted {then}, measured {here}"
    if trial.paired is not None and trial.paired.decision is not Decision.NOT_SLOWER:
        return by_arms(suspicion, trial)
    if trial.paired is not None:
        beside = plural(trial.paired.rounds, "round")
        return _of_states(suspicion, Outcome.PASSED, f"{said}; no slower in {beside} beside {trial.paired.base}", ())
    if trial.context.paired_available:
        return _of_states(suspicion, Outcome.SUSPECT, f"{said}; to be decided beside the accepted commit", ())
    then_what = tuple(beside_accepted(trial)) or (trial.accepting(REASON),)
    return _of_states(suspicion, Outcome.UNDECIDED, f"{said}: nothing is held against such a line", then_what)


def _of_states(suspicion: Suspicion, outcome: Outcome, sentence: str, then: tuple[str, ...]) -> Ruling:
    return Ruling(
        outcome=outcome, sentence=sentence, next=then, metric=suspicion.metric, visible=suspicion.visible, against=True
    )
