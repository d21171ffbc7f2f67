"""Rates of the rounds, drawn: what the looks may err is what they err, whatever the differences scatter like."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pytest_perfgate.core.judge.rounds import CLEARS, IN_CI, OFTEN, Design, Pairs, look, more_slow
from pytest_perfgate.core.stats.inference import fisher
from pytest_perfgate.model.plan import Decision

LIMIT = 0.03
Array = np.ndarray


def heavy(dice: np.random.Generator, size: tuple[int, ...]) -> Array:
    """Differences of which some lie far off, as those of a busy machine."""
    return dice.standard_t(2, size) * 0.01


def calm(dice: np.random.Generator, size: tuple[int, ...]) -> Array:
    return dice.normal(0, 0.02, size)


def states(dice: np.random.Generator, size: tuple[int, ...]) -> Array:
    """Three of ten processes 11 % slower, on either side."""
    coins = (dice.random(size) < 0.3).astype(float) - (dice.random(size) < 0.3)
    return 0.11 * coins + dice.normal(0, 0.004, size)


def decisions(differences: Array, design: Design) -> list[Decision]:
    ones = (1.0,) * design.last
    found = (look(None, Pairs(base=ones, head=tuple(np.exp(row)), spread=0.01), LIMIT, design) for row in differences)
    return [one.decision for one in found]


def tails(rounds: int) -> Array:
    """How surprising each sum of ranks is, counted out."""
    chances = np.zeros(rounds * (rounds + 1) // 2 + 1)
    chances[0] = 1.0
    for rank in range(1, rounds + 1):
        chances[rank:] = chances[rank:] / 2 + chances[:-rank] / 2
        chances[:rank] /= 2
    return np.cumsum(chances[::-1])[::-1]


def cleared(below: Array) -> Array:
    """Whether the ranks of what lies below zero clear a row at some look, from the seventh round on."""
    found = np.zeros(len(below), bool)
    for rounds in (count for count in range(7, below.shape[1] + 1) if count <= OFTEN or count % 10 == 0):
        part = below[:, :rounds]
        by_size = np.take_along_axis(part < 0, np.abs(part).argsort(1), 1)
        found |= tails(rounds)[by_size @ np.arange(1, rounds + 1)] <= CLEARS
    return found


def test_at_most_one_in_twenty_of_what_is_slower_by_just_its_limit_passes_over_all_looks() -> None:
    """Forty thousand sequences of signs and ranks, which no scatter changes as long as it is symmetric."""
    for scattered in (calm, heavy):
        drawn = scattered(np.random.default_rng(5), (40_000, IN_CI))
        assert 0.036 < cleared(drawn[:, :OFTEN]).mean() < 0.043
        assert 0.044 < cleared(drawn).mean() < 0.05


@pytest.mark.parametrize("scattered", [calm, heavy])
def test_a_look_clears_by_these_ranks(scattered) -> None:
    dice = np.random.default_rng(18)
    drawn = scattered(dice, (300, 30))
    found = decisions(drawn + math.log1p(LIMIT), Design())
    for one, expected in zip(found, cleared(drawn)):
        assert (one is Decision.NOT_SLOWER) == expected or one is Decision.SLOWER


@pytest.mark.parametrize("scattered", [calm, heavy, states])
def test_hardly_a_clean_suite_alarms(scattered) -> None:
    """Forty cases share one in a hundred: of twenty suites none alarms."""
    dice = np.random.default_rng(7)
    assert Decision.SLOWER not in decisions(scattered(dice, (800, 30)), Design(cases=40))


def test_unchanged_code_is_cleared_and_a_tenth_more_is_found() -> None:
    dice = np.random.default_rng(3)
    design = Design(cases=40)
    clean = decisions(calm(dice, (300, 30)), design)
    assert sum(one is Decision.NOT_SLOWER for one in clean) >= 0.95 * 300
    for by, least in ((0.05, 0.8), (0.10, 0.99), (0.40, 1.0)):
        slower = decisions(calm(dice, (200, 30)) + math.log1p(by), design)
        assert sum(one is Decision.SLOWER for one in slower) >= least * 200
        assert Decision.NOT_SLOWER not in slower


def test_clean_processes_in_groups_alarm_in_less_than_one_of_four_hundred_suites() -> None:
    """By the number of slow processes: 200 suites of forty cases, three of ten processes slow on both sides."""
    dice = np.random.default_rng(11)
    alarmed = 0
    for _ in range(200):
        slow = dice.random((40, 2, 30)) < 0.3
        level = 0.0025 / 40
        alarmed += any(fisher(int(head.sum()), int(base.sum()), 30) <= level for base, head in slow)
    assert alarmed <= 2


def test_a_third_of_all_processes_three_times_slower_is_found_and_on_both_sides_it_is_not() -> None:
    dice = np.random.default_rng(13)
    found = {0.0: 0, 1 / 3: 0}
    for share in found:
        for _ in range(60):
            base = np.where(dice.random(30) < share, 3.0, 1.0) * np.exp(dice.normal(0, 0.004, 30))
            head = np.where(dice.random(30) < 1 / 3, 3.0, 1.0) * np.exp(dice.normal(0, 0.004, 30))
            pairs = Pairs(base=tuple(base), head=tuple(head), spread=0.01)
            one = look(None, pairs, 0.1, Design())
            told = more_slow({"a": one}, {"a": pairs.first(one.rounds)}, {"a": 0.1}, 0.01)["a"]
            found[share] += told.decision is Decision.SLOWER
    assert found[0.0] >= 0.75 * 60
    assert found[1 / 3] <= 2
