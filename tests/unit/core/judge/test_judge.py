"""Tests of core/judge/judge."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import (
    NOBODY,
    judge,
    judging_failed,
    not_called,
    not_measured,
    nothing_measured,
    unfinished,
    unmatched_limits,
    unrepeated,
    with_trouble,
)
from pytest_perfgate.core.judge.policy import CI, LOCAL
from pytest_perfgate.model.measurement import Baseline, Measurement
from pytest_perfgate.model.metric import Absent, Metric, MetricSet, Problem, labels
from pytest_perfgate.model.plan import Case, CaseKey, Choice, Effect, Mode, Outcome, Plan
from pytest_perfgate.model.protocol import READ, CaseResult
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.model.verdict import CaseReport
from tests.unit.core.judge.bench import CONTEXT, HOST, KEY, KINDS, SLOWDOWN, accepted, limit, measured, verdict
from tests.unit.core.judge.paired_builds import SLOWER

PLAIN_CONTEXT = JudgeContext(kinds=KINDS)


def called(*names: str) -> list[CaseReport]:
    keys = [CaseKey(nodeid=KEY.nodeid, name=name) for name in names]
    return [judge(measured(1e6, key=key), (), baseline=None, context=PLAIN_CONTEXT) for key in keys]


@pytest.mark.parametrize("policy", [LOCAL, CI, replace(CI, unmeasured=Choice.WARN)])
def test_a_limit_of_the_test_fails_whatever_the_policy(policy) -> None:
    (report,) = unmatched_limits(
        called("forward"), [limit("time(case=forwrd) <= 1s")], replace(PLAIN_CONTEXT, policy=policy)
    )
    (verdict,) = report.verdicts
    assert (verdict.outcome, verdict.effect) == (Outcome.NOT_MEASURED, Effect.FAIL)
    assert {"case=forwrd", "'forward'?"} <= set(verdict.sentence.split())
    assert verdict.next == ("name the call: perfgate(..., name='forwrd')",)
    assert report.key == CaseKey(nodeid=KEY.nodeid, name=NOBODY)
    assert report.measurement is None


@pytest.mark.parametrize(
    ("text", "names"),
    [("speedup(over=eager, case=zzz) >= 1x", "case=zzz names no call"), ("speedup(over=zzz) >= 1x", "zzz")],
)
def test_a_speed_up_of_or_over_a_missing_call_names_it(text: str, names: str) -> None:
    (report,) = unmatched_limits(called("eager", "fused"), [limit(text)], PLAIN_CONTEXT)
    (verdict,) = report.verdicts
    assert names in verdict.sentence
    assert ("case=" in verdict.sentence) is ("case=" in text)


def test_a_fault_of_the_judge_fails_whatever_the_policy() -> None:
    report = judging_failed(measured(1e6), SLOWDOWN, "it broke", replace(PLAIN_CONTEXT, policy=LOCAL))
    assert [verdict.effect for verdict in report.verdicts] == [Effect.FAIL]


def test_what_names_there_are_is_said() -> None:
    lost = limit("time(case=zzz) <= 1s")
    (several,) = unmatched_limits(called("fwd", "bwd"), [lost, lost], PLAIN_CONTEXT)
    (verdict,) = several.verdicts
    assert verdict.sentence.endswith("there are: bwd, fwd")
    (bare,) = unmatched_limits(called(""), [lost], PLAIN_CONTEXT)
    assert bare.verdicts[0].sentence.endswith("none of its calls has a name")


def test_a_limit_that_found_its_call_is_not_lost() -> None:
    limits = [limit("time(case=f*) <= 1s"), limit("time <= 1s")]
    assert unmatched_limits(called("fwd"), limits, PLAIN_CONTEXT) == ()


def test_a_limit_for_other_devices_is_not_asked_here() -> None:
    assert unmatched_limits(called("fwd"), [limit("time(case=bwd) <= 1s", on=("H200*",))], PLAIN_CONTEXT) == ()
    unseen = [CaseReport(key=KEY, verdicts=())]
    assert unmatched_limits(unseen, [limit("time(case=bwd) <= 1s", on=("H200*",))], PLAIN_CONTEXT)


@pytest.mark.parametrize("source", ["configuration", "command line"])
def test_a_limit_for_every_test_is_about_those_that_make_the_call(source: str) -> None:
    (report,) = unmatched_limits(
        called("fwd"), [limit("time(case=bwd) <= 1s", source=source)], replace(PLAIN_CONTEXT, policy=CI)
    )
    (verdict,) = report.verdicts
    assert (verdict.outcome, verdict.effect) == (Outcome.NOT_APPLICABLE, Effect.PASS)
    assert verdict.sentence == "no call of this test has the name 'bwd'"


def of_a_file(*parts: str) -> Measurement:
    metrics = [Metric(name="time", value=1e3, dimension=Dimension.TIME, labels=labels(case=part)) for part in parts]
    return replace(measured(1e6), processes=(), metrics=MetricSet(metrics=tuple(metrics)))


def test_a_limit_may_name_a_case_of_a_file_that_the_test_read() -> None:
    limits = [limit("time(case=BM/8) <= 2us"), limit("time(case=BM/64) <= 1ns"), limit("time(case=BM/65) <= 1us")]
    report = judge(of_a_file("BM/8", "BM/64"), limits, baseline=None, context=PLAIN_CONTEXT)
    assert [v.outcome for v in report.verdicts] == [Outcome.PASSED, Outcome.BROKEN]
    (lost,) = unmatched_limits([report], limits, PLAIN_CONTEXT)
    (verdict,) = lost.verdicts
    assert verdict.sentence.startswith("case=BM/65 names no call of the test and nothing in its files; did you mean")
    assert not verdict.next


def test_a_limit_on_one_case_of_a_file_leaves_the_others_to_the_wide_one() -> None:
    limits = [limit("time(case=BM/8) <= 2us"), limit("time <= 1ns")]
    report = judge(of_a_file("BM/8", "BM/64"), limits, baseline=None, context=PLAIN_CONTEXT)
    assert [v.outcome for v in report.verdicts] == [Outcome.PASSED, Outcome.BROKEN]


def test_two_arms_beside_a_line_leave_the_line_what_it_is() -> None:
    def of(revision: bool, line: Baseline) -> CaseReport:
        edited = accepted(1.1e6, why="exact softmax", when="2026-06-01")
        arms, context = replace(SLOWER, revision=revision), replace(CONTEXT, edited=edited)
        return judge(measured(1.1e6), SLOWDOWN, baseline=line, context=context, paired=arms)

    line = accepted(1e6)
    apart = replace(line, identity=replace(line.identity, timer="cupti"))
    assert "timer cupti ->" in of(False, apart).incomparable
    assert (of(True, apart).incomparable, of(True, line).accepts) == ("", None)
    assert of(False, line).accepts is not None
    assert of(False, line).arms is None
    assert of(True, line).arms is not None


def test_a_device_without_a_name_is_called_by_its_key() -> None:
    nameless = replace(HOST, name="")
    result = verdict(1e6, [limit("time <= 1s", on=("H200*",))], device=nameless, baseline=None)
    assert result.sentence.endswith("this is host-epyc-2")


CASE = Case(nodeid=KEY.nodeid, limits=(), plan=Plan(rounds=3))


@pytest.mark.parametrize(("count", "message"), [(1, "1 of 3 processes"), (3, "3 processes"), (5, "5 processes")])
def test_a_test_that_fails_in_a_later_process_is_named_with_what_it_said(count: int, message: str) -> None:
    captures, trouble = count * ((),), ("AssertionError:\n  second round",)
    result = CaseResult(case=CASE, captures=captures, trouble=trouble, outcome="failed")
    report = CaseReport(key=KEY, verdicts=(), measurement=with_trouble(measured(1e6), result))
    (note,) = unfinished([report, CaseReport(key=KEY, verdicts=())])
    assert (note.kind, note.effect) == ("unfinished", Effect.WARN)
    assert note.text.startswith("1 case ")
    assert note.names == (f"{KEY}: {message}, then AssertionError: second round",)


def test_one_that_was_measured_to_the_end_says_nothing() -> None:
    whole = CaseResult(case=CASE, captures=((), (), ()))
    measurement = measured(1e6)
    assert with_trouble(measurement, whole) is measurement
    assert list(unfinished([CaseReport(key=KEY, verdicts=(), measurement=measurement)])) == []


@pytest.mark.parametrize(("text", "named"), [("time <= 1s", True), ("slowdown <= 3%", True), ("mfu >= 1%", False)])
def test_a_verdict_by_time_says_that_processes_were_tuned_otherwise(text: str, named: bool) -> None:
    measurement = measured(1e6)
    choices = ("warps: 4", "warps: 8", "warps: 4")
    processes = (
        replace(process, notes=(("tuning matmul", choice),)) for process, choice in zip(measurement.processes, choices)
    )
    measurement = replace(measurement, processes=tuple(processes))
    (one,) = judge(measurement, [limit(text)], baseline=None, context=CONTEXT).verdicts
    assert ("tuning" in dict(one.evidence)) is named


@pytest.mark.parametrize(
    ("text", "calls", "words"),
    [
        ("speedup(over=eagr) >= 1x", ("ours", "eager"), "did you mean 'eager'"),
        ("speedup(over=eager) >= 1x", ("ours",), "names no call of the test"),
        ("speedup(over=eager) >= 1x", ("eager",), "times only its reference"),
        ("change(speedup(over=eager)) >= -5%", ("eager",), "times only its reference"),
    ],
)
@pytest.mark.parametrize("policy", [LOCAL, CI])
def test_a_speed_up_that_no_call_has_fails_whatever_the_policy(text: str, calls: tuple[str, ...], words: str, policy):
    (report,) = unmatched_limits(called(*calls), [limit(text)], replace(PLAIN_CONTEXT, policy=policy))
    (verdict,) = report.verdicts
    assert (verdict.outcome, verdict.effect) == (Outcome.NOT_MEASURED, Effect.FAIL)
    assert words in verdict.sentence


def test_a_speed_up_that_no_call_has_is_shown_once() -> None:
    limits = [limit("speedup(over=eagr) >= 1x"), limit("time <= 1s")]
    calls = [judge(measured(1e6, key=report.key), limits, baseline=None, context=PLAIN_CONTEXT)
             for report in called("ours", "eager")]  # fmt: skip
    (own,) = unmatched_limits(calls, limits, PLAIN_CONTEXT)
    assert unrepeated([*calls, own]) == [own]
    assert unrepeated(calls) == calls, "nothing else says it"
    (invalid,) = judge(measured(1e6, key=calls[0].key, problems=(PROBLEM,)), limits[:1], baseline=None,
                       context=PLAIN_CONTEXT).verdicts  # fmt: skip
    wrong = replace(calls[0], verdicts=(invalid,))
    assert unrepeated([wrong, own]) == [wrong, own], "it says more"
    slow = judge(measured(2e9, key=calls[0].key), limits, baseline=None, context=PLAIN_CONTEXT)
    assert unrepeated([slow, own, *called("other")]) == [slow, own, *called("other")]


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("speedup(over=eager) >= 1x", "marker"),
        ("speedup(over='file:a.json') >= 1x", "marker"),
        ("speedup(over=x) >= 1x", "configuration"),
    ],
)
def test_a_speed_up_that_a_call_has_is_not_lost(text: str, source: str) -> None:
    assert unmatched_limits(called("ours", "eager"), [limit(text, source=source)], PLAIN_CONTEXT) == ()


def test_references_are_not_held_against_each_other_unless_they_are_named() -> None:
    texts = ("speedup(over=eager) >= 1x", "speedup(over=old) >= 1x", "speedup(case=eager, over=old) >= 1x")
    key = CaseKey(nodeid=KEY.nodeid, name="eager")
    report = judge(measured(1e6, key=key), [limit(text) for text in texts], baseline=None, context=PLAIN_CONTEXT)
    outcomes = {v.limit.text: v.outcome for v in report.verdicts}
    assert outcomes == {texts[0]: Outcome.NOT_APPLICABLE, texts[2]: Outcome.NOT_MEASURED}


def of_time(value: float, *scope: tuple[str, str]) -> Metric:
    return Metric(name="time", value=value, dimension=Dimension.TIME, labels=scope)


def test_what_a_capture_read_stands_beside_what_was_timed() -> None:
    """A capture's own time or slowdown of the call is not the call's; parts of it, and other figures, are kept."""
    loss = Metric(name="loss", value=3.0, dimension=Dimension.PLAIN)
    gaps = (Absent(name="dram", why="no counters"), Absent(name="slowdown", why="of a file"))
    others = MetricSet(metrics=(of_time(5.0), of_time(7.0, ("kernel", "a")), loss), absent=gaps)
    report = judge(measured(1e6, metrics=others), (), baseline=accepted(1e6), context=CONTEXT)
    metrics = report.measurement.metrics
    assert [(m.value, m.labels) for m in metrics.find("time")] == [(1e6, ())]
    assert [m.value for m in metrics.find("time", (("kernel", "a"),))] == [7.0]
    assert [m.value for m in metrics.find("loss")] == [3.0]
    assert [m.name for m in metrics.metrics if m.name in {"time", "loss"}].count("time") == 2
    assert [one.why for one in metrics.absences("dram")] == ["no counters"]
    assert not metrics.absences("slowdown")
    assert not metrics.absences("loss")
    assert "no counters" in [one.why for one in metrics.absent]
    assert "of a file" not in [one.why for one in metrics.absent]


def test_a_file_alone_has_its_own_time() -> None:
    others = MetricSet(metrics=(of_time(5.0),), absent=(Absent(name="mfu", why="no work"),))
    report = judge(measured(1e6, shape=(), metrics=others), (), baseline=None, context=CONTEXT)
    assert [m.value for m in report.measurement.metrics.find("time")] == [5.0]
    assert report.measurement.metrics.absences("mfu")[0].why == "no work"
    assert not report.measurement.metrics.absences("time"), "that nothing was timed says nothing of the file"


def test_a_line_with_several_figures_of_a_name_knows_which_is_gone() -> None:
    from tests.unit.core.judge.figures import figure

    kernels = [(("kernel", name),) for name in "abc"]
    now = tuple(Metric(name="registers", value=32, dimension=Dimension.COUNT, labels=own) for own in kernels[:2])
    line = accepted(0.0, figures=(*(figure("registers", 32, labels=own) for own in kernels), figure("spills", 0)))
    measurement = measured(1e6, shape=(), metrics=MetricSet(metrics=now))
    (one,) = judge(measurement, [limit("change(registers) <= 0")], baseline=line, context=CONTEXT).verdicts
    assert one.outcome is Outcome.NOT_MEASURED


PROBLEM = Problem(code="clock-moved", what="the clock left its lock")


@pytest.mark.parametrize(
    ("problems", "sentence", "again"),
    [
        ((PROBLEM,), "the clock left its lock  [clock-moved]", True),
        ((replace(PROBLEM, retry=False),), "the clock left its lock  [clock-moved]", False),
        ((PROBLEM, PROBLEM), "the clock left its lock  [clock-moved]", True),
        ((replace(PROBLEM, retry=False), replace(PROBLEM, code="fan-failed", what="the fan")),
         "the clock left its lock  [clock-moved] (and 1 more)", True),
    ],
)  # fmt: skip
def test_a_measurement_with_problems_is_invalid_and_worth_another_try(
    problems: tuple[Problem, ...], sentence: str, *, again: bool
) -> None:
    from tests.unit.core.judge.bench import samples

    one = verdict(processes=(samples(1e6, problems=problems),))
    assert (one.outcome, one.sentence) == (Outcome.INVALID, sentence)
    assert any("--perfgate=full" in step for step in one.next) is again


def test_the_step_where_the_gate_is_off_is_a_command_of_a_shell_whatever_the_parameters() -> None:
    key = CaseKey(nodeid="t.py::test_k[it's]")
    report = not_measured(key, [limit("time <= 1s")], "off", replace(PLAIN_CONTEXT, mode=Mode.OFF))
    assert shlex.split(report.verdicts[0].next[0]) == ["pytest", key.nodeid, "--perfgate=full"]


@pytest.mark.parametrize(
    ("mode", "waited", "outcome", "step"),
    [
        (Mode.FULL, False, Outcome.NOT_MEASURED, ""),
        (Mode.OFF, False, Outcome.NOT_MEASURED, "--perfgate=full"),
        (Mode.FULL, True, Outcome.UNDECIDED, "a larger --perfgate-budget"),
        (Mode.OFF, True, Outcome.UNDECIDED, "a larger --perfgate-budget"),
    ],
)
def test_a_case_that_was_never_measured_says_why_under_each_limit(
    mode: Mode, outcome: Outcome, step: str, *, waited: bool
) -> None:
    limits = [limit("time <= 1s"), limit("slowdown <= 3%"), limit("geomean(slowdown) <= 1%")]
    report = not_measured(KEY, limits, "deselected", replace(PLAIN_CONTEXT, mode=mode), waited=waited)
    assert [(v.outcome, v.sentence) for v in report.verdicts] == [(outcome, "deselected")] * 2
    assert all(step in "".join(v.next) and bool(v.next) is bool(step) for v in report.verdicts)


def test_a_test_that_timed_nothing_lacks_a_call_or_a_capture() -> None:
    limits = [limit("time <= 1s"), limit("registers <= 128")]
    called_nothing = not_called(KEY, limits, ("it called nothing", ""), PLAIN_CONTEXT)
    assert [v.next for v in called_nothing.verdicts] == [
        ("call perfgate(fn) in the test",), ("@pytest.mark.perfgate('registers <= 128', capture='cubin')",),
    ]  # fmt: skip
    skipped = not_called(KEY, limits[:1], ("it was skipped", "do not skip it"), PLAIN_CONTEXT)
    assert [(v.sentence, v.next) for v in skipped.verdicts] == [("it was skipped", ("do not skip it",))]


def test_a_fault_of_ours_fails_whatever_the_policy_and_keeps_the_measurement() -> None:
    report = judging_failed(measured(1e6), SLOWDOWN, "ZeroDivisionError", replace(PLAIN_CONTEXT, policy=LOCAL))
    (one,) = report.verdicts
    assert (one.outcome, one.effect) == (Outcome.INVALID, Effect.FAIL)
    assert report.measurement == measured(1e6)
    assert [problem.retry for problem in report.problems] == [False]


def test_a_limit_on_a_mean_is_not_one_of_a_call_that_is_missing() -> None:
    reports = unmatched_limits(called("fwd"), [limit("geomean(slowdown) <= 1%")], PLAIN_CONTEXT)
    assert reports == ()


def test_an_empty_measurement_says_whether_a_file_or_a_call_has_no_figure() -> None:
    assert nothing_measured(READ).endswith("next: perfgate inspect FILE lists its figures")
    assert nothing_measured("record").startswith("nothing was recorded; next: give record() times above zero")
