"""A run in CI says where the lines of the change itself judged it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.app.conclude import Ending, suite_notes
from pytest_perfgate.app.gate import Court
from pytest_perfgate.core.gate.context import JudgeContext
from pytest_perfgate.model.baseline import Baseline
from pytest_perfgate.model.limit import Effect
from pytest_perfgate.model.measurement import Environment
from pytest_perfgate.model.plan import Case, Mode, Plan
from pytest_perfgate.model.policy import Policy
from pytest_perfgate.model.tools import GateTools
from tests.unit.core.gate.bench import KEY, KINDS, accepted, limit, measured

ENDING = Ending(mode=Mode.FULL, started="2026-11-21T07:00:00", seconds=1.0, complete=True, filtered=False, root="/r")
LINE = accepted(1e6)


def notes(line: Baseline | None, *, base: str = "", head: str = "c0ffee", ci: bool = True) -> list[Any]:
    repository: Any = SimpleNamespace(merge_base=lambda: base, head=lambda: head)
    lines: Any = SimpleNamespace(
        read=lambda *_: {str(KEY): line} if line else {}, read_all=lambda device: {str(KEY): line} if line else {}
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
    court = Court(tools, JudgeContext(kinds=KINDS, policy=Policy(ci=ci)))
    case = Case(nodeid=KEY.nodeid, limits=(limit("slowdown <= 3%"),), plan=Plan(), path=KEY.path)
    reports = [court.judged(case, measured(1e6))]
    return [note for note in suite_notes(court, {KEY.nodeid: case}, reports, ENDING) if note.kind == "no merge base"]


def test_a_change_that_its_own_lines_judged_says_so() -> None:
    (note,) = notes(LINE)
    assert (note.effect, note.names) == (Effect.WARN, (str(KEY),))
    assert "fetch-depth: 0" in note.text


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        (LINE, {"base": "beef"}),
        (LINE, {"ci": False}),
        (LINE, {"head": ""}),
        (replace(LINE, local=True), {}),
        (None, {}),
    ],
)
def test_nothing_is_said_where_nothing_went_unheld(line: Baseline | None, fields: dict[str, Any]) -> None:
    assert notes(line, **fields) == []
