"""Times that are none, in either arm: their case alone goes without a comparison, and why is said."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.app.changed_project import with_files
from pytest_perfgate.app.compare_arms import ROUND, Comparison, pairs_of, untimed_in, untimed_on
from pytest_perfgate.app.measure import measurements
from pytest_perfgate.core.judge.rounds import Design, finding
from pytest_perfgate.core.judge.samples import pair_of
from pytest_perfgate.model.measurement import Identity, Samples, Stop
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.protocol import Capture, CaseResult
from pytest_perfgate.model.verdict import Decision, Paired, PairedRound
from pytest_perfgate.plugin.calls import Brought
from tests.unit.app.duets import DEVICE, World, arm, cases
from tests.unit.app.test_compare_arms import staged

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


def compared(told: list[PairedRound]) -> Comparison:
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
    assert compared(rounds([wrong] * 5, [wrong] * 5)).pairs(ROUND) == {}
    assert compared(rounds([wrong] * 5, [SOUND] * 5)).pairs(ROUND) == {}


def test_the_arm_that_has_no_time_is_named(tmp_path: Path) -> None:
    bad = compared(rounds([SOUND] * 5, [SOUND, (0.0,), SOUND, SOUND, SOUND]))
    assert bad.troubles() == {NODE: "head: sample 1 of 1 reads 0.0 ns"}
    assert untimed_in(bad.arms, bad.rounds, (0,)) == {}
    before, fine = compared(rounds([(0.0,)] * 5, [SOUND] * 5)), compared(rounds([SOUND] * 5, [SOUND] * 5))
    assert untimed_in(before.arms, before.rounds, (0,)) == {KEY: "base: sample 1 of 1 reads 0.0 ns"}
    assert fine.troubles() == {}
    found = {KEY: Paired(decision=Decision.NOT_SLOWER, differences=(), shift=0.0)}
    assert with_files(found, bad, (), tmp_path, None) == {}


def test_a_round_that_failed_says_so_and_counts_for_no_time() -> None:
    told = rounds([SOUND, None], [SOUND, SOUND])
    told[1] = PairedRound(nodeid=NODE, phase=ROUND, number=1, trouble="base: failed: x", head=recorded(SOUND))
    assert compared(told).troubles() == {NODE: "base: failed: x"}
    assert untimed_on(0, told) == untimed_on(1, told) == {}
    told[0] = rounds([(0.0,)], [SOUND])[0]
    assert compared(told).troubles() == {NODE: "base: failed: x"}


def test_a_record_that_was_empty_in_some_rounds_is_no_sitting() -> None:
    tools: Any = SimpleNamespace(roofed=lambda device: device, environment=lambda: None)

    def problems(*takes: tuple[float, ...]) -> list[str]:
        (one,) = measurements(CaseResult(case=cases(1)[0], captures=tuple(map(recorded, takes))), tools)
        return [problem.what for problem in one.problems]

    assert problems(SOUND, (), SOUND) == ["measured in 2 of 3 rounds: the call does not always happen"]
    assert problems(SOUND, SOUND) == []
    assert problems((), ()) == []


def test_processor_time_that_a_coarse_clock_reads_as_none_is_no_witness() -> None:
    def took(*cpu: float) -> Capture:
        one = Samples(durations=(100.0, 100.0, 101.0), cpu=cpu, timer="host", stop=Stop.COUNT)
        return Capture(key=KEY, samples=(one,), device=DEVICE, identity=Identity(device="host-x"))

    pairs = pair_of([(took(0.0, 0.0, 100.0), took(0.0, 0.0, 100.0))] * 5)
    assert pairs.base == pairs.head == (100.0,) * 5
    mixed = pair_of([(took(99.0, 99.0, 99.0), took(99.0, 99.0, 99.0))] * 4 + [(took(), took(99.0, 99.0, 99.0))])
    assert set(mixed.base) == {100.0}
