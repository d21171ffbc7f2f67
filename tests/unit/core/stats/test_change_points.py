"""Tests of core/stats/change_points."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

from pytest_perfgate.core.stats.change_points import (
    PERMUTATIONS,
    _best_split,
    _on_grid,
    _rank_part,
    _rank_split,
    _ranks,
    _shuffled,
    change_points,
)


@pytest.fixture
def dice() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.mark.no_cover
def test_change_points_are_where_they_were_planted_and_where_the_oracle_finds_them(dice: np.random.Generator) -> None:
    line = np.exp(np.concatenate([dice.normal(0, 0.01, 20), dice.normal(0.1, 0.01, 15), dice.normal(0.05, 0.01, 15)]))
    changes = change_points(line.tolist(), seed=1)
    assert [c.index for c in changes] == [20, 35]
    assert changes[0].change == pytest.approx(0.105, abs=0.02)
    ruptures = pytest.importorskip("ruptures")
    oracle = ruptures.Dynp(model="l2", min_size=3, jump=1).fit(np.log(line)).predict(n_bkps=2)
    assert oracle[:-1] == [20, 35]


@pytest.mark.no_cover
def test_a_line_without_change_has_rarely_a_change_point() -> None:
    lines = [np.exp(np.random.default_rng(seed).normal(0, 0.02, 24)).tolist() for seed in range(40)]
    assert sum(bool(change_points(line, seed=seed)) for seed, line in enumerate(lines)) <= 5


@pytest.mark.parametrize("line", [[], [1.0], [1.0, 2.0, 3.0, 4.0, 5.0], [7.0] * 30])
def test_short_and_constant_lines_have_none(line: list[float]) -> None:
    assert change_points(line) == ()


STEP = [1.0, 1.1, 1.2, 5.0, 5.1, 5.2]
"""The shortest line that can have a change."""


def test_the_shortest_line_that_can_change() -> None:
    (change,) = change_points(STEP, level=0.5)
    assert (change.index, change.before, change.after) == (3, 1.1, 5.1)
    assert not change_points(STEP[1:], level=0.5)


def test_a_change_that_no_shuffle_matches_has_the_smallest_p() -> None:
    (change,) = change_points([1.0, 1.1, 1.2] + [5.0, 5.1, 5.2] * 6)
    assert change.index == 3
    assert change.p == 1 / (PERMUTATIONS + 1)


def test_a_surprise_of_exactly_the_level_is_one() -> None:
    line = [1.0, 1.4, 1.2, 1.5, 1.1, 1.6, 1.7, 1.3, 1.9, 1.8]
    p = change_points(line, level=0.9)[0].p
    assert change_points(line, level=p)
    assert not change_points(line, level=p - 1e-9)


def test_segments_at_both_ends_are_as_long_as_asked() -> None:
    assert [c.index for c in change_points([1.0] * 12 + [5.0, 5.0], level=1.0)][-1] <= 14 - 3
    changes = change_points([1.0, 1.1, 1.2, *[5.0, 5.1, 5.2] * 4, 9.0, 9.1, 9.2])
    assert [c.index for c in changes] == [3, 15]


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
    assert _best_split(segment, least) == (pytest.approx(strengths[at]), (at,))


def test_numbers_that_are_no_times_are_passed_over() -> None:
    """A zero has no logarithm: it made every statistic of the line no number."""
    (clean,) = change_points([1.0] * 8 + [2.0] * 8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (change,) = change_points([0.0, *[1.0] * 8, -1.0, *[2.0] * 4, float("nan"), *[2.0] * 4])
    assert (clean.index, change.index) == (8, 10)
    assert (change.before, change.after) == (1.0, 2.0)


def test_a_change_is_one_in_two_hundred_at_best_and_one_in_twenty_is_enough() -> None:
    (change,) = change_points([1.0, 1.1, 1.2] + [5.0, 5.1, 5.2] * 6)
    assert change.p == 1 / 200
    line = [1.0, 1.4, 1.2, 1.5, 1.1, 1.6, 1.7, 1.3, 1.9, 1.8]
    assert change_points(line) == change_points(line, level=0.05)


def test_fewer_than_three_runs_are_no_level() -> None:
    assert [c.index for c in change_points([1.0, 1.1] * 8 + [9.0, 9.1, 9.2])] == [16]
    assert all(c.index <= 16 for c in change_points([1.0, 1.1] * 8 + [9.0, 9.1] + [1.0], level=1.0))


def test_a_split_before_the_last_two_is_weighed_like_any_other() -> None:
    apart = np.array([0.0, 0.3, 0.1, 0.2, 0.0, 0.4, 7.0, 9.0])
    strength, (at,) = _best_split(apart, 2)
    mirrored, (other,) = _best_split(apart[::-1].copy(), 2)
    assert (at, other) == (6, 2)
    assert strength == pytest.approx(mirrored)


def test_a_long_line_has_its_changes_where_they_were_planted(dice: np.random.Generator) -> None:
    line = np.exp(np.concatenate([dice.normal(level, 0.01, 120) for level in (0.0, 0.05, 0.0, 0.1)]))
    changes = change_points(line.tolist())
    assert [c.index for c in changes] == pytest.approx([120, 240, 360], abs=2)
    assert [c.change for c in changes] == pytest.approx([0.05, -0.05, 0.105], abs=0.01)


def test_a_long_line_shows_what_is_new(dice: np.random.Generator) -> None:
    line = np.exp(np.concatenate([dice.normal(0, 0.01, 400), dice.normal(0.06, 0.01, 4)]))
    assert [c.index for c in change_points(line.tolist())] == [400]


@pytest.mark.no_cover
def test_a_long_line_without_change_has_rarely_a_change_point() -> None:
    lines = [np.random.default_rng(seed).lognormal(0, 0.02, 90 + seed) for seed in range(200)]
    assert 1 <= sum(bool(change_points(line.tolist())) for line in lines) <= 20


@pytest.mark.parametrize("line", [[7.0] * 300, [7.0, 7.1] * 150])
def test_a_long_line_of_few_values_has_none(line: list[float]) -> None:
    assert change_points(line) == ()


@pytest.mark.parametrize(("count", "first", "end"), [(36, 14, 22), (60, 20, 30), (300, 140, 170)])
def test_a_level_that_came_and_went_is_seen(dice: np.random.Generator, count: int, first: int, end: int) -> None:
    """No single split shows it: what is before and after it is alike."""
    line = np.exp(dice.normal(0, 0.01, count))
    line[first:end] *= 1.2
    changes = {c.index: c.change for c in change_points(line.tolist(), level=0.01)}
    assert changes[first] == pytest.approx(0.2, abs=0.03)
    assert changes[end] == pytest.approx(-1 / 6, abs=0.03)


def by_definition(ranks: np.ndarray, first: int, end: int) -> float:
    """How far the sum of some of the ranks 1 to n is from what chance gives, in Wilcoxon's standard deviations."""
    count, size = len(ranks), end - first
    mean, variance = size * (count + 1) / 2, size * (count - size) * (count + 1) / 12
    return abs(sum(ranks[first:end]) - mean) / variance**0.5


