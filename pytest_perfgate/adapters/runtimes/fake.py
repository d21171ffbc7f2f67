"""A runtime that replays scripted durations, so that the truth is known and no clock is needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_perfgate.model.device import Availability, Device
from pytest_perfgate.model.ports import Call


class FakeEvent:
    """A stamp of the fake device's time."""

    def __init__(self, runtime: FakeRuntime) -> None:
        self._runtime = runtime
        self.stamp = 0.0

    def record(self) -> None:
        self.stamp = self._runtime.device_ns

    def since(self, earlier: Any) -> float:
        return self.stamp - float(earlier.stamp)


class FakeRuntime:
    """Its ``kernel`` takes the next scripted nanoseconds of device time; the script repeats when it ends.

    Two clocks as on a real device: a launch costs the host ``launch_ns`` and returns, the device
    works behind it, and ``synchronize`` lets the host wait. With ``launch_ns=0`` and reading
    ``clock`` the host sees exactly the script.
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
        """One call of the scripted kernel."""
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
        """Replaying costs one launch, however many kernels the call holds."""
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
        taken = self._script[self._at % len(self._script)]
        self._at += 1
        return taken

    def _run(self, duration: float) -> None:
        self.device_ns = max(self.device_ns, self.host_ns) + duration
