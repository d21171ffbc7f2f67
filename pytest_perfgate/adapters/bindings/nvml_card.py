"""The part of NVML that changes a card: its clocks locked, and put back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pytest_perfgate.adapters.bindings.border import BORDER
from pytest_perfgate.adapters.bindings.patience import patient
from pytest_perfgate.model.errors import PerfgateError

MEGA = 1e6
NOT_SUPPORTED, NO_PERMISSION, GPU_IS_LOST, FUNCTION_NOT_FOUND = 3, 4, 15, 13
TDP = 0xFFFFFF01
"""Both ends of a locked range set to this ask for the base clock."""


class NvmlCard:
    """A handle of the library, and what may be changed of it."""

    maker = "NVML"

    def __init__(self, library: Any, handle: Any) -> None:
        self._nvml, self._handle = library, handle

    @patient
    def lock(self, sm_hz: float | None) -> None:
        """Lock the SM clock, at base where no frequency is given."""
        megahertz = TDP if sm_hz is None else self._within(round(sm_hz / MEGA))
        self._set(self._nvml.nvmlDeviceSetGpuLockedClocks, megahertz, megahertz)

    def _within(self, megahertz: int) -> int:
        """A clock that the card has, as far as the driver tells: it takes another, and goes to the nearest."""
        nvml, handle = self._nvml, self._handle
        memory = self._tried(lambda: max(nvml.nvmlDeviceGetSupportedMemoryClocks(handle)))
        known = memory and self._tried(lambda: list(nvml.nvmlDeviceGetSupportedGraphicsClocks(handle, memory)))
        highest = self._tried(lambda: int(nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM)))
        low, high = (min(known), max(known)) if known else (1, highest or megahertz)
        if not low <= megahertz <= high:
            what = f"{megahertz} MHz is no SM clock of this card: it has {low} to {high} MHz"
            mend = "give one of these: perfgate clocks lock --mhz, or lock_mhz in [tool.perfgate.device.NAME]"
            raise PerfgateError("clocks-unsupported", what, mend=mend)
        return megahertz

    @patient
    def lock_memory(self) -> float:
        """Lock the memory's clock at its highest, which it holds under any load."""
        nvml = self._nvml
        highest = self._tried(lambda: int(nvml.nvmlDeviceGetMaxClockInfo(self._handle, nvml.NVML_CLOCK_MEM)))
        if not highest:
            raise PerfgateError("clocks-unsupported", "NVML does not tell the highest clock of its memory")
        self._set(nvml.nvmlDeviceSetMemoryLockedClocks, highest, highest)
        return float(highest * MEGA)

    @patient
    def unlock(self, *, memory: bool = False) -> None:
        self._set(self._nvml.nvmlDeviceResetGpuLockedClocks)
        if memory:
            self._set(self._nvml.nvmlDeviceResetMemoryLockedClocks)

    def _set(self, change: Callable[..., Any], *arguments: int) -> None:
        try:
            change(self._handle, *arguments)
        except self._nvml.NVMLError as error:
            status = getattr(error, "value", 0)
            code = {NO_PERMISSION: "clocks-denied", GPU_IS_LOST: "device-lost"}.get(status, "clocks-unsupported")
            raise PerfgateError(code, f"{change.__name__}: {error}") from error

    def _tried(self, ask: Callable[[], Any]) -> Any:
        """What some cards, or a driver older than its binding, do not tell is left out."""
        older = getattr(self._nvml, "NVMLLibraryMismatchError", self._nvml.NVMLError)
        try:
            return ask()
        except (self._nvml.NVMLError, older, *BORDER, AttributeError):
            return None
