"""Tests of app/compare_arms: calls of one test, and rounds without a time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.app.changed_project import with_files
from pytest_perfgate.app.compare_arms import ROUND, Comparison, pairs_of, untimed_in, untimed_on
from pytest_perfgate.app.measure import measurements
from pytest_perfgate.app.screening import Screening
from pytest_perfgate.core.judge.rounds import Design, one_look
from pytest_perfgate.core.judge.samples import pair_of
from pytest_perfgate.model.measurement import Identity, Samples, Stop
from pytest_perfgate.model.plan import CaseKey, Decision
from pytest_perfgate.model.protocol import Capture, CaseResult
from pytest_perfgate.model.verdict import EQUAL_TIMES, Paired, PairedRound
from pytest_perfgate.plugin.calls import Brought
from tests.unit.app.scripted_pairs import (
    DEVICE,
    PROOF,
    World,
    arm,
    cases,
    heard,
    staged,
)

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


def measured(tests: int, calls: int, rounds: int, slower: Slower, lines: list[str]) -> Comparison:
    """A comparison of which every round was played before."""
    stage = staged(World(time=lambda *_: 0.0), lines, [])
    comparison = Comparison((arm("base"), arm("head")), cases(tests), stage, Design())
    played = (round_of(nodeid, number, calls, slower) for nodeid in comparison.cases for number in range(rounds))
    comparison.resume(played)
    return comparison


def decisions(results: dict[CaseKey, Paired]) -> set[Decision]:
    return {paired.decision for paired in results.values()}


@pytest.mark.parametrize(("tests", "calls", "rounds"), [(1, 11, 13), (6, 2, 13), (4, 3, 13), (1, 21, 14), (1, 1, 9)])
def test_rounds_are_enough_to_confirm_every_call(tests: int, calls: int, rounds: int) -> None:
    lines: list[str] = []
    screening = Screening(measured(tests, calls, 30, lambda call: 0.5, lines), lambda key: 0.03)
    screening.decide()
    results = screening.paired(revision=True)
    assert len(results) == tests * calls
    assert decisions(results) == {Decision.SLOWER}
    assert {paired.rounds for paired in results.values()} == {rounds}


def test_a_call_that_is_decided_stays_so_while_another_of_its_test_has_rounds() -> None:
    comparison = measured(1, 11, 30, lambda call: 0.5 if call == 3 else 0.0, [])
    screening = Screening(comparison, lambda key: 0.03)
    screening.decide()
    results = {key.name: paired for key, paired in screening.paired(revision=False).items()}
    slow = results.pop("call 3")
    assert (slow.decision, slow.rounds) == (Decision.SLOWER, 13)
    assert {(paired.decision, paired.rounds) for paired in results.values()} == {(Decision.NOT_SLOWER, 7)}


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


def comparison_of(played: list[PairedRound]) -> Comparison:
    comparison = Comparison((arm("base"), arm("head")), cases(2), staged(World(time=lambda *_: 1.0), [], []), Design())
    comparison.resume(played)
    return comparison


WRONG = [(0.0,), (math.nan,), (math.inf,), (-1.0,), (1e-300,), (1e300,), (100.0, 0.0), (100.0, math.nan), (), None]


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("side", [0, 1])
def test_a_round_without_a_time_is_no_pair_and_the_others_are(wrong: tuple[float, ...] | None, side: int) -> None:
    arms = [[SOUND] * 6, [SOUND] * 6]
    arms[side] = [wrong, SOUND, wrong, SOUND, SOUND, SOUND]
    played = rounds(*arms)
    (pairs,) = pairs_of(played, ROUND).values()
    assert len(pairs.base) == 4
    assert math.isfinite(one_look(pairs, 0.03).shift)
    assert pairs_of(played, "slower 0.05") == {}
    (why,) = untimed_on(side, played).values()
    assert "reads" in why or "discarded" in why or "not numbers" in why or why.startswith("timed in 4 of 6 rounds: ")
    assert untimed_on(1 - side, played) == {}


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
    results = {KEY: Paired(decision=Decision.NOT_SLOWER, differences=(), shift=0.0)}
    assert with_files(results, bad, (), tmp_path, None) == {}


def test_recorded_times_that_are_equal_in_each_round_compare_nothing(tmp_path: Path) -> None:
    results = {KEY: Paired(decision=Decision.NOT_SLOWER, differences=(0.0,) * 5)}
    one_file = comparison_of(rounds([SOUND] * 5, [SOUND] * 5))
    assert with_files(results, one_file, (), tmp_path, None)[KEY].shared == (EQUAL_TIMES,)
    measured = comparison_of(rounds([SOUND] * 5, [*[SOUND] * 4, (100.0, 102.0)]))
    assert with_files(results, measured, (), tmp_path, None)[KEY].shared == ()
    timed = comparison_of([])
    timed_here = with_files(heard(timed), timed, (), tmp_path, None)
    assert {one.shared for one in timed_here.values()} == {()}, "a clock of the tests that always reads the same"


def test_what_has_no_time_in_three_rounds_has_no_further_round() -> None:
    world = World(
        time=lambda side, nodeid, number: 0.0 if nodeid.endswith("0") and side == "head" else 1e6, modules=PROOF
    )
    comparison = Comparison((arm("base"), arm("head")), cases(2), staged(world, [], []), Design())
    screening = Screening(comparison, lambda key: 0.03)
    screening.decide()
    played = Counter(one.nodeid for one in comparison.rounds)
    assert played == {"t.py::test_0": 3, "t.py::test_1": 7}
    assert {key.nodeid for key in screening.paired(revision=True)} == {"t.py::test_1"}
    assert comparison.troubles().keys() == {"t.py::test_0"}


def test_a_round_that_failed_says_so_and_counts_for_no_time() -> None:
    played = rounds([SOUND, None], [SOUND, SOUND])
    played[1] = PairedRound(nodeid=NODE, phase=ROUND, number=1, trouble="base: failed: x", head=recorded(SOUND))
    assert comparison_of(played).troubles() == {NODE: "base: failed: x"}
    assert untimed_on(0, played) == untimed_on(1, played) == {}
    played[0] = rounds([(0.0,)], [SOUND])[0]
    assert comparison_of(played).troubles() == {NODE: "base: failed: x"}


def test_a_record_that_was_empty_in_some_rounds_is_no_run() -> None:
    tools: Any = SimpleNamespace(with_measured_ceilings=lambda device: device, environment=lambda: None)

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
