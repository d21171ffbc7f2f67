"""A thread that looks at a device while it is measured, and what its looks come to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple, Protocol

from pytest_perfgate.adapters.bindings.nvml import HARMLESS, REASONS, ClockSample
from pytest_perfgate.adapters.bindings.processes import Others
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.problem import Problem
from pytest_perfgate.model.sampling import SAMPLING, Sampling

PERIOD_S = 0.05
"""Twenty looks a second."""
PATIENCE_S = 10.0
"""A driver that does not answer for so long is not asked again."""
SETTLING = 20
"""Looks at a clock that was just locked."""
PLAY = 0.01
"""A locked clock may be read one percent off."""
SHARE = 0.01
"""A reason that held the clocks for more of the region than this makes it invalid."""
Pids = tuple[int, ...]


class Watched(Protocol):
    """The part of a device's binding that a watch needs."""

    def sample(self) -> ClockSample: ...

    def violations(self) -> Mapping[str, int]: ...

    def processes(self) -> Pids | None: ...


class Lock(NamedTuple):
    """Where clocks are held; nothing of one that is not."""

    sm_hz: float | None = None
    memory_hz: float | None = None
    base: bool = False
    """Held at a clock that nobody has named: wherever it is, it must stay."""
    cap: bool = False
    """The clock of the SMs is a highest one: falling below it is no fault."""


UNLOCKED = Lock()


class Look(NamedTuple):
    """What was seen, and the marks of the sampling before and after it."""

    sample: ClockSample
    before: int
    after: int


class Sight:
    """Looks at one device, from one thread."""

    def __init__(self, device: Watched, strangers: Callable[[Pids], Others], sampling: Sampling) -> None:
        self._device, self._strangers, self._sampling = device, strangers, sampling
        self._looks: list[Look] = []
        self._mark = sampling.mark
        self.foreign: set[int] = set()
        self.elsewhere: set[int] = set()
        self.blind = False
        """Whether nobody says who else computes there."""
        self.counted = dict(device.violations())
        self.held: dict[str, int] = {}
        self.fault = ""

    def look(self) -> bool:
        """Whether it went well; whatever goes wrong is a fault, since a thread that ends is missed by nobody."""
        try:
            before = self._sampling.mark
            sample = self._device.sample()
            self._looks.append(Look(sample, before, self._sampling.mark))
            pids = self._device.processes()
            self.blind = pids is None
            self._tell_apart(self._strangers(pids or ()))
        except PerfgateError as error:
            self.fault = self.fault or error.what
        except Exception as error:  # noqa: BLE001 - a driver's binding may raise anything
            self.fault = self.fault or f"looking at the device failed: {type(error).__name__}: {error}"
        return not self.fault

    def _tell_apart(self, others: Others) -> None:
        self.foreign.update(others.foreign)
        self.elsewhere.update(others.elsewhere)

    def close(self) -> None:
        """A last look, and what the device's counters have counted."""
        if not self.look():
            return
        try:
            after = self._device.violations()
        except Exception as error:  # noqa: BLE001 - as above
            self.fault = f"reading the device's counters failed: {type(error).__name__}: {error}"
            return
        self.held = {name: after[name] - was for name, was in self.counted.items() if name in after}

    def every(self) -> list[ClockSample]:
        return [look.sample for look in self._looks]

    def inside(self) -> list[ClockSample]:
        """Those that fell into sampling: before it the device may idle, while the host compiles the first call.

        Of something that no timer samples, such as a profiled call, all of them.
        """
        if self._sampling.mark == self._mark:
            return self.every()
        begun = [look for look in self._looks if look.before % 2]
        return [look.sample for look in begun if look.after == look.before] or [look.sample for look in begun]


