"""What others took of the processors while a call was sampled: waiting for one is no work of the call."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from threading import get_native_id
from typing import NamedTuple

from pytest_perfgate.clock import HOST_CLOCK
from pytest_perfgate.model.samples import Samples

_TASKS, _STAT = Path("/proc/self/task"), Path("/proc/stat")
_ACCOUNTED = 0.5
"""Of the time that passed, what the calling thread computed or queued: below it somebody else does the work."""
_FULL = 0.8
"""Of all processors in use, from which on that somebody may have queued unseen."""


class Seen(NamedTuple):
    """Between two looks."""

    queued: float | None
    """Nanoseconds that threads of this process were ready and had no processor."""
    others: float | None
    """Processors that other processes kept busy."""
    own: float | None = None
    """Nanoseconds that the calling thread itself was ready and had no processor."""


class Nobody:
    """A clock that is simulated is shared with nobody."""

    def seen(self) -> Seen:
        return Seen(0.0, 0.0, 0.0)


class _Look(NamedTuple):
    clock: int
    delays: Mapping[str, int]
    """Nanoseconds that each thread has queued so far; none where the system does not tell."""
    busy: float | None
    """Nanoseconds of all processors in use by anybody."""
    mine: int
    thread: int


class Crowd:
    """Looks when it is made and when it is asked."""

    def __init__(self) -> None:
        self._then = _look()

    def seen(self) -> Seen:
        now, then = _look(), self._then
        elapsed = max(1, now.clock - then.clock)
        mine, worked = now.mine - then.mine, now.thread - then.thread
        others = None
        if now.busy is not None and then.busy is not None:
            others = max(0.0, (now.busy - then.busy - mine) / elapsed)
        delays = {thread: delay - then.delays.get(thread, 0) for thread, delay in now.delays.items()}
        own = delays.get(str(get_native_id()))
        queued = _queued(delays, elapsed, worked, worked + (own or 0), (others or 0.0) + mine / elapsed)
        return Seen(queued, others, None if own is None else float(own))


def _queued(delays: Mapping[str, int], elapsed: int, worked: int, accounted: int, used: float) -> float | None:
    """All threads together; of work that others do for the caller nothing is known on a full machine."""
    if not delays:
        return float(elapsed - worked) if worked >= _ACCOUNTED * elapsed else None
    if accounted < _ACCOUNTED * elapsed and used >= _FULL * (os.cpu_count() or 1):
        return None
    return float(sum(delays.values()))


def beside(crowd: Crowd | Nobody, samples: Samples) -> Samples:
    """The samples with what the crowd took; all that was queued counts as queued by them."""
    seen = crowd.seen()
    calls = len(samples.durations) * samples.batch
    unqueued = None
    if seen.queued is not None and calls:
        unqueued = round(max(0.0, sum(samples.durations) * samples.batch - seen.queued) / calls, 1)
    others = None if seen.others is None else round(seen.others, 3)
    blocked = None
    if seen.own is not None and samples.cpu:
        idle = (sum(samples.durations) - sum(samples.cpu)) * samples.batch - seen.own
        blocked = round(max(0.0, idle) / calls, 1)
    return replace(samples, unqueued=unqueued, others=others, blocked=blocked)


def _look() -> _Look:
    return _Look(HOST_CLOCK.wall(), _delays(), _busy(), HOST_CLOCK.process(), HOST_CLOCK.thread())


def _delays() -> dict[str, int]:
    """The second number of each thread's ``schedstat``; a thread may end while it is read."""
    try:
        threads = list(_TASKS.iterdir())
    except OSError:
        return {}
    return {thread.name: delay for thread in threads if (delay := _delay(thread / "schedstat")) is not None}


def _delay(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None


def _busy() -> float | None:
    try:
        with _STAT.open(encoding="ascii", errors="replace") as file:
            return parse_busy(file.readline(), os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, AttributeError):
        return None


def parse_busy(line: str, ticks_a_second: int) -> float | None:
    """Nanoseconds in use of ``cpu  user nice system idle iowait irq softirq steal …``."""
    try:
        user, nice, system, _idle, _wait, irq, softirq, *rest = map(int, line.split()[1:])
    except ValueError:
        return None
    return (user + nice + system + irq + softirq + sum(rest[:1])) * 1e9 / ticks_a_second
