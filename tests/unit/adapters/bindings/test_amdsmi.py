"""Clocks through amdsmi, on a module that behaves as amdsmi does: the same behaviour as with NVML."""

from __future__ import annotations

import pytest

from pytest_perfgate.adapters.bindings import amdsmi
from pytest_perfgate.adapters.bindings.amdsmi import Amd, AmdDevice, plain
from pytest_perfgate.model.errors import PerfgateError
from tests.unit.adapters.devices.fake_amd import BUSES, UUIDS, AmdSmiLibraryException, FakeAmdSmi


@pytest.fixture
def smi(tmp_path, monkeypatch) -> FakeAmdSmi:
    monkeypatch.setenv("PERFGATE_LOCKS", str(tmp_path))
    monkeypatch.delenv("PERFGATE_ROOT_PID", raising=False)
    return FakeAmdSmi()


def test_spellings_of_one_bus() -> None:
    assert plain("00000000:05:00.0") == plain("0000:05:00.0") != plain("0000:50:00.0")
    assert plain("GPU-12FF74A1-0000-1000-80F6-2EC6F9C5DE6B") == plain(UUIDS[0])


def test_the_device_as_it_tells_itself(smi) -> None:
    device = Amd(lambda: smi).every()[0].described()
    facts = (device.name, device.uuid, device.pci, device.memory_bytes)
    assert facts == ("AMD Instinct MI300X", UUIDS[0], BUSES[0], None)
    assert dict(device.facts)["driver"] == "6.10.5"
    assert "6.10.5" in Amd(lambda: smi).availability().version


def test_a_package_and_a_library_that_do_not_fit_are_a_reason(monkeypatch) -> None:
    def unlike(name: str) -> None:
        raise AttributeError("libamd_smi.so: undefined symbol: amdsmi_get_gpu_board_info")

    monkeypatch.setattr(amdsmi, "quiet_import", unlike)
    availability = Amd().availability()
    assert not availability.usable
    assert "of different releases: libamd_smi.so: undefined symbol" in availability.why


def test_a_card_that_is_lost_after_it_was_found_has_a_code(monkeypatch: pytest.MonkeyPatch) -> None:
    library = FakeAmdSmi()

    def lost(handle: int) -> str:
        raise AmdSmiLibraryException(34)

    monkeypatch.setattr(library, "amdsmi_get_gpu_device_uuid", lost)
    for ask in (AmdDevice.uuid, AmdDevice.described):
        with pytest.raises(PerfgateError) as gone:
            ask(AmdDevice(library, 0))
        assert gone.value.code.name == "device-lost"
