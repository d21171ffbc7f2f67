"""Every operator that has a model, once: its work, its category, the reference's sheets, findings by pattern."""

from __future__ import annotations

from math import prod

import pytest

from pytest_perfgate import work
from pytest_perfgate.core.analysis.operators import MODELS, category_of, work_of
from pytest_perfgate.core.analysis.operators.call import Call
from pytest_perfgate.core.analysis.tracelens.tables import reference_tables
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.wiring import built_ins

from .generated import host, kernel, launch, seen, written
from .test_limits import PEAKS
from .zoo import CALLS, HEADS, ROWS, WISE, B, W, X, operation, recorded, zoo

SHAPES = {name: arguments for name, arguments, _ in CALLS}
CONV = work.conv(X[0], W[0], dtype="bf16", padding=1)
BIASED = work.conv(X[0], W[0], dtype="bf16", padding=1, bias=True)
ATTENTION = work.attention(2, 8, 128, 64, dtype="bf16")
CAUSAL = work.attention(2, 8, 128, 64, dtype="bf16", causal=True)
N = prod(ROWS[0])
EXPECTED = {
    "aten::mm": work.gemm(128, 256, 64, dtype="bf16"),
    "aten::addmm": work.gemm(128, 256, 64, dtype="bf16", bias=True),
    "aten::bmm": work.bmm(4, 32, 8, 16, dtype="bf16"),
    "aten::baddbmm": work.bmm(4, 32, 8, 16, dtype="bf16", bias=True),
    "aten::linear": work.gemm(128, 16, 32, dtype="bf16", bias=True),
    "aten::_scaled_mm": work.gemm(64, 16, 32, dtype="fp8", out="bf16"),
    "aten::mv": work.gemm(64, 1, 32, dtype="fp32"),
    "aten::dot": work.gemm(1, 1, 64, dtype="fp32"),
    "aten::_grouped_mm": work.grouped_gemm(64, 16, 32, 4, dtype="bf16"),
    "aten::convolution": BIASED,
    "aten::cudnn_convolution": CONV,
    "aten::miopen_convolution": BIASED,
    "aten::convolution_backward": work.conv_backward(X[0], W[0], dtype="bf16", padding=1),
    "aten::_scaled_dot_product_flash_attention": CAUSAL,
    "aten::_scaled_dot_product_efficient_attention": CAUSAL,
    "aten::scaled_dot_product_attention": ATTENTION,
    "FlashAttnFunc": CAUSAL,
    "aten::batch_norm": work.batch_norm(X[0], 16, dtype="bf16", affine=True, training=True),
    "aten::layer_norm": work.layer_norm(ROWS[0], 256, dtype="bf16", affine=True, training=True),
    "aten::native_layer_norm": work.layer_norm(ROWS[0], 256, dtype="bf16", affine=False, training=True),
    "aten::group_norm": work.group_norm(X[0], 16, dtype="bf16", training=True),
    "aten::native_group_norm": work.group_norm(X[0], 16, dtype="bf16", training=True),
    "aten::instance_norm": work.norm(X[0], 16, dtype="bf16", affine=False, training=True),
    "aten::_fused_rms_norm": work.rms_norm(ROWS[0], 256, dtype="bf16"),
    "aten::native_batch_norm_backward": work.norm_backward(X[0], 16, dtype="bf16"),
    "aten::cudnn_batch_norm_backward": work.norm_backward(X[0], 16, dtype="bf16"),
    "aten::native_layer_norm_backward": work.norm_backward(ROWS[0], 256, dtype="bf16"),
    "aten::native_group_norm_backward": work.norm_backward(X[0], 16, dtype="bf16"),
    "aten::_fused_rms_norm_backward": work.norm_backward(ROWS[0], 256, dtype="bf16", mask=(True, True, False)),
    "aten::relu": work.elementwise(N, dtype="bf16"),
    "aten::silu": work.elementwise(N, dtype="bf16"),
    "aten::add": work.custom(flops=N, bytes=2 * (2 * N + 256), dtype="bf16"),
    "aten::mul": work.elementwise(N, dtype="bf16"),
    "aten::copy_": work.custom(flops=0, bytes=6 * N, dtype="bf16"),
    "aten::fill_": work.custom(flops=0, bytes=2 * N, dtype="bf16"),
    "aten::sum": work.reduction(ROWS[0], dtype="bf16", dims=[0]),
    "aten::mean": work.reduction(ROWS[0], dtype="bf16"),
    "aten::_softmax": work.softmax((4, 32, 32), dtype="bf16"),
    "aten::_softmax_backward_data": work.softmax((4, 32, 32), dtype="bf16", backward=True),
    "aten::embedding": work.embedding(128, 64, dtype="bf16"),
    "aten::cross_entropy_loss": work.cross_entropy(64, 1000, dtype="fp32"),
    "triton_poi_fused__unsafe_view_mul_silu_2": work.custom(flops=2 * N, bytes=4 * N, dtype="bf16"),
    "triton_red_fused_add_mean_0": work.custom(flops=2 * N, bytes=2 * (N + 64), dtype="bf16"),
}


