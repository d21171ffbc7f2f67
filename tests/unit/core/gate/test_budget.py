"""Who gets how many rounds of a budget."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.rounds import (
    MOST,
    Design,
    Want,
    allotted,
    clearing_rounds,
    cost_of,
    shrunk,
    slower_rounds,
    wanted,
)
from pytest_perfgate.core.render.words import span
from pytest_perfgate.model.verdict import Decision
from tests.unit.core.gate.bench import shown


def want(rounds: int, seconds: float = 1.0, *, suspected: bool = True) -> Want:
    return Want(rounds=rounds, seconds=seconds, suspected=suspected)


def test_a_calm_suspect_needs_the_rounds_of_the_design_and_a_wild_one_more() -> None:
    assert slower_rounds(replace(shown(0.06, 0.002), rounds=3), 0.03, Design()) == 9
    assert slower_rounds(replace(shown(0.06, 0.04), rounds=3), 0.03, Design()) == 13, "the looks are fixed"
    wild = slower_rounds(shown(0.06, 0.06), 0.03, Design())
    assert 17 < wild < MOST
    assert slower_rounds(shown(0.06, 0.06), 0.03, Design(cases=8)) > wild
    assert slower_rounds(shown(0.01, 0.06), 0.03, Design()) == MOST


def test_the_nearer_to_the_limit_the_more_rounds_acquit() -> None:
    near, far = (clearing_rounds(shown(by, 0.02), 0.03, Design()) for by in (0.02, 0.0))
    assert MOST > near > far >= 7
    assert clearing_rounds(shown(0.04, 0.02), 0.03, Design()) == MOST
    assert clearing_rounds(shown(0.0, 0.0), 0.03, Design()) == 7


def test_what_is_wanted_counts_the_rounds_that_were_played() -> None:
    open_ = replace(shown(0.02, 0.02), decision=Decision.UNDECIDED, rounds=8)
    assert wanted(open_, 0.03, Design()) == clearing_rounds(open_, 0.03, Design()) - 8
    assert wanted(replace(open_, scatter=0.0, rounds=3), 0.03, Design()) == 4
    assert wanted(replace(open_, shift=0.06, scatter=0.0, rounds=3), 0.03, Design()) == 6
    slow = replace(open_, shift=0.06, rounds=9)
    assert wanted(slow, 0.03, Design()) == 13 - 9
    assert wanted(replace(slow, rounds=30), 0.03, Design()) == 1
    assert wanted(replace(slow, rounds=13), 0.03, Design()) == 17 - 13
    cleared = replace(open_, decision=Decision.NOT_SLOWER)
    assert wanted(cleared, 0.03, Design()) == 1, "whether it is faster is shown in nine"


def test_suspects_come_first_and_of_them_the_cheapest_to_decide() -> None:
    wants = {"wild": want(100), "calm": want(10), "open": want(2, suspected=False)}
    plan = allotted(wants, left_s=30, start_s=1)
    assert plan.rounds == {"calm": 10, "open": 2}
    assert set(plan.beyond) == {"wild"}
    assert plan.cost == 10 * 1 + 10 + 2
    assert allotted(wants, math.inf, 1).beyond == {}
    assert allotted(wants, 0, 1).rounds == {}


def test_rounds_are_started_once_for_all_in_them() -> None:
    together = cost_of([want(10), want(8)], start_s=2)
    assert together == 10 * 2 + 18
    assert together < cost_of([want(10)], 2) + cost_of([want(8)], 2)
    assert cost_of([], 2) == 0


@pytest.mark.parametrize(("needs", "has", "expected"), [(10, 20, 1.0), (10, 5, 0.5), (10, 0, 0.25), (0, 0, 1.0)])
def test_sampling_shrinks_to_what_is_there(needs: float, has: float, expected: float) -> None:
    assert shrunk(needs, has, 0.25) == expected


def test_spans_are_said_as_people_say_them() -> None:
    assert [span(s) for s in (0.3, 12.4, 70, 3600, 7500)] == [
        "under 1 s",
        "12 s",
        "1 min 10 s",
        "1 h 0 min",
        "2 h 5 min",
    ]
