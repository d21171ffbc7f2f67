"""A thread that looks at a device while it is measured, and what its looks come to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import Protocol

from pytest_perfgate.adapters.bindings.nvml import HARMLESS, REASONS, ClockSample
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.problem import Problem

PERIOD_S = 0.05
"""Twenty looks a second."""
PLAY = 0.01
"""A locked clock may be read one percent off."""
SHARE = 0.01
"""A reason that held the clocks for more of the region than this makes it invalid."""


class Watched(Protocol):
    """The part of a device's binding that a watch needs."""

    def sample(self) -> ClockSample: ...

    def violations(self) -> Mapping[str, int]: ...

    def processes(self) -> tuple[int, ...] | None: ...


class DeviceWatch:
    """Begins before the region and is read after it."""

    def __init__(
        self,
        device: Watched,
        *,
        locked_hz: float | None = None,
        strangers: Callable[[tuple[int, ...]], tuple[int, ...]] = lambda pids: (),  # noqa: ARG005 - nobody is one
        period_s: float = PERIOD_S,
        cap: bool = False,
        memory_hz: float | None = None,
    ) -> None:
        self._device, self._locked, self._strangers, self._period = device, locked_hz, strangers, period_s
        self._memory = memory_hz
        self._cap = cap
        """A locked clock is a highest one: falling below it is no fault."""
        self._samples: list[ClockSample] = []
        self._foreign: set[int] = set()
        self._blind = False
        """Whether nobody says who else computes there."""
        self._held: dict[str, int] = {}
        self._elapsed_ns = 0
        self._fault: PerfgateError | None = None
        self._extra: list[Problem] = []
        self._facts: list[tuple[str, str]] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="perfgate-clocks", daemon=True)

    def note(self, name: str, text: str) -> None:
        self._facts.append((name, text))

    def add(self, problem: Problem) -> None:
        self._extra.append(problem)

    def begin(self) -> None:
        self._before = dict(self._device.violations())
        self._begun = time.perf_counter_ns()
        self._look()
        self._thread.start()

    def end(self) -> None:
        self._done.set()
        self._thread.join()
        self._look()
        self._elapsed_ns = max(1, time.perf_counter_ns() - self._begun)
        after = self._device.violations()
        self._held = {name: after[name] - was for name, was in self._before.items() if name in after}

    def _run(self) -> None:
        while not self._done.wait(self._period):
            self._look()

    def _look(self) -> None:
        try:
            self._samples.append(self._device.sample())
            pids = self._device.processes()
            self._blind = pids is None
            self._foreign.update(self._strangers(pids or ()))
        except PerfgateError as fault:
            self._fault = self._fault or fault
            self._done.set()

    # What it came to.

    def clock_hz(self) -> tuple[float, ...]:
        return tuple(sample.sm_hz for sample in self._samples)

    def facts(self) -> tuple[tuple[str, str], ...]:
        return (*self._facts, *self._seen())

    def _seen(self) -> Iterator[tuple[str, str]]:
        if not self._samples:
            return
        clocks = [sample.sm_hz / 1e6 for sample in self._samples]
        spread = f"{median(clocks):.0f} MHz, {min(clocks):.0f} to {max(clocks):.0f} in {len(clocks)} looks"
        yield ("sm clock", spread)
        memory = self._memory_clocks()
        yield ("memory clock", f"{median(memory) / 1e6:.0f} MHz" if memory else "the device does not tell")
        yield ("temperature", f"{max(s.temperature for s in self._samples):.0f} degrees C at most")
        watts = [s.watts for s in self._samples if s.watts is not None]
        if watts:
            yield ("power", f"{max(watts):.0f} W at most")
        if self._blind:
            yield ("other processes", "the device does not tell")
        if not self._before:
            yield ("throttling", "known from the looks alone: the device has no counters of it")

    def problems(self) -> tuple[Problem, ...]:
        return (*self._extra, *self._lost(), *self._throttled(), *self._moved(), *self._others())

    def _lost(self) -> Iterator[Problem]:
        if self._fault:
            yield Problem(code="device-lost", what=self._fault.what, retry=False)

    def _throttled(self) -> Iterator[Problem]:
        seen: dict[str, int] = {}
        for sample in self._samples:
            for bit, name in REASONS.items():
                if sample.reasons & bit & ~HARMLESS:
                    seen[name] = seen.get(name, 0) + 1
        shares = {name: held / self._elapsed_ns for name, held in self._held.items() if held > 0}
        grave = {name for name, share in shares.items() if share > SHARE} | set(seen)
        if grave:
            total = len(self._samples)
            evidence = [(name, f"in {count} of {total} looks") for name, count in seen.items()]
            evidence += [(f"{name}, counted", f"{100 * share:.1f} % of the region") for name, share in shares.items()]
            what = f"the device held its clocks down: {', '.join(sorted(grave))}"
            yield Problem(code="throttled", what=what, evidence=tuple(evidence))

    def _moved(self) -> Iterator[Problem]:
        yield from left("SM", self._locked, [sample.sm_hz for sample in self._samples], cap=self._cap)
        yield from left("memory", self._memory, self._memory_clocks())

    def _memory_clocks(self) -> list[float]:
        """As far as the device tells them."""
        return [sample.memory_hz for sample in self._samples if sample.memory_hz]

    def _others(self) -> Iterator[Problem]:
        if self._foreign:
            pids = ", ".join(map(str, sorted(self._foreign)))
            what = f"another process used the device while measuring: {pids}"
            yield Problem(code="foreign-process", what=what, evidence=(("processes", pids),))


def left(name: str, locked: float | None, seen: Sequence[float], *, cap: bool = False) -> Iterator[Problem]:
    """A clock that was seen elsewhere than where it was locked; of a cap, above it."""
    if locked is None:
        return
    off = [hz for hz in seen if (hz - locked if cap else abs(hz - locked)) > PLAY * locked]
    if off:
        spread = f"{min(off) / 1e6:.0f} to {max(off) / 1e6:.0f} MHz in {len(off)} of {len(seen)} looks"
        evidence = (("locked at", f"{locked / 1e6:.0f} MHz"), ("seen", spread))
        yield Problem(code="clock-moved", what=f"the {name} clock left its lock while measuring", evidence=evidence)
