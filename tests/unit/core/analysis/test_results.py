"""Tests of core/analysis/results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from pytest_perfgate.core.analysis import results as benchmarks
from pytest_perfgate.core.analysis import results as runs
from pytest_perfgate.core.analysis.results import (
    Previous,
    compared,
    comparison_table,
    dropped,
    metrics_of_run,
    previous_of,
)
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.model.measurement import Environment, Identity
from pytest_perfgate.model.metric import (
    Interval,
    Metric,
    MetricSet,
    Problem,
    figure_title,
    labels,
    parse_figure_title,
)
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.profiles import BenchResult
from pytest_perfgate.model.values import Better, Dimension
from pytest_perfgate.model.verdict import CaseReport, RunReport
from tests.reports import DEVICE, case, run

NOW = case("test_a", 1e6, 9e5)
KEY = NOW.key


def at(commit: str, day: int, *cases: CaseReport, dirty: bool = False) -> RunReport:
    return run(*cases, environment=Environment(commit=commit, dirty=dirty), started=f"2026-06-{day:02}T10:00:00+00:00")


REPORT = at("c0ffee1234567890", 9, NOW)


def previous(*earlier: RunReport, report: RunReport = REPORT) -> Previous | None:
    return previous_of(report.cases, report, earlier).get((KEY, DEVICE.key))


def test_the_newest_earlier_run_of_another_commit() -> None:
    same = at("c0ffee1234567890", 8, case("test_a", 5e6))
    older = at("b2c3d4e5f6", 7, case("test_a", 2e6))
    oldest = at("aaaaaaaaaa", 6, case("test_a", 3e6))
    later = at("dddddddddd", 10, case("test_a", 4e6))
    before = previous(later, REPORT, same, older, oldest)
    assert before is not None
    assert (before.commit, before.when, before.time) == ("b2c3d4e", "2026-06-07", None)
    assert before.metrics is not None
    assert before.metrics.find("time")[0].value == 2e6


@pytest.mark.parametrize(("outcome", "left_open"), [(Outcome.UNDECIDED, True), (Outcome.PASSED, False)])
def test_a_run_that_left_a_case_open_says_so(outcome: Outcome, left_open: bool) -> None:
    before = previous(at("b2c3d4e5f6", 7, case("test_a", 2e6, 2e6, outcome)))
    assert before is not None
    assert before.undecided is left_open


def test_changes_that_were_not_committed_are_another_version() -> None:
    bare = at("c0ffee1234567890", 9, replace(NOW, baseline=None))
    before = previous(at("c0ffee1234567890", 8, case("test_a", 2e6), dirty=True), report=bare)
    assert before is not None
    assert before.commit == "c0ffee1+dirty"
    older = at("b2c3d4e5f6", 7, case("test_a", 3e6))
    tried = at("b2c3d4e5f6", 8, case("test_a", 1e6), dirty=True)
    assert previous(tried) == Previous(commit="a1b2c3d", when="2026-05-02", time=9e5)
    committed = previous(tried, older)
    assert committed is not None
    assert committed.commit == "b2c3d4e", "what was tried before a commit is most often that commit"


THEN = case("test_a", 2e6)
BAD = Problem(code="bad-timing", what="the clock moved")


@pytest.mark.parametrize(
    "unlike",
    [
        case("test_b", 2e6),
        replace(THEN, measurement=None),
        replace(THEN, problems=(BAD,)),
        case("test_a", 2e6, problems=(BAD,)),
        replace(THEN, measurement=replace(THEN.measurement, identity=replace(THEN.measurement.identity, threads="9"))),
        replace(THEN, measurement=replace(THEN.measurement, metrics=type(THEN.measurement.metrics)())),
    ],
)
def test_only_what_was_measured_alike(unlike: CaseReport) -> None:
    accepted = Previous(commit="a1b2c3d", when="2026-05-02", time=9e5)
    assert previous(at("b2c3d4e5f6", 8, unlike)) == accepted
    further = previous(at("b2c3d4e5f6", 8, unlike), at("aaaaaaaaaa", 7, THEN))
    assert further is not None
    assert further.commit == "aaaaaaa"


def test_a_line_of_this_very_commit_is_no_previous_one() -> None:
    assert previous() == Previous(commit="a1b2c3d", when="2026-05-02", time=9e5)
    for commit in ("c0ffee1", "c0ffee1234567890"):
        own = replace(NOW, baseline=replace(NOW.baseline, commit=commit))
        assert previous(report=at("c0ffee1234567890", 9, own)) is None
    nameless = replace(NOW, baseline=replace(NOW.baseline, commit=""))
    assert previous(report=at("c0ffee1234567890", 9, nameless)) == Previous(commit="", when="2026-05-02", time=9e5)
    assert previous(report=at("c0ffee1234567890", 9, replace(NOW, baseline=None))) is None


def test_without_a_commit_no_run_is_known_to_be_another_version() -> None:
    bare = at("", 9, NOW)
    assert previous(at("b2c3d4e5f6", 8, THEN), report=bare) == Previous(commit="a1b2c3d", when="2026-05-02", time=9e5)
    assert previous(at("", 8, THEN)) == Previous(commit="a1b2c3d", when="2026-05-02", time=9e5)


def test_a_report_and_a_trace_have_a_previous_one_though_no_call_was_timed() -> None:
    for name in ("duration", "total_time"):
        metrics = MetricSet(metrics=(Metric(name=name, value=1e6, dimension=Dimension.TIME),))
        read = replace(NOW, measurement=replace(NOW.measurement, metrics=metrics), baseline=None)
        assert previous(at("b2c3d4e5f6", 8, read), report=at("c0ffee1234567890", 9, read)).commit == "b2c3d4e"


def test_a_line_without_a_time_is_no_previous_time() -> None:
    figures = replace(NOW, baseline=replace(NOW.baseline, time=0.0))
    assert previous(report=at("c0ffee1234567890", 9, figures)) is None


def test_no_more_runs_are_read_than_needed() -> None:
    def runs() -> Iterator[RunReport]:
        yield at("b2c3d4e5f6", 8, THEN)
        raise AssertionError("one was enough")

    assert previous_of(REPORT.cases, REPORT, runs())[KEY, DEVICE.key].commit == "b2c3d4e"


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
    metrics = benchmarks.metrics_of(OLD)
    assert [m.value for m in metrics.metrics] == [1e3, 1e3]
    assert [a.why for a in metrics.absent] == ["no device"]
    assert {m.name for m in benchmarks.metrics_of(NEW).metrics} == {"time", "bandwidth"}
    assert len(benchmarks.result_table(OLD).rows) == 3


def own(name: str, *figures: tuple[str, float | None], **more: Any) -> BenchResult:
    return BenchResult(name=name, time=1.0, own=tuple((*figure, Dimension.PLAIN) for figure in figures), **more)


@pytest.mark.parametrize(
    ("name", "limited", "better"),
    [
        ("probes", "metric(probes)", Better.NEITHER),
        ("GFLOPS", "metric(GFLOPS)", Better.HIGHER),
        ("frames_per_second", "metric(frames_per_second)", Better.HIGHER),
        ("adds/s", "metric(name=adds/s)", Better.HIGHER),
        ("time/byte", "metric(name=time/byte)", Better.NEITHER),
        ("größe", 'metric(name="größe")', Better.NEITHER),
        ("mfu", "metric(name=mfu)", Better.NEITHER),
    ],
)
def test_a_user_s_figure_is_what_a_limit_selects(name: str, limited: str, better: Better) -> None:
    (metric,) = [m for m in benchmarks.metrics_of([own("a/8", (name, 2.0))]).metrics if m.name != "time"]
    limit = parse_limit(f"{limited} <= 3", kinds=by_name())
    assert (benchmarks.limited_as(metric), metric.better) == (limited, better)
    assert MetricSet(metrics=(metric,)).find(limit.metric, limit.labels) == (metric,)
    assert parse_figure_title(figure_title(metric.name, metric.labels)) == (metric.name, metric.labels)


def test_a_figure_that_a_benchmark_has_no_number_for_is_absent_with_the_reason() -> None:
    skipped = replace(own("dot/2"), time=None, skipped="no card")
    gaps = benchmarks.metrics_of([own("dot/1", ("probes", 3.0), ("x", None)), skipped, own("copy")]).absent
    assert [(gap.name, dict(gap.labels)["case"], gap.why) for gap in gaps] == [
        ("x", "dot/1", "the file has no finite number for it"),
        ("time", "dot/2", "no card"),
        ("probes", "dot/2", "no card"),
        ("x", "dot/2", "no card"),
    ]


def test_results_against_each_other() -> None:
    (slowdown,) = benchmarks.comparison_metrics(OLD, NEW).metrics
    assert slowdown.value == pytest.approx(0.5)
    table = benchmarks.benchmark_comparison_table(OLD, NEW)
    assert (table.rows[0][0], "gone" in table.note, "1 new benchmark: new" in table.note) == ("a", True, True)
    findings, problems = benchmarks.differing(OLD, NEW)
    assert findings[0].detail == "new"
    assert "gone" in problems[0].what
    many = [BenchResult(name=str(n), time=1.0) for n in range(9)]
    assert benchmarks.differing(many, ())[1][0].what.endswith("...")
    assert benchmarks.differing(OLD[:2], OLD[:2]) == ((), ())


def test_a_benchmark_that_has_no_time_is_named_with_its_reason() -> None:
    timed, failed = BenchResult(name="a", time=1.0), BenchResult(name="a", time=None, skipped="no device")
    (problem,) = benchmarks.differing([timed], [failed])[1]
    assert problem.what == "1 benchmark gone or without a time now: a (no device)"
    (finding,), problems = benchmarks.differing([failed], [failed])
    assert (finding.title, finding.detail, problems) == ("1 benchmark without a time in both", "a (no device)", ())
    assert benchmarks.differing([failed], [timed])[0][0].title == "1 new benchmark"
    assert "without a time in both: a (no device)" in benchmarks.benchmark_comparison_table([failed], [failed]).note


def test_runs_against_each_other() -> None:
    old, new = (
        run(case("test_a", 1e6), case("test_b", 1e6)),
        run(case("test_a", 1.2e6), replace(case("test_c", 1e6), measurement=None)),
    )
    (slowdown,) = runs.compared(old, new).metrics
    assert slowdown.value == pytest.approx(0.2)
    assert (slowdown.low, slowdown.high) == pytest.approx((1.2 * 0.995 / 1.005 - 1, 1.2 * 1.005 / 0.995 - 1))
    assert "test_b" in runs.dropped(old, new)[0].what
    assert runs.dropped(old, old) == ()
    assert len(runs.comparison_table(old, new).rows) == 1
    assert runs.comparison_table(old, new).note == runs.dropped(old, new)[0].what, "a case that is gone is named"
    assert "the later run without a counterpart" in runs.comparison_table(new, old).note
    assert runs.comparison_table(old, old).note == ""
    metrics = runs.metrics_of_run(new)
    assert {dict(m.labels)["case"] for m in metrics.metrics} == {"tests/test_k.py::test_a"}
    assert len(metrics.absent) == 1


def test_a_time_whose_interval_reaches_zero_is_no_time_to_divide_by() -> None:
    old, new = run(case("test_a", 1e6)), run(case("test_a", 1e6))
    (bare,) = old.cases
    (time,) = bare.measurement.metrics.find("time")
    broken = replace(time, interval=Interval(low=0.0, high=0.0))
    odd = run(replace(bare, measurement=replace(bare.measurement, metrics=MetricSet(metrics=(broken,)))))
    assert compared(old, new).metrics
    for pair in ((odd, new), (old, odd)):
        assert not compared(*pair).metrics
        assert not comparison_table(*pair).rows
        assert dropped(*pair)


def test_a_case_that_neither_run_timed_has_no_counterpart_to_miss() -> None:
    """A test that reads a file has figures and no time."""
    read = case("test_a", 1e6)
    read = replace(read, measurement=replace(read.measurement, metrics=MetricSet()))
    assert (dropped(run(read), run(read)), comparison_table(run(read), run(read)).note) == ((), "")


def test_runs_measured_in_other_ways_are_not_compared() -> None:
    other = case("test_a", 1e6)
    other = replace(other, measurement=replace(other.measurement, identity=Identity(device="x")))
    assert runs.pairs(run(case("test_a", 1e6)), run(other)) == []


MEAN, MEDIAN = BenchResult(name="a", time=2e3, statistic="mean"), BenchResult(name="a", time=4e3)
BOTH = replace(MEDIAN, also=(("mean", 3e3),))


@pytest.mark.parametrize(
    ("old", "new", "slowdown"),
    [
        (MEAN, BOTH, 0.5),
        (BOTH, replace(MEAN, time=6e3), 1.0),
        (BOTH, replace(BOTH, time=5e3), 0.25),
        (MEAN, MEDIAN, None),
        (MEAN, replace(MEAN, statistic="mean, on the host"), None),
    ],
    ids=["the later has both", "the earlier has both", "both have both", "other statistics", "other clocks"],
)
def test_one_statistic_of_both_sides_is_compared(old: BenchResult, new: BenchResult, slowdown: float | None) -> None:
    assert [one.value for one in benchmarks.comparison_metrics([old], [new]).metrics] == (
        [] if slowdown is None else [pytest.approx(slowdown)]
    )
    findings, problems = benchmarks.differing([old], [new])
    sides = [f"({old.statistic}, then {new.statistic})" in problem.what for problem in problems]
    assert (findings, [problem.code for problem in problems], sides) == (
        ((), [], []) if slowdown is not None else ((), ["benchmark-unlike"], [True])
    )


def test_a_benchmark_is_compared_with_itself_on_its_own_device() -> None:
    old, new = (
        [BenchResult(name="a", time=time, device=device) for device, time in side.items()]
        for side in ({"H100": 1e3, "A100": 2e3}, {"A100": 2.5e3, "L4": 9e3})
    )
    assert [one.value for one in benchmarks.comparison_metrics(old, new).metrics] == [0.25]
    (finding,), (problem,) = benchmarks.differing(old, new)
    assert (finding.title, problem.what) == ("1 new benchmark", "1 benchmark gone or without a time now: a")


def test_what_slowed_most_is_the_first_row() -> None:
    before, after = {"a": 1e3, "b": 1e3, "c": 1e3}, {"a": 1.1e3, "b": 2e3, "c": 0.5e3}
    old, new = ([BenchResult(name=name, time=time) for name, time in side.items()] for side in (before, after))
    rows = [row[0] for row in benchmarks.benchmark_comparison_table(old, new).rows]
    of_runs = (run(*(case(f"test_{name}", time) for name, time in side.items())) for side in (before, after))
    assert (rows, [row[0][-1] for row in comparison_table(*of_runs).rows]) == (["b", "a", "c"],) * 2


def test_benchmarks_of_one_name_meet_in_their_order() -> None:
    old, new = ([BenchResult(name="a", time=time) for time in side] for side in ((1.0, 10.0), (2.0, 10.0)))
    assert [m.value for m in benchmarks.comparison_metrics(old, new).metrics] == [1.0, 0.0]
    assert benchmarks.differing(old, new[:1])[1][0].what == "1 benchmark gone or without a time now: a"


def test_a_run_on_several_devices_is_compared_device_by_device() -> None:
    other = replace(DEVICE, key="NVIDIA-A100", name="NVIDIA A100")
    before = run(case("test_a", 1e6), case("test_a", 3e6, device=other))
    after = run(case("test_a", 1.1e6), case("test_a", 3e6, device=other))
    changes = {m.labels: round(m.value, 3) for m in compared(before, after).metrics}
    scope = {"case": "tests/test_k.py::test_a"}
    assert changes == {labels(**scope, device=DEVICE.key): 0.1, labels(**scope, device=other.key): 0.0}
    assert [row[0] for row in comparison_table(before, after).rows] == [
        "tests/test_k.py::test_a, NVIDIA-H200", "tests/test_k.py::test_a, NVIDIA-A100",
    ]  # fmt: skip
    times = {m.labels: m.value for m in metrics_of_run(before).metrics if m.name == "time"}
    assert times == {labels(**scope, device=DEVICE.key): 1e6, labels(**scope, device=other.key): 3e6}
    (problem,) = dropped(before, run(case("test_a", 1e6)))
    assert "NVIDIA-A100" in problem.what
