"""Timelines, windows, trees and links on traces whose truth is counted by hand."""

from __future__ import annotations

import pytest

from pytest_perfgate.core.analysis.kinds import WORDS, Kind
from pytest_perfgate.core.analysis.trace.operators import operators, recompute_share
from pytest_perfgate.core.analysis.trace.passes import passes
from pytest_perfgate.core.analysis.trace.survey import Settings, survey, timelines, within
from pytest_perfgate.core.analysis.trace.timeline import parse_window, steps
from pytest_perfgate.model.errors import PerfgateError

from .generated import host, kernel, launch, seen

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
    found = seen(tmp_path / "t.json", [kernel(name, 0, 1)])
    assert WORDS[Kind(int(found.kinds[0]))] == kind


def test_a_user_s_pattern_finds_more_communication(tmp_path):
    events = [kernel("my_ring_step", 0, 1)]
    found = seen(tmp_path / "t.json", events, Settings(communication=("my_ring",)))
    assert found.kinds.tolist() == [Kind.COMMUNICATION]


@pytest.fixture
def mixed(tmp_path):
    events = [
        kernel("gemm", 0, 10),
        kernel("ncclDevKernel", 5, 15, stream=20),
        kernel("Memcpy", 18, 10, cat="gpu_memcpy", stream=21),
        kernel("Memset", 27, 3, cat="gpu_memset", stream=21),
        kernel("gemm", 50, 10),
    ]
    return seen(tmp_path / "t.json", events)


def test_the_parts_of_a_timeline_by_hand(mixed):
    (line,) = timelines(mixed).values()
    parts = (line.computation, line.exposed_comm, line.exposed_memcpy, line.exposed_memset, line.idle)
    assert parts == (20_000, 10_000, 8_000, 2_000, 20_000)
    assert sum(parts) == line.total == 60_000
    assert line.overlap == pytest.approx(5 / 15)
    assert (line.idle_micro, line.idle_macro, line.gaps) == (0, 20_000, 1)


def test_without_communication_there_is_no_overlap(tmp_path):
    (line,) = timelines(seen(tmp_path / "t.json", [kernel("gemm", 0, 1)])).values()
    assert line.overlap is None


def test_a_time_range_cuts_what_straddles_it(mixed):
    (window,) = parse_window(mixed.trace, "8us..55us")
    (line,) = timelines(within(mixed, window)).values()
    assert (line.total, line.computation, line.exposed_comm) == (47_000, 7_000, 10_000)
    assert line.busy + line.idle == line.total


def test_steps_are_windows_and_a_wrong_one_is_refused(tmp_path):
    events = [host(f"ProfilerStep#{n}", 100 * n, 90, cat="user_annotation") for n in (3, 4)]
    events += [kernel("gemm", 310, 10), kernel("gemm", 420, 30)]
    found = seen(tmp_path / "t.json", events)
    assert [w.step for w in steps(found.trace)] == ["3", "4"]
    (window,) = parse_window(found.trace, "step=4")
    (line,) = timelines(within(found, window)).values()
    assert line.computation == 30_000
    with pytest.raises(PerfgateError, match="no step or annotation fits"):
        parse_window(found.trace, "step=9")


def test_a_straddle_under_a_microsecond_goes_to_the_grandparent(tmp_path):
    events = [host("a", 0, 100), host("b", 10, 20), host("c", 25, 5.5), host("d", 40, 70)]
    found = seen(tmp_path / "t.json", [*events, kernel("k", 0, 1)])
    assert found.tree.parent[:4].tolist() == [-1, 0, 0, -1]
    assert found.tree.dropped == 1


def test_events_without_a_length_have_parents_and_no_children(tmp_path):
    events = [host("a", 0, 10), host("mark", 5, 0), host("b", 5, 3), host("end", 10, 0), kernel("k", 0, 1)]
    found = seen(tmp_path / "t.json", events)
    assert found.tree.parent[:4].tolist() == [-1, 2, 0, -1]


