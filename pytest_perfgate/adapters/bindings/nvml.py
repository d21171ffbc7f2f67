"""NVML, NVIDIA's management library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from pytest_perfgate.adapters.bindings.border import (
    BORDER,
    START_S,
    T,
    probe_availability,
    quiet_import,
    time_limited,
    with_timeout,
)
from pytest_perfgate.model.device import Availability, Device
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.values import value

HARMLESS = 0x1 | 0x2 | 0x100
"""Harmless reasons: idle, a clock that a person set, a clock for the display."""

POWER_CAP = "power cap"
"""The one reason that is a normal state: large products run at the power limit on any sound card."""

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
"""The highest plausible temperature in degrees; a threshold above it, or of zero, is ignored."""

VIOLATIONS = {74: POWER_CAP, 269: "software thermal slowdown", 270: "hardware thermal slowdown", 271: "power brake"}
"""Fields that count, in nanoseconds, how long each reason has held a clock down."""

INSTANT_POWER = 186
"""The field with the milliwatts of this moment."""


@value
class ClockSample:
    """One reading of a device."""

    sm_hz: float
    memory_hz: float
    reasons: int
    temperature: float
    watts: float | None = None
    power: float | None = None
    """The power of this moment, as a share of the limit; the watts of newer cards are an average of a second."""


class Counts(NamedTuple):
    """How long each reason has held the clocks down since the driver started."""

    reasons: Mapping[str, int]
    ticks: int | None = None
    """The tick count of a card that counts in ticks; otherwise nanoseconds are used."""


@value
class CardHealth:
    """A card's report of its own errors; None for what it does not report."""

    uncorrected: int | None = None
    """Uncorrected memory errors since the driver started."""
    corrected: int | None = None
    remapped: int | None = None
    """Rows of its memory that were replaced by spare ones."""
    pending: bool = False
    """Whether a row or a page will be replaced at the next reset."""
    failed: bool = False
    """Whether no spare row was left for one."""


class XidListener:
    """Receives errors that the driver numbers (Xid), from its creation on."""

    maker = "NVML"

    def __init__(self, library: Any, events: Any) -> None:
        self._nvml, self._events = library, events

    @time_limited
    def new_errors(self) -> tuple[int, ...]:
        """Return the errors since the last call."""
        numbers: list[int] = []
        while len(numbers) < _MOST_XIDS:
            try:
                event = self._nvml.nvmlEventSetWait(self._events, 0)
            except self._nvml.NVMLError:  # a timeout means that there are no more
                break
            numbers.append(int(event.eventData))
        return tuple(numbers)


_MOST_XIDS = 100


class NvmlCard:
    """A handle of the library, and the settings of the card that may change."""

    maker = "NVML"

    def __init__(self, library: Any, handle: Any) -> None:
        self._nvml, self._handle, self.failures = library, handle, library.NVMLError

    @time_limited
    def lock(self, sm_hz: float | None) -> None:
        """Lock the SM clock, at base without a frequency."""
        megahertz = TDP if sm_hz is None else self._allowed_clock(round(sm_hz / MEGA))
        self._set(self._nvml.nvmlDeviceSetGpuLockedClocks, megahertz, megahertz)

    def _allowed_clock(self, megahertz: int) -> int:
        """Return the clock; refuse one that the card does not have, where the driver would take the nearest."""
        nvml, handle = self._nvml, self._handle
        memory = self._query(lambda: max(nvml.nvmlDeviceGetSupportedMemoryClocks(handle)))
        clocks = memory and self._query(lambda: list(nvml.nvmlDeviceGetSupportedGraphicsClocks(handle, memory)))
        highest = self._query(lambda: int(nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM)))
        low, high = (min(clocks), max(clocks)) if clocks else (1, highest or megahertz)
        if not low <= megahertz <= high:
            what = f"{megahertz} MHz is no SM clock of this card: it has {low} to {high} MHz"
            fix = "give one of these: perfgate clocks lock --mhz, or lock_mhz in [tool.perfgate.device.NAME]"
            raise PerfgateError("clocks-unsupported", what, fix=fix)
        return megahertz

    @time_limited
    def lock_memory(self) -> float:
        """Lock the memory's clock at its highest, which it holds under any load."""
        nvml = self._nvml
        highest = self._query(lambda: int(nvml.nvmlDeviceGetMaxClockInfo(self._handle, nvml.NVML_CLOCK_MEM)))
        if not highest:
            raise PerfgateError("clocks-unsupported", "NVML does not report the highest clock of its memory")
        self._set(nvml.nvmlDeviceSetMemoryLockedClocks, highest, highest)
        return float(highest * MEGA)

    @time_limited
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

    def _query(self, ask: Callable[[], T]) -> T | None:
        """Return an answer, or None for what the card, or a driver older than its binding, does not support."""
        older = getattr(self._nvml, "NVMLLibraryMismatchError", self._nvml.NVMLError)
        try:
            return ask()
        except (self._nvml.NVMLError, older, *BORDER, AttributeError):
            return None


