"""Means of a family, merging of limits, figures of a call: gaps that ci/mutate found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.family import _metric, _reach, family_notes, geometric_mean, in_force
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.metrics import metrics_of
from pytest_perfgate.core.judge.rounds import split
from pytest_perfgate.core.limits.merge import merge_limits, replaced_on
from pytest_perfgate.core.limits.scope import either, nearest
from pytest_perfgate.core.stats.inference import Prior, predict
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Baseline
from pytest_perfgate.model.metric import Metric, MetricSet, labels
from pytest_perfgate.model.plan import CaseKey, Limit
from pytest_perfgate.model.values import Dimension, Interval
from pytest_perfgate.model.verdict import CaseReport, Decision, Paired
from tests.unit.core.gate.bench import GEMM, GPU, KINDS, SHAPE, accepted, limit, measured, samples

CONTEXT = JudgeContext(kinds=KINDS)
FAMILY = "tests/b.py::test_mm"


def report(time: float | None, param: str = "1", **fields) -> CaseReport:
    key = CaseKey(nodeid=f"{FAMILY}[{param}]")
    if time is None:
        return CaseReport(key=key, verdicts=())
    held = accepted(1e6, key=key, **fields)
    return judge(measured(time, key=key, shape=(1.0, 1.0, 1.0)), [], baseline=held, context=CONTEXT)


def note(text: str, *times: float | None):
    members = [report(time, str(at)) for at, time in enumerate(times)]
    (found,) = family_notes(members, {FAMILY: [limit(text)]}, CONTEXT)
    return found


def test_a_mean_says_what_it_is_of() -> None:
    assert "+10.0 % [+10.0, +10.0] over 2 cases" in note("geomean(slowdown) <= 50%", 1.21e6, 1e6).text
    assert "1.1 ms [1.1 ms, 1.1 ms] over 2 cases" in note("geomean(time) <= 2ms", 1.21e6, 1e6).text
    assert "slowdown of 1 of 3 cases was not measured" in note("geomean(slowdown) <= 1%", 1e6, None, 1e6).text
    assert note("geomean(slowdown) <= 0%", 1.05e6).text.startswith("suspect: ")
    assert note("geomean(slowdown) <= -1%", 1.05e6).text.startswith("broken: ")
    assert note("geomean(slowdown) <= 1%", 3e6).text.startswith("regressed: ")


def test_a_mean_against_lines_of_noisy_sittings_is_not_known() -> None:
    def of(time: float, *blind: float) -> str:
        members = [report(time, str(at), blind=unknown) for at, unknown in enumerate(blind)]
        (found,) = family_notes(members, {FAMILY: [limit("geomean(slowdown) <= 10%")]}, CONTEXT)
        return found.text

    assert of(1e6, 1.07, 0.0).startswith("undecided: ")
    assert "too noisy to detect less than +43.9 %" in of(1e6, 1.07, 0.0)
    assert of(0.69e6, 1.07, 0.0).startswith("passed: ")  # faster by more than that
    assert of(0.7e6, 1.07, 0.0).startswith("undecided: ")
    assert of(1e6, 0.09, 0.09).startswith("passed: ")  # as well known as the limit asks
    assert "chance explains up to +107.0 %" in of(2e6, 1.07, 1.07)
    assert of(2e6, 1.07, 1.07).startswith("suspect: ")  # slower by less than the lines may be off by
    assert of(2e6, 1.07, 0.0).startswith("regressed: ")
    assert of(2.1e6, 1.07, 1.07).startswith("regressed: ")


def test_a_mean_against_lines_as_blind_as_its_limit_still_keeps_it() -> None:
    for time, blind, outcome in ((1e6, 0.5, "passed"), (1e6, 1.0, "undecided"), (0.5e6, 1.0, "undecided")):
        members = [report(time, str(at), blind=blind) for at in range(2)]
        (found,) = family_notes(members, {FAMILY: [limit("geomean(slowdown) <= 50%")]}, CONTEXT)
        assert found.text.startswith(outcome)


def ratio(low: float, middle: float, high: float) -> Metric:
    return Metric(name="mfu", value=middle, dimension=Dimension.FRACTION, interval=Interval(low=low, high=high))


def test_the_mean_of_one_is_that_one_and_errors_average_out() -> None:
    one = geometric_mean([ratio(0.4, 0.5, 0.8)], change=False)
    assert (one.value, one.low, one.high) == pytest.approx((0.5, 0.4, 0.8))
    two = geometric_mean([ratio(0.25, 0.5, 1.0), ratio(0.125, 0.125, 0.125)], change=False)
    assert (two.value, two.low, two.high) == pytest.approx((0.25, 0.25 / 2**0.5, 0.25 * 2**0.5))


def test_a_mean_is_of_one_plain_figure_a_case() -> None:
    plain = Metric(name="overlap", value=0.5, dimension=Dimension.FRACTION)
    for metrics, expected in (
        ((plain,), plain),
        ((replace(plain, labels=labels(rank=0)),), None),
        ((plain,) * 2, None),
    ):
        case = CaseReport(
            key=report(1e6).key, verdicts=(), measurement=measured(1e6, metrics=MetricSet(metrics=metrics))
        )
        assert _metric(case, "overlap") == expected


def test_the_least_known_member_says_what_chance_reaches() -> None:
    known, fresh = report(1e6, sittings=30), report(1e6)
    one = predict(Prior.CPU, scatter=Prior.CPU, sittings=1, gates=1).reach
    assert _reach([known, fresh], CONTEXT) == _reach([replace(fresh, baseline=None)], CONTEXT) == one
    assert _reach([known], CONTEXT) < one
    locked = replace(fresh, measurement=measured(1e6, device=GPU, clocks="lock"))
    assert _reach([locked], CONTEXT) == predict(Prior.GPU_LOCKED, scatter=Prior.GPU_LOCKED, sittings=1, gates=1).reach


def test_closer_limits_take_the_place_of_farther_ones_on_their_devices() -> None:
    far = limit("mfu >= 55%", on=("H200*",))
    near = [limit("mfu >= 50%", on=("A100*",)), limit("mfu >= 40%")]
    assert merge_limits([far], near) == tuple(near)
    same = limit("mfu >= 60%", on=("H200*",))
    assert merge_limits([far], [same]) == (same,)
    assert replaced_on(replace(far, except_on=("A100*", "H200*")), GPU)
    assert not replaced_on(replace(far, except_on=("A100*", "B200*")), GPU)


def test_limits_without_blanks_and_with_the_scope_that_goes_without_saying() -> None:
    held = limit("count(HMMA)>=1")
    assert held.labels == (("opcode", "HMMA"),)
    for text, caret in (("<= 5", "^"), ("time   ? 5", "       ^")):
        with pytest.raises(PerfgateError) as caught:
            limit(text)
        assert str(caught.value).splitlines()[2].partition("  [")[0] == f"    {caret}"


def test_two_arms_replace_the_slowdown_and_nothing_else() -> None:
    arms = Paired(decision=Decision.NOT_SLOWER, differences=(0.0,) * 5, shift=0.0, base="a", revision=True)
    found = judge(
        measured(1e6, work=GEMM), [limit("slowdown <= 3%")], baseline=accepted(2e6), context=CONTEXT, paired=arms
    )
    names = [metric.name for metric in found.measurement.metrics.metrics]
    assert names.count("slowdown") == names.count("time") == names.count("tflops") == 1


def test_what_was_brought_is_not_absent() -> None:
    brought = MetricSet(metrics=(Metric(name="time", value=5.0, dimension=Dimension.TIME),))
    found = judge(measured(1e6, processes=(), metrics=brought), [], baseline=None, context=CONTEXT)
    absent = {gap.name for gap in found.measurement.metrics.absent}
    assert "time" not in absent
    assert "mfu" in absent


def test_launch_gaps_and_rates_to_the_bit() -> None:
    several = measured(1e6, processes=tuple(samples(1e6, launch_gap=gap) for gap in (3.0, 1.0, 2.0)))
    (gap,) = metrics_of(several, None).find("launch_gap")
    assert (gap.value, gap.interval) == (2.0, Interval(low=1.0, high=3.0, confidence=0.0))
    single = measured(1e6, processes=(samples(1e6, launch_gap=0.0),), work=GEMM)
    (gap,) = metrics_of(single, None).find("launch_gap")
    assert (gap.value, gap.interval) == (0.0, None)
    timed = measured(1e6, processes=tuple(samples(1e6 * f, overhead=1e5) for f in (0.9, 1.0, 1.1)), work=GEMM)
    found = metrics_of(timed, None)
    (time,), (tflops,) = found.find("time"), found.find("tflops")
    assert tflops.value == GEMM.flops * 1e9 / (time.value - 1e5)
    assert tflops.low == GEMM.flops * 1e9 / (time.high - 1e5)
    assert tflops.high == GEMM.flops * 1e9 / (time.low - 1e5)


def test_groups_of_processes() -> None:
    assert split([1.0, 2.0], 0.0) is None
    assert split([1.0, 1.0, 3.5, 3.5], 0.0, 1.0) == (1.0, 3.5)
    assert split([1.0, 1.0, 2.9, 2.9], 0.0, 1.0) is None


def test_words_that_were_probably_meant() -> None:
    assert nearest("fu", ["abcdefufghij"]) == ()
    assert nearest("ufg", ["abcdefufghij"]) == ("abcdefufghij",)
    assert (either("a"), either("ab"), either("abc")) == ("'a'", "'a' or 'b'", "'a', 'b' or 'c'")


HELD = limit("geomean(slowdown) <= 20%")


def mean(*members: CaseReport) -> str:
    (found,) = family_notes(members, {FAMILY: [HELD]}, CONTEXT)
    return found.text.partition(f"{FAMILY}: ")[0] + found.text.partition("20%: ")[2]


def test_a_mean_is_not_held_against_lines_that_the_case_itself_would_not_be_held_against() -> None:
    other = replace(accepted(1e6).identity, timer="cupti")
    apart = "measured differently, not compared: timer cupti -> host"
    for time in (1e6, 1.5e6):
        found = report(time, identity=other)
        assert mean(report(time, "2"), found) == f"not measured: slowdown of 1 of 2 cases was not measured: {apart}"
    (of_time,) = family_notes([found], {FAMILY: [limit("geomean(time) <= 2ms")]}, CONTEXT)
    assert of_time.text.startswith("passed: ")


def test_a_mean_is_not_held_against_an_acceptance_that_ran_out_unless_the_change_renews_it() -> None:
    def of(**fields) -> CaseReport:
        context = replace(CONTEXT, today="2026-05-10", **fields)
        held = accepted(1e6, key=report(1e6).key, expires="2026-05-01")
        return judge(measured(1e6, key=held.key), [HELD], baseline=held, context=context)

    assert mean(of()).endswith('was not measured: the acceptance expired on 2026-05-01: "TMA loads"')
    again = accepted(1e6, why="no compiler yet", when="2026-05-09", expires="2026-06-01")
    assert mean(of(edited=again)).startswith("accepted: +0.0 %")
    for stale in (replace(again, why=""), replace(again, expires="2026-05-09"), replace(again, time=2e6)):
        assert mean(of(edited=stale)).startswith("not measured: ")


def test_a_mean_takes_a_slower_time_that_the_change_accepts_with_a_reason() -> None:
    def of(time: float, scatter=(1.0, 1.0, 1.0), **fields) -> CaseReport:
        edited = accepted(3e6, why="exact softmax", when="2026-05-09", **fields)
        held = accepted(1e6, key=report(1e6).key)
        return judge(
            measured(time, key=held.key, shape=scatter), [HELD], baseline=held, context=replace(CONTEXT, edited=edited)
        )

    assert mean(of(3e6)).startswith("accepted: +0.0 % [+0.0, +0.0]")
    assert mean(of(3.3e6, scatter=SHAPE)).startswith("accepted: +10.0 % [+9.7, +10.3]")
    assert mean(of(3e6)).endswith("over 1 case; 1 of 1 case against what this change accepts")
    assert mean(of(4e6)).startswith("regressed: +300.0 %"), "what was measured does not agree"
    assert mean(of(2e6)).startswith("regressed: +100.0 %")
    assert mean(of(3e6, expires="2026-05-01")).startswith("accepted: "), "no day is known"
    bare = judge(measured(3e6), [HELD], baseline=accepted(1e6), context=replace(CONTEXT, edited=accepted(3e6, why="")))
    assert bare.accepts is None


def test_what_a_change_accepts_and_nothing_measured_agrees_with_makes_no_mean_better() -> None:
    """A line that says 15 % slower of a case that is as fast as before would take 13 % off the mean."""

    def of(time: float, param: str, accepts: float) -> CaseReport:
        held = accepted(1e6, key=report(1e6, param).key)
        context = replace(CONTEXT, edited=accepted(accepts, why="exact softmax", when="2026-05-09"))
        return judge(measured(time, key=held.key), [HELD], baseline=held, context=context)

    assert mean(of(1e6, "1", 1.15e6)).startswith("passed: +0.0 %")
    assert mean(of(1.1e6, "1", 1.15e6), report(1.1e6, "2")).startswith("passed: +10.0 %")
    assert mean(of(1.25e6, "1", 1.25e6), report(1e6, "2")).startswith("accepted: +0.0 %")


def test_at_exactly_what_a_mean_allows_the_line_of_before_counts_and_that_of_the_change_agrees() -> None:
    case = report(1.5e6)
    line, exact = accepted(1e6, key=case.key), measured(1.5e6, shape=(1.0, 1.0, 1.0), key=case.key)
    none, half = limit("geomean(slowdown) <= 0%"), limit("geomean(slowdown) <= 50%")
    same, past = replace(line, time=1.5e6), replace(line, time=1e6)

    def taken(bound: Limit, accepts: Baseline, before: float) -> bool:
        held = judge(exact, [bound], baseline=replace(line, time=before), context=CONTEXT)
        return in_force(replace(held, accepts=accepts), bound).baseline == accepts

    assert taken(none, same, 1e6)
    assert taken(half, past, 0.9e6)
    assert not taken(half, same, 1e6)
    assert not taken(half, replace(past, time=0.99e6), 0.9e6)
    assert not taken(replace(none, bound=-0.1), same, 1e6)
    brought = measured(1e6, processes=(), metrics=MetricSet(metrics=(replace(ratio(1, 1, 1), name="time"),)))
    untimed = CaseReport(key=case.key, verdicts=(), measurement=brought, accepts=same, unheld="it has run out")
    assert in_force(untimed, none) is untimed


def test_a_mean_under_two_arms_asks_no_accepted_sitting() -> None:
    def of(shift: float, **fields) -> CaseReport:
        interval = Interval(low=shift - 0.01, high=shift + 0.01)
        seen = {"differences": (shift,) * 5, "shift": shift, "interval": interval, "base": "HEAD~1"}
        arms = Paired(decision=Decision.UNDECIDED, revision=True, **seen, **fields)
        held = accepted(5e6, key=report(1e6).key, blind=5.0, expires="2026-05-01")
        context = replace(CONTEXT, today="2026-05-10")
        return judge(measured(1e6, key=held.key), [HELD], baseline=held, context=context, paired=arms)

    assert mean(of(0.0)) == "passed: +0.0 % [-1.0, +1.0] over 1 case"
    assert mean(of(0.5)).startswith("regressed: +50.0 %")
    assert mean(of(0.5, same=True)).startswith("moved: ")
    assert mean(of(0.5, same=True), of(0.5)).startswith("moved: "), "one that ran the same code moved with the others"
    assert "edits kernel.py" in mean(of(0.0, bare=True, edited=("kernel.py",)))


def test_why_a_case_is_missing_is_told_of_slowdowns_only_and_of_the_first_that_knows() -> None:
    silent, apart = report(None), replace(report(1e6), unheld="another timer")
    assert mean(silent, apart) == "not measured: slowdown of 2 of 2 cases was not measured: another timer"
    untimed = replace(apart, measurement=None)
    (of_time,) = family_notes([untimed], {FAMILY: [limit("geomean(time) <= 2ms")]}, CONTEXT)
    assert of_time.text.endswith("time of 1 of 1 case was not measured")
