"""What holds a window back: launches, communication, blocking synchronisations, or one of the two roofs."""

from __future__ import annotations

import pytest

from pytest_perfgate.core.analysis.trace import bottleneck
from pytest_perfgate.core.render.text import render_text
from tests.kineto_file import host, kernel, launch, written


def waiting(count=60, idle=80):
    """Each kernel of 100 us is waited for, and the next one is launched a while later."""
    for n in range(count):
        at, number = n * (100 + idle), n + 1
        yield host("aten::mm", at, 9)
        yield launch(at + 1, number)
        yield kernel("gemm", at + 5, 100, correlation=number)
        yield host("cudaStreamSynchronize", at + 10, 95, cat="cuda_runtime", correlation=10_000 + n)


def talking(count=10):
    """Half of each round is an exposed collective."""
    for n in range(count):
        at, number = n * 200, 2 * n + 1
        yield host("aten::mm", at, 9)
        yield launch(at + 1, number)
        yield kernel("gemm", at + 5, 100, correlation=number)
        yield launch(at + 3, number + 1)
        yield kernel("ncclDevKernel_AllReduce_Sum", at + 105, 95, correlation=number + 1, stream=20)


def tiny(count=300):
    """Kernels of 2 us, one behind the other."""
    for n in range(count):
        yield host("aten::add", 5 * n, 4)
        yield launch(5 * n + 1, n + 1)
        yield kernel("tiny", 5 * n + 3, 2, correlation=n + 1)


def slow_launches(count=40):
    """The host is in the launch three quarters of the time, and the device idles for half of it."""
    for n in range(count):
        yield host("cudaLaunchKernel", 100 * n, 75, cat="cuda_runtime", correlation=n + 1)
        yield kernel("k", 100 * n + 40, 50, correlation=n + 1)


WINDOWS = {
    "synchronisation": (waiting, "Remove blocking synchronisations"),
    "communication": (talking, "Overlap communication"),
    "launch": (tiny, "Fewer, longer launches"),
}


@pytest.mark.parametrize("kind", WINDOWS)
def test_a_window_has_its_class_and_the_advice_that_follows(kineto, tmp_path, kind) -> None:
    events, advice = WINDOWS[kind]
    analysis = kineto.inspect([written(tmp_path / "t.json", list(events()))], {})
    titles = [finding.title for finding in analysis.findings]
    assert any(title.startswith(f"The window is {kind}-bound") for title in titles), titles
    assert advice in titles
    assert f"The window is {kind}-bound: " in render_text(analysis.views["report"]())
    first = render_text(analysis.views["analysis"]()).partition("Priority 1: ")[2].splitlines()
    assert first[0] == advice
    assert len(first[2]) > len("- Issue:  [class=communication]") + 20, "with the reason"
    assert any(line.startswith("- Impact: at most ") for line in first[:8])


@pytest.mark.parametrize("kind", WINDOWS)
def test_advice_by_class_replaces_the_findings_that_say_the_same(kineto, tmp_path, kind) -> None:
    events, advice = WINDOWS[kind]
    analysis = kineto.inspect([written(tmp_path / "t.json", list(events()))], {})
    fair = render_text(analysis.views["fair"](), 10_000)
    first = fair.partition(f"Priority 1: {advice}")[2].partition("Priority 2")[0].partition("Detailed analysis")[0]
    same = {"synchronisation": "cudaStreamSynchronize 60 times", "communication": "Exposed communication takes"}
    assert same.get(kind, "kernels are shorter than 10 µs") in first
    assert "Other findings" not in fair
    for name in ("fair", "analysis"):
        assert render_text(analysis.views[name](), 10_000).count(f"The window is {kind}-bound: ") == 1
    if kind == "synchronisation":
        assert render_text(analysis.views["report"](), 10_000).count("keep values on the device") == 1


def batched(*events):
    shapes = {"Input Dims": [[2048, 8, 16], [2048, 16, 8]], "Input type": ["c10::BFloat16"] * 2}
    return [*events, host("aten::bmm", 0, 9, **shapes), launch(1, 1), kernel("tiny_gemm", 5, 900, correlation=1)]


