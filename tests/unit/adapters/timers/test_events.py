"""Tests of adapters/timers/events."""

from __future__ import annotations

import itertools
from dataclasses import replace
from statistics import median

import pytest

from pytest_perfgate.adapters.bindings.cupti import KernelRecord
from pytest_perfgate.adapters.timers.bench import Rules
from pytest_perfgate.adapters.timers.cupti import CuptiTimer
from pytest_perfgate.adapters.timers.event_pairs import COUNTS, ROUNDS
from pytest_perfgate.adapters.timers.events import BlockingTimer, EventsTimer
from pytest_perfgate.adapters.timers.graph import GraphTimer
from pytest_perfgate.adapters.timers.host import HostTimer
from pytest_perfgate.core.stats.summary import Stopping, WarmUp
from pytest_perfgate.model.device import Availability
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Stop
from pytest_perfgate.model.plan import Cache, Plan
from pytest_perfgate.testing import FakeRuntime, SimulatedEvent, SimulatedGpu


def error_of(action) -> str:
    with pytest.raises(PerfgateError) as caught:
        action()
    return caught.value.code.name


def test_a_kernel_is_timed_by_the_device(gpu, rules, plan) -> None:
    samples = EventsTimer(rules).measure(lambda: gpu.kernel(100_000), plan, gpu)
    assert samples.timer == "events"
    assert samples.stop is Stop.COUNT
    assert len(samples.durations) >= 40
    assert samples.warmups == 10
    assert samples.overhead == 1_500
    assert median(samples.durations) == pytest.approx(100_000)
    assert samples.problems == ()
    assert dict(samples.notes)["simulated"]


def test_clocks_are_told_of_the_sampling_alone(gpu, rules, plan) -> None:
    marks: list[int] = []

    def call() -> None:
        marks.append(rules.sampling.mark % 2)
        gpu.kernel(100_000)

    samples = EventsTimer(rules).measure(call, plan, gpu)
    assert marks[: samples.warmups] == [0] * samples.warmups
    assert sum(marks) == len(samples.durations)
    assert marks[-1] == 0


@pytest.mark.parametrize("percent", [1, 2, 3, 5])
def test_a_slowdown_is_seen_and_none_is_not(gpu, rules, plan, percent) -> None:
    timer = EventsTimer(rules)
    before, same, after = (
        median(timer.measure(lambda ns=ns: gpu.kernel(ns), plan, gpu).durations)
        for ns in (100_000, 100_000, 100_000 * (1 + percent / 100))
    )
    assert same == before
    assert after - before == pytest.approx(percent * 1000)


def test_too_short_a_kernel_is_refused(gpu, rules, plan) -> None:
    timer = EventsTimer(rules)
    assert error_of(lambda: timer.measure(lambda: gpu.kernel(2_000), plan, gpu)) == "timer-too-coarse"


def test_a_batch_of_short_kernels_is_not(gpu, rules, plan) -> None:
    gpu.launch_ns = 100.0
    samples = EventsTimer(rules).measure(lambda: gpu.kernel(2_000), replace(plan, calls=100), gpu)
    assert samples.batch == 100
    assert median(samples.durations) == pytest.approx(2_000, rel=0.01)


def test_a_batch_cannot_be_cold(gpu, rules, plan) -> None:
    cold = replace(plan, calls=100, cache=Cache.COLD)
    assert error_of(lambda: EventsTimer(rules).measure(lambda: gpu.kernel(2_000), cold, gpu)) == "cache-cold-batch"


def test_cold_flushes_before_every_call(gpu, rules, plan) -> None:
    gpu.cold = 2.0
    timer = EventsTimer(rules)
    warm = median(timer.measure(lambda: gpu.kernel(100_000), plan, gpu).durations)
    launches, flushes = gpu.launches, gpu.flushes
    cold = timer.measure(lambda: gpu.kernel(100_000), replace(plan, cache=Cache.COLD), gpu)
    assert median(cold.durations) == pytest.approx(2 * warm)
    assert gpu.flushes - flushes == gpu.launches - launches


