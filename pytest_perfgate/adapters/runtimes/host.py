"""The host as a runtime: calls return when they are done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pytest_perfgate.clock import HOST_CLOCK
from pytest_perfgate.model.device import Availability, Device
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.ports import Call

_FLUSH_BYTES = 64 << 20


class HostEvent:
    """A point in the host's time."""

    def __init__(self) -> None:
        self._stamp = 0

    def record(self) -> None:
        self._stamp = HOST_CLOCK.wall()

    def since(self, earlier: Any) -> float:
        return float(self._stamp - earlier._stamp)  # noqa: SLF001 - its own kind


class HostRuntime:
    """Plain Python on the processor."""

    name = "host"

    def __init__(self, probe: Callable[[], Device]) -> None:
        self._probe = probe
        self._device: Device | None = None
        self._evictor: bytearray | None = None

    def availability(self) -> Availability:
        return Availability(name=self.name, usable=True)

    def recognises(self, module_names: frozenset[str]) -> bool:
        """Never by itself: the host is what remains when no other runtime is recognised."""
        del module_names
        return False

    def device(self, index: int = 0) -> Device:
        del index
        if self._device is None:
            self._device = self._probe()
        return self._device

    def synchronize(self) -> None:
        """Nothing runs behind the host's back."""

    def event(self) -> HostEvent:
        return HostEvent()

    def capture(self, call: Call) -> Call:
        raise PerfgateError("graph-unsupported", f"the host has no graphs to capture {call!r} in")

    def flush(self) -> None:
        """Write through twice the last cache."""
        if self._evictor is None:
            size = int(2 * (self.device().cache_bytes or _FLUSH_BYTES / 2))
            self._evictor = bytearray(size)
        line = b"\x01" * 4096
        for start in range(0, len(self._evictor) - 4096, 4096):
            self._evictor[start : start + 4096] = line
