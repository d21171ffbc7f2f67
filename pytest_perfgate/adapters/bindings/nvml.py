"""NVML: a device found by its PCI id or UUID, its clocks, its reasons, its processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from pytest_perfgate.adapters.bindings.border import probe_availability, quiet_import
from pytest_perfgate.adapters.bindings.nvml_card import (
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    MEGA,
    NO_PERMISSION,
    NOT_SUPPORTED,
    NvmlCard,
)
from pytest_perfgate.adapters.bindings.patience import START_S, patient, patiently
from pytest_perfgate.model.device import Availability, Device
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.values import value

HARMLESS = 0x1 | 0x2 | 0x100
"""Idle, a clock that somebody set, a clock for the display."""
POWER_CAP = "power cap"
"""The one reason that is a state: large products run at the power limit, however cool and well the card is."""
REASONS = {
    0x4: POWER_CAP,
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
    0x200: "board limit",
    0x400: "reliability",
}
HOTTEST = 200.0
"""Degrees; a threshold above it, or of nought, is none."""
VIOLATIONS = {74: POWER_CAP, 269: "software thermal slowdown", 270: "hardware thermal slowdown", 271: "power brake"}
"""Fields that count, in nanoseconds, how long a reason has held a clock down."""


@value
class ClockSample:
    """One look at a device."""

    sm_hz: float
    memory_hz: float
    reasons: int
    temperature: float
    watts: float | None = None


class Counts(NamedTuple):
    """How long each reason has held the clocks down, ever since the driver started."""

    held: Mapping[str, int]
    ticks: int | None = None
    """The count of a card that counts in ticks of its own; else they are nanoseconds."""


class Nvml:
    """The library, started once and asked by handle; every question has an end, whatever the driver does."""

    maker = NvmlCard.maker

    def __init__(self, load: Callable[[], Any] = lambda: quiet_import("pynvml")) -> None:
        self._load = load
        self._module: Any = None

    def availability(self) -> Availability:
        mend = "pip install nvidia-ml-py, on a machine with NVIDIA's driver"
        return probe_availability("nvml", self._version, also=self.errors, mend=mend)

    def errors(self) -> tuple[type[Exception], ...]:
        return (self._load().NVMLError,)

    @property
    def library(self) -> Any:
        """The module after ``nvmlInit``."""
        if self._module is None:
            module = self._load()
            patiently(self.maker, "nvmlInit", module.nvmlInit, START_S)
            self._module = module
        return self._module

    def _version(self) -> str:
        ask = self.library.nvmlSystemGetDriverVersion
        return f"driver {_text(patiently(self.maker, 'its version', ask))}"

    def device(self, device: Device) -> NvmlDevice:
        """The handle of a device, by UUID or PCI id: the orders of CUDA and NVML differ."""
        return patiently(
            self.maker, f"the device {device.uuid or device.pci}", partial(self._found, self.library, device)
        )

    def _found(self, nvml: Any, device: Device) -> NvmlDevice:
        uuids = [device.uuid, f"GPU-{device.uuid}", f"MIG-{device.uuid}"] if device.uuid else []
        tries = [
            *((nvml.nvmlDeviceGetHandleByUUID, uuid) for uuid in uuids),
            *([(nvml.nvmlDeviceGetHandleByPciBusId, device.pci)] if device.pci else []),
        ]
        for find, name in tries:
            try:
                handle = find(name.encode() if isinstance(name, str) else name)
                return NvmlDevice(nvml, self._card(handle) if name.startswith("MIG-") else handle)
            except nvml.NVMLError as error:  # noqa: PERF203 - three tries at most
                if getattr(error, "value", 0) == GPU_IS_LOST:
                    raise PerfgateError("device-lost", f"{device.name}: {error}") from error
        raise PerfgateError("device-unmapped", f"NVML knows no device {device.uuid or device.pci or device.name}")

    def _card(self, handle: Any) -> Any:
        """The card of an instance: clocks, temperature and reasons are of the whole card."""
        return self.library.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)

    def every(self) -> tuple[NvmlDevice, ...]:
        """All devices of the machine, visible to CUDA or not."""
        return patiently(self.maker, "its devices", partial(self._each, self.library))

    def _each(self, nvml: Any) -> tuple[NvmlDevice, ...]:
        return tuple(
            NvmlDevice(nvml, nvml.nvmlDeviceGetHandleByIndex(index)) for index in range(nvml.nvmlDeviceGetCount())
        )


class NvmlDevice(NvmlCard):
    """One device, in the units of the inside; an instance of MIG knows the card that it is a part of."""

    def __init__(self, library: Any, handle: Any, whole: NvmlDevice | None = None) -> None:
        super().__init__(library, handle)
        self._whole = whole

    @patient
    def parts(self) -> tuple[NvmlDevice, ...]:
        """The instances that MIG cuts it into."""
        nvml, handle = self._nvml, self._handle
        count = self._tried(lambda: nvml.nvmlDeviceGetMaxMigDeviceCount(handle)) or 0
        find = nvml.nvmlDeviceGetMigDeviceHandleByIndex
        found = (self._tried(partial(find, handle, at)) for at in range(count))
        return tuple(NvmlDevice(nvml, part, self) for part in found if part is not None)

    @patient
    def described(self) -> Device:
        """As a device of the model, with the facts that only NVML knows."""
        nvml, handle = self._nvml, self._handle
        whole = self._whole._handle if self._whole else handle  # noqa: SLF001 - its own kind
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        return Device(
            key="",
            name=_text(nvml.nvmlDeviceGetName(handle)),
            kind="gpu",
            index=int(nvml.nvmlDeviceGetIndex(whole)),
            uuid=self.uuid(),
            pci=_text(nvml.nvmlDeviceGetPciInfo(whole).busId),
            memory_bytes=float(memory.total),
            facts=(*self.facts(), *self._instance()),
        )

    def _instance(self) -> tuple[tuple[str, str], ...]:
        if self._whole is None:
            return ()
        number = self._tried(lambda: self._nvml.nvmlDeviceGetGpuInstanceId(self._handle))
        return (("instance", str(number)),) if number is not None else ()

    @patient
    def uuid(self) -> str:
        return _text(self._nvml.nvmlDeviceGetUUID(self._handle))

    @patient
    def facts(self) -> tuple[tuple[str, str], ...]:
        """Driver, power limits, MIG: what can be had of them."""
        nvml, handle = self._nvml, self._handle
        asked: tuple[tuple[str, Callable[[], str]], ...] = (
            ("driver", lambda: _text(nvml.nvmlSystemGetDriverVersion())),
            ("power limit", lambda: f"{nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000:.0f} W"),
            ("default power limit", lambda: f"{nvml.nvmlDeviceGetPowerManagementDefaultLimit(handle) / 1000:.0f} W"),
            ("mig", lambda: "on" if nvml.nvmlDeviceGetMigMode(handle)[0] else "off"),
        )
        return tuple((name, text) for name, ask in asked if (text := self._tried(ask)))

    @patient
    def sample(self) -> ClockSample:
        nvml, handle = self._nvml, self._handle
        try:
            return ClockSample(
                sm_hz=nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM) * MEGA,
                memory_hz=nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM) * MEGA,
                reasons=self._reasons(),
                temperature=float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
                watts=self._watts(),
            )
        except nvml.NVMLError as error:
            if getattr(error, "value", 0) in {NOT_SUPPORTED, NO_PERMISSION, FUNCTION_NOT_FOUND}:
                raise PerfgateError("clocks-unsupported", f"this device does not tell its clocks: {error}") from error
            raise PerfgateError("device-lost", f"NVML stopped answering: {error}") from error

    def _reasons(self) -> int:
        """By the name of today; drivers before 535 know the older one alone."""
        nvml = self._nvml
        try:
            return int(nvml.nvmlDeviceGetCurrentClocksEventReasons(self._handle))
        except AttributeError:
            return int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle))
        except nvml.NVMLError as error:
            if getattr(error, "value", 0) != FUNCTION_NOT_FOUND:
                raise
            return int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle))

    @patient
    def violations(self) -> Counts:
        """In nanoseconds; nothing where the card has no such counters."""
        try:
            fields = self._nvml.nvmlDeviceGetFieldValues(self._handle, list(VIOLATIONS))
        except self._nvml.NVMLError:
            return Counts({})
        return Counts({VIOLATIONS[f.fieldId]: int(f.value.ullVal) for f in fields if f.nvmlReturn == 0})

    @patient
    def slowdown_temperature(self) -> float | None:
        nvml = self._nvml
        kind = nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
        found: float | None = self._tried(lambda: float(nvml.nvmlDeviceGetTemperatureThreshold(self._handle, kind)))
        return found if found and found < HOTTEST else None

    @patient
    def processes(self) -> tuple[int, ...] | None:
        """Those that compute there; none where the driver does not tell."""
        found = self._tried(lambda: self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle))
        return None if found is None else tuple(int(process.pid) for process in found)

    def _watts(self) -> float | None:
        found: float | None = self._tried(lambda: self._nvml.nvmlDeviceGetPowerUsage(self._handle) / 1000)
        return found


def _text(given: bytes | str) -> str:
    return given.decode() if isinstance(given, bytes) else str(given)
