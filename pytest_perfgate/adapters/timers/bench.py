"""One call on a queue, ready to be timed, without garbage collection, and the CPU load meanwhile."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import isfinite
from pathlib import Path
from statistics import median
from threading import get_native_id
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pytest_perfgate.clock import HOST_CLOCK
from pytest_perfgate.model.device import Availability, SupportsAdopt, SupportsWait
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import SAMPLING, Samples, Sampling, Stop
from pytest_perfgate.model.plan import Cache, Plan
from pytest_perfgate.model.values import array_value

if TYPE_CHECKING:
    from pytest_perfgate.model.ports import Call, QueueRuntime, Runtime, StoppingRule

Clock = Callable[[], float]

_WARM_BATCH = 5

SETTLE_NS = 3e9
"""The longest warm-up in which a device's clock and power settle."""

_LOAD_NS, _MOST_LOAD = 5e6, 500
"""Calls in a row while a device settles: single ones would leave it idle in between."""

COLD = Cache.COLD
"""Looked up once, since looking up a member of the enumeration takes as long as a timed call."""


class WarmUp(Protocol):
    """Decides when a call is warm, by a rule of core."""

    def __call__(self, medians: Sequence[float], calls: int, spent_ns: float, plan: Plan) -> bool: ...


class WarmUpResult(NamedTuple):
    """The result of warming up."""

    calls: int = 0
    spent_ns: float = 0.0
    settled: bool = True

    @property
    def notes(self) -> tuple[tuple[str, str], ...]:
        """Return a note if the device had not settled before sampling."""
        text = f"clock and power had not settled after {self.spent_ns / 1e9:.3g} s"
        return () if self.settled else (("warm-up", text),)


@array_value
class Rules:
    """The pure rules that a timer uses, and the host's clock."""

    stop: StoppingRule
    warm: WarmUp
    clock: Clock = HOST_CLOCK.wall
    sampling: Sampling = SAMPLING
    """Told when sampling begins and ends, since the device's clocks only matter in between."""


@array_value
class TimedCall:
    """What is timed, on what, by which plan."""

    call: Call
    plan: Plan
    runtime: QueueRuntime
    rules: Rules
    setup: Call | None = None

    def __post_init__(self) -> None:
        if isinstance(self.runtime, SupportsAdopt):
            self.runtime.adopt(self.call)

    @property
    def clock(self) -> Clock:
        return self.rules.clock

    @property
    def prepares(self) -> bool:
        """Return whether a call needs any preparation."""
        return self.setup is not None or self.plan.cache is COLD

    def ready(self) -> None:
        """Prepare fresh inputs and, if planned, a cold cache, outside of the time."""
        if self.setup is not None:
            self.setup()
        if self.plan.cache is COLD:
            self.runtime.flush()

    def once(self) -> float:
        """Make one call and return its time, as the host sees it."""
        self.ready()
        self.runtime.synchronize()
        begun = self.clock()
        self.call()
        self.runtime.synchronize()
        return self.clock() - begun

    def warm(self) -> WarmUpResult:
        """Warm up, with the flushes of the measurement, until call and device are stable."""
        if self.plan.warmup_ns <= 0 and self.plan.settle_ns <= 0:
            return WarmUpResult()
        self.rules.sampling.loads += 1
        medians: list[float] = []
        begun, calls, spent = self.clock(), 0, 0.0
        while not self.rules.warm(medians, calls, spent, self.plan) or not self._settled(spent):
            medians.append(median(self.once() for _ in range(_WARM_BATCH)))
            calls += _WARM_BATCH + (0 if self._settled(spent) else self._load(medians[-1]))
            spent = self.clock() - begun
        return WarmUpResult(calls, spent, settled=self.rules.sampling.steady())

    def _settled(self, spent: float) -> bool:
        """Return whether the device has settled, or its time to settle is over."""
        enough = max(SETTLE_NS, self.plan.settle_ns)
        return spent >= enough or (spent >= self.plan.settle_ns and self.rules.sampling.steady())

    def _load(self, typical: float) -> int:
        """Make calls in a row, prepared as samples are, and return their number."""
        count = int(min(_MOST_LOAD, _LOAD_NS / max(typical, 1.0)))
        for _ in range(count):
            self.ready()
            self.call()
        self.runtime.synchronize()
        return count

    def sampled(self, take: Callable[[], Sequence[float]]) -> tuple[list[float], Stop]:
        """Return samples, and why the rule stopped."""
        durations: list[float] = []
        with self.rules.sampling.region():
            begun, stop = self.clock(), None
            while stop is None:
                durations += take()
                stop = self.rules.stop(durations, self.clock() - begun, self.plan)
        return durations, stop

    def batch(self) -> int:
        """Return the calls between two events: a batch shares one set of inputs, so it cannot be cold."""
        calls = 1 if self.setup is not None else max(1, self.plan.calls)
        if calls > 1 and self.plan.cache is COLD:
            raise PerfgateError("cache-cold-batch", f"calls={calls} with a cold cache")
        return calls