def called(name, arguments):
    lists = recorded(arguments)
    return Call(
        name=name,
        dims=tuple(map(tuple, lists["Input Dims"])),
        types=tuple(lists["Input type"]),
        strides=tuple(map(tuple, lists["Input Strides"])),
        concrete=tuple(lists["Concrete Inputs"]),
    )


@pytest.fixture(scope="module")
def kineto():
    return next(i for i in built_ins.BuiltIns().pytest_perfgate_inspectors() if i.name == "kineto")


def test_a_recorded_call_has_the_work_of_its_family():
    assert set(EXPECTED) == set(SHAPES) - {"mine::own"}
    for name, expected in EXPECTED.items():
        found, why = work_of(called(name, SHAPES[name]))
        assert found is not None, (name, why)
        assert (found.flops, found.bytes, found.dtype) == (expected.flops, expected.bytes, expected.dtype), name


def test_arguments_that_do_not_fit_are_a_reason_and_no_zero():
    for name in MODELS:
        found, why = work_of(Call(name=name, dims=((),), types=("Scalar",), concrete=("1",)))
        assert found is None, name
        assert "arguments do not fit the model" in why
        assert work_of(Call(name=name)) == (None, "the trace has no shapes: profile with record_shapes=True")
        assert category_of(name) != "other", name


def test_every_view_of_the_zoo_and_of_it_against_itself(kineto, tmp_path):
    path = [written(tmp_path / "t.json", zoo(), deviceProperties=[{"name": "NVIDIA H100 80GB HBM3"}])]
    analysis = kineto.inspect(path, {"op": "aten::mm"})
    for name, view in analysis.views.items():
        assert "nan" not in render_text(view()).lower().split(), name
    (share,) = analysis.metrics.find("modelled")
    assert share.value == pytest.approx((len(CALLS) - 1) / len(CALLS))
    same = kineto.compare(path, path, {})
    changes = ("slowdown", "difference", "tree_edits")
    assert {metric.value for metric in same.metrics.metrics if metric.name in changes} == {0.0}
    assert all(render_text(view()) for view in same.views.values())


def test_what_differs_between_two_traces_has_a_word(kineto, tmp_path):
    slow = [{**e, "dur": 4 * e["dur"]} if e["name"] == WISE else e for e in zoo() if e["name"] != "odd"]
    new = operation(len(CALLS), "mine::new", (ROWS,), "newer")
    first = written(tmp_path / "a.json", zoo())
    second = written(tmp_path / "b.json", [*slow, *new])
    found = kineto.compare([first], [second], PEAKS | {"peak": "bf16=100TFLOPS,fp32=10TFLOPS"})
    (relu,) = found.metrics.find("slowdown", (("op", "aten::relu"),))
    assert relu.value == pytest.approx(3.0)
    assert "unexpected: investigate, 300% slower: look at kernel selection" in relu.note
    assert found.metrics.missing("slowdown", (("op", "mine::new"),)).why == "only in the target"
    assert any("aten::relu takes 4.00 times the reference" in finding.title for finding in found.findings)
    assert "only in the reference" in render_text(found.views["ops"]())
    for kind in ("fair", "rough", "tree", "selection"):
        assert render_text(found.views[kind]())
    fair = render_text(found.views["fair"]())
    assert "Priority 1: aten::" in fair
    assert "Action: fusion or algorithm: torch.compile" in fair
    assert "Action: kernel only: replay it" in fair


