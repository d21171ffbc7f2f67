"""Everything by which a change edits its own gate is one list, first in what a reviewer reads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.gate.policy import CI, OWN_GATE, REGRESSED, exit_code
from pytest_perfgate.core.gate.suite import own_gate_note
from pytest_perfgate.core.render.comment import render_comment
from pytest_perfgate.core.render.own_gate import EDITS, other_notes, own_gate_lines
from pytest_perfgate.model.limit import Effect, Outcome
from pytest_perfgate.model.policy import Choice
from pytest_perfgate.model.verdict import Excuse, SuiteNote
from tests.reports import case, run

LIMIT = SuiteNote(kind="limits", effect=Effect.WARN, text="1 limit of tests changed", names=("t.py::a: 3% -> 60%",))
QUICK = SuiteNote(kind="quick", effect=Effect.WARN, text="quick mode in CI")
FLOOR = SuiteNote(kind="floor", effect=Effect.WARN, text="1 case passed by the floor alone")


@pytest.mark.parametrize("kind", EDITS)
def test_each_kind_of_edit_is_a_line(kind: str) -> None:
    note = SuiteNote(kind=kind, effect=Effect.WARN, text="what changed", names=("one", "two"))
    assert own_gate_lines((), (note,)) == ((EDITS[kind], "one"), (EDITS[kind], "two"))
    assert own_gate_lines((), (replace(note, names=()),)) == ((EDITS[kind], "what changed"),)
    assert own_gate_lines((), (replace(note, effect=Effect.PASS),)) == (), "a tightened limit edits nothing away"


def test_what_a_run_has_anyway_is_listed_beside_an_edit_only() -> None:
    hidden = replace(case("test_a", 2e6, 1e6, Outcome.REGRESSED), excuse=Excuse.EXPECTED_TO_FAIL)
    assert own_gate_lines((hidden,), (QUICK, FLOOR)) == ()
    assert other_notes((hidden,), (QUICK, FLOOR)) == (QUICK, FLOOR)
    lines = own_gate_lines((hidden,), (FLOOR, QUICK, LIMIT))
    assert [word for word, _ in lines] == ["limit or mark", "xfail hides", "quick mode"]
    assert other_notes((hidden,), (FLOOR, QUICK, LIMIT)) == (FLOOR,)


def test_the_policy_fails_edits_with_one() -> None:
    strict = replace(CI, own_gate=Choice.FAIL)
    assert own_gate_note((LIMIT,), CI) == ()
    assert own_gate_note((QUICK, FLOOR), strict) == (), "a quick run edits nothing"
    (note,) = own_gate_note((LIMIT, QUICK), strict)
    assert (note.kind, note.effect, note.names) == (OWN_GATE, Effect.FAIL, ("limit or mark: t.py::a: 3% -> 60%",))
    assert exit_code((), (LIMIT, note)) == REGRESSED


def test_the_list_comes_first_in_the_comment() -> None:
    slow = case("test_b", 2e6, 1e6, Outcome.REGRESSED)
    text = render_comment(run(slow, notes=(FLOOR, LIMIT)))
    edit = text.index("**This change edits its own gate**\n\n- limit or mark: `t.py::a: 3% -> 60%`")
    assert edit < text.index("1 case:") < text.index("REGRESSED")
    assert "1 limit of tests changed" not in text, "the list has it"
