"""Who arrives when at a collective, where the clocks of the ranks agree enough to say so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_perfgate.core.analysis.trace.instances import Instance

AGREE = 0.95
"""The part of the collectives that must overlap on all ranks for their clocks to count as one."""


def one_clock(instances: Sequence[Instance]) -> bool:
    """Whether collectives run on all their ranks at once: nobody ends before the last one starts."""
    if not instances:
        return False
    meet = sum(
        max(part.start for part in one.parts) <= min(part.start + part.length for part in one.parts)
        for one in instances
    )
    return meet >= AGREE * len(instances)


def arrival_waits(instances: Sequence[Instance]) -> Mapping[int, int]:
    """Nanoseconds from each rank's start to the latest start, summed: its wait as one clock shows it."""
    total: dict[int, int] = defaultdict(int)
    for instance in instances:
        latest = max(part.start for part in instance.parts)
        for part in instance.parts:
            total[part.rank] += latest - part.start
    return dict(total)


def start_skew(instance: Instance) -> int:
    """The latest start minus the earliest."""
    starts = [part.start for part in instance.parts]
    return max(starts) - min(starts)
