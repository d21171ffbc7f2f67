"""Tests of core/judge/against_baseline_edits."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.against_baseline import JudgingLines, judging_lines
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.policy import CI
from pytest_perfgate.model.measurement import Identity
from pytest_perfgate.model.plan import Effect, Mode, Outcome
from pytest_perfgate.model.verdict import CaseReport
from tests.reports import DEVICE
from tests.unit.core.judge.bench import CONTEXT, HOST, KEY, SLOWDOWN, accepted, measured, outcome_of, verdict


def edited(time: float, why: str):
    return replace(CONTEXT, edited=accepted(time, why=why))


def test_an_edit_with_a_reason_that_the_measurement_agrees_with_is_accepted() -> None:
    result = verdict(2e6, context=edited(2e6, "exact softmax"))
    assert (result.outcome, result.effect) == (Outcome.ACCEPTED, Effect.PASS)
    assert '"exact softmax"' in result.sentence
    assert outcome_of(1.1e6, context=replace(edited(1.1e6, "x"), mode=Mode.QUICK)) is Outcome.ACCEPTED


def test_a_reason_for_a_time_that_was_measured_differently_is_not_passed_over_in_silence() -> None:
    line = accepted(2e6, why="three passes", identity=Identity(device=HOST.key, affinity="1"))
    result = verdict(2e6, context=replace(CONTEXT, edited=line))
    texts = [text for label, text in result.evidence if label == "why" and "three passes" in text]
    assert result.outcome is Outcome.REGRESSED
    apart = "measured differently, not compared: affinity 1 -> none"
    assert texts == [f'this change accepts 2 ms, "three passes", which does not explain it: {apart}']
    silent = replace(CONTEXT, edited=replace(line, why="", when="2026-05-02"))
    assert "does not explain it" not in str(verdict(2e6, context=silent).evidence)
    over = replace(CONTEXT, today="2026-06-01", edited=replace(line, expires="2026-05-01"))
    assert "does not explain it" not in str(verdict(2e6, context=over).evidence)


def test_an_edit_without_a_reason_fails() -> None:
    result = verdict(1.1e6, context=edited(1.1e6, "  "))
    assert (result.outcome, result.effect) == (Outcome.REGRESSED, Effect.FAIL)
    assert "without a reason" in result.sentence


def test_a_faster_line_needs_no_reason_and_excuses_nothing() -> None:
    assert outcome_of(1.1e6, context=edited(0.9e6, "")) is Outcome.SUSPECT
    assert outcome_of(9e6, context=edited(0.9e6, "")) is Outcome.REGRESSED


def test_a_speed_up_that_the_change_accepts_is_nothing_to_accept() -> None:
    taken = verdict(0.5e6, context=edited(0.5e6, ""))
    assert (taken.outcome, taken.sentence) == (Outcome.PASSED, "faster, and this change accepts 500 µs")
    assert taken.baseline == accepted(1e6)
    assert outcome_of(0.5e6, context=replace(CONTEXT, edited=accepted(0.4e6, detects=0.5))) is Outcome.PASSED
    as_slow = replace(CONTEXT, edited=accepted(1e6, detects=3.0))
    for line in (edited(0.8e6, ""), edited(0.2e6, ""), edited(1.2e6, "x"), as_slow, CONTEXT):
        assert outcome_of(0.5e6, context=line) is Outcome.IMPROVED
    over = replace(CONTEXT, today="2026-05-02", edited=accepted(0.5e6, expires="2026-05-01"))
    assert outcome_of(0.5e6, context=over) is Outcome.IMPROVED


def test_an_edit_that_leaves_the_time_as_it_was_needs_no_reason() -> None:
    assert outcome_of(1.1e6, context=edited(1e6, "")) is Outcome.SUSPECT
    reports = (
        judge(measured(1e6), SLOWDOWN, baseline=accepted(1e6), context=edited(time, "x")) for time in (1e6, 1.01e6)
    )
    assert [case.accepts is None for case in reports] == [True, False]


def test_a_reason_that_was_there_before_is_none() -> None:
    stale = replace(CONTEXT, edited=accepted(1.1e6))
    assert outcome_of(1.1e6, context=stale) is Outcome.REGRESSED
    moved = replace(CONTEXT, edited=accepted(1.1e6, commit="deadbeefdead"))
    assert outcome_of(1.1e6, context=moved) is Outcome.REGRESSED, "another commit is no reason"
    assert verdict(1.1e6, context=stale).sentence.endswith(
        'without a reason of its own: "TMA loads" stood there before'
    )
    again = replace(CONTEXT, edited=accepted(1.1e6, when="2026-06-01"))
    assert outcome_of(1.1e6, context=again) is Outcome.ACCEPTED


def test_an_acceptance_that_ran_out_says_why_it_was_made_and_is_renewed_by_a_reason() -> None:
    old = accepted(1e6, expires="2026-05-01", why="until the new compiler")
    today = replace(CONTEXT, today="2026-05-02", policy=CI)
    result = verdict(1e6, baseline=old, context=today)
    assert (result.outcome, result.effect) == (Outcome.UNBASELINED, Effect.FAIL)
    assert '2026-05-01: "until the new compiler"' in result.sentence
    assert result.next == (f"perfgate accept --from RECORD '{KEY}' --reason \"...\"",), "CI refuses to write"
    bare = verdict(1e6, baseline=replace(old, why=""), context=today)
    assert bare.sentence == "the acceptance expired on 2026-05-01"
    renewing = replace(today, edited=replace(old, expires="2026-09-01", when="2026-05-02", why="no compiler yet"))
    again = verdict(1.01e6, baseline=old, context=renewing)
    assert again.outcome is Outcome.ACCEPTED
    assert 'accepts 1 ms: "no compiler yet"' in again.sentence
    for silent in (
        replace(renewing.edited, why=""),
        replace(old, expires=""),
        replace(renewing.edited, expires="2026-05-01"),
        replace(renewing.edited, time=1.5e6),
        replace(renewing.edited, time=0.0),
        replace(renewing.edited, time=math.inf),
        replace(renewing.edited, identity=replace(old.identity, data="v2")),
    ):
        assert outcome_of(1.01e6, baseline=old, context=replace(today, edited=silent)) is Outcome.UNBASELINED


@pytest.mark.parametrize("time", [0.5e6, 1e6, 1.5e6])
def test_a_line_that_cannot_be_compared_judges_nothing_whatever_the_change_accepts(time: float) -> None:
    apart = accepted(1e6, identity=replace(accepted(1e6).identity, timer="cupti"))
    for old in (apart, replace(apart, expires="2026-05-01")):
        context = replace(edited(time, "another timer"), today="2026-05-02")
        report = judge(measured(time), SLOWDOWN, baseline=old, context=context)
        assert (report.verdicts[0].outcome, report.accepts) == (Outcome.UNBASELINED, None)
        assert "timer cupti -> host" in report.incomparable


def test_an_edit_that_has_expired_already_accepts_nothing() -> None:
    context = replace(edited(2e6, "for a week"), today="2026-05-10")
    expired = replace(context, edited=replace(context.edited, expires="2026-05-09"))
    assert outcome_of(2e6, context=context) is Outcome.ACCEPTED
    assert outcome_of(2e6, context=expired) is Outcome.REGRESSED


def test_an_edit_that_the_measurement_does_not_agree_with_changes_nothing() -> None:
    assert outcome_of(2e6, context=edited(1.5e6, "x")) is Outcome.REGRESSED
    assert outcome_of(1.2e6, context=edited(1.5e6, "x")) is Outcome.SUSPECT
    assert outcome_of(1.2e6, context=edited(0.0, "x")) is Outcome.SUSPECT
    assert outcome_of(1e6, context=edited(1.5e6, "x")) is Outcome.PASSED


OTHER = Identity(device=DEVICE.key, threads="9")


def test_a_line_of_the_change_that_cannot_be_compared_either_takes_no_place() -> None:
    then, strange = accepted(1e6, identity=OTHER), replace(OTHER, threads="11")
    for edited in (None, accepted(2e6, identity=strange, why="eleven", when="2026-06-01")):
        assert judging_lines(measured(1e6), then, edited, CONTEXT) == JudgingLines(then, edited)


def sentence_of(report: CaseReport) -> str:
    return report.verdicts[0].sentence


def test_an_edit_that_has_run_out_is_not_told_to_lack_a_reason() -> None:
    apart = accepted(1e6, identity=OTHER)
    today = replace(CONTEXT, today="2026-06-02")
    silent = accepted(2e6, why="")
    for edited, expected in ((silent, True), (replace(silent, expires="2026-06-01"), False)):
        context = replace(today, edited=edited)
        assert (
            "no new reason" in sentence_of(judge(measured(1e6), SLOWDOWN, baseline=apart, context=context))
        ) is expected
    assert sentence_of(judge(measured(1e6), SLOWDOWN, baseline=None, context=CONTEXT)).startswith(
        "there is no baseline"
    )
