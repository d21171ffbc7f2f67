"""Tests of core/analysis/classify."""

from __future__ import annotations

import itertools
import math

import pytest

from pytest_perfgate.core.analysis.classify import Bottleneck, Signals, classify
from pytest_perfgate.core.analysis.trace.operators import WORDS
from pytest_perfgate.model.profiles import Kind
from tests.kineto_file import kernel, surveyed
from tests.launches import ELAPSED, launch

NAMES = {
    "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)": "communication",
    "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)": "communication",
    "void rcclGenericKernel<1>": "communication",
    "void vllm::cross_device_reduce_1stage<float, 2>": "communication",
    "void deep_ep::intranode::dispatch<8, 768>(int4*)": "communication",
    "void deep_ep::internode_ll::combine<true>(void*)": "communication",
    "deep_ep::intranode::notify_dispatch<8>(int const*)": "communication",
    "void cub::DeviceReduceByKeyKernel<cub::DispatchReduceByKey<int>>(int)": "compute",
    "void cub::DispatchScan<int*, int*>::kernel": "compute",
    "void my::dispatch<float>(float*)": "compute",
    "ampere_sgemm_128x64_nn": "compute",
    "__amd_rocclr_copyBuffer.kd": "memcpy",
    "__amd_rocclr_fillBufferAligned.kd": "memset",
}


@pytest.mark.parametrize(("name", "kind"), NAMES.items())
def test_kernels_are_classed_by_name(tmp_path, name, kind):
    survey = surveyed(tmp_path / "t.json", [kernel(name, 0, 1)])
    assert WORDS[Kind(int(survey.kinds[0]))] == kind


STEPS = [i / 50 for i in range(51)]


def begins(mine: float, other: float) -> float:
    """60 % of a roof at the balance point, 40 % from four times the balance point on, by the logarithm between."""
    times = min(mine / other, 4.0) if other else 4.0
    return 0.6 - 0.2 * math.log(times) / math.log(4.0) if times > 1 else 0.6


def test_every_point_of_the_plane_has_one_class() -> None:
    for compute, memory in itertools.product(STEPS, STEPS):
        classification = classify(Signals(compute=compute, memory=memory))
        most, least = max(compute, memory), min(compute, memory)
        full, apart = compute + memory - 1, most - least - 0.1
        wanted = {Bottleneck.COMPUTE if compute > memory else Bottleneck.MEMORY}
        if full >= -1e-9 and apart <= 1e-9:
            wanted = {Bottleneck.BALANCED} if apart < -1e-9 else {Bottleneck.BALANCED, *wanted}
        elif full < -1e-9 and most < begins(most, least) - 1e-9:
            wanted = {Bottleneck.LATENCY}
        assert classification.bottleneck in wanted, (compute, memory)
        assert classification.evidence
        assert classification.runner_up not in {None, classification.bottleneck}, (compute, memory)
        assert classification.distance is not None
        assert classification.distance >= 0


def test_crossing_the_distance_reaches_the_runner_up() -> None:
    for compute, memory in itertools.product(STEPS[::5], STEPS[::5]):
        classification = classify(Signals(compute=compute, memory=memory))
        reach = classification.distance + 0.005
        moved = {
            classify(Signals(compute=compute + a * reach, memory=memory + b * reach)).bottleneck
            for a, b in itertools.product((-1, 0, 1), (-1, 0, 1))
        }
        assert classification.runner_up in moved, (compute, memory, classification)


@pytest.mark.parametrize(
    ("signals", "bottleneck"),
    [
        ({"problems": ("coverage 40 %",), "compute": 0.9}, "invalid"),
        ({"exposed": 0.21, "sync": 0.5, "compute": 0.9, "memory": 0.1}, "communication"),
        ({"exposed": 0.20, "sync": 0.11, "compute": 0.9, "memory": 0.1}, "synchronisation"),
        ({"idle": 0.4, "launch_share": 0.8, "compute": 0.9, "memory": 0.1}, "launch"),
        ({"idle": 0.4, "launch_share": 0.1, "compute": 0.9, "memory": 0.1}, "compute"),
        ({"kernel_ns": 4000.0, "compute": 0.1, "memory": 0.1}, "launch"),
        ({"compute": 0.65, "memory": 0.60}, "balanced"),
        ({"compute": 0.575, "memory": 0.493}, "balanced"),
        ({"compute": 0.53, "memory": 0.46}, "latency"),
        ({"compute": 0.56, "memory": 0.45}, "compute"),
        ({"compute": 0.565, "memory": 0.565 / 19.2}, "compute"),
        ({"compute": 0.39, "memory": 0.01}, "latency"),
        ({"compute": 0.1, "memory": 0.5}, "memory"),
        ({"compute": 0.4, "memory": 0.5}, "latency"),
        ({"compute": 0.8, "memory": None}, "compute"),
        ({"compute": None, "memory": 0.7}, "not collected"),
        ({"compute": 0.3, "memory": math.nan}, "not collected"),
        ({"compute": None, "memory": 0.7, "intensity": 1.0, "ridge": 10.0}, "memory"),
        ({"compute": 0.5, "memory": None, "intensity": 100.0, "ridge": 10.0}, "compute"),
        ({"compute": 0.2, "memory": None, "intensity": 10.0, "ridge": 10.0}, "latency"),
        ({"idle": 0.9}, "latency"),
        ({"idle": 0.2}, "not collected"),
        ({"idle": 0.9, "compute": 0.9, "memory": 0.1}, "compute"),
        ({}, "not collected"),
        ({"intensity": 1.0}, "not collected"),
        ({"intensity": 1.0, "ridge": 10.0}, "memory"),
        ({"intensity": 100.0, "ridge": 10.0}, "compute"),
    ],
)
def test_the_order_of_the_table(signals: dict, bottleneck: str) -> None:
    assert classify(Signals(**signals)).bottleneck.value == bottleneck


