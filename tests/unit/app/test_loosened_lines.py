from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.app.loosened import loosened_lines
from pytest_perfgate.core.gate.context import JudgeContext
from pytest_perfgate.core.gate.judge import judge
from pytest_perfgate.model.baseline import Baseline
from pytest_perfgate.model.limit import Effect
from pytest_perfgate.model.plan import Mode
from pytest_perfgate.model.policy import Choice, Policy
from pytest_perfgate.model.verdict import SuiteNote
from tests.unit.core.gate.bench import KEY, KINDS, accepted, limit, measured

SLOW = accepted(2e6, why="")


def notes(edited: Baseline | None, mode: Mode = Mode.FULL, **policy: Any) -> list[SuiteNote]:
    context = JudgeContext(kinds=KINDS, mode=mode, policy=Policy(**policy))
    report = judge(measured(1e6), [limit("slowdown <= 3%")], baseline=accepted(1e6), context=context)
    lines = SimpleNamespace(judging=lambda _: (accepted(1e6), edited))
    court: Any = SimpleNamespace(context=context, accepted=lines)
    return list(loosened_lines(court, [report]))


@pytest.mark.parametrize(("policy", "effect"), [({}, Effect.WARN), ({"improved": Choice.FAIL}, Effect.FAIL)])
def test_the_line_is_named_with_what_was_measured(policy: dict[str, Any], effect: Effect) -> None:
    (note,) = notes(SLOW, **policy)
    assert (note.kind, note.effect) == ("loosened", effect)
    assert note.names == (f"{KEY}: 1 ms -> 2 ms, measured 1 ms",)


def test_an_accepted_line_is_not_named_nor_one_held_against_a_quick_look() -> None:
    assert notes(SLOW, improved=Choice.IGNORE) == []
    assert notes(None) == notes(accepted(1.01e6)) == notes(SLOW, Mode.QUICK) == []
