"""Slower in time but not in cycles: the clock fell, and the code did what it did before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_perfgate.core.gate.context import Trial
from pytest_perfgate.core.gate.conviction import Suspicion
from pytest_perfgate.core.gate.ruling import Ruling
from pytest_perfgate.core.render.quantity import quantity, signed
from pytest_perfgate.core.stats.interval import median
from pytest_perfgate.model.baseline import DIRTY, Baseline, Sitting
from pytest_perfgate.model.children import Capture
from pytest_perfgate.model.limit import Outcome
from pytest_perfgate.model.quantity import Dimension
from pytest_perfgate.model.samples import Samples


def clock_of(processes: Iterable[Samples]) -> float | None:
    """The clock that a sitting ran at: the median over its processes; unknown where one of them did not see it."""
    clocks = [median(sorted(one.clock_hz)) if one.clock_hz else 0.0 for one in processes]
    return median(sorted(clocks)) if clocks and min(clocks) > 0 else None


def accepted_clock(baseline: Baseline | None, sittings: Sequence[Sitting]) -> float | None:
    """The clock at which a line was measured: that of the newest sitting of its commit that knows one."""
    if baseline is None or not baseline.commit:
        return None
    same = (s for s in reversed(sittings) if s.commit and _one_commit(s.commit, baseline.commit))
    return next((s.clock_hz for s in same if s.clock_hz and s.clock_hz > 0), None)


def _one_commit(one: str, other: str) -> bool:
    """Hashes of different lengths name one commit when the shorter begins the longer; changes are changes to both."""
    first, second = one.removesuffix(DIRTY), other.removesuffix(DIRTY)
    alike = one.endswith(DIRTY) == other.endswith(DIRTY)
    return alike and (first.startswith(second) or second.startswith(first))


def paired_clocks(rounds: Iterable[tuple[Capture, Capture]]) -> tuple[float, float] | None:
    """The clocks of base and head over the rounds of two arms; nothing where one of them is not known."""
    sides = list(zip(*rounds))
    base, head = (clock_of(s for capture in side for s in capture.samples) for side in sides) if sides else (None, None)
    return (base, head) if base is not None and head is not None else None


def clock_event(suspicion: Suspicion, trial: Trial) -> Ruling | None:
    """INVALID where the cycles of a call stayed within what counts; nothing where a clock is not known."""
    if trial.paired is not None:
        then, now = trial.paired.clocks_hz or (None, None)
        shift, since = trial.paired.shift, f"in {trial.paired.base or 'the base'} beside it"
    else:
        then, now = trial.context.then_hz, clock_of(trial.measurement.processes)
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
        next=(f"pytest {trial.name} --perfgate=full --perfgate-clocks=lock", "perfgate clocks"),
        evidence=clocks,
        metric=suspicion.metric,
        visible=suspicion.visible,
        rounds=trial.paired.rounds if trial.paired is not None else 0,
        against=trial.paired is None or not trial.paired.revision,
    )
