"""Tests of app/compare_arms."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from pytest_perfgate.app.compare_arms import ROUND, Comparison, stopped
from pytest_perfgate.app.lockstep import TurnTiming, _turn
from pytest_perfgate.core.judge.rounds import Design
from pytest_perfgate.core.stats.costs import NeededRounds
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import IDLE, Samples, Stop
from pytest_perfgate.model.plan import CaseKey, Decision, Plan
from pytest_perfgate.model.verdict import PairedRound
from tests.unit.app.scripted_pairs import (
    PROOF,
    ScriptedChild,
    World,
    arm,
    cases,
    compared,
    heard,
    slower,
    staged,
)


def test_only_the_slower_test_is_found_and_what_is_decided_has_no_further_round() -> None:
    world = World(time=slower("1", 0.06), waits=True)
    _, results, lines = compared(world)
    assert [results[name].decision for name in "012"] == [Decision.NOT_SLOWER, Decision.SLOWER, Decision.NOT_SLOWER]
    assert results["1"].shift == pytest.approx(0.06, abs=0.01)
    assert results["1"].base_ns == pytest.approx(1e6, rel=0.01)
    assert (results["0"].rounds, results["1"].rounds) == (7, 11)
    assert lines == ["3 of 3 cases decided in 7 to 11 rounds"]
    assert len(world.spawned) == 2 * 11
    places = [f"{place}: {nodeid[-1]}" for place, _, nodeid in world.shown]
    assert places[20:22] == ["round 7 of up to 30, test 3 of 3: 2", "round 8 of up to 30, test 1 of 1: 1"]
    assert len(places) == 3 * 7 + 4


def test_what_is_left_is_shown_from_the_second_round_on() -> None:
    """A round takes 17 s: from what the least rounds take to what all of them would."""
    world = World(time=slower("1", 0.06), start_s=4.0, test_s=3.0)
    compared(world)
    places = [place for place, _, _ in world.shown]
    assert places[:3] == [f"round 1 of up to 30, test {at} of 3" for at in (1, 2, 3)]
    assert places[3] == "round 2 of up to 30, test 1 of 3, at least 1 min 31 s, at most 8 min 2 s left"
    assert places[20] == "round 7 of up to 30, test 3 of 3, at most 6 min 31 s left"


_SPAN = r"((?:\d+ min )?\d+ s)"


def spoken_s(text: str) -> float:
    return sum(int(number) * {"min": 60, "s": 1}[unit] for number, unit in re.findall(r"(\d+) (min|s)", text))


def foretold(world: World, count: int, budget_s: float, expected) -> list[tuple[float, float, float]]:
    """Return the least and the most that each line from the second round on told, and what it took."""
    world.modules, lines = PROOF, list[tuple[str, float]]()

    def show(place: str, done: int, nodeid: str) -> None:
        lines.append((place, world.now))
        if place.startswith("round 1 of"):
            world.start_s = usual_s

    usual_s, world.start_s = world.start_s, 3 * world.start_s
    stage = replace(staged(world, [], [], budget_s), show=show)
    heard(Comparison((arm("base"), arm("head")), cases(count), stage, Design()), among=count, expected=expected)
    estimates = []
    for place, at in lines:
        least, most = (re.search(f"{words} {_SPAN}", place) for words in ("at least", "at most"))
        if not place.startswith("round 1 of"):
            low, high = (spoken_s(match[1]) if match else 0.0 for match in (least, most))
            estimates.append((low - 0.5, max(high, 1.0) + 0.5, world.now - at))
    return estimates


def wants(**seconds: float) -> dict[str, NeededRounds]:
    return {
        f"t.py::test_{name[-1]}": NeededRounds(rounds=7, seconds=took, suspected=False)
        for name, took in seconds.items()
    }


@pytest.mark.parametrize(
    ("world", "count", "budget_s", "expected"),
    [
        (World(time=slower("1", 0.06), start_s=2.0, test_s=3.0), 3, 0.0, {}),
        (World(time=slower("", 0.0), start_s=0.5, test_s=0.2), 1, 0.0, {}),
        (World(time=slower("1", 0.029), start_s=1.0, test_s=0.5, long={"1": 9.0}), 4, 0.0, {}),
        (World(time=slower("", 0.0), start_s=1.0, test_s=1.0, static={"t.py::test_0"}), 1, 0.0, {}),
        (World(time=slower("", 0.0), start_s=1.0, test_s=1.0, static={"t.py::test_0"}), 3, 0.0, {}),
        (World(time=slower("1", 0.029), start_s=1.0, test_s=1.0), 3, 60.0, {}),
        (
            World(time=slower("1", 0.029), start_s=1.0, test_s=1.0, long={"0": 30.0}), 3, 300.0,
            wants(test_0=30.0, test_1=1.0, test_2=1.0),
        ),
    ],
    ids=["one slower", "alone", "open to the end", "code alone", "code beside times", "budget", "one waits"],
)  # fmt: skip
def test_what_a_comparison_takes_lies_between_what_was_told(
    world: World, count: int, budget_s: float, expected
) -> None:
    estimates = foretold(world, count, budget_s, expected)
    assert estimates or len(world.spawned) == 2, "one round has nothing to tell"
    assert all(low <= true <= high for low, high, true in estimates), estimates


def test_a_faster_head_has_the_rounds_that_show_it() -> None:
    _, results, lines = compared(World(time=slower("1", -0.2)))
    assert results["1"].shift == pytest.approx(-0.2, abs=0.01)
    assert (results["1"].faster, results["1"].rounds) == (True, 11)
    assert not results["0"].faster
    assert lines == ["3 of 3 cases decided in 7 to 11 rounds"]


def test_a_call_near_the_border_between_two_timers_keeps_that_of_the_first_round() -> None:
    """Rounds of two timers are not one measurement."""
    world = World(time=slower("1", 0.06), border=("cupti", "events"))
    comparison, results, _ = compared(world)
    timers = {c.identity.timer for round_ in comparison.rounds for c in (*round_.base, *round_.head)}
    assert timers == {"events"}, "the choice of the process with the seed 1"
    assert [results[name].decision for name in "01"] == [Decision.NOT_SLOWER, Decision.SLOWER]


def test_many_cases_need_more_rounds_than_few() -> None:
    _, results, lines = compared(World(time=slower("", 0.06)), count=16)
    assert lines == ["16 of 16 cases decided in 13 rounds"]
    assert {paired.decision for paired in results.values()} == {Decision.SLOWER}


def test_the_sides_take_turns_and_the_order_alternates() -> None:
    world = World(time=slower("", 0.0))
    compared(world, count=1)
    turns = [side for side, _ in world.turns[:22]]
    assert turns.count("base") == turns.count("head") == 11
    assert all(sorted(turns[at : at + 2]) == ["base", "head"] for at in range(0, 22, 2))
    first = {turns[at] for at in range(2, 22, 2)}
    assert first == {"base", "head"}
    assert {dict(one.env)["PYTHONHASHSEED"] for one in world.spawned[:2]} == {"1"}


def test_a_turn_that_had_to_be_taken_again_costs_the_last_turn() -> None:
    world = World(time=slower("", 0.0), retaken={4, 7})
    comparison, _, _ = compared(world, count=1)
    turns = [side for side, _ in world.turns[:18]]
    assert turns.count("base") == turns.count("head") == 9
    assert len(world.spawned) == 2 * 7
    assert len(world.turns) == 18 + 6 * 22
    (first,) = [one for one in comparison.rounds if one.number == 0]
    discarded = [len(capture.samples[0].discarded) for side in (first.base, first.head) for capture in side]
    assert sorted(discarded) == [0, 2]


def test_a_test_on_one_side_only_is_listed_and_not_judged() -> None:
    comparison, results, _ = compared(World(time=slower("", 0.0), missing={"base": {"t.py::test_2"}}))
    assert set(results) == {"0", "1"}
    lost = comparison.results()["t.py::test_2"]
    assert lost.trouble == ("the base build could not collect it: it is missing",)


BOTH = {"base": {"t.py::test_2"}, "head": {"t.py::test_2"}}


def test_a_module_that_no_arm_finds_says_which_setting_brings_it() -> None:
    error = "t.py: ModuleNotFoundError: No module named 'beside'"
    errors = (error, "of_another_test.py: Skipped: no such device")
    world = World(time=slower("", 0.0), missing=BOTH, errors=errors)
    (trouble,) = compared(world)[0].results()["t.py::test_2"].trouble
    assert trouble.startswith(
        f"the base build could not collect it: {error}; next: list its folder in [tool.perfgate]: in 'projects'"
    )
    world.missing = {"base": BOTH["base"]}  # the change adds the module
    assert compared(world)[0].results()["t.py::test_2"].trouble == (f"the base build could not collect it: {error}",)


def test_a_module_of_a_package_that_both_arms_hide_says_the_whole_setting() -> None:
    errors = ("t.py: ModuleNotFoundError: No module named 'kern'",)
    world = World(time=slower("", 0.0), missing=BOTH, errors=errors)
    both = (replace(arm("base"), missing="set projects = [1]"), replace(arm("head"), missing="set projects = [1]"))
    comparison = Comparison(both, cases(3), staged(world, [], []), Design())
    heard(comparison)
    assert comparison.results()["t.py::test_2"].trouble[0].endswith("'kern'; next: set projects = [1]")


@pytest.mark.parametrize(("mode", "step"), [("worktree", "; next: set build in [tool.perfgate]"), ("package", "")])
def test_a_file_that_no_checkout_has_says_which_setting_makes_it(mode: str, step: str) -> None:
    error = "t.py: OSError: build/libk.so: cannot open shared object file: No such file or directory"
    world = World(time=slower("", 0.0), missing=BOTH, errors=(error,))
    both = (replace(arm("base"), mode=mode), replace(arm("head"), mode=mode))
    comparison = Comparison(both, cases(3), staged(world, [], []), Design())
    heard(comparison)
    (trouble,) = comparison.results()["t.py::test_2"].trouble
    assert trouble.removeprefix(f"the base build could not collect it: {error}").startswith(step)
    assert ("set build" in trouble) == bool(step)


def test_a_test_that_kills_its_arm_is_out_and_the_rest_goes_on() -> None:
    comparison, results, _ = compared(World(time=slower("", 0.0), dies={("head", "t.py::test_0")}))
    assert set(results) == {"1", "2"}
    assert results["1"].rounds == 7
    assert "SIGSEGV" in comparison.results()["t.py::test_0"].trouble[0]


def test_one_process_of_many_that_fails_keeps_nobody_from_deciding() -> None:
    world = World(time=slower("0", 0.4), failing={"t.py::test_0": {2, 5}})
    comparison, results, lines = compared(world)
    assert (results["0"].decision, results["0"].shift) == (Decision.SLOWER, pytest.approx(0.4, abs=0.01))
    assert (stopped(comparison), lines) == ({}, ["3 of 3 cases decided in 7 to 13 rounds"])


@pytest.mark.parametrize("fails", [{2, 3, 4, 5, 6, 7}, {2, 3, 5, 6, 7, 8, 9}])
def test_a_test_that_fails_more_often_than_not_is_stopped_and_nothing_is_left_open_of_it(fails: set[int]) -> None:
    """A kernel that was 40 % slower, and raised from the second round on, was UNDECIDED, which only warns."""
    comparison, results, _ = compared(World(time=slower("0", 0.4), failing={"t.py::test_0": fails}))
    assert set(results) == {"1", "2"}
    assert stopped(comparison) == {"t.py::test_0": "head: failed: call: TypeError: exact"}
    assert sum(one.nodeid == "t.py::test_0" for one in comparison.rounds) < 7


def test_finished_rounds_are_taken_up_again() -> None:
    world = World(time=slower("1", 0.06), modules=PROOF)
    first, results, _ = compared(world)
    before = len(world.spawned)
    again = Comparison((arm("base"), arm("head")), cases(3), staged(world, [], []), Design())
    again.resume([one for one in first.rounds if one.number != 10])
    repeated = heard(again)
    assert len(world.spawned) == before + 2
    assert repeated[CaseKey(nodeid="t.py::test_1")].differences == results["1"].differences


def test_rounds_of_tests_that_are_gone_are_forgotten() -> None:
    comparison = Comparison((arm("base"), arm("head")), cases(1), staged(World(time=slower("", 0)), [], []), Design())
    comparison.resume([PairedRound(nodeid="t.py::gone", phase=ROUND, number=0)])
    assert comparison.rounds == []


def test_a_case_pays_for_those_that_are_compared_with_other_commits() -> None:
    world = World(time=slower("1", 0.06))
    _, results, _ = compared(world, among=40)
    assert [results[name].decision for name in "01"] == [Decision.NOT_SLOWER, Decision.SLOWER]
    assert [results[name].rounds for name in "01"] == [7, 14]
    assert {paired.revision for paired in results.values()} == {False}


def test_turns_are_short_on_the_host_and_longer_on_a_device() -> None:
    samples, alone = Samples(durations=(1e6,), timer="host", stop=Stop.COUNT), Plan(one_core=True)
    assert _turn(alone, TurnTiming(), samples)[0].budget_ns == 5e6
    threaded = _turn(Plan(), TurnTiming(), replace(samples, durations=(1e5,)))[0]
    assert (threaded.budget_ns, threaded.calls) == (20e6, 10), "long turns of many short samples: threads need luck"
    assert _turn(Plan(), TurnTiming(), replace(samples, timer="events"))[0].budget_ns == 20e6
    assert _turn(Plan(), TurnTiming(), replace(samples, notes=((IDLE, "waits"),)))[0].budget_ns == 20e6


def test_a_second_child_that_does_not_start_leaves_no_first_one() -> None:
    made: list[ScriptedChild] = []

    class Half(World):
        def spawn(self, spec):
            if self.spawned:
                raise PerfgateError("child-start", "no more processes")
            made.append(super().spawn(spec))
            return made[-1]

    comparison, results, _ = compared(Half(time=slower("", 0.0)), count=1)
    assert not results
    assert comparison.results()["t.py::test_0"].trouble == ("no more processes",)
    assert comparison.troubles()["t.py::test_0"] == "no more processes"
    assert made[0].closed


def test_machine_code_alone_is_read_once_and_kept_for_its_limits() -> None:
    world = World(time=slower("9", 0.0), static={"t.py::test_1"})
    comparison, results, _ = compared(world, count=2)
    assert set(results) == {"0"}
    read = comparison.results()["t.py::test_1"]
    assert [[one.identity.timer for one in captures] for captures in read.captures] == [["cubin"]]
    assert world.turns.count(("head", "t.py::test_1")) == world.turns.count(("base", "t.py::test_1")) == 1
