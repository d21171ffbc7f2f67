"""In CI a file that gated tests take from, and that the change edits, is named once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pytest_perfgate.app.borrowed import borrowed_parts
from pytest_perfgate.app.edits import NOTHING
from pytest_perfgate.model.limit import Effect
from pytest_perfgate.model.policy import Policy
from pytest_perfgate.model.repository import Base
from pytest_perfgate.model.verdict import CaseReport, SuiteNote
from tests.unit.core.gate.bench import KEY, accepted, measured

TEST = "def test_gemm(perfgate, matrix):\n    perfgate(pk.gemm, matrix)\n"
THEN = "@fixture\ndef matrix():\n    return big()\n"
NOW = THEN.replace("big", "small")


def notes(
    changed: Any, *, ci: bool = True, base: str = "c0ffee", line: Any = "accepted", came: bool = False
) -> list[SuiteNote]:
    texts = {NOTHING: {KEY.path: (None, TEST)}, base: changed}
    before = accepted(1e6) if line else None
    court: Any = SimpleNamespace(
        context=SimpleNamespace(policy=Policy(ci=ci)),
        accepted=SimpleNamespace(
            base=Base(commit=base),
            moved={},
            judging=lambda _measurement: (before, None),
            came_with=lambda _measurement: came,
        ),
        tools=SimpleNamespace(repository=SimpleNamespace(touched=lambda revision, _words: texts[revision])),
        paired={},
        revision="",
    )
    report = CaseReport(key=KEY, verdicts=(), measurement=measured(1e6))
    return list(borrowed_parts(court, [report, report]))


def test_a_fixture_of_a_conftest_that_the_change_edits_is_named_in_ci() -> None:
    (note,) = notes({"conftest.py": (THEN, NOW), "far/conftest.py": (THEN, NOW)})
    assert (note.kind, note.effect, note.names) == ("borrowed", Effect.WARN, ("conftest.py: matrix",))
    assert note.text.startswith(
        "1 file edited since c0ffee that gated tests take fixtures, helpers, marks or parameters from:"
    )


def test_nothing_is_said_where_no_line_of_before_judges_or_nothing_else_is_edited() -> None:
    changed = {"conftest.py": (THEN, NOW)}
    assert notes(changed, ci=False) == notes(changed, base="") == notes(changed, line=None) == []
    assert notes(changed, came=True) == [], "a new test takes what it likes"
    assert notes({KEY.path: ("", TEST)}) == notes({"conftest.py": (THEN, THEN)}) == notes(None) == notes({}) == []
