"""In CI a file that gated tests take from, and that the change edits, is named once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.app.changed_tests import NOTHING, borrowed_parts
from pytest_perfgate.model.plan import Effect, Policy
from pytest_perfgate.model.project import Base
from pytest_perfgate.model.verdict import CaseReport, SuiteNote
from tests.unit.core.gate.bench import KEY, accepted, measured

TEST = "def test_gemm(perfgate, matrix):\n    perfgate(pk.gemm, matrix)\n"
THEN = "@fixture\ndef matrix():\n    return big()\n"
NOW = THEN.replace("big", "small")


def notes(
    changed: Any,
    *,
    ci: bool = True,
    base: str = "c0ffee",
    line: Any = "accepted",
    came: bool = False,
    standing: dict[str, str] | None = None,
    settings: dict[str, str] | None = None,
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
        tools=SimpleNamespace(
            repository=SimpleNamespace(
                touched=lambda revision, _words: texts[revision],
                files=lambda _revision, _folder: (*(standing or {}), "src/pk/__init__.py"),
                show=lambda _revision, path: (standing or {})[path],
            ),
            settings=lambda _revision: settings or {},
        ),
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


def names(changed: Any, **given: Any) -> tuple[str, ...]:
    return tuple(name for note in notes(changed, **given) for name in note.names)


def test_a_conftest_that_stays_as_it_is_hands_on_what_the_change_edits_elsewhere() -> None:
    changed = {"src/kfix.py": (THEN, NOW), "src/pk/gemm.py": ("def gemm(): ...", "def gemm(): pass")}
    told = ("src/kfix.py: matrix",)
    assert names(changed, standing={"conftest.py": "from kfix import *"}) == told
    assert names(changed, standing={"conftest.py": "from kfix import matrix"}) == told
    assert names(changed, standing={"conftest.py": "pytest_plugins = ['kfix']"}) == told
    assert names(changed, standing={"conftest.py": "from pk.gemm import gemm\nimport kfix"}) == ()
    assert names(changed, standing={"far/conftest.py": "from kfix import *"}) == ()


@pytest.mark.parametrize("said", ["quick", '["quick"]'])
def test_a_fixture_that_settings_put_around_all_tests_is_one_that_they_take(said: str) -> None:
    conftest = "@fixture\ndef quick(monkeypatch):\n    monkeypatch.undo()\n"
    text = said if said.startswith("[") else f'"{said}"'
    assert names({"conftest.py": (None, conftest)}, settings={"pytest.ini: usefixtures": text}) == (
        "conftest.py: quick",
    )
    assert names({"conftest.py": (None, conftest)}, settings={"pytest.ini: addopts": '"-q"'}) == ()