def test_links_by_correlation_then_by_external_id_and_coverage(tmp_path):
    events = [
        host("aten::mm", 0, 10, **{"External id": 5}),
        launch(2, 1),
        kernel("linked", 20, 30, correlation=1),
        kernel("by id", 50, 10, correlation=99, **{"External id": 5}),
        kernel("nobody", 60, 60, correlation=98),
    ]
    found = seen(tmp_path / "t.json", events)
    assert found.link.launch.tolist() == [1, 0, -1]
    assert found.link.leaf.tolist() == [0, 0, -1]
    assert found.coverage == pytest.approx(0.4)


def test_a_graph_launch_owns_every_kernel_of_its_correlation(tmp_path):
    events = [host("cudaGraphLaunch", 0, 5, cat="cuda_runtime", correlation=7)]
    events += [kernel(f"k{n}", 10 + n, 1, correlation=7) for n in range(5)]
    assert seen(tmp_path / "t.json", events).link.launch.tolist() == [0] * 5


def test_an_operator_without_a_model_says_so_and_gets_no_zero(tmp_path):
    shapes = {"Input Dims": [[4]], "Input type": ["float"], "Input Strides": [[1]], "Concrete Inputs": [""]}
    events = [host("mine::op", 0, 10, **shapes), launch(1, 1), kernel("k", 5, 5, correlation=1)]
    (row,) = operators(seen(tmp_path / "t.json", events))
    assert row.work is None
    assert row.why == "no model for this operator"


def test_a_user_s_operator_gets_its_work(tmp_path):
    from pytest_perfgate import work

    shapes = {"Input Dims": [[4, 8]], "Input type": ["float"], "Input Strides": [[8, 1]], "Concrete Inputs": [""]}
    events = [host("mine::op", 0, 10, **shapes), launch(1, 1), kernel("k", 5, 5, correlation=1)]
    settings = Settings(models={"mine::op": lambda call: work.elementwise(call.shape(0), dtype=call.dtype(0))})
    (row,) = operators(seen(tmp_path / "t.json", events, settings))
    assert row.work.flops == 32


def test_recomputed_forward_passes_are_told_by_their_frame(tmp_path):
    events = [
        host("checkpoint.py(1): recompute_fn", 0, 50, cat="python_function"),
        launch(10, 1),
        launch(60, 2),
        kernel("again", 20, 30, correlation=1),
        kernel("first", 70, 10, correlation=2),
    ]
    assert recompute_share(seen(tmp_path / "t.json", events)) == pytest.approx(0.75)


def test_operators_and_kernels_of_the_corpus_account_for_all_linked_time(look, corpus):
    for name in ("vit_h100", "bert_small_mi300", "nccl_a100_rank0of2", "sampled_128ranks/rank0"):
        found = look(name)
        (line,) = timelines(found).values()
        assert sum(row.total for row in operators(found)) >= line.busy * 0.999
        assert survey(found.trace, Settings()).coverage == found.coverage


def test_backward_passes_find_their_forward_operators(tmp_path):
    engine = "autograd::engine::evaluate_function: MmBackward0"
    events = [
        host("aten::linear", 0, 20, **{"Sequence number": 7}),
        host("aten::mm", 2, 15, **{"Sequence number": 7}),
        launch(5, 1),
        host(engine, 100, 30, tid=2, **{"Sequence number": 7, "Fwd thread id": 1}),
        host("aten::mm", 105, 20, tid=2, **{"Sequence number": 9}),
        launch(110, 2, tid=2),
        kernel("forward", 30, 10, correlation=1),
        kernel("gradient", 140, 25, correlation=2),
    ]
    (found,) = passes(seen(tmp_path / "t.json", events))
    assert (found.name, found.calls, found.matched) == ("aten::linear", 1, 1)
    assert (found.forward, found.backward) == (10_000, 25_000)
