"""A budget of the whole comparison on a clock that the test turns."""

from __future__ import annotations

import pytest

from pytest_perfgate.model.verdict import Decision
from tests.unit.app.duets import World
from tests.unit.app.test_compare_arms import compared, slower


def scattered(by: dict[str, float], scatter: float):
    """Heads slower by so much, each round by a known deviation."""
    steps = (0.0, 1.0, -1.0, 0.5, -0.5)

    def time(side: str, nodeid: str, number: int) -> float:
        off = scatter * steps[number % 5] if side == "head" else 0.0
        return 1e6 * (1 + (by.get(nodeid[-1], 0.0) if side == "head" else 0.0) + off)

    return time


def test_all_are_screened_and_suspects_have_what_decides_them() -> None:
    world = World(time=scattered({"1": 0.06}, 0.002), start_s=1.0, test_s=1.0, within=0.2)
    _, found, said = compared(world, budget_s=600)
    assert [found[name].decision for name in "012"] == [Decision.NOT_SLOWER, Decision.SLOWER, Decision.NOT_SLOWER]
    assert said == ["1 of 3 suspected: up to 10 fresh rounds each, about 30 s"]
    assert world.now <= 600


def test_a_suspect_beyond_the_budget_says_what_it_wants() -> None:
    world = World(time=scattered({"1": 0.06}, 0.002), start_s=1.0, test_s=1.0, within=0.2)
    _, found, said = compared(world, budget_s=30)
    assert world.now <= 30
    assert said == ["slower than thought: turns cut to 42%", "1 of 3 suspected: none within the budget"]
    assert (found["1"].decision, found["1"].untried) == (Decision.UNDECIDED, True)
    assert found["1"].wants_s == 10 * (1 + 2)
    assert found["0"].decision is Decision.NOT_SLOWER


def test_the_suspect_nearest_to_a_decision_is_tried_first() -> None:
    world = World(time=scattered({"0": 0.04, "2": 0.30}, 0.04), start_s=1.0, test_s=1.0, within=0.2)
    _, found, said = compared(world, budget_s=70)
    assert found["2"].decision is Decision.SLOWER
    assert (found["0"].decision, found["0"].untried) == (Decision.UNDECIDED, True)
    assert "1 beyond the budget" in said[0]
    assert world.now <= 70


def test_what_is_left_widens_the_view_of_the_undecided() -> None:
    world = World(time=scattered({"0": 0.01}, 0.03), start_s=1.0, test_s=1.0, within=0.2)
    _, narrow, _ = compared(World(time=world.time, start_s=1.0, test_s=1.0, within=0.2))
    _, wide, said = compared(world, budget_s=600)
    assert narrow["0"].decision is Decision.UNDECIDED
    assert narrow["0"].wants_s > 0
    assert wide["0"].rounds > narrow["0"].rounds == 5
    assert wide["0"].decision is Decision.NOT_SLOWER
    assert any("undecided: up to" in text for text in said)


def test_a_budget_too_small_for_screening_acquits_nobody() -> None:
    world = World(time=scattered({}, 0.001), start_s=1.0, test_s=1.0, within=0.2)
    _, found, _ = compared(world, budget_s=14)
    assert {paired.rounds for paired in found.values()} == {2}
    assert {paired.decision for paired in found.values()} == {Decision.UNDECIDED}
    assert all(paired.wants_s > 0 for paired in found.values())


def test_suspects_of_a_stored_baseline_share_the_budget_too() -> None:
    world = World(time=slower("", 0.06), start_s=1.0, test_s=1.0, within=0.2)
    _, found, said = compared(world, screened=True, budget_s=40)
    assert world.now <= 40
    tried = [paired for paired in found.values() if paired.decision is Decision.SLOWER]
    assert tried
    assert len(tried) < len(found) == 3
    assert any("beyond the budget" in text for text in said)
    assert all(paired.untried and paired.wants_s > 0 for paired in found.values() if paired not in tried)


def test_a_first_round_that_takes_longer_than_thought_cuts_the_turns_of_the_rest() -> None:
    world = World(time=scattered({}, 0.001), start_s=1.0, test_s=10.0, within=0.2)
    comparison, _, said = compared(world, budget_s=200)
    assert said[0] == "slower than thought: turns cut to 67%"
    assert comparison.stage.beat.batch_ns == pytest.approx(20e6 * 80 / 120)
    calm, _, said = compared(World(time=world.time, start_s=1.0, test_s=1.0, within=0.2), budget_s=200)
    assert calm.stage.beat.batch_ns == 20e6
    assert not any("cut" in text for text in said)
