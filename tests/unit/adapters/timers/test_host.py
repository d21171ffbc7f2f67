"""Tests of adapters/timers/host."""

from __future__ import annotations

import gc
import math
import sys
import time
import weakref
from dataclasses import replace
from statistics import median
from types import SimpleNamespace

import pytest

from pytest_perfgate.adapters.timers.host import HostTimer, probe_clock
from pytest_perfgate.clock import HOST_CLOCK, seconds
from pytest_perfgate.core.stats.summary import Stopping, WarmUp
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import IDLE, Samples, Stop
from pytest_perfgate.model.plan import Cache, Plan
from pytest_perfgate.testing import FakeRuntime
from pytest_perfgate.wiring.devices import host_runtime
from tests.unit.adapters.timers.conftest import stop_at_count, warm_after_count

PLAN = Plan(warmup_ns=0, min_samples=20, budget_ns=1e9)


def timed(runtime: FakeRuntime, plan: Plan = PLAN, setup: object = None) -> Samples:
    timer = HostTimer(Stopping(), WarmUp())
    return timer.measure(runtime.kernel, plan, runtime, setup)


def test_a_long_call_is_a_sample_and_reads_the_truth() -> None:
    samples = timed(FakeRuntime([3e6]))
    assert set(samples.durations) == {3e6}
    assert samples.batch == 1
    assert samples.stop is Stop.PRECISE
    assert len(samples.durations) >= 20


def test_a_short_call_is_batched_and_its_mean_is_the_truth() -> None:
    samples = timed(FakeRuntime([100.0]))
    assert samples.batch * 100 >= 50_000
    assert all(math.isclose(duration, 100.0) for duration in samples.durations)
    assert samples.overhead < 100


