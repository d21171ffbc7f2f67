"""Tests of core/analysis/trace/ranks."""

from __future__ import annotations

import csv

import pytest

from pytest_perfgate.core.analysis.trace.job import alone
from pytest_perfgate.core.analysis.trace.operators import collectives, word
from pytest_perfgate.core.analysis.trace.ranks import JobCollectives, collective_metrics, straggler, waits
from pytest_perfgate.core.analysis.trace.survey import timelines
from pytest_perfgate.core.judge.against_limit import judge_artifact
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Outcome
from tests.kineto_file import host, kernel, launch, written
from tests.kineto_operators import B, recorded


@pytest.fixture
def ranks(look):
    return [look(f"dlrm_8ranks/rank{n}") for n in range(8)]


def rows(corpus, name):
    with (corpus / "expected" / "dlrm_8ranks" / name).open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def test_overlap_of_every_rank_to_a_hundredth_of_a_point(ranks, corpus):
    for rank, row in zip(ranks, rows(corpus, "dlrm8_comm_comp_overlap.csv")):
        (line,) = timelines(rank).values()
        assert 100 * line.overlap == pytest.approx(float(row["comp_comm_overlap_pctg"]), abs=0.01)


def test_idle_and_compute_time_of_every_rank_to_the_microsecond(ranks, corpus):
    for rank, row in zip(ranks, rows(corpus, "dlrm8_temporal_breakdown.csv")):
        (line,) = timelines(rank).values()
        assert line.idle / 1e3 == float(row["idle_time(us)"])
        assert line.computation / 1e3 == float(row["compute_time(us)"])
        assert line.total / 1e3 == float(row["kernel_time(us)"])


def test_rank_seven_is_the_straggler_in_any_order_of_joining(ranks):
    parts = [JobCollectives(parts=collectives(rank, n), present=frozenset({n})) for n, rank in enumerate(ranks)]
    forward, backward, paired = JobCollectives(), JobCollectives(), JobCollectives()
    for part in parts:
        forward |= part
    for part in reversed(parts):
        backward |= part
    for first, second in zip(parts[::2], parts[1::2]):
        paired |= first | second
    assert {straggler(m.shared) for m in (forward, backward, paired)} == {7}
    assert waits(forward.shared) == waits(backward.shared) == waits(paired.shared)


def test_a_collective_has_size_and_bandwidths(ranks):
    meeting = JobCollectives()
    for n, rank in enumerate(ranks):
        meeting |= JobCollectives(parts=collectives(rank, n))
    metrics = collective_metrics(meeting)
    (algorithm,) = metrics.find("alg_bandwidth", (("collective", "AllReduce"),))
    (bus,) = metrics.find("bus_bandwidth", (("collective", "AllReduce"),))
    assert bus.value == pytest.approx(algorithm.value * 2 * 7 / 8)


def test_one_rank_alone_says_what_it_cannot_know(ranks):
    meeting = JobCollectives(parts=collectives(ranks[0], 0), present=frozenset({0}))
    metrics = collective_metrics(meeting)
    assert metrics.names() == ("comm_bytes", "comm_count", "comm_time")
    assert metrics.missing("bus_bandwidth").fix == "give the traces of all ranks"
    assert "Only one rank's trace is here" in alone(meeting)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)", "AllReduce"),
        ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "SendRecv"),
        ("deep_ep::intranode::dispatch<int, 8>(void*)", "dispatch"),
    ],
)
def test_a_collective_is_called_by_what_it_does(name, kind):
    assert word(name) == kind


WORK = [host("aten::mm", 0, 9), launch(1, 1), kernel("a", 5, 10, correlation=1)]
HOST = [host("aten::mm", 0, 9), host("aten::add", 20, 5)]


def outcomes(analysis, text):
    return [v.outcome for v in judge_artifact(analysis, [parse_limit(text, kinds=by_name())])]


@pytest.fixture
def lost(kineto, tmp_path):
    """Rank 0 has its GPU activity, rank 1 has lost it, and the export names no backend."""
    events = {0: WORK, 1: HOST}
    paths = [written(tmp_path / f"{n}.json", events[n], distributedInfo={"rank": n}) for n in events]
    return kineto.inspect(paths, {})


