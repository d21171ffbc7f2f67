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

_SLEEP = time.sleep


def seconds() -> float:
    """Return seconds since an arbitrary moment, for durations: budgets, timeouts, the cost of a round."""
    return HOST_CLOCK.wall() / 1e9


_LOOK_NS, _SPIN_NS = 5_000_000, 300_000_000
"""How long other threads are watched, and the longest wait for them."""


def wait_for_threads() -> None:
    """Wait until other threads rest: those of a BLAS or of OpenMP go on spinning after a call, for up to 0.2 s."""
    begun = now = HOST_CLOCK.wall()
    worked, used = _LOOK_NS, _work_of_others()
    while 10 * worked >= _LOOK_NS and now - begun < _SPIN_NS:
        _SLEEP(_LOOK_NS / 1e9)
        now, before = HOST_CLOCK.wall(), used
        used = _work_of_others()
        worked = used - before


def _work_of_others() -> int:
    """Return the CPU nanoseconds of all threads but this one so far."""
    return HOST_CLOCK.process() - HOST_CLOCK.thread()
