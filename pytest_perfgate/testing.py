"""Runtimes with known true times, for the tests of a timer or a plugin."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

from pytest_perfgate.model.device import Availability, Device

if TYPE_CHECKING:
    from pytest_perfgate.model.ports import Call

__all__ = ["FakeEvent", "FakeRuntime", "SimulatedEvent", "SimulatedGpu"]


class FakeEvent:
    """A time of the fake device."""

    def __init__(self, runtime: FakeRuntime) -> None:
        self._runtime = runtime
        self.stamp = 0.0

    def record(self) -> None:
        self.stamp = self._runtime.device_ns

    def since(self, earlier: Any) -> float:
        return self.stamp - float(earlier.stamp)


class FakeRuntime:
    """Each call of its ``kernel`` takes the next of the scripted nanoseconds; the script repeats.

    Two clocks as on a real device: a launch costs the host ``launch_ns`` and returns, the device works asynchronously,
    and ``synchronize`` lets the host wait. With ``launch_ns=0`` and reading ``clock`` the host sees exactly the script.
    """

    name = "fake"

    def __init__(self, script: Sequence[float], *, launch_ns: float = 0.0, waits: bool = True) -> None:
        if not script:
            raise ValueError("a fake needs at least one duration to replay")
        self._script, self._at = tuple(script), 0
        self._launch_ns, self._waits = launch_ns, waits
        self.host_ns = self.device_ns = 0.0
        self.flushes = 0

    def kernel(self) -> None:
        """Make one call of the scripted kernel."""
        self.host_ns += self._launch_ns
        self._run(self._next())
        if self._waits:
            self.synchronize()

    def clock(self) -> int:
        return int(self.host_ns)

    def availability(self) -> Availability:
        return Availability(name=self.name, usable=True)

    def recognises(self, module_names: frozenset[str]) -> bool:
        del module_names
        return False

    def device(self, index: int = 0) -> Device:
        return Device(key="fake", name="Fake device", kind="gpu", index=index, cache_bytes=float(1 << 20))

    def synchronize(self) -> None:
        self.host_ns = max(self.host_ns, self.device_ns)

    def event(self) -> FakeEvent:
        return FakeEvent(self)

    def capture(self, call: Call) -> Call:
        """Return a replay, which costs one launch, however many kernels the call has."""
        before, at, launch = (self.host_ns, self.device_ns), self._at, self._launch_ns
        self._launch_ns = 0.0
        call()
        count = self._at - at
        self._launch_ns, (self.host_ns, self.device_ns), self._at = launch, before, at

        def replay() -> None:
            self.host_ns += self._launch_ns
            for _ in range(count):
                self._run(self._next())
            if self._waits:
                self.synchronize()

        return replay

    def flush(self) -> None:
        self.flushes += 1

    def _next(self) -> float:
        duration = self._script[self._at % len(self._script)]
        self._at += 1
        return duration

    def _run(self, duration: float) -> None:
        self.device_ns = max(self.device_ns, self.host_ns) + duration


Step = tuple[int, Callable[[float], None]]
"""The stream, and what happens at its start."""


class SimulatedEvent:
    """A time of the simulated device."""

    def __init__(self, gpu: SimulatedGpu) -> None:
        self._gpu = gpu
        self.stamp = float("nan")

    def record(self) -> None:
        self._gpu.submit(self._pass, self._gpu.event_ns)

    def since(self, earlier: Any) -> float:
        return self.stamp - float(earlier.stamp)

    def _pass(self, begins: float) -> None:
        self.stamp = begins
        self._gpu.ready[0] = begins + self._gpu.event_gap_ns


class SimulatedGpu:
    """Launches cost the host ``launch_ns`` and are queued; the device executes them in order.

    ``noise`` multiplies the durations of kernels in turn. All times are those of the simulation: ``clock`` is the
    host's.
    """

    name = "simulated"
    cuda = True

    def __init__(
        self,
        *,
        launch_ns: float = 4_000.0,
        event_ns: float = 1_000.0,
        event_gap_ns: float = 1_500.0,
        cold: float = 1.0,
        noise: Iterable[float] = (),
    ) -> None:
        self.launch_ns, self.event_ns, self.event_gap_ns, self.cold = launch_ns, event_ns, event_gap_ns, cold
        self.now = 0.0
        self.ready = [0.0, 0.0]
        self.flushes = self.launches = 0
        self.executed: list[tuple[float, float, int]] = []
        """Start, end and stream of every kernel that ran."""
        self.lost = False
        self._noise = iter(noise) if noise else repeat(1.0)
        self._is_cold = False
        self._held: list[Step] | None = None
        self._released = threading.Event()
        self._captured: list[tuple[float, int]] | None = None

    # What a test's kernel uses.

    def kernel(self, nanoseconds: float, stream: int = 0) -> None:
        """Launch a kernel of this length."""
        if self._captured is not None:
            self._captured.append((nanoseconds, stream))
            return
        self.launches += 1
        self.submit(lambda begins: self._run(begins, nanoseconds, stream), self.launch_ns, stream)

    def clock(self) -> int:
        return int(self.now)

    # The port.

    def availability(self) -> Availability:
        return Availability(name=self.name, usable=True)

    def recognises(self, module_names: frozenset[str]) -> bool:
        del module_names
        return False

    def device(self, index: int = 0) -> Device:
        return Device(key="simulated", name="Simulated GPU", kind="gpu", index=index, cache_bytes=float(1 << 20))

    def synchronize(self) -> None:
        self._wait(max(self.ready))

    def wait(self, event: SimulatedEvent) -> None:
        self._wait(event.stamp)

    def event(self) -> SimulatedEvent:
        return SimulatedEvent(self)

    def capture(self, call: Call) -> Call:
        kernels: list[tuple[float, int]] = []
        self._captured = kernels
        try:
            call()
        finally:
            self._captured = None
        return lambda: self.submit(lambda begins: self._replay(begins, kernels), self.launch_ns)

    def flush(self) -> None:
        self.flushes += 1
        self.submit(self._evict, self.launch_ns)

    def block(self) -> Callable[[], None]:
        self._held = []
        self._released.clear()
        return self._release

    def notes(self) -> tuple[tuple[str, str], ...]:
        return (("simulated", "times are those of a simulation"),)

    # How it works.

    def submit(self, work: Callable[[float], None], cost: float, stream: int = 0) -> None:
        """Charge the host for the request; the device starts it when it is free and not blocked."""
        self.now += cost
        if self._held is not None:
            self._held.append((stream, work))
        else:
            work(max(self.now, self.ready[stream]))

    def _release(self) -> None:
        queue, self._held = self._held or [], None
        for stream, work in queue:
            work(max(self.now, self.ready[stream]))
        self._released.set()

    def _wait(self, until: float) -> None:
        if self.lost:
            raise RuntimeError("the simulated device fell off the bus")
        if self._held is not None:
            self._released.wait()
        self.now = max(self.now, until) + self.event_ns

    def _run(self, begins: float, nanoseconds: float, stream: int) -> None:
        scale = self.cold if self._is_cold else 1.0
        self._is_cold = False
        self.ready[stream] = begins + nanoseconds * scale * next(self._noise, 1.0)
        self.executed.append((begins, self.ready[stream], stream))

    def _replay(self, begins: float, kernels: list[tuple[float, int]]) -> None:
        for nanoseconds, stream in kernels:
            self._run(max(begins, self.ready[stream]), nanoseconds, stream)

    def _evict(self, begins: float) -> None:
        self._is_cold = True
        self.ready[0] = begins + 100_000.0