@pytest.mark.parametrize(
    "text", ["idle <= 90%", "idle(rank=*) <= 90%", "op_count(op=aten::mm) == 1", "idle_time <= 1s"]
)
def test_a_rank_that_lost_its_gpu_activity_passes_no_limit(lost, text):
    assert outcomes(lost, text) == [Outcome.NOT_MEASURED, Outcome.PASSED]


def test_what_is_missing_is_said_where_ranks_are_shown(lost):
    (verdict,) = judge_artifact(lost, [parse_limit("idle(rank=1) <= 90%", kinds=by_name())])
    assert "its GPU activity is missing, and other ranks of this job have theirs" in verdict.sentence
    for name in ("report", "ops", "timeline", "fair"):
        assert "without GPU activity: rank 1" in render_text(lost.views[name]()), name
    assert "this program has no GPU" not in render_text(lost.views["report"]())


def test_ranks_of_the_host_alone_are_a_job_of_the_host(kineto, tmp_path):
    paths = [written(tmp_path / f"{n}.json", HOST, distributedInfo={"rank": n}) for n in (0, 1)]
    assert len(kineto.inspect(paths, {}).metrics.find("idle")) == 2


def test_a_collective_of_gpus_on_the_host_tells_that_a_gpu_is_missing(kineto, tmp_path):
    events = [*HOST, host("nccl:all_reduce", 30, 5, cat="user_annotation")]
    metrics = kineto.inspect([written(tmp_path / "t.json", events)], {}).metrics
    assert not metrics.find("idle")
    assert metrics.missing("idle").why == "the trace has no GPU activity"


def test_invented_numbers_of_ranks_stand_under_every_verdict(kineto, tmp_path):
    paths = [written(tmp_path / f"{name}.json", WORK) for name in "abc"]
    analysis = kineto.inspect(paths, {})
    note = "whole trace; ranks 0 to 2 by the order of the files, since the traces do not say"
    verdict, *_ = judge_artifact(analysis, [parse_limit("idle(rank=2) <= 90%", kinds=by_name())])
    assert dict(verdict.evidence)["at"] == note
    assert note in render_text(analysis.views["report"]())


def test_a_rank_with_two_devices_is_not_passed_over(kineto, tmp_path):
    """``idle`` of the rank with one device is a figure; of the other it is one a device, and none of both."""
    two = [*WORK, launch(20, 2), kernel("b", 30, 10, correlation=2, device=1)]
    paths = [written(tmp_path / f"{n}.json", ev, distributedInfo={"rank": n}) for n, ev in enumerate((WORK, two))]
    analysis = kineto.inspect(paths, {})
    assert outcomes(analysis, "idle <= 90%") == [Outcome.NOT_MEASURED, Outcome.PASSED]
    assert outcomes(analysis, "idle(rank=1, gpu=*) <= 90%") == [Outcome.PASSED, Outcome.PASSED]
    missing = analysis.metrics.missing("idle", (("rank", "1"),))
    assert missing.fix == "name a device: gpu=0, or all of them: gpu=*"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": "local"}, "spreads the files of many ranks, and one file was given"),
        ({"floor": "2"}, "floor='2' is out of range"),
        ({"floor": "90%"}, "floor='90%' is not a number"),
        ({"top": "0"}, "top='0' is out of range"),
    ],
)
def test_an_option_that_would_do_nothing_or_nonsense_is_refused(kineto, tmp_path, options, message):
    path = written(tmp_path / "t.json", WORK)
    with pytest.raises(PerfgateError) as error:
        kineto.inspect([path], options)
    assert message in error.value.what
    if "workers" in options:
        with pytest.raises(PerfgateError, match="a comparison is of two"):
            kineto.compare([path], [path], options)


def test_the_worst_rank_is_named_first_and_its_findings_are_shown(kineto, tmp_path):
    """Rank n waits 100 n µs between two kernels: rank 3 has the largest idle time."""
    paths = []
    for n in (1, 3, 2):
        events = [*WORK, launch(20, 2), kernel("b", 20 + 100 * n, 10, correlation=2)]
        paths.append(written(tmp_path / f"{n}.json", events, distributedInfo={"rank": n}))
    analysis = kineto.inspect(paths, {})
    limit = parse_limit("idle(rank=*) <= 85%", kinds=by_name())
    verdicts = judge_artifact(analysis, [limit])
    assert [dict(v.metric.labels)["rank"] for v in verdicts] == ["3", "2", "1"]
    assert [v.outcome for v in verdicts] == [Outcome.BROKEN, Outcome.BROKEN, Outcome.PASSED]
    idle = next(finding for finding in analysis.findings if finding.trigger.startswith("idle="))
    assert idle.title.startswith("Rank 3: Idle time takes 9")
    assert idle.detail.endswith("2 more ranks have the same.")
    assert "Rank 3: Idle time" in render_text(analysis.views["report"]())
    classes = [finding for finding in analysis.findings if finding.trigger == "class=latency"]
    assert [finding.title[:7] for finding in classes] == ["Rank 3:"], "the class has no number of its own"


