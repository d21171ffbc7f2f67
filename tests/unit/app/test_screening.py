"""A budget of the whole comparison on a clock that the test turns."""

from __future__ import annotations

from pytest_perfgate.model.verdict import Decision
from tests.unit.app.scripted_pairs import World, compared


def scattered(by: dict[str, float], scatter: float):
    """Heads slower by so much, each round by a known deviation."""
    steps = (0.0, 1.0, -1.0, 0.5, -0.5)

    def time(side: str, nodeid: str, number: int) -> float:
        off = scatter * steps[number % 5] if side == "head" else 0.0
        return 1e6 * (1 + (by.get(nodeid[-1], 0.0) if side == "head" else 0.0) + off)

    return time


def test_a_budget_that_suffices_changes_nothing() -> None:
    world = World(time=scattered({"1": 0.06}, 0.002), start_s=1.0, test_s=1.0, within=0.2)
    _, found, said = compared(world, budget_s=600)
    assert [found[name].decision for name in "012"] == [Decision.NOT_SLOWER, Decision.SLOWER, Decision.NOT_SLOWER]
    assert said == ["3 of 3 cases decided in 7 to 11 rounds"]
    assert world.now == 7 * (2 + 3) + 4 * (2 + 1)


def test_what_reads_slower_is_decided_first_and_the_rest_says_what_it_wants() -> None:
    world = World(time=scattered({"1": 0.06}, 0.002), start_s=1.0, test_s=1.0, within=0.2)
    _, found, said = compared(world, budget_s=43)
    assert world.now <= 43
    assert found["1"].decision is Decision.SLOWER
    open_ = [paired for paired in found.values() if paired.decision is Decision.UNDECIDED]
    assert open_
    assert all(paired.wants_s == (7 - paired.rounds) * (1 + 2) for paired in open_)
    assert f"{len(open_)} of them beyond the budget" in said[0]


def test_of_two_that_read_slower_the_nearer_to_a_decision_comes_first() -> None:
    world = World(time=scattered({"0": 0.04, "2": 0.30}, 0.04), start_s=1.0, test_s=1.0, within=0.2)
    _, found, _ = compared(world, budget_s=46)
    assert found["2"].decision is Decision.SLOWER
    assert found["0"].decision is Decision.UNDECIDED
    assert world.now <= 46


def test_a_wild_case_has_more_rounds_than_a_calm_one_until_it_is_decided() -> None:
    world = World(time=scattered({"0": 0.005}, 0.03), start_s=1.0, test_s=1.0, within=0.2)
    calm = World(time=scattered({}, 0.002), start_s=1.0, test_s=1.0, within=0.2)
    _, wild, _ = compared(world, budget_s=600)
    _, tame, _ = compared(calm, budget_s=600)
    assert wild["0"].rounds > tame["0"].rounds == 7
    assert wild["0"].decision is tame["0"].decision is Decision.NOT_SLOWER


def test_a_budget_too_small_for_a_look_clears_nobody() -> None:
    world = World(time=scattered({}, 0.001), start_s=1.0, test_s=1.0, within=0.2)
    _, found, said = compared(world, budget_s=14)
    assert world.now <= 14
    assert {paired.decision for paired in found.values()} == {Decision.UNDECIDED}
    assert all(paired.wants_s > 0 for paired in found.values())
    assert said[0].startswith("0 of 3 cases decided, 3 open after ")


def test_part_of_a_suite_is_decided_where_a_budget_does_not_reach_all() -> None:
    world = World(time=scattered({}, 0.001), start_s=1.0, test_s=1.0, within=0.2)
    _, found, _ = compared(world, budget_s=30)
    assert world.now <= 30
    assert {paired.decision for paired in found.values()} == {Decision.UNDECIDED, Decision.NOT_SLOWER}
