"""One number for a process: the time that is the code's, not its neighbours'."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_perfgate.core.gate.rounds import Pairs
from pytest_perfgate.core.stats.interval import median
from pytest_perfgate.model.children import Capture
from pytest_perfgate.model.samples import Samples

BOUND = 1.02
"""Wall over CPU time of the least stretched samples, up to which a call is nothing but computing."""


def pair_of(rounds: Sequence[tuple[Capture, Capture]]) -> Pairs:
    """Base and head of every round as one number each, by the same clock on both sides."""
    sides = [[capture.samples[-1] for capture in side] for side in zip(*rounds)]
    busy = all(computes(samples) for side in sides for samples in side)
    times = [[process_time(samples, busy=busy) for samples in side] for side in sides]
    spreads = sorted(spread(samples, busy=busy) for side in sides for samples in side)
    return Pairs(base=tuple(times[0]), head=tuple(times[1]), spread=median(spreads))


def computes(samples: Samples) -> bool:
    """Whether the call is one thread that computes: its best samples lose no time to waiting."""
    if len(samples.cpu) != len(samples.durations):
        return False
    stretch = sorted(wall / busy for wall, busy in zip(samples.durations, samples.cpu) if busy > 0)
    return bool(stretch) and stretch[len(stretch) // 10] <= BOUND


def process_time(samples: Samples, *, busy: bool) -> float:
    """The lower quartile: what disturbs a process only ever makes it slower."""
    ordered = sorted(samples.cpu if busy else samples.durations)
    return ordered[(len(ordered) - 1) // 4]


def spread(samples: Samples, *, busy: bool) -> float:
    """The interquartile range within the process, as a fraction of its median."""
    ordered = sorted(samples.cpu if busy else samples.durations)
    last = len(ordered) - 1
    return (ordered[(3 * last + 3) // 4] - ordered[last // 4]) / median(ordered)
