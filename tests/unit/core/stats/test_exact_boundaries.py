"""Where exact tests begin and end: the first and the last sitting, the smallest sample, the level itself."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

from pytest_perfgate.core.stats.inference import (
    EXACT_UP_TO,
    PERMUTATIONS,
    _best,
    adjusted,
    at_most,
    change_points,
    pairs_needed,
    shift_interval,
    signed_rank,
    walsh_averages,
    walsh_rank,
)

STEP = [1.0, 1.1, 1.2, 5.0, 5.1, 5.2]
"""The shortest line that can have a change."""


def test_certain_and_impossible_rates() -> None:
    assert at_most(0, 3, 0.0) == 1.0
    assert (at_most(3, 3, 1.0), at_most(2, 3, 1.0)) == (1.0, 0.0)
    assert all(at_most(9, 9, n / 50) <= 1.0 for n in range(1, 50))


def test_the_shortest_line_that_can_change() -> None:
    (found,) = change_points(STEP, level=0.5)
    assert (found.index, found.before, found.after) == (3, 1.1, 5.1)
    assert not change_points(STEP[1:], level=0.5)


def test_a_change_that_no_shuffle_matches_has_the_smallest_p() -> None:
    (found,) = change_points([1.0, 1.1, 1.2] + [5.0, 5.1, 5.2] * 6)
    assert found.index == 3
    assert found.p == 1 / (PERMUTATIONS + 1)


def test_a_surprise_of_exactly_the_level_is_one() -> None:
    line = [1.0, 1.4, 1.2, 1.5, 1.1, 1.6, 1.7, 1.3, 1.9, 1.8]
    p = change_points(line, level=0.9)[0].p
    assert change_points(line, level=p)
    assert not change_points(line, level=p - 1e-9)


def test_segments_at_both_ends_are_as_long_as_asked() -> None:
    assert [c.index for c in change_points([1.0] * 12 + [5.0, 5.0], level=1.0)][-1] <= 14 - 3
    found = change_points([1.0, 1.1, 1.2, *[5.0, 5.1, 5.2] * 4, 9.0, 9.1, 9.2])
    assert [c.index for c in found] == [3, 15]


@pytest.mark.parametrize("least", [1, 2, 3])
def test_the_strongest_split_is_the_one_of_the_definition(least: int) -> None:
    def apart(one, other) -> float:
        return float(np.mean([abs(x - y) for x, y in itertools.product(one, other)]))

    def within(one) -> float:
        return float(np.mean([abs(x - y) for x, y in itertools.permutations(one, 2)])) if len(one) > 1 else 0.0

    segment = np.random.default_rng(5).normal(0, 1, 11)
    strengths = {}
    for m in range(least, len(segment) - least + 1):
        a, b = segment[:m], segment[m:]
        energy = 2 * apart(a, b) - within(a) - within(b)
        strengths[m] = len(a) * len(b) / len(segment) * energy
    at = max(strengths, key=strengths.__getitem__)
    assert _best(segment, least) == (pytest.approx(strengths[at]), at)


def test_a_level_is_reached_by_what_equals_it() -> None:
    assert adjusted([0.025, 0.0500001]) == (0.05, 0.0500001)
    assert adjusted([0.9, 0.8]) == (1.0, 1.0)
    assert walsh_rank(6, 1 / 32) == (1, 1 - 1 / 32)
    assert walsh_rank(6, 0.04) == (1, 1 - 1 / 32)
    assert walsh_rank(5, 0.05) == (0, 1 - 1 / 16)


def test_ten_pairs_leave_out_eight_averages_on_a_side() -> None:
    d = [0.3, 1.0, 2.2, 3.1, 4.7, 5.9, 6.4, 8.8, 9.6, 12.5]
    averages, found = walsh_averages(d), shift_interval(d)
    assert (found.low, found.high) == (averages[8], averages[-9])
    assert found.confidence == 1 - 2 * 25 / 1024


def test_one_pair_decides_where_a_half_is_enough() -> None:
    assert (pairs_needed(0.5), pairs_needed(0.6)) == (1, 1)


def test_the_table_ends_where_it_says() -> None:
    stats = pytest.importorskip("scipy.stats")
    d = np.random.default_rng(9).normal(0.1, 1, EXACT_UP_TO)
    assert signed_rank(d) == pytest.approx(stats.wilcoxon(d, alternative="greater", method="exact").pvalue, rel=1e-9)
    more = np.random.default_rng(9).normal(0.1, 1, EXACT_UP_TO + 1)
    oracle = stats.wilcoxon(more, alternative="greater", method="approx", correction=True).pvalue
    assert signed_rank(more) == pytest.approx(oracle, rel=1e-9)


def test_numbers_that_are_no_times_are_passed_over() -> None:
    """A zero has no logarithm: it made every statistic of the line no number."""
    (clean,) = change_points([1.0] * 8 + [2.0] * 8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (found,) = change_points([0.0, *[1.0] * 8, -1.0, *[2.0] * 4, float("nan"), *[2.0] * 4])
    assert (clean.index, found.index) == (8, 10)
    assert (found.before, found.after) == (1.0, 2.0)