def queue_of(runtime: Runtime, timer: str) -> QueueRuntime:
    """Return the runtime as one with queues; raise if it has none, since this timer needs them."""
    availability = queue_availability(timer, runtime)
    if not availability.usable:
        raise PerfgateError("timer-unsuited", f"timer {timer!r} with runtime {runtime.name!r}: {availability.why}")
    return runtime  # type: ignore[return-value]


def queue_availability(timer: str, runtime: Runtime) -> Availability:
    """Return whether a timer that needs a device's queue works with this runtime."""
    if not isinstance(runtime, SupportsWait):
        return Availability(name=timer, usable=False, why=f"the {runtime.name} runtime has no queue of its own")
    availability = runtime.availability()
    return Availability(
        name=timer,
        usable=availability.usable,
        why=availability.why,
        fix=availability.fix,
        version=availability.version,
    )


def checked_readings(durations: Sequence[float], timer: str) -> Sequence[float]:
    """Return the readings; raise if one of them cannot be a time."""
    if durations and isfinite(sum(durations)) and not [reading for reading in durations if reading <= 0.0]:
        return durations  # fast, since it is in the timed loop: a third of the time of ``min``
    wrong = [(at, reading) for at, reading in enumerate(durations) if not (isfinite(reading) and reading > 0)]
    if wrong:
        at, reading = wrong[0]
        raise PerfgateError(
            "timer-broken", f"{timer} read {reading:g} ns for sample {at} ({len(wrong)} of {len(durations)} like it)"
        )
    return durations


_TASKS, _STAT = Path("/proc/self/task"), Path("/proc/stat")

_ACCOUNTED = 0.5
"""The share of elapsed time that the calling thread worked or queued, below which others do its work."""

_FULL = 0.8
"""The share of busy processors from which other threads may have queued unnoticed."""


class LoadSample(NamedTuple):
    """The load between two readings."""

    queued: float | None
    """Nanoseconds that threads of this process were ready and had no processor."""
    others: float | None
    """Processors that other processes kept busy."""
    own: float | None = None
    """Nanoseconds that the calling thread itself was ready and had no processor."""
    helpers: float | None = None
    """Processors that other threads of this process kept busy."""


class NoCpuLoad:
    """Reports no load, for use with a simulated clock."""

    def sample(self) -> LoadSample:
        return LoadSample(0.0, 0.0, 0.0)


class _LoadReading(NamedTuple):
    clock: int
    delays: Mapping[str, int]
    """Nanoseconds that each thread has queued so far; empty if unknown."""
    busy: float | None
    """Nanoseconds of all processors in use by anyone."""
    mine: int
    thread: int


class CpuLoad:
    """Reads the load when it is created and when it is queried."""

    def __init__(self) -> None:
        self._then = _read_load()

    def sample(self) -> LoadSample:
        now, then = _read_load(), self._then
        elapsed = max(1, now.clock - then.clock)
        own_process, worked = now.mine - then.mine, now.thread - then.thread
        others = None
        if now.busy is not None and then.busy is not None:
            others = max(0.0, (now.busy - then.busy - own_process) / elapsed)
        delays = {thread: delay - then.delays.get(thread, 0) for thread, delay in now.delays.items()}
        own = delays.get(str(get_native_id()))
        queued = _queued(delays, elapsed, worked, worked + (own or 0), (others or 0.0) + own_process / elapsed)
        helpers = max(0, own_process - worked) / elapsed
        return LoadSample(queued, others, None if own is None else float(own), helpers)


