"""Traces of programs without a GPU: the times of operators that run on the host."""

from __future__ import annotations

import pytest

from pytest_perfgate.core.render.text import render_text
from tests.kineto_file import host, written


def times(kineto, folder, events, **options):
    """Microseconds by operator, and the analysis."""
    analysis = kineto.inspect([written(folder / "t.json", events)], options)
    named = [(dict(m.labels).get("op"), m.value / 1000) for m in analysis.metrics.find("op_time")]
    by_name = {name: value for name, value in named if name}
    return by_name, analysis


def linear(at):
    """As PyTorch calls it on a processor: the product is in addmm itself, between and behind what that calls."""
    return [
        host("aten::linear", at, 100),
        host("aten::t", at + 2, 3),
        host("aten::transpose", at + 3, 1),
        host("aten::addmm", at + 6, 90),
        host("aten::expand", at + 7, 2),
        host("aten::as_strided", at + 8, 0.5),
        host("aten::copy_", at + 10, 4),
        host("aten::resolve_conj", at + 15, 1),
    ]


def test_a_product_has_the_time_that_it_takes_and_not_that_of_its_views(kineto, tmp_path) -> None:
    by_name, analysis = times(kineto, tmp_path, [*linear(0), *linear(200)])
    assert by_name["aten::addmm"] == 180
    assert "aten::copy_" not in by_name
    assert "aten::linear" not in by_name
    (count,) = analysis.metrics.find("op_count", (("op", "aten::addmm"),))
    assert count.value == 2
    (idle,) = analysis.metrics.find("idle")
    assert idle.value == pytest.approx(100 / 300)
    assert "operators run" in render_text(analysis.views["report"]())


def test_what_has_no_model_and_only_allocates_stands_for_itself(kineto, tmp_path) -> None:
    """An operator of a library of one's own."""
    events = [host("mine::scan", 0, 50), host("aten::empty", 1, 2), host("aten::relu", 60, 10)]
    assert times(kineto, tmp_path, events)[0] == {"mine::scan": 50, "aten::relu": 10}


def test_what_only_calls_others_does_not_stand_for_them(kineto, tmp_path) -> None:
    events = [
        host("mine::step", 0, 100),
        host("aten::matmul", 5, 40), host("aten::mm", 6, 38), host("aten::mul", 50, 10),
        host("aten::zeros", 70, 20), host("aten::empty", 71, 2), host("aten::zero_", 75, 12), host("aten::fill_", 76, 10),
    ]  # fmt: skip
    by_name, analysis = times(kineto, tmp_path, events)
    assert by_name == {"aten::mm": 38, "aten::mul": 10, "aten::empty": 2, "aten::fill_": 10}
    assert analysis.metrics.find("idle")[0].value == 0


def test_its_pictures_speak_of_the_host_and_name_each_step_alone(kineto, tmp_path) -> None:
    marks = [host(f"ProfilerStep#{n}", 200 * n, 150, cat="user_annotation") for n in range(2)]
    analysis = kineto.inspect([written(tmp_path / "t.json", [*marks, *linear(0), *linear(200)])], {})
    drawn = {name: analysis.pictures[name]() for name in ("steps", "timeline", "tree")}
    assert [bar.label for bar in drawn["steps"].bars] == ["step 0", "step 1"]
    assert [bar.label for bar in drawn["timeline"].bars] == ["host"]
    assert "communication" not in drawn["timeline"].alt
    assert drawn["tree"].alt.startswith("Host time")
    (table,) = analysis.views["steps"]().blocks
    assert [row[0] for row in table.rows] == ["ProfilerStep#0", "ProfilerStep#1"]


@pytest.mark.parametrize("options", [{}, {"peak": "fp32=1TFLOPS", "bandwidth": "100GB/s"}])
def test_its_pages_speak_of_no_gpu(kineto, tmp_path, options) -> None:
    shapes = {"Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"]}
    events = [host("aten::mm", 0, 40, **shapes), host("mine::own", 50, 50)]
    analysis = kineto.inspect([written(tmp_path / "t.json", events)], {**options, "op": "aten::mm"})
    for name in ("report", "analysis", "fair", "rough", "ops", "roofline", "impact", "stack"):
        text = render_text(analysis.views[name](), 200)
        assert "GPU time" not in text, name
        assert "no GPU activity" not in text, name
        assert "longest kernel" not in text, name
        assert "kernels launched" not in text, name
        assert "the device is unknown" not in text, name
    assert "host time" in render_text(analysis.views["rough"]())
    assert analysis.views["kernels"]().blocks[0].rows == (), "operators are no kernels"
    assert "no kernels: --view ops" in render_text(analysis.views["kernels"](), 200)
    if not options:
        assert "a trace does not say the host's peaks" in render_text(analysis.views["roofline"](), 200)


