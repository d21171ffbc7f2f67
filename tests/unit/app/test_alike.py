"""Two arms with the same code compare nothing; the commit under test beside itself fails in CI."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pytest_perfgate.app.conclude import alike_arms
from pytest_perfgate.core.judge.policy import CI, LOCAL
from pytest_perfgate.model.plan import Effect, Policy
from pytest_perfgate.model.verdict import SuiteNote

COMMIT = "0123456789abcdef"


def notes(policy: Policy = CI, *, revision: str = COMMIT, head: str = COMMIT, alike: bool = True) -> list[SuiteNote]:
    court: Any = SimpleNamespace(
        revision=revision,
        alike=alike,
        context=SimpleNamespace(policy=policy),
        tools=SimpleNamespace(repository=SimpleNamespace(head=lambda: head)),
    )
    return list(alike_arms(court))


def test_the_commit_under_test_held_against_itself_was_not_compared() -> None:
    (note,) = notes()
    assert (note.kind, note.effect) == ("uncompared", Effect.FAIL)
    assert note.text.startswith("nothing was compared: --perfgate-against means 0123456789, the commit under test")
    assert "without a REV it takes the merge base" in note.text
    assert [note.effect for note in notes(LOCAL)] == [Effect.WARN]


def test_another_commit_with_the_same_code_is_said_and_fails_nothing() -> None:
    (note,) = notes(head="fedcba")
    assert (note.kind, note.effect) == ("uncompared", Effect.WARN)
    assert note.text == "both arms held the same code, that of 0123456789: what differed was the machine"


def test_a_change_that_was_compared_has_no_such_note() -> None:
    assert notes(alike=False) == notes(revision="") == []
