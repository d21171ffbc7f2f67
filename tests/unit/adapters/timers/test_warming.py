"""Warming up goes on until the device has settled, and not for ever."""

from __future__ import annotations

import pytest

from pytest_perfgate.adapters.runtimes.simulated import SimulatedGpu
from pytest_perfgate.adapters.timers.bench import SETTLE_NS, Bench, Rules
from pytest_perfgate.core.stats.stopping import Stopping, WarmUp
from pytest_perfgate.model.plan import Plan
from pytest_perfgate.model.sampling import Sampling


def bench(plan: Plan = Plan(), steady=lambda: True) -> Bench:
    gpu, sampling = SimulatedGpu(), Sampling()
    sampling.ask(lambda: steady(gpu.now) if steady.__code__.co_argcount else steady())
    rules = Rules(stop=Stopping(), warm=WarmUp(), clock=gpu.clock, sampling=sampling)
    return Bench(call=lambda: gpu.kernel(100_000.0), plan=plan, runtime=gpu, rules=rules)


def test_a_call_whose_time_holds_still_is_warm_where_the_device_is() -> None:
    warmth = bench().warm()
    assert (warmth.calls, warmth.settled, warmth.notes) == (25, True, ())
    assert warmth.spent_ns < 5e6


def test_the_device_is_kept_busy_until_it_has_settled() -> None:
    asked = bench(steady=lambda now: now > 800e6)
    warmth = asked.warm()
    assert 800e6 < warmth.spent_ns < 900e6
    gpu = asked.runtime
    busy = sum(end - begin for begin, end, _ in gpu.executed)
    assert busy > 0.75 * warmth.spent_ns
    assert warmth.calls == gpu.launches


def test_a_device_that_never_settles_is_measured_and_that_is_said() -> None:
    warmth = bench(steady=lambda: False).warm()
    assert SETTLE_NS <= warmth.spent_ns < 1.1 * SETTLE_NS
    assert dict(warmth.notes)["warm-up"].startswith("clock and power had not settled after 3")


def test_a_long_turn_is_under_load_for_as_long_as_it_asks() -> None:
    warmth = bench(Plan(warmup_ns=0.0, settle_ns=1e9)).warm()
    assert 1e9 <= warmth.spent_ns < 1.1e9


@pytest.mark.parametrize("plan", [Plan(warmup_ns=0.0)])
def test_a_turn_without_warm_up_has_none(plan: Plan) -> None:
    assert bench(plan).warm().calls == 0
