"""Timing by the host's clock, in batches, with synchronisation."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise, repeat
from statistics import median
from typing import TYPE_CHECKING

from pytest_perfgate.adapters.system.processes import queued_ns
from pytest_perfgate.adapters.timers.bench import (
    COLD,
    CpuLoad,
    NoCpuLoad,
    Rules,
    TimedCall,
    Undisturbed,
    WarmUp,
    checked_readings,
    queue_availability,
    queue_of,
    repeated_call,
    waiting,
    with_cpu_load,
)
from pytest_perfgate.clock import HOST_CLOCK
from pytest_perfgate.model.device import Availability, SupportsClock, SupportsWait
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import IDLE, Samples

if TYPE_CHECKING:
    from pytest_perfgate.model.plan import Plan
    from pytest_perfgate.model.ports import Call, Runtime, StoppingRule

Clock = Callable[[], int]

_SLICE_NS = 2_000_000
"""Nanoseconds between two checks of the stopping rule."""

_FEW = 5
"""The samples of a batch that is short by our own choice, whatever the budget: a single one that waited for a processor
could use all of it, and would be the only one."""

_COOLS_NS = 1e9

_STILL_WARM = 0.1
"""The part of a warm-up that suffices after another measurement, when the processor's clock is already up."""


class HostTimer:
    """The host's clock around the call; on a runtime with a clock of its own (the fake), that one.

    If work runs asynchronously, the device is idle before the call and waited for after it.
    """

    name = "host"

    def __init__(self, rule: StoppingRule, warm: WarmUp) -> None:
        self._rule, self._warm = rule, warm
        self._busy_until = -2 * _COOLS_NS

    def availability(self, runtime: Runtime) -> Availability:
        if isinstance(runtime, SupportsWait):
            return queue_availability(self.name, runtime)
        usable = runtime.name in {"host", "fake"}
        why = "" if usable else f"it times the host, and {runtime.name} runs work behind the host's back"
        return Availability(name=self.name, usable=usable, why=why)

    def measure(self, call: Call, plan: Plan, runtime: Runtime, setup: Call | None = None) -> Samples:
        clock: Clock = runtime.clock if isinstance(runtime, SupportsClock) else HOST_CLOCK.wall
        resolution, overhead = probe_clock(clock)
        if isinstance(runtime, SupportsWait):
            rules = Rules(stop=self._rule, warm=self._warm, clock=clock)
            bench = TimedCall(call=call, plan=plan, runtime=queue_of(runtime, self.name), rules=rules, setup=setup)
            return with_cpu_load(load_of(clock), synchronised(bench, resolution))
        prepare = _prepared(setup, plan, runtime)
        with Undisturbed():
            take = _singles(call, prepare, clock)
            first: list[float] = []
            take(1, first)
            batch = 1 if prepare else plan.calls or _calls_a_sample(call, clock, first[0], resolution)
            if batch > 1:
                take = _batches(call, clock, batch)
            if batch > 1 and not plan.calls:
                plan = replace(plan, least_samples=max(plan.least_samples, min(_FEW, plan.min_samples)))
            warmups = self._warm_up(take, first[0] * batch, plan, clock)
            durations, cpu_times, waits = list[float](), list[float](), list[float]()
            if plan.in_turns and prepare is None and clock is HOST_CLOCK.wall:
                take = _with_cpu_time(call, batch, cpu_times)
            elif batch == 1 and _of_a_tail(plan) and clock is HOST_CLOCK.wall:
                take = _with_waits(call, prepare, waits)
            stop, cpu_load, begun = None, load_of(clock), clock()
            while stop is None:
                _reclaim()
                take(_slice(durations, first[0], batch), durations)
                stop = self._rule(durations, clock() - begun, plan)
            self._busy_until = clock()
            samples = Samples(
                durations=tuple(checked_readings(durations, self.name)),
                cpu=tuple(cpu_times),
                waits=tuple(waits),
                timer=self.name,
                stop=stop,
                batch=batch,
                overhead=overhead,
                resolution=resolution,
                warmups=1 + warmups * batch,
            )
            return with_cpu_load(cpu_load, samples)

    def _warm_up(self, take: Take, sample_ns: float, plan: Plan, clock: Clock) -> int:
        """Take samples and discard them until the call is warm; return their number."""
        if plan.warmup_ns <= 0:
            return 0
        medians: list[float] = []
        begun, count = clock(), 0
        if begun - self._busy_until < _COOLS_NS:
            plan = replace(plan, warmup_ns=plan.warmup_ns * _STILL_WARM)
        size = 1 if sample_ns > _SLICE_NS / 5 else 5
        while not self._warm(medians, count, clock() - begun, plan):
            some: list[float] = []
            _reclaim()
            take(size, some)
            medians.append(median(some))
            count += size
        return count


def _of_a_tail(plan: Plan) -> bool:
    """Return whether a quantile is requested, from which waits for a processor are subtracted."""
    return any(figure.startswith("q=") for figure in plan.figures)


Take = Callable[[int, list[float]], None]


