"""Tests of adapters/timers/events: readings that give no number."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from pytest_perfgate.adapters.bindings.cupti import KernelRecord
from pytest_perfgate.adapters.timers.auto import GraphTimer
from pytest_perfgate.adapters.timers.cupti import CuptiTimer
from pytest_perfgate.adapters.timers.event_pairs import COUNTS, ROUNDS
from pytest_perfgate.adapters.timers.events import BlockingTimer, EventsTimer
from pytest_perfgate.adapters.timers.host import HostTimer
from pytest_perfgate.core.stats.summary import Stopping, WarmUp
from pytest_perfgate.model.device import Availability
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Plan
from pytest_perfgate.testing import FakeRuntime, SimulatedEvent, SimulatedGpu

SETTING_UP = 3 * ROUNDS * len(COUNTS)
"""Readings that go into the offset of a pair, beside those of empty ones."""
QUEUED = pytest.mark.parametrize("timer", [EventsTimer, BlockingTimer, GraphTimer])


class NotReady(Exception):
    """What a library raises for an event that the device has not passed; each has its own."""


class Odd(SimulatedGpu):
    """Its events read what they are told to, from the moment they are told."""

    def __init__(self, readings) -> None:
        super().__init__()
        self.readings = iter(readings)

    def event(self):
        return OddEvent(self)


class OddEvent(SimulatedEvent):
    def since(self, earlier) -> float:
        reading = next(self._gpu.readings)
        if isinstance(reading, Exception):
            raise reading
        return super().since(earlier) if reading is None else reading


def refused(timer, rules, plan, readings) -> PerfgateError:
    gpu = Odd(readings)
    with pytest.raises(PerfgateError) as caught:
        timer(replace(rules, clock=gpu.clock)).measure(lambda: gpu.kernel(1e6), plan, gpu)
    return caught.value


@QUEUED
@pytest.mark.parametrize("good", [-SETTING_UP, -50, 0, 40, 60])
def test_an_event_that_is_not_ready_gives_no_number(rules, plan, timer, good) -> None:
    readings = itertools.chain(
        itertools.repeat(None, SETTING_UP + good), itertools.repeat(NotReady("device not ready"))
    )
    error = refused(timer, rules, plan, readings)
    assert error.code.name == "timer-broken"
    assert "NotReady: device not ready" in error.what


@QUEUED
@pytest.mark.parametrize("wrong", [-5.0, 0.0, float("nan"), float("inf")])
def test_one_wrong_reading_among_good_ones_gives_no_number(rules, plan, timer, wrong) -> None:
    readings = itertools.chain(itertools.repeat(None, SETTING_UP + 80), [wrong], itertools.repeat(None))
    error = refused(timer, rules, plan, readings)
    assert error.code.name == "timer-broken"
    assert f"{wrong:g} ns" in error.what


@QUEUED
@pytest.mark.parametrize("good", [42, 80])
@pytest.mark.parametrize("wrong", [2.0**63, 2.0**32, 1e9])
def test_a_reading_longer_than_the_host_waited_gives_no_number(rules, plan, timer, good, wrong) -> None:
    readings = itertools.chain(itertools.repeat(None, SETTING_UP + good), [wrong], itertools.repeat(None))
    error = refused(timer, rules, plan, readings)
    assert error.code.name == "timer-broken"
    assert "that the host waited" in error.what


@QUEUED
@pytest.mark.parametrize("times", [0.5, 0.1, 1.5, 1000.0])
def test_an_event_clock_that_runs_at_another_rate_gives_no_number(rules, plan, timer, times, monkeypatch) -> None:
    """A device's clock whose unit is taken for another."""
    since = SimulatedEvent.since
    monkeypatch.setattr(SimulatedEvent, "since", lambda self, earlier: times * since(self, earlier))
    assert refused(timer, rules, plan, itertools.repeat(None)).code.name == "timer-broken"


@QUEUED
def test_samples_far_shorter_than_the_trial_give_no_number(rules, plan, timer) -> None:
    readings = itertools.chain(itertools.repeat(None, SETTING_UP + 58), itertools.repeat(40.0))
    assert refused(timer, rules, plan, readings).code.name == "timer-too-coarse"


