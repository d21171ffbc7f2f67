"""Cases spread over devices, with children that only pretend: who ran where, when, under which lease."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.app.instrument import named_device
from pytest_perfgate.app.measure import ChildSettings, Rounds
from pytest_perfgate.app.spread import Preload, RunDevices, at_once, lane_of, run_spread
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Identity, Samples, Stop
from pytest_perfgate.model.plan import Case, CaseKey, Plan
from pytest_perfgate.model.protocol import (
    Bye,
    Capture,
    ChildJob,
    ChildSpec,
    Collected,
    Entered,
    Finished,
    Go,
    Measure,
    Ready,
    Taken,
)

SAMPLES = Samples(durations=(1.0,), timer="fake", stop=Stop.COUNT)


class Child:
    """Runs its job's cases; what each is measured on is read off its name."""

    label = "child"

    def __init__(self, spawner, env) -> None:
        self.spawner, self.env, self.answers, self.closed = spawner, env, [], threading.Event()

    def send(self, command) -> None:
        if isinstance(command, ChildJob):
            self.cases = list(command.cases)
            nodeids = tuple(c.nodeid for c in self.cases)
            self.answers = [Collected(nodeids=nodeids, untouched=self.spawner.untouched), self._ready()]
        elif isinstance(command, Go):
            if "static" in self.cases[0].nodeid:
                self.spawner.note(self, self.cases[0].nodeid)
                self.answers += [self._finished(self.cases.pop(0)), self._ready()]
            else:
                self.answers.append(Entered(key=CaseKey(nodeid=self.cases[0].nodeid)))
        elif isinstance(command, Measure):
            nodeid = self.cases[0].nodeid
            self.spawner.note(self, nodeid)
            self.spawner.earlier_timers.append(command.plan.earlier_timer)
            self.answers.append(Taken(key=CaseKey(nodeid=nodeid), samples=SAMPLES))
        else:
            case = self.cases.pop(0)
            self.answers += [self._finished(case), self._ready()]

    def receive(self, timeout_s):
        if self.closed.is_set():
            raise PerfgateError("child-crashed", "the child was closed")
        if isinstance(self.answers[0], Entered) and self.spawner.hangs:
            self.spawner.hanging.set()
            self.closed.wait(60)
            raise PerfgateError("child-crashed", "the child was closed")
        return self.answers.pop(0)

    def close(self) -> None:
        self.closed.set()

    def tail(self) -> str:
        return ""

    def _ready(self):
        return Ready(nodeid=self.cases[0].nodeid) if self.cases else Bye()

    def _finished(self, case) -> Finished:
        kind = "gpu" if "gpu" in case.nodeid else "host"
        capture = Capture(
            key=CaseKey(nodeid=case.nodeid), samples=(SAMPLES,), device=Device(key=kind, name=kind, kind=kind),
            identity=Identity(device=kind, timer="cubin" if "static" in case.nodeid else "graph"),
        )  # fmt: skip
        return Finished(nodeid=case.nodeid, outcome="passed", captures=(capture,))


class ScriptedSpawner:
    def __init__(self) -> None:
        self.ran, self.hangs, self.hanging = [], False, threading.Event()
        self.together: threading.Barrier | None = None
        self.leases, self.spawned = (), 0
        self.earlier_timers: list[str] = []
        self.untouched, self.children, self.spawned_after = True, [], []

    def spawn(self, spec):
        self.spawned += 1
        self.spawned_after.append(len(self.ran))
        self.children.append(Child(self, dict(spec.env)))
        return self.children[-1]

    def note(self, child, nodeid) -> None:
        self.ran.append((nodeid, child.env.get("SEES", ""), self.leases))
        if self.together is not None and child.env.get("SEES"):
            self.together.wait(60)

    def hold(self, names):
        @contextmanager
        def leased():
            self.leases = tuple(names)
            yield
            self.leases = ()

        return leased()

    def where(self, nodeid) -> set[str]:
        return {sees for name, sees, _ in self.ran if name == nodeid}


@pytest.fixture
def spawner() -> ScriptedSpawner:
    return ScriptedSpawner()


