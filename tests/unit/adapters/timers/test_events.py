"""Tests of adapters/timers/events."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import pytest

from pytest_perfgate.adapters.timers.auto import GraphTimer
from pytest_perfgate.adapters.timers.bench import Rules
from pytest_perfgate.adapters.timers.events import BlockingTimer, EventsTimer
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Samples, Stop
from pytest_perfgate.model.plan import Cache
from pytest_perfgate.testing import SimulatedEvent, SimulatedGpu


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


@pytest.mark.parametrize("timer", [EventsTimer, BlockingTimer, GraphTimer])
def test_a_turn_leaves_out_what_its_warm_up_has_looked_for(gpu, rules, plan, timer) -> None:
    """A call of 20 ms would otherwise be made ten times for what is known, beside three samples."""

    def made(in_turns: bool) -> tuple[int, Samples]:
        before = gpu.launches
        samples = timer(rules).measure(lambda: gpu.kernel(100_000), replace(plan, in_turns=in_turns, warmup_ns=0), gpu)
        return gpu.launches - before - len(samples.durations), samples

    made(in_turns=False)  # finds the offset of the process
    (whole, looked), (turn, short) = made(in_turns=False), made(in_turns=True)
    assert looked.launch_gap is not None
    assert short.launch_gap is None
    assert turn < whole


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
    availability = BlockingTimer(rules).availability(gpu)
    assert not availability.usable
    assert "stream memory" in availability.why
    with pytest.raises(PerfgateError, match="block-unsupported"):
        BlockingTimer(rules).measure(lambda: gpu.kernel(100_000), plan, gpu)
