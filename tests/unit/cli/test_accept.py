"""Reasons that a review is given: an old one is asked for again, and an empty answer erases none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_perfgate.cli import accept
from pytest_perfgate.core.judge.acceptance import decide
from pytest_perfgate.core.judge.accepted_line import Signature
from pytest_perfgate.model.plan import Outcome
from tests.reports import baseline, case

TODAY = Signature(when="2026-05-02", commit="c0ffee1234567890")


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Any:
    messages: list[str] = []

    def type_lines(*lines: str) -> list[str]:
        remaining = iter(lines)
        monkeypatch.setattr("builtins.input", lambda _prompt: next(remaining))
        monkeypatch.setattr(accept, "write", messages.append)
        return messages

    return type_lines


def test_the_words_of_the_line_that_judges_are_none(answers: Any) -> None:
    report = case("test_a", 2e6, 1e6, Outcome.REGRESSED)
    messages = answers("TMA loads", "", "exact rounding")
    chosen = accept._with_reason(decide(report, report.baseline, (), TODAY), TODAY)
    assert chosen.after.why == "exact rounding"
    assert messages == ["the same reason was given today: say what is new", "this needs a reason"]


def test_an_empty_answer_leaves_the_reason_of_a_line_that_is_only_committed_now(answers: Any) -> None:
    answers("")
    before = baseline("test_a", 1e6, commit="a1b2c3d+dirty", why="exact rounding")
    decision = decide(case("test_a", 1e6), before, (), TODAY)
    assert accept._with_reason(decision, TODAY).after == replace(before, commit="c0ffee123456")


def test_a_reason_that_is_given_has_the_name_and_the_day_of_who_gives_it(answers: Any) -> None:
    me = Signature(who="me", when="2026-06-01")
    before = baseline("test_a", 1e6, detects=0.4, who="then", expires="2999-01-31")
    decision = decide(case("test_a", 1e6), before, (), me)
    answers("")
    unchanged = accept._with_reason(decision, me).after
    assert (unchanged.why, unchanged.who, unchanged.when, unchanged.expires) == (
        "TMA loads",
        "then",
        "2026-05-02",
        "2999-01-31",
    )
    answers("quieter")
    renewed = accept._with_reason(decision, me).after
    assert (renewed.why, renewed.who, renewed.when, renewed.expires) == ("quieter", "me", "2026-06-01", "2999-01-31")
