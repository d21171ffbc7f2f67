"""What moved around a case since its time was accepted: packages, driver, clocks, machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_perfgate.core.render.quantity import quantity
from pytest_perfgate.core.stats.interval import median
from pytest_perfgate.model.baseline import Baseline, Sitting
from pytest_perfgate.model.measurement import Environment, Measurement
from pytest_perfgate.model.quantity import Dimension

APART = 0.02
"""Clocks nearer than this are the same."""
UNKNOWN = "not known: the line was accepted without its environment"

Facts = tuple[tuple[str, str, str], ...]
"""(name, then, now)"""


def surroundings(measurement: Measurement) -> Environment:
    """What is kept beside an accepted time: what outlives the run, the device's own facts among it."""
    around = measurement.environment.lasting
    known = dict(around.facts)
    device = ((f"device {name}", text) for name, text in measurement.device.facts if text and name not in known)
    return replace(around, facts=(*around.facts, *device))


def moved(baseline: Baseline | None, measurement: Measurement, sittings: Sequence[Sitting] = ()) -> Facts:
    """Everything that differs between the accepted sitting and this one."""
    if baseline is None:
        return ()
    then = baseline.surroundings
    facts = then.differences(surroundings(measurement)) if then is not None else ()
    return (*_clocks(baseline, measurement, sittings), *facts)


def named(baseline: Baseline | None, facts: Facts) -> str:
    """The facts in one line; that nothing is known is not that nothing differs."""
    if facts:
        return ", ".join(f"{name} {then} -> {now}" for name, then, now in facts)
    known = baseline is not None and baseline.surroundings is not None
    return "nothing that perfgate records" if known else UNKNOWN


def clock_of(measurement: Measurement) -> float | None:
    """The middle of the clocks that were seen while it was measured."""
    seen = sorted(hz for process in measurement.processes for hz in process.clock_hz)
    return median(seen) if seen else None


def _clocks(baseline: Baseline, measurement: Measurement, sittings: Sequence[Sitting]) -> Facts:
    now = clock_of(measurement)
    then = sorted(
        s.clock_hz for s in sittings if s.clock_hz and baseline.commit and s.commit.startswith(baseline.commit)
    )
    if now is None or not then or abs(now / median(then) - 1) <= APART:
        return ()
    return (("clock", quantity(median(then), Dimension.CLOCK), quantity(now, Dimension.CLOCK)),)
