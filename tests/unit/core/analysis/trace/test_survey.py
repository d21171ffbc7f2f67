"""Steps and windows of a trace: what belongs to each, and what is missing."""

from __future__ import annotations

import pytest

from pytest_perfgate.core.analysis.trace.timeline import ranges
from pytest_perfgate.core.judge.against_limit import judge_artifact
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.profiles import Category
from tests.kineto_file import host, kernel, launch, surveyed, written


def marked(number, at, late, *, length=20, device=0):
    """A step of 50 µs on the host, and one kernel that starts ``late`` after its launch."""
    return [
        host(f"ProfilerStep#{number}", at, 50, cat="user_annotation"),
        host("aten::mm", at + 1, 9),
        launch(at + 2, number),
        kernel(f"gemm_{number}", at + 2 + late, length, correlation=number, device=device),
    ]


def inspected(kineto, folder, events, **options):
    return kineto.inspect([written(folder / "t.json", events)], options)


def value(analysis, name, **where):
    (metric,) = analysis.metrics.find(name, tuple(where.items()))
    return metric.value


def test_a_gpu_that_keeps_up_is_seen_through_the_host_s_steps(kineto, tmp_path):
    analysis = inspected(kineto, tmp_path, [*marked(1, 0, 5), *marked(2, 60, 5)])
    assert value(analysis, "step_time", step="1") == 50_000
    assert value(analysis, "idle", step="1") == pytest.approx(0.6)


def test_a_gpu_that_runs_behind_has_the_steps_of_its_launches(kineto, tmp_path):
    """The kernel of step 1 runs while the host is in step 2, that of step 2 after the host has ended."""
    analysis = inspected(kineto, tmp_path, [*marked(1, 0, 70), *marked(2, 60, 70, length=30)])
    assert value(analysis, "op_time", op="aten::mm", step="1") == 20_000
    assert value(analysis, "kernel_time", kernel="gemm_2", step="2") == 30_000
    assert not analysis.metrics.find("kernel_time", (("kernel", "gemm_1"), ("step", "2")))
    page = render_text(analysis.views["steps"]())
    assert "ProfilerStep#1, by launches" in page
    alone = inspected(kineto, tmp_path, [*marked(1, 0, 70), *marked(2, 60, 70, length=30)], step="2")
    assert alone.window.startswith("ProfilerStep#2, by launches")
    assert value(alone, "total_time") == 30_000


def test_a_step_whose_work_is_not_in_the_trace_is_refused_by_name(kineto, tmp_path):
    lost = host("ProfilerStep#9", 200, 50, cat="user_annotation")
    with pytest.raises(PerfgateError, match="nothing that was launched in ProfilerStep#9 is in the trace"):
        inspected(kineto, tmp_path, [*marked(1, 0, 70), lost], step="9")


def test_steps_without_gpu_work_are_no_missing_steps(kineto, tmp_path):
    events = [host("ProfilerStep#1", 0, 50, cat="user_annotation"), kernel("gemm", 90, 10)]
    text = render_text(inspected(kineto, tmp_path, events).views["steps"]())
    assert "The trace marks 1 step, and no GPU work lies in one of them." in text
    assert "The trace marks no steps." in render_text(inspected(kineto, tmp_path, events[1:]).views["steps"]())


def test_each_device_of_a_step_has_its_line(kineto, tmp_path):
    more = [launch(4, 7), kernel("other", 20, 10, correlation=7, device=1)]
    text = render_text(inspected(kineto, tmp_path, [*marked(1, 0, 5), *more]).views["steps"]())
    assert "ProfilerStep#1, device 0" in text
    assert "ProfilerStep#1, device 1" in text


def test_a_window_of_nothing_says_so(kineto, tmp_path):
    analysis = inspected(kineto, tmp_path, marked(1, 0, 5), window="30us..40us")
    assert analysis.metrics.missing("idle").why == "no GPU work lies in this window"


