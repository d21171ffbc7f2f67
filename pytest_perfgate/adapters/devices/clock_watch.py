"""Observing a device during a measurement: a thread's readings and counters, and the problems they show."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple, Protocol

from pytest_perfgate.adapters.bindings.border import PATIENCE_S, expendable
from pytest_perfgate.adapters.bindings.nvml import HARMLESS, POWER_CAP, REASONS, ClockSample, Counts
from pytest_perfgate.adapters.system.processes import OtherProcesses
from pytest_perfgate.clock import HOST_CLOCK
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import SAMPLING, Sampling
from pytest_perfgate.model.metric import Problem

Pids = tuple[int, ...]


class Watched(Protocol):
    """The part of a device's binding that a watch needs."""

    def sample(self) -> ClockSample: ...

    def violations(self) -> Counts: ...

    def processes(self) -> Pids | None: ...


class MarkedReading(NamedTuple):
    """One reading, and the sampling marks before and after it."""

    sample: ClockSample
    before: int
    after: int
    load: int
    """The number of the warm-up that began before it."""


class CounterReading(NamedTuple):
    """Counters, with the sampling mark and the time of reading them."""

    counts: Counts
    mark: int
    at_ns: int


class DeviceSampler:
    """Reads one device, from one thread."""

    def __init__(self, device: Watched, other_processes: Callable[[Pids], OtherProcesses], sampling: Sampling) -> None:
        self._device, self._other_processes, self._sampling = device, other_processes, sampling
        self._looks: list[MarkedReading] = []
        self._readings: list[CounterReading] = []
        self._mark = sampling.mark
        self.foreign: set[int] = set()
        self.elsewhere: set[int] = set()
        self.pids_unknown = False
        """Whether the processes on the device are unknown."""
        self.fault = ""

    def read_sample(self, *, last: bool = False) -> bool:
        """Read the device; return False after an error, which is kept: a thread's end would go unnoticed."""
        try:
            self._count(last=last)
            before, load = self._sampling.mark, self._sampling.loads
            sample = self._device.sample()
            self._looks.append(MarkedReading(sample, before, self._sampling.mark, load))
            pids = self._device.processes()
            self.pids_unknown = self.pids_unknown or pids is None
            others = self._other_processes(pids or ())
            self.foreign.update(others.foreign)
            self.elsewhere.update(others.elsewhere)
        except PerfgateError as error:
            self.fault = self.fault or error.what
        except Exception as error:  # noqa: BLE001 - a driver's binding may raise anything
            self.fault = self.fault or f"reading the device failed: {type(error).__name__}: {error}"
        return not self.fault

    def _count(self, *, last: bool) -> None:
        """Read the counters if sampling has begun or ended since the last reading, and at the end."""
        mark = self._sampling.mark
        if last or not self._readings or self._readings[-1].mark != mark:
            self._readings.append(CounterReading(self._device.violations(), mark, HOST_CLOCK.wall()))

    @property
    def counted(self) -> bool:
        """Return whether the device has counters at all."""
        return any(reading.counts.reasons for reading in self._readings)

    def failed(self) -> str:
        """Return why the counters are unreliable: they stopped, or went backwards; "" if they are reliable."""
        for counts, other in pairwise(reading.counts for reading in self._readings):
            if gone := sorted(counts.reasons.keys() - other.reasons.keys()):
                return f"it stopped counting reasons for low clocks: {', '.join(gone)}"
            if back := sorted(name for name, count in counts.reasons.items() if other.reasons[name] < count):
                return f"its counters ran backwards, as after a reset: {', '.join(back)}"
        return ""

    def every(self) -> list[ClockSample]:
        return [look.sample for look in self._looks]

    def loaded(self) -> list[ClockSample]:
        """Return the readings since the last warm-up began."""
        return [look.sample for look in self._looks if look.load == self._sampling.loads]

    def inside(self) -> list[ClockSample]:
        """Return the readings during sampling: before it the device may idle while the host compiles.

        If no timer samples, as in a profiled call, return all of them.
        """
        if self._untimed():
            return self.every()
        begun = [look for look in self._looks if look.before % 2]
        return [look.sample for look in begun if look.after == look.before] or [look.sample for look in begun]

    def watts(self) -> float | None:
        """Return the median power of the readings during sampling."""
        watts = [sample.watts for sample in self.inside() if sample.watts is not None]
        return median(watts) if watts else None

    def capped(self) -> float | None:
        """Return the share of sampling at the power limit: by counters, or by readings if that is more."""
        looked = [POWER_CAP in reasons(sample) for sample in self.inside()]
        if not looked and not self.counted:
            return None
        counted = self.reason_shares().get(POWER_CAP, 0.0)
        return min(1.0, max(counted, sum(looked) / len(looked) if looked else 0.0))

    def reason_shares(self) -> Mapping[str, float]:
        """Return the share of sampling in which each reason held the clocks down, by the device's counters."""
        return shares(self._readings, throughout=self._untimed())

    def _untimed(self) -> bool:
        return self._sampling.mark == self._mark