def case(name: str, **plan) -> Case:
    return Case(nodeid=f"t.py::{name}", limits=(), plan=Plan(**{"rounds": 2, **plan}))


def cards(count: int, name: str = "H200") -> tuple[Device, ...]:
    return tuple(Device(key="", name=name, kind="gpu", index=i, uuid=f"GPU-{name}{i}") for i in range(count))


def prepared(spawner, cases, devices, *, early=False):
    child_settings = ChildSettings(
        spawner=spawner, spec=lambda some: ChildSpec(argv=(), python=(), cwd=Path(), env=(("A", "1"),)), job=ChildJob(cases=()),
        timeout_s=5, progress=lambda *arguments: None, clock=lambda: 0.0, early=early,
    )  # fmt: skip
    rounds = Rounds(cases, child_settings)
    fleet = RunDevices(
        devices=devices, surroundings=lambda some: {"SEES": ",".join(d.uuid for d in some)}, hold=spawner.hold
    )
    return rounds, fleet


def measured(spawner, cases, devices):
    rounds, fleet = prepared(spawner, cases, devices)
    run_spread(rounds, cases, fleet)
    return rounds.results()


def names_on(lane: int, count: int, many: int, prefix: str) -> list[str]:
    return [n for n in (f"{prefix}{i}" for i in range(200)) if lane_of(f"t.py::{n}", count) == lane][:many]


def test_lanes_measure_at_the_same_time_each_on_its_own_device(spawner) -> None:
    spawner.together = threading.Barrier(2)
    names = [*names_on(0, 2, 2, "gpu"), *names_on(1, 2, 2, "gpu")]
    results = measured(spawner, [case(name, runtime="torch") for name in names], cards(2))
    assert [len(result.captures) for result in results.values()] == [2] * 4
    for at, name in enumerate(names):
        assert spawner.where(f"t.py::{name}") == {f"GPU-H200{at // 2}"}


@pytest.mark.parametrize("count", [1, 2])
def test_children_of_a_lane_run_next_to_its_device(spawner, count: int) -> None:
    rounds, fleet = prepared(spawner, [case("gpu", runtime="torch")], cards(count))
    near: list[tuple[str, ...]] = []
    fleet = replace(fleet, near_cores=lambda some: near.append(tuple(one.uuid for one in some)) or {"SEES": "near"})
    run_spread(rounds, [case("gpu", runtime="torch")], fleet)
    assert near == [(f"GPU-H200{at}",) for at in range(count)]
    assert spawner.where("t.py::gpu") == {"near"}


def test_a_later_round_is_told_the_timer_of_the_first(spawner) -> None:
    measured(spawner, [case("gpu", rounds=3)], ())
    assert spawner.earlier_timers == ["", "graph", "graph"]


def test_all_devices_are_leased_while_lanes_run_and_named_without_their_mark(spawner) -> None:
    measured(spawner, [case("gpu", runtime="torch")], cards(3))
    assert {leases for _, _, leases in spawner.ran} == {("H2000", "H2001", "H2002")}
    assert spawner.leases == ()


def test_a_first_round_shows_what_uses_a_device_and_the_host_runs_alone(spawner) -> None:
    results = measured(spawner, [case("gpu"), case("plain"), case("gpu_named", runtime="cupy")], cards(2))
    assert all(len(result.captures) == 2 for result in results.values())
    assert spawner.where("t.py::plain") == {""}
    visible = [sees for name, sees, _ in spawner.ran if name == "t.py::gpu"]
    assert visible[0] == ""
    assert visible[1].startswith("GPU-")
    assert "" not in spawner.where("t.py::gpu_named")
    hosts = [at for at, (name, _, _) in enumerate(spawner.ran) if name == "t.py::plain"]
    lanes = [at for at, (_, sees, _) in enumerate(spawner.ran) if sees]
    assert hosts[0] < min(lanes)
    assert hosts[1] > max(lanes)


