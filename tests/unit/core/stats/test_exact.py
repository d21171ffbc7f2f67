"""Exact tests against scipy and ruptures as oracles."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_perfgate.core.stats.binomial import clopper_pearson
from pytest_perfgate.core.stats.change_points import change_points
from pytest_perfgate.core.stats.hodges_lehmann import hodges_lehmann, shift_interval
from pytest_perfgate.core.stats.holm import adjusted
from pytest_perfgate.core.stats.signed_rank import pairs_needed, signed_rank


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


def test_pairs_that_show_nothing_convict_nobody() -> None:
    assert signed_rank([0.0, 0.0, 0.0]) == 1.0
    assert signed_rank([]) == 1.0
    assert (pairs_needed(0.01), pairs_needed(1 / 32), pairs_needed(0.01 / 40)) == (7, 5, 12)


def test_hodges_lehmann_and_its_interval_by_hand() -> None:
    d = [1.0, 2.0, 4.0]
    assert hodges_lehmann(d) == pytest.approx(np.median([1, 1.5, 2.5, 2, 3, 4]))
    assert (shift_interval(d).low, shift_interval(d).high, shift_interval(d).confidence) == (1, 4, 0.75)
    six = shift_interval([1.0, 2, 3, 4, 5, 6])
    assert (six.low, six.high, six.confidence) == (1, 6, pytest.approx(1 - 2 / 64))


def test_the_interval_of_the_shift_covers_what_it_says(dice: np.random.Generator) -> None:
    draws = dice.standard_t(3, (600, 10))
    found = [shift_interval(d) for d in draws]
    assert np.mean([i.holds(0.0) for i in found]) >= found[0].confidence - 0.03


def test_holm_by_hand() -> None:
    assert adjusted([0.004, 0.03, 0.02, 0.2]) == pytest.approx((0.016, 0.06, 0.06, 0.2))
    assert adjusted([0.004, 0.012, 0.013, 0.2]) == pytest.approx((0.016, 0.036, 0.036, 0.2))
    assert adjusted([0.01, 0.02, 0.5]) == pytest.approx((0.03, 0.04, 0.5))
    assert adjusted([]) == ()


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


def test_change_points_are_where_they_were_planted_and_where_the_oracle_finds_them(dice: np.random.Generator) -> None:
    line = np.exp(np.concatenate([dice.normal(0, 0.01, 20), dice.normal(0.1, 0.01, 15), dice.normal(0.05, 0.01, 15)]))
    found = change_points(line.tolist(), seed=1)
    assert [c.index for c in found] == [20, 35]
    assert found[0].change == pytest.approx(0.105, abs=0.02)
    ruptures = pytest.importorskip("ruptures")
    oracle = ruptures.Dynp(model="l2", min_size=3, jump=1).fit(np.log(line)).predict(n_bkps=2)
    assert oracle[:-1] == [20, 35]


def test_a_line_without_change_has_rarely_a_change_point() -> None:
    lines = [np.exp(np.random.default_rng(seed).normal(0, 0.02, 24)).tolist() for seed in range(40)]
    assert sum(bool(change_points(line, seed=seed)) for seed, line in enumerate(lines)) <= 5


@pytest.mark.parametrize("line", [[], [1.0], [1.0, 2.0, 3.0, 4.0, 5.0], [7.0] * 30])
def test_short_and_constant_lines_have_none(line: list[float]) -> None:
    assert change_points(line) == ()