def test_a_step_mark_without_operators_says_that(kineto, tmp_path) -> None:
    events = [host("aten::mm", 0, 50), host("ProfilerStep#1", 60, 1, cat="user_annotation")]
    _, analysis = times(kineto, tmp_path, events)
    assert "marks 1 step, and no operator lies in one of them." in render_text(analysis.views["steps"]())
    _, nowhere = times(kineto, tmp_path, events, window="55us..58us")
    assert nowhere.metrics.missing("idle").why == "no operator lies in this window"


def shaped(*dims):
    return {"Input Dims": list(dims), "Input type": ["float"] * len(dims)}


@pytest.mark.parametrize("call", ["zeCommandListAppendLaunchKernel", "clEnqueueNDRangeKernel", "hipLaunchKernel"])
def test_calls_of_a_device_that_a_tool_wrote_as_operators_are_of_no_host_program(kineto, tmp_path, call) -> None:
    """Intel's unitrace does; a trace of the calls alone would have idle time, and a limit on it could pass."""
    events = [host(call, 0, 40), host("zero_", 100, 40)]
    assert not times(kineto, tmp_path, events)[1].metrics.find("idle")
    assert times(kineto, tmp_path, events[1:])[1].metrics.find("idle")


def test_a_program_without_a_gpu_has_no_zeros_of_devices(kineto, tmp_path):
    events = [host("aten::mm", 0, 10, **shaped([8, 8], [8, 8])), host("aten::add", 20, 5)]
    metrics = kineto.inspect([written(tmp_path / "t.json", events)], {}).metrics
    assert metrics.find("total_time")[0].value == 25_000
    assert metrics.find("op_time", (("op", "aten::mm"),))[0].value == 10_000
    for name in ("overlap", "communication_time", "exposed_memcpy", "memset_time", "kernel_time", "coverage"):
        assert not metrics.find(name), name
        assert "no GPU" in metrics.missing(name).why


@pytest.mark.parametrize(("backend", "measured"), [("nccl", False), ("gloo", True), (7, True)])
def test_a_rank_of_a_gpu_job_without_gpu_events_is_not_a_host_program(kineto, tmp_path, backend, measured):
    info = {"backend": backend, "rank": 0, "world_size": 2}
    path = written(tmp_path / "t.json", [host("aten::mm", 0, 10, **shaped([8, 8], [8, 8]))], distributedInfo=info)
    metrics = kineto.inspect([path], {}).metrics
    assert bool(metrics.find("idle")) is measured
    assert metrics.missing("overlap").why.startswith("this program" if measured else "the trace has no GPU activity")


@pytest.mark.parametrize(
    ("name", "measured"),
    [
        ("aten::cudnn_convolution", False),
        ("aten::_mps_convolution", False),
        ("aten::_scaled_dot_product_attention_math_for_mps", False),
        ("aten::_scaled_dot_product_flash_attention", False),
        ("aten::_scaled_dot_product_flash_attention_for_cpu", True),
        ("aten::_use_cudnn_ctc_loss", True),
        ("aten::cudnn_is_acceptable", True),
    ],
)
def test_operators_that_only_a_device_has_tell_that_its_activity_is_missing(kineto, tmp_path, name, measured):
    path = written(tmp_path / "t.json", [host("aten::mm", 0, 10, **shaped([8, 8], [8, 8])), host(name, 20, 5)])
    metrics = kineto.inspect([path], {}).metrics
    assert bool(metrics.find("idle")) is measured
    assert bool(metrics.find("op_time", (("op", "aten::mm"),))) is measured


def test_memory_of_a_device_tells_that_its_activity_is_missing(kineto, tmp_path):
    def memory(of):
        args = {"Bytes": 4, "Addr": 1, "Device Id": 0, "Device Type": of}
        return {
            "ph": "i",
            "cat": "cpu_instant_event",
            "s": "t",
            "name": "[memory]",
            "pid": 1,
            "tid": 1,
            "ts": 5,
            "args": args,
        }

    ran = host("aten::mm", 0, 10, **shaped([8, 8], [8, 8]))
    (first, second) = (kineto.inspect([written(tmp_path / "t.json", [ran, memory(of)])], {}).metrics for of in (0, 1))
    assert first.find("op_time", (("op", "aten::mm"),))
    assert not second.find("op_time")
    absent = second.missing("op_time")
    assert absent.why == "the trace has no GPU activity"
    assert "ProfilerActivity.CUDA" in absent.fix


def test_a_number_is_copied_within_the_operator_that_takes_it(kineto, tmp_path) -> None:
    """As `x * 2` runs: the inner call makes a tensor of the number, and then multiplies."""
    events = [
        host("aten::mul", 0, 100),
        host("aten::mul", 2, 96),
        host("aten::to", 3, 6),
        host("aten::_to_copy", 4, 5),
        host("aten::copy_", 6, 2),
    ]
    assert times(kineto, tmp_path, events)[0] == {"aten::mul": 96}