def test_the_reference_s_sheets_of_the_zoo(tmp_path, kineto):
    sheets = reference_tables(seen(tmp_path / "t.json", zoo()))
    product = next(row for row in sheets["GEMM"] if row["name"] == "aten::mm")
    assert (product["param: M"], product["param: N"], product["param: K"]) == (128, 256, 64)
    assert product["GFLOPS_first"] == pytest.approx(2 * 128 * 256 * 64 / 1e9)
    for sheet in ("CONV_fwd", "SDPA_fwd", "Normalization", "UnaryElementwise", "BinaryElementwise", "Reduce_fwd"):
        assert sheets[sheet], sheet
    whole = kineto.inspect([tmp_path / "t.json"], {"compat": "tracelens"})
    assert set(whole.views) == {"tracelens"}
    assert whole.metrics.find("op_time", (("op", "aten::mm"),))[0].value == pytest.approx(8_000)
    assert render_text(whole.views["tracelens"]())


def findings_of(kineto, tmp_path, events, **options):
    path = written(tmp_path / "t.json", events)
    return [finding.title for finding in kineto.inspect([path], options or PEAKS | {"peak": "bf16=100TFLOPS"}).findings]


def test_patterns_are_found(kineto, tmp_path):
    bmm = (((4096, 8, 64), B), ((4096, 64, 8), B))
    large = (((4096, 4096), B), ((4096, 4096), B), "1")
    calls = [
        ("aten::bmm", bmm, "gemm", 900),
        ("aten::bmm", bmm, "gemm", 900),
        ("aten::_softmax", (((4096, 8, 8), B), "-1", "False"), "softmax", 20),
        ("aten::_scaled_dot_product_flash_attention", (HEADS, HEADS, HEADS, "0.", "True"), "flash", 200),
        ("aten::cudnn_convolution", (X, W, "[1, 1]", "[1, 1]", "[1, 1]", "1"), "batched_transpose", 90),
        ("aten::cudnn_convolution", (X, W, "[1, 1]", "[1, 1]", "[1, 1]", "1"), "implicit_gemm", 90),
        ("aten::native_layer_norm", (ROWS, "[256]", None, None, "1e-05"), "layer_norm", 90),
        ("aten::add", large, WISE, 120),
    ]
    events = [event for n, call in enumerate(calls) for event in operation(10 * n, *call)]
    events += [host("<checkpoint>: recompute_fn", 0, 60, cat="python_function")]
    events[0]["ts"] = 1
    titles = "\n".join(findings_of(kineto, tmp_path, events))
    for said in (
        "Idle time takes",
        "Attention is not fused",
        "Attention over a short sequence: 128",
        "Layout changes take 50% of convolution time",
        "Tiny batched products: 4,096 of at most 64",
        "aten::native_layer_norm reaches 0% of memory bandwidth",
        "Recomputation takes",
    ):
        assert said in titles, said


def test_many_short_kernels_and_few_long_gaps(kineto, tmp_path):
    events = []
    for n in range(40):
        at = 4 * n + 1000 * (n // 20)
        events += [launch(at, n + 1), kernel("tiny", at + 1, 4, correlation=n + 1)]
    titles = findings_of(kineto, tmp_path, events)
    assert "40 of 40 kernels are shorter than 10 µs" in titles
    assert "The device waits in few long gaps" in titles


def test_modules_of_many_short_kernels_are_candidates(kineto, tmp_path):
    events = []
    for n in range(3):
        events.append(host(f"nn.Module: RMSNorm_{n}", 100 * n, 90, cat="python_function"))
        for k in range(4):
            at = 100 * n + 20 * k
            events += [host("aten::mul", at + 1, 15), launch(at + 2, 10 * n + k + 1)]
            events.append(kernel(WISE, at + 5, 8, correlation=10 * n + k + 1))
    page = render_text(kineto.inspect([written(tmp_path / "t.json", events)], {}).views["fusion"]())
    assert "RMSNorm" in page
    stack = kineto.inspect([tmp_path / "t.json"], {"op": "nn.Module: RMSNorm_1"}).views["stack"]()
    assert render_text(stack).count("aten::mul") == 4


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


def test_nested_operators_of_equal_times_are_compared(kineto, tmp_path):
    events = [
        host("aten::linear", 0, 10),
        host("aten::mm", 0, 10),
        launch(2, 1),
        kernel("gemm", 20, 5, correlation=1),
    ]
    path = [written(tmp_path / "t.json", events)]
    (edits,) = kineto.compare(path, path, {}).metrics.find("tree_edits")
    assert edits.value == 0
