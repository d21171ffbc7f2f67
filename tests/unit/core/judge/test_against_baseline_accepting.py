"""Tests of core/judge/against_baseline: lines that the change under test wrote."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_perfgate.app.accept import Request, check_decisions
from pytest_perfgate.core.judge.acceptance import Change, decide
from pytest_perfgate.core.judge.accepted_line import Signature, uncompared
from pytest_perfgate.core.judge.against_baseline import judging_lines
from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.policy import CI
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Baseline, Identity
from pytest_perfgate.model.plan import Effect, Outcome
from pytest_perfgate.model.verdict import CaseReport
from tests.unit.core.judge.bench import (
    HOST,
    KINDS,
    accepted,
    limit,
    measured,
)

NEW = Identity(device=HOST.key, data="v2")
THEN = accepted(1e6)
NOW = accepted(2e6, identity=NEW, why="other data", when="2026-11-21")
CI_CONTEXT = JudgeContext(kinds=KINDS, policy=CI)


def judged(time: float, now: Baseline | None, identity: Identity = NEW, text: str = "slowdown <= 3%") -> CaseReport:
    taken = measured(time, identity=identity)
    baseline, edited, replaced = judging_lines(taken, THEN, now, CI_CONTEXT)
    context = replace(CI_CONTEXT, edited=edited, replaced=replaced)
    return judge(taken, [limit(text)], baseline=baseline, context=context)


def test_a_line_with_a_reason_of_its_own_is_accepted_and_nothing_is_said_to_be_compared() -> None:
    (verdict,) = judged(2e6, NOW).verdicts
    assert (verdict.outcome, verdict.effect) == (Outcome.ACCEPTED, Effect.PASS)
    assert verdict.sentence == (
        "measured differently, not compared: data user -> v2; "
        '1 ms was accepted before, this change accepts 2 ms: "other data"'
    )


def test_what_is_slower_than_the_change_s_own_line_is_held_against_it() -> None:
    (verdict,) = judged(4e6, NOW).verdicts
    assert verdict.outcome is Outcome.REGRESSED
    assert verdict.baseline is NOW
    assert "not compared" in dict(verdict.evidence)["accepted"]


def test_without_a_reason_of_its_own_it_has_no_baseline_and_is_told_what_lacks() -> None:
    for line in (replace(NOW, why=""), replace(NOW, why=THEN.why, when=THEN.when)):
        (verdict,) = judged(2e6, line).verdicts
        assert (verdict.outcome, verdict.effect, verdict.baseline) == (Outcome.UNBASELINED, Effect.FAIL, THEN)
        assert verdict.sentence.endswith("-> v2; this change's line has no new reason")
        assert verdict.next[0].endswith('--reason "..."')
    for other in (None, replace(NOW, why="", identity=replace(NEW, data="v3"))):
        (verdict,) = judged(2e6, other).verdicts
        assert verdict.sentence.endswith("data user -> v2"), "a line of v3 would judge nothing with a reason"


def test_a_line_that_can_be_compared_stands_whatever_the_change_makes_of_it() -> None:
    (verdict,) = judged(2e6, NOW, THEN.identity or NEW).verdicts
    assert verdict.outcome in {Outcome.REGRESSED, Outcome.SUSPECT}
    assert verdict.baseline is THEN
    slower = replace(THEN, time=2e6, why="exact", when="2026-11-21")
    assert judging_lines(measured(2e6), THEN, slower, CI_CONTEXT) == (THEN, slower, None)


def accepting(report: CaseReport, before: Baseline, why: str = "") -> Any:
    return decide(report, before, (), Signature(why=why, when="2026-11-21"))


def test_accepting_what_is_measured_differently_asks_for_a_reason() -> None:
    decision = accepting(judged(2e6, None), THEN)
    assert (decision.change, decision.asks) == (Change.OTHER, True)
    with pytest.raises(PerfgateError, match="measured differently"):
        check_decisions([decision], Request())
    assert not accepting(judged(2e6, None), replace(THEN, local=True)).asks, "this checkout's alone"


def test_a_line_that_was_refused_on_its_last_day_was_refused_for_something_else() -> None:
    line = replace(THEN, expires="2026-11-21")
    report = judge(measured(2e6, identity=NEW), [limit("slowdown <= 3%")], baseline=line, context=CI_CONTEXT)
    (time,) = report.measurement.metrics.find("time") if report.measurement else ()
    assert uncompared(report, line, time, "2026-11-21")
    assert not uncompared(report, line, time, "2026-11-22")


def test_a_line_of_the_change_without_a_reason_is_written_again_with_one() -> None:
    bare = replace(NOW, why="")
    decision = accepting(judged(2e6, bare), bare, "other data")
    assert (decision.change, decision.after.why) == (Change.OTHER, "other data")
    unasked = accepting(judged(2e6, replace(bare, time=1e6), text="time <= 1s"), replace(bare, time=2e6), "other data")
    assert unasked.change is Change.OTHER, "where no limit asked to compare them too"
    stale = replace(THEN, time=2e6, commit="deadbeef")
    slower = accepting(judged(2e6, stale, THEN.identity or NEW), stale, "exact")
    assert (slower.change, slower.after.why) == (Change.SLOWER, "exact")
    assert accepting(judged(2e6, NOW), NOW, "again").change is Change.KEPT