def annotated(lengths):
    """An annotation of 300 µs each, with one kernel of these microseconds in it; 0 stands for none."""
    for number, length in enumerate(lengths, 1):
        at = 1000 * number
        yield host("fwd", at, 300, cat="user_annotation", **{"External id": number})
        yield launch(at + 5, number)
        if length:
            yield kernel("a", at + 10, length, correlation=number)


def test_of_several_windows_each_is_judged_and_the_whole_is_no_answer(kineto, tmp_path):
    """Between the instances the device idles for most of the trace: that is not what was asked."""
    analysis = inspected(kineto, tmp_path, [*annotated([100, 200])], window="annotation=fwd")
    assert [m.value for m in analysis.metrics.find("idle")] == [pytest.approx(2 / 3), pytest.approx(1 / 3)]
    assert [dict(m.labels)["step"] for m in analysis.metrics.find("kernel_count")] == ["1", "2"]
    assert "fwd (2)" in render_text(analysis.views["steps"]())
    alone = inspected(kineto, tmp_path, [*annotated([100])], window="annotation=fwd")
    assert alone.window == "fwd"
    assert value(alone, "total_time") == 300_000


@pytest.mark.parametrize("fields", [{}, {"External id": 0}], ids=["none", "zero"])
def test_annotations_without_an_id_are_instances_of_their_own(kineto, tmp_path, fields):
    events = [*annotated([100, 200])]
    for event in events:
        event["args"].pop("External id", None)
        event["args"] |= fields
    analysis = inspected(kineto, tmp_path, events, window="annotation=fwd")
    assert [m.value for m in analysis.metrics.find("total_time")] == [300_000, 300_000]


def test_a_window_without_work_among_others_is_not_passed_over(kineto, tmp_path):
    analysis = inspected(kineto, tmp_path, [*annotated([100, 0, 200])], window="annotation=fwd")
    assert analysis.metrics.missing("idle", (("step", "2"),)).why == "no GPU work lies in this window"
    limit = parse_limit("idle <= 90%", kinds=by_name())
    assert [v.outcome.value for v in judge_artifact(analysis, [limit])] == ["not measured", "passed", "passed"]


def test_steps_that_are_recorded_as_operators_are_steps(tmp_path, kineto):
    events = [host("ProfilerStep#3", 0, 40), launch(2, 1), kernel("gemm", 5, 20, correlation=1)]
    analysis = kineto.inspect([written(tmp_path / "t.json", events)], {"step": "3"})
    assert analysis.window == "ProfilerStep#3"


@pytest.mark.parametrize("fields", [{}, {"External id": 0}])
def test_annotations_of_the_gpu_without_an_id_are_one_where_they_overlap(kineto, tmp_path, fields):
    """Two instances on two streams each; as one window they would reach over the 900 µs between them."""
    events = [
        event
        for at in (0, 1000)
        for stream in (7, 8)
        for event in (
            kernel("fwd", at + 10 * stream, 40, cat="gpu_user_annotation", stream=stream, **fields),
            kernel("gemm", at + 10 * stream, 40, stream=stream),
        )
    ]
    windows = ranges(surveyed(tmp_path / "t.json", events).trace, "fwd", Category.GPU_ANNOTATION)
    assert [window.end - window.start for window in windows] == [50_000, 50_000]


def test_an_annotation_without_an_id_begins_again_on_a_stream_that_it_has(tmp_path):
    """The second stream runs on into the next instance: all five overlap, and became one window."""
    ranges_of_streams = ((7, 0, 60), (8, 30, 90))
    events = [
        kernel("fwd", 100 * number + at, length, cat="gpu_user_annotation", stream=stream)
        for number in range(5)
        for stream, at, length in ranges_of_streams
    ]
    trace = surveyed(tmp_path / "t.json", [*events, kernel("gemm", 0, 10)]).trace
    windows = ranges(trace, "fwd", Category.GPU_ANNOTATION)
    assert [(window.start, window.end) for window in windows] == [
        (100_000 * number, 100_000 * number + 120_000) for number in range(5)
    ]
