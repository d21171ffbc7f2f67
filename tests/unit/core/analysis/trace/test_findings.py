"""Findings on a trace: the pattern, its figures and its advice."""

from __future__ import annotations

import pytest

from pytest_perfgate.core.render.text import render_text
from tests.kineto_file import host, kernel, launch, written
from tests.kineto_job import PEAKS
from tests.kineto_operators import HEADS, ROWS, WISE, B, W, X, operation


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
    for title in (
        "Idle time takes",
        "Attention is not fused",
        "Attention over a short sequence: 128",
        "Layout changes take 50 % of convolution time",
        "Tiny batched products: 4,096 of at most 64",
        "aten::native_layer_norm reaches 0 % of memory bandwidth",
        "Recomputation takes",
    ):
        assert title in titles, title


def test_many_short_kernels_and_few_long_gaps(kineto, tmp_path):
    events = []
    for n in range(40):
        at = 4 * n + 1000 * (n // 20)
        events += [launch(at, n + 1), kernel("tiny", at + 1, 4, correlation=n + 1)]
    titles = findings_of(kineto, tmp_path, events)
    assert "40 of 40 kernels are shorter than 10 µs" in titles
    assert "The device waits in few long gaps" in titles


def test_short_kernels_are_counted_one_by_one(kineto, tmp_path):
    """Kernels of one name are not all as short as their median: 18 of these 24 take 4 µs, 6 take 40."""
    events = []
    for n in range(24):
        events += [launch(100 * n, n + 1), kernel("same", 100 * n + 1, 4 if n % 4 else 40, correlation=n + 1)]
    analysis = kineto.inspect([written(tmp_path / "t.json", events)], {})
    (finding,) = [one for one in analysis.findings if one.trigger.startswith("short_kernels=")]
    (metric,) = analysis.metrics.find("short_kernels")
    assert (finding.title, metric.value) == ("18 of 24 kernels are shorter than 10 µs", 0.75)
    assert finding.trigger == "short_kernels=0.750"
    assert finding.detail.startswith("They hold 23 % of compute time")  # 72 of 312 µs


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
    (saving,) = kineto.inspect([tmp_path / "t.json"], {}).metrics.find("module_saving", (("module", "RMSNorm"),))
    assert saving.value == 3 * 3 * 8_000  # three instances of four kernels: one of them stays
    stack = kineto.inspect([tmp_path / "t.json"], {"op": "nn.Module: RMSNorm_1"}).views["stack"]()
    assert render_text(stack).count("aten::mul") == 4


def test_waits_for_the_device_name_who_calls_them(kineto, tmp_path):
    events = [host("Optimizer.step#Adam.step", 0, 1000, cat="user_annotation")]
    for n in range(4):
        at = 200 * n
        events += [launch(at + 1, n + 1), kernel("gemm", at + 10, 90, correlation=n + 1)]
        events += [host("aten::item", at + 5, 100), host("cudaStreamSynchronize", at + 6, 97, cat="cuda_runtime")]
    (finding,) = [one for one in findings_of(kineto, tmp_path, events) if "host waits" in one]
    assert "in 4 calls" in finding
    details = render_text(kineto.inspect([tmp_path / "t.json"], {}).views["findings"]())
    assert "cudaStreamSynchronize in aten::item in Optimizer.step#Adam.step 4 times" in " ".join(details.split())


def test_fusion_does_not_save_the_products_of_a_module(kineto, tmp_path):
    events = [host("nn.Module: MLP_0", 0, 90, cat="python_function")]
    for k, name in enumerate(("aten::addmm", "aten::gelu", "aten::addmm", "aten::mul")):
        events += [host(name, 20 * k + 1, 15), launch(20 * k + 2, k + 1)]
        events.append(kernel(name, 20 * k + 5, 8 + k, correlation=k + 1))
    (saving,) = kineto.inspect([written(tmp_path / "t.json", events)], {}).metrics.find("module_saving")
    assert saving.value == 9_000 + 11_000  # the two products stay


def test_attention_whose_two_products_have_different_shapes_is_not_fused(kineto, tmp_path) -> None:
    def operator(at, name, number, dims):
        yield host(name, at, 9, **{"Input Dims": dims, "Input type": ["c10::BFloat16"] * len(dims)})
        yield launch(at + 1, number)
        yield kernel(f"k{number}", at + 5, 30, correlation=number)

    events = [
        *operator(0, "aten::bmm", 1, [[32, 1024, 64], [32, 64, 1024]]),
        *operator(100, "aten::_softmax", 2, [[32, 1024, 1024]]),
        *operator(200, "aten::bmm", 3, [[32, 1024, 1024], [32, 1024, 64]]),
    ]
    analysis = kineto.inspect([written(tmp_path / "t.json", events)], {})
    (finding,) = [one for one in analysis.findings if one.title == "Attention is not fused"]
    assert finding.detail.startswith("aten::_softmax 1 times, aten::bmm 2 times, 100 % together.")
    busy = 90 / 230
    assert [1 - 1 / (1 + side) for side in (finding.gain.low, finding.gain.high)] == pytest.approx(
        [busy * 2 / 3, busy * 9 / 10], rel=0.02
    )


def short_kernels(between, count=30):
    """Kernels of 4 µs, with these calls of the host behind the tenth, and a wait behind the last."""
    for n in range(count):
        yield from (launch(10 * n, n + 1), kernel("tiny", 10 * n + 1, 4, correlation=n + 1))
    yield from (host(name, 101 + n / 10, 0.05, cat=cat) for n, (name, cat) in enumerate(between))
    yield host("cudaDeviceSynchronize", 10 * count + 5, 9, cat="cuda_runtime")


@pytest.mark.parametrize(
    ("between", "named"),
    [
        ([], ""),
        ([("cudaMemcpyAsync", "cuda_runtime"), ("cudaMallocAsync", "cuda_runtime"), ("aten::add", "cpu_op")], ""),
        ([("cudaMalloc", "cuda_runtime")], "cudaMalloc 1 time."),
        ([("aten::item", "cpu_op"), ("cudaStreamSynchronize", "cuda_runtime"), ("aten::item", "cpu_op")],
         "aten::item 2 times, cudaStreamSynchronize 1 time."),
        ([("hipMemcpyWithStream", "cuda_runtime")], "hipMemcpyWithStream 1 time."),
    ],
)  # fmt: skip
def test_calls_between_short_kernels_that_no_graph_can_hold(kineto, tmp_path, between, named) -> None:
    findings = kineto.inspect([written(tmp_path / "t.json", list(short_kernels(between)))], {}).findings
    details = [one.detail for one in findings if one.title == "Calls that a CUDA graph cannot contain"]
    assert [f"Between the launches: {named}" in detail for detail in details] == ([True] if named else [])


@pytest.mark.parametrize("graphed", [False, True])
def test_kernels_that_a_graph_launches_need_no_other_graph(kineto, tmp_path, graphed) -> None:
    events = list(short_kernels([("cudaMalloc", "cuda_runtime")]))
    for event in events:
        if graphed and event["name"] == "cudaLaunchKernel":
            event["name"] = "cudaGraphLaunch"
    findings = kineto.inspect([written(tmp_path / "t.json", events)], {}).findings
    (advice,) = [one.advice for one in findings if "are shorter than 10 µs" in one.title]
    assert ("launch them as one CUDA graph" in advice) is not graphed
    assert ("graphs launch them already" in advice) is graphed
    assert any("CUDA graph cannot contain" in one.title for one in findings) is not graphed


def test_long_kernels_need_no_graph(kineto, tmp_path) -> None:
    events = [launch(0, 1), host("cudaMalloc", 2, 1, cat="cuda_runtime"), launch(4, 2)]
    events += [kernel("long", 10 + 5_000 * n, 4_000, correlation=n + 1) for n in range(2)]
    assert "Calls that a CUDA graph cannot contain" not in findings_of(kineto, tmp_path, events)


@pytest.mark.parametrize(("rows", "length", "expected"), [(4, 40, True), (256, 90, False), (4096, 2_000, False)])
def test_a_product_that_waits_for_its_weights_asks_for_a_larger_batch(kineto, tmp_path, rows, length, expected) -> None:
    product = ("aten::mm", (((rows, 4096), B), ((4096, 4096), B)), "gemm", length)
    titles = findings_of(kineto, tmp_path, operation(0, *product))
    assert ("A larger batch costs aten::mm next to nothing" in titles) is expected


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("aten::bmm", ((32, 1024, 64), (32, 64, 1024))),
        ("aten::bmm", ((64, 1, 128), (64, 128, 4096))),
        ("aten::mm", ((8192, 4096), (4096, 16))),
        ("aten::mm", ((10**400, 4096), (4096, 16))),
    ],
)
def test_what_brings_its_own_operands_or_writes_most_of_its_bytes_has_no_use_of_a_batch(
    kineto, tmp_path, name, shapes
) -> None:
    titles = findings_of(kineto, tmp_path, operation(0, name, tuple((shape, B) for shape in shapes), "gemm", 60))
    assert not any("larger batch" in title for title in titles)


