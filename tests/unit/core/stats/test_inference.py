"""Tests of core/stats/inference."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from pytest_perfgate.core.stats.inference import (
    EXACT_UP_TO,
    FIGURES,
    Prior,
    SampleStatistics,
    at_most,
    calls_needed,
    clopper_pearson,
    degrees_of_freedom,
    far,
    fisher,
    hodges_lehmann,
    pairs_needed,
    predict,
    prior,
    quantile_ranks,
    scatter_of_neighbours,
    shift_and_interval,
    signed_rank,
    walsh_averages,
    walsh_rank,
)
from pytest_perfgate.core.stats.summary import logs_of, of_processes


@pytest.fixture
def dice() -> np.random.Generator:
    """The same numbers for a test, whichever ran before it."""
    return np.random.default_rng(3)


@pytest.mark.parametrize("count", [1, 5, 10, 17, 40, 90])
def test_signed_rank_is_the_oracles(count: int, dice: np.random.Generator) -> None:
    stats = pytest.importorskip("scipy.stats")
    d = dice.normal(0.2, 1, count)
    assert signed_rank(d) == pytest.approx(stats.wilcoxon(d, alternative="greater", method="exact").pvalue, rel=1e-9)


def test_signed_rank_with_ties_counts_every_sign() -> None:
    d = [1.0, 1.0, -1.0, 2.0, 0.0, -0.5]
    ranks = np.array([4.0, 4.0, 4.0, 6.0, 2.0])
    signs = (np.arange(32)[:, None] >> np.arange(5)) & 1
    assert signed_rank(d) == pytest.approx(np.mean(signs @ ranks >= 14))


def test_signed_rank_far_beyond_the_table_is_its_limit(dice: np.random.Generator) -> None:
    stats = pytest.importorskip("scipy.stats")
    d = dice.normal(0.05, 1, 400)
    oracle = stats.wilcoxon(d, alternative="greater", method="approx", correction=True).pvalue
    assert signed_rank(d) == pytest.approx(oracle, rel=1e-3)


def test_pairs_that_show_nothing_confirm_nothing() -> None:
    assert signed_rank([0.0, 0.0, 0.0]) == 1.0
    assert signed_rank([]) == 1.0
    assert (pairs_needed(0.01), pairs_needed(1 / 32), pairs_needed(0.01 / 40)) == (7, 5, 12)


def test_hodges_lehmann_and_its_interval_by_hand() -> None:
    d = [1.0, 2.0, 4.0]
    assert hodges_lehmann(d) == pytest.approx(np.median([1, 1.5, 2.5, 2, 3, 4]))
    interval = shift_and_interval(d)[1]
    assert (interval.low, interval.high, interval.confidence) == (1, 4, 0.75)
    six = shift_and_interval([1.0, 2, 3, 4, 5, 6])[1]
    assert (six.low, six.high, six.confidence) == (1, 6, pytest.approx(1 - 2 / 64))


def test_the_interval_of_the_shift_covers_what_it_says(dice: np.random.Generator) -> None:
    draws = dice.standard_t(3, (600, 10))
    intervals = [shift_and_interval(d)[1] for d in draws]
    assert np.mean([i.holds(0.0) for i in intervals]) >= intervals[0].confidence - 0.03


@pytest.mark.parametrize(("hits", "count"), [(0, 300), (3, 300), (1, 1), (150, 300), (12000, 12000), (17, 12000)])
def test_clopper_pearson_is_the_oracles(hits: int, count: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    oracle = stats.binomtest(hits, count).proportion_ci(0.95, method="exact")
    ours = clopper_pearson(hits, count)
    assert (ours.low, ours.high) == (pytest.approx(oracle.low, abs=1e-9), pytest.approx(oracle.high, abs=1e-9))


@pytest.mark.parametrize("hits", [-1, 4])
def test_a_rate_of_more_than_all_is_refused(hits: int) -> None:
    with pytest.raises(ValueError, match="hits of 3"):
        clopper_pearson(hits, 3)
    with pytest.raises(ValueError, match="0 hits of 0"):
        clopper_pearson(0, 0)


def test_certain_and_impossible_rates() -> None:
    assert at_most(0, 3, 0.0) == 1.0
    assert (at_most(3, 3, 1.0), at_most(2, 3, 1.0)) == (1.0, 0.0)
    assert all(at_most(9, 9, n / 50) <= 1.0 for n in range(1, 50))


def test_a_level_is_reached_by_what_equals_it() -> None:
    assert walsh_rank(6, 1 / 32) == (1, 1 - 1 / 32)
    assert walsh_rank(6, 0.04) == (1, 1 - 1 / 32)
    assert walsh_rank(5, 0.05) == (0, 1 - 1 / 16)


def test_ten_pairs_leave_out_eight_averages_on_a_side() -> None:
    d = [0.3, 1.0, 2.2, 3.1, 4.7, 5.9, 6.4, 8.8, 9.6, 12.5]
    averages, interval = walsh_averages(d), shift_and_interval(d)[1]
    assert (interval.low, interval.high) == (averages[8], averages[-9])
    assert interval.confidence == 1 - 2 * 25 / 1024


def test_one_pair_decides_where_a_half_is_enough() -> None:
    assert (pairs_needed(0.5), pairs_needed(0.6)) == (1, 1)


def test_the_table_ends_where_it_says() -> None:
    stats = pytest.importorskip("scipy.stats")
    d = np.random.default_rng(9).normal(0.1, 1, EXACT_UP_TO)
    assert signed_rank(d) == pytest.approx(stats.wilcoxon(d, alternative="greater", method="exact").pvalue, rel=1e-9)
    more = np.random.default_rng(9).normal(0.1, 1, EXACT_UP_TO + 1)
    oracle = stats.wilcoxon(more, alternative="greater", method="approx", correction=True).pvalue
    assert signed_rank(more) == pytest.approx(oracle, rel=1e-9)


def test_every_interval_is_of_95_percent_unless_asked() -> None:
    assert clopper_pearson(3, 30) == clopper_pearson(3, 30, 0.95)
    d = [0.1 * n for n in range(12)]
    assert shift_and_interval(d) == shift_and_interval(d, 0.95)
    assert of_processes(logs_of([1.0, 2.0]), 1.5).confidence == 0.95


@pytest.mark.parametrize(("size", "method"), [(200, "exact"), (201, "approx")])
def test_up_to_two_hundred_pairs_are_counted_out(size: int, method: str) -> None:
    stats = pytest.importorskip("scipy.stats")
    d = np.random.default_rng(9).normal(0.1, 1, size)
    oracle = stats.wilcoxon(d, alternative="greater", method=method, correction=True).pvalue
    assert signed_rank(d) == pytest.approx(oracle, rel=1e-9)


def test_one_run_is_predicted_from_the_prior_alone() -> None:
    assert predict(0.04) == predict(0.04, scatter=9.0, runs=1, gates=1)
    assert predict(0.04, runs=3) == predict(0.04, scatter=0.0, runs=3)


@pytest.mark.parametrize(
    ("kind", "runs", "published"),
    [(Prior.CPU, 1, 0.80), (Prior.GPU_LOCKED, 1, 0.08), (Prior.CPU, 10, 0.21), (Prior.GPU_LOCKED, 10, 0.025)],
)
def test_the_published_figures(kind: Prior, runs: int, published: float) -> None:
    reach = predict(kind, scatter=kind, runs=runs, gates=40).reach
    assert reach == pytest.approx(published, rel=0.06)


def test_against_the_oracle() -> None:
    from scipy.stats import t

    prediction = predict(0.04, scatter=0.02, runs=6, gates=10)
    pooled = math.sqrt((4 * 0.04**2 + 5 * 0.02**2) / 9)
    assert (prediction.scatter, prediction.dof) == (pytest.approx(pooled), 9)
    assert prediction.log_reach == pytest.approx(t.ppf(1 - 0.001, 9) * pooled * math.sqrt(1 + 1 / 6))
    assert prediction.reach == pytest.approx(math.exp(prediction.log_reach) - 1)


def test_more_gates_reach_further_and_more_runs_less_far() -> None:
    assert predict(0.04, gates=400).reach > predict(0.04, gates=4).reach
    assert predict(0.04, scatter=0.04, runs=9).reach < predict(0.04, runs=1).reach


def test_nonsense_counts_are_one() -> None:
    assert predict(0.04, runs=0, gates=0) == predict(0.04)
    assert (predict(0.04).gates, predict(0.04).runs) == (1, 1)


def test_classes_of_devices() -> None:
    assert [p.value for p in Prior] == [0.005, 0.015, 0.04]
    assert prior("host", "lock") is Prior.CPU
    assert prior("gpu", "lock") is Prior.GPU_LOCKED
    assert prior("gpu", "observe") is Prior.GPU_FREE


def test_by_hand() -> None:
    assert scatter_of_neighbours([]) == scatter_of_neighbours([3.0]) == scatter_of_neighbours([3.0] * 9) == 0.0
    assert scatter_of_neighbours([1.0, math.e]) == pytest.approx(math.sqrt(1 / 2))
    assert scatter_of_neighbours([1.0, math.e, 1.0, 1.0]) == pytest.approx(math.sqrt(2 / 6))
    assert [degrees_of_freedom(n) for n in (0, 1, 2, 3, 4, 10, 20)] == [0, 0, 1, 1, 2, 6, 13]


def test_it_is_the_standard_deviation_where_nothing_moves() -> None:
    dice = random.Random(3)
    assert scatter_of_neighbours([math.exp(dice.gauss(0, 0.04)) for _ in range(4000)]) == pytest.approx(0.04, rel=0.05)


@pytest.mark.parametrize(
    "levels",
    [[0.007 * at for at in range(20)], [0.0] * 10 + [0.12] * 10, [0.03 * (at // 4) for at in range(20)]],
    ids=["a drift", "one step", "small steps"],
)
def test_what_the_code_does_hardly_widens_the_gate(levels: list[float]) -> None:
    dice = random.Random(5)
    noise = [dice.gauss(0, 0.02) for _ in levels]
    times = [[math.exp(level + error) for level, error in zip(some, noise)] for some in ([0.0] * 20, levels)]
    still, moved = (predict(0.04, scatter=scatter_of_neighbours(t), runs=20, gates=40, freedom=13) for t in times)
    assert moved.reach < still.reach + 0.04  # by the standard deviation of all of them it is up to 0.14 more


def test_a_quantile_that_a_whole_number_of_calls_bounds_needs_no_more() -> None:
    assert calls_needed(0.05 ** (1 / 6)) == 6


def test_no_chance_is_rounded_to_more_than_one() -> None:
    assert at_most(3, 3, 0.2) == 1.0


@pytest.mark.parametrize(("share", "calls"), [(0.99, 299), (0.01, 299), (0.95, 59), (0.5, 5), (0.999, 2995)])
def test_a_quantile_needs_so_many_calls(share: float, calls: int) -> None:
    assert calls_needed(share) == calls
    ranks = quantile_ranks(calls, share)
    assert 0 <= ranks.low <= ranks.middle <= ranks.high <= calls - 1
    assert 1 - max(share, 1 - share) ** calls >= 0.95 > 1 - max(share, 1 - share) ** (calls - 1)


@pytest.mark.parametrize(("count", "share"), [(299, 0.99), (1200, 0.99), (100, 0.9), (60, 0.5)])
def test_each_end_of_a_quantile_is_as_sure_as_it_says(count: int, share: float) -> None:
    ranks = quantile_ranks(count, share)
    before, high, low, after = (
        at_most(k, count, share) for k in (ranks.high - 1, ranks.high, ranks.low, ranks.low + 1)
    )
    assert high >= 0.95 > before  # P(quantile lies at or under that order statistic)
    assert low <= 0.05 < after


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7, 8, 21, 100])
def test_every_figure_is_pytest_benchmark_s(count: int) -> None:
    theirs = pytest.importorskip("pytest_benchmark.stats").Stats()
    source = random.Random(count)
    theirs.data = [source.lognormvariate(-9, 0.4) for _ in range(count)]
    figures = SampleStatistics(theirs.data)
    assert set(theirs.fields) == set(FIGURES)
    for name in FIGURES:
        expected = getattr(theirs, name)
        assert getattr(figures, name) == (expected if isinstance(expected, str) else pytest.approx(expected)), name


def test_figures_by_hand() -> None:
    figures = SampleStatistics([4.0, 1.0, 2.0, 3.0, 100.0])
    assert (figures.min, figures.max, figures.mean, figures.median, figures.rounds) == (1.0, 100.0, 22.0, 3.0, 5)
    assert (figures.q1, figures.q3, figures.iqr) == (1.75, 28.0, 26.25)
    assert (figures.iqr_outliers, figures.hd15iqr, figures.ld15iqr) == (1, 4.0, 1.0)
    assert figures.outliers == "1;1"
    assert figures.ops == 5 / 110
    assert figures.data == [4.0, 1.0, 2.0, 3.0, 100.0], "in the order in which they were taken"
    assert figures
    assert SampleStatistics([0.0]).ops == 0.0


def test_of_nothing_there_is_nothing_to_say() -> None:
    with pytest.raises(ValueError, match="at least one"):
        SampleStatistics([])


@pytest.mark.parametrize("count", [1, 2, 5, 10, 13, 14, 20, 59, 100, 299])
@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.9, 0.99])
def test_the_ends_of_a_quantile_are_the_oracle_s(count: int, share: float) -> None:
    binom = pytest.importorskip("scipy.stats").binom
    low = max((k for k in range(count) if binom.cdf(k, count, share) <= 0.05), default=0)
    high = min((k for k in range(count) if binom.sf(k, count, share) <= 0.05), default=count - 1)
    ranks = quantile_ranks(count, share)
    assert (ranks.low, ranks.middle, ranks.high) == (low, max(0, math.ceil(share * count - 1e-9) - 1), high)


@pytest.mark.parametrize(
    ("hits", "others", "count"), [(8, 0, 30), (5, 3, 10), (0, 4, 9), (9, 9, 9), (10, 2, 10), (3, 3, 5)]
)
def test_fisher_is_the_oracle_s(hits: int, others: int, count: int) -> None:
    hypergeom = pytest.importorskip("scipy.stats").hypergeom
    assert fisher(hits, others, count) == pytest.approx(hypergeom.sf(hits - 1, 2 * count, hits + others, count))


NEAR = (-0.1, 0.1, 0.05, -0.05, 0.02, 0.1, 0.03, -0.02)


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        ((3.0, 3.0, 3.0, 3.0, *NEAR), ((4, 0), 1 / 16)),
        ((3.0, 3.0, -3.0, 3.0, *NEAR), ((3, 1), 5 / 16)),
        ((3.0, -3.0, -3.0, -3.0, *NEAR), ((1, 3), 15 / 16)),
        ((-3.0, -3.0, *NEAR), ((0, 2), 1.0)),
        ((3.0, *NEAR), None),
        (NEAR, None),
    ],
)
def test_far_rounds_are_as_likely_above_as_below(differences: tuple[float, ...], expected) -> None:
    assert far(differences) == (expected and (expected[0], pytest.approx(expected[1])))