class Nvml:
    """The library, started once and called by handle; every call has a timeout, whatever the driver does."""

    maker = NvmlCard.maker

    def __init__(self, load: Callable[[], Any] = lambda: quiet_import("pynvml")) -> None:
        self._load = load
        self._module: Any = None

    def availability(self) -> Availability:
        fix = "pip install nvidia-ml-py (it needs NVIDIA's driver)"
        return probe_availability("nvml", self._version, also=self.errors, fix=fix)

    def errors(self) -> tuple[type[Exception], ...]:
        return (self._load().NVMLError,)

    @property
    def library(self) -> Any:
        """Return the module after ``nvmlInit``."""
        if self._module is None:
            module = self._load()
            with_timeout(self.maker, "nvmlInit", module.nvmlInit, START_S)
            self._module = module
        return self._module

    def _version(self) -> str:
        ask = self.library.nvmlSystemGetDriverVersion
        return f"driver {_text(with_timeout(self.maker, 'its version', ask))}"

    def device(self, device: Device) -> NvmlDevice:
        """Return the handle of a device, by UUID or PCI id, since the orders of CUDA and NVML differ."""
        return with_timeout(
            self.maker, f"the device {device.uuid or device.pci}", partial(self._find_device, self.library, device)
        )

    def _find_device(self, nvml: Any, device: Device) -> NvmlDevice:
        uuids = [device.uuid, f"GPU-{device.uuid}", f"MIG-{device.uuid}"] if device.uuid else []
        tries = [
            *((nvml.nvmlDeviceGetHandleByUUID, uuid) for uuid in uuids),
            *([(nvml.nvmlDeviceGetHandleByPciBusId, device.pci)] if device.pci else []),
        ]
        for find, name in tries:
            try:
                handle = find(name.encode())
                if not name.startswith("MIG-"):
                    return NvmlDevice(nvml, handle)
                card = nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)  # clocks and heat are of the card
                return NvmlDevice(nvml, card, used=handle)
            except nvml.NVMLError as error:  # noqa: PERF203 - at most three tries
                if getattr(error, "value", 0) == GPU_IS_LOST:
                    raise PerfgateError("device-lost", f"{device.name}: {error}") from error
        raise PerfgateError("device-unmapped", f"NVML knows no device {device.uuid or device.pci or device.name}")

    def every(self, *, answering: bool = False) -> tuple[NvmlDevice, ...]:
        """Return all devices of the machine, visible to CUDA or not; of lost ones raise, or leave them out."""
        return with_timeout(self.maker, "its devices", partial(self._each, self.library, answering))

    def _each(self, nvml: Any, answering: bool) -> tuple[NvmlDevice, ...]:
        devices = []
        for index in range(nvml.nvmlDeviceGetCount()):
            try:
                devices.append(NvmlDevice(nvml, nvml.nvmlDeviceGetHandleByIndex(index)))
            except nvml.NVMLError as error:  # noqa: PERF203 - the count includes cards that we may not use
                if getattr(error, "value", 0) != NO_PERMISSION and not answering:
                    raise PerfgateError("device-lost", f"card {index} of this machine: {error}") from error
        return tuple(devices)


