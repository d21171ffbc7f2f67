"""AMD SMI, the management library."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from typing import Any

from pytest_perfgate.adapters.bindings.border import (
    BORDER,
    START_S,
    probe_availability,
    quiet_import,
    sentence,
    time_limited,
    with_timeout,
)
from pytest_perfgate.adapters.bindings.nvml import MEGA, ClockSample, Counts
from pytest_perfgate.model.device import Availability, Device
from pytest_perfgate.model.errors import PerfgateError

ACTIVE = {
    "active_ppt_pwr": 0x4,
    "active_socket_thrm": 0x20,
    "active_vr_thrm": 0x40,
    "active_hbm_thrm": 0x40,
    "active_prochot_thrm": 0x8,
}
"""What may hold clocks down, with its bit in a sample."""

RESIDENCY = {
    "ppt_residency_acc": "power cap",
    "socket_thm_residency_acc": "software thermal slowdown",
    "vr_thm_residency_acc": "hardware thermal slowdown of the regulators",
    "hbm_thm_residency_acc": "hardware thermal slowdown of the memory",
    "prochot_residency_acc": "hardware slowdown",
}
"""Counters of how long each reason held clocks down, in ticks of the accumulation counter."""

TICKS = "accumulation_counter"


def load_amdsmi() -> Any:
    """Return the package; without its library the import prints, which is suppressed, and raises a KeyError."""
    with redirect_stdout(io.StringIO()) as printed:
        try:
            return quiet_import("amdsmi")
        except KeyError as missing:
            why = printed.getvalue().strip().partition("\n")[0] or str(missing)
            raise ImportError(f"amdsmi cannot load libamd_smi.so: {why}") from missing
        except AttributeError as unlike:
            raise ImportError(f"amdsmi and its libamd_smi.so are of different releases: {unlike}") from unlike


class AmdCard:
    """A handle of the library, and the settings of the card that may change."""

    maker = "amdsmi"

    def __init__(self, library: Any, handle: Any) -> None:
        self._amd, self._handle, self.failures = library, handle, library.AmdSmiException

    @time_limited
    def lock(self, sm_hz: float | None) -> None:
        """Limit the SM clock to a deterministic maximum."""
        if sm_hz is None:
            fix = "add lock_mhz to [tool.perfgate.device.NAME]; by hand: perfgate clocks lock --mhz 1500"
            raise PerfgateError("clocks-unsupported", "amdsmi locks at a given clock, and none is known", fix=fix)
        self._set("amdsmi_set_gpu_perf_determinism_mode", self._allowed_clock(round(sm_hz / MEGA)))

    def _allowed_clock(self, megahertz: int) -> int:
        """Return the clock; refuse one outside the card's range, which is unknown while another is set."""
        amd, handle = self._amd, self._handle
        level = self._query(lambda: amd.amdsmi_get_gpu_perf_level(handle))
        answer = self._query(lambda: self._clock_info(amd.AmdSmiClkType.GFX)) or {}
        low, high = answer.get("min_clk"), answer.get("max_clk")
        if level != "AMDSMI_DEV_PERF_LEVEL_AUTO" or not (isinstance(low, int) and isinstance(high, int)):
            return megahertz
        if not low <= megahertz <= high:
            what = f"{megahertz} MHz is not a clock of this card: it has {low} to {high} MHz"
            fix = "give one of these: perfgate clocks lock --mhz, or lock_mhz in [tool.perfgate.device.NAME]"
            raise PerfgateError("clocks-unsupported", what, fix=fix)
        return megahertz

    @time_limited
    def lock_memory(self) -> float:
        """Lock the memory's clock at its highest, as its lower limit."""
        highest = self._query(lambda: int(self._clock_info(self._amd.AmdSmiClkType.MEM)["max_clk"]))
        if not highest:
            raise PerfgateError("clocks-unsupported", "amdsmi does not report the highest clock of its memory")
        self._set("amdsmi_set_gpu_clk_limit", "mclk", "min", highest)
        return float(highest * MEGA)

    @time_limited
    def unlock(self, *, memory: bool = False) -> None:
        """Return the clocks to the driver's control, including the memory's."""
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

    def _clock_info(self, kind: Any) -> Any:
        return self._amd.amdsmi_get_clock_info(self._handle, kind)

    def _query(self, ask: Callable[[], Any]) -> Any:
        """Return an answer, or None for what the card does not support."""
        try:
            return ask()
        except (self._amd.AmdSmiException, *BORDER, AttributeError, TypeError, ValueError):
            return None


