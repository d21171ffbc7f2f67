"""Rates of the rounds, drawn: what the looks may err is what they err, whatever the differences scatter like."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from pytest_perfgate.core.judge.rounds import CLEARS, FORKS, IN_CI, MARGIN, OFTEN, Design, Pairs, all_looks, more_slow
from pytest_perfgate.core.stats.inference import far, fisher
from pytest_perfgate.core.stats.summary import t_quantile
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
    findings = (
        all_looks(None, Pairs(base=ones, head=tuple(np.exp(row)), spread=0.01), LIMIT, design) for row in differences
    )
    return [one.decision for one in findings]


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
    clear = np.zeros(len(below), bool)
    for rounds in (count for count in range(7, below.shape[1] + 1) if count <= OFTEN or count % 10 == 0):
        part = below[:, :rounds]
        by_size = np.take_along_axis(part < 0, np.abs(part).argsort(1), 1)
        clear |= tails(rounds)[by_size @ np.arange(1, rounds + 1)] <= CLEARS
    return clear


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
    decided = decisions(drawn + math.log1p(LIMIT), Design())
    for one, expected in zip(decided, cleared(drawn)):
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


def test_far_rounds_of_unchanged_code_alarm_no_more_often_than_coins() -> None:
    """By the differences of rounds: 200 suites of ten cases, a third of whose rounds lie far off on either side."""
    dice = np.random.default_rng(12)
    alarmed = parted = 0
    for _ in range(200):
        signs = np.where(dice.random((10, 60)) < 0.5, 1.0, -1.0)
        size = np.where(dice.random((10, 60)) < 1 / 3, 1.1, 0.02 * dice.random((10, 60)))
        results = [far(one) for one in (signs * size).tolist()]
        parted += sum(one is not None for one in results)
        alarmed += any(one is not None and one[1] <= 0.0025 / 10 for one in results)
    assert parted > 1900, "where most lie far off nothing parts them"
    assert alarmed <= 2


def test_a_third_of_all_processes_three_times_slower_is_found_and_on_both_sides_it_is_not() -> None:
    dice = np.random.default_rng(13)
    counts = {0.0: 0, 1 / 3: 0}
    for share in counts:
        for _ in range(60):
            base = np.where(dice.random(30) < share, 3.0, 1.0) * np.exp(dice.normal(0, 0.004, 30))
            head = np.where(dice.random(30) < 1 / 3, 3.0, 1.0) * np.exp(dice.normal(0, 0.004, 30))
            pairs = Pairs(base=tuple(base), head=tuple(head), spread=0.01)
            one = all_looks(None, pairs, 0.1, Design())
            finding = more_slow({"a": one}, {"a": pairs.first(one.rounds)}, {"a": 0.1}, 0.01)["a"]
            counts[share] += finding.decision is Decision.SLOWER
    assert counts[0.0] >= 0.75 * 60
    assert counts[1 / 3] <= 2


TAPE = Path(__file__).resolve().parents[2] / "ci/bench/verdicts/recordings/h100/pairs.jsonl"


def on_tape() -> Array:
    """Differences of pairs of processes that an H100 measured of unchanged kernels, about their middle."""
    pairs = [json.loads(line) for line in TAPE.read_text(encoding="utf-8").splitlines()]
    turns = [one[name] for one in pairs for name in ("gemm/1000", "sdpa/1000")]
    return np.array([math.log(median(head[0] / base[0] for base, head in one)) for one in turns])


def replayed(dice: np.random.Generator, size: tuple[int, ...]) -> Array:
    """Either process of a recorded pair as the base."""
    return dice.choice(on_tape(), size) * dice.choice([-1.0, 1.0], size)


NUMBERS = (0, *(number for number in range(1, 11) for _ in range(FORKS)))[: Design().last]
"""A round of fresh processes, then preloads."""


def forked(dice: np.random.Generator, scattered, count: int, within: float = 0.3) -> tuple[Array, Array]:
    """Rounds of which those of a preload share what it drew; and what fifteen fresh rounds were seen to scatter by."""
    unit = within * float(np.std(scattered(dice, (400,))))
    drawn = scattered(dice, (count, 1 + max(NUMBERS)))[:, NUMBERS]
    fresh = scattered(dice, (count, 15)) + dice.normal(0, unit, (count, 15))
    return drawn + dice.normal(0, unit, drawn.shape), fresh.std(axis=1, ddof=1)


def decisions_of(
    differences: Array, floors: Array, limit: float, *, preloads: tuple[int, ...] = NUMBERS
) -> list[Decision]:
    """What the rule itself says."""
    ones = (1.0,) * len(NUMBERS)
    rows = zip(np.exp(differences), floors)
    pairs = (Pairs(base=ones, head=tuple(row), spread=0.01, preloads=preloads, floor=floor) for row, floor in rows)
    return [all_looks(None, one, limit, Design()).decision for one in pairs]


def drawn_slower(differences: Array, floors: Array, limit: float) -> tuple[Array, Array]:
    """The same rule for many rows at once: which it finds slower, and which it clears before that."""
    slower, clear = np.zeros((2, len(differences)), bool)
    for rounds in (10, 13, 16, 19, 22, 25, 28, 30):
        edges = [0, *range(1, rounds, FORKS), rounds]
        means = np.stack([differences[:, a:b].mean(1) for a, b in pairwise(edges)], axis=1)
        error = np.maximum(means.std(axis=1, ddof=1), floors) / math.sqrt(means.shape[1])
        mean, dof = means.mean(1), means.shape[1] - 1
        beyond = (mean - MARGIN * math.log1p(limit)) / error
        sure = (beyond >= t_quantile(1 - Design().level, dof)) & (mean >= math.log1p(limit))
        slower |= ~clear & sure & (rounds in {10, 19, 30})
        clear |= ~slower & (mean + t_quantile(1 - CLEARS, dof) * error < math.log1p(limit))
    return slower, clear


@pytest.mark.parametrize("scattered", [calm, heavy, states, replayed])
def test_unchanged_code_in_forks_alarms_in_less_than_one_of_a_hundred(scattered) -> None:
    """A limit far below the scatter: whatever each preload draws, three of them rarely draw the same slowdown."""
    for within in (0.0, 0.3, 2.0):
        slower, _ = drawn_slower(*forked(np.random.default_rng(23), scattered, 20_000, within), limit=1e-5)
        assert slower.mean() <= 0.01


def test_what_is_slower_by_just_its_limit_is_cleared_in_one_of_twenty_at_most() -> None:
    for scattered in (calm, heavy, states):
        differences, floors = forked(np.random.default_rng(31), scattered, 20_000)
        assert drawn_slower(differences + math.log1p(LIMIT), floors, LIMIT)[1].mean() <= 0.05


@pytest.mark.parametrize("by", [0.0, 0.03, 0.10])
def test_the_rule_of_draws_is_this_one(by: float) -> None:
    differences, floors = forked(np.random.default_rng(37), calm, 12)
    differences += math.log1p(by)
    slower, clear = drawn_slower(differences, floors, LIMIT)
    expected = [Decision.SLOWER if s else Decision.NOT_SLOWER if c else None for s, c in zip(slower, clear)]
    assert [
        one if one is not Decision.UNDECIDED else None for one in decisions_of(differences, floors, LIMIT)
    ] == expected


def test_a_tenth_more_is_found_in_three_preloads_and_unchanged_code_cleared() -> None:
    """Tiny kernels of a device, whose pairs scatter by 0.3 %."""

    def tiny(dice: np.random.Generator, size: tuple[int, ...]) -> Array:
        return dice.normal(0, 0.003, size)

    differences, floors = forked(np.random.default_rng(29), tiny, 2000)
    rest = np.full((2000, len(NUMBERS) - 10), np.nan)  # no round beyond the tenth
    for by, which in ((0.10, 0), (0.0, 1)):
        first = np.concatenate([differences[:, :10] + math.log1p(by), rest], axis=1)
        assert drawn_slower(first, floors, LIMIT)[which].mean() >= 0.95


def test_forks_that_each_counted_for_themselves_would_alarm() -> None:
    """What counting by preloads is for."""
    differences, floors = forked(np.random.default_rng(41), calm, 150, within=0.0)
    assert decisions_of(differences, floors, 1e-5, preloads=()).count(Decision.SLOWER) >= 6
    assert drawn_slower(differences, floors, 1e-5)[0].sum() <= 1
