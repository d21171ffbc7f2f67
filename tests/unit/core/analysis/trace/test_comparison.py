"""Two traces compared: what differs, what hardware explains, and what cannot be compared."""

from __future__ import annotations

import json

import pytest

from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.errors import PerfgateError
from tests.kineto_file import host, kernel, launch, written
from tests.kineto_job import PEAKS
from tests.kineto_operators import CALLS, ROWS, WISE, operation, zoo


def test_what_differs_between_two_traces_has_a_word(kineto, tmp_path):
    slow = [{**e, "dur": 4 * e["dur"]} if e["name"] == WISE else e for e in zoo() if e["name"] != "odd"]
    new = operation(len(CALLS), "mine::new", (ROWS,), "newer")
    first = written(tmp_path / "a.json", zoo())
    second = written(tmp_path / "b.json", [*slow, *new])
    analysis = kineto.compare([first], [second], PEAKS | {"peak": "bf16=100TFLOPS,fp32=10TFLOPS"})
    (relu,) = analysis.metrics.find("slowdown", (("op", "aten::relu"),))
    assert relu.value == pytest.approx(3.0)
    assert "unexpected: investigate, 300 % slower: look at kernel selection" in relu.note
    assert analysis.metrics.missing("slowdown", (("op", "mine::new"),)).why == "only in the target"
    assert not analysis.metrics.find("expected_slowdown", (("op", "mine::new"),))
    assert any("aten::relu takes 4.00 times the reference" in finding.title for finding in analysis.findings)
    text = render_text(analysis.views["ops"]())
    assert "only in the reference" in text
    assert "unexpected" in text
    assert "look at kernel selection" not in text
    for kind in ("fair", "rough", "tree", "selection"):
        assert render_text(analysis.views[kind]())
    fair = render_text(analysis.views["fair"]())
    assert "Priority 1: aten::" in fair
    assert "Action: fusion or algorithm: torch.compile" in fair
    assert "Action: kernel only: replay it" in fair


def test_an_operator_that_hardware_does_not_explain_names_its_kernels(kineto, tmp_path):
    first, second = (products(tmp_path / name, length) for name, length in (("a.json", 200), ("b.json", 700)))
    text = second.read_text().replace('"gemm"', '"slow_gemm"')
    second.write_text(text)
    analysis = kineto.compare([first], [second], {"peak": "bf16=500TFLOPS", "bandwidth": "2TB/s"})
    fair = render_text(analysis.views["fair"](), 10_000)
    assert "Reference: 200 µs a call, 1 call; longest kernel gemm" in fair
    assert "Target: 700 µs a call, 1 call; longest kernel slow_gemm" in fair
    assert "Difference: 250 % slower, 3.5 times as long as expected; look at kernel selection" in fair
    assert fair.count("up to 500 µs, 71 % of the target's compute time") == 2
    assert "Gap: 250 % slower than the reference; the hardware is alike" in fair
    assert "The peak is the same, so no difference is expected. Compute time is 3.50 times the reference's." in fair
    assert "Expected: no difference, bound by compute. The peak is the same" in fair
    assert "Idle time is" not in fair
    assert "the whole window is 700 µs, +250.0 % against the reference's 200 µs." in fair
    detail = next(block for block in analysis.views["fair"]().blocks if block.title == "Detailed comparison")
    assert [section.title for section in detail.blocks] == ["aten::mm 4096×4096 4096×4096 bf16", "All argument sets"]
    kernels = next(block for block in analysis.views["rough"]().blocks if getattr(block, "title", "") == "Kernels")
    assert not {"arguments", "bound", "expected"} & {column.name for column in kernels.blocks[0].columns}


def joined(path, *lengths):
    """Concatenations of lists of different tensors."""
    events = []
    for n, length in enumerate(lengths):
        shapes = {"Input Dims": [[[8 << n, 4], [8, 4]], []], "Input type": ["TensorList", "Scalar"]}
        events += [host("aten::cat", 100 * n, 9, **shapes), launch(100 * n + 1, n + 1)]
        events.append(kernel("cat", 100 * n + 5, length, correlation=n + 1))
    return written(path, events)


def test_lists_of_different_tensors_are_different_arguments(kineto, tmp_path):
    compared = kineto.compare([joined(tmp_path / "a.json", 10, 40)], [joined(tmp_path / "b.json", 20, 40)], {})
    rows = compared.views["arguments"]().blocks[0].rows
    assert [(row[1], row[4], row[5]) for row in rows] == [
        ("[16×4, 8×4]", 40_000, 40_000),
        ("[8×4, 8×4]", 10_000, 20_000),
    ]
    assert compared.metrics.find("slowdown", (("op", "aten::cat"), ("shapes", "[8x4, 8x4]")))[0].value == 1.0


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


def products(path, length):
    shapes = {"Input Dims": [[4096, 4096], [4096, 4096]], "Input type": ["c10::BFloat16"] * 2}
    events = [host("aten::mm", 0, 9, **shapes), launch(1, 1), kernel("gemm", 5, length, correlation=1)]
    return written(path, events)


def test_peaks_are_of_the_target_and_the_reference_has_its_own(kineto, tmp_path):
    sides = [products(tmp_path / "a.json", 200)], [products(tmp_path / "b.json", 300)]
    target = {"peak": "bf16=500TFLOPS", "bandwidth": "2TB/s"}
    both = kineto.compare(*sides, {**target, "reference_peak": "bf16=1000TFLOPS", "reference_bandwidth": "4TB/s"})
    (expected,) = both.metrics.find("expected_slowdown", (("op", "aten::mm"),))
    assert expected.value == pytest.approx(1.0)
    by_device = kineto.compare(*sides, {**target, "reference": "H100 SXM5 80GB"})
    (expected,) = by_device.metrics.find("expected_slowdown", (("op", "aten::mm"),))
    assert expected.value == pytest.approx(989.4 / 500 - 1, rel=0.01)
    same = kineto.compare(*sides, target)
    (expected,) = same.metrics.find("expected_slowdown", (("op", "aten::mm"),))
    assert expected.value == 0, "nothing says that the reference ran on another device"


