"""Durations that cannot be read: counted and said wherever a figure stands on them, never a silent zero."""

from __future__ import annotations

import pytest

from pytest_perfgate.adapters.readers.kineto import read_kineto
from pytest_perfgate.adapters.readers.kineto_assembly import CLIPPED, LOST, next_starts
from pytest_perfgate.cli import main
from pytest_perfgate.core.judge.against_limit import judge_artifact
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Outcome
from tests.kineto_file import host, kernel, launch, written

NONE = {"dur": None}


def pairs(count, length=5):
    """Kernels that can be read, each with its launch."""
    return [
        e for n in range(count) for e in (launch(10 * n, n + 1), kernel("k", 10 * n + 1, length, correlation=n + 1))
    ]


def test_a_duration_that_overflowed_ends_at_the_next_start_or_is_left_out(tmp_path):
    events = [kernel("a", 0, 1.8e19), kernel("b", 40, 5), kernel("c", 50, -3), host("op", 0, -1)]
    (trace,) = read_kineto(written(tmp_path / "t.json", events))
    assert trace.end.tolist() == [40_000, 45_000]
    assert (trace.guessed, trace.untimed) == ((0,), 1)
    assert trace.dropped[CLIPPED] == 1
    assert trace.dropped[LOST] == 2


def test_durations_of_which_none_can_be_read_are_refused(tmp_path):
    with pytest.raises(PerfgateError, match="every duration is negative") as error:
        read_kineto(written(tmp_path / "t.json", [kernel("a", 0, -1)]))
    assert error.value.code.name == "trace-durations"


def test_the_next_start_is_that_of_the_same_place():
    import numpy as np

    starts, places = np.array([5, 1, 5, 9, 2, 9]), np.array([0, 0, 0, 1, 1, 0])
    assert next_starts(starts, places).tolist() == [9, 5, 9, -1, 9, -1]


def test_devices_whose_numbers_are_text_are_not_one(kineto, tmp_path):
    events = [one for n in range(2) for one in (launch(n, n), kernel("k", 5 + 7 * n, 10, correlation=n, device=str(n)))]
    path = written(tmp_path / "t.json", events)
    (trace,) = read_kineto(path)
    assert [queue.device for queue in trace.queues] == [0, 1]
    totals = kineto.inspect([path], {}).metrics.find("total_time")
    assert {metric.labels: metric.value for metric in totals} == {
        (("gpu", "0"),): 10_000,
        (("gpu", "1"),): 10_000,
    }


def test_a_few_are_said_beside_every_figure(kineto, tmp_path, capsys):
    events = [*pairs(40), launch(500, 90), kernel("late", 501, -7, correlation=90), {**kernel("n", 3, 1), **NONE}]
    path = written(tmp_path / "t.json", [*events, launch(499, 91), kernel("over", 500, 1e15, correlation=91)])
    analysis = kineto.inspect([path], {})
    assert (
        analysis.window == "whole trace; GPU durations that cannot be read: 1 guessed from the next start, 2 left out"
    )
    (first, *_) = analysis.findings
    assert first.title == "3 GPU durations cannot be read"
    assert not analysis.problems
    assert "3 GPU durations cannot be read" in render_text(analysis.views["report"]())
    assert main(["check", str(path), "busy >= 1%"]) == 0
    assert "2 left out" in capsys.readouterr().out


@pytest.mark.parametrize(
    "more", [[kernel("a", 10 * n, -1, stream=100 + n) for n in range(30)], [{**kernel("b", 9, 1), **NONE}] * 30]
)
def test_many_are_no_ground_for_a_verdict(kineto, tmp_path, more):
    analysis = kineto.inspect([written(tmp_path / "t.json", [*pairs(40), *more])], {"floor": "0.6"})
    limit = parse_limit("idle <= 90%", kinds=by_name())
    (verdict,) = judge_artifact(analysis, [limit])
    assert verdict.outcome is Outcome.INVALID
    assert verdict.sentence.startswith("idle <= 90%: 42.9 % of the GPU events or their time has no readable duration")
    assert "--set floor" in verdict.next[0]


@pytest.mark.parametrize("start", [-2e11, 1e12, 8e15])
def test_a_kernel_on_another_clock_makes_no_window_of_years(kineto, tmp_path, start):
    late = [launch(500, 90), kernel("late", start, 7, correlation=90)]
    analysis = kineto.inspect([written(tmp_path / "t.json", [*pairs(40), *late])], {})
    assert analysis.window == "whole trace; GPU durations that cannot be read: 1 left out"
    assert {metric.value for metric in analysis.metrics.find("total_time")} == {395_000}
    assert analysis.findings[0].title == "1 GPU duration cannot be read"


def test_a_clock_that_jumped_amid_the_kernels_is_no_ground_for_a_verdict(kineto, tmp_path):
    later = [{**event, "ts": event["ts"] + 1e12} for event in pairs(40)]
    (problem,) = kineto.inspect([written(tmp_path / "t.json", [*pairs(60), *later])], {}).problems
    assert (problem.code, problem.what[:6]) == ("trace-durations", "40.0 %")


