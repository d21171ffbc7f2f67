"""Tests of app/spread: the processes of the next round."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.app.spread import NextRound, Start
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.protocol import Job, Ready
from tests.unit.app.scripted_pairs import World, arm, cases, compared, slower, spec

CARD = Device(key="card", name="card", kind="gpu", uuid="GPU-1")


def card(**more) -> World:
    return World(**{"time": slower("", 0.0), "device": CARD, "untouched": True, "timer": "events", **more})


def test_from_the_second_round_on_the_next_processes_start_before_this_rounds_turns() -> None:
    world = card()
    comparison, found, _ = compared(world, count=2)
    assert {paired.rounds for paired in found.values()} == {7}
    turns = len(world.turns) // 7
    expected = [(1, 0), (2, turns), *((seed, (seed - 2) * turns) for seed in range(3, 9))]
    assert world.begun == [start for start in expected for _ in ("base", "head")]
    assert world.open == 0
    assert len(comparison.rounds) == 7 * 2


@pytest.mark.parametrize(
    "other",
    [{"device": replace(CARD, kind="host")}, {"untouched": False}, {"timer": "host"}],
    ids=["the host measures", "collecting touched the device", "the host's clock measures"],
)
def test_nothing_starts_beside_times_that_it_could_disturb(other) -> None:
    world = card(**other)
    compared(world, count=1)
    turns = len(world.turns) // 7
    assert world.begun[::2] == [(seed, (seed - 1) * turns) for seed in range(1, 8)]


def test_what_is_decided_is_skipped_by_processes_that_had_it_in_their_job() -> None:
    world = card(time=slower("1", 0.06))
    _, found, _ = compared(world, count=2)
    assert {name: paired.rounds for name, paired in found.items()} == {"0": 7, "1": 10}
    assert len(world.spawned) == 2 * (10 + 1)
    assert world.open == 0


def test_a_run_holds_the_leases_of_its_devices_once_it_knows_them() -> None:
    world = card()
    compared(world, count=2)
    assert world.leased == [["1"]]


def test_processes_that_stand_for_others_are_ended() -> None:
    world, many = card(), tuple(cases(2))
    early = NextRound(world)
    wanted = Start(spec=spec(arm("base"), many, 2), job=Job(cases=many))
    fewer = replace(wanted, job=Job(cases=many[:1]))
    for asked, served in (
        (wanted, True),
        (fewer, True),
        (replace(wanted, job=Job(cases=tuple(cases(3)))), False),
        (replace(wanted, spec=spec(arm("base"), many, 3)), False),
        (replace(wanted, job=Job(cases=many, files=(("t.py", ""),))), False),
    ):
        early.begin([wanted])
        taken = early.take([asked])
        assert (len(taken), world.open) == ((1, 1) if served else (0, 0))
        for child in taken:
            child.close()


class Failing(World):
    """Its second process does not start, or none takes its job."""

    def spawn(self, spec):
        if self.spawned:
            raise PerfgateError("child-start", "no such file")
        return super().spawn(spec)


def test_a_start_that_fails_is_complained_of_by_its_own_round() -> None:
    world = Failing(time=slower("", 0.0))
    early = NextRound(world)
    starts = [Start(spec=spec(arm(name), cases(1), 2), job=Job(cases=tuple(cases(1)))) for name in ("base", "head")]
    early.begin(starts)
    assert early.take(starts) == []
    assert world.open == 0


def test_a_child_that_died_while_it_waited_raises_when_its_round_begins(monkeypatch) -> None:
    world = card()
    child = world.spawn(spec(arm("base"), cases(1), 2))

    def dead(command) -> None:
        raise PerfgateError("child-crashed", "the base arm died of SIGSEGV")

    monkeypatch.setattr(child, "send", dead)
    monkeypatch.setattr(world, "spawn", lambda spec: child)
    early, start = NextRound(world), Start(spec=spec(arm("base"), cases(1), 2), job=Job(cases=tuple(cases(1))))
    early.begin([start])
    (waiting,) = early.take([start])
    with pytest.raises(PerfgateError) as error:
        waiting.send(start.job)
    assert error.value.code.name == "child-crashed"
    assert (waiting.label, waiting.tail()) == ("base", "")


def test_a_waiting_child_says_what_it_collected() -> None:
    early = NextRound(card())
    start = Start(spec=spec(arm("base"), cases(1), 2), job=Job(cases=tuple(cases(1))))
    early.begin([start])
    (waiting,) = early.take([start])
    waiting.send(start.job)
    assert waiting.receive(1.0).untouched
    assert isinstance(waiting.receive(1.0), Ready)
