"""Tests of core/stats/summary."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from pytest_perfgate.core.stats.summary import (
    Stopping,
    WarmUp,
    deviation,
    exhausted,
    group_gap,
    left_of,
    logs_of,
    median,
    median_rank,
    middle,
    of_processes,
    of_samples,
    summary,
    t_quantile,
    t_tail,
)
from pytest_perfgate.model.measurement import Samples, Stop
from pytest_perfgate.model.plan import Plan
from tests.unit.core.judge.bench import samples


def test_medians() -> None:
    assert median([3]) == 3
    assert median([1, 2]) == 1.5
    assert median([1, 2, 9]) == 2


def test_deviation() -> None:
    assert deviation([1.0], 1.0) == 0.0
    assert deviation([1.0, 3.0], 2.0) == pytest.approx(math.sqrt(2))


def test_the_interval_of_processes_is_student_s_on_logarithms() -> None:
    from scipy.stats import t

    medians = (100.0, 101.0, 104.0)
    logs = [math.log(m) for m in medians]
    mean = sum(logs) / 3
    spread = math.sqrt(sum((x - mean) ** 2 for x in logs) / 2)
    half = t.ppf(0.975, 2) * spread / math.sqrt(3)
    interval = of_processes(logs_of(medians), 101.0)
    assert interval.low == pytest.approx(math.exp(mean - half))
    assert interval.high == pytest.approx(math.exp(mean + half))
    assert interval.confidence == 0.95


def test_the_interval_holds_the_median_it_is_shown_with() -> None:
    medians = [100.0] * 30 + [150.0] * 5
    assert of_processes(logs_of(medians), 100.0).low == 100.0
    assert of_processes(logs_of(medians), 150.0).high == 150.0


@pytest.mark.parametrize(("count", "rank"), [(1, 0), (5, 0), (6, 0), (8, 0), (9, 1), (20, 5), (40, 13), (100, 39)])
def test_ranks_of_a_median_are_those_of_the_binomial(count: int, rank: int) -> None:
    from scipy.stats import binom

    at, confidence = median_rank(count)
    assert at == rank
    assert confidence == pytest.approx(1 - 2 * binom.cdf(rank, count, 0.5), abs=1e-12) if count > 1 else confidence == 0
    assert count < 6 or (confidence >= 0.95 and 1 - 2 * binom.cdf(rank + 1, count, 0.5) < 0.95)


@pytest.mark.parametrize("count", [1000, 1001, 2000, 9999])
def test_ranks_of_many_samples_cover_at_least_as_much(count: int) -> None:
    from scipy.stats import binom

    rank, _ = median_rank(count)
    assert 0.95 <= 1 - 2 * binom.cdf(rank, count, 0.5) < 0.96


def test_the_interval_of_one_process_covers_as_promised() -> None:
    source = random.Random(5)
    hits = sum(of_samples(sorted(source.expovariate(1) for _ in range(25))).holds(math.log(2)) for _ in range(2000))
    assert 0.94 < hits / 2000 < 0.99


def test_a_few_samples_are_taken_like_a_few_processes() -> None:
    few = [1.0, 2.0, 3.0]
    assert of_samples(few) == of_processes(logs_of(few), 2.0)
    assert of_samples([1.0] * 6).confidence == pytest.approx(1 - 2 / 64)
    assert of_samples([1.0, 1.1, 1.2, 1.3, 1.4, 9.0]).high == 9.0
    assert of_samples([1.0, 1.1, 1.2, 1.3, 9.0]).low < 1.0


def test_one_sample_decides_only_what_is_plain() -> None:
    once = summary([samples(100.0, count=1)])
    assert (once.interval.low, once.interval.high, once.interval.confidence) == (80.0, 125.0, 0.0)
    elsewhere = summary([samples(100.0, count=1, stop=Stop.RECORDED)])
    assert (elsewhere.interval.low, elsewhere.interval.high, elsewhere.interval.confidence) == (100.0, 100.0, 0.0)


def test_a_run_is_the_median_of_its_processes() -> None:
    result = summary([samples(100.0, batch=4, overhead=8.0, resolution=2.0), samples(103.0), samples(101.0, count=30)])
    assert result.time == pytest.approx(101.0, rel=1e-4)
    assert result.medians == pytest.approx((100.0, 103.0, 101.0), rel=1e-4)
    assert (result.samples, result.batch, result.overhead, result.resolution) == (21, 1, 2.0, 0.5)
    assert result.interval.low < 100 < 103 < result.interval.high


def test_one_process_is_known_by_its_own_samples() -> None:
    result = summary([samples(100.0, spread=0.1)])
    assert result.interval.low < 100 < result.interval.high
    assert result.interval.confidence >= 0.95
    assert result.scatter == 0
    assert result.visible == pytest.approx(result.interval.high / result.interval.low - 1)
    assert result.spread == pytest.approx(5, rel=0.1)


def test_no_time_is_finer_than_half_a_tick() -> None:
    result = summary([samples(100.0, spread=0.0, resolution=10.0)] * 3)
    assert (result.interval.low, result.interval.high) == (95.0, 105.0)
    assert result.visible == pytest.approx(0.1)
    coarse = summary([samples(100.0, spread=0.0, resolution=1000.0)] * 3)
    assert coarse.interval.low == 50.0


def test_the_visible_slowdown_is_the_alarm_point_with_power() -> None:
    from scipy.stats import t

    result = summary([samples(100.0), samples(101.0), samples(102.0), samples(101.0)])
    reach = (t.ppf(0.99, 3) + 0.84162) * result.scatter / 2
    assert result.visible == pytest.approx(math.expm1(reach), rel=1e-9)


def test_two_samples_are_taken_like_two_processes() -> None:
    assert of_samples([1.0, 2.0]) == of_processes(logs_of([1.0, 2.0]), 1.5)


@pytest.mark.parametrize("count", [1000, 10_000, 1_000_000])
def test_many_samples_leave_out_what_the_normal_quantile_says(count: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    assert median_rank(count) == (int((count - stats.norm.ppf(0.975) * count**0.5) / 2) - 1, 0.95)


def looks(rule: Stopping, count: int, plan: Plan) -> list[int]:
    """After how many samples the rule looked."""
    at, length = [], 0
    for n in range(1, count + 1):
        rule([100.0 + (k % 2) * k for k in range(n)], 0.0, plan)
        at += [n] if len(rule._noise) > length else []
        length = len(rule._noise)
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


def test_a_plain_run_has_no_overhead_and_no_ticks() -> None:
    result = summary([samples(100.0, batch=1)] * 3)
    assert (result.batch, result.overhead, result.resolution) == (1, 0.0, 0.0)
    assert result.visible == pytest.approx(0.0, abs=1e-12)


def took(*durations: float) -> Samples:
    return Samples(durations=durations, timer="host", stop=Stop.COUNT)


def test_two_processes_are_judged_by_how_far_they_are_apart() -> None:
    stats = pytest.importorskip("scipy.stats")
    result = summary([samples(100.0), samples(104.0)])
    assert result.interval == of_processes(logs_of(result.medians), 102.0)
    reach = (stats.t.ppf(0.99, 1) + stats.norm.ppf(0.8)) * result.scatter / 2**0.5
    assert result.visible == pytest.approx(math.expm1(reach), rel=1e-4)


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


DEGREES = (1, 2, 3, 4, 5, 9, 13, 30, 100, 1000)
POINTS = (0.5, 0.6, 0.9, 0.975, 0.99, 0.99975, 1 - 1e-7)


@pytest.mark.parametrize("dof", DEGREES)
def test_against_the_oracle(dof: int) -> None:
    from scipy.stats import t

    for confidence in POINTS:
        assert t_quantile(confidence, dof) == pytest.approx(t.ppf(confidence, dof), rel=1e-9, abs=1e-12)
        assert t_quantile(1 - confidence, dof) == pytest.approx(t.ppf(1 - confidence, dof), rel=1e-8, abs=1e-12)
    for x in (-30.0, -2.0, -0.1, 0.0, 0.3, 1.0, 5.0, 80.0):
        assert t_tail(x, dof) == pytest.approx(t.sf(x, dof), rel=1e-10, abs=1e-300)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, 2.0])
def test_a_probability_lies_between(confidence: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        t_quantile(confidence, 3)


def test_nothing_lies_beyond_infinity() -> None:
    assert (t_tail(math.inf, 3), t_tail(-math.inf, 3), t_tail(1e200, 1)) == (0.0, 1.0, 0.0)


WHOLE = replace(Plan(), warmup_ns=200e6, budget_ns=800e6, min_samples=20)


def test_what_is_left_is_cut_alike() -> None:
    rest = left_of(WHOLE, 500e6, 2000)
    assert rest is not None
    assert (rest.warmup_ns, rest.budget_ns) == (100e6, 400e6)
    assert replace(rest, warmup_ns=WHOLE.warmup_ns, budget_ns=WHOLE.budget_ns) == WHOLE


def test_there_must_be_room_for_the_samples_that_are_asked_for() -> None:
    assert left_of(WHOLE, 440e6, 20) is not None
    assert left_of(WHOLE, 450e6, 20) is None
    assert left_of(replace(WHOLE, least_samples=200), 450e6, 200) is None
    assert left_of(WHOLE, 450e6, 200) is not None


def test_one_long_sample_is_as_long_as_all_that_are_asked_for() -> None:
    assert left_of(WHOLE, 30e6, 1) is not None
    assert left_of(WHOLE, 45e6, 1) is None


def test_exactly_enough_is_enough() -> None:
    assert left_of(WHOLE, 500e6, 25) is not None
    assert left_of(WHOLE, 500e6, 24) is None


def test_nothing_is_left_of_a_budget_that_is_spent_or_that_there_never_was() -> None:
    assert left_of(WHOLE, 1000e6, 2000) is None
    assert left_of(WHOLE, 2500e6, 2000) is None
    assert left_of(replace(WHOLE, warmup_ns=0.0, budget_ns=0.0), 0.0, 0) is None
    assert exhausted(WHOLE, 2500e6)[1] == "0 s of 1 s were left: too little for 20 samples"


def test_a_slice_of_a_budget_is_whole_again() -> None:
    turn = replace(WHOLE, in_turns=True, min_samples=2000, warmup_ns=0.0)
    assert left_of(turn, 5e9, 1) == turn


def test_groups_of_processes() -> None:
    assert group_gap([1.0, 2.0], 0.0) is None
    assert group_gap([1.0, 1.0, 3.5, 3.5], 0.0, 1.0) == (1.0, 3.5)
    assert group_gap([1.0, 1.0, 2.9, 2.9], 0.0, 1.0) is None


def test_the_edges_of_the_widest_gap() -> None:
    assert group_gap([3.0, 1.0, 1.1, 3.2, 3.1], spread=0.1) == (1.1, 3.0)


def test_a_gap_within_the_noise_or_beside_one_process_is_none() -> None:
    assert group_gap([1.0, 1.1, 1.4, 1.5], spread=0.1) is None
    assert group_gap([1.0, 1.0, 1.0, 9.0], spread=0.1) is None
    assert group_gap([1.0, 1.0, 2.0, 2.0], spread=0.0, resolution=0.5) is None
    assert group_gap([], spread=0.0) is None


def test_groups_are_more_than_three_quartile_ranges_apart_with_two_processes_each() -> None:
    assert group_gap([1.0, 1.0, 1.29, 1.29], spread=0.1) is None
    assert group_gap([1.0, 1.0, 1.31, 1.31], spread=0.1) == (1.0, 1.31)
    assert group_gap([1.0, 1.31, 1.31], spread=0.1) is None


@pytest.mark.parametrize(
    ("ordered", "time"),
    [
        ([1088.0] * 56 + [1120.0] * 44, 1100.2),
        ([1088.0] * 44 + [1120.0] * 56, 1107.8),
        ([1056.0] * 20 + [1087.0, 1088.0, 1089.0] * 20 + [1120.0] * 20, 1088.0),
        ([2000.0] * 10 + [2032.0] * 10, 2016.0),
        ([100_000.0] * 56 + [100_032.0] * 44, 100_000.0),
        ([1000.0 + at for at in range(101)], 1050.0),
        ([200.0] * 60 + [201.0] * 15 + [202.0] * 25, 200.0),
        ([1000.0] * 40 + [1003.0] * 20 + [1010.0] * 40, 1003.0),
        ([1000.0 * 1.01**at for at in range(80)], 1000.0 * (1.01**39 + 1.01**40) / 2),
        ([1000.0] * 28 + [1020.0] * 22, 1000.0 + 20 * 10 / 26),
        ([1000.0] * 27 + [1020.0] * 22, 1000.0),
        ([1000.0] * 56 + [1005.0] * 44, 1000.0 + 5 * 19 / 50),
        ([1000.0] * 56 + [1004.9] * 44, 1000.0),
        (
            [900.0] * 32 + [1000.0 + 10 * at for at in range(16) for _ in range(5 if at < 8 else 3)] + [1300.0] * 32,
            1065.0,
        ),
    ],
    ids=[
        "two levels",
        "the other way round",
        "rounded",
        "too few",
        "fine for this call",
        "many levels",
        "nanoseconds",
        "one fine step of two",
        "many coarse levels",
        "fifty",
        "49",
        "a step of half a per cent",
        "less",
        "16 levels",
    ],
)
def test_the_levels_of_a_coarse_clock_are_averaged(ordered: list[float], time: float) -> None:
    """Medians of the first two are 3 % apart, though one sample in eight is another."""
    assert middle(ordered) == pytest.approx(time, abs=0.5)
