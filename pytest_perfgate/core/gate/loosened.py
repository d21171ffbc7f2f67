"""A line that a change loosens beyond what is measured: the next change would be judged by it."""

from __future__ import annotations

import math

from pytest_perfgate.core.gate.acceptance import noise
from pytest_perfgate.core.gate.levels import of_level
from pytest_perfgate.core.render.quantity import quantity
from pytest_perfgate.model.baseline import Baseline
from pytest_perfgate.model.measurement import Measurement
from pytest_perfgate.model.quantity import Dimension


def loosened(then: Baseline, edited: Baseline, measurement: Measurement | None) -> str:
    """What the change makes of the line, and what is measured; empty where accepting could have written that.

    Accepting writes what was measured, and sittings of one code lie on one level: what lies off it came by hand, or
    from code or a machine that this is not.
    """
    found = [metric for metric in measurement.metrics.find("time") if not metric.labels] if measurement else []
    if measurement is None or not found or edited.time <= then.time or not 0 < found[0].value < math.inf:
        return ""
    if edited.identity is not None and edited.identity.differences(measurement.identity):
        return ""
    time = found[0]
    if (
        of_level(time.value, edited.time)
        or edited.time <= time.high
        or edited.time / time.value - 1 <= noise(edited, time)
    ):
        return ""
    was, now, seen = (quantity(each, Dimension.TIME) for each in (then.time, edited.time, time.value))
    return f"{was} -> {now}, measured {seen}"
