"""A gated test that pytest never ran is a note of the run: no report of its own says what it came to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.core.judge.policy import CI, LOCAL
from pytest_perfgate.model.plan import Effect, Mode, Outcome, Policy
from pytest_perfgate.model.verdict import SuiteNote
from pytest_perfgate.plugin.ending import hear, unreported_notes
from tests.reports import case

SLOWER, KEPT = case("test_a", 2e6, 1e6, Outcome.REGRESSED), case("test_a", 1e6, 1e6)


def docket(policy: Policy = CI, **given: Any) -> Any:
    court = SimpleNamespace(context=SimpleNamespace(policy=policy))
    known = {"cases": {"test_a": None}, "reports": {}, "heard": set(), "complete": True, "mode": Mode.FULL}
    return SimpleNamespace(court=court, **{**known, **given})


def notes(*args: Any, **given: Any) -> tuple[SuiteNote, ...]:
    return unreported_notes(docket(*args, **given))


def test_a_verdict_that_no_report_carries_fails_the_run() -> None:
    (note,) = notes(LOCAL, reports={"test_a": (SLOWER,)})
    assert (note.kind, note.effect) == ("unrun", Effect.FAIL)
    assert note.text.startswith("1 gated test chosen and not run, by a hook of a conftest")
    assert note.names == (f"{SLOWER.key}: regressed",)


def test_what_was_not_run_and_would_not_have_failed_goes_by_the_policy() -> None:
    (note,) = notes(reports={"test_a": (KEPT,)})
    assert note.effect is Effect.FAIL
    (note,) = notes(LOCAL)
    assert (note.effect, note.names) == (Effect.WARN, ("test_a",))


@pytest.mark.parametrize(
    ("when", "passed", "heard"),
    [("call", True, True), ("call", False, True), ("setup", False, True), ("setup", True, False)],
)
def test_a_test_was_run_or_its_setup_says_why_not(when: str, passed: bool, heard: bool) -> None:
    session = docket()
    report: Any = SimpleNamespace(when=when, passed=passed, nodeid="test_a")
    hear(session, report)
    assert (unreported_notes(session) == ()) == heard


def test_only_of_whole_runs_that_measure() -> None:
    assert notes(complete=False) == notes(mode=Mode.OFF) == notes(cases={}) == ()