@pytest.mark.parametrize(("count", "first", "end"), [(30, 8, 16), (99, 40, 55), (99, 3, 20), (99, 80, 96)])
def test_the_part_that_ranks_highest_is_the_one_of_the_definition(
    dice: np.random.Generator, count: int, first: int, end: int
) -> None:
    line = dice.normal(0, 1, count)
    line[first:end] += 1.5
    ranks = _ranks(line)
    parts = [(by_definition(ranks, a, b), a, b) for a in range(3, count - 5) for b in range(a + 3, count - 2)]
    strength, a, b = max(parts)
    assert _rank_part(ranks, 3) == (pytest.approx(strength), (a, b))


@pytest.mark.parametrize(("count", "first", "end"), [(250, 119, 161), (250, 3, 61), (250, 189, 247), (301, 133, 178)])
def test_a_part_of_a_long_line_is_found_to_the_run(count: int, first: int, end: int) -> None:
    """Its ends are searched in steps, and then around the best of them."""
    line = np.zeros(count)
    line[first:end] = 1
    assert _rank_part(_ranks(line), 3)[1] == (first, end)


@pytest.mark.parametrize(("first", "end", "part"), [(99, 250, (99, 247)), (0, 151, (3, 151))])
def test_a_part_at_the_end_of_a_long_line_leaves_three_runs(first: int, end: int, part: tuple[int, int]) -> None:
    line = np.zeros(250)
    line[first:end] = 1
    assert _rank_part(_ranks(line), 3)[1] == part


