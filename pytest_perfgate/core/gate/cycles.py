"""Slower in time but not in cycles: the clock fell, and the code did what it did before."""

from __future__ import annotations

from pytest_perfgate.core.gate.clocks import clock_of
from pytest_perfgate.core.gate.context import Trial
from pytest_perfgate.core.gate.conviction import Suspicion
from pytest_perfgate.core.gate.ruling import Ruling
from pytest_perfgate.core.render.quantity import quantity, signed
from pytest_perfgate.model.limit import Outcome
from pytest_perfgate.model.quantity import Dimension


def clock_event(suspicion: Suspicion, trial: Trial) -> Ruling | None:
    """INVALID where the cycles of a call stayed within what counts; nothing where a clock is not known.

    Where two arms can be made, they decide: at one clock for both, and what moved is named.
    """
    if trial.paired is None and trial.context.paired_available:
        return None
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