def test_gpu_work_of_nobody_is_refused_in_a_file_of_several_ranks(kineto, tmp_path):
    ranked = [{**event, "args": {**event["args"], "rank": rank}} for rank in (0, 1) for event in WORK]
    loose = kernel("c", 40, 10, correlation=1)
    with pytest.raises(PerfgateError, match="1 GPU event without a rank in a file of 2 ranks"):
        kineto.inspect([written(tmp_path / "t.json", [*ranked, loose])], {})
    assert kineto.inspect([written(tmp_path / "t.json", [*ranked, host("aten::mm", 50, 5)])], {}).subject == "2 ranks"


def test_ranks_that_are_not_here_are_counted(kineto, tmp_path):
    paths = [
        written(tmp_path / f"{n}.json", WORK, distributedInfo={"rank": n, "world_size": 16, "backend": "nccl"})
        for n in (3, 7)
    ]
    assert kineto.inspect(paths, {}).subject == "2 of 16 ranks"


@pytest.mark.parametrize("rank", [-1, "x", None])
def test_what_is_no_number_of_a_rank_is_none(kineto, tmp_path, rank):
    path = written(tmp_path / "t.json", WORK, distributedInfo={"rank": rank})
    assert not kineto.inspect([path], {}).metrics.find("idle", (("rank", "*"),))


def test_a_collective_under_an_annotation_has_the_size_of_its_tensors(kineto, tmp_path):
    events = [
        host("nccl:all_reduce", 0, 30, cat="user_annotation", **recorded((((1024,), B),))),
        launch(5, 1),
        kernel("ncclKernel_AllReduce_RING", 50, 20, correlation=1),
        launch(20, 2),
        kernel("deep_ep::intranode::dispatch<8>", 80, 20, correlation=2),
    ]
    analysis = kineto.inspect([written(tmp_path / "t.json", events)], {})
    (moved,) = analysis.metrics.find("comm_bytes", (("collective", "AllReduce"),))
    assert moved.value == 2048
    page = render_text(analysis.views["ranks"]())
    assert "dispatch" in page
    assert "Only one rank's trace is here (2 collectives)" in page


@pytest.mark.parametrize(
    ("kind", "sent", "received"), [("_allgather_base", 250, 1000), ("_reduce_scatter_base", 1000, 250)]
)
def test_the_message_of_a_gather_or_scatter_is_its_larger_side(kineto, tmp_path, kind, sent, received):
    """As nccl-tests counts it: four ranks of 1,000 bytes each gather or scatter a message of 4,000."""
    fields = {
        "Collective name": kind,
        "Group size": 4,
        "In msg nelems": sent,
        "Out msg nelems": received,
        "dtype": "Float",
    }
    events = [launch(0, 1), kernel("ncclDevKernel", 5, 10, correlation=1, **fields)]
    paths = [written(tmp_path / f"{n}.json", events, distributedInfo={"rank": n}) for n in range(4)]
    metrics = kineto.inspect(paths, {}).metrics
    values = [metrics.find(name)[0].value for name in ("comm_bytes", "alg_bandwidth", "bus_bandwidth")]
    assert values == pytest.approx([4000, 4000 / 10e-6, 4000 / 10e-6 * 3 / 4])


def test_each_process_group_has_the_bus_factor_of_its_own_size(kineto, tmp_path):
    """Two ranks reduce 4,000 bytes among two and 8,000 bytes in a group of four, 10 µs each."""
    paths = []
    for rank in (0, 1):
        events = []
        for n, (group, size) in enumerate(((2, 1000), (4, 2000))):
            fields = {"Collective name": "allreduce", "Process Group Name": f"{group}", "Group size": group}
            fields |= {"In msg nelems": size, "Out msg nelems": size, "dtype": "Float"}
            events.append(kernel("ncclDevKernel_AllReduce_Sum", 20 * n, 10, **fields))
        paths.append(written(tmp_path / f"{rank}.json", events, distributedInfo={"rank": rank}))
    metrics = kineto.inspect(paths, {}).metrics
    (bus,) = metrics.find("bus_bandwidth", (("collective", "AllReduce"),))
    assert bus.value == pytest.approx((4000 * 2 * 1 / 2 + 8000 * 2 * 3 / 4) / 20e-6)


