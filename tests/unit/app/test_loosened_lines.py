from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.app.changed_tests import loosened_lines
from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.model.measurement import Baseline
from pytest_perfgate.model.plan import Choice, Effect, Mode, Policy
from pytest_perfgate.model.verdict import SuiteNote
from tests.unit.core.gate.bench import KEY, KINDS, accepted, limit, measured

SLOW = accepted(2e6, why="")


def notes(
    edited: Baseline | None, mode: Mode = Mode.FULL, then: Baseline = accepted(1e6), **policy: Any
) -> list[SuiteNote]:
    context = JudgeContext(kinds=KINDS, mode=mode, policy=Policy(**policy))
    report = judge(measured(1e6), [limit("slowdown <= 3%")], baseline=accepted(1e6), context=context)
    lines = SimpleNamespace(judging=lambda _: (then, edited))
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


THEN = accepted(1e6, commit="a1b2c3d", expires="2026-11-30", blind=0.02, scatter=0.01, sittings=3)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ({"expires": ""}, "expires 2026-11-30 -> never"),
        ({"expires": "2027-11-30"}, "expires 2026-11-30 -> 2027-11-30"),
        ({"expires": "2026-11-01"}, ""),
        ({"scatter": 0.6, "sittings": 20}, "scatter +1.0 % -> +60.0 %"),
        ({"scatter": 0.03, "sittings": 4}, ""),
        ({"blind": 0.7}, "blind +2.0 % -> +70.0 %"),
        ({"blind": 0.0}, ""),
        ({"commit": "a1b2c3d+dirty"}, "commit a1b2c3d -> a1b2c3d+dirty"),
        ({"commit": ""}, "commit a1b2c3d -> none"),
        ({"commit": "d00d+dirty", "time": 0.9e6}, ""),
        ({"expires": "", "why": "kept for good", "when": "2026-11-21"}, ""),
    ],
)
def test_a_line_that_would_hold_less_in_another_way_is_named_unless_a_reason_says_why(
    edit: dict[str, Any], said: str
) -> None:
    found = notes(replace(THEN, **edit), then=THEN)
    assert [(note.kind, note.names) for note in found] == ([("widened", (f"{KEY}: {said}",))] if said else [])
