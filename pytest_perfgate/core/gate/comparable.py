"""Whether a measurement may be compared with a line at all."""

from __future__ import annotations

import math

from pytest_perfgate.core.gate.context import JudgeContext
from pytest_perfgate.core.gate.facts import accepted_facts, facts_of, moves
from pytest_perfgate.model.baseline import Baseline
from pytest_perfgate.model.measurement import Measurement


def incomparable(baseline: Baseline | None, measurement: Measurement, context: JudgeContext) -> str:
    """Why the baseline may not be compared with this measurement; empty when it may."""
    if baseline is None:
        return context.unbaselined or "there is no baseline for this device"
    if not (baseline.time > 0 and math.isfinite(baseline.time)):
        return f"the accepted time reads {baseline.time} ns"
    if baseline.device != measurement.device.key:
        return f"the baseline is of {baseline.device}, this is {measurement.device.key}: not compared"
    return measured_differently(baseline, measurement) or _surroundings(baseline, measurement, context.facts)


def measured_differently(baseline: Baseline, measurement: Measurement) -> str:
    """What differs between how a line was measured and how this was."""
    if baseline.identity is None or baseline.identity == measurement.identity:
        return ""
    apart = measurement.identity.differences(baseline.identity)
    said = ", ".join(f"{name} was {then or 'empty'} and is {now or 'empty'}" for name, now, then in apart)
    return f"measured differently, not compared: {said}" if said else ""


def _surroundings(baseline: Baseline, measurement: Measurement, level: str) -> str:
    if level in {"off", "shown"}:
        return ""
    found = moves(accepted_facts(baseline), facts_of(measurement.device), level)
    said = ", ".join(f"{name} was {then} and is {now}" for name, then, now in found)
    return f"measured with other versions, not compared: {said}" if said else ""
