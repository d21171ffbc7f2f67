"""Tests of core/judge/rounds: rounds forked from preloaded processes, of which one preload is one draw."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.rounds import Design, Pairs, by_draws, more_slow, one_look
from pytest_perfgate.core.judge.samples import preloads_of
from pytest_perfgate.model.measurement import Identity
from pytest_perfgate.model.plan import Decision
from pytest_perfgate.model.protocol import Capture
from tests.unit.core.judge.bench import HOST, KEY, pairs, samples


def forked(*ratios: float, preloads: tuple[int, ...], floor: float = 0.001) -> Pairs:
    return replace(pairs(*ratios), preloads=preloads, floor=floor)


@pytest.mark.parametrize(
    ("preloads", "sizes", "whole"),
    [
        ((), [1, 1, 1, 1], True),
        ((0, 0, 0, 0), [1, 1, 1, 1], True),
        ((1, 1, 1, 0), [3, 1], True),
        ((1, 1, 0, 2), [2, 1, 1], False),
        ((1, 1, 2, 2), [2, 2], False),
        ((0, 2, 2, 2), [1, 3], True),
        ((3, 3, 3, 4), [3, 1], False),
    ],
)
def test_rounds_of_one_preload_are_one_draw_and_a_fresh_one_is_its_own(
    preloads: tuple[int, ...], sizes: list[int], *, whole: bool
) -> None:
    rounds = forked(1.0, 1.1, 1.2, 1.3, preloads=preloads)
    assert [len(draw) for draw in rounds.draws] == sizes
    assert [d for draw in rounds.draws for d in draw] == [math.log(ratio) for ratio in (1.0, 1.1, 1.2, 1.3)]
    assert rounds.last_draw_complete is whole


def test_a_round_has_the_preload_of_its_last_process() -> None:
    def capture(*starts: str) -> Capture:
        processes = tuple(replace(samples(1e6), notes=(("start", start),) if start else ()) for start in starts)
        return Capture(key=KEY, device=HOST, identity=Identity(device=HOST.key), samples=processes)

    fork = "fork of preload 4: as its test allows"
    assert preloads_of([[capture("fork of preload 3", fork)], [capture("fresh interpreter")]]) == (4, 0)
    assert preloads_of([[capture(fork, "")], [capture()], []]) == ()


@pytest.mark.parametrize(
    ("means", "floor", "reach", "p"),
    [
        ([0.01, 0.02, 0.03], 0.001, 0.0437142, 0.0370899),
        ([0.01, 0.02, 0.03], 0.05, 0.2185708, 0.2800293),
        ([0.02], 0.01, 0.3743932, 0.1475836),
        ([0.02, 0.02], 0.0, 0.0, 0.0),
    ],
)
def test_a_few_draws_are_read_by_student(means: list[float], floor: float, reach: float, p: float) -> None:
    """With at least the scatter of fresh processes; computed by SciPy."""
    reading = by_draws(means, floor)
    assert (reading.shift, reading.p(means)) == (pytest.approx(0.02), pytest.approx(p, rel=1e-5))
    edges = (reading.interval.low, reading.interval.high, reading.interval.confidence)
    assert edges == pytest.approx((0.02 - reach, 0.02 + reach, 0.983), rel=1e-5)


def test_draws_without_any_scatter_show_the_sign_of_their_mean() -> None:
    assert [by_draws([0.0, 0.0], 0.0).p([shift, shift]) for shift in (-0.1, 0.0, 0.1)] == [1.0, 1.0, 0.0]


THREE = (1, 1, 1, 2, 2, 2, 3, 3, 3)


@pytest.mark.parametrize(
    ("ratio", "preloads", "cases", "decision"),
    [
        (1.5, THREE, 1, Decision.SLOWER),
        (1.5, THREE[:8], 1, Decision.UNDECIDED),
        (1.5, (1,) * 6 + (2,) * 6, 1, Decision.UNDECIDED),
        (1.5, (*THREE, 4, 4), 4, Decision.UNDECIDED),
        (1.5, (*THREE, 4, 4, 4), 4, Decision.SLOWER),
        (1.5, THREE, 4, Decision.UNDECIDED),
        (1.0, THREE, 1, Decision.NOT_SLOWER),
        (1.0, THREE[:8], 1, Decision.UNDECIDED),
        (1.0, (1,) * 6 + (2,) * 6, 1, Decision.UNDECIDED),
        (1.0, (*(0,) * 6, 1, 1, 1), 1, Decision.UNDECIDED),
    ],
)
def test_whole_draws_of_three_preloads_decide(
    ratio: float, preloads: tuple[int, ...], cases: int, decision: Decision
) -> None:
    """At the end of the draw in which a look falls: with four cases, the first look is after eleven rounds."""
    design = Design(cases=cases)
    rounds = forked(*(ratio * (1 + 0.0001 * (at % 3)) for at in range(len(preloads))), preloads=preloads)
    assert one_look(rounds, 0.03, design).decision is decision


def test_the_last_round_of_all_decides_within_a_draw_too() -> None:
    preloads = tuple(1 + at // 3 for at in range(32))
    rounds = forked(*(1.5 + 0.001 * (at % 3) for at in range(32)), preloads=preloads)
    assert one_look(rounds, 0.03, Design(most=32)).decision is Decision.SLOWER
    assert one_look(rounds, 0.03, Design(most=40)).decision is Decision.UNDECIDED


def test_too_few_preloads_bound_no_slowdown() -> None:
    two = one_look(forked(*(1.0,) * 6, preloads=THREE[:6]), 0.03)
    assert (two.interval.high, two.visible) == (0.03, 0.03)
    wide = one_look(forked(*(1.0,) * 6, preloads=THREE[:6], floor=0.01), 0.03)
    assert wide.interval.high == pytest.approx(math.expm1(37.4393201613 * 0.01 / math.sqrt(2)))
    three = one_look(forked(*(1.0,) * 9, preloads=THREE), 0.03)
    assert three.interval.high == pytest.approx(math.expm1(7.5715134449 * 0.001 / math.sqrt(3)))


def test_the_scatter_of_draws_is_told_as_of_fresh_rounds() -> None:
    ratios = [math.exp(x) for x in (0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09)]
    assert one_look(forked(*ratios, preloads=THREE), 0.03).scatter == pytest.approx(0.03 * math.sqrt(3))


def test_forks_share_the_state_of_their_preload_so_slow_ones_show_nothing() -> None:
    fresh = Pairs(base=(100.0,) * 30, head=(100.0,) * 20 + (300.0,) * 10, spread=0.01)
    open_ = replace(one_look(fresh, 0.1), decision=Decision.UNDECIDED)
    together = replace(fresh, preloads=tuple(1 + at // 3 for at in range(30)))
    (slow,) = more_slow({"a": open_}, {"a": fresh}, {"a": 0.1}, 0.01).values()
    assert (slow.decision, slow.slow) == (Decision.SLOWER, (10, 0))
    assert more_slow({"a": open_}, {"a": together}, {"a": 0.1}, 0.01) == {"a": open_}
