"""Tests of app/inspections/kineto."""

from __future__ import annotations

import math
from itertools import product

import pytest

import pytest_perfgate
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.core.render.html import render_markdown
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.errors import PerfgateError
from tests.kineto_file import host, kernel, launch, written


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        ("vit_h100", set()),
        ("nccl_a100_rank0of2", {"replay"}),
        ("gpu_only_mi210", {"stack", "replay"}),
        ("edge/cpu_only", {"replay"}),
        ("edge/large_integers", {"stack", "replay"}),
    ],
)
def test_every_view_renders_or_lacks_an_operation(kineto, corpus, name, refused):
    analysis = kineto.inspect([corpus / "torch" / f"{name}.json.gz"], {})
    lacking = {}
    for view in kineto.views:
        if view in analysis.views:
            try:
                document = analysis.views[view]()
            except PerfgateError as fault:
                lacking[view] = fault.code.name
                continue
            assert document.title
            assert "nan" not in render_text(document).lower().split()
            assert render_markdown(document)
    assert lacking == dict.fromkeys(refused, "trace-no-operation")


def test_views_that_are_listed_are_there(kineto, corpus):
    assert set(kineto.inspect([corpus / "torch" / "vit_h100.json.gz"], {}).views) == set(kineto.views) - {"tree"}


def test_every_metric_is_of_a_known_kind_with_known_scopes(kineto, corpus):
    kinds = by_name()
    paths = sorted((corpus / "torch" / "dlrm_8ranks").glob("*.gz"))
    for analysis in (kineto.inspect(paths, {}), kineto.inspect([corpus / "torch" / "vit_h100.json.gz"], {})):
        for metric in analysis.metrics.metrics:
            assert {name for name, _ in metric.labels} <= set(kinds[metric.name].scopes), metric
            assert metric.dimension is kinds[metric.name].dimension
            assert math.isfinite(metric.value)


def test_the_straggler_is_a_metric(kineto, corpus):
    analysis = kineto.inspect(sorted((corpus / "torch" / "dlrm_8ranks").glob("*.gz")), {})
    (late,) = analysis.metrics.find("straggler")
    assert late.value == 7
    assert len(analysis.metrics.find("overlap")) == 8


def test_two_files_of_one_rank_are_refused(kineto, tmp_path):
    events = [launch(0, 1), kernel("a", 5, 10, correlation=1)]
    paths = [written(tmp_path / f"{name}.json", events, distributedInfo={"rank": 0}) for name in "ab"]
    with pytest.raises(PerfgateError, match="rank 0 is claimed by"):
        kineto.inspect(paths, {})


def test_coverage_under_the_floor_makes_limits_invalid(kineto, tmp_path):
    events = [launch(0, 1), kernel("a", 5, 10, correlation=1), kernel("b", 20, 30, correlation=77)]
    path = written(tmp_path / "t.json", events)
    analysis = kineto.inspect([path], {})
    (problem,) = analysis.problems
    assert problem.code == "trace-coverage"
    assert "25.0 %" in problem.what
    assert analysis.findings[0].trigger == "class=invalid"
    enough = kineto.inspect([path], {"floor": "0.2"})
    assert not enough.problems
    assert not [finding for finding in enough.findings if finding.trigger == "class=invalid"]


