from __future__ import annotations

from dataclasses import replace
from statistics import median

import pytest

from pytest_perfgate.adapters.timers.blocking import BlockingTimer
from pytest_perfgate.adapters.timers.events import EventsTimer
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Cache


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
    assert median(samples.durations) == pytest.approx(51_500)
    assert by_events > 100_000
    assert samples.launch_gap == pytest.approx(by_events - 51_500, rel=0.2)


def test_cold_flushes_before_every_call(gpu, rules, plan) -> None:
    gpu.cold = 2.0
    timer = BlockingTimer(rules)
    warm = timer.measure(lambda: gpu.kernel(100_000), plan, gpu)
    assert gpu.flushes == 0
    cold = timer.measure(lambda: gpu.kernel(100_000), replace(plan, cache=Cache.COLD), gpu)
    assert median(cold.durations) - cold.overhead == pytest.approx(2 * (median(warm.durations) - warm.overhead))
    assert gpu.flushes >= 40


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
