"""A call made slower by a known part: how a calibration knows what the gate should see."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from pytest_perfgate.clock import HOST_CLOCK

VARIABLE = "PERFGATE_SLOWER"
_OWED_NS = 20_000.0
"""The shortest wait: reading the clock takes hundreds of nanoseconds, and a wait cannot be finer than that."""

Call = Callable[[], Any]


def asked_for() -> float | None:
    """By which part calls of this process are to take longer; ``None`` leaves them alone."""
    text = os.environ.get(VARIABLE, "")
    return float(text) if text else None


def slowed(call: Call, by: float) -> Call:
    """The call, and behind it a busy wait in proportion to what it took; short calls save up for theirs.

    Both are CPU time of this thread: by the wall clock, neighbours on the core would multiply what is injected.
    The side that is not slowed is wrapped too, by 0, so that reading the clock costs both the same.
    """
    clock, owed = HOST_CLOCK.thread, 0.0

    def longer() -> Any:
        nonlocal owed
        begun = clock()
        result = call()
        now = clock()
        owed += (now - begun) * by
        if owed >= _OWED_NS:
            until = now + owed
            while (now := clock()) < until:
                pass
            owed = until - now
        return result

    return longer
