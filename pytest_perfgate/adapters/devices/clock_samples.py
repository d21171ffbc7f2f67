"""What is seen of one device: its looks, and its counters wherever sampling begins or ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pytest_perfgate.adapters.bindings.nvml import HARMLESS, POWER_CAP, REASONS, ClockSample, Counts
from pytest_perfgate.clock import HOST_CLOCK
from pytest_perfgate.model.errors import PerfgateError

if TYPE_CHECKING:
    from pytest_perfgate.adapters.system.processes import Others
    from pytest_perfgate.model.measurement import Sampling

Pids = tuple[int, ...]


class Watched(Protocol):
    """The part of a device's binding that a watch needs."""

    def sample(self) -> ClockSample: ...

    def violations(self) -> Counts: ...

    def processes(self) -> Pids | None: ...


class Look(NamedTuple):
    """What was seen, and the marks of the sampling before and after it."""

    sample: ClockSample
    before: int
    after: int
    load: int
    """Which warm-up had begun before it."""


class Reading(NamedTuple):
    """Counters, and the mark of the sampling and the time at which they were read."""

    counts: Counts
    mark: int
    at_ns: int


class DeviceSampler:
    """Looks at one device, from one thread."""

    def __init__(self, device: Watched, strangers: Callable[[Pids], Others], sampling: Sampling) -> None:
        self._device, self._strangers, self._sampling = device, strangers, sampling
        self._looks: list[Look] = []
        self._readings: list[Reading] = []
        self._mark = sampling.mark
        self.foreign: set[int] = set()
        self.elsewhere: set[int] = set()
        self.blind = False
        """Whether nobody says who else computes there."""
        self.fault = ""

    def look(self, *, last: bool = False) -> bool:
        """Whether it went well; whatever goes wrong is a fault, since a thread that ends is missed by nobody."""
        try:
            self._count(last=last)
            before, load = self._sampling.mark, self._sampling.loads
            sample = self._device.sample()
            self._looks.append(Look(sample, before, self._sampling.mark, load))
            pids = self._device.processes()
            self.blind = self.blind or pids is None
            self._tell_apart(self._strangers(pids or ()))
        except PerfgateError as error:
            self.fault = self.fault or error.what
        except Exception as error:  # noqa: BLE001 - a driver's binding may raise anything
            self.fault = self.fault or f"looking at the device failed: {type(error).__name__}: {error}"
        return not self.fault

    def _count(self, *, last: bool) -> None:
        """Read the counters where sampling has begun or ended since, and at the very end."""
        mark = self._sampling.mark
        if last or not self._readings or self._readings[-1].mark != mark:
            self._readings.append(Reading(self._device.violations(), mark, HOST_CLOCK.wall()))

    def _tell_apart(self, others: Others) -> None:
        self.foreign.update(others.foreign)
        self.elsewhere.update(others.elsewhere)

    @property
    def counted(self) -> bool:
        """Whether the device has counters at all."""
        return any(reading.counts.held for reading in self._readings)

    def failed(self) -> str:
        """Why the counters cannot be believed: they told something and then did not, or less; empty where they can."""
        for one, other in pairwise(reading.counts for reading in self._readings):
            if gone := sorted(one.held.keys() - other.held.keys()):
                return f"it stopped counting what holds its clocks down: {', '.join(gone)}"
            if back := sorted(name for name, count in one.held.items() if other.held[name] < count):
                return f"its counters ran backwards, as after a reset: {', '.join(back)}"
        return ""

    def every(self) -> list[ClockSample]:
        return [look.sample for look in self._looks]

    def loaded(self) -> list[ClockSample]:
        """Those since the newest warm-up began."""
        return [look.sample for look in self._looks if look.load == self._sampling.loads]

    def inside(self) -> list[ClockSample]:
        """Those that fell into sampling: before it the device may idle, while the host compiles the first call.

        Of something that no timer samples, such as a profiled call, all of them.
        """
        if self._untimed():
            return self.every()
        begun = [look for look in self._looks if look.before % 2]
        return [look.sample for look in begun if look.after == look.before] or [look.sample for look in begun]

    def watts(self) -> float | None:
        """What was drawn while samples were taken, the middle of the looks."""
        drawn = [sample.watts for sample in self.inside() if sample.watts is not None]
        return median(drawn) if drawn else None

    def capped(self) -> float | None:
        """The share of the sampling at the power limit: as counted, or as looked at where that is more."""
        looked = [POWER_CAP in reasons(sample) for sample in self.inside()]
        if not looked and not self.counted:
            return None
        counted = self.held().get(POWER_CAP, 0.0)
        return min(1.0, max(counted, sum(looked) / len(looked) if looked else 0.0))

    def held(self) -> Mapping[str, float]:
        """The share of the sampling for which each reason held the clocks down, as the device's counters tell."""
        return shares(self._readings, throughout=self._untimed())

    def _untimed(self) -> bool:
        return self._sampling.mark == self._mark


def reasons(sample: ClockSample) -> set[str]:
    """What held the clocks down at a look."""
    return {name for bit, name in REASONS.items() if sample.reasons & bit & ~HARMLESS}


def shares(readings: Sequence[Reading], *, throughout: bool = False) -> dict[str, float]:
    """What counters grew by between two readings, as a share of what passed there: of sampling, or throughout.

    A region so short that nobody read between its begin and its end counts with the time around it.
    """
    counts: dict[str, int] = {}
    passed = 0
    for one, other in pairwise(readings):
        if not (throughout or one.mark % 2 or other.mark > one.mark + 1):
            continue
        passed += _between(one, other)
        for name in one.counts.held.keys() & other.counts.held.keys():
            counts[name] = counts.get(name, 0) + other.counts.held[name] - one.counts.held[name]
    return {name: grown / passed for name, grown in counts.items() if grown > 0} if passed > 0 else {}


def _between(one: Reading, other: Reading) -> int:
    """In the card's own ticks where it counts in those, else nanoseconds."""
    if one.counts.ticks is not None and other.counts.ticks is not None:
        return other.counts.ticks - one.counts.ticks
    return other.at_ns - one.at_ns
