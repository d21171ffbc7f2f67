"""The host's clock around a call and the wait for its device."""

from __future__ import annotations

from statistics import median

import pytest

from pytest_perfgate.adapters.timers.host import HostTimer
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import IDLE
from pytest_perfgate.model.plan import Cache, Plan
from tests.unit.adapters.timers.conftest import stop_at_count, warm_after_count


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
    found = type(gpu.availability())(name="simulated", usable=False, why="no driver")
    monkeypatch.setattr(gpu, "availability", lambda: found)
    assert timer.availability(gpu).why == "no driver"
    with pytest.raises(PerfgateError, match="no driver"):
        timer.measure(lambda: None, plan, gpu)
