"""What NVML answers on cards and drivers that do not answer everything."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import pytest

from pytest_perfgate.adapters.bindings.nvml import Nvml, NvmlDevice
from pytest_perfgate.adapters.devices.clocks import NvmlClocks, answering_cards
from pytest_perfgate.adapters.devices.visible import visible_cards
from pytest_perfgate.adapters.runtimes import host as gpu
from pytest_perfgate.app.instrument import lease_name
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import ClockPolicy, Plan


class NVMLLibraryMismatchError(Exception):
    """Not one of the library's other errors."""


class NVMLError(Exception):
    def __init__(self, value: int) -> None:
        self.value = value
        super().__init__(f"status {value}")


def library(**changed):
    def fails(status: int):
        def ask(*arguments):
            raise NVMLError(status)

        return ask

    answers = {
        "nvmlInit": lambda: None,
        "nvmlSystemGetDriverVersion": lambda: "580.1",
        "nvmlDeviceGetHandleByUUID": lambda name: 1,
        "nvmlDeviceGetClockInfo": lambda handle, kind: 1980,
        "nvmlDeviceGetCurrentClocksEventReasons": lambda handle: 1,
        "nvmlDeviceGetCurrentClocksThrottleReasons": lambda handle: 4,
        "nvmlDeviceGetTemperature": lambda handle, sensor: 40,
        "nvmlDeviceGetPowerUsage": lambda handle: 100_000,
    }
    functions = {name: fails(how) if isinstance(how, int) else how for name, how in {**answers, **changed}.items()}
    names = {"NVML_CLOCK_SM": 1, "NVML_CLOCK_MEM": 2, "NVML_TEMPERATURE_GPU": 0, "NVMLError": NVMLError}
    return SimpleNamespace(**names, **functions)


def test_a_driver_before_the_new_name_is_asked_by_the_old_one() -> None:
    assert NvmlDevice(library(), 1).sample().reasons == 1
    assert NvmlDevice(library(nvmlDeviceGetCurrentClocksEventReasons=13), 1).sample().reasons == 4
    with pytest.raises(PerfgateError, match="device-lost"):
        NvmlDevice(library(nvmlDeviceGetCurrentClocksEventReasons=15), 1).sample()


@pytest.mark.parametrize(
    ("answers", "good", "bad"),
    [
        ({"nvmlDeviceGetSupportedMemoryClocks": lambda handle: [405, 3201],
          "nvmlDeviceGetSupportedGraphicsClocks": lambda handle, memory: [1980, 345] if memory == 3201 else [345]},
         (345, 1980), (200, 3000)),
        ({"nvmlDeviceGetSupportedMemoryClocks": 3, "nvmlDeviceGetMaxClockInfo": lambda handle, kind: 1980},
         (200, 1980), (3000,)),
        ({}, (3000,), ()),
    ],
)  # fmt: skip
def test_a_clock_that_the_card_does_not_have_is_refused(answers, good, bad) -> None:
    locked: list[int] = []
    setting = {"nvmlDeviceSetGpuLockedClocks": lambda handle, low, high: locked.append(high)}
    device = NvmlDevice(library(**setting, **answers), 1)
    for megahertz in good:
        device.lock(megahertz * 1e6)
    assert locked == list(good)
    for megahertz in bad:
        with pytest.raises(PerfgateError, match=f"{megahertz} MHz is no SM clock of this card: it has"):
            device.lock(megahertz * 1e6)
    assert locked == list(good)


def test_a_card_that_does_not_tell_its_clocks_is_not_observed_and_not_lost() -> None:
    silent = library(nvmlDeviceGetClockInfo=3)
    clocks = NvmlClocks(Nvml(lambda: silent))
    with clocks.hold(Device(key="", name="vGPU", kind="gpu", uuid="GPU-1"), Plan()) as watch:
        pass
    assert watch.problems() == ()
    assert "does not report its clocks" in dict(watch.facts())["clocks"]


def test_a_card_without_memory_of_its_own_is_described_and_read() -> None:
    shared = library(
        nvmlDeviceGetMemoryInfo=3,
        nvmlDeviceGetName=lambda handle: "NVIDIA GB10",
        nvmlDeviceGetIndex=lambda handle: 0,
        nvmlDeviceGetUUID=lambda handle: "GPU-1",
        nvmlDeviceGetPciInfo=lambda handle: SimpleNamespace(busId="0000000F:01:00.0"),
        nvmlDeviceGetClockInfo=lambda handle, kind: 2418 if kind == 1 else unsupported(),
    )
    device = NvmlDevice(shared, 1)
    assert (device.described().name, device.described().memory_bytes) == ("NVIDIA GB10", None)
    assert (device.sample().sm_hz, device.sample().memory_hz) == (2418e6, 0.0)


def unsupported():
    raise NVMLError(3)