def softmax():
    yield host("aten::_softmax", 20, 9, **{"Input Dims": [[2048, 8, 8]], "Input type": ["c10::BFloat16"]})
    yield launch(21, 2)
    yield kernel("softmax_warp", 910, 90, correlation=2)
    shapes = {"Input Dims": [[2048, 8, 8], [2048, 8, 16]], "Input type": ["c10::BFloat16"] * 2}
    yield host("aten::bmm", 40, 9, **shapes)
    yield launch(41, 3)
    yield kernel("tiny_gemm", 1_010, 400, correlation=3)


@pytest.mark.parametrize(
    ("events", "action"), [((), "fold the batch into a larger product"), (tuple(softmax()), "part of attention")]
)
def test_tiny_products_have_one_recommendation(kineto, tmp_path, events, action) -> None:
    roofs = {"peak": "bf16=990TFLOPS", "bandwidth": "3TB/s"}
    analysis = kineto.inspect([written(tmp_path / "t.json", batched(*events))], roofs)
    fair = render_text(analysis.views["fair"](), 10_000)
    own = fair.partition("aten::bmm at 0 % of its roof")[2].partition("Details: ")[0]
    assert "Tiny batched products: 2,048 of at most 16" in own
    assert f"fusion or algorithm: {action}" in own
    assert "raise the batch" not in own
    assert "tiny_gemm; look at which kernel is selected; replay artifact" in own
    assert fair.count("Tiny batched products") == 1


def test_what_is_found_of_an_operator_belongs_into_its_recommendation(kineto, tmp_path) -> None:
    shapes = {"Input Dims": [[4096, 4096], [4096, 4096]], "Input type": ["float", "float"]}
    events = [host("aten::add", 0, 9, **shapes), launch(1, 1), kernel("add", 10, 220, correlation=1)]
    dims = [[16, 64, 128, 128], [64], [64], [], [], [], [], []]
    norm = {"Input Dims": dims, "Input type": ["float"] * 3 + ["", "", "Scalar", "Scalar", "Scalar"]}
    norm["Concrete Inputs"] = ["", "", "", "", "", "True", "0.1", "1e-05"]
    events += [host("aten::native_batch_norm", 20, 9, **norm), launch(21, 2), kernel("norm", 240, 2_000, correlation=2)]
    roofs = {"peak": "fp32=60TFLOPS", "bandwidth": "1TB/s"}
    analysis = kineto.inspect([written(tmp_path / "t.json", events)], roofs)
    fair = render_text(analysis.views["fair"](), 10_000)
    own = fair.partition("Priority 1: aten::native_batch_norm at ")[2].partition("Details: ")[0]
    assert "of memory bandwidth. Elementwise operators of the same trace reach 9" in own
    assert "fusion or algorithm: another implementation of the normalisation, or a fused one" in own
    assert fair.count("aten::native_batch_norm reaches") == 1


def test_an_idle_device_beside_a_host_that_launches_is_launch_bound(kineto, tmp_path) -> None:
    analysis = kineto.inspect([written(tmp_path / "t.json", list(slow_launches()))], {})
    assert any(one.title.startswith("The window is launch-bound") for one in analysis.findings)
    (share,) = analysis.metrics.find("launch_share")
    assert share.value == pytest.approx(0.75, abs=0.02)


def test_a_device_that_idles_for_another_reason_is_said_to_idle(kineto, tmp_path) -> None:
    events = [event for n in range(9) for event in (launch(1_000 * n, n + 1), kernel("k", 1_000 * n + 5, 100,
              correlation=n + 1))]  # fmt: skip
    analysis = kineto.inspect([written(tmp_path / "t.json", events)], {})
    (finding,) = [one for one in analysis.findings if one.title.startswith("The window is")]
    assert finding.title.startswith("The window is latency-bound")
    assert finding.detail.startswith("the device idles for 88.9 % of the window (the host launches for 0.1 %)")
    assert "synchronisation" not in finding.title, "nothing of the kind is near where none is there"


