"""A case on several devices: the clocks of all are held, and any one spoils it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

from pytest_perfgate.app.machine import settled, watched
from pytest_perfgate.app.several import Together
from pytest_perfgate.model.device import Availability, Device
from pytest_perfgate.model.plan import ClockPolicy, Plan
from pytest_perfgate.model.problem import Problem
from pytest_perfgate.model.samples import Samples, Stop

CARDS = tuple(Device(key="", name="card", kind="gpu", index=i, uuid=f"GPU-{i}", arch="sm_90") for i in range(3))
SAMPLES = Samples(durations=(1.0,) * 30, timer="events", stop=Stop.COUNT)


class Clocks:
    name = "clocks"

    def __init__(self, spoiled: str = "", denied: str = "") -> None:
        self.spoiled, self.denied = spoiled, denied
        self.held: list[str] = []
        self.now: set[str] = set()

    def availability(self) -> Availability:
        return Availability(name=self.name, usable=True)

    def settled(self, device, plan):
        why = "no permission" if device.uuid == self.denied else ""
        return replace(plan, clocks=ClockPolicy.OBSERVE if why else ClockPolicy.LOCK), why

    @contextmanager
    def hold(self, device, plan):
        self.held.append(f"{device.uuid} {device.arch} {plan.clocks.value}")
        self.now.add(device.uuid)
        yield Watch(device, spoiled=device.uuid == self.spoiled)
        self.now.remove(device.uuid)


class Watch:
    def __init__(self, device, *, spoiled) -> None:
        self._device, self._spoiled = device, spoiled

    def problems(self):
        return (Problem(code="throttled", what="power brake", retry=False),) if self._spoiled else ()

    def clock_hz(self):
        return (1e9 + self._device.index,)

    def watts(self):
        return 650.0

    def capped(self):
        return 0.25

    def facts(self):
        return (("card", self._device.uuid),)


def measured(clocks: Clocks) -> Samples:
    def take(plan: Plan) -> Samples:
        assert clocks.now == {"GPU-0", "GPU-1", "GPU-2"}
        return SAMPLES

    companions = [replace(card, arch="") for card in CARDS[1:]]
    return watched(take, CARDS[0], Plan(), Together(clocks, companions), lambda: 0.0)


def test_all_are_held_and_the_first_tells_the_clock() -> None:
    clocks = Clocks()
    samples = measured(clocks)
    assert clocks.held == [f"GPU-{i} sm_90 observe" for i in range(3)]
    assert (samples.clock_hz, samples.problems, clocks.now) == ((1e9,), (), set())
    assert (samples.watts, samples.capped) == (650.0, 0.25)
    assert dict(samples.notes) == {"card": "GPU-0", "devices watched": "3"}


def test_any_one_spoils_it_and_is_named() -> None:
    (problem,) = measured(Clocks(spoiled="GPU-2")).problems
    assert (problem.code, problem.what) == ("throttled", "GPU-2: power brake")


def test_all_are_locked_or_none() -> None:
    plan = replace(Plan(), clocks=ClockPolicy.TRY)
    assert settled(CARDS[0], plan, Together(Clocks(), CARDS[1:]))[0].clocks is ClockPolicy.LOCK
    found, why = settled(CARDS[0], plan, Together(Clocks(denied="GPU-1"), CARDS[1:]))
    assert (found.clocks, why) == (ClockPolicy.OBSERVE, "no permission")
