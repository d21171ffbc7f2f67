"""Numbers and UUIDs as ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES write them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pytest_perfgate.adapters.bindings.amdsmi import Amd
from pytest_perfgate.adapters.devices.visible import surroundings_amd, visible_amd
from pytest_perfgate.app.spread import Fleet, picked
from pytest_perfgate.wiring import devices as wired

HIP_IDS = (2, 0, 1, 3)
"""By place in the library: it counts otherwise than HIP does."""


class Error(Exception):
    """The library's own."""


def library(**changed):
    return SimpleNamespace(
        **{
            "AmdSmiException": Error,
            "AmdSmiMemoryType": SimpleNamespace(VRAM=0),
            "amdsmi_init": lambda: None,
            "amdsmi_get_processor_handles": lambda: [0, 1, 2, 3],
            "amdsmi_get_gpu_device_uuid": lambda at: f"{at}ff74a1-0000",
            "amdsmi_get_gpu_device_bdf": lambda at: f"0000:{at}5:00.0",
            "amdsmi_get_gpu_asic_info": lambda at: {"market_name": "AMD Instinct MI300X"},
            "amdsmi_get_gpu_driver_info": lambda at: {"driver_version": "6.10.5"},
            "amdsmi_get_gpu_memory_total": lambda at, kind: 192 << 30,
            "amdsmi_get_gpu_enumeration_info": lambda at: {"hip_id": HIP_IDS[at], "hip_uuid": f"GPU-{at}a"},
            **changed,
        }
    )


def shown(env, **changed) -> list[str]:
    found = visible_amd(Amd(lambda: library(**changed)), env)
    assert [device.index for device in found] == list(range(len(found)))
    return [device.pci[5] for device in found]


@pytest.mark.parametrize(
    ("env", "cards"),
    [
        ({}, "1203"),
        ({"HIP_VISIBLE_DEVICES": "2,0"}, "01"),
        ({"CUDA_VISIBLE_DEVICES": "1"}, "2"),
        ({"HIP_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "1"}, "1"),
        ({"ROCR_VISIBLE_DEVICES": "3,1"}, "32"),
        ({"ROCR_VISIBLE_DEVICES": "3,1", "HIP_VISIBLE_DEVICES": "1"}, "2"),
        ({"ROCR_VISIBLE_DEVICES": "GPU-2a"}, "2"),
        ({"HIP_VISIBLE_DEVICES": "1,9,0"}, "2"),
        ({"HIP_VISIBLE_DEVICES": "-1"}, ""),
        ({"HIP_VISIBLE_DEVICES": ""}, ""),
    ],
)
def test_what_libraries_see_is_read_as_hip_reads_it(env, cards) -> None:
    assert "".join(shown(env)) == cards


def test_an_older_library_counts_as_it_lists() -> None:
    assert shown({}, amdsmi_get_gpu_enumeration_info=None) == list("0123")


def test_a_lane_sees_its_own_card_by_the_number_that_hip_gives() -> None:
    env = {"ROCR_VISIBLE_DEVICES": "3,1,0", "HIP_VISIBLE_DEVICES": "2,1"}
    devices = visible_amd(Amd(library), env)
    assert [surroundings_amd([device], env) for device in devices] == [
        {"HIP_VISIBLE_DEVICES": "2"},
        {"HIP_VISIBLE_DEVICES": "1"},
    ]
    both = surroundings_amd(devices, {**env, "CUDA_VISIBLE_DEVICES": "7"})
    assert both == {"HIP_VISIBLE_DEVICES": "2,1", "CUDA_VISIBLE_DEVICES": "2,1"}
    assert picked(devices, "1") is picked(devices, devices[1].uuid) is devices[1]


def test_the_fleet_is_amds_where_there_is_no_other(monkeypatch) -> None:
    from pytest_perfgate.adapters.bindings import amdsmi, nvml

    def missing(*given):
        raise OSError("no libnvidia-ml.so.1")

    monkeypatch.setattr(nvml, "quiet_import", missing)
    monkeypatch.setattr(amdsmi, "quiet_import", lambda name: library())
    for name in ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    fleet: Fleet = wired.fleet()
    assert len(fleet.alike) == 4
    assert fleet.surroundings(fleet.devices[2:3]) == {"HIP_VISIBLE_DEVICES": "2"}
    monkeypatch.setattr(amdsmi, "quiet_import", missing)
    assert wired.fleet().devices == ()