class DeviceWatch:
    """Begins before the region and is read after it."""

    def __init__(
        self,
        device: Watched,
        *,
        lock: Lock = UNLOCKED,
        strangers: Callable[[Pids], Others] = lambda pids: Others(),  # noqa: ARG005 - nobody is one
        period_s: float = PERIOD_S,
        sampling: Sampling = SAMPLING,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._device, self._lock = device, lock
        self._strangers, self._sampling = strangers, sampling
        self._period, self._patience = period_s, patience_s
        self._elapsed_ns = 0
        self._silent = False
        self._extra: list[Problem] = []
        self._facts: list[tuple[str, str]] = []
        self._done, self._wake = False, threading.Event()
        self._thread = threading.Thread(target=self._run, name="perfgate-clocks", daemon=True)

    def note(self, name: str, text: str) -> None:
        self._facts.append((name, text))

    def add(self, problem: Problem) -> None:
        self._extra.append(problem)

    def begin(self) -> None:
        self._sight = Sight(self._device, self._strangers, self._sampling)
        self._begun = time.perf_counter_ns()
        self._sight.look()
        self._sampling.tell(self._wake.set)
        self._thread.start()

    def end(self) -> None:
        """The thread has the last look, so that a driver which never returns holds up nobody else."""
        self._sampling.tell(None)
        self._done = True
        self._wake.set()
        self._thread.join(self._patience)
        self._silent = self._thread.is_alive()
        self._elapsed_ns = max(1, time.perf_counter_ns() - self._begun)

    def _run(self) -> None:
        while not self._done and self._sight.look():
            self._wake.wait(self._period)
            self._wake.clear()
        self._sight.close()

    # What it came to.

    def clock_hz(self) -> tuple[float, ...]:
        """Of the looks while samples were taken."""
        return tuple(sample.sm_hz for sample in self._sight.inside())

    def facts(self) -> tuple[tuple[str, str], ...]:
        return (*self._facts, *self._seen())

    def _seen(self) -> Iterator[tuple[str, str]]:
        every = self._sight.every()
        if not every:
            return
        clocks = [hz / 1e6 for hz in self.clock_hz()]
        spread = "no look fell into the sampling"
        if clocks:
            spread = f"{median(clocks):.0f} MHz, {min(clocks):.0f} to {max(clocks):.0f} in {len(clocks)} looks"
        yield ("sm clock", spread)
        memory = self._memory_clocks()
        yield ("memory clock", f"{median(memory) / 1e6:.0f} MHz" if memory else "the device does not tell")
        yield ("temperature", f"{max(s.temperature for s in every):.0f} degrees C at most")
        watts = [s.watts for s in every if s.watts is not None]
        if watts:
            yield ("power", f"{max(watts):.0f} W at most")
        if self._sight.blind:
            yield ("other processes", "the device does not tell")
        if count := len(self._sight.elsewhere):
            yield (
                "processes of elsewhere on the card",
                f"{count}, not told apart: this process table has none of them",
            )
        if not self._sight.counted:
            yield ("throttling", "known from the looks alone: the device has no counters of it")

    def problems(self) -> tuple[Problem, ...]:
        return (*self._extra, *self._lost(), *self._throttled(), *self._moved(), *self._others())

    def _lost(self) -> Iterator[Problem]:
        silent = f"the driver did not answer for {self._patience:g} s" if self._silent else ""
        if what := self._sight.fault or silent:
            yield Problem(code="device-lost", what=what, retry=False)

    def _throttled(self) -> Iterator[Problem]:
        inside = self._sight.inside()
        seen: dict[str, int] = {}
        for sample in inside:
            for bit, name in REASONS.items():
                if sample.reasons & bit & ~HARMLESS:
                    seen[name] = seen.get(name, 0) + 1
        shares = {name: held / self._elapsed_ns for name, held in self._sight.held.items() if held > 0}
        grave = {name for name, share in shares.items() if share > SHARE} | set(seen)
        if grave:
            evidence = [(name, f"in {count} of {len(inside)} looks") for name, count in seen.items()]
            evidence += [(f"{name}, counted", f"{100 * share:.1f} % of the region") for name, share in shares.items()]
            what = f"the device held its clocks down: {', '.join(sorted(grave))}"
            yield Problem(code="throttled", what=what, evidence=tuple(evidence))

    def _moved(self) -> Iterator[Problem]:
        clocks = self.clock_hz()
        at = median(clocks) if self._lock.base and clocks else self._lock.sm_hz
        yield from left("SM", at, clocks, cap=self._lock.cap)
        yield from left("memory", self._lock.memory_hz, self._memory_clocks())

    def _memory_clocks(self) -> list[float]:
        """As far as the device tells them."""
        return [sample.memory_hz for sample in self._sight.inside() if sample.memory_hz]

    def _others(self) -> Iterator[Problem]:
        if foreign := self._sight.foreign:
            pids = ", ".join(map(str, sorted(foreign)))
            what = f"another process used the device while measuring: {pids}"
            yield Problem(code="foreign-process", what=what, evidence=(("processes", pids),))


def read_back(card: Watched, lock: Lock, sleep: Callable[[float], None]) -> str:
    """Wait for a lock to be seen, for a second at most: an idle card may show an idle clock until it has work."""
    seen = card.sample().sm_hz
    if lock.sm_hz is None:
        return "at a clock that nobody has named"
    for _ in range(SETTLING):
        if not any(left("SM", lock.sm_hz, [seen], cap=lock.cap)):
            return f"read back at {seen / 1e6:.0f} MHz"
        sleep(PERIOD_S)
        seen = card.sample().sm_hz
    return f"set to {lock.sm_hz / 1e6:.0f} MHz, read {seen / 1e6:.0f} MHz without load; what counts is read under load"


def left(name: str, locked: float | None, seen: Sequence[float], *, cap: bool = False) -> Iterator[Problem]:
    """A clock that was seen elsewhere than where it was locked; of a cap, above it."""
    if locked is None:
        return
    off = [hz for hz in seen if (hz - locked if cap else abs(hz - locked)) > PLAY * locked]
    if off:
        spread = f"{min(off) / 1e6:.0f} to {max(off) / 1e6:.0f} MHz in {len(off)} of {len(seen)} looks"
        evidence = (("locked at", f"{locked / 1e6:.0f} MHz"), ("seen", spread))
        yield Problem(code="clock-moved", what=f"the {name} clock left its lock while measuring", evidence=evidence)