def test_setup_runs_before_every_call_and_is_not_timed(gpu, rules, plan) -> None:
    order = []

    def setup() -> None:
        order.append("setup")
        gpu.kernel(500_000)

    def call() -> None:
        order.append("call")
        gpu.kernel(100_000)

    samples = EventsTimer(rules).measure(call, plan, gpu, setup)
    assert order == ["setup", "call"] * (len(order) // 2)
    assert median(samples.durations) == pytest.approx(100_000)


def test_the_launch_gap_is_a_figure_of_its_own(gpu, rules, plan) -> None:
    gpu.launch_ns = 30_000.0
    samples = EventsTimer(rules).measure(lambda: gpu.kernel(100_000), plan, gpu)
    assert median(samples.durations) == pytest.approx(100_000)
    assert samples.launch_gap == pytest.approx(30_000, rel=0.1)


def test_a_queue_that_ran_dry_is_said_and_gives_no_gap(gpu, rules, plan) -> None:
    def call() -> None:
        for _ in range(10):
            gpu.kernel(5_000)

    gpu.launch_ns = 10_000.0
    samples = EventsTimer(rules).measure(call, plan, gpu)
    assert "ran dry" in dict(samples.notes)["queue"]
    assert samples.launch_gap is None


def test_work_on_another_stream_is_caught(gpu, rules, plan) -> None:
    def call() -> None:
        gpu.kernel(60_000)
        gpu.kernel(400_000, stream=1)

    (problem,) = EventsTimer(rules).measure(call, plan, gpu).problems
    assert problem.code == "work-escaped"
    assert not problem.retry
    assert [name for name, _ in problem.evidence] == ["on this stream", "still running after it", "again", "again"]


def test_work_of_a_call_that_ends_after_it_is_caught_though_it_does_not_pile_up(gpu, rules, plan) -> None:
    def call() -> None:
        gpu.kernel(200_000)
        gpu.ready[1] = max(gpu.ready[1], gpu.ready[0])
        gpu.kernel(90_000, stream=1)

    (problem,) = EventsTimer(rules).measure(call, plan, gpu).problems
    assert problem.code == "work-escaped"


def test_a_host_that_is_held_up_while_it_waits_is_no_work_of_the_call(rules, plan) -> None:
    class Jittery(SimulatedGpu):
        """The first waits behind a last event end 30 us late."""

        waits = late = 0

        def wait(self, event) -> None:
            super().wait(event)
            self.waits += 1
            self.late = self.waits <= 5

        def synchronize(self) -> None:
            super().synchronize()
            self.now += 30_000.0 * self.late
            self.late = 0

    gpu = Jittery()
    samples = EventsTimer(replace(rules, clock=gpu.clock)).measure(lambda: gpu.kernel(150_000), plan, gpu)
    assert samples.problems == ()
    assert "did not in other trials" in dict(samples.notes)["other streams"]


class BrokenEvent(SimulatedEvent):
    reading = float("nan")

    def since(self, earlier) -> float:
        del earlier
        return self.reading


@pytest.mark.parametrize("reading", [float("nan"), float("inf"), -3.0])
def test_an_instrument_that_reads_no_time_gives_no_number(rules, plan, reading) -> None:
    class Broken(SimulatedGpu):
        def event(self):
            event = BrokenEvent(self)
            event.reading = reading
            return event

    gpu = Broken()
    assert error_of(lambda: EventsTimer(rules).measure(lambda: gpu.kernel(1e6), plan, gpu)) == "timer-broken"


def test_an_event_clock_that_stands_still_gives_no_number(rules, plan) -> None:
    class Still(SimulatedGpu):
        def event(self):
            event = BrokenEvent(self)
            event.reading = 0.0
            return event

    gpu = Still()
    assert error_of(lambda: EventsTimer(rules).measure(lambda: gpu.kernel(1e6), plan, gpu)) == "timer-broken"


def test_a_lost_device_gives_no_number(gpu, rules, plan) -> None:
    calls = []

    def call() -> None:
        calls.append(1)
        gpu.lost = len(calls) > 30
        gpu.kernel(100_000)

    with pytest.raises(RuntimeError, match="fell off the bus"):
        EventsTimer(rules).measure(call, plan, gpu)


def test_a_call_that_raises_gives_no_number(gpu, rules, plan) -> None:
    with pytest.raises(ZeroDivisionError):
        EventsTimer(rules).measure(lambda: 1 / 0, plan, gpu)


def test_a_runtime_without_a_queue_is_refused(rules, plan) -> None:
    class Plain:
        name = "plain"

    assert not EventsTimer(rules).availability(Plain()).usable
    assert error_of(lambda: EventsTimer(rules).measure(print, plan, Plain())) == "timer-unsuited"


def test_garbage_collection_is_put_back(gpu, rules: Rules, plan) -> None:
    import gc

    EventsTimer(rules).measure(lambda: gpu.kernel(100_000), plan, gpu)
    assert gc.isenabled()


def many(gpu):
    """Ten kernels of 5 us, each launched in 10 us: the host is the slower one."""

    def call() -> None:
        for _ in range(10):
            gpu.kernel(5_000)

    gpu.launch_ns = 10_000.0
    return call


def test_the_device_is_timed_where_events_time_the_host(gpu, rules, plan) -> None:
    by_events = median(EventsTimer(rules).measure(many(gpu), plan, gpu).durations)
    samples = BlockingTimer(rules).measure(many(gpu), plan, gpu)
    assert median(samples.durations) == pytest.approx(50_000)
    assert by_events > 90_000
    assert samples.launch_gap == pytest.approx(by_events - 50_000, rel=0.2)


def test_cold_flushes_before_every_call_where_blocking(gpu, rules, plan) -> None:
    gpu.cold = 2.0
    timer = BlockingTimer(rules)
    warm = timer.measure(lambda: gpu.kernel(100_000), plan, gpu)
    flushes = gpu.flushes
    cold = timer.measure(lambda: gpu.kernel(100_000), replace(plan, cache=Cache.COLD), gpu)
    assert median(cold.durations) == pytest.approx(2 * median(warm.durations))
    assert gpu.flushes - flushes >= 40


def test_a_call_that_synchronises_ends_in_an_error_and_not_in_a_hang(gpu, rules, plan) -> None:
    def call() -> None:
        gpu.kernel(100_000)
        gpu.synchronize()

    with pytest.raises(PerfgateError) as caught:
        BlockingTimer(rules, patience_s=0.05).measure(call, plan, gpu)
    assert caught.value.code.name == "timer-deadlock"
    gpu.synchronize()


def test_a_call_that_raises_leaves_the_queue_open(gpu, rules, plan) -> None:
    calls = []

    def call() -> None:
        calls.append(1)
        if len(calls) > 12:
            raise ValueError("no more")
        gpu.kernel(100_000)

    with pytest.raises(ValueError, match="no more"):
        BlockingTimer(rules).measure(call, plan, gpu)
    gpu.synchronize()


def test_a_runtime_that_cannot_block_says_so(gpu, rules, plan, monkeypatch) -> None:
    def refuse():
        raise PerfgateError("block-unsupported", "no stream memory operations here")

    monkeypatch.setattr(gpu, "block", refuse)
    found = BlockingTimer(rules).availability(gpu)
    assert not found.usable
    assert "stream memory" in found.why
    with pytest.raises(PerfgateError, match="block-unsupported"):
        BlockingTimer(rules).measure(lambda: gpu.kernel(100_000), plan, gpu)


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
        kept = self.alone if len(calls) == 1 else self.records
        return [KernelRecord(start=s, end=e, stream=0, device=0, call=call) for call in calls for s, e in kept]

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