class Amd:
    """The library, started once and called by handle; every call has a timeout, whatever the driver does."""

    maker = AmdCard.maker
    cap = True
    """A lock is only an upper bound: the clock of an idle device falls below it."""

    def __init__(self, load: Callable[[], Any] = load_amdsmi) -> None:
        self._load = load
        self._module: Any = None

    def availability(self) -> Availability:
        fix = "install amdsmi of ROCm (it needs AMD's driver)"
        return probe_availability("amdsmi", self._version, also=self.errors, fix=fix)

    def errors(self) -> tuple[type[Exception], ...]:
        return (self._load().AmdSmiException,)

    @property
    def library(self) -> Any:
        """Return the module after ``amdsmi_init``."""
        if self._module is None:
            module = self._load()
            with_timeout(self.maker, "amdsmi_init", module.amdsmi_init, START_S)
            self._module = module
        return self._module

    def _version(self) -> str:
        cards = self.every()
        if not cards:
            raise RuntimeError("amdsmi sees no device")
        return f"driver {dict(cards[0].facts()).get('driver', 'of unknown version')}"

    def device(self, device: Device) -> AmdDevice:
        """Return the card of a device, by PCI id or UUID."""
        wanted = {plain(device.uuid), plain(device.pci)} - {""}
        match = next((card for card in self.every() if wanted & {plain(card.uuid()), plain(card.bus())}), None)
        if match is None:
            what = f"amdsmi knows no device {device.uuid or device.pci or device.name}"
            raise PerfgateError("device-unmapped", what)
        return match

    def every(self) -> tuple[AmdDevice, ...]:
        return with_timeout(self.maker, "its devices", partial(self._each, self.library))

    def _each(self, library: Any) -> tuple[AmdDevice, ...]:
        return tuple(AmdDevice(library, handle, at) for at, handle in enumerate(library.amdsmi_get_processor_handles()))