def _with_waits(call: Call, prepare: Call | None, waits: list[float]) -> Take:
    """Take wall times, and the time in which this thread waited for a processor."""
    wall = HOST_CLOCK.wall

    def take(count: int, into: list[float]) -> None:
        for _ in repeat(None, count):
            if prepare is not None:
                prepare()
            queued, begin = queued_ns(), wall()
            call()
            into.append(wall() - begin)
            waits.append(queued_ns() - queued)

    return take


@cache
def probe_clock(clock: Clock) -> tuple[float, float]:
    """Return the smallest step of a clock, and the nanoseconds between two readings, measured once a process."""
    stamps = [clock() for _ in repeat(None, 1000)]
    steps = [later - earlier for earlier, later in pairwise(stamps)]
    return float(min((step for step in steps if step > 0), default=1)), float(median(steps))


def load_of(clock: Clock) -> CpuLoad | NoCpuLoad:
    """Return the load of other processes; none beside a simulated clock."""
    return CpuLoad() if clock is HOST_CLOCK.wall else NoCpuLoad()


def _singles(call: Call, prepare: Call | None, clock: Clock) -> Take:
    def take(count: int, into: list[float]) -> None:
        append = into.append
        for _ in repeat(None, count):
            if prepare is not None:
                prepare()
            begin = clock()
            call()
            append(clock() - begin)

    return take


def _batches(call: Call, clock: Clock, batch: int) -> Take:
    def take(count: int, into: list[float]) -> None:
        append = into.append
        for _ in repeat(None, count):
            turns = repeat(None, batch)
            begin = clock()
            for _ in turns:
                call()
            append((clock() - begin) / batch)

    return take


def _with_cpu_time(call: Call, batch: int, cpu_times: list[float]) -> Take:
    """Take wall times, and the CPU time of this thread."""
    wall, thread = HOST_CLOCK.wall, HOST_CLOCK.thread

    def take(count: int, into: list[float]) -> None:
        for _ in repeat(None, count):
            turns = repeat(None, batch)
            thread_begin, begin = thread(), wall()
            for _ in turns:
                call()
            into.append((wall() - begin) / batch)
            cpu_times.append((thread() - thread_begin) / batch)

    return take


def _prepared(setup: Call | None, plan: Plan, runtime: Runtime) -> Call | None:
    """Return the preparation of every call, outside of its time: fresh inputs and, if planned, a cold cache."""
    if plan.cache is not COLD:
        return setup
    if plan.calls > 1:
        raise PerfgateError("cache-cold-batch", f"calls={plan.calls} with a cold cache")
    if setup is None:
        return runtime.flush

    def prepare() -> None:
        setup()
        runtime.flush()

    return prepare


def _calls_a_sample(call: Call, clock: Clock, first: float, resolution: float) -> int:
    """Return the calls for one sample, doubled until it is long against the clock's step.

    A long first call may have imported, compiled, or waited for a processor, so a second one decides.
    """
    least = max(50_000, 200 * resolution)  # reading the clock then costs well under one percent of a sample
    if first >= 4 * least:
        second: list[float] = []
        _batches(call, clock, 1)(1, second)
        if second[0] >= 4 * least:
            return 1
    batch = 1
    while batch < 1 << 20:
        some: list[float] = []
        _batches(call, clock, batch)(3, some)
        took = min(some) * batch
        if took >= least:
            return batch
        batch = max(batch * 2, min(batch * 16, int(batch * least / max(took, 1.0)) + 1))
    return batch


def _reclaim() -> None:
    """Free reference cycles as often as Python does: otherwise each call would wait for fresh memory of the kernel."""
    due = gc.get_count()[0] > gc.get_threshold()[0] > 0
    if due and "t" in sys.abiflags:  # without the GIL each collection searches all objects, and Python waits longer
        gc.enable()
        tuple([] for _ in range(1024))  # it decides after every 512 allocations of a thread
        gc.disable()
    elif due:
        gc.collect(0)


def _slice(durations: Sequence[float], first: float, batch: int) -> int:
    """Return the number of samples until the next check of the rule."""
    one = (durations[-1] if durations else first) * batch
    return max(1, min(8, int(_SLICE_NS / max(one, 1.0))))


def synchronised(bench: TimedCall, resolution: float) -> Samples:
    """Time calls between two waits for the device; the cost of launching and waiting is included, and noted."""
    calls, warmth = bench.batch(), bench.warm()
    repeated = replace(bench, call=repeated_call(bench.call, calls))
    with Undisturbed():
        overhead = waiting(bench.runtime, bench.clock)
        durations, stop = bench.sampled(lambda: [repeated.once() / calls])
    return Samples(
        durations=tuple(checked_readings(durations, "host")),
        timer="host",
        stop=stop,
        batch=calls,
        overhead=overhead,
        resolution=resolution,
        warmups=warmth.calls,
        warmup_ns=warmth.spent_ns,
        notes=(*bench.runtime.notes(), *warmth.notes, (IDLE, "the time includes launching and waiting")),
    )
