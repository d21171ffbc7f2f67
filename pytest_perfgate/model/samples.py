"""Samples: what a timer saw, in the order it saw it, never trimmed."""

from __future__ import annotations

import enum

from pytest_perfgate.model.problem import Problem
from pytest_perfgate.model.values import value

IDLE = "from idle to idle"
"""The note of samples by the host's clock that wait for a device: calls are put together only where asked for."""


class Stop(str, enum.Enum):
    """Why a timer stopped sampling; a spent budget is never a pass by itself."""

    SETTLED = "noise settled"
    PRECISE = "spread small enough"
    BUDGET = "budget spent"
    COUNT = "asked-for count reached"
    RECORDED = "measured elsewhere"
    SINGLE = "called once"


@value
class Discard:
    """Samples thrown away because an instrument said so."""

    reason: str
    count: int


@value
class Settled:
    """One turn that was long enough for clock and power to settle under this side's load alone."""

    time: float
    """The middle of its samples, nanoseconds per call."""
    watts: float | None = None
    clock_hz: float | None = None


@value
class Samples:
    """One process: nanoseconds per call, in order, and how they came about."""

    durations: tuple[float, ...]
    timer: str
    stop: Stop
    batch: int = 1
    """Calls behind each sample; a sample is their mean."""
    overhead: float = 0.0
    """Nanoseconds an empty measurement takes, whatever its batch; subtracted only for absolute figures."""
    resolution: float = 0.0
    """Nanoseconds that a measurement can tell apart, whatever its batch."""
    warmups: int = 0
    warmup_ns: float = 0.0
    """What warming up took; a device is warm when its clock, its power and the time of a call hold still."""
    launch_gap: float | None = None
    """Host-visible minus device-busy nanoseconds per call."""
    cycles: tuple[float, ...] = ()
    clock_hz: tuple[float, ...] = ()
    watts: float | None = None
    """What the device drew while samples were taken, the middle of the looks; ``None`` where it does not tell."""
    capped: float | None = None
    """The share of the sampling in which the power limit held the clock down; ``None`` where nobody looked."""
    discarded: tuple[Discard, ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    """What the timer wants said: ``("timer", "events: kernel is 212 us")``."""
    cpu: tuple[float, ...] = ()
    """CPU nanoseconds per call of the calling thread, beside each sample; empty where nobody looked."""
    span: tuple[float, ...] = ()
    """First start to last end of a call's kernels, where the instrument sees both that and the busy time."""
    turns: tuple[int, ...] = ()
    """How many samples each turn gave, where two processes took turns."""
    settled: Settled | None = None
    """A longer turn beside them, where the device was at its power limit."""
    unqueued: float | None = None
    """Mean nanoseconds per call, less those in which its threads waited for a processor; ``None``: nobody can tell."""
    others: float | None = None
    """Processors that other processes kept busy meanwhile; ``None`` where the system does not tell."""
    blocked: float | None = None
    """Mean nanoseconds per call in which the calling thread neither computed nor queued; ``None``: nobody can tell."""