def test_six_ranks_in_any_order_split_as_chance_has_it() -> None:
    """Three ranks of six add up to 6 at least and to 15 at most, 10.5 on average."""
    strengths = {(abs(total - 10.5) / (3 * 3 * 7 / 12) ** 0.5) for total in range(6, 16)}
    assert {*_shuffled(6, 3, _rank_split).tolist()} == strengths


def test_no_part_fits_where_both_its_sides_need_three_runs() -> None:
    assert _rank_part(np.arange(1.0, 9.0), 3) == (-np.inf, ())
    assert _rank_part(np.arange(1.0, 10.0), 3)[1] == (3, 6)


@pytest.mark.parametrize("least", [1, 3])
def test_the_split_of_ranks_is_the_one_of_the_definition(dice: np.random.Generator, least: int) -> None:
    ranks = _ranks(dice.normal(0, 1, 40))
    strengths = {at: by_definition(ranks, 0, at) for at in range(least, 41 - least)}
    at = max(strengths, key=strengths.__getitem__)
    assert _rank_split(ranks, least) == (pytest.approx(strengths[at]), (at,))


@pytest.mark.parametrize(("ranks", "at"), [([5] * 9 + [9] * 3, 9), ([9] * 3 + [5] * 9, 3)])
def test_a_split_of_ranks_may_leave_just_three_runs_at_either_end(ranks: list[int], at: int) -> None:
    assert _rank_split(_ranks(np.array(ranks, dtype=float)), 3)[1] == (at,)


def test_equal_values_share_their_mean_rank() -> None:
    assert _ranks(np.array([3.0, 1.0, 1.0, 2.0, 1.0])).tolist() == [5.0, 2.0, 2.0, 4.0, 2.0]


@pytest.mark.parametrize(
    ("count", "longer"), [(6, 7), (11, 12), (12, 14), (80, 81), (81, 89), (89, 98), (100, 107), (121, 130), (400, 406)]
)
def test_chance_is_that_of_a_line_as_long_or_up_to_a_tenth_longer(count: int, longer: int) -> None:
    assert _on_grid(count) == longer


@pytest.mark.parametrize(("count", "p"), [(79, 1 / 200), (80, 1 / 500)])
def test_a_line_of_eighty_runs_is_long(dice: np.random.Generator, count: int, p: float) -> None:
    line = np.exp(dice.normal(0, 0.01, count))
    line[40:] *= 1.3
    (change,) = change_points(line.tolist())
    assert (change.index, change.p) == (40, p)


def test_both_searches_of_a_long_line_have_half_the_level(dice: np.random.Generator) -> None:
    """A plain change has the smallest chance that each of them can count: one in 500 by ranks, one in 200 by distances."""
    line = np.exp(dice.normal(0, 0.01, 120))
    line[60:] *= 1.3
    assert [c.index for c in change_points(line.tolist(), level=2 / 500)] == [60]
    assert not change_points(line.tolist(), level=1.9 / 500)
    new = np.exp(dice.normal(0, 0.01, 120))
    new[-3:] *= 1.3
    assert [c.index for c in change_points(new.tolist(), level=2 / 200)] == [117]
    assert not change_points(new.tolist(), level=1.9 / 200)


def test_what_is_new_in_a_long_line_is_counted_from_its_last_change() -> None:
    line = np.exp(0.01 * (np.arange(200) * 7 % 5))
    line[150:] *= 1.3
    line[-4:] *= 1.3
    changes = change_points(line.tolist())
    assert [c.index for c in changes] == [150, 196]
    assert [c.change for c in changes] == pytest.approx([0.3, 0.3], abs=0.02)


def test_the_search_for_parts_of_a_long_line_has_a_quarter_of_the_level(dice: np.random.Generator) -> None:
    line = np.exp(dice.normal(0, 0.01, 300))
    line[100:130] *= 1.2
    assert [c.index for c in change_points(line.tolist(), level=4 / 500)] == [100, 130]
    assert not change_points(line.tolist(), level=3.9 / 500)
