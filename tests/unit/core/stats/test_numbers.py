"""Numbers that the pages promise of the statistics, and what is decided at exactly an edge."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pytest_perfgate.core.stats.binomial import clopper_pearson
from pytest_perfgate.core.stats.change_points import _best, change_points
from pytest_perfgate.core.stats.hodges_lehmann import shift_interval
from pytest_perfgate.core.stats.interval import logs_of, median_rank, of_processes, of_samples
from pytest_perfgate.core.stats.prediction import predict
from pytest_perfgate.core.stats.signed_rank import signed_rank
from pytest_perfgate.core.stats.stopping import Stopping, WarmUp
from pytest_perfgate.core.stats.summary import summary
from pytest_perfgate.model.plan import Plan
from pytest_perfgate.model.samples import Samples, Stop
from tests.unit.core.gate.bench import samples


def test_every_interval_is_of_95_percent_unless_asked() -> None:
    assert clopper_pearson(3, 30) == clopper_pearson(3, 30, 0.95)
    d = [0.1 * n for n in range(12)]
    assert shift_interval(d) == shift_interval(d, 0.95)
    assert of_processes(logs_of([1.0, 2.0]), 1.5).confidence == 0.95


def test_two_samples_are_taken_like_two_processes() -> None:
    assert of_samples([1.0, 2.0]) == of_processes(logs_of([1.0, 2.0]), 1.5)


@pytest.mark.parametrize("count", [1000, 10_000, 1_000_000])
def test_many_samples_leave_out_what_the_normal_quantile_says(count: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    assert median_rank(count) == (int((count - stats.norm.ppf(0.975) * count**0.5) / 2) - 1, 0.95)


@pytest.mark.parametrize(("size", "method"), [(200, "exact"), (201, "approx")])
def test_up_to_two_hundred_pairs_are_counted_out(size: int, method: str) -> None:
    stats = pytest.importorskip("scipy.stats")
    d = np.random.default_rng(9).normal(0.1, 1, size)
    oracle = stats.wilcoxon(d, alternative="greater", method=method, correction=True).pvalue
    assert signed_rank(d) == pytest.approx(oracle, rel=1e-9)


# change points


def test_a_change_is_one_in_two_hundred_at_best_and_one_in_twenty_is_enough() -> None:
    (found,) = change_points([1.0, 1.1, 1.2] + [5.0, 5.1, 5.2] * 6)
    assert found.p == 1 / 200
    line = [1.0, 1.4, 1.2, 1.5, 1.1, 1.6, 1.7, 1.3, 1.9, 1.8]
    assert change_points(line) == change_points(line, level=0.05)


def test_fewer_than_three_sittings_are_no_level() -> None:
    assert [c.index for c in change_points([1.0, 1.1] * 8 + [9.0, 9.1, 9.2])] == [16]
    assert all(c.index <= 16 for c in change_points([1.0, 1.1] * 8 + [9.0, 9.1] + [1.0], level=1.0))


def test_a_split_before_the_last_two_is_weighed_like_any_other() -> None:
    apart = np.array([0.0, 0.3, 0.1, 0.2, 0.0, 0.4, 7.0, 9.0])
    strength, at = _best(apart, 2)
    mirrored, other = _best(apart[::-1].copy(), 2)
    assert (at, other) == (6, 2)
    assert strength == pytest.approx(mirrored)


# stopping


def looks(rule: Stopping, count: int, plan: Plan) -> list[int]:
    """After how many samples the rule looked."""
    at, seen = [], 0
    for n in range(1, count + 1):
        rule([100.0 + (k % 2) * k for k in range(n)], 0.0, plan)
        at += [n] if len(rule._noise) > seen else []
        seen = len(rule._noise)
    return at


def test_the_rule_looks_at_every_eighth_sample() -> None:
    assert looks(Stopping(), 33, Plan(max_samples=500)) == [1, 9, 17, 25, 33]


@pytest.mark.parametrize(("first", "stop"), [(9.5, Stop.SETTLED), (10.0, None)])
def test_noise_has_settled_when_it_held_to_a_twentieth_over_64_samples(first: float, stop: Stop | None) -> None:
    rule, numbers = Stopping(), [100.0 - first, 100.0 + first] * 4 + [90.0, 110.0] * 28
    stops = [rule(numbers[:count], 0.0, Plan()) for count in range(8, 65, 8)]
    assert stops == [None] * 7 + [stop]


def test_no_device_time_is_asked_for_unless_the_rule_is_made_so() -> None:
    assert Stopping()([100.0] * 20, 0.0, Plan(min_samples=20)) is Stop.PRECISE


def test_warm_after_three_calls_or_five_medians_within_one_percent() -> None:
    plan = Plan(warmup_ns=1e9)
    assert not WarmUp()([1.0], 2, 1e9, plan)
    assert WarmUp()([1.0], 3, 1e9, plan)
    assert not WarmUp()([1.0] * 4, 9, 0.0, plan)
    assert WarmUp()([1.0] * 4 + [1.009], 9, 0.0, plan)
    assert not WarmUp()([1.0] * 4 + [1.011], 9, 0.0, plan)


# sittings


def test_one_sitting_is_predicted_from_the_prior_alone() -> None:
    assert predict(0.04) == predict(0.04, scatter=9.0, sittings=1, gates=1)
    assert predict(0.04, sittings=3) == predict(0.04, scatter=0.0, sittings=3)


def test_a_plain_sitting_has_no_overhead_and_no_ticks() -> None:
    seen = summary([samples(100.0, batch=1)] * 3)
    assert (seen.batch, seen.overhead, seen.resolution) == (1, 0.0, 0.0)
    assert seen.visible == pytest.approx(0.0, abs=1e-12)


def took(*durations: float) -> Samples:
    return Samples(durations=durations, timer="host", stop=Stop.COUNT)


def test_two_processes_are_judged_by_how_far_they_are_apart() -> None:
    stats = pytest.importorskip("scipy.stats")
    seen = summary([samples(100.0), samples(104.0)])
    assert seen.interval == of_processes(logs_of(seen.medians), 102.0)
    reach = (stats.t.ppf(0.99, 1) + stats.norm.ppf(0.8)) * seen.scatter / 2**0.5
    assert seen.visible == pytest.approx(math.expm1(reach), rel=1e-4)


def test_a_process_timed_twice_is_known_by_both() -> None:
    assert summary([took(100.0, 110.0)]).interval == of_samples([100.0, 110.0])


@pytest.mark.parametrize(
    ("count", "low", "high"),
    [(1, 1, 1), (2, 1, 2), (4, 1, 4), (5, 2, 4), (8, 2, 7), (9, 3, 7), (11, 3, 9), (12, 3, 10)],
)
def test_the_spread_of_a_process_is_between_its_quartiles(count: int, low: int, high: int) -> None:
    """A quarter of the way in from each end, rounded outward: the n-th of the samples in their order."""
    powers = [2.0**n for n in range(1, count + 1)]
    assert summary([took(*powers)]).spread == 2.0**high - 2.0**low