class NvmlDevice(NvmlCard):
    """One device, in internal units; a MIG instance knows its card."""

    def __init__(self, library: Any, handle: Any, whole: NvmlDevice | None = None, used: Any = None) -> None:
        super().__init__(library, handle)
        self._whole, self._used = whole, used or handle
        """The card that it is a part of, and the part of it that is measured, whose processes alone count."""

    @time_limited
    def parts(self) -> tuple[NvmlDevice, ...]:
        """Return its MIG instances."""
        nvml, handle = self._nvml, self._handle
        count = self._query(lambda: nvml.nvmlDeviceGetMaxMigDeviceCount(handle)) or 0
        find = nvml.nvmlDeviceGetMigDeviceHandleByIndex
        instances = (self._query(partial(find, handle, at)) for at in range(count))
        return tuple(NvmlDevice(nvml, part, self) for part in instances if part is not None)

    @time_limited
    def described(self) -> Device:
        """Return it as a device of the model, with the facts that only NVML knows."""
        nvml, handle = self._nvml, self._handle
        card = self._whole._handle if self._whole else handle  # noqa: SLF001 - its own class
        memory = self._query(lambda: float(nvml.nvmlDeviceGetMemoryInfo(handle).total))  # GB10 shares the host's
        return Device(
            key="",
            name=_text(nvml.nvmlDeviceGetName(handle)),
            kind="gpu",
            index=int(nvml.nvmlDeviceGetIndex(card)),
            uuid=self.uuid(),
            pci=_text(nvml.nvmlDeviceGetPciInfo(card).busId),
            memory_bytes=memory,
            facts=(*self.facts(), *self._instance()),
        )

    def _instance(self) -> tuple[tuple[str, str], ...]:
        if self._whole is None:
            return ()
        number = self._query(lambda: self._nvml.nvmlDeviceGetGpuInstanceId(self._handle))
        return (("instance", str(number)),) if number is not None else ()

    @time_limited
    def uuid(self) -> str:
        return _text(self._nvml.nvmlDeviceGetUUID(self._handle))

    @time_limited
    def facts(self) -> tuple[tuple[str, str], ...]:
        """Return driver, power limits and MIG, as far as they are available."""
        nvml, handle = self._nvml, self._handle
        questions: tuple[tuple[str, Callable[[], str]], ...] = (
            ("driver", lambda: _text(nvml.nvmlSystemGetDriverVersion())),
            ("power limit", lambda: f"{nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000:.0f} W"),
            ("default power limit", lambda: f"{nvml.nvmlDeviceGetPowerManagementDefaultLimit(handle) / 1000:.0f} W"),
            ("mig", lambda: "on" if nvml.nvmlDeviceGetMigMode(handle)[0] else "off"),
        )
        return tuple((name, text) for name, ask in questions if (text := self._query(ask)))

    @time_limited
    def sample(self) -> ClockSample:
        nvml, handle = self._nvml, self._handle
        try:
            return ClockSample(
                sm_hz=nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM) * MEGA,
                memory_hz=(self._query(partial(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_MEM)) or 0) * MEGA,
                reasons=self._reasons(),
                temperature=float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
                watts=self._query(lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000),
                power=self._query(partial(_power_share, nvml, handle)),
            )
        except nvml.NVMLError as error:
            if getattr(error, "value", 0) in {NOT_SUPPORTED, NO_PERMISSION, FUNCTION_NOT_FOUND}:
                raise PerfgateError("clocks-unsupported", f"this device does not report its clocks: {error}") from error
            raise PerfgateError("device-lost", f"NVML stopped answering: {error}") from error

    def _reasons(self) -> int:
        """Return the reasons by the present function; drivers before 535 only have the older one."""
        nvml = self._nvml
        try:
            return int(nvml.nvmlDeviceGetCurrentClocksEventReasons(self._handle))
        except AttributeError:
            return int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle))
        except nvml.NVMLError as error:
            if getattr(error, "value", 0) != FUNCTION_NOT_FOUND:
                raise
            return int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle))

    @time_limited
    def violations(self) -> Counts:
        """Return counters in nanoseconds; empty if the card has none."""
        try:
            fields = self._nvml.nvmlDeviceGetFieldValues(self._handle, list(VIOLATIONS))
        except self._nvml.NVMLError:
            return Counts({})
        return Counts({VIOLATIONS[f.fieldId]: int(f.value.ullVal) for f in fields if f.nvmlReturn == 0})

    @time_limited
    def slowdown_temperature(self) -> float | None:
        nvml = self._nvml
        kind = nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
        degrees = self._query(lambda: float(nvml.nvmlDeviceGetTemperatureThreshold(self._handle, kind)))
        return degrees if degrees and degrees < HOTTEST else None

    @time_limited
    def health(self) -> CardHealth:
        """Return its memory errors, as far as it counts them."""
        nvml, handle = self._nvml, self._handle

        def count(kind: str) -> int:
            errors = nvml.nvmlDeviceGetTotalEccErrors(handle, getattr(nvml, kind), nvml.NVML_VOLATILE_ECC)
            return int(errors)

        kinds = ("NVML_MEMORY_ERROR_TYPE_UNCORRECTED", "NVML_MEMORY_ERROR_TYPE_CORRECTED")
        uncorrected, corrected = (self._query(partial(count, kind)) for kind in kinds)
        rows = self._query(lambda: nvml.nvmlDeviceGetRemappedRows(handle))
        retired = self._query(lambda: nvml.nvmlDeviceGetRetiredPagesPendingStatus(handle))
        return CardHealth(
            uncorrected=uncorrected,
            corrected=corrected,
            remapped=rows[0] + rows[1] if rows else None,
            pending=bool(retired or (rows and rows[2])),
            failed=bool(rows and rows[3]),
        )

    @time_limited
    def listener(self) -> XidListener | None:
        """Return a listener for errors from now on; None if the card reports none."""
        nvml = self._nvml

        def registered() -> XidListener:
            events = nvml.nvmlEventSetCreate()
            nvml.nvmlDeviceRegisterEvents(self._handle, nvml.nvmlEventTypeXidCriticalError, events)
            return XidListener(nvml, events)

        return self._query(registered)

    @time_limited
    def processes(self) -> tuple[int, ...] | None:
        """Return the computing processes; None if the driver does not report them."""
        processes = self._query(lambda: self._nvml.nvmlDeviceGetComputeRunningProcesses(self._used))
        return None if processes is None else tuple(int(process.pid) for process in processes)

    @time_limited
    def energy(self) -> float | None:
        """Return joules since the driver was loaded; None for a card that does not count them."""
        return self._query(lambda: self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle) / 1000)


def _power_share(nvml: Any, handle: Any) -> float | None:
    (power,) = nvml.nvmlDeviceGetFieldValues(handle, [INSTANT_POWER])
    limit = nvml.nvmlDeviceGetEnforcedPowerLimit(handle)
    return float(power.value.uiVal / limit) if power.nvmlReturn == 0 and limit else None


def _text(text: bytes | str) -> str:
    return text.decode() if isinstance(text, bytes) else str(text)


MEGA = 1e6

NOT_SUPPORTED, NO_PERMISSION, GPU_IS_LOST, FUNCTION_NOT_FOUND = 3, 4, 15, 13

TDP = 0xFFFFFF01
"""A locked range with both ends at this value means the base clock."""
