"""Tests of core/judge/acceptance: what accepting asks first, and what it counts as moved."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.acceptance import (
    Change,
    decide,
    loosened,
    noise,
    too_few_processes,
)
from pytest_perfgate.core.judge.accepted_line import Signature
from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.samples import scatter_of
from pytest_perfgate.core.render.block import acceptance_lines
from pytest_perfgate.core.render.exports import acceptance_json
from pytest_perfgate.model.measurement import HistoryEntry, Measurement
from pytest_perfgate.model.metric import Interval, Metric, MetricSet, Problem
from pytest_perfgate.model.plan import Decision, Outcome
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.model.verdict import CaseReport
from tests import reports
from tests.reports import case, run
from tests.unit.core.judge.bench import CONTEXT, KEY, KINDS, accepted, limit, measured, timed
from tests.unit.core.judge.paired_builds import decided, decided_verdict


def test_what_accepting_asks_first() -> None:
    assert decide(timed(0.5), None, (), Signature()).change is Change.NEW
    bare = reports.case("test_a", 1e6)
    bare = replace(bare, measurement=replace(bare.measurement, metrics=MetricSet()))
    assert decide(bare, None, (), Signature()).change is Change.UNTIMED
    first, second = (Problem(code="x", what=what) for what in ("the clock moved", "throttled"))
    decision = decide(replace(reports.case("test_a", 1e6), problems=(first, second)), None, (), Signature())
    assert (decision.change, decision.why) == (Change.UNTRUSTED, "the clock moved")
    moved = reports.case("test_a", 1.004e6, 1e6, Outcome.REGRESSED)
    mixed = replace(moved, verdicts=(*reports.case("test_a", 1e6).verdicts, *moved.verdicts))
    assert decide(mixed, mixed.baseline, (), Signature()).change is Change.SLOWER
    day = reports.baseline("test_a", 1e6, expires="2026-05-31")
    assert decide(reports.case("test_a", 1e6), day, (), Signature(when="2026-05-31T10:00")).change is Change.KEPT


def test_runs_of_a_new_line() -> None:
    past = [HistoryEntry(key=KEY, device="d", time=t, when="") for t in (1e6, 1.02e6, 1e6)]
    for some, count in ((past, 3), ((), 1)):
        assert decide(reports.case("test_a", 1e6), None, some, Signature()).after.runs == count
    assert scatter_of(past[:2], 1e6) == (pytest.approx(math.log(1.02) / math.sqrt(2)), 2)
    assert scatter_of([replace(past[0], time=0.5)] * 2, 0.5) == (0.0, 2)


def test_an_open_case_is_played_alone_and_a_clock_event_keeps_what_it_could_see() -> None:
    spanning = replace(decided(Decision.UNDECIDED, 0.04, 2), interval=Interval(low=-0.01, high=0.09))
    assert decided_verdict(1e6, paired=spanning).next[0].endswith("--perfgate-against a1b2c3d")
    clocked = decided(Decision.SLOWER, 0.25, clocks_hz=(1.5e9, 1.2e9))
    assert decided_verdict(1.25e6, paired=clocked).visible == 0.02
    assert decided_verdict(1.25e6, paired=replace(clocked, visible=None)).visible == 0.03


def detects(*pairs: tuple[float, float | None], spread: float = 0.25) -> float | None:
    report = reports.case("test_a", 1e6, spread=spread)
    one = report.verdicts[0]
    verdicts = [replace(one, limit=replace(one.limit, bound=bound), visible=visible) for bound, visible in pairs]
    return decide(replace(report, verdicts=tuple(verdicts)), None, (), Signature()).detects


def test_the_tightest_limit_asks_what_a_run_saw() -> None:
    assert detects((0.25, None)) is None
    assert detects((0.24, None), (0.3, None)) == 0.25
    assert detects((0.3, None), (0.26, None)) is None
    assert detects((0.2, 0.4)) == 0.4
    assert detects((0.2, 0.1)) == 0.25
    assert detects((0.0, None)) is None


def test_each_run_more_takes_its_share_of_what_the_accepted_ones_did_not_see() -> None:
    before = reports.baseline("test_a", 1e6, runs=3, detects=0.2)
    added = decide(reports.case("test_a", 1.001e6, 1e6), before, (), Signature(), add=True).after
    assert added.runs == 4
    assert added.detects == pytest.approx(1.2 ** (3 / 4) - 1)


def test_a_line_as_noisy_as_what_counts_still_keeps_its_limit() -> None:
    for detects, outcome in ((0.5, Outcome.PASSED), (0.51, Outcome.UNDECIDED)):
        report = judge(
            measured(1e6), [limit("slowdown <= 50%")], baseline=accepted(1e6, detects=detects), context=CONTEXT
        )
        assert report.verdicts[0].outcome is outcome


def time_metric(value: float, low: float, high: float) -> Metric:
    return Metric(name="time", value=value, dimension=Dimension.TIME, interval=Interval(low=low, high=high))


@pytest.mark.parametrize(
    ("scatter", "runs", "half", "still"),
    [
        (0.005, 2, 0.0, 0.01),
        (0.03, 2, 0.0, 0.06),
        (0.0, 2, 0.0, 0.0001),
        (0.005, 1, 0.0, 0.03),
        (0.03, 1, 0.0, 0.06),
        (0.02, 5, 0.03, 0.05),
    ],
)
def test_no_movement_is_half_an_interval_and_two_deviations_between_runs(
    scatter: float, runs: int, half: float, still: float
) -> None:
    """Taken as independent of each other; one run alone is trusted to 3 %, and nothing to less than 0.01 %."""
    line = reports.baseline("test_a", 1e6, scatter=scatter, runs=runs)
    assert noise(line, time_metric(1e6, 1e6 * (1 - half), 1e6 * (1 + half))) == pytest.approx(still)


def test_a_time_that_lies_off_by_exactly_its_noise_has_not_moved() -> None:
    line = reports.baseline("test_a", 1e6, scatter=0.25, runs=2)
    for time, change in ((1.5e6, Change.KEPT), (1.51e6, Change.SLOWER), (0.5e6, Change.KEPT), (0.49e6, Change.FASTER)):
        report = reports.case("test_a", time, 1e6, Outcome.UNDECIDED, spread=0.0)
        assert decide(report, line, (), Signature()).change is change


THEN = accepted(1e6)


def taken(time: float, **fields) -> Measurement:
    context = JudgeContext(kinds=KINDS)
    measurement = judge(measured(time, **fields), [limit("time <= 1s")], baseline=None, context=context).measurement
    assert measurement is not None
    return measurement


@pytest.mark.parametrize(
    ("edited", "time", "sentence"),
    [
        (2e6, 1e6, "1 ms -> 2 ms, measured 1 ms"),
        (1.2e6, 1e6, "1 ms -> 1.2 ms, measured 1 ms"),
        (2e6, 0.5e6, "1 ms -> 2 ms, measured 500 µs"),
        (1.15e6, 1e6, ""),
        (1.2e6, 1.1e6, ""),
        (2e6, 2e6, ""),
        (2e6, 3e6, ""),
        (0.5e6, 0.3e6, ""),
    ],
    ids=["far", "just off", "faster too", "on its level", "accepted", "exactly", "slower still", "tightened"],
)
def test_only_what_no_accepting_would_have_written(edited: float, time: float, sentence: str) -> None:
    assert loosened(THEN, accepted(edited, why="because"), taken(time)) == sentence


def test_what_is_exactly_as_far_as_the_interval_or_the_noise_goes_is_not_told() -> None:
    def loosening(edited: float, low: float, high: float) -> str:
        times = taken(1e6).metrics.find("time")
        metrics = tuple(replace(time, value=1e6, interval=Interval(low=low, high=high)) for time in times)
        line = accepted(edited, runs=2)
        return loosened(THEN, line, replace(taken(1e6), metrics=MetricSet(metrics=metrics)))

    assert loosening(2e6, 0.9e6, 2e6) == ""
    assert loosening(2e6, 0.9e6, 1.9e6) != ""
    assert loosening(1.5e6, 0.4e6, 1.4e6) == "", "half the interval is half of the time"
    assert loosening(1.6e6, 0.4e6, 1.4e6) != ""


def test_what_cannot_be_compared_or_says_nothing_is_not_told() -> None:
    edited = accepted(2e6)
    other = replace(edited, identity=replace(taken(1e6).identity, threads="9"))
    assert loosened(THEN, other, taken(1e6)) == ""
    assert loosened(THEN, edited, replace(taken(1e6), metrics=MetricSet())) == ""
    assert loosened(THEN, edited, taken(1e6, shape=(0.9, 1.0, 1.2))) != ""
    assert loosened(THEN, edited, taken(1e6, shape=(0.5, 1.0, 2.0))) == "", "the interval holds the line"
    assert loosened(edited, edited, taken(1e6)) == "", "the same time as before loosens nothing"
    untimed = taken(1e6)
    nothing = tuple(replace(m, value=0.0, interval=None) for m in untimed.metrics.find("time"))
    assert loosened(THEN, edited, replace(untimed, metrics=MetricSet(metrics=nothing))) == "", "no time at all"
    assert loosened(accepted(0.2), accepted(1.0), taken(0.5)) == "0.2 ns -> 1 ns, measured 0.5 ns"
    assert loosened(THEN, replace(edited, scatter=0.6, runs=3), taken(1e6)) == "", "that far its runs lie apart"


@pytest.mark.parametrize(
    ("mode", "complete", "count", "sentence"),
    [
        ("quick", True, 1, "from a quick run: one process, that of the tests"),
        ("full", False, 2, "from an interrupted run: 2 processes"),
        ("full", False, 3, ""),
        ("full", True, 2, ""),
    ],
)
def test_a_line_says_that_it_stands_on_few_processes(mode: str, complete: bool, count: int, sentence: str) -> None:
    report = case("test_a", 1e6, None, Outcome.UNBASELINED)
    assert report.measurement is not None
    few = replace(report.measurement, processes=report.measurement.processes[:1] * count)
    report = replace(report, measurement=few)
    decision = too_few_processes(
        decide(report, None, (), Signature()), replace(run(report), mode=mode, complete=complete)
    )
    assert decision.few_processes == sentence
    assert decision.after is not None
    assert decision.after.processes == (count if sentence else 0)
    assert acceptance_json([decision])[0]["warning"].startswith(sentence)
    warned = [f"warning  2 of 3 cases, {sentence}; the next full run detects more and replaces it"] if sentence else []
    assert list(acceptance_lines([decision, replace(decision, few_processes=""), decision]))[4:] == warned


def test_a_call_has_as_many_processes_as_any_other_of_its_run_or_too_few() -> None:
    report = case("test_a", 1e6, None, Outcome.UNBASELINED)
    assert report.measurement is not None

    def of(count: int) -> CaseReport:
        return replace(
            report, measurement=replace(report.measurement, processes=report.measurement.processes[:1] * count)
        )

    cut = replace(run(of(7), of(9), of(3), replace(report, measurement=None)), complete=False)
    assert (
        too_few_processes(decide(of(7), None, (), Signature()), cut).few_processes
        == "from an interrupted run: 7 processes"
    )
    assert too_few_processes(decide(of(9), None, (), Signature()), cut).few_processes == ""


def test_a_whole_run_takes_the_place_of_a_quick_one() -> None:
    report = case("test_a", 1e6, 1e6, Outcome.PASSED)
    assert report.baseline is not None
    assert report.measurement is not None
    quick = replace(report.baseline, processes=1)
    decision = decide(report, quick, (), Signature())
    assert (decision.change, decision.after.processes if decision.after else None) == (Change.LESS_NOISY, 0)
    assert decide(report, replace(quick, processes=99), (), Signature()).change is Change.KEPT