def test_a_later_round_alone_keeps_each_case_on_its_device(spawner) -> None:
    """What uses a device is known by then: no round of it is played with the cases of the host."""
    cases = [case("gpu", rounds=3), case("plain", rounds=3), case("gpu_named", runtime="cupy", rounds=3)]
    rounds, fleet = prepared(spawner, [replace(one, plan=replace(one.plan, rounds=2)) for one in cases], cards(2))
    run_spread(rounds, cases, fleet, range(2))
    before = {one.nodeid: spawner.where(one.nodeid) - {""} for one in cases}
    spawner.ran.clear()
    run_spread(rounds, cases, fleet, range(2, 3))
    assert sorted(name for name, _, _ in spawner.ran) == sorted(one.nodeid for one in cases)
    assert {name: {sees} - {""} for name, sees, _ in spawner.ran} == before


def test_one_device_is_one_lane_that_sees_what_the_run_sees_under_its_lease(spawner) -> None:
    """Another session must not measure between two cases: a child that waits for the next has a context on the card."""
    measured(spawner, [case("gpu", runtime="torch"), case("found"), case("plain")], cards(1))
    assert {(sees, leases) for name, sees, leases in spawner.ran if name == "t.py::gpu"} == {("", ("H2000",))}
    assert {(sees, leases) for name, sees, leases in spawner.ran if name == "t.py::plain"} == {("", ())}
    assert len(spawner.ran) == 6


@pytest.mark.parametrize(
    ("name", "early", "untouched", "spawned_after"),
    [
        ("gpu", True, True, [0, 2, 2, 4]),
        ("gpu", False, True, [0, 2, 4, 6]),
        ("gpu", True, False, [0, 2, 4, 6]),
        ("host", True, True, [0, 2, 4, 6]),
    ],
    ids=["on a device", "no core is free", "imports use the device", "by the host's clock"],
)
def test_the_next_process_starts_while_a_device_is_measured(spawner, name, early, untouched, spawned_after) -> None:
    """Not before a round has shown that only the device's clock is read."""
    spawner.untouched = untouched
    many = [case(f"{name}{at}", runtime="torch", rounds=4) for at in range(2)]
    rounds, fleet = prepared(spawner, many, cards(1), early=early)
    run_spread(rounds, many, fleet)
    assert [len(result.captures) for result in rounds.results().values()] == [4, 4]
    assert spawner.spawned_after == spawned_after
    assert all(child.closed.is_set() for child in spawner.children)


def test_a_process_that_waits_for_a_round_that_does_not_come_is_ended(spawner) -> None:
    many = [case("gpu", runtime="torch", rounds=9)]
    rounds, fleet = prepared(spawner, many, cards(1), early=True)
    run_spread(rounds, many, fleet, range(2))
    assert [child.closed.is_set() for child in spawner.children] == [True, True, False]
    rounds.close()
    assert spawner.children[-1].closed.is_set()
    run_spread(rounds, many, fleet, range(2, 3))
    assert len(rounds.results()["t.py::gpu"].captures) == 3


def test_without_a_device_there_are_no_leases(spawner) -> None:
    measured(spawner, [case("gpu", runtime="torch"), case("plain")], ())
    assert {(sees, leases) for _, sees, leases in spawner.ran} == {("", ())}


def test_cards_unlike_the_first_take_no_part(spawner) -> None:
    many = [case(f"gpu{i}", runtime="torch") for i in range(8)]
    measured(spawner, many, (*cards(2), *cards(2, "L4")))
    assert {sees for _, sees, _ in spawner.ran} == {"GPU-H2000", "GPU-H2001"}


def test_a_case_for_several_devices_sees_them_all_under_all_their_leases(spawner) -> None:
    measured(spawner, [case("gpu_wide", runtime="torch", devices=3)], cards(4))
    assert set(spawner.ran) == {("t.py::gpu_wide", "GPU-H2000,GPU-H2001,GPU-H2002", ("H2000", "H2001", "H2002"))}


@pytest.mark.parametrize(("count", "message"), [(0, "none is visible"), (3, "3 of one kind are visible")])
def test_a_case_for_more_devices_than_there_are_is_not_measured_and_says_so(spawner, count, message) -> None:
    (result,) = measured(spawner, [case("gpu_wide", devices=4)], cards(count)).values()
    assert result.captures == ()
    assert message in result.trouble[0]
    assert spawner.spawned == 0


