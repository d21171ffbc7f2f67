from __future__ import annotations

import pytest

from pytest_perfgate.core.analysis.roofline import roofs
from pytest_perfgate.model.device import Basis, Ceilings, Device, DeviceSpec, Peak

SPEC = DeviceSpec(
    name="card", pattern="card", arch="sm_90", multiprocessors=132, bandwidth=4.8e12, l2_bytes=60e6,
    memory_bytes=80e9, source="sheet", confidence="high",
    peaks=(Peak(dtype="bf16", datasheet=989.4e12, per_clock_per_sm=4096, implied_hz=1.83e9),),
)  # fmt: skip


def card(**named) -> Device:
    return Device(**{"key": "card", "name": "card", "kind": "gpu", "spec": SPEC, "multiprocessors": 132, **named})


def test_the_peak_is_of_the_clock_that_ran() -> None:
    roof = card(roofs=roofs(card(), [1.4e9, 1.5e9, 1.6e9])).roof(Basis.CLOCK)
    assert roof.clock_hz == 1.5e9
    assert roof.rate("bf16") == 132 * 4096 * 1.5e9
    assert roof.rate("fp8") is None


def test_without_a_clock_there_is_no_peak_at_it() -> None:
    assert [r.basis for r in roofs(card())] == [Basis.DATASHEET]


def test_a_device_without_a_sheet_has_only_what_was_measured() -> None:
    ceilings = Ceilings(device="card", compute=(("fp32", 1e11),), bandwidth=2e10, method="product", when="2026-01-02")
    (roof,) = roofs(card(spec=None), [1e9], ceilings)
    assert roof.basis is Basis.CEILING
    assert roof.rate("fp32") == 1e11
    assert "2026-01-02" in roof.note
    assert roofs(card(spec=None), [1e9]) == ()


def test_a_partition_has_its_part() -> None:
    part = card(name="card MIG 1g.10gb", multiprocessors=16, memory_bytes=9.5e9)
    sheet = card(roofs=roofs(part)).roof(Basis.DATASHEET)
    assert sheet.rate("bf16") == pytest.approx(989.4e12 * 16 / 132)
    assert sheet.bandwidth == 4.8e12 / 8
    assert "16 of 132" in sheet.note


def test_a_partition_of_unknown_memory_has_no_bandwidth_roof() -> None:
    part = card(name="card MIG 1g.10gb", multiprocessors=16, memory_bytes=None)
    assert roofs(part)[0].bandwidth is None


def test_the_last_cache_is_the_larger_one() -> None:
    assert roofs(card(cache_bytes=256e6))[0].cache_bytes == 256e6
    assert roofs(card())[0].cache_bytes == 60e6
