from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

from pytest_perfgate.app.machine import ceiled, keyed, lease_name, settled, watched
from pytest_perfgate.model.ceilings import Ceilings
from pytest_perfgate.model.device import Basis, Device, DeviceSpec, Peak
from pytest_perfgate.model.plan import ClockPolicy, Plan
from pytest_perfgate.model.problem import Problem
from pytest_perfgate.model.samples import Samples, Stop

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


THROTTLED = Problem(code="throttled", what="the device held its clocks down: power brake")
LOST = Problem(code="device-lost", what="gone", retry=False)


def test_the_key_tells_the_clock_policy_and_the_roof_the_clock() -> None:
    device = keyed(CARD, replace(Plan(), clocks=ClockPolicy.LOCK), (1.5e9,))
    assert device.key == "card-80GiB-lock"
    assert device.roof(Basis.CLOCK).rate("bf16") == 10 * 100 * 1.5e9
    assert keyed(HOST, Plan()) == HOST


def test_measured_ceilings_join_the_roofs() -> None:
    found = Ceilings(device="host-x", compute=(("fp32", 5e10),), bandwidth=4e9, when="2026-01-02")
    assert ceiled(lambda key: found, HOST).roof(Basis.CEILING).rate("fp32") == 5e10
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
    sampling.watched(Clocks((THROTTLED,), ()), witness=True, min_samples=2000)
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
    found, why = settled(CARD, plan, Deciding())
    assert (keyed(CARD, found).key, why) == ("card-80GiB-observe", "denied")
    assert settled(HOST, plan, Deciding()) == (plan, "")
    assert settled(CARD, Plan(), Deciding()) == (Plan(), "")


def test_a_lease_has_one_name_for_all_libraries() -> None:
    assert lease_name(replace(CARD, uuid="GPU-12")) == lease_name(replace(CARD, uuid="12"))
    assert lease_name(replace(CARD, pci="0000:1B:00.0")) == "0000:1b:00.0"
    assert lease_name(CARD) == "card-0"
