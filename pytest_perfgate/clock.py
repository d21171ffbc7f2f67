"""The host's clocks as they were before any conftest ran: one that a test freezes or a package rebinds is not read."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple


class HostClock(NamedTuple):
    """Readings, in nanoseconds but for the date.

    In a tuple, for what freezes time looks for them among the names of every module.
    """

    wall: Callable[[], int]
    process: Callable[[], int]
    """Time that all threads of this process computed."""
    thread: Callable[[], int]
    """Time that the calling thread computed."""
    date: Callable[[], float]
    """Seconds since 1970: what expires, and what is old, is told by it."""


HOST_CLOCK = HostClock(time.perf_counter_ns, time.process_time_ns, time.thread_time_ns, time.time)


def seconds() -> float:
    """Seconds since some moment, for what lasts: budgets, patience, the cost of a round."""
    return HOST_CLOCK.wall() / 1e9
