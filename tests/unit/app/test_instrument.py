"""Tests of app/instrument."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import pytest

from pytest_perfgate.app.instrument import (
    SharedClocks,
    ceiled,
    choose_runtime,
    choose_timer,
    keyed,
    lease_name,
    per_call,
    settled,
    watched,
)
from pytest_perfgate.model.device import Availability, Basis, Ceilings, Device, DeviceSpec, Peak
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Samples, Stop
from pytest_perfgate.model.metric import Problem
from pytest_perfgate.model.plan import ClockPolicy, Plan
from pytest_perfgate.testing import FakeRuntime


class Missing(FakeRuntime):
    name = "missing"

    def availability(self):
        return Availability(name=self.name, usable=False, why="no driver", fix="install one")


class Timer:
    name = "events"

    def availability(self, runtime):
        return Availability(name=self.name, usable=False, why="no queue")


def test_a_library_that_was_asked_for_and_does_not_work_is_an_error() -> None:
    with pytest.raises(PerfgateError) as caught:
        choose_runtime(Plan(runtime="missing"), [Missing([1.0]), FakeRuntime([1.0])], frozenset())
    assert caught.value.code.name == "runtime-unavailable"
    assert "no driver" in caught.value.what
    assert caught.value.fix == "install one"


class Touched(Missing):
    """Found in the call, and it does not work."""

    def recognises(self, modules):
        return True

    def touches(self, call):
        return call == "its own"


def test_a_library_that_the_call_uses_and_that_does_not_work_is_no_matter_for_the_host() -> None:
    runtimes = [Touched([1.0]), host := FakeRuntime([1.0])]
    with pytest.raises(PerfgateError, match="the runtime missing does not work here: no driver"):
        choose_runtime(Plan(), runtimes, frozenset(), "its own")
    assert choose_runtime(Plan(), runtimes, frozenset(), "another's") is host
    assert choose_runtime(Plan(), runtimes, frozenset()) is host


def test_the_queue_of_the_call_is_taken_before_a_timer_is_looked_for() -> None:
    taken = []
    library = FakeRuntime([1.0])
    library.adopt = taken.append
    assert choose_runtime(Plan(runtime=library.name), [library], frozenset(), "call") is library
    assert choose_runtime(Plan(), [library], frozenset()) is library
    assert taken == ["call"]


@pytest.mark.parametrize(("family", "choose"), [("runtime", choose_runtime), ("timer", choose_timer)])
def test_names_that_nobody_has_are_errors(family, choose) -> None:
    plan = Plan(**{family: "none"})
    third = frozenset() if family == "runtime" else FakeRuntime([1.0])
    with pytest.raises(PerfgateError) as caught:
        choose(plan, [FakeRuntime([1.0])] if family == "runtime" else [Timer()], third)
    assert caught.value.code.name == f"{family}-unknown"


def test_a_timer_that_was_asked_for_is_never_replaced() -> None:
    with pytest.raises(PerfgateError, match="no queue"):
        choose_timer(Plan(timer="events"), [Timer()], FakeRuntime([1.0]))


def test_everything_is_per_call_where_one_call_makes_several() -> None:
    samples = Samples(
        durations=(40.0,), timer="cupti", stop=Stop.COUNT, busy=(80.0,), cpu=(20.0,), overhead=4.0, resolution=2.0,
        launch_gap=12.0,
    )  # fmt: skip
    one = per_call(samples, 4)
    assert (one.durations, one.busy, one.cpu) == ((10.0,), (20.0,), (5.0,))
    assert (one.overhead, one.resolution, one.launch_gap, one.batch) == (4.0, 2.0, 3.0, 4)
    assert per_call(samples, 1) is samples


def test_the_projects_own_data_sheet_is_what_a_runtime_measures_with() -> None:
    from pytest_perfgate.model.project import Config
    from pytest_perfgate.wiring.built_ins import BuiltIns

    own = Config(device=(("My Card", {"bandwidth_gbps": 1000, "lock_mhz": 1200}),), source="pyproject.toml")
    for runtime in BuiltIns(own).pytest_perfgate_runtimes():
        spec = runtime._lookup("My Card")
        assert (spec.bandwidth, spec.lock_hz) == (1e12, 1.2e9)
        assert runtime._lookup("NVIDIA H200").name == "H200 SXM"
    for runtime in BuiltIns().pytest_perfgate_runtimes():
        assert runtime._lookup("My Card") is None
    inspector = next(i for i in BuiltIns(own).pytest_perfgate_inspectors() if i.name == "kineto")
    assert inspector.inspector._catalogue().lookup("My Card").bandwidth == 1e12


def test_a_data_sheet_that_does_not_read_is_an_error_when_it_is_looked_into() -> None:
    from pytest_perfgate.model.project import Config
    from pytest_perfgate.wiring.built_ins import BuiltIns

    runtime = BuiltIns(Config(device=(("My Card", {"bandwith": 1}),))).pytest_perfgate_runtimes()[0]
    with pytest.raises(PerfgateError, match="device-entry"):
        runtime._lookup("My Card")


SPEC = DeviceSpec(name="card", pattern="card", arch="sm_90", multiprocessors=10,
                  peaks=(Peak(dtype="bf16", datasheet=1e15, per_clock_per_sm=100, implied_hz=1e9),))  # fmt: skip
CARD = Device(key="card-80GiB", name="card", kind="gpu", spec=SPEC, multiprocessors=10)
HOST = Device(key="host-x", name="x", kind="host")
SAMPLES = Samples(durations=(1.0, 2.0), timer="events", stop=Stop.COUNT)


class Clocks:
    """Says of each region what it was told to."""

    def __init__(self, *problems: tuple[Problem, ...]) -> None:
        self.problems = iter(problems)
        self.held = 0

    @contextmanager
    def hold(self, device, plan):
        self.held += 1
        yield Watch(next(self.problems))


class Watch:
    def __init__(self, problems) -> None:
        self._problems = problems

    def problems(self):
        return self._problems

    def clock_hz(self):
        return (1.5e9,)

    def watts(self):
        return 650.0

    def capped(self):
        return 0.25

    def facts(self):
        return (("sm clock", "1500 MHz"),)


THROTTLED = Problem(code="throttled", what="the device lowered its clocks: power brake")
LOST = Problem(code="device-lost", what="gone", retry=False)


def test_the_key_tells_the_clock_policy_and_the_roof_the_clock() -> None:
    device = keyed(CARD, replace(Plan(), clocks=ClockPolicy.LOCK), (1.5e9,))
    assert device.key == "card-80GiB-lock"
    assert device.roof(Basis.CLOCK).rate("bf16") == 10 * 100 * 1.5e9
    assert keyed(HOST, Plan()) == HOST


def test_measured_ceilings_join_the_roofs() -> None:
    ceilings = Ceilings(device="host-x", compute=(("fp32", 5e10),), bandwidth=4e9, when="2026-01-02")
    assert ceiled(lambda key: ceilings, HOST).roof(Basis.CEILING).rate("fp32") == 5e10
    assert ceiled(lambda key: None, HOST) == HOST


class Sampling:
    """Takes samples, each of which lasts; notes by which plan."""

    def __init__(self, seconds: float = 0.1) -> None:
        self.now, self.seconds = 0.0, seconds
        self.plans: list[Plan] = []

    def clock(self) -> float:
        return self.now

    def __call__(self, plan: Plan) -> Samples:
        self.plans.append(plan)
        self.now += self.seconds * 1e9
        return SAMPLES

    def watched(self, clocks: Clocks, device: Device = CARD, **of: float) -> Samples:
        return watched(self, device, replace(Plan(), **{"min_samples": 2, **of}), clocks, self.clock)


def test_clocks_go_on_record() -> None:
    samples = Sampling().watched(Clocks(()))
    assert samples.clock_hz == (1.5e9,)
    assert (samples.watts, samples.capped) == (650.0, 0.25)
    assert ("sm clock", "1500 MHz") in samples.notes
    assert samples.problems == ()


def test_a_throttled_measurement_is_taken_again_and_counted() -> None:
    clocks, sampling = Clocks((THROTTLED,), ()), Sampling()
    samples = sampling.watched(clocks)
    assert samples.problems == ()
    assert [(d.count, d.reason) for d in samples.discarded] == [(2, THROTTLED.what)]
    assert clocks.held == len(sampling.plans) == 2


def test_a_retry_has_what_is_left_of_the_warm_up_and_the_budget() -> None:
    sampling = Sampling(seconds=0.3)
    sampling.watched(Clocks((THROTTLED,), ()))
    first, second = sampling.plans
    assert (first.warmup_ns, first.budget_ns) == (200e6, 1e9)
    assert (second.warmup_ns, second.budget_ns) == (150e6, 750e6)


def test_a_spent_budget_is_not_spent_again_and_that_is_said() -> None:
    clocks, sampling = Clocks((THROTTLED,)), Sampling(seconds=1.19)
    (problem,) = sampling.watched(clocks).problems
    assert problem.what == THROTTLED.what
    assert problem.evidence == (("not taken again", "0.01 s of 1.2 s were left: too little for 2 samples"),)
    assert clocks.held == 1


def test_a_turn_is_taken_again_whole_for_it_is_paid_for_where_turns_are_dealt() -> None:
    sampling = Sampling(seconds=1.19)
    sampling.watched(Clocks((THROTTLED,), ()), in_turns=True, min_samples=2000)
    assert sampling.plans[0] == sampling.plans[1]


def test_throttled_again_is_a_problem() -> None:
    assert Sampling().watched(Clocks((THROTTLED,), (THROTTLED,))).problems == (THROTTLED,)


def test_a_lost_device_is_not_tried_again() -> None:
    clocks = Clocks((LOST,))
    assert Sampling().watched(clocks).problems == (LOST,)
    assert clocks.held == 1


def test_a_host_has_no_such_clocks() -> None:
    assert Sampling().watched(Clocks(), HOST) == SAMPLES


def test_clocks_that_are_only_to_be_tried_are_decided_before_the_key_is_made() -> None:
    class Deciding(Clocks):
        def settled(self, device, plan):
            return replace(plan, clocks=ClockPolicy.OBSERVE), "denied"

    plan = replace(Plan(), clocks=ClockPolicy.TRY)
    decided, why = settled(CARD, plan, Deciding())
    assert (keyed(CARD, decided).key, why) == ("card-80GiB-observe", "denied")
    assert settled(HOST, plan, Deciding()) == (plan, "")
    assert settled(CARD, Plan(), Deciding()) == (Plan(), "")


def test_a_lease_has_one_name_for_all_libraries() -> None:
    names = {lease_name(replace(CARD, uuid=uuid)) for uuid in ("GPU-12", "MIG-12", "12")}
    assert names == {"12"}
    assert lease_name(replace(CARD, pci="0000:1B:00.0")) == "0000:1b:00.0"
    assert lease_name(CARD) == "card-0"


CARDS = tuple(Device(key="", name="card", kind="gpu", index=i, uuid=f"GPU-{i}", arch="sm_90") for i in range(3))
EVENT_SAMPLES = Samples(durations=(1.0,) * 30, timer="events", stop=Stop.COUNT)


class ClocksOfSeveral:
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
        yield WatchOfSeveral(device, spoiled=device.uuid == self.spoiled)
        self.now.remove(device.uuid)


class WatchOfSeveral:
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


def measured(clocks: ClocksOfSeveral) -> Samples:
    def take(plan: Plan) -> Samples:
        assert clocks.now == {"GPU-0", "GPU-1", "GPU-2"}
        return EVENT_SAMPLES

    companions = [replace(card, arch="") for card in CARDS[1:]]
    return watched(take, CARDS[0], Plan(), SharedClocks(clocks, companions), lambda: 0.0)


def test_all_are_held_and_the_first_tells_the_clock() -> None:
    clocks = ClocksOfSeveral()
    samples = measured(clocks)
    assert clocks.held == [f"GPU-{i} sm_90 observe" for i in range(3)]
    assert (samples.clock_hz, samples.problems, clocks.now) == ((1e9,), (), set())
    assert (samples.watts, samples.capped) == (650.0, 0.25)
    assert dict(samples.notes) == {"card": "GPU-0", "devices watched": "3"}


def test_any_one_spoils_it_and_is_named() -> None:
    (problem,) = measured(ClocksOfSeveral(spoiled="GPU-2")).problems
    assert (problem.code, problem.what) == ("throttled", "GPU-2: power brake")


def test_all_are_locked_or_none() -> None:
    plan = replace(Plan(), clocks=ClockPolicy.TRY)
    assert settled(CARDS[0], plan, SharedClocks(ClocksOfSeveral(), CARDS[1:]))[0].clocks is ClockPolicy.LOCK
    decided, why = settled(CARDS[0], plan, SharedClocks(ClocksOfSeveral(denied="GPU-1"), CARDS[1:]))
    assert (decided.clocks, why) == (ClockPolicy.OBSERVE, "no permission")
