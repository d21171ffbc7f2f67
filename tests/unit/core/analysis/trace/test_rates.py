"""Rates of a whole window: idle time and what has no model do not flatter them."""

from __future__ import annotations

import pytest

from pytest_perfgate import work
from pytest_perfgate.core.judge.against_limit import judge_artifact
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.plan import Outcome
from tests.kineto_file import host, kernel, launch, written
from tests.kineto_job import PEAKS, shaped

FLOPS = work.gemm(64, 64, 64, dtype="fp32").flops
PEAK = 10e12


def product(at, number, length, **where):
    return [
        host("aten::mm", at, 9, **shaped([64, 64], [64, 64])),
        launch(at + 1, number),
        kernel("sgemm", at + 10, length, correlation=number, **where),
    ]


def unknown(at, number, length):
    return [
        host("mine::own", at, 9),
        launch(at + 1, number),
        kernel("odd", at + 10, length, correlation=number),
    ]


def figure(metrics, name, **where):
    (metric,) = metrics.find(name, tuple(where.items()))
    return metric


def test_idle_time_and_unknown_work_count_as_none(kineto, tmp_path):
    """20 µs of a product, 60 µs of nothing, 20 µs of what has no model: 100 µs."""
    path = written(tmp_path / "t.json", [*product(0, 1, 20), *unknown(80, 2, 20)])
    analysis = kineto.inspect([path], PEAKS)
    mfu = figure(analysis.metrics, "mfu")
    assert mfu.value == pytest.approx(FLOPS / 100e-6 / PEAK)
    assert "50.0 % of operators' time has known work; the rest counts as no work" in mfu.note
    assert figure(analysis.metrics, "mfu", op="aten::mm").value == pytest.approx(FLOPS / 20e-6 / PEAK)
    assert figure(analysis.metrics, "tflops").value == pytest.approx(FLOPS / 100e-6)
    assert figure(analysis.metrics, "bandwidth").value == pytest.approx(3 * 64 * 64 * 4 / 100e-6)
    report = render_text(analysis.views["report"]())
    assert "Operators with a work model hold 50.0 % of operators' time" in report
    assert "Over the whole window, idle time included" in report


def test_some_calls_of_an_operator_without_a_model_are_said(kineto, tmp_path):
    bare = [host("aten::mm", 80, 9), launch(81, 2), kernel("sgemm", 90, 20, correlation=2)]
    metrics = kineto.inspect([written(tmp_path / "t.json", [*product(0, 1, 20), *bare])], {}).metrics
    rate = figure(metrics, "tflops", op="aten::mm")
    assert rate.value == pytest.approx(FLOPS / 20e-6)
    assert rate.note == "of the 50.0 % of its time that has a work model"


def test_a_step_has_its_own_and_a_call_across_its_edge_counts_by_its_time(kineto, tmp_path):
    """Two steps of 50 µs; one product of 20 µs lies half in each, one in the second alone."""
    steps = [host(f"ProfilerStep#{n}", 50 * n, 50, cat="gpu_user_annotation", pid=0, tid=7) for n in (0, 1)]
    path = written(tmp_path / "t.json", [*steps, *product(30, 1, 20), *product(60, 2, 20)])
    metrics = kineto.inspect([path], PEAKS).metrics
    rates = [figure(metrics, "mfu", step=str(n)).value for n in (0, 1)]
    assert rates == [pytest.approx(calls * FLOPS / 50e-6 / PEAK) for calls in (0.5, 1.5)]


def test_several_devices_share_the_work_by_their_time(kineto, tmp_path):
    """One device computes for 20 µs, the other for 10 of its 40 µs."""
    late = [launch(30, 3), kernel("odd", 70, 10, correlation=3, device=1)]
    path = written(tmp_path / "t.json", [*product(0, 1, 20), *product(30, 2, 10, device=1), *late])
    metrics = kineto.inspect([path], PEAKS).metrics
    assert figure(metrics, "mfu", gpu="0").value == pytest.approx(FLOPS / 20e-6 / PEAK)
    assert figure(metrics, "mfu", gpu="1").value == pytest.approx(FLOPS / 40e-6 / PEAK)
    assert figure(metrics, "mfu").value == pytest.approx(2 * FLOPS / 60e-6 / PEAK)


def test_no_known_work_is_not_measured_and_says_how(kineto, tmp_path):
    analysis = kineto.inspect([written(tmp_path / "t.json", unknown(0, 1, 20))], PEAKS)
    (verdict,) = judge_artifact(analysis, [parse_limit("tflops >= 1TFLOPS", kinds=by_name())])
    assert verdict.outcome is Outcome.NOT_MEASURED
    assert "no operator of this window has a work model" in verdict.sentence
    assert "pytest_perfgate_operators" in verdict.next[0]


def test_rates_that_no_hardware_has_are_invalid_in_views_as_in_limits(kineto, tmp_path):
    path = written(tmp_path / "t.json", [*product(0, 1, 20), *product(40, 2, 20)])
    wrong = kineto.inspect([path], {**PEAKS, "peak": "fp32=1GFLOPS"})
    assert wrong.findings[0].trigger == "class=invalid"
    pages = {name: " ".join(render_text(wrong.views[name]()).split()) for name in ("report", "analysis", "fair")}
    assert all("more than the hardware can do" in page for page in pages.values())
    assert "MFU: INVALID" in pages["analysis"]
    assert "every operator at its roof" not in pages["analysis"]
    assert not any("-bound" in page for page in pages.values())
    right = kineto.inspect([path], PEAKS)
    assert "MFU: INVALID" not in " ".join(render_text(right.views["analysis"]()).split())