def test_a_sample_that_waited_and_spent_the_budget_is_not_all_there_is() -> None:
    plan = Plan(warmup_ns=0, min_samples=5, budget_ns=4e6)
    cold = 5_000.0
    quiet = FakeRuntime([cold] + [100.0] * 1_000_000)
    samples = timed(quiet, plan)
    before = quiet._at - len(samples.durations) * samples.batch
    waited = timed(FakeRuntime([cold] + [100.0] * (before + 10) + [30e6] + [100.0] * 1_000_000), plan)
    assert waited.stop is Stop.BUDGET
    assert waited.batch == samples.batch
    assert waited.durations[0] > 10_000
    assert math.isclose(sorted(waited.durations)[len(waited.durations) // 2], 100.0)


def test_a_first_call_that_waited_or_compiled_leaves_a_short_call_short() -> None:
    slow_at_first = timed(FakeRuntime([20e6] + [100.0] * 1_000_000))
    assert slow_at_first.batch == timed(FakeRuntime([100.0])).batch


def test_cold_flushes_before_every_call_outside_of_its_time() -> None:
    runtime = FakeRuntime([100.0])
    order: list[str] = []
    runtime.flush = lambda: order.append("flush")  # type: ignore[method-assign]
    call = runtime.kernel
    runtime.kernel = lambda: (order.append("call"), call())[1]  # type: ignore[method-assign]
    samples = timed(runtime, replace(PLAN, cache=Cache.COLD, warmup_ns=1e4), lambda: order.append("setup"))
    assert order == ["setup", "flush", "call"] * (len(order) // 3)
    assert len(order) >= 3 * (20 + samples.warmups)
    assert samples.batch == 1
    assert set(samples.durations) == {100.0}
    order.clear()
    timed(runtime, replace(PLAN, cache=Cache.COLD, in_turns=True))
    assert order == ["flush", "call"] * (len(order) // 2)


def test_a_batch_cannot_be_cold() -> None:
    with pytest.raises(PerfgateError, match="cache-cold-batch"):
        timed(FakeRuntime([100.0]), replace(PLAN, cache=Cache.COLD, calls=10))


def test_a_setup_makes_every_call_a_sample_outside_of_its_time() -> None:
    runtime = FakeRuntime([100.0])

    def setup() -> None:
        runtime.host_ns += 5000

    samples = timed(runtime, setup=setup)
    assert samples.batch == 1
    assert set(samples.durations) == {100.0}


def test_a_spent_budget_says_so() -> None:
    script = [1e6, 3e6, 9e6, 2e6, 7e6, 5e6]
    samples = timed(FakeRuntime(script), Plan(warmup_ns=0, budget_ns=40e6))
    assert samples.stop is Stop.BUDGET


def test_samples_stay_in_order_and_untrimmed() -> None:
    script = [1e6 * (1 + n % 7) for n in range(400)]
    samples = timed(FakeRuntime(script), Plan(warmup_ns=0, max_samples=50, budget_ns=1e12, spread=0.0))
    first = script.index(samples.durations[0])
    assert list(samples.durations[:40]) == [script[(first + n) % 400] for n in range(40)]


def test_warming_up_is_discarded_and_counted() -> None:
    samples = timed(FakeRuntime([50e6] * 3 + [10e6] * 400), Plan(warmup_ns=200e6))
    assert samples.warmups >= 4
    assert set(samples.durations) == {10e6}


@pytest.mark.parametrize("running", [True, False])
def test_the_collector_is_left_as_it_was(running: bool) -> None:
    states = []
    runtime = FakeRuntime([1e6])

    def call() -> None:
        states.append(gc.isenabled())
        runtime.kernel()

    before = gc.isenabled()
    (gc.enable if running else gc.disable)()
    try:
        HostTimer(Stopping(), WarmUp()).measure(call, PLAN, runtime)
        assert gc.isenabled() is running
    finally:
        (gc.enable if before else gc.disable)()
    assert not any(states)


@pytest.mark.parametrize("build", ["", "t"])
def test_reference_cycles_are_freed_between_samples(monkeypatch: pytest.MonkeyPatch, build: str) -> None:
    """They filled the memory: each call took fresh pages from the kernel, and read twice its time.

    A build without the GIL, ``t``, searches all objects at each collection that is requested: 77 ms among 126,000.
    """
    alive, most, calls, requested = weakref.WeakSet[Ring](), 0, 0, []
    monkeypatch.setattr(sys, "abiflags", build)
    monkeypatch.setattr(gc, "collect", lambda *of, collect=gc.collect: requested.append(of) or collect(*of))

    def call() -> None:
        nonlocal most, calls
        alive.update(Ring() for _ in range(100))
        most, calls = max(most, len(alive)), calls + 1

    plan = Plan(warmup_ns=1, calls=1, min_samples=300)
    HostTimer(stop_at_count, lambda _medians, taken, *_: taken >= 100).measure(call, plan, host_runtime())
    assert calls >= 400
    assert most < 50 * 100
    assert bool(requested) is (build == "")


class Ring:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.itself = self


def test_the_clock_has_a_step_and_a_cost() -> None:
    ticks = iter(range(0, 10**6, 40))
    assert probe_clock(lambda: next(ticks)) == (40.0, 40.0)


def test_clocks_that_somebody_rebinds_or_freezes_are_not_those_that_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """What freezes time puts its own clocks where a module has one of ``time`` by name."""
    modules = [time, *(module for name, module in sys.modules.items() if name.startswith("pytest_perfgate."))]
    for module in modules:
        for name in [name for name, value in vars(module).items() if callable(value) and value in set(HOST_CLOCK)]:
            monkeypatch.setattr(module, name, lambda: 7)
    assert time.perf_counter_ns() == time.thread_time_ns() == 7
    host = SimpleNamespace(name="host")
    samples = HostTimer(Stopping(), WarmUp()).measure(
        lambda: sum(range(500)), Plan(warmup_ns=0, calls=1, min_samples=5, max_samples=5, in_turns=True), host
    )
    assert min(samples.durations) > 0
    assert sum(samples.cpu) > 0
    assert seconds() < seconds()
    assert HOST_CLOCK.date() > 1.7e9


@pytest.fixture
def timer() -> HostTimer:
    return HostTimer(stop_at_count, warm_after_count)


def test_launching_and_waiting_are_in_the_time_and_their_cost_is_beside_it(gpu, timer, plan) -> None:
    samples = timer.measure(lambda: gpu.kernel(100_000), plan, gpu)
    assert median(samples.durations) == 100_000 + gpu.launch_ns + gpu.event_ns
    assert samples.overhead == gpu.event_ns
    assert (samples.timer, samples.warmups, samples.batch) == ("host", 10, 1)
    assert "waiting" in dict(samples.notes)[IDLE]


def test_work_of_every_stream_is_waited_for(gpu, timer, plan) -> None:
    def call() -> None:
        gpu.kernel(10_000)
        gpu.kernel(500_000, stream=1)

    assert median(timer.measure(call, plan, gpu).durations) > 500_000


def test_inputs_are_made_and_the_cache_is_flushed_outside_of_the_time(gpu, timer, plan) -> None:
    made = []
    cold = Plan(min_samples=plan.min_samples, cache=Cache.COLD)
    samples = timer.measure(lambda: gpu.kernel(50_000), cold, gpu, lambda: made.append(gpu.kernel(70_000)))
    assert median(samples.durations) == 50_000 + gpu.launch_ns + gpu.event_ns
    assert len(made) == gpu.flushes >= 40


def test_several_calls_have_one_wait(gpu, timer) -> None:
    samples = timer.measure(lambda: gpu.kernel(50_000), Plan(min_samples=40, calls=10), gpu)
    assert samples.batch == 10
    assert median(samples.durations) == pytest.approx(50_000 + 500)


def test_a_lost_device_gives_no_number(gpu, timer, plan) -> None:
    gpu.lost = True
    with pytest.raises(RuntimeError, match="fell off the bus"):
        timer.measure(lambda: gpu.kernel(50_000), plan, gpu)


def test_a_runtime_that_does_not_work_is_refused(gpu, timer, plan, monkeypatch) -> None:
    availability = type(gpu.availability())(name="simulated", usable=False, why="no driver")
    monkeypatch.setattr(gpu, "availability", lambda: availability)
    assert timer.availability(gpu).why == "no driver"
    with pytest.raises(PerfgateError, match="no driver"):
        timer.measure(lambda: None, plan, gpu)


@pytest.mark.parametrize(("figures", "expected"), [(("q=99%",), True), (("peak_memory",), False)])
def test_waits_are_read_beside_calls_whose_tail_is_asked_for(figures, expected) -> None:
    plan = Plan(calls=1, warmup_ns=0, budget_ns=5e6, figures=figures)
    samples = HostTimer(Stopping(), WarmUp()).measure(lambda: sum(range(1000)), plan, host_runtime())
    assert (len(samples.waits) == len(samples.durations)) is expected
    assert min(samples.waits, default=0.0) >= 0
