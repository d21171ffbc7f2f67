"""Tests of app/spread: the processes of the next round."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.app.compare_arms import Comparison
from pytest_perfgate.app.spread import NextRound, Start
from pytest_perfgate.core.changes.own_files import OwnFiles
from pytest_perfgate.core.judge.rounds import Design
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Identity
from pytest_perfgate.model.plan import CaseKey, Decision
from pytest_perfgate.model.protocol import START, Capture, ChildJob, ChildSpec, Collected, Ready, Taken
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
    spec,
    staged,
)

CARD = Device(key="card", name="card", kind="gpu", uuid="GPU-1")


def card(**more) -> World:
    return World(**{"time": slower("", 0.0), "device": CARD, "untouched": True, "timer": "events", **more})


def test_from_the_second_round_on_the_next_processes_start_before_this_rounds_turns() -> None:
    world = card()
    comparison, results, _ = compared(world, count=2)
    assert {paired.rounds for paired in results.values()} == {7}
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
    _, results, _ = compared(world, count=2)
    assert {name: paired.rounds for name, paired in results.items()} == {"0": 7, "1": 10}
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
    taken = early.waiting.take([change(start) for start in starts])
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
    assert early.waiting.take(starts) == []
    assert world.open == 0


def test_a_child_that_died_while_it_waited_raises_when_its_round_begins(monkeypatch) -> None:
    def dead(child, command) -> None:
        raise PerfgateError("child-crashed", "the base build died of SIGSEGV")

    monkeypatch.setattr(ScriptedChild, "send", dead)
    early, starts = waiting(card())
    base, _ = early.waiting.take(starts)
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
        raise PerfgateError("child-crashed", "the base build died of SIGKILL")


@pytest.mark.parametrize(("always", "rounds", "starts"), [(False, 7, 2 * (8 + 1)), (True, 4, 2 * (5 + 1))])
def test_processes_that_died_while_they_waited_are_started_once_more(always: bool, rounds: int, starts: int) -> None:
    world = Lossy(time=slower("", 0.0), device=CARD, untouched=True, timer="events")
    world.always = always
    comparison, results, _ = compared(world, count=1)
    assert set(results) == (set() if always else {"0"}), "a test that stopped to run has no verdict of its own"
    played = sum(not one.trouble for one in comparison.rounds)
    assert (played, len(world.spawned), world.open) == (rounds, starts, 0)
    trouble = comparison.results()["t.py::test_0"].trouble
    assert trouble == (("the base build died of SIGKILL",) if always else ())


def test_a_waiting_child_says_what_it_collected() -> None:
    early, starts = waiting(card())
    base, _ = early.waiting.take(starts)
    base.send(starts[0].job)
    assert base.receive(1.0).untouched
    assert isinstance(base.receive(1.0), Ready)


class Forking(World):
    """Its processes wait where they are asked to, and are forked."""

    refuses, crashes = "", 0

    def spawn(self, spec: ChildSpec) -> ForkingChild:
        super().spawn(spec)
        return ForkingChild(spec, self)


class ForkingChild(ScriptedChild):
    start = ""

    def send(self, command: object) -> None:
        if isinstance(command, ChildJob) and command.preload:
            self._out.append(Collected(nodeids=(), untouched=True))
            return
        self.start = command.start if isinstance(command, ChildJob) else self.start
        super().send(command)

    def receive(self, timeout_s: float) -> object:
        answer = super().receive(timeout_s)
        if not isinstance(answer, Taken) or not self.start:
            return answer
        self._taken[-1] = replace(answer.samples, notes=((START, self.start),))
        return replace(answer, samples=self._taken[-1])

    def fork(self) -> ForkingChild:
        if self._world.refuses:
            raise PerfgateError("child-start", self._world.refuses)
        self._world.open += 1
        return ForkingChild(self._spec, self._world)

    def __init__(self, spec: ChildSpec, world: World) -> None:
        super().__init__(spec, world)
        self._spec = spec


def forked(world: World, *, spread: float | None = 0.002, count: int = 1):
    """What comes of a comparison whose calls are known to scatter no more where they are forked."""
    world.modules = PROOF
    stage = replace(staged(world, [], []), forks=lambda key, device: spread if device == CARD.key else None)
    comparison = Comparison((arm("base"), arm("head")), cases(count), stage, Design())
    results = heard(comparison)
    starts = [
        [dict(side[0].samples[-1].notes).get(START, "") for side in (one.base, one.head)] for one in comparison.rounds
    ]
    return {key.nodeid[-1]: paired for key, paired in results.items()}, starts


def forking(**more) -> Forking:
    return Forking(**{"time": slower("1", 0.06), "device": CARD, "untouched": True, "timer": "events", **more})


def test_three_preloads_a_build_decide_and_each_stands_for_three_rounds() -> None:
    world = forking()
    results, starts = forked(world, count=2)
    decided = {name: (one.decision, one.rounds) for name, one in results.items()}
    assert decided == {"0": (Decision.NOT_SLOWER, 10), "1": (Decision.SLOWER, 10)}
    assert [seed for seed, _ in world.begun][:8] == [1, 1, 2, 2, 5, 5, 8, 8], "both sides share the seed"
    reasons = [(base.partition(":")[0], base == head) for base, head in starts[::2]]
    expected = ["", *(f"fork of preload {seed}" for seed in (2, 5, 8) for _ in range(3))]
    assert reasons == [(text, True) for text in expected]
    assert "PYTORCH_NVML_BASED_CUDA_CHECK=1" in starts[-1][0]
    assert "OMP_NUM_THREADS=1" in starts[-1][0]
    assert world.open == 0


def test_a_preload_starts_while_the_last_round_of_the_one_before_measures() -> None:
    world = forking(time=slower("", 0.0))
    forked(world)
    turns = len(world.turns) // 10
    assert world.begun[2:8:2] == [(2, turns), (5, 3 * turns), (8, 6 * turns)]


@pytest.mark.parametrize("other", [{"device": replace(CARD, kind="host")}, {"timer": "host"}])
def test_what_the_host_measures_is_never_forked(other) -> None:
    world = forking(**other)
    _, starts = forked(world)
    assert {text for both in starts for text in both} == {""}
    assert len(world.spawned) == 2 * len(starts)


@pytest.mark.parametrize(("spread", "refuses"), [(None, ""), (0.002, "2 threads run once all is imported")])
def test_what_is_not_forked_has_fresh_interpreters_and_says_why(spread, refuses) -> None:
    world = forking()
    world.refuses = refuses
    _, starts = forked(world, spread=spread)
    why = refuses or "no A/A pairs on this machine show that forks of t.py::test_0 scatter no more"
    assert starts == [["", ""], *([[f"fresh interpreter: {why}"] * 2] * (len(starts) - 1))]
    assert world.open == 0
