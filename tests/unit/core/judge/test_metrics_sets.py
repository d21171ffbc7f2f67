"""Tests of core/judge/metrics: metrics that are made when they are asked for."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import pytest

from pytest_perfgate.adapters.stores.record_files import packed
from pytest_perfgate.core.judge import metrics as module
from pytest_perfgate.core.judge.context import JudgeContext, tolerance
from pytest_perfgate.core.judge.judge import _judged_measurement, judge
from pytest_perfgate.core.judge.metrics import DERIVED, metrics_of, timing
from pytest_perfgate.model.metric import Absent, Metric, MetricSet, labels
from pytest_perfgate.model.values import Dimension, Work
from tests.unit.core.judge.bench import FLOORED, GEMM, GPU, KINDS, accepted, limit, measured, samples

PLAIN_CONTEXT = JudgeContext(kinds=KINDS)


SPANS = tuple(samples(1.2e6, timer="cupti", busy=(1e6,) * 21, launch_gap=900.0) for _ in range(3))
CALLS = {
    "bare": measured(1e6),
    "worked": measured(1e6, work=GEMM),
    "on a GPU": measured(1e6, device=GPU, work=GEMM),
    "half": measured(1e6, work=Work(flops=1e9)),
    "kernels": measured(0, processes=SPANS, device=GPU, work=GEMM),
    "shorter than its overhead": measured(0, processes=(samples(100.0, overhead=100.0),) * 3, work=GEMM),
    "untimed": measured(1e6, processes=()),
}
NAMES = (*sorted(DERIVED), "busy_time", "busy", "nonsense")


@pytest.mark.parametrize("measurement", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("order", [NAMES, NAMES[::-1], ("sol", "mfu"), ("busy",)])
def test_what_was_looked_at_before_changes_nothing(measurement, order) -> None:
    looked, whole = metrics_of(measurement, accepted(9e5)), metrics_of(measurement, accepted(9e5))
    everything = MetricSet(metrics=whole.metrics, absent=whole.absent)
    for name in order:
        assert looked.find(name) == everything.find(name)
        assert looked.missing(name) == everything.missing(name)
        assert looked.absences(name) == everything.absences(name)
        assert looked.find(name, (("roof", "*"),)) == everything.find(name, (("roof", "*"),))
    assert looked == everything
    assert looked.names() == everything.names()


@pytest.mark.parametrize("measurement", CALLS.values(), ids=CALLS)
def test_the_record_holds_the_same_whatever_was_judged(measurement) -> None:
    def written(*texts: str):
        limits = [limit(text) for text in texts]
        return packed(judge(measurement, limits, baseline=accepted(9e5), context=PLAIN_CONTEXT).measurement)

    assert written() == written("mfu >= 1%") == written("slowdown <= 3%", "sol(roof=memory) >= 1%", "time <= 1s")
    assert written() == packed(replace(measurement, metrics=metrics_of(measurement, accepted(9e5))))


def test_all_of_a_call_stands_in_its_order() -> None:
    metrics = metrics_of(CALLS["kernels"], accepted(1e6))
    assert [(m.name, *(text for _, text in m.labels)) for m in metrics.metrics] == [
        *(("time",), ("slowdown",), ("cv",), ("launch_gap",), ("span",), ("busy_time",), ("busy",)),
        *(("tflops",), ("bandwidth",), ("intensity",)),
        *(("mfu",), ("sol",), ("sol", "compute"), ("sol", "memory")),
        *(("mfu_datasheet",), ("sol_datasheet",), ("mfu_ceiling",), ("sol_ceiling",)),
    ]
    assert [absent.name for absent in metrics.absent] == ["throughput"]
    uncertain = [m.name for m in metrics.metrics if m.interval is None]
    assert uncertain == ["intensity"]


def test_figures_are_as_sure_as_the_time_they_rest_on() -> None:
    for processes in ((samples(1e6),), (samples(1e6, count=1),), SPANS):
        metrics = metrics_of(measured(0, processes=processes, device=GPU, work=GEMM), accepted(1e6))
        sure = {metrics.find(name)[0].interval.confidence for name in ("time", "slowdown", "tflops", "mfu", "sol")}
        assert len(sure) == 1


def test_figures_that_no_limit_names_are_not_worked_out_to_judge(monkeypatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("nobody asked")

    monkeypatch.setattr(module, "absolute", refused)
    report = judge(CALLS["worked"], [limit("slowdown <= 3%")], baseline=accepted(1e6), context=PLAIN_CONTEXT)
    assert report.verdicts[0].outcome.value == "passed"
    with pytest.raises(AssertionError, match="nobody asked"):
        _ = report.measurement.metrics.metrics


def test_a_metric_is_made_once() -> None:
    metrics = metrics_of(CALLS["worked"], accepted(1e6))
    assert metrics.find("mfu")[0] is metrics.find("mfu")[0]
    assert any(metric is metrics.find("mfu")[0] for metric in metrics.metrics)


def test_it_is_a_set_like_any_other() -> None:
    metrics = metrics_of(CALLS["worked"], None)
    plain = MetricSet(metrics=metrics.metrics, absent=metrics.absent)
    assert metrics == plain
    assert plain == metrics
    assert hash(metrics) == hash(plain)
    assert metrics != MetricSet()
    assert metrics != "metrics"
    for other in (pickle.loads(pickle.dumps(metrics)), copy.deepcopy(metrics)):
        assert type(other) is MetricSet
        assert other == metrics
    extra = MetricSet(metrics=(Metric(name="overlap", value=0.8, dimension=Dimension.FRACTION),))
    assert (metrics | extra).metrics == (*metrics.metrics, *extra.metrics)
    assert (extra | metrics).absent == metrics.absent


def test_what_was_judged_is_judged_again_without_a_metric_twice() -> None:
    traced = Metric(name="tflops", value=1.0, dimension=Dimension.FLOPS, labels=labels(op="gemm"))
    captured = MetricSet(metrics=(traced,), absent=(Absent(name="overlap"),))
    for measurement in (CALLS["kernels"], replace(CALLS["kernels"], metrics=captured)):
        once = judge(measurement, (), baseline=None, context=PLAIN_CONTEXT).measurement
        again = judge(once, (), baseline=accepted(1e6), context=PLAIN_CONTEXT).measurement
        names = [(m.name, m.labels) for m in again.metrics.metrics]
        assert len(names) == len(set(names))
        assert set(names) == {(m.name, m.labels) for m in once.metrics.metrics} | {("slowdown", ())}


def test_the_floor_and_a_tick_are_shares_of_the_accepted_time() -> None:
    trial, entry = _judged_measurement(measured(1e6), (), None, FLOORED, None), timing(measured(1e6))
    result = tolerance(limit("slowdown <= 1%"), trial, entry._replace(batch=4, resolution=50.0), 1e4)
    assert result.bound == result.raised == pytest.approx(2000 / 4 / 1e4)
    assert result.resolution == pytest.approx(50 / 1e4)
    assert tolerance(limit("slowdown <= 20%"), trial, entry, 1e4).raised is None