def test_time_behind_synchronisations_can_be_limited(kineto, tmp_path) -> None:
    analysis = kineto.inspect([written(tmp_path / "t.json", list(waiting()))], {})
    (spent,), (share,) = analysis.metrics.find("sync_time"), analysis.metrics.find("sync_share")
    assert spent.value == pytest.approx(59 * 80_000)
    assert share.value == pytest.approx(59 * 80 / (59 * 180 + 100))


def test_a_wait_that_ends_while_the_device_works_costs_nothing(kineto, tmp_path) -> None:
    events = [host("cudaEventSynchronize", 0, 50, cat="cuda_runtime", correlation=99), launch(1, 1), launch(2, 2)]
    events += [kernel("a", 10, 100, correlation=1), kernel("b", 130, 100, correlation=2)]
    analysis = kineto.inspect([written(tmp_path / "t.json", events)], {})
    assert [metric.value for metric in analysis.metrics.find("sync_time")] == [0.0]


def test_each_step_has_a_class(kineto, tmp_path) -> None:
    events = list(waiting()) + [host(f"ProfilerStep#{n}", n * 5_400, 5_399, cat="user_annotation") for n in range(2)]
    analysis = kineto.inspect([written(tmp_path / "t.json", events)], {})
    text = render_text(analysis.views["steps"]())
    assert text.count("synchronisation") == 2
    assert len(analysis.metrics.find("sync_time", (("step", "*"),))) == 2


def test_no_step_looks_at_the_names_of_all_others(kineto, tmp_path, monkeypatch) -> None:
    class Launches:
        names = []

        def search(self, name):
            self.names.append(name)
            return "Launch" in name

    monkeypatch.setattr(bottleneck, "LAUNCHES", Launches())
    steps = [host(f"ProfilerStep#{n}", 100 * n, 99, cat="user_annotation") for n in range(20)]
    events = [
        one for n in range(20) for one in (launch(100 * n, n + 1), kernel("k", 100 * n + 5, 50, correlation=n + 1))
    ]
    analysis = kineto.inspect([written(tmp_path / "t.json", [*steps, *events])], {})
    assert len(analysis.metrics.find("launch_share", (("step", "*"),))) == 20
    assert set(Launches.names) == {"cudaLaunchKernel"}


def test_steps_that_leave_most_of_a_trace_out_are_said(kineto, tmp_path) -> None:
    events = []
    for n in range(4):
        events.append(host(f"ProfilerStep#{n}", 10_000 * n, 1_000, cat="gpu_user_annotation"))
        events.append(launch(10_000 * n, n + 1))
        events.append(kernel("k", 10_000 * n, 1_000, correlation=n + 1))
    path = written(tmp_path / "t.json", events)
    whole = kineto.inspect([path], {})
    assert whole.metrics.find("window_coverage")[0].value == pytest.approx(4 / 31)
    assert whole.metrics.find("step_to_step")[0].value == 10_000_000
    analysis = kineto.inspect([path], {"window": "steps"})
    (warning,) = [one for one in analysis.findings if one.title == "The steps cover 13 % of the trace"]
    assert "A step is 1 ms long, and the next one starts 10 ms after it" in warning.detail
    one = kineto.inspect([path], {"step": "2"}).findings
    (warning,) = [finding for finding in one if finding.title == "The window covers 3 % of the trace"]
    assert warning.trigger == "window_coverage=0.032"


def test_roofs_of_operators_give_the_class_where_most_of_their_work_is_known(kineto, tmp_path) -> None:
    shapes = {"Input Dims": [[8192, 8192], [8192, 8192]], "Input type": ["c10::BFloat16"] * 2}
    events = []
    for n in range(4):
        events.append(host("aten::mm", 2_000 * n, 9, **shapes))
        events.append(launch(2_000 * n + 1, n + 1))
        events.append(kernel("gemm", 2_000 * n + 5, 1_990, correlation=n + 1))
    path = written(tmp_path / "t.json", events)
    analysis = kineto.inspect([path], {"peak": "bf16=989TFLOPS", "bandwidth": "3.35TB/s"})
    assert any(one.title.startswith("The window is compute-bound") for one in analysis.findings)
    unknown = kineto.inspect([path], {})
    assert not any(one.title.startswith("The window is") for one in unknown.findings)
