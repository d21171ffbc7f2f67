"""Tests of app/compare_arms."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.app.changed_project import unready, with_files
from pytest_perfgate.app.compare_arms import ROUND, Comparison, pairs_of, untimed_in, untimed_on
from pytest_perfgate.app.lockstep import TurnTiming as Beat
from pytest_perfgate.app.lockstep import _turn
from pytest_perfgate.app.measure import measurements
from pytest_perfgate.app.screening import Screening as Hearing
from pytest_perfgate.core.judge.rounds import Design, finding
from pytest_perfgate.core.judge.samples import pair_of
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import IDLE, Identity, Samples, Stop
from pytest_perfgate.model.plan import CaseKey, Plan
from pytest_perfgate.model.protocol import Capture, CaseResult
from pytest_perfgate.model.verdict import Decision, Paired, PairedRound
from pytest_perfgate.plugin.calls import Brought
from tests.unit.app.scripted_pairs import (
    DEVICE,
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
    _, found, said = compared(world)
    assert [found[name].decision for name in "012"] == [Decision.NOT_SLOWER, Decision.SLOWER, Decision.NOT_SLOWER]
    assert found["1"].shift == pytest.approx(0.06, abs=0.01)
    assert found["1"].base_ns == pytest.approx(1e6, rel=0.01)
    assert (found["0"].rounds, found["1"].rounds) == (7, 11)
    assert said == ["3 of 3 cases decided in 7 to 11 rounds"]
    assert len(world.spawned) == 2 * 11
    places = [f"{place}: {nodeid[-1]}" for place, _, nodeid in world.shown]
    assert places[20:22] == ["round 7 of up to 30, case 3 of 3: 2", "round 8 of up to 30, case 1 of 1: 1"]
    assert len(places) == 3 * 7 + 4


def test_what_is_left_is_shown_from_the_second_round_on() -> None:
    """A round takes 17 s: from what the least rounds take to what all of them would."""
    world = World(time=slower("1", 0.06), start_s=4.0, test_s=3.0)
    compared(world)
    places = [place for place, _, _ in world.shown]
    assert places[:3] == [f"round 1 of up to 30, case {at} of 3" for at in (1, 2, 3)]
    assert places[3] == "round 2 of up to 30, case 1 of 3, 1 min 31 s to 8 min 2 s left"
    assert places[20] == "round 7 of up to 30, case 3 of 3, under 1 s to 6 min 31 s left"


def test_a_faster_head_has_the_rounds_that_show_it() -> None:
    _, found, said = compared(World(time=slower("1", -0.2)))
    assert found["1"].shift == pytest.approx(-0.2, abs=0.01)
    assert (found["1"].faster, found["1"].rounds) == (True, 11)
    assert not found["0"].faster
    assert said == ["3 of 3 cases decided in 7 to 11 rounds"]


def test_many_cases_need_more_rounds_than_few() -> None:
    _, found, said = compared(World(time=slower("", 0.06)), count=16)
    assert said == ["16 of 16 cases decided in 13 rounds"]
    assert {paired.decision for paired in found.values()} == {Decision.SLOWER}


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
    comparison, found, _ = compared(World(time=slower("", 0.0), missing={"base": {"t.py::test_2"}}))
    assert set(found) == {"0", "1"}
    lost = comparison.results()["t.py::test_2"]
    assert lost.trouble == ("the base arm could not collect it: it is not there",)


def test_a_module_that_an_arm_does_not_find_says_which_setting_brings_it() -> None:
    error = "t.py: ModuleNotFoundError: No module named 'beside'"
    world = World(time=slower("", 0.0), missing={"base": {"t.py::test_2"}}, errors=(error,))
    (said,) = compared(world)[0].results()["t.py::test_2"].trouble
    assert said.startswith(f"the base arm could not collect it: {error}; is that another editable package, 'editable'")


def test_a_test_that_kills_its_arm_is_out_and_the_rest_goes_on() -> None:
    comparison, found, _ = compared(World(time=slower("", 0.0), dies={("head", "t.py::test_0")}))
    assert set(found) == {"1", "2"}
    assert found["1"].rounds == 7
    assert "SIGSEGV" in comparison.results()["t.py::test_0"].trouble[0]


def test_an_arm_that_loaded_the_others_files_is_a_problem_of_every_verdict() -> None:
    world = World(time=slower("", 0.0), modules={"base": (("/head/kern.py", "2"),), "head": (("/head/kern.py", "2"),)})
    _, found, _ = compared(world)
    assert {problem.code for paired in found.values() for problem in paired.problems} == {"arm-foreign-module"}


def test_where_neither_arm_loads_anything_of_the_package_there_is_nothing_to_tell_them_apart_by(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "helper.py").write_text("1")
    nothing = {"base": (), "head": ()}
    same = dict.fromkeys(nothing, (("tests/helper.py", "1"),))
    for beside, content, bare, code in [
        (same, ("x", "x"), True, True),
        (same, ("x", "y"), True, False),
        ({**same, "head": (("tests/helper.py", "2"),)}, ("x", "x"), False, False),
    ]:
        world = World(time=slower("", 0.06), modules=nothing, beside=beside)
        comparison, found, _ = compared(world, content=content)
        assert comparison.problems == {}
        assert (bool(comparison.bare), {paired.same for paired in found.values()}) == (bare, {code})
        calls = {CaseKey(nodeid=f"t.py::test_{at}"): one for at, one in found.items()}
        told = with_files(calls, comparison, ("t.py",), tmp_path, None)
        edited = ("tests/helper.py",) if bare else ()
        assert {(paired.bare, paired.edited) for paired in told.values()} == {(bare, edited)}


def test_one_arm_alone_that_loads_nothing_of_the_package_is_still_a_problem() -> None:
    comparison, found, _ = compared(World(time=slower("", 0.0), modules={"base": (), "head": PROOF["head"]}))
    assert comparison.bare == {}
    assert {len(paired.problems) for paired in found.values()} == {1}


FILES = "def test_0(): return 1\ndef test_1(): return 1\n"
EDITED = FILES.replace("def test_1(): return 1", "def test_1(): return 2\ndef test_2(): return 3")


def test_a_file_that_the_base_arm_cannot_collect_is_its_own_there_for_tests_that_it_has() -> None:
    lost = {"t.py::test_0", "t.py::test_1", "t.py::test_2"}
    world = World(
        time=slower("0", 0.06), modules=PROOF, missing={"base": lost}, errors=("t.py: ImportError: no new",), own=True
    )
    stage = replace(staged(world, [], []), texts=lambda path: (FILES, EDITED))
    comparison = Comparison((arm("base"), arm("head")), cases(3), stage, Design())
    found = with_files(heard(comparison), comparison, (), Path(), None)
    told = {key.nodeid[-1]: (paired.decision, paired.own_file, paired.own_test) for key, paired in found.items()}
    why = "cannot collect this test file"
    assert told == {"0": (Decision.SLOWER, why, False), "1": (Decision.NOT_SLOWER, why, True)}
    assert comparison.problems == {}
    said = "the base arm could not collect it: t.py: ImportError: no new"
    assert comparison.troubles() == {"t.py::test_2": said}


@pytest.mark.parametrize(
    ("raises", "told", "trouble"),
    [
        ({("base", "1", True)}, {"0": ("", False), "1": ("fails at this test as it is here", True)}, {}),
        (
            {("base", "1", True), ("base", "1", False)},
            {"0": ("", False)},
            {"1": "base: failed: call: TypeError: exact"},
        ),
        ({("head", "1", True)}, {"0": ("", False)}, {"1": "head: failed: call: TypeError: exact"}),
    ],
)
def test_a_test_that_raises_in_the_base_arm_alone_is_run_there_from_its_own_file(raises, told, trouble) -> None:
    world = World(time=slower("1", 0.06), modules=PROOF)
    world.raises = {(side, f"t.py::test_{test}", heads) for side, test, heads in raises}
    stage = replace(staged(world, [], []), texts=lambda path: (FILES, EDITED))
    comparison = Comparison((arm("base"), arm("head")), cases(2), stage, Design())
    found = with_files(heard(comparison), comparison, (), Path(), None)
    seen = {key.nodeid[-1]: (paired.own_file.partition(" (")[0], paired.own_test) for key, paired in found.items()}
    assert seen == told
    assert {nodeid[-1]: text for nodeid, text in comparison.troubles().items()} == trouble
    assert {nodeid[-1] for nodeid in unready(comparison)} == {one for one in trouble if trouble[one].startswith("base")}
    if "1" in told:
        assert {key.nodeid[-1]: paired.decision for key, paired in found.items()}["1"] is Decision.SLOWER


def test_a_test_that_raises_in_both_versions_of_one_file_has_no_other_to_be_tried_with() -> None:
    world = World(time=slower("1", 0.0), modules=PROOF, raises={("base", "t.py::test_1", True)})
    stage = replace(staged(world, [], []), texts=lambda path: (FILES, FILES))
    comparison = Comparison((arm("base"), arm("head")), cases(2), stage, Design())
    heard(comparison)
    assert comparison.troubles() == {"t.py::test_1": "base: failed: call: TypeError: exact"}
    assert len(world.spawned) == 2 * 7
    assert unready(comparison) == {}, "the change does not edit it: that the base fails is no matter of its file"


def test_finished_rounds_are_taken_up_again() -> None:
    world = World(time=slower("1", 0.06), modules=PROOF)
    first, found, _ = compared(world)
    before = len(world.spawned)
    again = Comparison((arm("base"), arm("head")), cases(3), staged(world, [], []), Design())
    again.resume([one for one in first.rounds if one.number != 10])
    repeated = heard(again)
    assert len(world.spawned) == before + 2
    assert repeated[CaseKey(nodeid="t.py::test_1")].differences == found["1"].differences


def test_rounds_of_tests_that_are_gone_are_forgotten() -> None:
    comparison = Comparison((arm("base"), arm("head")), cases(1), staged(World(time=slower("", 0)), [], []), Design())
    comparison.resume([PairedRound(nodeid="t.py::gone", phase=ROUND, number=0)])
    assert comparison.rounds == []


def test_a_case_pays_for_those_that_are_compared_with_other_commits() -> None:
    world = World(time=slower("1", 0.06))
    _, found, _ = compared(world, among=40)
    assert [found[name].decision for name in "01"] == [Decision.NOT_SLOWER, Decision.SLOWER]
    assert [found[name].rounds for name in "01"] == [7, 14]
    assert {paired.revision for paired in found.values()} == {False}


def test_turns_are_short_on_the_host_and_longer_on_a_device() -> None:
    seen = Samples(durations=(1e6,), timer="host", stop=Stop.COUNT)
    assert _turn(Plan(), Beat(), seen)[0].budget_ns == 5e6
    assert _turn(Plan(), Beat(), replace(seen, timer="events"))[0].budget_ns == 20e6
    assert _turn(Plan(), Beat(), replace(seen, notes=((IDLE, "waits"),)))[0].budget_ns == 20e6


def test_rounds_of_an_arm_that_was_not_itself_are_not_kept() -> None:
    world = World(time=slower("", 0.0), modules={"base": PROOF["head"], "head": PROOF["head"]})
    kept: list[int] = []
    comparison = Comparison((arm("base"), arm("head")), cases(1), staged(world, [], kept), Design())
    heard(comparison)
    assert kept == []


def test_the_same_code_on_both_sides_is_known() -> None:
    same = {"base": (("/base/kern.py", "1"),), "head": (("/head/kern.py", "1"),)}
    for content, modules, expected in [
        (("x", "x"), same, True),
        (("x", "y"), same, False),
        (("", ""), same, False),
        (("x", "x"), PROOF, False),
    ]:
        _, found, _ = compared(World(time=slower("", 0.06), modules=modules), content=content)
        assert {paired.same for paired in found.values()} == {expected}


def test_a_second_child_that_does_not_start_leaves_no_first_one() -> None:
    made: list[ScriptedChild] = []

    class Half(World):
        def spawn(self, spec):
            if self.spawned:
                raise PerfgateError("child-start", "no more processes")
            made.append(super().spawn(spec))
            return made[-1]

    comparison, found, _ = compared(Half(time=slower("", 0.0)), count=1)
    assert not found
    assert comparison.results()["t.py::test_0"].trouble == ("no more processes",)
    assert comparison.troubles()["t.py::test_0"] == "no more processes"
    assert made[0].closed


def test_machine_code_alone_is_read_once_and_kept_for_its_limits() -> None:
    world = World(time=slower("9", 0.0), static={"t.py::test_1"})
    comparison, found, _ = compared(world, count=2)
    assert set(found) == {"0"}
    read = comparison.results()["t.py::test_1"]
    assert [[one.identity.timer for one in captures] for captures in read.captures] == [["cubin"]]
    assert world.turns.count(("head", "t.py::test_1")) == world.turns.count(("base", "t.py::test_1")) == 1


Slower = Callable[[int], float]


def capture(nodeid: str, call: int, time: float) -> Capture:
    samples = Samples(durations=(time,) * 5, cpu=(time,) * 5, timer="host", stop=Stop.BUDGET, batch=1)
    key = CaseKey(nodeid=nodeid, name=f"call {call}")
    return Capture(key=key, samples=(samples,), device=DEVICE, identity=Identity(device="host-x"))


def round_of(nodeid: str, number: int, calls: int, slower: Slower) -> PairedRound:
    noise = 1 + 0.002 * ((number * 7) % 5)
    base = tuple(capture(nodeid, call, 1e6) for call in range(calls))
    head = tuple(capture(nodeid, call, 1e6 * noise * (1 + slower(call))) for call in range(calls))
    return PairedRound(nodeid=nodeid, phase=ROUND, number=number, base=base, head=head)


def measured(tests: int, calls: int, rounds: int, slower: Slower, said: list[str]) -> Comparison:
    """A comparison of which every round was played before."""
    stage = staged(World(time=lambda *_: 0.0), said, [])
    comparison = Comparison((arm("base"), arm("head")), cases(tests), stage, Design())
    played = (round_of(nodeid, number, calls, slower) for nodeid in comparison.cases for number in range(rounds))
    comparison.resume(played)
    return comparison


def decisions(found: dict[CaseKey, Paired]) -> set[Decision]:
    return {paired.decision for paired in found.values()}


@pytest.mark.parametrize(("tests", "calls", "rounds"), [(1, 11, 13), (6, 2, 13), (4, 3, 13), (1, 21, 14), (1, 1, 9)])
def test_rounds_are_enough_to_confirm_every_call(tests: int, calls: int, rounds: int) -> None:
    said: list[str] = []
    hearing = Hearing(measured(tests, calls, 30, lambda call: 0.5, said), lambda key: 0.03)
    hearing.decide()
    found = hearing.paired(revision=True)
    assert len(found) == tests * calls
    assert decisions(found) == {Decision.SLOWER}
    assert {paired.rounds for paired in found.values()} == {rounds}


def test_a_call_that_is_decided_stays_so_while_another_of_its_test_has_rounds() -> None:
    comparison = measured(1, 11, 30, lambda call: 0.5 if call == 3 else 0.0, [])
    hearing = Hearing(comparison, lambda key: 0.03)
    hearing.decide()
    found = {key.name: paired for key, paired in hearing.paired(revision=False).items()}
    slow = found.pop("call 3")
    assert (slow.decision, slow.rounds) == (Decision.SLOWER, 13)
    assert {(paired.decision, paired.rounds) for paired in found.values()} == {(Decision.NOT_SLOWER, 7)}


NODE = "t.py::test_0"
KEY = CaseKey(nodeid=NODE)
SOUND = (100.0, 101.0)


def recorded(times: tuple[float, ...] | None, name: str = "") -> tuple[Capture, ...]:
    """What a test hands over; nothing at all where it never got to it."""
    if times is None:
        return ()
    key = CaseKey(nodeid=NODE, name=name)
    samples = Brought(key=key, kind="record", durations=list(times)).samples()
    return (Capture(key=key, samples=samples, device=DEVICE, identity=Identity(device="host-x", timer="record")),)


def rounds(base: list[tuple[float, ...] | None], head: list[tuple[float, ...] | None]) -> list[PairedRound]:
    return [
        PairedRound(nodeid=NODE, phase=ROUND, number=at, base=recorded(before), head=recorded(after))
        for at, (before, after) in enumerate(zip(base, head))
    ]


def comparison_of(told: list[PairedRound]) -> Comparison:
    comparison = Comparison((arm("base"), arm("head")), cases(2), staged(World(time=lambda *_: 1.0), [], []), Design())
    comparison.resume(told)
    return comparison


WRONG = [(0.0,), (math.nan,), (math.inf,), (-1.0,), (1e-300,), (1e300,), (100.0, 0.0), (100.0, math.nan), (), None]


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("side", [0, 1])
def test_a_round_without_a_time_is_no_pair_and_the_others_are(wrong: tuple[float, ...] | None, side: int) -> None:
    arms = [[SOUND] * 6, [SOUND] * 6]
    arms[side] = [wrong, SOUND, wrong, SOUND, SOUND, SOUND]
    told = rounds(*arms)
    (pairs,) = pairs_of(told, ROUND).values()
    assert len(pairs.base) == 4
    assert math.isfinite(finding(pairs, 0.03).shift)
    assert pairs_of(told, "slower 0.05") == {}
    (why,) = untimed_on(side, told).values()
    assert "reads" in why or "discarded" in why or "no number" in why or why.startswith("timed in 4 of 6 rounds: ")
    assert untimed_on(1 - side, told) == {}


@pytest.mark.parametrize("wrong", WRONG)
def test_finished_rounds_without_a_single_time_are_taken_up_and_compare_nobody(wrong: Any) -> None:
    assert comparison_of(rounds([wrong] * 5, [wrong] * 5)).pairs(ROUND) == {}
    assert comparison_of(rounds([wrong] * 5, [SOUND] * 5)).pairs(ROUND) == {}


def test_the_arm_that_has_no_time_is_named(tmp_path: Path) -> None:
    bad = comparison_of(rounds([SOUND] * 5, [SOUND, (0.0,), SOUND, SOUND, SOUND]))
    assert bad.troubles() == {NODE: "head: sample 1 of 1 reads 0.0 ns"}
    assert untimed_in(bad.arms, bad.rounds, (0,)) == {}
    before, fine = comparison_of(rounds([(0.0,)] * 5, [SOUND] * 5)), comparison_of(rounds([SOUND] * 5, [SOUND] * 5))
    assert untimed_in(before.arms, before.rounds, (0,)) == {KEY: "base: sample 1 of 1 reads 0.0 ns"}
    assert fine.troubles() == {}
    found = {KEY: Paired(decision=Decision.NOT_SLOWER, differences=(), shift=0.0)}
    assert with_files(found, bad, (), tmp_path, None) == {}


def test_a_round_that_failed_says_so_and_counts_for_no_time() -> None:
    told = rounds([SOUND, None], [SOUND, SOUND])
    told[1] = PairedRound(nodeid=NODE, phase=ROUND, number=1, trouble="base: failed: x", head=recorded(SOUND))
    assert comparison_of(told).troubles() == {NODE: "base: failed: x"}
    assert untimed_on(0, told) == untimed_on(1, told) == {}
    told[0] = rounds([(0.0,)], [SOUND])[0]
    assert comparison_of(told).troubles() == {NODE: "base: failed: x"}


def test_a_record_that_was_empty_in_some_rounds_is_no_sitting() -> None:
    tools: Any = SimpleNamespace(roofed=lambda device: device, environment=lambda: None)

    def problems(*takes: tuple[float, ...]) -> list[str]:
        (one,) = measurements(CaseResult(case=cases(1)[0], captures=tuple(map(recorded, takes))), tools)
        return [problem.what for problem in one.problems]

    assert problems(SOUND, (), SOUND) == ["measured in 2 of 3 rounds: the call does not always happen"]
    assert problems(SOUND, SOUND) == []
    assert problems((), ()) == []


def test_processor_time_that_a_coarse_clock_reads_as_none_is_no_evidence() -> None:
    def took(*cpu: float) -> Capture:
        one = Samples(durations=(100.0, 100.0, 101.0), cpu=cpu, timer="host", stop=Stop.COUNT)
        return Capture(key=KEY, samples=(one,), device=DEVICE, identity=Identity(device="host-x"))

    pairs = pair_of([(took(0.0, 0.0, 100.0), took(0.0, 0.0, 100.0))] * 5)
    assert pairs.base == pairs.head == (100.0,) * 5
    mixed = pair_of([(took(99.0, 99.0, 99.0), took(99.0, 99.0, 99.0))] * 4 + [(took(), took(99.0, 99.0, 99.0))])
    assert set(mixed.base) == {100.0}