def reasons(sample: ClockSample) -> set[str]:
    """Return what held the clocks down at a reading."""
    return {name for bit, name in REASONS.items() if sample.reasons & bit & ~HARMLESS}


def shares(readings: Sequence[CounterReading], *, throughout: bool = False) -> dict[str, float]:
    """Return the increase of counters between readings, as a share of the time of sampling, or of all time.

    A region too short for a reading between its begin and its end counts with the time around it.
    """
    counts: dict[str, int] = {}
    passed = 0
    for one, other in pairwise(readings):
        if not (throughout or one.mark % 2 or other.mark > one.mark + 1):
            continue
        passed += _elapsed(one, other)
        for name in one.counts.reasons.keys() & other.counts.reasons.keys():
            counts[name] = counts.get(name, 0) + other.counts.reasons[name] - one.counts.reasons[name]
    return {name: grown / passed for name, grown in counts.items() if grown > 0} if passed > 0 else {}


def _elapsed(one: CounterReading, other: CounterReading) -> int:
    """Return the time between two readings, in the card's own ticks if it has them, else in nanoseconds."""
    if one.counts.ticks is not None and other.counts.ticks is not None:
        return other.counts.ticks - one.counts.ticks
    return other.at_ns - one.at_ns


PERIOD_S = 0.05
"""The interval of readings, twenty a second."""

PLAY = 0.01
"""The accepted deviation of a locked clock, one percent."""

FASTEST_HZ = 1e10
"""A clock above this, or zero, is not real: drivers return such values if they do not know."""

SHARE = 0.01
"""The share of sampling above which a reason invalidates it; the power limit never does."""

STILL = 5
"""The number of successive readings that must agree before a device counts as settled."""

STILL_CLOCK, STILL_WATTS = 0.02, 0.03
"""The accepted difference between these readings."""

LEAST, NEAR_LIMIT = 7, 0.8
"""The least readings of a load, since power is read 0.2 s late, and the share of the limit below which it may vary."""


class LockedClocks(NamedTuple):
    """The clocks at which a device is locked; None for one that is not locked."""

    sm_hz: float | None = None
    memory_hz: float | None = None
    base: bool = False
    """Whether the clock is locked at an unknown value, which must not change."""
    cap: bool = False
    """Whether the SM clock is only an upper bound, so that a lower one is not a fault."""


UNLOCKED = LockedClocks()


