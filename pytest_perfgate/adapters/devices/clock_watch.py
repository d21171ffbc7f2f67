"""A thread that looks at a device while it is measured, and what its looks come to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median
from typing import NamedTuple

from pytest_perfgate.adapters.bindings.border import PATIENCE_S, expendable
from pytest_perfgate.adapters.bindings.nvml import POWER_CAP, ClockSample
from pytest_perfgate.adapters.devices.clock_samples import DeviceSampler, Pids, Watched, reasons
from pytest_perfgate.adapters.system.processes import Others
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import SAMPLING, Sampling
from pytest_perfgate.model.metric import Problem

PERIOD_S = 0.05
"""Twenty looks a second."""

SETTLING = 20
"""Looks at a clock that was just locked."""

PLAY = 0.01
"""A locked clock may be read one percent off."""

FASTEST_HZ = 1e10
"""What is above, or nought, is no clock: drivers answer so where they do not know."""

SHARE = 0.01
"""A reason that held the clocks for more of the sampling than this makes it invalid; the power limit never does."""

STILL = 5
"""Looks in a row that have to agree before a device has settled."""

STILL_CLOCK, STILL_WATTS = 0.02, 0.03
"""How far these looks may be apart."""


class Lock(NamedTuple):
    """Where clocks are held; nothing of one that is not."""

    sm_hz: float | None = None
    memory_hz: float | None = None
    base: bool = False
    """Held at a clock that nobody has named: wherever it is, it must stay."""
    cap: bool = False
    """The clock of the SMs is a highest one: falling below it is no fault."""


UNLOCKED = Lock()


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
        """The thread has every look, the first too, so that a driver which never returns holds up nobody else."""
        self._sight = DeviceSampler(self._device, self._strangers, self._sampling)
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
            raise PerfgateError("driver-silent", self._silence())

    def end(self) -> None:
        self._sampling.tell(self._before)
        self._sampling.ask(self._held_still)
        self._done = True
        self._wake.set()
        self._thread.join(self._patience)
        self._silent = self._thread.is_alive()

    def _run(self) -> None:
        with expendable():
            well = self._sight.look()
            self._looked.set()
            while well:
                self._wake.wait(self._period)
                self._wake.clear()
                last = self._done
                well = self._sight.look(last=last) and not last

    def _silence(self) -> str:
        return f"the driver did not answer for {self._patience:g} s"

    def steady(self) -> bool:
        """Whether clock and power hold still; a device that can no longer be looked at is waited for by nobody."""
        return not self._thread.is_alive() or (still(self._sight.loaded()) and self._held_still())

    # What it came to.

    def clock_hz(self) -> tuple[float, ...]:
        """Of the looks while samples were taken."""
        return _plausible(sample.sm_hz for sample in self._sight.inside())

    def watts(self) -> float | None:
        return self._sight.watts()

    def capped(self) -> float | None:
        return self._sight.capped()

    def facts(self) -> tuple[tuple[str, str], ...]:
        return (*self._facts, *self._seen())

    def _seen(self) -> Iterator[tuple[str, str]]:
        every = self._sight.every()
        if not every:
            return
        clocks = [hz / 1e6 for hz in self.clock_hz()]
        spread = "the device does not tell" if self._sight.inside() else "no look fell into the sampling"
        if clocks:
            spread = f"{median(clocks):.0f} MHz, {min(clocks):.0f} to {max(clocks):.0f} in {len(clocks)} looks"
        yield ("sm clock", spread)
        memory = self._memory_clocks()
        yield ("memory clock", f"{median(memory) / 1e6:.0f} MHz" if memory else "the device does not tell")
        yield ("temperature", f"{max(s.temperature for s in every):.0f} degrees C at most")
        watts = [s.watts for s in every if s.watts is not None]
        if watts:
            drawn = self.watts()
            yield ("power", f"{max(watts):.0f} W at most" + (f", {drawn:.0f} W sampled" if drawn is not None else ""))
        if share := self.capped():
            yield ("at the power limit", f"{100 * share:.0f} % of the sampling")
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
        return (*self._extra, *self._lost(), *throttled(self._sight), *self._moved(), *self._others())

    def _lost(self) -> Iterator[Problem]:
        silent = self._silence() if self._silent else ""
        if what := self._sight.fault or silent or self._sight.failed():
            yield Problem(code="device-lost", what=what, retry=False)

    def _moved(self) -> Iterator[Problem]:
        clocks = self.clock_hz()
        at = median(clocks) if self._lock.base and clocks else self._lock.sm_hz
        yield from left("SM", at, clocks, cap=self._lock.cap)
        yield from left("memory", self._lock.memory_hz, self._memory_clocks())
        if not clocks and (self._lock.base or at is not None):
            yield from self._unseen(at)

    def _unseen(self, at: float | None) -> Iterator[Problem]:
        """A lock that nobody saw while samples were taken is believed where every look beside them found it."""
        beside = _plausible(sample.sm_hz for sample in self._sight.every())
        if at is None or not beside or any(left("SM", at, beside, cap=self._lock.cap)):
            text = f"{min(beside) / 1e6:.0f} to {max(beside) / 1e6:.0f} MHz" if beside else "the device does not tell"
            what = "it is unknown whether the SM clock stayed at its lock: no look fell into the sampling"
            yield Problem(code="clock-moved", what=what, evidence=(("seen beside it", text),))

    def _memory_clocks(self) -> list[float]:
        """As far as the device tells them."""
        return list(_plausible(sample.memory_hz for sample in self._sight.inside()))

    def _others(self) -> Iterator[Problem]:
        if foreign := self._sight.foreign:
            pids = ", ".join(map(str, sorted(foreign)))
            what = f"another process used the device while measuring: {pids}"
            yield Problem(code="foreign-process", what=what, evidence=(("processes", pids),))


def throttled(sight: DeviceSampler) -> Iterator[Problem]:
    """What held the clocks down, the power limit left out: that is a state."""
    inside = sight.inside()
    counts: dict[str, int] = {}
    for sample in inside:
        for name in reasons(sample) - {POWER_CAP}:
            counts[name] = counts.get(name, 0) + 1
    shares = {name: share for name, share in sight.held().items() if name != POWER_CAP}
    grave = {name for name, share in shares.items() if share > SHARE} | set(counts)
    if grave:
        evidence = [(name, f"in {count} of {len(inside)} looks") for name, count in counts.items()]
        evidence += [(f"{name}, counted", f"{100 * share:.1f} % of the sampling") for name, share in shares.items()]
        what = f"the device held its clocks down: {', '.join(sorted(grave))}"
        yield Problem(code="throttled", what=what, evidence=tuple(evidence))


def still(looks: Sequence[ClockSample]) -> bool:
    """Whether the last looks agree; at the power limit a clock never holds still, and the power alone tells."""
    recent = looks[-STILL:]
    if len(recent) < STILL:
        return False
    watts = [sample.watts for sample in recent if sample.watts is not None]
    capped = all(POWER_CAP in reasons(sample) for sample in recent)
    clocks = [] if capped else list(_plausible(sample.sm_hz for sample in recent))
    return _close(watts, STILL_WATTS) and _close(clocks, STILL_CLOCK)


def _close(numbers: Sequence[float], within: float) -> bool:
    return not numbers or max(numbers) <= min(numbers) * (1 + within)


def _plausible(clocks: Iterable[float]) -> tuple[float, ...]:
    """Those that can be clocks."""
    return tuple(hz for hz in clocks if 0 < hz < FASTEST_HZ)


def read_back(card: Watched, lock: Lock, sleep: Callable[[float], None]) -> str:
    """Wait for a lock to be seen, for a second at most: an idle card may show an idle clock until it has work."""
    clock = card.sample().sm_hz
    if lock.sm_hz is None:
        return "at an unknown clock"
    for _ in range(SETTLING):
        if not any(left("SM", lock.sm_hz, [clock], cap=lock.cap)):
            return f"read back at {clock / 1e6:.0f} MHz"
        sleep(PERIOD_S)
        clock = card.sample().sm_hz
    return f"set to {lock.sm_hz / 1e6:.0f} MHz, read {clock / 1e6:.0f} MHz without load; what counts is read under load"


def left(name: str, locked: float | None, seen: Sequence[float], *, cap: bool = False) -> Iterator[Problem]:
    """A clock that was seen elsewhere than where it was locked; of a cap, above it."""
    if locked is None:
        return
    off = [hz for hz in seen if (hz - locked if cap else abs(hz - locked)) > PLAY * locked]
    if off:
        spread = f"{min(off) / 1e6:.0f} to {max(off) / 1e6:.0f} MHz in {len(off)} of {len(seen)} looks"
        evidence = (("locked at", f"{locked / 1e6:.0f} MHz"), ("seen", spread))
        yield Problem(code="clock-moved", what=f"the {name} clock left its lock while measuring", evidence=evidence)