def test_latency_names_its_cause_or_says_that_it_was_not_collected() -> None:
    few = classify(Signals(compute=0.2, memory=0.3, warps=4.0, stall=("long_scoreboard", 0.5)))
    stalled = classify(Signals(compute=0.2, memory=0.3, warps=40.0, stall=("long_scoreboard", 0.5)))
    detects = classify(Signals(compute=0.2, memory=0.3))
    assert "fewer than 8" in few.sentence
    assert "long_scoreboard (50 %)" in stalled.sentence
    assert "cause not collected" in detects.sentence


def test_a_bound_from_intensity_says_that_it_is_one() -> None:
    classification = classify(Signals(intensity=4.0, ridge=20.0))
    assert not classification.measured
    assert "a bound from intensity, not a measurement" in classification.sentence


def test_half_the_evidence_is_no_class_and_says_which_half() -> None:
    classification = classify(Signals(memory=0.225))
    assert "memory 22.5 % of its roof" in classification.sentence
    assert (classification.runner_up, classification.distance) == (None, None)


def test_locality_is_a_note_beside_memory() -> None:
    assert "L2 hit rate 50.0 %" in classify(Signals(compute=0.1, memory=0.9, l2_hit=0.5)).notes[0]
    assert classify(Signals(compute=0.9, memory=0.1, l2_hit=0.5)).notes == ()


IDLE = {f"sm__pipe_fma_cycles_active{ELAPSED}": 5.0, f"dram__throughput{ELAPSED}": 3.0}
BUSY = {**IDLE, f"sm__throughput{ELAPSED}": 95.0}


@pytest.mark.parametrize(
    ("counter", "pipe"),
    [
        ("sm__inst_executed_pipe_xu", "XU (transcendentals, conversions)"),
        ("sm__inst_executed_pipe_fp16", "FP16"),
        ("sm__pipe_tensor_op_dmma_cycles_active", "FP64 tensor cores"),
    ],
)
def test_a_busy_pipe_of_any_kind_computes(counter: str, pipe: str) -> None:
    diagnosis = launch(counters={**BUSY, f"{counter}{ELAPSED}": 95.0})
    assert diagnosis.classification.bottleneck is Bottleneck.COMPUTE
    assert diagnosis.pipe == (pipe, pytest.approx(0.95))


def test_a_busy_multiprocessor_that_no_pipe_explains_is_said() -> None:
    classification = launch(counters=BUSY).classification
    assert classification.bottleneck is Bottleneck.LATENCY
    assert classification.notes[-1].startswith(
        "the multiprocessors are 95.0 % busy, and none of the known pipes explains it"
    )
    explained = launch(counters={**BUSY, f"sm__inst_executed_pipe_lsu{ELAPSED}": 94.0}).classification
    assert not any("no pipe" in note for note in explained.notes)
    assert not any("no pipe" in note for note in launch(counters=IDLE).classification.notes)


def test_a_class_that_rests_on_idle_time_says_nothing_of_roofs_that_nobody_saw() -> None:
    classification = classify(Signals(idle=0.5, launch_share=0.02))
    assert classification.bottleneck is Bottleneck.LATENCY
    assert len(classification.evidence) == 1
    assert "50.0 %" in classification.evidence[0]
    assert classify(Signals(idle=0.1)).bottleneck is Bottleneck.NOT_COLLECTED


def test_synchronisations_are_told_with_their_number() -> None:
    assert classify(Signals(sync=0.2, waits=3)).evidence[0].endswith("20.0 % in 3 calls")
    assert not any("calls" in text for text in classify(Signals(exposed=0.5, sync=0.2, waits=3)).evidence)


@pytest.mark.parametrize(("compute", "memory", "wrong"), [(1.04, 0.1, False), (1.06, 0.1, True), (0.1, 75.0, True)])
def test_more_than_a_roof_is_no_class(compute: float, memory: float, wrong: bool) -> None:
    assert (classify(Signals(compute=compute, memory=memory)).bottleneck is Bottleneck.INVALID) is wrong
