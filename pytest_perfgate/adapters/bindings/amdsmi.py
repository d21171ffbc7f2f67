"""AMD's management library: a device found by its PCI id or UUID, its clocks, its reasons, its processes."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

from pytest_perfgate.adapters.bindings.border import BORDER, probe_availability, quiet_import, sentence
from pytest_perfgate.adapters.bindings.nvml import MEGA, ClockSample
from pytest_perfgate.model.device import Availability, Device
from pytest_perfgate.model.errors import PerfgateError

NOT_SUPPORTED, NO_PERMISSION, NO_DEVICE = (2, 3), 10, (31, 32, 34)
"""Status codes of the library: what a card does not have; what is gone is not found, not started, or not loaded."""
ACTIVE = {
    "active_ppt_pwr": 0x4,
    "active_socket_thrm": 0x20,
    "active_vr_thrm": 0x40,
    "active_hbm_thrm": 0x40,
    "active_prochot_thrm": 0x8,
}
"""What may hold clocks down, with the bit that stands for it in a sample."""


def load_amdsmi() -> Any:
    """The package; without its library it prints, which is none of ours to show, and fails with a KeyError."""
    with redirect_stdout(io.StringIO()) as printed:
        try:
            return quiet_import("amdsmi")
        except KeyError as missing:
            why = printed.getvalue().strip().partition("\n")[0] or str(missing)
            raise ImportError(f"amdsmi cannot load libamd_smi.so: {why}") from missing
        except AttributeError as unlike:
            raise ImportError(f"amdsmi and its libamd_smi.so are of different releases: {unlike}") from unlike


class Amd:
    """The library, started once and asked by handle."""

    cap = True
    """A lock is a highest clock: an idle device falls below it."""

    def __init__(self, load: Callable[[], Any] = load_amdsmi) -> None:
        self._load = load
        self._module: Any = None

    def availability(self) -> Availability:
        mend = "install amdsmi of ROCm, on a machine with AMD's driver"
        return probe_availability("amdsmi", self._version, also=self.errors, mend=mend)

    def errors(self) -> tuple[type[Exception], ...]:
        return (self._load().AmdSmiException,)

    @property
    def library(self) -> Any:
        """The module after ``amdsmi_init``."""
        if self._module is None:
            module = self._load()
            module.amdsmi_init()
            self._module = module
        return self._module

    def _version(self) -> str:
        cards = self.every()
        if not cards:
            raise RuntimeError("amdsmi sees no device")
        return f"driver {dict(cards[0].facts()).get('driver', 'of unknown version')}"

    def device(self, device: Device) -> AmdDevice:
        """The card of a device, by PCI id or UUID."""
        wanted = {plain(device.uuid), plain(device.pci)} - {""}
        found = next((card for card in self.every() if wanted & {plain(card.uuid()), plain(card.bus())}), None)
        if found is None:
            what = f"amdsmi knows no device {device.uuid or device.pci or device.name}"
            raise PerfgateError("device-unmapped", what)
        return found

    def every(self) -> tuple[AmdDevice, ...]:
        """All devices of the machine."""
        library = self.library
        return tuple(AmdDevice(library, handle, at) for at, handle in enumerate(library.amdsmi_get_processor_handles()))


class AmdDevice:
    """One device, in the units of the inside."""

    def __init__(self, library: Any, handle: Any, place: int = 0) -> None:
        self._amd, self._handle, self._place = library, handle, place

    def described(self) -> Device:
        """As a device of the model."""
        amd, handle = self._amd, self._handle
        memory = self._tried(lambda: amd.amdsmi_get_gpu_memory_total(handle, amd.AmdSmiMemoryType.VRAM))
        name = self._tried(lambda: amd.amdsmi_get_gpu_asic_info(handle)["market_name"])
        told = self._tried(lambda: amd.amdsmi_get_gpu_enumeration_info(handle)) or {}
        marks = (("hip uuid", str(told["hip_uuid"])),) if "hip_uuid" in told else ()
        number = told.get("hip_id")
        return Device(
            key="",
            name=str(name or "AMD GPU"),
            kind="gpu",
            index=number if isinstance(number, int) else self._place,
            uuid=self.uuid(),
            pci=self.bus(),
            memory_bytes=float(memory) if memory else None,
            facts=(*self.facts(), *marks),
        )

    def uuid(self) -> str:
        return str(self._amd.amdsmi_get_gpu_device_uuid(self._handle))

    def bus(self) -> str:
        return str(self._tried(lambda: self._amd.amdsmi_get_gpu_device_bdf(self._handle)) or "")

    def facts(self) -> tuple[tuple[str, str], ...]:
        version = self._tried(lambda: self._amd.amdsmi_get_gpu_driver_info(self._handle)["driver_version"])
        return (("driver", str(version)),) if version else ()

    def sample(self) -> ClockSample:
        amd = self._amd
        try:
            return ClockSample(
                sm_hz=self._clock(amd.AmdSmiClkType.GFX) * MEGA,
                memory_hz=(self._tried(lambda: self._clock(amd.AmdSmiClkType.MEM)) or 0.0) * MEGA,
                reasons=self._reasons(),
                temperature=self._temperature(amd.AmdSmiTemperatureMetric.CURRENT),
                watts=self._watts(),
            )
        except (TypeError, ValueError) as error:  # a card that does not tell answers with the word N/A
            raise PerfgateError("clocks-unsupported", f"this device does not tell its clocks: {error}") from error
        except (amd.AmdSmiException, *BORDER) as error:
            if _status(error) in NOT_SUPPORTED:
                what = f"this device does not tell its clocks: {sentence(error)}"
                raise PerfgateError("clocks-unsupported", what) from error
            raise PerfgateError("device-lost", f"amdsmi stopped answering: {sentence(error)}") from error

    def violations(self) -> dict[str, int]:
        """The library counts in ticks of its own; the bits of each look are the evidence here."""
        return {}

    def slowdown_temperature(self) -> float | None:
        kind = self._amd.AmdSmiTemperatureMetric.CRITICAL
        found: float | None = self._tried(lambda: self._temperature(kind))
        return found or None

    def processes(self) -> tuple[int, ...] | None:
        found = self._tried(lambda: self._amd.amdsmi_get_gpu_process_list(self._handle))
        return None if found is None else tuple(int(process["pid"]) for process in found if isinstance(process, dict))

    def lock(self, sm_hz: float | None) -> None:
        """Determinism up to a clock."""
        if sm_hz is None:
            mend = "add lock_mhz to [tool.perfgate.device.NAME]; by hand: perfgate clocks lock --mhz 1500"
            raise PerfgateError("clocks-unsupported", "amdsmi locks at a given clock, and none is known", mend=mend)
        self._set("amdsmi_set_gpu_perf_determinism_mode", round(sm_hz / MEGA))

    def lock_memory(self) -> float:
        """Keep the memory's clock from falling below its highest, where the card has more than one."""
        highest = self._tried(lambda: int(self._told(self._amd.AmdSmiClkType.MEM)["max_clk"]))
        if not highest:
            raise PerfgateError("clocks-unsupported", "amdsmi does not tell the highest clock of its memory")
        self._set("amdsmi_set_gpu_clk_limit", "mclk", "min", highest)
        return float(highest * MEGA)

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
            status = _status(error)
            code = "clocks-denied" if status == NO_PERMISSION else "clocks-unsupported"
            code = "device-lost" if status in NO_DEVICE else code
            raise PerfgateError(code, f"{name}: {sentence(error)}") from error

    def _told(self, kind: Any) -> Any:
        return self._amd.amdsmi_get_clock_info(self._handle, kind)

    def _clock(self, kind: Any) -> float:
        told = self._told(kind)
        return float(told["clk"] if "clk" in told else told["cur_clk"])

    def _temperature(self, metric: Any) -> float:
        kind = self._amd.AmdSmiTemperatureType.HOTSPOT
        return float(self._amd.amdsmi_get_temp_metric(self._handle, kind, metric))

    def _reasons(self) -> int:
        """Bits of what holds clocks down now; a card that does not tell has none."""
        told = self._tried(lambda: self._amd.amdsmi_get_violation_status(self._handle)) or {}
        return sum({bit for name, bit in ACTIVE.items() if told.get(name) in (True, 1)})

    def _watts(self) -> float | None:
        told = self._tried(lambda: self._amd.amdsmi_get_power_info(self._handle)) or {}
        names = ("socket_power", "current_socket_power", "average_socket_power")
        return next((float(told[name]) for name in names if isinstance(told.get(name), (int, float))), None)

    def _tried(self, ask: Callable[[], Any]) -> Any:
        """What some cards do not tell is left out."""
        try:
            return ask()
        except (self._amd.AmdSmiException, *BORDER, AttributeError, TypeError, ValueError):
            return None


def _status(error: Exception) -> int:
    return int(getattr(error, "err_code", 0) or 0)


def plain(name: str) -> str:
    """A UUID or a PCI id as one of its spellings: lower case, without leading zeros and marks."""
    return re.sub(r"[^0-9a-f.]", "", name.lower().removeprefix("gpu-")).lstrip("0").removesuffix(".0")
