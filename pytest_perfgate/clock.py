"""The host's clocks as they were before any conftest ran, so that a test that freezes time does not affect them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple


class HostClock(NamedTuple):
    """Readings of the clocks, in nanoseconds except for the date.

    They are in a tuple, because libraries that freeze time replace such functions in the names of every module.
    """

    wall: Callable[[], int]
    process: Callable[[], int]
    """The CPU time of all threads of this process."""
    thread: Callable[[], int]
    """The CPU time of the calling thread."""
    date: Callable[[], float]
    """Seconds since 1970, to decide what has expired."""


HOST_CLOCK = HostClock(time.perf_counter_ns, time.process_time_ns, time.thread_time_ns, time.time)


def seconds() -> float:
    """Return seconds since an arbitrary moment, for durations: budgets, timeouts, the cost of a round."""
    return HOST_CLOCK.wall() / 1e9
