"""Every operator that has a model, once: its work, its category, the reference's sheets, findings by pattern."""

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
    (saving,) = kineto.inspect([tmp_path / "t.json"], {}).metrics.find("module_saving", (("module", "RMSNorm"),))
    assert saving.value == 3 * 3 * 8_000  # three instances of four kernels: one of them stays
    stack = kineto.inspect([tmp_path / "t.json"], {"op": "nn.Module: RMSNorm_1"}).views["stack"]()
    assert render_text(stack).count("aten::mul") == 4


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
    found = kineto.inspect([written(tmp_path / "t.json", events)], {})
    (said,) = [one for one in found.findings if one.title == "Attention is not fused"]
    assert said.detail.startswith("aten::_softmax 1 times, aten::bmm 2 times, 100% together.")
    busy = 90 / 230
    assert [1 - 1 / (1 + side) for side in (said.gain.low, said.gain.high)] == pytest.approx(
        [busy * 2 / 3, busy * 9 / 10], rel=0.02
    )
