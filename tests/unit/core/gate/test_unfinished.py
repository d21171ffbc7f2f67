"""A test that fails in a later process is judged by those before, and never in silence."""

from __future__ import annotations

from pytest_perfgate.core.judge.judge import unfinished, with_trouble
from pytest_perfgate.model.plan import Case, Effect, Plan
from pytest_perfgate.model.protocol import CaseResult
from pytest_perfgate.model.verdict import CaseReport
from tests.unit.core.gate.bench import KEY, measured

CASE = Case(nodeid=KEY.nodeid, limits=(), plan=Plan(rounds=3))


def test_a_test_that_fails_in_a_later_process_is_named_with_what_it_said() -> None:
    result = CaseResult(case=CASE, captures=((),), trouble=("AssertionError:\n  second round",), outcome="failed")
    report = CaseReport(key=KEY, verdicts=(), measurement=with_trouble(measured(1e6), result))
    (note,) = unfinished([report, CaseReport(key=KEY, verdicts=())])
    assert (note.kind, note.effect) == ("unfinished", Effect.WARN)
    assert note.text == "1 case measured in fewer processes than asked for"
    assert note.names == (f"{KEY}: 1 of 3 processes, then AssertionError: second round",)


def test_one_that_was_measured_to_the_end_says_nothing() -> None:
    whole = CaseResult(case=CASE, captures=((), (), ()))
    measurement = measured(1e6)
    assert with_trouble(measurement, whole) is measurement
    assert list(unfinished([CaseReport(key=KEY, verdicts=(), measurement=measurement)])) == []