def test_devices_that_all_run_on_another_clock_than_the_host_are_read(tmp_path):
    events = [{**event, "ts": event["ts"] + 1e12} if event["cat"] == "kernel" else event for event in pairs(9)]
    (trace,) = read_kineto(written(tmp_path / "t.json", events))
    assert (len(trace), trace.untimed) == (18, 0)


def test_time_that_is_mostly_a_guess_is_no_ground_for_a_verdict(kineto, tmp_path):
    events = [launch(0, 1), kernel("over", 1, 1e19, correlation=1), launch(2, 2), kernel("k", 901, 99, correlation=2)]
    (problem,) = kineto.inspect([written(tmp_path / "t.json", events)], {}).problems
    assert (problem.code, problem.what[:6]) == ("trace-durations", "90.1 %")


def test_ranks_of_one_file_lose_only_what_is_theirs(tmp_path):
    events = [kernel("k", 10 * rank, length, rank=rank, device=rank) for rank in (0, 1) for length in (5, -1)]
    events += [host("op", 0, 3, rank=rank) for rank in (0, 1)]
    traces = read_kineto(written(tmp_path / "t.json", events))
    assert [(trace.rank, len(trace), trace.guessed) for trace in traces] == [(0, 2, ()), (1, 2, ())]


def test_a_limit_on_a_trace_of_little_coverage_names_itself(kineto, tmp_path):
    events = [launch(0, 1), kernel("a", 1, 10, correlation=1), kernel("b", 20, 10)]
    analysis = kineto.inspect([written(tmp_path / "t.json", events)], {})
    texts = ["idle <= 90%", "busy >= 1%"]
    verdicts = judge_artifact(analysis, [parse_limit(text, kinds=by_name()) for text in texts])
    assert [verdict.sentence.partition(": only 50.0 % of the GPU time")[0] for verdict in verdicts] == texts


def test_an_event_that_lasts_longer_than_the_trace_is_said(kineto, tmp_path):
    events = [*pairs(9), launch(20, 90), kernel("stuck", 22, 2**32, correlation=90)]
    first, *_ = kineto.inspect([written(tmp_path / "t.json", events)], {}).findings
    assert first.title == "One GPU event lasts longer than the trace"
    assert "stuck is said to take 4,295 s and to hold 6 others" in first.detail
    alone = [*pairs(2), launch(30, 90), kernel("long", 32, 2**20, correlation=90)]
    titles = [finding.title for finding in kineto.inspect([written(tmp_path / "t.json", alone)], {}).findings]
    assert first.title not in titles


@pytest.mark.parametrize(
    ("process", "fix"),
    [
        ("/device:GPU:0", "nsys export"),
        ("/job:localhost/device:GPU:0 Compute", "nsys export"),
        ("0 CPU HIP API", "results.csv"),
        ("Browser", "ncu"),
    ],
)
def test_a_trace_of_another_profiler_is_refused_with_what_is_read_of_the_same_program(tmp_path, process, fix):
    label = {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": process}}
    event = {"ph": "X", "name": "fusion", "pid": 1, "tid": 1, "ts": 1.0, "dur": 2.0}
    with pytest.raises(PerfgateError) as error:
        read_kineto(written(tmp_path / "t.json", [label, event]))
    assert error.value.code.name == "trace-foreign"
    assert fix in error.value.fix


def test_gpu_work_that_stands_twice_is_refused(tmp_path):
    """A tool that joins files may read one of them twice: every sum would be double, and limits would pass or fail."""
    once = [launch(0, 1), launch(2, 2), kernel("a", 10, 20, correlation=1), kernel("a", 30, 20, correlation=2)]
    path = written(tmp_path / "t.json", [*once, *once])
    with pytest.raises(PerfgateError, match="2 of 4 GPU events repeat another one") as error:
        read_kineto(path)
    assert error.value.code.name == "trace-two-documents"


@pytest.mark.parametrize("fraction", [0, 0.125])
def test_branches_of_a_graph_may_look_the_same_in_whole_microseconds(tmp_path, fraction):
    """Traces before PyTorch 2.2 have no fractions: equal branches that one launch starts at once differ in nothing."""
    graph = [kernel("a", 10 * n + fraction, 1, correlation=1) for n in range(20) for _ in range(4)]
    path = written(tmp_path / "t.json", [launch(0, 1), *graph])
    if fraction:
        with pytest.raises(PerfgateError, match="60 of 80 GPU events repeat another one"):
            read_kineto(path)
    else:
        (trace,) = read_kineto(path)
        assert len(trace) == 81


def test_launches_of_two_ranks_with_one_number_are_not_one_graph(tmp_path):
    both = [kernel("a", 10 + 5 * rank, 2, correlation=1, rank=rank, device=rank) for rank in (0, 1)]
    with pytest.raises(PerfgateError, match="2 of 4 GPU events repeat another one"):
        read_kineto(written(tmp_path / "t.json", [*both, *both]))
