"""Tests of core/stats/summary: when a process has enough samples."""

from __future__ import annotations

import random
import statistics
from dataclasses import replace

import pytest

from pytest_perfgate.core.stats.summary import (
    STEP,
    WINDOW,
    Stopping,
    WarmUp,
)
from pytest_perfgate.model.measurement import Stop
from pytest_perfgate.model.plan import Plan

PLAN = Plan(min_samples=20, max_samples=500, budget_ns=1e9, spread=0.005)


def run(rule: Stopping, numbers, plan: Plan = PLAN, spent: float = 0.0) -> tuple[int, Stop | None]:
    durations: list[float] = []
    for number in numbers:
        durations.append(number)
        spent += number
        stop = rule(durations, spent, plan)
        if stop:
            return len(durations), stop
    return len(durations), None


def test_a_steady_call_stops_when_its_spread_is_small() -> None:
    count, stop = run(Stopping(), [100.0] * 100)
    assert stop is Stop.PRECISE
    assert PLAN.min_samples <= count < PLAN.min_samples + STEP


def test_a_noisy_call_stops_when_the_noise_has_settled() -> None:
    source = random.Random(3)
    count, stop = run(Stopping(), [source.gauss(100, 10) for _ in range(499)])
    assert stop is Stop.SETTLED
    assert 64 <= count < 400


def test_a_rule_that_is_asked_about_another_run_forgets_the_first() -> None:
    rule, quiet = Stopping(), [100.0] * 60
    noisy = [100.0 + 40 * (n % 2) for n in range(60)]
    stops = [rule(numbers[:count], 0.0, PLAN) for numbers in (noisy, quiet) for count in range(1, 60)]
    assert stops[:59] == [None] * 59
    assert Stop.PRECISE in stops[59:]
    other = Stopping()
    other(noisy[:40], 0.0, PLAN)
    assert other([99.0] * 41, 0.0, PLAN) is Stop.PRECISE, "as many as the first had, and none of them its own"


def test_one_look_at_many_samples_is_no_noise_that_has_settled() -> None:
    rule, plan = Stopping(), replace(PLAN, min_samples=1, spread=0.0)
    numbers = [100.0 + 40 * (n % 2) for n in range(400)]
    looks = [rule(numbers[:count], 0.0, plan) for count in range(WINDOW, 2 * WINDOW, STEP)]
    assert looks[: WINDOW // STEP] == [*[None] * (WINDOW // STEP - 1), Stop.SETTLED]


def test_noise_is_settled_over_sixty_four_samples_at_least() -> None:
    """The noise is a tenth at each look, of which there are eight until the sixty-third sample."""
    rule, plan = Stopping(), replace(PLAN, min_samples=1, spread=0.0)
    numbers = [100.0, *[90.0, 110.0] * 40]
    assert [rule(numbers[:count], 0.0, plan) for count in range(7, 72, STEP)] == [*[None] * 8, Stop.SETTLED]


def test_growing_noise_never_settles() -> None:
    numbers = [100 + (n % 2) * n for n in range(1000)]
    assert run(Stopping(), numbers) == (500, Stop.COUNT)


def test_a_spent_budget_stops_at_once() -> None:
    assert run(Stopping(), [6e8, 6e8, 6e8]) == (2, Stop.BUDGET)
    assert Stopping()([], 2e9, PLAN) is None


def test_a_device_is_watched_for_its_time_at_least() -> None:
    count, stop = run(Stopping(least_ns=5e5), [1e4] * 200)
    assert stop is Stop.PRECISE
    assert count >= 50


def test_nothing_seen_is_nothing_said() -> None:
    assert Stopping()([], 0.0, PLAN) is None


def test_zero_timings_never_look_precise() -> None:
    assert run(Stopping(), [0.0] * 600)[1] is Stop.COUNT


def test_one_rule_serves_one_process_after_another() -> None:
    rule = Stopping()
    source = random.Random(3)
    noisy = [source.gauss(100, 30) for _ in range(60)]
    for numbers in ([100.0] * 100, noisy, [5.0] * 100, [7.0] * 40):
        assert run(rule, numbers) == run(Stopping(), numbers)


def test_the_spread_is_the_relative_standard_deviation() -> None:
    rule, numbers = Stopping(), [1e9 + n for n in range(32)]
    rule(numbers, 0.0, PLAN)
    expected = statistics.stdev(numbers) / statistics.fmean(numbers)
    assert rule._noise[-1] == pytest.approx(expected, rel=1e-9, abs=0)


def test_the_spread_of_two_and_of_less_than_a_nanosecond() -> None:
    for numbers in ([1.0, 3.0], [0.25, 0.75]):
        rule = Stopping()
        rule(numbers, 0.0, PLAN)
        assert rule._noise == [pytest.approx(statistics.stdev(numbers) / statistics.fmean(numbers))]


def test_the_same_samples_are_looked_at_once() -> None:
    rule, numbers = Stopping(), [100.0] * 9
    rule(numbers, 0.0, PLAN)
    rule(numbers, 0.0, PLAN)
    assert len(rule._noise) == 1


def test_enough_is_enough_and_the_budget_is_spent_when_it_is_spent() -> None:
    steady = [100.0] * 40
    assert run(Stopping(), steady, Plan(min_samples=17)) == (17, Stop.PRECISE)
    assert run(Stopping(least_ns=1700.0), steady, Plan(min_samples=1)) == (17, Stop.PRECISE)
    assert Stopping()([1.0], 1e9, PLAN) is Stop.BUDGET


def test_no_spread_is_not_less_than_none() -> None:
    assert run(Stopping(), [100.0] * 500, Plan(min_samples=20, max_samples=500, spread=0.0)) == (500, Stop.COUNT)


def test_eight_looks_over_the_window_are_enough_to_have_settled() -> None:
    numbers = [90.5, 109.5] * 4 + [90.0, 110.0] * 28
    rule = Stopping()
    stops = [rule(numbers[:count], 0.0, PLAN) for count in range(STEP, len(numbers) + 1, STEP)]
    assert stops == [None] * 7 + [Stop.SETTLED]


def test_looking_costs_a_constant() -> None:
    looked = 0

    class Counting(list):
        def __getitem__(self, at):
            nonlocal looked
            looked += 1
            return super().__getitem__(at)

    rule, counting = Stopping(), Counting()
    for n in range(400):
        counting.append(100.0 + (n % 2) * n)
        rule(counting, 0.0, PLAN)
    assert looked < 4 * 400


def test_warm_by_count_and_time_or_by_agreement() -> None:
    rule, plan = WarmUp(), Plan(warmup_ns=200.0)
    assert rule([9.0], 3, 200.0, plan)
    assert not rule([9.0], 2, 200.0, plan)
    assert not rule([9.0], 3, 199.0, plan)
    assert rule([9.0, 5.0, 5.0, 5.0, 5.0, 5.04], 6, 0.0, plan)
    assert not rule([5.0, 5.0, 5.0, 5.0], 4, 0.0, plan)
    assert not rule([5.0, 5.0, 5.0, 5.0, 5.06], 5, 0.0, plan)
    assert rule([100.0, 100.0, 100.0, 100.0, 101.0], 5, 0.0, plan)


def test_samples_that_were_asked_for_by_name_are_taken_whatever_the_budget() -> None:
    assert run(Stopping(), [100.0] * 100, replace(PLAN, budget_ns=1.0)) == (1, Stop.BUDGET)
    assert run(Stopping(), [100.0] * 100, replace(PLAN, budget_ns=1.0, least_samples=7)) == (7, Stop.BUDGET)
