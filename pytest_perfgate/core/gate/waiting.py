"""Slower in time but not in processor time: the calls waited for others, and did what they did before."""

from __future__ import annotations

from pytest_perfgate.core.gate.context import Trial
from pytest_perfgate.core.gate.witness import is_host, least_stretch
from pytest_perfgate.core.stats.interval import median

MOSTLY = 2.0
"""Wall over processor time of the least stretched sample, up to which a call computes more than it waits by itself."""


def busy_shift(trial: Trial) -> float | None:
    """The slowdown of a call's processor time; ``None`` where nobody looked, or where the call waits by nature.

    The accepted time is no less than the processor time behind it was, so the shift is at most a little too small.
    """
    processes, baseline = trial.measurement.processes, trial.baseline
    if baseline is None or not processes or not all(is_host(one) and one.durations for one in processes):
        return None
    if median(sorted(least_stretch(one) for one in processes)) > MOSTLY:
        return None
    return median(sorted(median(sorted(one.cpu)) for one in processes)) / baseline.time - 1