def test_a_case_stays_on_its_device_whatever_else_is_selected(spawner) -> None:
    measured(spawner, [case(f"gpu{i}", runtime="torch") for i in range(6)], cards(3))
    first = spawner.where("t.py::gpu3")
    spawner.ran.clear()
    measured(spawner, [case("gpu3", runtime="torch")], cards(3))
    assert spawner.where("t.py::gpu3") == first


def test_an_interrupt_ends_every_lane(spawner) -> None:
    spawner.hangs = True
    child_settings = ChildSettings(
        spawner=spawner, spec=lambda some: ChildSpec(argv=(), python=(), cwd=Path(), env=()), job=ChildJob(cases=()),
        timeout_s=5, progress=lambda *arguments: None, clock=lambda: 0.0,
    )  # fmt: skip
    cases = [case("gpu", runtime="torch")]
    rounds = Rounds(cases, child_settings)

    def interrupt() -> None:
        spawner.hanging.wait(60)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        at_once([lambda: rounds.round(0, cases), interrupt], rounds.stop)
    assert spawner.spawned == 1
    assert rounds.results()["t.py::gpu"].captures == ()


def test_a_child_that_starts_while_the_run_is_stopped_runs_nothing(spawner) -> None:
    cases = [case("host")]

    def spec(some) -> ChildSpec:
        rounds.stop()  # another thread failed while this one was about to start a child
        return ChildSpec(argv=(), python=(), cwd=Path(), env=())

    child_settings = ChildSettings(
        spawner=spawner,
        spec=spec,
        job=ChildJob(cases=()),
        timeout_s=5,
        progress=lambda *arguments: None,
        clock=lambda: 0.0,
    )
    rounds = Rounds(cases, child_settings)
    rounds.round(0, cases)
    assert (spawner.spawned, spawner.ran) == (1, [])
    assert rounds.results()["t.py::host"].captures == ()


def test_a_device_is_picked_by_any_of_its_names() -> None:
    devices = (*cards(2), Device(key="NVIDIA-L4-23GiB", name="NVIDIA L4", kind="gpu", uuid="MIG-1", pci="0000:01:00.0"))
    for name in ("2", "MIG-1", "NVIDIA L4", "0000:01:00.0", "NVIDIA-L4-23GiB", "NVIDIA-L4-23GiB-observe"):
        assert named_device(devices, name) is devices[2]
    assert named_device(devices, "H2001") is devices[1]
    with pytest.raises(PerfgateError, match="device-unknown") as caught:
        named_device(devices, "7")
    assert "1: H200 GPU-H2001" in caught.value.fix
    assert "requested" in caught.value.why


def test_a_uuid_may_be_cut_short_where_it_still_means_one_device() -> None:
    devices = cards(2)
    devices = (replace(devices[0], uuid="GPU-1a22"), replace(devices[1], uuid="1b33"))
    assert named_device(devices, "GPU-1a") is devices[0]
    assert named_device(devices, "GPU-1b") is devices[1]
    with pytest.raises(PerfgateError, match="2 devices begin with 'GPU-1'"):
        named_device(devices, "GPU-1")
    for nothing in ("GPU-", "GPU-2", "1a"):
        with pytest.raises(PerfgateError, match="is visible here"):
            named_device(devices, nothing)


def test_machine_code_alone_is_read_by_one_process_whatever_the_plan_says(spawner) -> None:
    results = measured(spawner, [case("static", rounds=3), case("host", rounds=3)], ())
    assert {n.partition("::")[2]: len(result.captures) for n, result in results.items()} == {"static": 1, "host": 3}


def test_the_first_side_of_a_preload_ends_if_the_second_does_not_start() -> None:
    closed = []
    first = SimpleNamespace(label="base", send=lambda _job: None, close=lambda: closed.append("base"))
    waiting = [first]

    def spawn(_spec):
        if not waiting:
            raise PerfgateError("child-start", "no memory")
        return waiting.pop()

    start: Any = SimpleNamespace(spec=None, job=None)
    stage: Any = SimpleNamespace(spawner=SimpleNamespace(spawn=spawn))
    with pytest.raises(PerfgateError, match="no memory"):
        Preload(stage, [start, start], 1)
    assert closed == ["base"]
