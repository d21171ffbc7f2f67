"""Tests of core/analysis/roofline."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate import work
from pytest_perfgate.core.analysis.roofline import band, bound, ideal_ns, of_compute, of_memory, place, ridge, roofs
from pytest_perfgate.model.device import Basis, Ceilings, Device, DeviceSpec, Peak, Roof
from pytest_perfgate.model.values import Work
from tests.unit.core.judge.bench import CEILING, HOST, measured

ROOF = Roof(basis=Basis.DATASHEET, compute=(("bf16", 1e15),), bandwidth=4e12, cache_bytes=50e6)


def test_a_large_product_is_held_against_compute():
    at = place(work.gemm(8192, 8192, 8192, dtype="bf16"), 2e6, ROOF)
    assert at.bound == "compute"
    assert at.compute == pytest.approx(2 * 8192**3 / 2e-3 / 1e15)
    assert at.fraction == at.compute


def test_a_stream_beyond_the_cache_is_held_against_memory():
    w = work.copy(400e6)
    assert bound(w, ROOF) == "memory"
    assert ideal_ns(w, ROOF) == pytest.approx(200e3)
    assert place(w, 400e3, ROOF).memory == pytest.approx(0.5)


def test_a_working_set_inside_the_cache_never_meets_the_memory_roof():
    at = place(work.copy(1e6), 1e3, ROOF)
    assert (at.memory, at.bound, at.ideal_ns) == (None, "cache", None)


def test_what_the_roof_does_not_say_stays_unknown():
    at = place(work.gemm(64, 64, 64, dtype="fp8"), 1e3, ROOF)
    assert at.compute is None
    assert at.bound == ""


def test_what_cannot_be_is_no_fraction_and_says_why():
    over = place(work.gemm(8192, 8192, 8192, dtype="bf16"), 1e6, ROOF)
    assert (over.fraction, over.claimed) == (None, pytest.approx(1.0995, abs=1e-3))
    for seconds, wrong in ((1e6, True), (2e6, False)):
        untyped = place(Work(flops=1.1e12), seconds, ROOF)
        assert (untyped.compute, bool(untyped.impossible)) == (None, wrong)
    assert place(Work(flops=1e18), 1.0, Roof(basis=Basis.DATASHEET)).impossible == ""


def test_the_ridge_lies_where_both_bind():
    assert ridge(ROOF, "bf16") == 250
    assert ridge(ROOF, "fp8") is None


@pytest.mark.parametrize(
    ("part", "word"), [(0.9, "excellent"), (0.6, "good"), (0.5, "acceptable"), (0.1, "needs investigation")]
)
def test_bands_have_words(part, word):
    assert band(part) == word


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


@pytest.mark.parametrize(
    ("dtype", "rate"),
    [("fp64", 67e12), ("fp64_tc", 67e12), ("fp8", 2e15), ("fp8_acc32", 2e15), ("fp16_acc16", 330e12), ("fp4", None)],
)
def test_a_product_is_held_against_matrix_units(dtype: str, rate: float | None) -> None:
    compute = (("fp64", 34e12), ("fp64_tc", 67e12), ("fp8", 2e15), ("fp16", 165e12), ("fp16_acc16", 330e12))
    assert Roof(basis=Basis.DATASHEET, compute=compute).rate(dtype) == rate


def test_a_double_product_at_the_rate_of_a_tensor_core_is_possible() -> None:
    compute = (("fp64", 9.7e12), ("fp64_tc", 19.5e12))
    product = work.gemm(8192, 8192, 8192, dtype="fp64")
    placed = place(product, product.flops / 18.5e12 * 1e9, Roof(basis=Basis.DATASHEET, compute=compute))
    assert (placed.impossible, placed.fraction) == ("", pytest.approx(18.5 / 19.5))


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


def test_a_roof_takes_exactly_so_long_and_says_what_it_knows() -> None:
    work = Work(flops=1e12, bytes=1e11, dtype="bf16", working_set=1e9)
    assert of_compute(work, CEILING).least_ns == 1e9
    assert of_memory(work, CEILING, HOST, measured(1.0).identity).least_ns == 1e9
    strange = replace(work, dtype="fp4")
    lacking = of_compute(strange, CEILING)
    assert (lacking.why, lacking.fix) == (
        "there is no measured ceiling for fp4: those of this device are for bf16",
        "`perfgate ceilings` measures no other: count the work in one of these dtypes, or limit tflops or time",
    )
    empty = of_compute(strange, Roof(basis=Basis.CLOCK))
    assert empty.why.endswith("for fp4")
    assert "[tool.perfgate]" in empty.fix
    unmeasured = of_compute(strange, Roof(basis=Basis.CEILING))
    assert (unmeasured.why, unmeasured.fix) == ("there is no measured ceiling for fp4", "perfgate ceilings")
