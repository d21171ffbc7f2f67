"""Runs of a call for figures beside its time: memory, compiling, energy; and how tails are timed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from pytest_perfgate.app.instrument import at_least
from pytest_perfgate.core.limits.merge import share_of
from pytest_perfgate.core.stats.inference import calls_needed
from pytest_perfgate.model.capabilities import SupportsMemory
from pytest_perfgate.model.measurement import Reading
from pytest_perfgate.model.metric import Absent
from pytest_perfgate.model.values import Dimension

if TYPE_CHECKING:
    from pytest_perfgate.model.measurement import Samples
    from pytest_perfgate.model.plan import Plan
    from pytest_perfgate.model.ports import Call, Instruments, Runtime

_AMPLE = 4
"""Times the calls that a quantile takes at least, as far as the budget goes: with no more, one odd call is its end."""


def one_by_one(plan: Plan, figures: Sequence[str], processes: int) -> Plan:
    """The plan with calls timed one by one, and enough of them, where a limit asks for a quantile."""
    shares = [share for figure in figures if (share := share_of(figure.removeprefix("q=")))]
    if not shares:
        return plan
    needed = math.ceil(max(map(calls_needed, shares)) / processes)
    enough = at_least(plan, max(plan.least_samples, needed))
    wished = max(enough.min_samples, _AMPLE * needed)
    most = max(enough.max_samples, wished)
    return replace(enough, min_samples=wished, max_samples=most, calls=plan.calls or 1, figures=tuple(figures))


T = TypeVar("T")


class PassedCall(NamedTuple):
    """A call that was timed and is run again for figures beside its time."""

    call: Call
    prepare: Call
    runtime: Runtime
    calls: int = 1
    """How many calls one call of it stands for."""
    first_ns: float | None = None
    """What its first call in this process took, where caches of compilers were cold."""

    def finished(self) -> object:
        """Call it and wait for its device."""
        result = self.call()
        self.runtime.synchronize()
        return result


Clock = Callable[[], float]

_RUNS = 3

_LONG_NS = 1e9
"""A pass that has taken so long is not repeated."""


def readings_of(
    wanted: Sequence[str], passed: PassedCall, samples: Sequence[Samples], instruments: Instruments, clock: Clock
) -> Iterator[Reading | Absent]:
    """The figures beside time that were asked for, each in runs of its own; or why there is none."""
    if "peak_memory" in wanted:
        yield from _host_memory(passed, instruments, clock)
    if "peak_vram" in wanted or "allocations" in wanted:
        yield from _device_memory(wanted, passed, clock)
    if "energy" in wanted:
        yield _energy(passed, instruments, clock)
    if "compile_time" in wanted:
        yield _compile_time(passed, samples)


def _host_memory(passed: PassedCall, instruments: Instruments, clock: Clock) -> Iterator[Reading | Absent]:
    memory = instruments.memory
    if memory is None:
        yield Absent(name="peak_memory", why="nothing here looks at the host's memory")
        return
    for by, look in (("traced", memory.traced), ("resident", memory.resident)):
        peaks = [peak for peak in _looks(passed, look, clock) if peak is not None]
        if peaks:
            yield Reading(name="peak_memory", values=tuple(peaks), dimension=Dimension.BYTES, labels=(("by", by),))


def _looks(passed: PassedCall, look: Callable[[Call], T], clock: Clock) -> Iterator[T]:
    """What several looks see, each after a set-up of its own; a long call is looked at less often."""
    begun = clock()
    for _ in range(_RUNS):
        passed.prepare()
        yield look(passed.finished)
        if clock() - begun > _LONG_NS:
            return


def _device_memory(wanted: Sequence[str], passed: PassedCall, clock: Clock) -> Iterator[Reading | Absent]:
    """What the array library itself counts: memory that a call holds, not what the library keeps in reserve."""
    names = [name for name in ("peak_vram", "allocations") if name in wanted]
    runtime: object = passed.runtime
    if not isinstance(runtime, SupportsMemory):
        why = f"{passed.runtime.name} does not count what it gives out of a device's memory"
        yield from (Absent(name=name, why=why, mend="torch and CuPy do, for calls on a GPU") for name in names)
        return
    peaks, counts = zip(*_looks(passed, runtime.memory_of, clock))
    if "peak_vram" in names:
        yield Reading(name="peak_vram", values=tuple(map(float, peaks)), dimension=Dimension.BYTES)
    if "allocations" in names:
        each = tuple(count / passed.calls for count in counts)
        yield Reading(name="allocations", values=each, dimension=Dimension.COUNT)


_WINDOW_NS = 2e9
"""Counters of energy step every 20 to 100 ms: over so long a step is a few per cent at the most."""

_STILL_NS = 1e9
"""A counter that has not moved for so long under load does not count."""

_BURST_NS = 5e6


def _energy(passed: PassedCall, instruments: Instruments, clock: Clock) -> Reading | Absent:
    """Joules a call, from one step of the device's counter to another, calls one behind the other between them."""
    meter = instruments.energy(passed.runtime.device()) if instruments.energy is not None else None
    if meter is None or meter() is None:
        why = "the device has no counter of energy that can be read"
        return Absent(name="energy", why=why, mend="NVIDIA cards from Volta on have one: pip install nvidia-ml-py")
    burst = _burst(passed, clock)
    if not _stepped(passed, meter, burst, clock):
        return Absent(name="energy", why="the device's counter of energy stands still under load")
    first, begun, count = meter(), clock(), 0
    while clock() - begun < _WINDOW_NS:
        count += _run(passed, burst)
    count += _stepped(passed, meter, burst, clock)
    last = meter()
    if first is None or last is None:
        return Absent(name="energy", why="the device's counter of energy stopped answering")
    return Reading(name="energy", values=((last - first) / (count * passed.calls),), dimension=Dimension.ENERGY)


def _burst(passed: PassedCall, clock: Clock) -> int:
    """Calls between two looks at the counter: reading it must cost little beside them."""
    begun = clock()
    _run(passed, 1)
    return max(1, int(_BURST_NS / max(clock() - begun, 1.0)))


def _run(passed: PassedCall, times: int) -> int:
    for _ in range(times):
        passed.prepare()
        passed.call()
    passed.runtime.synchronize()
    return times


def _stepped(passed: PassedCall, meter: Callable[[], float | None], burst: int, clock: Clock) -> int:
    """Calls until the counter moves; none where it does not."""
    before, begun, count = meter(), clock(), 0
    while clock() - begun < _STILL_NS:
        count += _run(passed, burst)
        if meter() != before:
            return count
    return 0


def _compile_time(passed: PassedCall, samples: Sequence[Samples]) -> Reading | Absent:
    if passed.first_ns is None:
        why = "only a fresh process with cold caches can tell a first call"
        return Absent(name="compile_time", why=why, mend="pytest --perfgate=full, with the limit on the test's marker")
    steady = median(duration for one in samples for duration in one.durations) * passed.calls
    first = max(0.0, passed.first_ns - steady)
    return Reading(name="compile_time", values=(first,), dimension=Dimension.TIME)