class DeviceWatch:
    """Watches a device from before a region until after it."""

    def __init__(
        self,
        device: Watched,
        *,
        lock: LockedClocks = UNLOCKED,
        other_processes: Callable[[Pids], OtherProcesses] = lambda pids: OtherProcesses(),  # noqa: ARG005 - none by default
        period_s: float = PERIOD_S,
        sampling: Sampling = SAMPLING,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._device, self._lock = device, lock
        self._other_processes, self._sampling = other_processes, sampling
        self._period, self._patience = period_s, patience_s
        self._silent = False
        self._extra: list[Problem] = []
        self._facts: list[tuple[str, str]] = []
        self._done, self._wake, self._looked = False, threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="perfgate-clocks", daemon=True)

    def note(self, name: str, text: str) -> None:
        self._facts.append((name, text))

    def add(self, problem: Problem) -> None:
        self._extra.append(problem)

    def begin(self) -> None:
        """Start the thread, which makes every reading, so that a driver that never returns blocks only it."""
        self._sampler = DeviceSampler(self._device, self._other_processes, self._sampling)
        before = self._before = self._sampling.tell(None)

        def wake() -> None:
            before()
            self._wake.set()

        self._sampling.tell(wake)
        self._held_still = self._sampling.ask(self.steady)
        self._thread.start()
        if not self._looked.wait(self._patience):
            self._sampling.tell(before)
            self._sampling.ask(self._held_still)
            self._done = True
            raise PerfgateError("driver-silent", self._why_no_readings())

    def end(self) -> None:
        self._sampling.tell(self._before)
        self._sampling.ask(self._held_still)
        self._done = True
        self._wake.set()
        self._thread.join(self._patience)
        self._silent = self._thread.is_alive()

    def _run(self) -> None:
        with expendable():
            well = self._sampler.read_sample()
            self._looked.set()
            while well:
                self._wake.wait(self._period)
                self._wake.clear()
                last = self._done
                well = self._sampler.read_sample(last=last) and not last

    def _why_no_readings(self) -> str:
        return f"the driver did not answer for {self._patience:g} s"

    def steady(self) -> bool:
        """Return whether clock and power are stable; True for a device that can no longer be read, to end the wait."""
        return not self._thread.is_alive() or (readings_agree(self._sampler.loaded()) and self._held_still())

    # The results.

    def clock_hz(self) -> tuple[float, ...]:
        """Return the clocks of the readings during sampling."""
        return _plausible(sample.sm_hz for sample in self._sampler.inside())

    def watts(self) -> float | None:
        return self._sampler.watts()

    def capped(self) -> float | None:
        return self._sampler.capped()

    def facts(self) -> tuple[tuple[str, str], ...]:
        return (*self._facts, *self._reading_facts())

    def _reading_facts(self) -> Iterator[tuple[str, str]]:
        every = self._sampler.every()
        if not every:
            return
        clocks = [hz / 1e6 for hz in self.clock_hz()]
        spread = "the device does not report it" if self._sampler.inside() else "no reading fell into the sampling"
        if clocks:
            spread = f"{median(clocks):.0f} MHz, {min(clocks):.0f} to {max(clocks):.0f} in {len(clocks)} readings"
        yield ("sm clock", spread)
        memory = self._memory_clocks()
        yield ("memory clock", f"{median(memory) / 1e6:.0f} MHz" if memory else "the device does not report it")
        yield ("temperature", f"{max(s.temperature for s in every):.0f} degrees C at most")
        watts = [s.watts for s in every if s.watts is not None]
        if watts:
            power = self.watts()
            yield ("power", f"{max(watts):.0f} W at most" + (f", {power:.0f} W sampled" if power is not None else ""))
        if share := self.capped():
            yield ("at the power limit", f"{100 * share:.0f} % of the sampling")
        if self._sampler.pids_unknown:
            yield ("other processes", "the device does not report it")
        if count := len(self._sampler.elsewhere):
            yield (
                "processes of elsewhere on the card",
                f"{count}, not told apart: this process table has none of them",
            )
        if not self._sampler.counted:
            yield ("throttling", "known from readings only: the device does not count it")

    def problems(self) -> tuple[Problem, ...]:
        return (*self._extra, *self._losses(), *throttled(self._sampler), *self._clock_moves(), *self._foreign_use())

    def _losses(self) -> Iterator[Problem]:
        silent = self._why_no_readings() if self._silent else ""
        if what := self._sampler.fault or silent or self._sampler.failed():
            yield Problem(code="device-lost", what=what, retry=False)

    def _clock_moves(self) -> Iterator[Problem]:
        clocks = self.clock_hz()
        at = median(clocks) if self._lock.base and clocks else self._lock.sm_hz
        yield from lock_faults("SM", at, clocks, cap=self._lock.cap)
        yield from lock_faults("memory", self._lock.memory_hz, self._memory_clocks())
        if not clocks and (self._lock.base or at is not None):
            yield from self._unread_lock(at)

    def _unread_lock(self, at: float | None) -> Iterator[Problem]:
        """Yield a problem if no reading during sampling shows the lock, unless all readings around it do."""
        clocks = _plausible(sample.sm_hz for sample in self._sampler.every())
        if at is None or not clocks or any(lock_faults("SM", at, clocks, cap=self._lock.cap)):
            text = (
                f"{min(clocks) / 1e6:.0f} to {max(clocks) / 1e6:.0f} MHz" if clocks else "the device does not report it"
            )
            what = "it is unknown whether the SM clock stayed at its lock: no reading fell into the sampling"
            yield Problem(code="clock-moved", what=what, evidence=(("seen beside it", text),))

    def _memory_clocks(self) -> list[float]:
        """Return the memory clocks, as far as the device reports them."""
        return list(_plausible(sample.memory_hz for sample in self._sampler.inside()))

    def _foreign_use(self) -> Iterator[Problem]:
        if foreign := self._sampler.foreign:
            pids = ", ".join(map(str, sorted(foreign)))
            what = f"another process used the device while measuring: {pids}"
            yield Problem(code="foreign-process", what=what, evidence=(("processes", pids),))


