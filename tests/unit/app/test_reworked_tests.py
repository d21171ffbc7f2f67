"""In CI a gated test that the change edits, and not its line, is named."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.app.changed_tests import reworked_tests
from pytest_perfgate.model.measurement import Baseline
from pytest_perfgate.model.plan import Effect, Policy
from pytest_perfgate.model.project import Base
from pytest_perfgate.model.verdict import CaseReport, SuiteNote
from tests.unit.core.gate.bench import KEY, accepted, measured

OLD = "import pk\n\n\ndef test_gemm(perfgate):\n    perfgate(pk.gemm)\n"
NEW = OLD.replace("import pk", "import old as pk")
TEXTS = {KEY.path: (OLD, NEW)}
LINE = accepted(1e6)


def notes(texts: Any, edited: Baseline | None = None, **given: Any) -> list[SuiteNote]:
    lines = SimpleNamespace(
        base=Base(commit=given.get("base", "c0ffee")),
        moved=given.get("moved", {}),
        judging=lambda _measurement: (given.get("line", LINE), edited),
        then_and_now=lambda _device, _path: ({str(KEY): given.get("line", LINE)}, {str(KEY): edited} if edited else {}),
        came_with=lambda _measurement: given.get("came", False),
    )
    court: Any = SimpleNamespace(
        context=SimpleNamespace(policy=Policy(ci=given.get("ci", True))),
        accepted=lines,
        tools=SimpleNamespace(
            repository=SimpleNamespace(touched=lambda _revision, _words: texts),
            baselines=SimpleNamespace(devices=lambda: given.get("devices", ("host-x",))),
        ),
        paired=given.get("paired", {}),
        revision=given.get("revision", ""),
    )
    report = CaseReport(key=KEY, verdicts=(), measurement=measured(1e6) if given.get("ran", True) else None)
    return list(reworked_tests(court, [report, report]))


def test_an_edited_test_whose_line_stays_is_named_once_with_what_differs() -> None:
    (note,) = notes(TEXTS)
    assert (note.kind, note.effect, note.names) == ("reworked", Effect.WARN, (f"{KEY.path}::test_gemm: pk",))
    assert note.text == "1 gated test edited since c0ffee, the accepted lines are not: they may measure something else"


def test_a_test_that_moved_is_held_against_the_file_it_came_from() -> None:
    texts = {"tests/old.py": (OLD, None), KEY.path: (None, NEW)}
    old = str(KEY).replace(KEY.path, "tests/old.py")
    assert notes(texts, moved={old: str(KEY)})[0].names == (f"{KEY.path}::test_gemm: pk",)
    assert notes(texts) == []


def test_against_a_revision_an_edit_that_both_arms_ran_is_named_too() -> None:
    (note,) = notes(TEXTS, revision="d00d" * 10, paired={KEY: SimpleNamespace(revision=True, own_file="")}, base="")
    said = (
        "1 gated test edited since d00dd00dd0, and both arms ran them as they are now: they may measure something else"
    )
    assert (note.text, note.names) == (said, (f"{KEY.path}::test_gemm: pk",))


@pytest.mark.parametrize(
    "given",
    [
        {"ci": False},
        {"base": ""},
        {"line": None},
        {"line": replace(LINE, local=True)},
        {"edited": replace(LINE, time=2e6, why="it now reads the file as well")},
        {"texts": {}},
        {"texts": {KEY.path: (OLD, OLD + "\n# more\n")}},
        {"came": True},
        {"paired": {KEY: SimpleNamespace(revision=True, own_file="it fails at this test as it is here")}},
    ],
    ids=lambda given: next(iter(given)),
)
def test_what_is_judged_by_no_line_of_before_or_says_why_is_not_named(given: dict[str, Any]) -> None:
    assert notes(**{"texts": TEXTS, **given}) == []


def test_an_edit_without_a_reason_of_its_own_explains_nothing() -> None:
    assert notes(TEXTS, replace(LINE, time=2e6))


def test_where_git_does_not_answer_that_is_said() -> None:
    (note,) = notes(None)
    assert note.text == "which gated tests changed since c0ffee is not known: git did not answer for the files"


def test_an_edited_test_that_was_not_measured_is_named_too() -> None:
    """As one that says ``pytest.xfail("later")`` before its call."""
    excused = {KEY.path: (OLD, OLD.replace("    perfgate(", "    pytest.xfail('later')\n    perfgate("))}
    (note,) = notes(excused, ran=False)
    assert note.names == (f"{KEY.path}::test_gemm: the test itself",)
    assert notes(excused, ran=False, devices=()) == notes(excused, ran=False, line=replace(LINE, local=True)) == []
    said = replace(LINE, time=2e6, why="it is expected to fail until the driver is mended")
    assert notes(excused, said, ran=False) == []
    assert notes(excused, ran=False, devices=(), revision="d00d" * 10)
