"""One case that breaks the judge fails with a sentence, and costs the others nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_perfgate.app import judge as gate
from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.model.plan import Effect, Outcome
from tests.unit.app.test_gate import Lines, case, court
from tests.unit.core.gate.bench import KINDS, accepted, limit, measured, samples


def test_a_fault_of_the_judge_is_one_failed_case_with_its_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: Any, **named: Any) -> Any:
        raise ZeroDivisionError("float division by zero")

    monkeypatch.setattr(gate, "judge", broken)
    measurement = measured(1e6)
    report = court(Lines(None)).judged(case(limit("slowdown <= 3%"), limit("time <= 2ms")), measurement)
    assert report.measurement is measurement
    assert [(v.outcome, v.effect) for v in report.verdicts] == [(Outcome.INVALID, Effect.FAIL)] * 2
    assert "ZeroDivisionError: float division by zero (test_unjudged.py:" in report.verdicts[0].sentence
    assert report.problems[0].code == "judging-failed"


@pytest.mark.parametrize("recorded", [(1e-300, 1e-320), (1e300, 1e308), (1e-7,), (1e19,)])
def test_what_is_no_time_of_a_call_is_invalid(recorded: tuple[float, ...]) -> None:
    measurement = measured(1e6, processes=(replace(samples(1e6), durations=recorded),))
    report = judge(measurement, [limit("slowdown <= 3%")], baseline=accepted(1e7), context=JudgeContext(kinds=KINDS))
    assert report.worst is Outcome.INVALID
    assert "which is no time that a call can take  [bad-timing]" in report.verdicts[0].sentence
    assert len(report.verdicts[0].sentence) < 120


def test_a_time_of_which_nothing_is_left_is_faster_without_end() -> None:
    measurement = measured(2e-6)
    report = judge(measurement, [limit("slowdown <= 3%")], baseline=accepted(1e18), context=JudgeContext(kinds=KINDS))
    assert report.worst is Outcome.IMPROVED
