"""From samples to one number a process, and from processes to one time with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from pytest_perfgate.core.stats.interval import Logs, logs_of, median, of_processes, of_samples
from pytest_perfgate.core.stats.student import t_quantile
from pytest_perfgate.model.quantity import Interval
from pytest_perfgate.model.samples import Samples, Stop

ALARM, POWER = 0.99, 0.84162
"""A slowdown is surely seen when it passes the 99 % point with a power of 80 %."""
ALONE = 1.25
"""How far a single sample is trusted: a quarter either way, so that it decides only what is plain."""


class Summary(NamedTuple):
    """The time of one sitting."""

    time: float
    """The median of the process medians, in nanoseconds."""
    interval: Interval
    medians: tuple[float, ...]
    scatter: float
    """Relative deviation between processes; within the one process where there is one."""
    spread: float
    """The median interquartile range within a process, in nanoseconds."""
    samples: int
    """The fewest samples that a process has."""
    batch: int
    overhead: float
    """Nanoseconds of an empty measurement per call."""
    resolution: float
    """What the timer can tell apart, per call."""
    visible: float
    """The smallest slowdown that this sitting could surely have told from its own noise."""


def summary(processes: Sequence[Samples], ordered: Sequence[Sequence[float]] = ()) -> Summary:
    """Sum up one sitting; the caller has made sure that every sample is a positive number.

    Who has sorted them already hands them over ``ordered``.
    """
    ordered = ordered or [sorted(process.durations) for process in processes]
    medians = tuple([median(samples) for samples in ordered])
    time, logs = median(sorted(medians)), logs_of(medians)
    interval = of_processes(logs, time) if logs.size > 1 else _of_one(processes[0], ordered[0])
    resolution = max([process.resolution / process.batch for process in processes])
    return Summary(
        time=time,
        interval=_no_finer(interval, time, resolution),
        medians=medians,
        scatter=logs.deviation,
        spread=median(sorted([_quartiles(samples) for samples in ordered])),
        samples=min(map(len, ordered)),
        batch=min([process.batch for process in processes]),
        overhead=max([process.overhead / process.batch for process in processes]),
        resolution=resolution,
        visible=_visible(interval, logs) + resolution / time,
    )


def _of_one(process: Samples, ordered: Sequence[float]) -> Interval:
    """The interval of one process; timed once it may be off by anything, a figure from elsewhere stands."""
    if len(ordered) > 1 or process.stop is Stop.RECORDED:
        return of_samples(ordered)
    return Interval(low=ordered[0] / ALONE, high=ordered[0] * ALONE, confidence=0.0)


def _visible(interval: Interval, logs: Logs) -> float:
    """Of one process its own interval; of several, what their scatter leaves to see."""
    if logs.size < 2:
        return interval.high / interval.low - 1
    return math.expm1((t_quantile(ALARM, logs.size - 1) + POWER) * logs.deviation / math.sqrt(logs.size))


def _quartiles(ordered: Sequence[float]) -> float:
    """The interquartile range of sorted samples."""
    last = len(ordered) - 1
    return ordered[(3 * last + 3) // 4] - ordered[last // 4]


def _no_finer(interval: Interval, time: float, resolution: float) -> Interval:
    """No median is known better than half a tick of the timer."""
    half = resolution / 2
    if not half:
        return interval
    low, high = min(interval.low, max(time - half, time / 2)), max(interval.high, time + half)
    return Interval(low=low, high=high, confidence=interval.confidence)