def test_an_annotated_collective_is_among_all_ranks_of_the_job_also_of_those_that_are_not_here(kineto, tmp_path):
    """A bus factor of the two files would be that of two ranks: half of what the links carried."""
    events = [
        host("nccl:all_to_all", 0, 30, cat="user_annotation", **recorded((((1024,), B),))),
        launch(5, 1),
        kernel("ncclKernel_SendRecv", 50, 20, correlation=1),
    ]
    paths = [written(tmp_path / f"{n}.json", events, distributedInfo={"rank": n, "world_size": 16}) for n in (0, 1)]
    metrics = kineto.inspect(paths, {}).metrics
    assert metrics.find("comm_ranks")[0].value == 16
    assert metrics.find("bus_bandwidth")[0].value == pytest.approx(2048 / 20e-6 * 15 / 16)


def test_an_annotated_gather_has_no_size_since_only_its_inputs_are_recorded(kineto, tmp_path):
    events = [
        host("nccl:_all_gather_base", 0, 30, cat="user_annotation", **recorded((((1024,), B),))),
        launch(5, 1),
        kernel("ncclKernel_AllGather", 50, 20, correlation=1),
    ]
    paths = [written(tmp_path / f"{n}.json", events, distributedInfo={"rank": n}) for n in (0, 1)]
    metrics = kineto.inspect(paths, {}).metrics
    assert not metrics.find("alg_bandwidth")
    assert metrics.missing("alg_bandwidth").why == "the trace does not record the sizes of these messages"
    page = render_text(kineto.compare(paths[:1], paths[1:], {}).views["collectives"]())
    assert "2 KiB" in page, "gathers are compared with those of the same input"


def test_a_recorded_message_counts_before_the_annotation_inside_it(kineto, tmp_path):
    fields = {"Collective name": "_allgather_base", "Group size": 2, "dtype": "Float"}
    events = [
        host("record_param_comms", 0, 40, **fields, **{"In msg nelems": 500, "Out msg nelems": 1000}),
        host("nccl:_all_gather_base", 1, 30, cat="user_annotation", **recorded((((500,), B),))),
        launch(5, 1),
        kernel("ncclKernel_AllGather", 50, 20, correlation=1),
    ]
    paths = [written(tmp_path / f"{n}.json", events, distributedInfo={"rank": n}) for n in (0, 1)]
    assert kineto.inspect(paths, {}).metrics.find("comm_bytes")[0].value == 4000


def gloo(name, start, length):
    return host(f"gloo:{name}", start, length, cat="user_annotation", tid=9, **recorded((((1000,), "float"),)))


def test_collectives_that_the_host_marks_are_those_of_a_job_without_a_gpu(kineto, tmp_path):
    """Rank 1 starts the all-reduce 20 µs later, and ends the broadcast before rank 0 starts its own."""
    events = {
        0: [*HOST, gloo("all_reduce", 100, 50), gloo("broadcast", 300, 40)],
        1: [*HOST, gloo("all_reduce", 120, 30), gloo("broadcast", 200, 10)],
    }
    paths = [written(tmp_path / f"{n}.json", events[n], distributedInfo={"rank": n, "world_size": 2}) for n in events]
    analysis = kineto.inspect(paths, {})
    (reduced,) = analysis.metrics.find("comm_latency", (("collective", "all_reduce"),))
    assert reduced.value == 30_000
    assert analysis.metrics.find("comm_bytes", (("collective", "all_reduce"),))[0].value == 4000
    assert [m.value for m in analysis.metrics.find("comm_wait")] == [50_000, 0]
    assert [m.value for m in analysis.metrics.find("start_wait")] == [20_000, 100_000], "the clocks agree"
    page = render_text(analysis.views["report"]())
    assert "No rank has a GPU" in page
    assert "No collective" not in page
    assert "exposed communication" not in page, "a program without a GPU has no zeros of one"
    window = kineto.inspect(paths[:1], {"window": "0us..200us"}).metrics
    assert [dict(m.labels)["collective"] for m in window.find("comm_count")] == ["all_reduce"]
