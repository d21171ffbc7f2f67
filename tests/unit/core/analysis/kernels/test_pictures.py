"""Pictures of kernels: the roofline of the counters, occupancy with its cliffs, times of launches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.analysis.kernels.bottleneck import bottleneck_report, parse_stated, timing
from pytest_perfgate.core.analysis.kernels.diagnosis import diagnose
from pytest_perfgate.core.analysis.kernels.pictures import counted_instead, draw, placed
from pytest_perfgate.core.analysis.occupancy import LIMITS, edge
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.profiles import Counter, KernelFacts, Launch, Resources
from tests.drawings import flaws, texts

PER_CYCLE = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum.per_cycle_elapsed"

COUNTED = {
    PER_CYCLE.format("ffma"): 1000.0,
    PER_CYCLE.format("fadd"): 100.0,
    PER_CYCLE.format("dfma"): 1.0,
    "derived__sm__sass_thread_inst_executed_op_ffma_pred_on_x2": 20_000.0,
    "derived__sm__sass_thread_inst_executed_op_dfma_pred_on_x2": 300.0,
    "smsp__cycles_elapsed.avg.per_second": 1e9,
    "sm__cycles_elapsed.avg.per_second": 1e9,
    "dram__bytes.sum.per_second": 1e11,
    "dram__bytes.sum.peak_sustained": 100.0,
    "dram__cycles_elapsed.avg.per_second": 5e9,
}
"""2.1 T operations a second of 20 T, and 0.1 of 0.5 TB/s: 21 operations a byte, balance at 40."""


def kernel(name="gemm", duration=1000.0, counters=COUNTED, threads=256, registers=64, shared=0, arch="sm_90"):
    facts = KernelFacts(
        name=name,
        arch=arch,
        launch=Launch(block=(threads, 1, 1), shared_dynamic=shared) if threads else None,
        resources=Resources(registers=registers),
        counters={full: Counter(name=full, value=number) for full, number in counters.items()},
        duration=duration,
    )
    return diagnose(facts, name, LIMITS.get(arch))


def counters(**changed: float) -> dict[str, Counter]:
    numbers = {**COUNTED, **{full.replace("__X__", "."): number for full, number in changed.items()}}
    return {name: Counter(name=name, value=number) for name, number in numbers.items()}


def test_counters_give_rate_intensity_and_the_nearer_roof() -> None:
    at = placed(counters())
    assert at is not None
    assert (at.dtype, at.rate, at.intensity) == ("fp32", pytest.approx(2.1e12), pytest.approx(21))
    assert (at.bound, at.share) == ("memory", pytest.approx(2.1e12 / (21 * 5e11)))


@pytest.mark.parametrize(("times", "limit"), [(2, 5_000.0), (4, 10_000.0)])
def test_an_instruction_of_half_precision_computes_two_numbers(times: int, limit: float) -> None:
    """A multiprocessor of sm_86 starts half as many HFMA2 as FFMA, which computes as much."""
    halves = {PER_CYCLE.format("hfma"): 900.0, PER_CYCLE.format("hadd"): 100.0}
    limits = {f"derived__sm__sass_thread_inst_executed_op_hfma_pred_on_x{times}": limit}
    at = placed(counters(**halves, **limits))
    assert at is not None
    assert (at.dtype, at.rate) == ("fp16", pytest.approx(2 * (2 * 900 + 100) * 1e9))
    assert dict(at.peaks)["fp16"] == pytest.approx(1e13)


TENSOR = "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active"


def test_the_bottleneck_report_takes_intensity_from_the_counters_unless_it_is_stated_or_tensor_cores_ran() -> None:
    def roofline(busy: float, **options: str) -> str:
        stated = parse_stated(options, None)
        timed = timing(stated, 1000.0, "the profiler")
        return " ".join(render_text(bottleneck_report(kernel(counters={**COUNTED, TENSOR: busy}), timed)).split())

    counted = roofline(0.0)
    assert "Effective rate: 2.1 TFLOPS" in counted
    assert "Arithmetic intensity: 21 FLOP/B" in counted
    assert "Balance point: 40 FLOP/B (fp32)" in counted
    assert "Attained fraction: 20 %" in counted
    assert "Arithmetic intensity: 2 FLOP/B" in roofline(0.0, flops="200FLOP", bytes="100B")
    assert "not collected: arithmetic intensity" in roofline(50.0)


@pytest.mark.parametrize(
    ("flops", "busy", "doubted"),
    [
        (2.1e9, 0.0, False),
        (4.2e9, 0.0, False),  # a causal mask halves the work
        (1.0e9, 0.0, True),
        (3.3e10, 0.0, True),
        (3.3e10, 50.0, False),  # these counters have no operations of tensor cores
        (None, 0.0, False),
    ],
)
def test_stated_work_is_held_against_what_the_profiler_counted(flops: float | None, busy: float, doubted: bool) -> None:
    text = counted_instead([kernel(duration=1e6, counters={**COUNTED, TENSOR: busy})], flops)
    assert text.startswith("counted 2.1 GFLOP and not ") if doubted else not text


@pytest.mark.parametrize(
    "lost",
    [
        "dram__bytes.sum.per_second",
        "dram__bytes.sum.peak_sustained",
        "smsp__cycles_elapsed.avg.per_second",
        "derived__sm__sass_thread_inst_executed_op_ffma_pred_on_x2",
    ],
)
def test_half_of_the_counters_give_no_point(lost: str) -> None:
    half = {name: counter for name, counter in counters().items() if name != lost}
    assert placed(half) is None
    with pytest.raises(PerfgateError) as error:
        draw("roofline", [kernel(counters={name: one.value for name, one in half.items()})])
    assert error.value.code.name == "picture-none"


def test_the_roofline_of_two_reports_leads_from_where_each_was() -> None:
    slower = kernel(counters={**COUNTED, PER_CYCLE.format("ffma"): 500.0})
    picture = draw("roofline", [kernel(), kernel("other")], [slower])
    assert not flaws(picture)
    assert "lines lead from where each was" in picture.alt
    assert picture.svg.count('r="4.5"') == 1
    assert "balance 40" in texts(picture.svg)


@pytest.mark.parametrize(("registers", "cliff"), [(64, 64), (65, 80), (40, 40), (255, None)])
def test_the_cliff_of_registers_is_the_last_place_before_warps_fall(registers: int, cliff: int | None) -> None:
    """Of 65,536 registers 256 threads with 64 each fit four times; registers come by 8 a thread."""
    picture = draw("occupancy", [kernel(registers=registers)])
    assert not flaws(picture)
    shown = [text for text in texts(picture.svg) if text.startswith("falls past")]
    assert f"here: {registers}" in texts(picture.svg)
    assert (f"falls past {cliff}" in shown[:1]) == (cliff is not None)


def test_the_cliff_of_shared_memory_is_where_two_blocks_become_one() -> None:
    sm = LIMITS["sm_90"]
    picture = draw("occupancy", [kernel(shared=edge(sm) - 1024)])
    falls = [text for text in texts(picture.svg) if text.startswith("falls past")]
    assert f"falls past {edge(sm) / 1024:.4g}" in falls
    assert [bar.text for bar in picture.bars if bar.label == "shared memory"] == ["2 blocks, the limit"]


def test_a_block_beyond_the_launch_bounds_of_the_code_has_no_warps_to_lose() -> None:
    bounded = replace(kernel(threads=256).facts, most_threads=128)
    picture = draw("occupancy", [diagnose(bounded, "gemm", LIMITS["sm_90"])])
    assert "0 of 64 warps" in picture.alt
    assert not [text for text in texts(picture.svg) if text.startswith("falls past")]


@pytest.mark.parametrize(
    ("name", "kernels"), [("occupancy", [kernel(threads=0)]), ("launches", [kernel(duration=None)])]
)
def test_what_is_not_known_is_not_drawn(name: str, kernels: list) -> None:
    with pytest.raises(PerfgateError) as error:
        draw(name, kernels)
    assert error.value.code.name == "picture-none"


def test_launches_stand_by_their_time() -> None:
    picture = draw(
        "launches", [kernel("short", 10.0), kernel("long", 1000.0), *(kernel(f"k{n}", 1.0) for n in range(30))]
    )
    assert not flaws(picture)
    assert [bar.label for bar in picture.bars[:2]] == ["long", "short"]
    assert any("12 shorter ones" in text for text in texts(picture.svg))
    assert picture.alt.endswith(", the longest first")
    assert draw("launches", [kernel("alone", 10.0)]).alt == "Time of 1 launch"