def throttled(sampler: DeviceSampler) -> Iterator[Problem]:
    """Yield what held the clocks down, except the power limit, which is a state and not a fault."""
    inside = sampler.inside()
    counts: dict[str, int] = {}
    for sample in inside:
        for name in reasons(sample) - {POWER_CAP}:
            counts[name] = counts.get(name, 0) + 1
    shares = {name: share for name, share in sampler.reason_shares().items() if name != POWER_CAP}
    grave = {name for name, share in shares.items() if share > SHARE} | set(counts)
    if grave:
        evidence = [(name, f"in {count} of {len(inside)} readings") for name, count in counts.items()]
        evidence += [(f"{name}, counted", f"{100 * share:.1f} % of the sampling") for name, share in shares.items()]
        what = f"the device lowered its clocks: {', '.join(sorted(grave))}"
        yield Problem(code="throttled", what=what, evidence=tuple(evidence))


def readings_agree(looks: Sequence[ClockSample]) -> bool:
    """Return whether the last readings agree; the clock varies at the power limit, and the power may far below it."""
    recent = looks[-STILL:]
    if len(looks) < LEAST:
        return False
    limited = [POWER_CAP in reasons(sample) for sample in recent]
    free = not any(limited) and all((one.power or 1) < NEAR_LIMIT for one in looks[-LEAST:])
    watts = [] if free else [sample.watts for sample in recent if sample.watts is not None]
    clocks = [] if all(limited) else list(_plausible(sample.sm_hz for sample in recent))
    return _within_fraction(watts, STILL_WATTS) and _within_fraction(clocks, STILL_CLOCK)


def _within_fraction(numbers: Sequence[float], within: float) -> bool:
    return not numbers or max(numbers) <= min(numbers) * (1 + within)


def _plausible(clocks: Iterable[float]) -> tuple[float, ...]:
    """Return the values that can be clocks."""
    return tuple(hz for hz in clocks if 0 < hz < FASTEST_HZ)


def lock_faults(name: str, locked: float | None, readings: Sequence[float], *, cap: bool = False) -> Iterator[Problem]:
    """Yield a problem if a clock left its locked value, or, for an upper bound, exceeded it."""
    if locked is None:
        return
    off = [hz for hz in readings if (hz - locked if cap else abs(hz - locked)) > PLAY * locked]
    if off:
        spread = f"{min(off) / 1e6:.0f} to {max(off) / 1e6:.0f} MHz in {len(off)} of {len(readings)} readings"
        evidence = (("locked at", f"{locked / 1e6:.0f} MHz"), ("seen", spread))
        yield Problem(code="clock-moved", what=f"the {name} clock left its lock while measuring", evidence=evidence)