def test_a_gpu_program_without_gpu_activity_has_absent_figures(kineto, tmp_path):
    path = written(tmp_path / "t.json", [host("aten::mm", 0, 10), launch(2, 1)])
    metrics = kineto.inspect([path], {}).metrics
    assert not metrics.find("idle")
    assert metrics.missing("idle").why == "the trace has no GPU activity"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"colour": "red"}, "unknown option 'colour'"),
        ({"floor": "much"}, "is not a number"),
        ({"peak": "bf17=1TFLOPS"}, "unknown dtype"),
        ({"peak": "bf16=fast"}, "is not a rate"),
        ({"peak": "bf16=989"}, "is not a rate"),
        ({"peak": "bf16=0TFLOPS"}, "is not a rate"),
        ({"peak": "bf16=3TB/s"}, "is not a rate"),
        ({"bandwidth": "3"}, "is not a rate"),
        ({"bandwidth": "1.2.3TB/s"}, "is not a rate"),
        ({"bandwidth": "1e999TB/s"}, "is not a rate"),
        ({"window": "annotation=none"}, "no step or annotation fits"),
        ({"window": "5us..2us"}, "ends before it starts"),
        ({"device": "Abacus"}, "no device 'Abacus'"),
        ({"communication": "("}, "is not a pattern"),
        ({"compat": "other"}, "compat='other'"),
    ],
)
def test_options_that_do_not_read_are_refused(kineto, tmp_path, options, message):
    path = written(tmp_path / "t.json", [launch(0, 1), kernel("a", 5, 10, correlation=1)])
    with pytest.raises(PerfgateError) as error:
        kineto.inspect([path], options).views["report"]()
    assert message in error.value.text()


def test_given_peaks_make_mfu_a_metric(kineto, corpus):
    path = corpus / "torch" / "vit_h100.json.gz"
    metrics = kineto.inspect([path], {"peak": "bf16=989.4TFLOPS", "bandwidth": "3.35TB/s"}).metrics
    (mfu,) = metrics.find("mfu", (("op", "aten::addmm"),))
    (sheet,) = kineto.inspect([path], {}).metrics.find("mfu_datasheet", (("op", "aten::addmm"),))
    assert mfu.value == pytest.approx(sheet.value, rel=1e-3)
    assert not kineto.inspect([path], {}).metrics.find("mfu")


def test_two_devices_differ_as_their_hardware_or_are_called_unexpected(kineto, corpus):
    pair = [corpus / "torch" / f"vit_{device}.json.gz" for device in ("h100", "mi300")]
    analysis = kineto.compare(pair[:1], pair[1:], {})
    (slower,) = analysis.metrics.find("slowdown", (("op", "aten::_flash_attention_forward"),))
    assert slower.value == pytest.approx(2.05, abs=0.01)
    assert "unexpected" in slower.note
    (layer,) = analysis.metrics.find("slowdown", (("op", "aten::convolution"),))
    assert layer.value == pytest.approx(-0.631, abs=0.001), "cudnn_convolution and miopen_convolution are one layer"
    for view in analysis.views.values():
        assert render_text(view())


def test_a_trace_does_not_differ_from_itself(kineto, corpus):
    path = [corpus / "torch" / "bert_small_h100.json.gz"]
    analysis = kineto.compare(path, path, {})
    changes = ("slowdown", "difference", "tree_edits", "expected_slowdown")
    assert {m.value for m in analysis.metrics.metrics if m.name in changes} == {0.0}
    assert not analysis.findings


def test_tables_are_frames_from_python(corpus, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    analysis = pytest_perfgate.look(corpus / "torch" / "vit_h100.json.gz", window="steps")
    assert pytest_perfgate.frame(analysis, "ops")["calls"].sum() == 151
    assert {"metric", "value", "op"} <= set(pytest_perfgate.frame(analysis).columns)
    assert "Kernels" in pytest_perfgate.frames(analysis, "report")


def roofed(tmp_path, kineto, device):
    path = written(tmp_path / "t.json", [launch(0, 1), kernel("k", 2, 9, correlation=1)])
    return render_text(kineto.inspect([path], {"device": device}).views["roofline"]())


def test_a_device_is_found_by_the_start_of_its_name(tmp_path, kineto):
    assert "Roof: H100 SXM5 80GB" in roofed(tmp_path, kineto, "H100 SXM")


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("A100-SXM4", "one of: A100-SXM4-40GB, A100-SXM4-80GB"),
        ("H100 Ultra", "H100 PCIe"),
        ("Abacus", "perfgate devices lists the catalogue"),
    ],
)
def test_an_unknown_device_is_an_error_that_names_those_meant(tmp_path, kineto, device, message):
    with pytest.raises(PerfgateError) as error:
        roofed(tmp_path, kineto, device)
    assert message in error.value.text()


