"""What moved around a case since its time was accepted: packages, driver, clocks, machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_perfgate.core.gate.clocks import accepted_clock, clock_of
from pytest_perfgate.core.render.quantity import quantity
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


def _clocks(baseline: Baseline, measurement: Measurement, sittings: Sequence[Sitting]) -> Facts:
    now, then = clock_of(measurement.processes), accepted_clock(baseline, sittings)
    if now is None or then is None or abs(now / then - 1) <= APART:
        return ()
    return (("clock", quantity(then, Dimension.CLOCK), quantity(now, Dimension.CLOCK)),)
