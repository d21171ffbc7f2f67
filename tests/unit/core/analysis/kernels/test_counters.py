"""AMD's counters in the terms of the one classifier."""

from __future__ import annotations

import pytest

from pytest_perfgate.adapters.devices.visible import lookup_spec
from pytest_perfgate.core.analysis.kernels.counters import amd_numbers, collected_with, memory_bytes
from pytest_perfgate.core.analysis.kernels.diagnosis import diagnose
from pytest_perfgate.model.profiles import Counter, KernelFacts, Resources

SPEC = lookup_spec("MI300X")
MOVED = {
    "TCC_EA0_RDREQ_sum": 100.0, "TCC_EA0_RDREQ_32B_sum": 10.0, "TCC_EA0_WRREQ_sum": 50.0, "TCC_EA0_WRREQ_64B_sum": 40.0,
    "TCC_BUBBLE_sum": 0.0,
}  # fmt: skip
IDLE = {
    **{f"SQ_INSTS_VALU_{op}_F{bits}": 0.0 for op in ("ADD", "MUL", "TRANS", "FMA") for bits in (16, 32, 64)},
    **{f"SQ_INSTS_VALU_MFMA_MOPS_{kind}": 0.0 for kind in ("F16", "BF16", "F32", "F64", "I8")},
}


def facts(counters: dict[str, float], duration: float | None = 1e3, **more: object) -> KernelFacts:
    return KernelFacts(
        name="k",
        arch="gfx942",
        counters={n: Counter(name=n, value=v) for n, v in counters.items()},
        duration=duration,
        **more,  # type: ignore[arg-type]
    )


def test_requests_of_every_size_are_bytes() -> None:
    counters = facts(MOVED).counters
    assert memory_bytes(counters) == 64 * 90 + 32 * 10 + 64 * 40 + 32 * 10
    doubled = facts({**MOVED, "TCC_BUBBLE_sum": 20.0}).counters
    assert memory_bytes(doubled) == memory_bytes(counters) + 64 * 20
    older = {name.replace("EA0", "EA"): value for name, value in MOVED.items() if "BUBBLE" not in name}
    assert memory_bytes(facts(older).counters) == memory_bytes(counters)
    assert memory_bytes(facts({"TCC_EA0_RDREQ_sum": 1.0}).counters) is None


def test_derived_counters_say_the_same_where_the_raw_ones_are_absent() -> None:
    derived = facts({"FETCH_SIZE": 8.0, "WRITE_SIZE": 2.0, "L2CacheHit": 33.0})
    assert memory_bytes(derived.counters) == 10 * 1024
    assert dict(amd_numbers(derived, SPEC))["l2_hit"] == pytest.approx(0.33)
    assert memory_bytes(facts({"FETCH_SIZE": 8.0}).counters) is None
    assert "l2_hit" not in dict(amd_numbers(facts({"L2CacheHit": 330.0}), SPEC))


def test_hits_spills_and_bandwidth() -> None:
    numbers = dict(
        amd_numbers(
            facts({**MOVED, "TCC_HIT_sum": 3.0, "TCC_MISS_sum": 1.0}, resources=Resources(registers=8, stack=16)), SPEC
        )
    )
    assert numbers["l2_hit"] == 0.75
    assert numbers["spills"] == 16
    assert numbers["dram"] == pytest.approx(memory_bytes(facts(MOVED).counters) / 1e-6 / SPEC.bandwidth)


def test_operations_of_vector_and_matrix_units_share_one_fraction() -> None:
    some = {"SQ_INSTS_VALU_FMA_F32": 1e6, "SQ_INSTS_VALU_ADD_F32": 1e6, "SQ_INSTS_VALU_MFMA_MOPS_BF16": 1e5}
    counters = {**IDLE, **some}
    numbers = dict(amd_numbers(facts(counters, duration=1e6), SPEC))
    seconds = 64 * 3e6 / SPEC.peak("fp32").datasheet + 512e5 / SPEC.peak("bf16").datasheet
    assert numbers["sm"] == pytest.approx(seconds / 1e-3)


def test_halves_on_vector_units_are_not_compared_with_the_matrix_units() -> None:
    numbers = dict(amd_numbers(facts({**IDLE, "SQ_INSTS_VALU_FMA_F16": 1e6}, duration=1e6), SPEC))
    assert numbers["sm"] == pytest.approx(64 * 2e6 / SPEC.peak("fp32").datasheet / 1e-3)


@pytest.mark.parametrize(("duration", "spec"), [(None, SPEC), (1e3, None)])
def test_without_time_or_data_sheet_there_is_no_fraction(duration: float | None, spec: object) -> None:
    numbers = dict(amd_numbers(facts({**MOVED, **IDLE, "SQ_INSTS_VALU_FMA_F32": 1.0}, duration), spec))  # type: ignore[arg-type]
    assert "dram" not in numbers
    assert "sm" not in numbers


def test_a_type_without_a_rate_makes_no_fraction() -> None:
    from dataclasses import replace

    bare = replace(SPEC, peaks=())
    assert dict(amd_numbers(facts({**IDLE, "SQ_INSTS_VALU_FMA_F32": 5.0}), bare)) == {}


def test_the_classifier_takes_them() -> None:
    busy = diagnose(facts({}), "k", None, extra={"dram": 0.8, "sm": 0.1})
    assert busy.classification.bottleneck.value == "memory"


def test_a_counter_that_was_not_collected_is_not_zero() -> None:
    assert dict(amd_numbers(facts(IDLE), SPEC))["sm"] == 0.0
    for absent in IDLE:
        counters = facts({name: value for name, value in IDLE.items() if name != absent}).counters
        assert "sm" not in dict(amd_numbers(facts({name: c.value for name, c in counters.items()}), SPEC))
        assert collected_with("sm", counters) == f"--pmc {absent}, with --kernel-trace and --device"
    assert collected_with("sm", facts(IDLE).counters) == "with --kernel-trace and --device"
    no_bubble = {name: value for name, value in MOVED.items() if name != "TCC_BUBBLE_sum"}
    assert "dram" not in dict(amd_numbers(facts(no_bubble), SPEC))
    assert memory_bytes(facts({**no_bubble, "FETCH_SIZE": 1.0, "WRITE_SIZE": 1.0}).counters) == 2048


def test_products_in_double_are_compared_with_the_matrix_units() -> None:
    rate = 163.4e12 * 0.9
    counted = facts({**MOVED, **IDLE, "SQ_INSTS_VALU_MFMA_MOPS_F64": rate * 1e-6 / 512})
    assert dict(amd_numbers(counted, SPEC))["sm"] == pytest.approx(0.9)
