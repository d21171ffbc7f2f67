"""One number for a process: the time that is the code's, not its neighbours'."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_perfgate.core.gate.rounds import Pairs
from pytest_perfgate.core.stats.interval import median
from pytest_perfgate.model.children import Capture
from pytest_perfgate.model.samples import Samples

BOUND = 1.02
"""Wall over CPU time of the least stretched sample, up to which a call is nothing but computing."""


def pair_of(rounds: Sequence[tuple[Capture, Capture]]) -> Pairs:
    """Base and head of every round as one number each, by the same clock on both sides."""
    sides = [[capture.samples[-1] for capture in side] for side in zip(*rounds)]
    busy = all(computes(side) for side in sides)
    times = [[time_of(samples, busy=busy) for samples in side] for side in sides]
    spreads = sorted(spread(samples, busy=busy) for side in sides for samples in side)
    return Pairs(base=tuple(times[0]), head=tuple(times[1]), spread=median(spreads))


def computes(side: Sequence[Samples]) -> bool:
    """Whether the call is one thread that computes: in most processes some sample loses no time to waiting."""
    return median(sorted(_least_stretch(samples) for samples in side)) <= BOUND


def _least_stretch(samples: Samples) -> float:
    if len(samples.cpu) != len(samples.durations):
        return math.inf
    return min((wall / busy for wall, busy in zip(samples.durations, samples.cpu) if busy > 0), default=math.inf)


def time_of(samples: Samples, *, busy: bool) -> float:
    """The lowest tenth of CPU times, or the smallest wall time: what disturbs a process only makes it slower.

    A device's own times know no neighbours: of them, the median. Recorded data chose each (docs/verdicts.md).
    """
    if samples.timer not in {"host", "region"}:
        return median(sorted(samples.durations))
    ordered = sorted(samples.cpu if busy else samples.durations)
    return ordered[(len(ordered) - 1) // 10] if busy else ordered[0]


def spread(samples: Samples, *, busy: bool) -> float:
    """The interquartile range within the process, as a fraction of its median."""
    ordered = sorted(samples.cpu if busy else samples.durations)
    last = len(ordered) - 1
    return (ordered[(3 * last + 3) // 4] - ordered[last // 4]) / median(ordered)
