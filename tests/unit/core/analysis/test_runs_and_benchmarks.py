from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.analysis import results as benchmarks
from pytest_perfgate.core.analysis import results as runs
from pytest_perfgate.model.measurement import Identity
from pytest_perfgate.model.profiles import BenchResult
from pytest_perfgate.model.values import Dimension
from tests.reports import case, run

OLD = (
    BenchResult(name="a", time=1e3),
    BenchResult(name="gone", time=1e3),
    BenchResult(name="bad", time=None, skipped="no device"),
)
NEW = (
    BenchResult(name="a", time=1.5e3, samples=7, rates=(("bandwidth", 2e9, Dimension.BANDWIDTH),)),
    BenchResult(name="new", time=1.0),
)


def test_results_as_metrics() -> None:
    found = benchmarks.metrics_of(OLD)
    assert [m.value for m in found.metrics] == [1e3, 1e3]
    assert [a.why for a in found.absent] == ["no device"]
    assert {m.name for m in benchmarks.metrics_of(NEW).metrics} == {"time", "bandwidth"}
    assert len(benchmarks.result_table(OLD).rows) == 3


def test_results_against_each_other() -> None:
    (slowdown,) = benchmarks.comparison_metrics(OLD, NEW).metrics
    assert slowdown.value == pytest.approx(0.5)
    assert benchmarks.benchmark_comparison_table(OLD, NEW).rows[0][0] == "a"
    findings, problems = benchmarks.differing(OLD, NEW)
    assert findings[0].detail == "new"
    assert "gone" in problems[0].what
    many = [BenchResult(name=str(n), time=1.0) for n in range(9)]
    assert benchmarks.differing(many, ())[1][0].what.endswith("...")
    assert benchmarks.differing(OLD, OLD) == ((), ())


def test_runs_against_each_other() -> None:
    old, new = (
        run(case("test_a", 1e6), case("test_b", 1e6)),
        run(case("test_a", 1.2e6), replace(case("test_c", 1e6), measurement=None)),
    )
    (slowdown,) = runs.compared(old, new).metrics
    assert slowdown.value == pytest.approx(0.2)
    assert slowdown.low < 0.2 < slowdown.high
    assert "test_b" in runs.dropped(old, new)[0].what
    assert runs.dropped(old, old) == ()
    assert len(runs.comparison_table(old, new).rows) == 1
    found = runs.metrics_of_run(new)
    assert {dict(m.labels)["case"] for m in found.metrics} == {"tests/test_k.py::test_a"}
    assert len(found.absent) == 1


def test_runs_measured_in_other_ways_are_not_compared() -> None:
    other = case("test_a", 1e6)
    other = replace(other, measurement=replace(other.measurement, identity=Identity(device="x")))
    assert runs.pairs(run(case("test_a", 1e6)), run(other)) == []


def test_a_median_is_held_against_a_median() -> None:
    old, new = (
        BenchResult(name="a", time=2e3, statistic="mean"),
        BenchResult(name="a", time=1e3, also=(("mean", 3e3),)),
    )
    (slowdown,) = benchmarks.comparison_metrics([old], [new]).metrics
    assert slowdown.value == pytest.approx(0.5)
    assert benchmarks.differing([old], [new]) == ((), ())
    other = BenchResult(name="a", time=1e3, statistic="mean, on the host")
    assert not benchmarks.comparison_metrics([old], [other]).metrics
    (problem,) = benchmarks.differing([old], [other])[1]
    assert (problem.code, "mean, then mean, on the host" in problem.what) == ("benchmark-unlike", True)


def test_benchmarks_of_one_name_meet_in_their_order() -> None:
    old, new = ([BenchResult(name="a", time=time) for time in side] for side in ((1.0, 10.0), (2.0, 10.0)))
    assert [m.value for m in benchmarks.comparison_metrics(old, new).metrics] == [1.0, 0.0]
    assert benchmarks.differing(old, new[:1])[1][0].what == "1 benchmarks are gone: a"