def _queued(delays: Mapping[str, int], elapsed: int, worked: int, accounted: int, used: float) -> float | None:
    """Return the queueing of all threads; None if other threads work for the caller on a full machine."""
    if not delays:
        return float(elapsed - worked) if worked >= _ACCOUNTED * elapsed else None
    if accounted < _ACCOUNTED * elapsed and used >= _FULL * (os.cpu_count() or 1):
        return None
    return float(sum(delays.values()))


def with_cpu_load(cpu_load: CpuLoad | NoCpuLoad, samples: Samples) -> Samples:
    """Return the samples with the load; all queueing counts as caused by other processes."""
    load_seen = cpu_load.sample()
    calls = len(samples.durations) * samples.batch
    unqueued = None
    if load_seen.queued is not None and calls:
        unqueued = round(max(0.0, sum(samples.durations) * samples.batch - load_seen.queued) / calls, 1)
    others = None if load_seen.others is None else round(load_seen.others, 3)
    blocked = None
    if load_seen.own is not None and samples.cpu:
        idle = (sum(samples.durations) - sum(samples.cpu)) * samples.batch - load_seen.own
        blocked = round(max(0.0, idle) / calls, 1)
    helpers = None if load_seen.helpers is None else round(load_seen.helpers, 3)
    return replace(samples, unqueued=unqueued, others=others, blocked=blocked, helpers=helpers)


def _read_load() -> _LoadReading:
    return _LoadReading(HOST_CLOCK.wall(), _delays(), _busy(), HOST_CLOCK.process(), HOST_CLOCK.thread())


def _delays() -> dict[str, int]:
    """Return the second number of each thread's ``schedstat``; a thread may end while it is read."""
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
    """Return the busy nanoseconds of ``cpu  user nice system idle iowait irq softirq steal …``."""
    try:
        user, nice, system, _idle, _wait, irq, softirq, *rest = map(int, line.split()[1:])
    except ValueError:
        return None
    return (user + nice + system + irq + softirq + sum(rest[:1])) * 1e9 / ticks_a_second


_MONITORING: Any = getattr(sys, "monitoring", None)
"""Since Python 3.12 cProfile and others observe through it."""

_TOOLS = range(6)


class Undisturbed:
    """Switches off garbage collection and all observers of lines or calls: coverage, profilers, debuggers.

    It is a class, because a generator's switches cost as much as a call.
    """

    __slots__ = ("_collecting", "_go_on")

    def __enter__(self) -> None:
        self._collecting = gc.isenabled()
        gc.disable()
        self._go_on = [] if _is_unobserved() else [_profiling(), _tracing(), *_monitored()]

    def __exit__(self, *_: object) -> None:
        for go_on in self._go_on:
            go_on()
        if self._collecting:
            gc.enable()


def _is_unobserved() -> bool:
    """Return whether nothing observes, which is usual; it is checked between samples, so it must be fast."""
    return sys.gettrace() is None and sys.getprofile() is None and (_MONITORING is None or not _tools())


def _tools() -> list[int]:
    return [tool for tool in _TOOLS if _MONITORING.get_tool(tool) is not None]


def _tracing() -> Callable[[], object]:
    """Stop the tracer and return what restores it."""
    tracer = sys.gettrace()
    sys.settrace(None)
    return lambda: sys.settrace(tracer)


def _profiling() -> Callable[[], object]:
    """Stop the profiler and return what restores it; before Python 3.12 cProfile is an object that is not callable."""
    profiler: Any = sys.getprofile()
    if profiler is None or callable(profiler):
        sys.setprofile(None)
        return lambda: sys.setprofile(profiler)
    profiler.disable()
    go_on: Callable[[], object] = profiler.enable
    return go_on


def _monitored() -> list[Callable[[], object]]:
    if _MONITORING is None:
        return []
    events = {tool: _MONITORING.get_events(tool) for tool in _tools()}
    for tool in events:
        _MONITORING.set_events(tool, 0)
    return [partial(_MONITORING.set_events, tool, callbacks) for tool, callbacks in events.items()]


WAITS = 32


def repeated_call(call: Call, calls: int) -> Call:
    """Return a call that makes so many calls."""
    if calls == 1:
        return call

    def run() -> None:
        for _ in range(calls):
            call()

    return run


def waiting(runtime: QueueRuntime, clock: Clock) -> float:
    """Return the nanoseconds of a wait for an idle device."""

    def idle_wait() -> float:
        runtime.synchronize()
        begun = clock()
        runtime.synchronize()
        return clock() - begun

    return median(idle_wait() for _ in range(WAITS))
