"""Clocks through amdsmi, on a module that behaves as amdsmi does: the same behaviour as with NVML."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from pytest_perfgate.adapters.bindings.amdsmi import Amd
from pytest_perfgate.adapters.devices.clock_locks import read_lock, read_locks
from pytest_perfgate.adapters.devices.clocks import AmdClocks, MachineClocks, NvmlClocks
from pytest_perfgate.adapters.devices.visible import lookup_spec
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import ClockPolicy, Plan
from tests.unit.adapters.devices.fake_amd import BUSES, UUIDS, FakeAmdSmi

LOCK, TRY, OBSERVE = (replace(Plan(), clocks=policy) for policy in list(ClockPolicy)[:3])


@pytest.fixture
def smi(tmp_path, monkeypatch) -> FakeAmdSmi:
    monkeypatch.setenv("PERFGATE_LOCKS", str(tmp_path))
    monkeypatch.delenv("PERFGATE_ROOT_PID", raising=False)
    return FakeAmdSmi()


@pytest.fixture
def clocks(smi) -> AmdClocks:
    return AmdClocks(Amd(lambda: smi), sleep=lambda seconds: None)


def card(at: int = 1) -> Device:
    name = "AMD Instinct MI300X"
    spec = replace(lookup_spec(name), lock_hz=1.9e9)
    return Device(key="", name=name, kind="gpu", arch="gfx942", pci=BUSES[at].upper(), spec=spec)


def codes(clocks, plan=OBSERVE, during=lambda: None) -> list[str]:
    with clocks.hold(card(), plan) as watch:
        during()
    return [problem.code for problem in watch.problems()]


def refused(clocks, plan=LOCK) -> PerfgateError:
    with pytest.raises(PerfgateError) as caught, clocks.hold(card(), plan):
        pass
    return caught.value


def test_a_lock_is_taken_on_the_right_card_and_put_back(clocks, smi) -> None:
    owners = []
    with clocks.hold(card(), LOCK) as watch:
        owners.append(read_lock(UUIDS[1]).pid)
    assert smi.changes == ["init", ("determinism", 1, 1900), ("level", 1, "auto")]
    assert owners == [os.getpid()]
    assert set(watch.clock_hz()) == {1.9e9}
    assert watch.problems() == ()
    assert read_locks() == ()


def test_the_memory_is_kept_at_its_highest_clock_where_it_has_several(clocks, smi) -> None:
    smi.one_clock = 0
    with clocks.hold(card(), LOCK) as watch:
        pass
    assert ("mclk", "min", 1300) in smi.changes
    assert smi.changes[-1] == ("level", 1, "auto")
    assert dict(watch.facts())["memory clock lock"] == "at 1300 MHz"
    assert codes(clocks, LOCK, during=lambda: setattr(smi, "memory", 900)) == ["clock-moved"]


@pytest.mark.parametrize(
    ("change", "why"), [({}, "amdsmi_set_gpu_clk_limit: "), ({"highest": "N/A"}, "does not report")]
)
def test_a_memory_with_one_clock_is_said_and_the_lock_stands(clocks, smi, change, why) -> None:
    vars(smi).update(change)
    with clocks.hold(card(), LOCK) as watch:
        pass
    text = dict(watch.facts())["memory clock lock"]
    assert text.startswith("not available: ")
    assert why in text
    assert watch.problems() == ()


def test_clocks_that_a_card_does_not_tell(clocks, smi) -> None:
    smi.memory = "N/A"
    with clocks.hold(card(), OBSERVE) as watch:
        pass
    assert dict(watch.facts())["memory clock"] == "the device does not report it"
    smi.clock = smi.cap = "N/A"
    with clocks.hold(card(), OBSERVE) as watch:
        pass
    assert "does not report its clocks" in dict(watch.facts())["clocks"]
    assert watch.problems() == ()


def test_a_release_without_limits_is_said(clocks, smi, monkeypatch) -> None:
    monkeypatch.delattr(FakeAmdSmi, "amdsmi_set_gpu_clk_limit")
    with clocks.hold(card(), LOCK) as watch:
        pass
    assert "this release of amdsmi has no amdsmi_set_gpu_clk_limit" in dict(watch.facts())["memory clock lock"]


@pytest.mark.parametrize(("status", "code"), [(10, "clocks-denied"), (2, "clocks-unsupported"), (32, "device-lost")])
def test_a_refused_lock_is_an_error_that_leaves_nothing(clocks, smi, status, code) -> None:
    smi.refuses = status
    assert refused(clocks).code.name == code
    assert read_locks() == ()


def test_without_a_known_clock_there_is_no_lock(clocks, smi) -> None:
    with pytest.raises(PerfgateError, match="lock_mhz"), clocks.hold(replace(card(), spec=None), LOCK):
        pass
    assert smi.changes == ["init"]


@pytest.mark.parametrize(("status", "policy"), [(0, "lock"), (10, "observe"), (2, "observe")])
def test_a_lock_that_is_only_tried(clocks, smi, status, policy) -> None:
    smi.refuses = status
    plan, why = clocks.settled(card(), TRY)
    assert plan.clocks.value == policy
    assert bool(why) is (policy == "observe")
    assert smi.cap == 0


def test_observing_never_touches_the_card(clocks, smi) -> None:
    with clocks.hold(card(), OBSERVE) as watch:
        pass
    facts = dict(watch.facts())
    assert smi.changes == ["init"]
    assert facts["power"] == "640 W at most, 640 W sampled"
    assert facts["memory clock"] == "1300 MHz"
    assert watch.problems() == ()


def test_a_lock_that_cannot_be_put_back_is_said_and_kept_on_file(clocks, smi) -> None:
    smi.keeps = 10
    assert refused(clocks).code.name == "clocks-not-restored"
    assert len(read_locks()) == 1


def test_a_failing_test_puts_the_clocks_back(clocks, smi) -> None:
    with pytest.raises(ZeroDivisionError), clocks.hold(card(), LOCK):
        raise ZeroDivisionError
    assert (smi.cap, read_locks()) == (0, ())


@pytest.mark.parametrize("reason", ["active_socket_thrm", "active_hbm_thrm", "active_prochot_thrm"])
def test_throttling_is_invalid(clocks, smi, reason) -> None:
    assert codes(clocks, during=lambda: smi.active.update({reason: True})) == ["throttled"]


def test_the_power_limit_is_no_fault(clocks, smi) -> None:
    assert codes(clocks, during=lambda: smi.active.update({"active_ppt_pwr": True})) == []


def test_a_clock_above_its_cap_is_invalid_and_one_below_it_is_idle(clocks, smi) -> None:
    assert codes(clocks, LOCK, during=lambda: setattr(smi, "clock", 150)) == []
    smi.clock = 2100
    assert codes(clocks, LOCK, during=lambda: setattr(smi, "cap", 0)) == ["clock-moved"]


def test_a_device_that_is_gone_is_invalid(clocks, smi) -> None:
    assert codes(clocks, during=lambda: setattr(smi, "gone", True)) == ["device-lost"]


def test_a_foreign_process_is_invalid_and_our_own_is_not(clocks, smi) -> None:
    smi.pids = [os.getpid()]
    assert codes(clocks) == []
    smi.pids = [1]
    assert codes(clocks) == ["foreign-process"]


def test_a_hot_device_is_waited_for(clocks, smi) -> None:
    lines: list[str] = []
    MachineClocks(NvmlClocks(), clocks).tell_waits(lines.append)
    smi.temperature, smi.cooling = 99, 3
    assert codes(clocks) == []
    smi.temperature, smi.cooling = 95, 0
    assert codes(clocks) == ["hot"]
    waits = "slows down at 100; this run waits until it has 80, 180 s at most"
    assert [line.split(" has ", 1) for line in lines] == [
        ["AMD Instinct MI300X", f"{heat} degrees C and {waits}"] for heat in (93, 95)
    ]


def test_an_older_library_names_its_clock_otherwise(clocks, smi) -> None:
    smi.clock_key = "cur_clk"
    assert codes(clocks) == []


def test_a_card_that_it_does_not_know_is_an_error(clocks) -> None:
    with (
        pytest.raises(PerfgateError, match="device-unmapped"),
        clocks.hold(replace(card(), pci="0000:99:00.0"), OBSERVE),
    ):
        pass


def test_an_import_that_fails_is_a_reason(smi) -> None:
    def broken():
        raise KeyError("ROCM_PATH")

    clocks = AmdClocks(Amd(broken))
    assert not clocks.availability().usable
    with clocks.hold(card(), OBSERVE) as watch:
        pass
    assert "ROCM_PATH" in dict(watch.facts())["clocks"]
    assert refused(clocks).code.name == "clocks-unsupported"


def test_each_maker_has_its_own_library(smi, clocks) -> None:
    class Other(NvmlClocks):
        def settled(self, device, plan):
            return plan, "asked the other"

    machine = MachineClocks(Other(), clocks)
    assert machine.settled(card(), TRY)[1] == ""
    assert machine.settled(replace(card(), arch="sm_90"), TRY)[1] == "asked the other"
    assert machine.availability().name in {"nvml", "amdsmi"}