def test_a_host_clock_that_runs_backwards_gives_no_number() -> None:
    runtime = FakeRuntime([3e6])
    ticks = itertools.count()

    def backwards() -> int:
        return int(runtime.host_ns) - (10_000_000 if next(ticks) in {1150, 1154, 1158} else 0)

    runtime.clock = backwards
    with pytest.raises(PerfgateError, match="timer-broken"):
        HostTimer(Stopping(), WarmUp()).measure(runtime.kernel, Plan(warmup_ns=0, budget_ns=1e12, spread=0.0), runtime)


def test_a_host_clock_that_stands_still_gives_no_number() -> None:
    runtime = FakeRuntime([3e6])
    runtime.clock = lambda: 7
    plan = Plan(warmup_ns=0, calls=1, max_samples=30)
    with pytest.raises(PerfgateError, match="timer-broken"):
        HostTimer(Stopping(), WarmUp()).measure(runtime.kernel, plan, runtime, lambda: None)


@pytest.mark.parametrize("call", ["events", "graph"])
def test_work_that_escapes_to_another_stream_is_a_problem(gpu, rules, plan, call) -> None:
    def two() -> None:
        gpu.kernel(60_000)
        gpu.kernel(40_000_000, stream=1)

    timer = {"events": EventsTimer, "graph": GraphTimer}[call](rules)
    assert [problem.code for problem in timer.measure(two, plan, gpu).problems] == ["work-escaped"]


@pytest.mark.parametrize(("side", "codes"), [(70_000, ["work-escaped"]), (55_000, [])])
@pytest.mark.parametrize("timer", [EventsTimer, BlockingTimer])
def test_work_that_piles_up_on_another_stream_is_a_problem(gpu, rules, plan, timer, side, codes) -> None:
    """Of one call what is left is too short to be seen; what fits beside the next call is no matter."""

    def two() -> None:
        gpu.kernel(60_000)
        gpu.kernel(side, stream=1)

    assert [problem.code for problem in timer(rules).measure(two, plan, gpu).problems] == codes


class Recorder:
    """Leaves what it is told for each call, whatever ran."""

    def __init__(self, *records, alone=None) -> None:
        self.records, self.alone, self.calls = records, alone if alone is not None else records, []

    def availability(self):
        return Availability(name="cupti", usable=True)

    def opened(self, size):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *exception) -> None:
        pass

    def push(self, call) -> None:
        self.calls.append(call)

    def pop(self) -> None:
        pass

    def drain(self):
        calls, self.calls = self.calls, []
        spans = self.alone if len(calls) == 1 else self.records
        return [KernelRecord(start=s, end=e, stream=0, device=0, call=call) for call in calls for s, e in spans]

    def dropped(self) -> int:
        return 0

    def counts_drops(self, call) -> bool:
        call()
        return True


@pytest.mark.parametrize("record", [(0, 0), (5_000, 4_000), (0, 900), (5_000, 5_000), (5_000, 2**63)])
def test_a_kernel_record_without_a_time_gives_no_number(gpu, rules, plan, record) -> None:
    recorder = Recorder((1_000, 3_000), record)
    with pytest.raises(PerfgateError, match="timer-broken"):
        CuptiTimer(rules, recorder).measure(lambda: gpu.kernel(2_000), plan, gpu)


def test_records_that_go_missing_from_every_call_alike_give_no_number(gpu, rules, plan) -> None:
    two = ((1_000, 3_000), (4_000, 5_000))
    with pytest.raises(PerfgateError, match="between 1 and 2 records"):
        CuptiTimer(rules, Recorder(*two[:1], alone=two)).measure(lambda: gpu.kernel(2_000), plan, gpu)


def test_a_counter_that_was_proved_is_said(gpu, rules, plan) -> None:
    samples = CuptiTimer(rules, Recorder((1_000, 3_000))).measure(lambda: gpu.kernel(2_000), plan, gpu)
    assert "counter proved" in dict(samples.notes)["dropped records"]