def test_a_comparison_has_no_compat_mode(kineto, tmp_path):
    sides = [products(tmp_path / "a.json", 200)], [products(tmp_path / "b.json", 300)]
    with pytest.raises(PerfgateError, match="compat=tracelens"):
        kineto.compare(*sides, {"compat": "tracelens"})


def convolution(path, name, length, *more):
    """A trace of one convolution: input and weight, and what else the library's operator takes."""
    dims = [[8, 64, 56, 56], [64, 64, 3, 3], *more, [1, 1], [1, 1], [1, 1], []]
    tensors = 2 + len(more)
    shapes = {
        "Input Dims": [*dims[:tensors], [], [], [], []],
        "Input type": [*["c10::BFloat16"] * tensors, *["ScalarList"] * 3, "Scalar"],
        "Concrete Inputs": [*[""] * tensors, "[1, 1]", "[1, 1]", "[1, 1]", "1"],
    }
    events = [host(name, 0, 9, **shapes), launch(1, 1), kernel("conv", 5, length, correlation=1)]
    return [written(path, events)]


def test_operators_that_name_their_library_are_compared_as_the_layer(kineto, tmp_path):
    one = convolution(tmp_path / "a.json", "aten::miopen_convolution", 100, [64])
    two = convolution(tmp_path / "b.json", "aten::cudnn_convolution", 300)
    figures = kineto.compare(one, two, PEAKS).metrics
    layer = ("op", "aten::convolution")
    for labels in ((layer,), (layer, ("shapes", "8x64x56x56 64x64x3x3 bf16"))):
        assert [one.value for one in figures.find("slowdown", labels)] == [2.0]
    same = kineto.compare(two, two, PEAKS).metrics
    assert same.find("slowdown", (("op", "aten::cudnn_convolution"),)), "a name that both traces have stays"


def test_idle_time_of_the_target_is_the_first_recommendation(kineto, tmp_path):
    def trace(name, *starts):
        calls = [
            [host("aten::mm", at, 9), launch(at, at + 1), kernel("k", at + 1, 5, correlation=at + 1)] for at in starts
        ]
        return [written(tmp_path / name, [event for call in calls for event in call])]

    late = render_text(kineto.compare(trace("a.json", 0, 10), trace("b.json", 0, 990), {}).views["fair"]())
    assert "Idle time takes 99 % of the window: open the trace" in late.partition("Recommendations for the target")[2]
    busy = kineto.compare(trace("a.json", 0, 10), trace("c.json", 0, 5), {}).views["fair"]()
    assert "Outside of computation" not in render_text(busy)


def test_a_host_beside_a_gpu_has_no_empty_tables(kineto, tmp_path):
    hosted = [written(tmp_path / "host.json", [host("aten::mm", 0, 9)])]
    compared = kineto.compare(hosted, [products(tmp_path / "a.json", 200)], {})
    report = compared.views["report"]()
    assert [getattr(block, "title", "") for block in report.blocks] == ["", "Call trees"]
    assert report.blocks[0].text.startswith("The times are not compared: ")
    assert "their times are not compared" in report.subtitle
    assert "- Argument sets in both: none." in render_text(compared.views["fair"](), 10_000)


def test_most_of_the_time_must_have_a_bound_for_it_to_explain_the_change(kineto, tmp_path):
    def mixed(name, length):
        odd = [host("mine::odd", 2000, 9), launch(2001, 2), kernel("odd", 2010, 9 * length, correlation=2)]
        path = products(tmp_path / name, length)
        document = json.loads(path.read_text())
        document["traceEvents"] += odd
        path.write_text(json.dumps(document))
        return [path]

    fair = kineto.compare(mixed("a.json", 100), mixed("b.json", 300), PEAKS | {"peak": "bf16=500TFLOPS"})
    text = render_text(fair.views["fair"](), 10_000)
    assert "Operators bound by compute take 10 % of the reference's compute time." in text
    assert "so no difference is expected" not in text


def test_calls_that_nest_deeply_are_compared_and_drawn(kineto, tmp_path):
    paths = []
    for last in ("aten::add", "aten::mul"):
        names = [f"op{n}" for n in range(1_500)] + [last]
        events = [host(name, n, 5_000 - 2 * n) for n, name in enumerate(names)]
        events += [launch(2_000, 1), kernel("k", 2_500, 8, correlation=1)]
        paths.append(written(tmp_path / f"{last[-3:]}.json", events))
    analysis = kineto.compare(paths[:1], paths[1:], {})
    assert analysis.metrics.find("tree_edits")[0].value == 2
    assert analysis.pictures["tree"]().svg


def test_an_operator_that_took_no_time_before_has_no_ratio(kineto, tmp_path):
    first, second = products(tmp_path / "a.json", 0), products(tmp_path / "b.json", 50)
    timed = [launch(900, 9), kernel("other", 905, 10, correlation=9)]
    for path in (first, second):
        events = json.loads(path.read_text())["traceEvents"]
        written(path, [*events, *timed])
    metrics = kineto.compare([first], [second], {"peak": "bf16=500TFLOPS", "bandwidth": "2TB/s"}).metrics
    assert metrics.missing("slowdown", (("op", "aten::mm"),)).why == "no time in the reference"
