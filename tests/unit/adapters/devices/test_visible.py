"""Numbers and UUIDs as ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES write them."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from pytest_perfgate.adapters.bindings.amdsmi import Amd
from pytest_perfgate.adapters.devices import visible
from pytest_perfgate.adapters.devices.visible import (
    DeviceCatalogue,
    parse_own,
    surroundings_amd,
    visible_amd,
)
from pytest_perfgate.app.instrument import named_device
from pytest_perfgate.app.spread import RunDevices
from pytest_perfgate.core.analysis import work
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.wiring import devices as wired

SPECS = tuple(DeviceCatalogue())


@pytest.mark.parametrize(
    ("device", "entry"),
    [
        ("NVIDIA H200", "H200 SXM"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM5 80GB"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "A100-SXM4-40GB"),
        ("NVIDIA A10", "A10"),
        ("NVIDIA A10G", "A10G"),
        ("NVIDIA H200 NVL", "H200 NVL"),
        ("NVIDIA GeForce RTX 4090", "GeForce RTX 4090"),
        ("NVIDIA GH200 144G HBM3e", "GH200 144GB"),
        ("NVIDIA GH200 480GB", "GH200 96GB"),
        ("NVIDIA B200", "B200"),
        ("NVIDIA GB200", "GB200"),
        ("AMD Instinct MI300X", "Instinct MI300X"),
        ("Tesla T4", "Tesla T4"),
    ],
)
def test_a_device_finds_its_line(device: str, entry: str) -> None:
    spec = DeviceCatalogue().lookup(device)
    assert spec is not None
    assert spec.name == entry


def test_looking_one_up_reads_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    parse = visible.parse_spec
    monkeypatch.setattr(visible, "parse_spec", lambda line, place: read.append(line["name"]) or parse(line, place))
    catalogue = DeviceCatalogue(parse_own(OWN))
    read.clear()
    assert [catalogue.lookup("Tesla T4").name, *read] == ["Tesla T4", "Tesla T4"]
    assert (catalogue.lookup("Vendor My Card 12GB").name, len(read)) == ("My Card", 1)


@pytest.mark.parametrize("device", ["NVIDIA A10M", "NVIDIA H20", "Quadro T400", "NVIDIA GeForce RTX 3090 Ti", ""])
def test_another_part_finds_none(device: str) -> None:
    assert DeviceCatalogue().lookup(device) is None


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: s.name)
def test_printed_rates_agree_with_operations_per_clock(spec) -> None:
    for peak in spec.peaks:
        if peak.datasheet and peak.per_clock_per_sm and peak.implied_hz:
            made = spec.multiprocessors * peak.per_clock_per_sm * peak.implied_hz
            assert made == pytest.approx(peak.datasheet, rel=0.02), peak.dtype


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: s.name)
def test_every_line_is_whole(spec) -> None:
    assert re.compile(spec.pattern)
    assert spec.source
    assert spec.confidence in {"high", "medium", "low"}
    assert spec.bandwidth > 1e11
    assert (spec.sm is not None) == spec.arch.startswith("sm_")
    for ceiling in spec.achievable:
        assert ceiling.datasheet < spec.peak(ceiling.dtype).datasheet


def test_half_precision_means_accumulating_in_single() -> None:
    card = DeviceCatalogue().lookup("NVIDIA GeForce RTX 4090")
    assert card.peak("fp16").datasheet == 165.2e12
    assert card.peak("fp16_acc16").datasheet == 330.3e12


def test_work_can_name_every_type_that_has_a_peak_or_that_machine_code_computes_in() -> None:
    shipped = {peak.dtype for spec in SPECS for peak in spec.peaks}
    computed = {name for names in work.OF_INSTRUCTIONS.values() for name in names}
    assert shipped <= set(visible._DTYPES)
    for name in {*visible._DTYPES, *computed}:
        assert work.dtype_name(name) == name


def test_what_was_reached_is_apart_from_what_is_printed() -> None:
    card = DeviceCatalogue().lookup("AMD Instinct MI300X")
    assert [(p.dtype, p.datasheet) for p in card.achievable] == [("bf16", 708e12)]
    assert card.cache_bytes == 256 * 2**20


def test_a_word_finds_every_line_it_may_mean() -> None:
    specs = DeviceCatalogue().find("sm_90")
    assert {s.name for s in specs} >= {"H100 PCIe", "H200 SXM", "GH200 96GB"}
    assert DeviceCatalogue().find("no such card") == ()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("NVIDIA H100 SXM", ["H100 SXM5 80GB"]),
        ("nvidia h200 sxm", ["H200 SXM"]),
        ("AMD MI325X", ["Instinct MI325X"]),
        ("A100 SXM 80GB", ["A100-SXM4-80GB"]),
        ("NVIDIA A100", ["A100-SXM4-40GB", "A100-SXM4-80GB", "A100-PCIE-40GB", "A100 80GB PCIe"]),
        ("H200", ["H200 SXM", "H200 NVL"]),
        ("GA104", ["GeForce RTX 3070 Ti"]),
        ("NVIDIA", []),
    ],
)
def test_a_device_is_found_by_the_name_that_its_maker_prints(text: str, names: list[str]) -> None:
    assert [spec.name for spec in DeviceCatalogue().find(text)] == names


OWN = {"My Card": {"arch": "sm_90", "multiprocessors": 100, "boost_mhz": 2000, "dense_tflops": {"bf16": 200.0},
                   "bandwidth_gbps": 1000}}  # fmt: skip


def test_the_users_own_device() -> None:
    spec = DeviceCatalogue(parse_own(OWN)).lookup("Vendor My Card 12GB")
    assert spec.bandwidth == 1e12
    assert spec.peak("bf16").per_clock_per_sm == pytest.approx(1000)
    assert spec.peak("bf16").datasheet == 200e12


def test_the_users_own_device_wins() -> None:
    own = parse_own({"slow": {"pattern": "NVIDIA H200$", "bandwidth_gbps": 1}})
    assert DeviceCatalogue(own).lookup("NVIDIA H200").name == "slow"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"bandwith_gbps": 1}, "bandwith_gbps"),
        ({"bandwidth_gbps": "4 TB/s"}, "positive number"),
        ({"bandwidth_gbps": -1}, "positive number"),
        ({"pattern": "("}, "subpattern"),
        ({"dense_tflops": {"bf16": 0}}, "positive number"),
        ({"dense_tflops": {"bf17": 200}}, "'bf17' is not one of fp64"),
        ({"l2_mib": float("inf")}, "positive number"),
        ({"sm": [1, 2]}, "values to unpack"),
        ("H200", "not a table"),
    ],
)
def test_a_device_that_does_not_read_says_where(table, message: str) -> None:
    with pytest.raises(PerfgateError, match=message) as caught:
        parse_own({"X": table})
    assert caught.value.code.name == "device-entry"
    assert "pyproject.toml" in str(caught.value)


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
    devices = visible_amd(Amd(lambda: library(**changed)), env)
    assert [device.index for device in devices] == list(range(len(devices)))
    return [device.pci[5] for device in devices]


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
    assert named_device(devices, "1") is named_device(devices, devices[1].uuid) is devices[1]


def test_the_fleet_is_amds_where_there_is_no_other(monkeypatch) -> None:
    from pytest_perfgate.adapters.bindings import amdsmi, nvml

    def missing(*arguments):
        raise OSError("no libnvidia-ml.so.1")

    monkeypatch.setattr(nvml, "quiet_import", missing)
    monkeypatch.setattr(amdsmi, "quiet_import", lambda name: library())
    for name in ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    fleet: RunDevices = wired.fleet()
    assert len(fleet.of_same_kind) == 4
    assert fleet.surroundings(fleet.devices[2:3]) == {"HIP_VISIBLE_DEVICES": "2"}
    monkeypatch.setattr(amdsmi, "quiet_import", missing)
    assert wired.fleet().devices == ()


def test_the_overhead_of_a_plugins_timer_is_not_known_and_no_reason_to_refuse_it() -> None:
    """The doctor said of such a timer that it does not work here, whatever its own availability says."""
    runtime = wired.host_runtime()
    assert wired.finest(runtime, "stopwatch") == wired.finest(runtime, "auto") == (None, None)
    with pytest.raises(PerfgateError) as error:
        wired.finest(runtime, "events")
    assert error.value.code.name == "timer-unsuited"