@pytest.mark.parametrize("odd", [1e400, "64"])
@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("aten::mm", ((128, 64), (64, "odd"))),
        ("aten::baddbmm", (("odd", 8, 8), (2048, 8, 8), (2048, 8, 8))),
        ("aten::_scaled_dot_product_flash_attention", ((2, 8, "odd", 64),) * 3),
    ],
)
def test_a_shape_that_no_tensor_has_is_in_no_finding(kineto, tmp_path, name, shapes, odd) -> None:
    tensors = [(tuple(odd if side == "odd" else side for side in shape), B) for shape in shapes]
    titles = findings_of(kineto, tmp_path, operation(0, name, tuple(tensors), "gemm", 60))
    assert not any(word in title for title in titles for word in ("batch", "short sequence", "Tiny"))


@pytest.mark.parametrize(("length", "expected"), [(900, True), (90, False)])
def test_any_operator_is_held_against_elementwise_ones(kineto, tmp_path, length, expected) -> None:
    large = ((4096, 4096), B)
    events = [
        *operation(0, "aten::add", (large, large, "1"), WISE, 120),
        *operation(20, "aten::gelu", (large,), WISE, length),
    ]
    titles = findings_of(kineto, tmp_path, events)
    assert any(title.startswith("aten::gelu reaches ") for title in titles) is expected


