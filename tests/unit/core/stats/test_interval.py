from __future__ import annotations

import math
import random

import pytest

from pytest_perfgate.core.stats.summary import (
    deviation,
    logs_of,
    median,
    median_rank,
    of_processes,
    of_samples,
    summary,
)
from pytest_perfgate.model.measurement import Stop
from tests.unit.core.gate.bench import samples


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
    found = of_processes(logs_of(medians), 101.0)
    assert found.low == pytest.approx(math.exp(mean - half))
    assert found.high == pytest.approx(math.exp(mean + half))
    assert found.confidence == 0.95


def test_the_interval_holds_the_median_it_is_shown_with() -> None:
    medians = [100.0] * 30 + [150.0] * 5
    assert of_processes(logs_of(medians), 100.0).low == 100.0
    assert of_processes(logs_of(medians), 150.0).high == 150.0


@pytest.mark.parametrize(("count", "rank"), [(1, 0), (5, 0), (6, 0), (8, 0), (9, 1), (20, 5), (40, 13), (100, 39)])
def test_ranks_of_a_median_are_those_of_the_binomial(count: int, rank: int) -> None:
    from scipy.stats import binom

    found, confidence = median_rank(count)
    assert found == rank
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


def test_a_sitting_is_the_median_of_its_processes() -> None:
    seen = summary([samples(100.0, batch=4, overhead=8.0, resolution=2.0), samples(103.0), samples(101.0, count=30)])
    assert seen.time == pytest.approx(101.0, rel=1e-4)
    assert seen.medians == pytest.approx((100.0, 103.0, 101.0), rel=1e-4)
    assert (seen.samples, seen.batch, seen.overhead, seen.resolution) == (21, 1, 2.0, 0.5)
    assert seen.interval.low < 100 < 103 < seen.interval.high


def test_one_process_is_known_by_its_own_samples() -> None:
    seen = summary([samples(100.0, spread=0.1)])
    assert seen.interval.low < 100 < seen.interval.high
    assert seen.interval.confidence >= 0.95
    assert seen.scatter == 0
    assert seen.visible == pytest.approx(seen.interval.high / seen.interval.low - 1)
    assert seen.spread == pytest.approx(5, rel=0.1)


def test_no_time_is_finer_than_half_a_tick() -> None:
    seen = summary([samples(100.0, spread=0.0, resolution=10.0)] * 3)
    assert (seen.interval.low, seen.interval.high) == (95.0, 105.0)
    assert seen.visible == pytest.approx(0.1)
    coarse = summary([samples(100.0, spread=0.0, resolution=1000.0)] * 3)
    assert coarse.interval.low == 50.0


def test_the_visible_slowdown_is_the_alarm_point_with_power() -> None:
    from scipy.stats import t

    seen = summary([samples(100.0), samples(101.0), samples(102.0), samples(101.0)])
    reach = (t.ppf(0.99, 3) + 0.84162) * seen.scatter / 2
    assert seen.visible == pytest.approx(math.expm1(reach), rel=1e-9)
