"""Tests of app/spread: the processes of the next round."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.app.lockstep import OwnFiles
from pytest_perfgate.app.spread import NextRound, Start
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Identity
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.protocol import Capture, Ready
from pytest_perfgate.model.verdict import PairedRound
from tests.unit.app.scripted_pairs import ScriptedChild, World, arm, cases, compared, slower, spec, staged

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


def waiting(world: World, count: int = 2) -> tuple[NextRound, list[Start]]:
    """The next round's processes, and what they were started with."""
    many = cases(count)
    identity, samples = Identity(device="card", timer="events"), ()
    met = [Capture(key=CaseKey(nodeid=one.nodeid), samples=samples, device=CARD, identity=identity) for one in many]
    rounds = [PairedRound(nodeid=one.key.nodeid, phase="round", number=0, base=(one,), head=(one,)) for one in met]
    early = NextRound(staged(world, [], []), (arm("base"), arm("head")), OwnFiles(None))
    early.begin(many, 2, rounds)
    return early, early.starts(many, 2)


@pytest.mark.parametrize(
    ("change", "served"),
    [
        (lambda start: start, True),
        (lambda start: replace(start, job=replace(start.job, cases=start.job.cases[:1])), True),
        (lambda start: replace(start, job=replace(start.job, cases=tuple(cases(3)))), False),
        (lambda start: replace(start, spec=spec(arm("base"), (), 3)), False),
        (lambda start: replace(start, job=replace(start.job, files=(("t.py", ""),))), False),
    ],
    ids=["the same", "fewer tests", "more tests", "another seed", "files of its own"],
)
def test_only_processes_that_stand_for_what_is_wanted_are_taken(change, served: bool) -> None:
    world = card()
    early, starts = waiting(world)
    taken = early.take([change(start) for start in starts])
    assert (len(taken), world.open) == ((2, 2) if served else (0, 0))


class Failing(World):
    """Its second process does not start."""

    def spawn(self, spec):
        if self.spawned:
            raise PerfgateError("child-start", "no such file")
        return super().spawn(spec)


def test_a_start_that_fails_is_complained_of_by_its_own_round() -> None:
    world = Failing(time=slower("", 0.0))
    early, starts = waiting(world)
    assert early.take(starts) == []
    assert world.open == 0


def test_a_child_that_died_while_it_waited_raises_when_its_round_begins(monkeypatch) -> None:
    def dead(child, command) -> None:
        raise PerfgateError("child-crashed", "the base arm died of SIGSEGV")

    monkeypatch.setattr(ScriptedChild, "send", dead)
    early, starts = waiting(card())
    base, _ = early.take(starts)
    with pytest.raises(PerfgateError) as error:
        base.send(starts[0].job)
    assert error.value.code.name == "child-crashed"
    assert (base.label, base.tail()) == ("base", "")


class Lossy(World):
    """What starts early for the fifth round dies while it waits, or whatever starts for it does."""

    always = False

    def spawn(self, spec):
        child, seed = super().spawn(spec), int(dict(spec.env)["PYTHONHASHSEED"])
        if seed == 5 and (self.always or [one for one, _ in self.begun].count(5) <= 2):
            child.receive = self._dead
        return child

    @staticmethod
    def _dead(timeout_s: float) -> object:
        raise PerfgateError("child-crashed", "the base arm died of SIGKILL")


@pytest.mark.parametrize(("always", "rounds", "starts"), [(False, 7, 2 * (8 + 1)), (True, 4, 2 * (5 + 1))])
def test_processes_that_died_while_they_waited_are_started_once_more(always: bool, rounds: int, starts: int) -> None:
    world = Lossy(time=slower("", 0.0), device=CARD, untouched=True, timer="events")
    world.always = always
    comparison, found, _ = compared(world, count=1)
    assert (found["0"].rounds, len(world.spawned), world.open) == (rounds, starts, 0)
    trouble = comparison.results()["t.py::test_0"].trouble
    assert trouble == (("the base arm died of SIGKILL",) if always else ())


def test_a_waiting_child_says_what_it_collected() -> None:
    early, starts = waiting(card())
    base, _ = early.take(starts)
    base.send(starts[0].job)
    assert base.receive(1.0).untouched
    assert isinstance(base.receive(1.0), Ready)