def test_a_module_of_many_kernels_is_no_candidate_for_one(kineto, tmp_path) -> None:
    events = [host("nn.Module: Model_0", 0, 2_000, cat="python_function")]
    for n in range(33):
        events += [launch(10 * n + 1, n + 1), kernel("tiny", 10 * n + 2, 4, correlation=n + 1)]
    page = render_text(kineto.inspect([written(tmp_path / "t.json", events)], {}).views["fusion"]())
    assert "Model" not in page.partition("\n")[2]


def test_the_report_says_what_mfu_the_operators_could_have(kineto, tmp_path) -> None:
    large = ((4096, 4096), B)
    events = [
        *operation(0, "aten::mm", (large, large), "gemm", 2_000),
        *operation(30, "aten::add", (large, large, "1"), WISE, 200),
    ]
    options = {"peak": "bf16=100TFLOPS", "bandwidth": "1TB/s"}
    text = render_text(kineto.inspect([written(tmp_path / "t.json", events)], options).views["analysis"]())
    assert "- MFU with every operator at its roof, without idle time: 93.2 %" in text
    assert "- most bytes: aten::" in text
    assert "known work" not in text
    assert text.count("The window is compute-bound: ") == 1
    alone = [*operation(0, "aten::mm", (large, large), "gemm", 2_000)]
    without = render_text(kineto.inspect([written(tmp_path / "w.json", alone)], {}).views["analysis"]())
    assert "What limits the window is not collected; it needs recorded shapes and a roof (--device" in " ".join(
        without.split()
    )
    events += [launch(60, 9), kernel("alone", 3_000, 2_200, correlation=9)]
    text = render_text(kineto.inspect([written(tmp_path / "u.json", events)], options).views["analysis"]())
    assert "- known work: 50.0 % of operators' time; the rest counts as no work" in text
    assert "without idle time: 93.2 % (of operators with a model)" in text
    assert "No operator launched 50 % of what ran" in " ".join(text.split())