class AmdDevice(AmdCard):
    """One device, in internal units."""

    def __init__(self, library: Any, handle: Any, place: int = 0) -> None:
        super().__init__(library, handle)
        self._place = place
        self._counts: bool | None = None
        """Whether the card counts how long each reason holds its clocks down; None before the first reading."""

    @time_limited
    def described(self) -> Device:
        """Return it as a device of the model."""
        amd, handle = self._amd, self._handle
        memory = self._query(lambda: amd.amdsmi_get_gpu_memory_total(handle, amd.AmdSmiMemoryType.VRAM))
        name = self._query(lambda: amd.amdsmi_get_gpu_asic_info(handle)["market_name"])
        answer = self._query(lambda: amd.amdsmi_get_gpu_enumeration_info(handle)) or {}
        marks = (("hip uuid", str(answer["hip_uuid"])),) if "hip_uuid" in answer else ()
        number = answer.get("hip_id")
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

    @time_limited
    def uuid(self) -> str:
        return str(self._amd.amdsmi_get_gpu_device_uuid(self._handle))

    @time_limited
    def bus(self) -> str:
        return str(self._query(lambda: self._amd.amdsmi_get_gpu_device_bdf(self._handle)) or "")

    @time_limited
    def facts(self) -> tuple[tuple[str, str], ...]:
        version = self._query(lambda: self._amd.amdsmi_get_gpu_driver_info(self._handle)["driver_version"])
        return (("driver", str(version)),) if version else ()

    @time_limited
    def sample(self) -> ClockSample:
        amd = self._amd
        try:
            return ClockSample(
                sm_hz=self._clock(amd.AmdSmiClkType.GFX) * MEGA,
                memory_hz=(self._query(lambda: self._clock(amd.AmdSmiClkType.MEM)) or 0.0) * MEGA,
                reasons=self._reasons(),
                temperature=self._temperature(amd.AmdSmiTemperatureMetric.CURRENT),
                watts=self._watts(),
            )
        except (TypeError, ValueError) as error:  # a card without this value returns the text N/A
            raise PerfgateError("clocks-unsupported", f"this device does not report its clocks: {error}") from error
        except (amd.AmdSmiException, *BORDER) as error:
            if refused_with(error) in NOT_SUPPORTED:
                what = f"this device does not report its clocks: {sentence(error)}"
                raise PerfgateError("clocks-unsupported", what) from error
            raise PerfgateError("device-lost", f"amdsmi stopped answering: {sentence(error)}") from error

    @time_limited
    def violations(self) -> Counts:
        """Return counters in the card's own ticks; empty for a card without them, as those before MI300."""
        answer = self._query(lambda: self._amd.amdsmi_get_gpu_metrics_info(self._handle)) or {}
        ticks = answer.get(TICKS)
        residencies = {name: answer[key] for key, name in RESIDENCY.items() if isinstance(answer.get(key), int)}
        self._counts = isinstance(ticks, int) and bool(residencies)
        return Counts(residencies, ticks) if self._counts else Counts({})

    @time_limited
    def slowdown_temperature(self) -> float | None:
        kind = self._amd.AmdSmiTemperatureMetric.CRITICAL
        degrees: float | None = self._query(lambda: self._temperature(kind))
        return degrees or None

    @time_limited
    def processes(self) -> tuple[int, ...] | None:
        processes = self._query(lambda: self._amd.amdsmi_get_gpu_process_list(self._handle))
        return (
            None
            if processes is None
            else tuple(int(process["pid"]) for process in processes if isinstance(process, dict))
        )

    def _clock(self, kind: Any) -> float:
        clock = self._clock_info(kind)
        return float(clock["clk"] if "clk" in clock else clock["cur_clk"])

    def _temperature(self, metric: Any) -> float:
        kind = self._amd.AmdSmiTemperatureType.HOTSPOT
        return float(self._amd.amdsmi_get_temp_metric(self._handle, kind, metric))

    def _reasons(self) -> int:
        """Return the bits of what holds clocks down now; 0 if unknown.

        The library reads counters twice for this, a tenth of a second apart. A card with readable counters does not
        need it.
        """
        if self._counts is None:
            self.violations()
        if self._counts:
            return 0
        answer = self._query(lambda: self._amd.amdsmi_get_violation_status(self._handle)) or {}
        return sum({bit for name, bit in ACTIVE.items() if answer.get(name) in (True, 1)})

    def _watts(self) -> float | None:
        answer = self._query(lambda: self._amd.amdsmi_get_power_info(self._handle)) or {}
        names = ("socket_power", "current_socket_power", "average_socket_power")
        return next((float(answer[name]) for name in names if isinstance(answer.get(name), (int, float))), None)


def plain(name: str) -> str:
    """Return one spelling of a UUID or a PCI id: lower case, without leading zeros and marks."""
    return re.sub(r"[^0-9a-f.]", "", name.lower().removeprefix("gpu-")).lstrip("0").removesuffix(".0")


NOT_SUPPORTED, NO_PERMISSION, NO_DEVICE = (2, 3), 10, (31, 32, 34)
"""Status codes: not supported; no permission; device not found, not started, or not loaded."""


def refused_with(error: Exception) -> int:
    return int(getattr(error, "err_code", 0) or 0)