def test_short_operators_of_a_host_are_no_launches_of_a_device(tmp_path, kineto):
    path = written(tmp_path / "t.json", [host("aten::add", 10 * at, 5) for at in range(30)])
    assert not [finding for finding in kineto.inspect([path], {}).findings if "kernels" in finding.title]


EVENTS = [host("aten::mm", 0, 10), launch(2, 1), kernel("gemm", 5, 20, correlation=1)]


def test_the_views_of_a_program_without_a_gpu_have_the_hosts_time(tmp_path, kineto):
    mm = host("aten::mm", 0, 50, **{"Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"]})
    analysis = kineto.inspect([written(tmp_path / "t.json", [mm])], {})
    for name in ("roofline", "ops", "report"):
        text = render_text(analysis.views[name]())
        assert "host time" in text, name
        assert "GPU time" not in text, name


def test_a_trace_with_odd_arguments_has_every_view(tmp_path, kineto):
    odd = {"Input Dims": [5, ["a"], {}], "Input type": ["float", 3, None], "Input Strides": 7, "Concrete Inputs": {}}
    events = [host("aten::mm", 0, 10, **odd), launch(2, 1), kernel("gemm", 5, 20, correlation=1)]
    analysis = kineto.inspect([written(tmp_path / "t.json", events)], {})
    for name, view in analysis.views.items():
        if name != "replay":
            assert render_text(view()), name
    both = [tmp_path / "t.json"]
    assert render_text(kineto.compare(both, both, {}).views["report"]())


@pytest.mark.parametrize("shape", [["s0", 512], [-1, 512], [512.5, 512], [None, 512]])
def test_a_shape_that_is_no_numbers_has_no_rate_and_no_bytes(tmp_path, kineto, shape):
    arguments = {"Input Dims": [shape, [512, 512]], "Input type": ["float", "float"]}
    events = [
        host("aten::add", 0, 10, **arguments),
        launch(2, 1),
        kernel("add_kernel", 5, 20, correlation=1),
        host("nccl:all_reduce", 20, 10, **arguments),
        launch(22, 2),
        kernel("ncclDevKernel_AllReduce", 30, 20, correlation=2),
    ]
    analysis = kineto.inspect([written(tmp_path / "t.json", events)], {})
    assert "arguments do not fit the model" in render_text(analysis.views["roofline"]())
    assert "not collected" in render_text(analysis.views["ranks"]())
    assert not [m for m in analysis.metrics.metrics if m.name in {"tflops", "comm_bytes"}]


@pytest.mark.parametrize("more", [[], [launch(2, 1)]])
def test_kernels_that_took_no_time_are_no_figures(tmp_path, kineto, more):
    events = [*more, kernel("gemm", 5, 0, correlation=1), kernel("gemm", 50, 0, correlation=1)]
    analysis = kineto.inspect([written(tmp_path / "t.json", events)], {})
    assert not analysis.metrics.metrics
    assert "no GPU activity" in render_text(analysis.views["report"]())


ODD = [2**70, -(2**70), 1.5, "abc", [1], {}, True, None]
NAMES = ["device", "stream", "rank", "correlation", "External id", "bytes", "Group size"]


@pytest.mark.parametrize(("name", "odd"), [p for p in product(NAMES, ODD) if p != ("rank", 2**70)])
def test_an_argument_of_any_form_and_size_is_taken_or_left(tmp_path, kineto, name, odd):
    events = [
        *EVENTS,
        kernel("ncclDevKernel_AllReduce", 40, 5, **{"correlation": 2, "Collective name": "x", name: odd}),
    ]
    analysis = kineto.inspect([written(tmp_path / "t.json", events)], {})
    assert analysis.metrics.metrics
    assert render_text(analysis.views["ranks"]())
