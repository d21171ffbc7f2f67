"""The part of AMD's management library that changes a card: its clocks locked, and put back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pytest_perfgate.adapters.bindings.border import BORDER, sentence
from pytest_perfgate.adapters.bindings.nvml_card import MEGA
from pytest_perfgate.adapters.bindings.patience import patient
from pytest_perfgate.model.errors import PerfgateError

NOT_SUPPORTED, NO_PERMISSION, NO_DEVICE = (2, 3), 10, (31, 32, 34)
"""Status codes of the library: what a card does not have; what is gone is not found, not started, or not loaded."""


class AmdCard:
    """A handle of the library, and what may be changed of it."""

    maker = "amdsmi"

    def __init__(self, library: Any, handle: Any) -> None:
        self._amd, self._handle = library, handle

    @patient
    def lock(self, sm_hz: float | None) -> None:
        """Determinism up to a clock."""
        if sm_hz is None:
            mend = "add lock_mhz to [tool.perfgate.device.NAME]; by hand: perfgate clocks lock --mhz 1500"
            raise PerfgateError("clocks-unsupported", "amdsmi locks at a given clock, and none is known", mend=mend)
        self._set("amdsmi_set_gpu_perf_determinism_mode", self._within(round(sm_hz / MEGA)))

    def _within(self, megahertz: int) -> int:
        """A clock that the card has, as far as it tells; while one is set it tells that one as its highest."""
        amd, handle = self._amd, self._handle
        level = self._tried(lambda: amd.amdsmi_get_gpu_perf_level(handle))
        told = self._tried(lambda: self._told(amd.AmdSmiClkType.GFX)) or {}
        low, high = told.get("min_clk"), told.get("max_clk")
        if level != "AMDSMI_DEV_PERF_LEVEL_AUTO" or not (isinstance(low, int) and isinstance(high, int)):
            return megahertz
        if not low <= megahertz <= high:
            what = f"{megahertz} MHz is no clock of this card: it has {low} to {high} MHz"
            mend = "give one of these: perfgate clocks lock --mhz, or lock_mhz in [tool.perfgate.device.NAME]"
            raise PerfgateError("clocks-unsupported", what, mend=mend)
        return megahertz

    @patient
    def lock_memory(self) -> float:
        """Keep the memory's clock from falling below its highest, where the card has more than one."""
        highest = self._tried(lambda: int(self._told(self._amd.AmdSmiClkType.MEM)["max_clk"]))
        if not highest:
            raise PerfgateError("clocks-unsupported", "amdsmi does not tell the highest clock of its memory")
        self._set("amdsmi_set_gpu_clk_limit", "mclk", "min", highest)
        return float(highest * MEGA)

    @patient
    def unlock(self, *, memory: bool = False) -> None:
        """Back to the driver's own control, which is that of the memory as well."""
        del memory
        self._set("amdsmi_set_gpu_perf_level", self._amd.AmdSmiDevPerfLevel.AUTO)

    def _set(self, name: str, *arguments: Any) -> None:
        change = getattr(self._amd, name, None)
        if change is None:
            raise PerfgateError("clocks-unsupported", f"this release of amdsmi has no {name}")
        try:
            change(self._handle, *arguments)
        except (self._amd.AmdSmiException, *BORDER) as error:
            status = refused_with(error)
            code = "clocks-denied" if status == NO_PERMISSION else "clocks-unsupported"
            code = "device-lost" if status in NO_DEVICE else code
            raise PerfgateError(code, f"{name}: {sentence(error)}") from error

    def _told(self, kind: Any) -> Any:
        return self._amd.amdsmi_get_clock_info(self._handle, kind)

    def _tried(self, ask: Callable[[], Any]) -> Any:
        """What some cards do not tell is left out."""
        try:
            return ask()
        except (self._amd.AmdSmiException, *BORDER, AttributeError, TypeError, ValueError):
            return None


def refused_with(error: Exception) -> int:
    return int(getattr(error, "err_code", 0) or 0)