def test_cards_that_a_container_may_not_use_are_not_counted() -> None:
    def handle(status: int, index: int) -> int:
        if index == 0:
            raise NVMLError(status)
        return index

    def cards(status: int):
        counted = {"nvmlDeviceGetCount": lambda: 2, "nvmlDeviceGetHandleByIndex": partial(handle, status)}
        return Nvml(lambda: library(nvmlDeviceGetUUID=lambda index: f"GPU-{index}", **counted)).every()

    assert [card.uuid() for card in cards(4)] == ["GPU-1"]
    for status in (15, 999):
        with pytest.raises(PerfgateError, match="device-lost") as lost:
            cards(status)
        assert lost.value.what.startswith("card 0 of this machine")


def test_a_card_that_is_lost_after_it_was_found_has_a_code() -> None:
    for ask in (NvmlDevice.uuid, NvmlDevice.described):
        with pytest.raises(PerfgateError) as lost:
            ask(NvmlDevice(library(nvmlDeviceGetUUID=15, nvmlDeviceGetName=15, nvmlDeviceGetMemoryInfo=15), 1))
        assert lost.value.code.name == "device-lost"


@pytest.mark.parametrize(
    ("variable", "pick"), [("GPU-2,GPU-0", ["GPU-2", "GPU-0"]), ("GPU-1", []), ("2", None), (None, None)]
)
def test_cards_that_are_named_by_uuid_are_used_beside_a_lost_one(variable, pick) -> None:
    def handle(index: int) -> int:
        if index == 1:
            raise NVMLError(15)
        return index

    some = library(
        nvmlDeviceGetCount=lambda: 3,
        nvmlDeviceGetHandleByIndex=handle,
        nvmlDeviceGetName=lambda index: "NVIDIA H100 80GB HBM3",
        nvmlDeviceGetIndex=lambda index: index,
        nvmlDeviceGetUUID=lambda index: f"GPU-{index}",
        nvmlDeviceGetPciInfo=lambda index: SimpleNamespace(busId=f"0000:{index}0:00.0"),
        nvmlDeviceGetMigDeviceHandleByIndex=3,
    )
    environ = {"CUDA_VISIBLE_DEVICES": variable} if variable else {}
    if pick is None:
        with pytest.raises(PerfgateError, match="device-lost"):
            visible_cards(Nvml(lambda: some), environ)
    else:
        assert [device.uuid for device in visible_cards(Nvml(lambda: some), environ)] == pick


def test_the_doctor_hears_of_a_lost_card_instead_of_ending() -> None:
    lost = library(nvmlDeviceGetCount=lambda: 8, nvmlDeviceGetHandleByIndex=15)
    cards, (text,) = answering_cards(Nvml(lambda: lost))
    assert cards == []
    assert "card 0 of this machine" in text


def test_what_a_driver_cannot_tell_of_a_measurement_is_on_record() -> None:
    def older(*arguments):
        raise NVMLLibraryMismatchError

    detects = library(nvmlDeviceGetComputeRunningProcesses=older, nvmlDeviceGetFieldValues=3)
    detects.NVMLLibraryMismatchError, detects.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = NVMLLibraryMismatchError, 1
    with NvmlClocks(Nvml(lambda: detects)).hold(Device(key="", name="old", kind="gpu", uuid="GPU-1"), Plan()) as watch:
        pass
    facts = dict(watch.facts())
    assert facts["other processes"] == "the device does not report it"
    assert "readings only" in facts["throttling"]
    assert watch.problems() == ()


def test_a_card_that_nothing_names_is_not_observed_and_never_locked() -> None:
    clocks, nameless = NvmlClocks(Nvml(library)), Device(key="", name="some card", kind="gpu")
    with clocks.hold(nameless, Plan()) as watch:
        pass
    assert "some card cannot be matched" in dict(watch.facts())["clocks"]
    plan, why = clocks.settled(nameless, Plan(clocks=ClockPolicy.TRY))
    assert plan.clocks is ClockPolicy.OBSERVE
    assert "some card cannot be matched" in why
    with pytest.raises(PerfgateError, match="clocks-unsupported"), clocks.hold(nameless, Plan(clocks=ClockPolicy.LOCK)):
        pass


def test_a_card_that_is_known_by_its_bus_is_leased_under_the_name_that_others_give_it(monkeypatch) -> None:
    driver = library(nvmlDeviceGetHandleByPciBusId=lambda name: 1, nvmlDeviceGetUUID=lambda handle: "GPU-1111")
    monkeypatch.setattr(gpu, "Nvml", lambda: Nvml(lambda: driver))
    for cached in (gpu.managed, gpu.managed_uuid):
        cached.cache_clear()
    there = Device(key="", name="card", kind="gpu", pci="0000:1B:00.0")
    assert lease_name(gpu.described(there, gpu.no_lookup)) == "1111"
    for cached in (gpu.managed, gpu.managed_uuid):
        cached.cache_clear()


def test_energy_is_in_joules_and_a_card_that_does_not_count_it_says_nothing() -> None:
    assert NvmlDevice(library(nvmlDeviceGetTotalEnergyConsumption=lambda handle: 12_500), 1).energy() == 12.5
    assert NvmlDevice(library(nvmlDeviceGetTotalEnergyConsumption=3), 1).energy() is None
    assert NvmlDevice(library(), 1).energy() is None
