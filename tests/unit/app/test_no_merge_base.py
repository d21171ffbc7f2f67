"""A run in CI says where the lines of the change itself judged it, and where those of a revision that was guessed."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.app.conclude import Ending, suite_notes
from pytest_perfgate.app.judge import GateJudge as Court
from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.model.measurement import Baseline, Environment
from pytest_perfgate.model.plan import Case, Choice, Effect, Mode, Plan, Policy
from pytest_perfgate.model.ports import GateTools
from pytest_perfgate.model.project import Base
from pytest_perfgate.model.verdict import Decision, Paired
from tests.unit.core.gate.bench import KEY, KINDS, accepted, limit, measured

ENDING = Ending(mode=Mode.FULL, started="2026-11-21T07:00:00", seconds=1.0, complete=True, filtered=False, root="/r")
LINE = accepted(1e6)
SHALLOW = Base(why="this clone is shallow", mend="check out with fetch-depth: 0")
CI = Policy(ci=True)


def notes(line: Baseline | None, base: Base = SHALLOW, policy: Policy = CI, paired: Paired | None = None) -> list[Any]:
    repository: Any = SimpleNamespace(base=lambda: base, files=lambda *_: ())
    lines: Any = SimpleNamespace(
        read=lambda *_: {str(KEY): line} if line else {},
        read_all=lambda device: {str(KEY): line} if line else {},
        paths=lambda device, revision: (),
    )
    nursery: Any = None
    tools = GateTools(
        kinds=KINDS,
        nursery=nursery,
        environment=Environment,
        roofed=lambda device: device,
        baselines=lines,
        repository=repository,
    )
    court = Court(tools, JudgeContext(kinds=KINDS, policy=policy))
    court.paired = {KEY: paired} if paired else {}
    case = Case(nodeid=KEY.nodeid, limits=(limit("slowdown <= 3%"),), plan=Plan(), path=KEY.path)
    reports = [court.judged(case, measured(1e6))]
    kinds = {"no merge base", "parent"}
    return [note for note in suite_notes(court, {KEY.nodeid: case}, reports, ENDING) if note.kind in kinds]


@pytest.mark.parametrize("choice", [Choice.WARN, Choice.FAIL])
def test_a_change_that_its_own_lines_judged_says_so_and_fails_where_that_is_asked(choice: Choice) -> None:
    (note,) = notes(LINE, policy=replace(CI, baseless=choice))
    assert (note.effect, note.names) == (Effect(choice.value), (str(KEY),))
    assert "this clone is shallow; check out with fetch-depth: 0" in note.text


def test_a_revision_that_was_guessed_is_named() -> None:
    (note,) = notes(LINE, Base(commit="c0ffee", name="the parent", why="nobody knows"))
    assert (note.kind, note.effect) == ("parent", Effect.WARN)
    assert note.text == "the lines of c0ffee, the parent, judged: nobody knows"


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        (LINE, {"base": Base(commit="beef", name="the merge base with main")}),
        (LINE, {"base": Base(name="the first commit")}),
        (LINE, {"policy": Policy()}),
        (LINE, {"paired": Paired(decision=Decision.NOT_SLOWER, differences=(0.0,), shift=0.0, revision=True)}),
        (replace(LINE, local=True), {}),
        (None, {}),
    ],
)
def test_nothing_is_said_where_nothing_went_unheld(line: Baseline | None, fields: dict[str, Any]) -> None:
    assert notes(line, **fields) == []
