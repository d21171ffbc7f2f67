"""Tests of core/judge/calibration."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import stdev

import numpy as np
import pytest

from pytest_perfgate.core.judge.calibration import (
    INJECTED,
    LEAST,
    LIMITS,
    Recorded,
    _block,
    _judge_suite,
    _own_limit,
    calibration,
    calibration_document,
    forkable,
    own_shift,
)
from pytest_perfgate.core.judge.rounds import SURELY, Pairs
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.core.stats.inference import hodges_lehmann
from pytest_perfgate.model.plan import Decision
from tests.unit.core.judge.bench import pairs


def measured(scatter: float, tests: int = 6, rounds: int = 40, by: float = 0.0) -> dict[str, Pairs]:
    dice = np.random.default_rng(5)
    return {
        f"t{at}": Pairs(
            base=tuple(100 * np.exp(dice.normal(0, scatter, rounds))),
            head=tuple(100 * (1 + by) * np.exp(dice.normal(0, scatter, rounds))),
            spread=0.05,
        )
        for at in range(tests)
    }


@pytest.mark.no_cover
def test_a_calm_machine_sees_five_percent_and_never_alarms() -> None:
    result = calibration(Recorded(pairs=measured(0.004)), 0.03, suites=40)
    assert (result.alarms.hits, result.alarms.count) == (0, 40)
    assert result.alarms.bounds.high == pytest.approx(0.088, abs=0.001)
    power = {by: rate.rate for by, rate in result.power}
    assert power[0.05] == power[0.10] == 1.0
    assert power[0.02] < 0.5
    assert 7 <= result.processes < 8
    assert all(limit <= 0.02 and rounds in {9, 10} for _, _, limit, rounds in result.own)
    assert result.suits <= 0.02
    assert (result.seconds, result.injected) == (0.0, ())


@pytest.mark.no_cover
def test_a_wild_machine_says_so() -> None:
    result = calibration(Recorded(pairs=measured(0.08)), 0.03, suites=10)
    assert result.undecided.rate > 0.6
    assert dict(result.power)[0.05].rate < 0.3
    assert min(limit for _, _, limit, _ in result.own) >= 0.05
    assert max(rounds for *_, rounds in result.own) > 10


def test_the_document_has_bounds_a_curve_and_a_limit_a_test() -> None:
    text = render_text(calibration_document(calibration(Recorded(pairs=measured(0.004)), 0.03, suites=20)))
    assert "0.0 % (0/20, 0.0 % to 16.8 %) of suites of this project's 6 tests" in text
    assert "+10 %" in text
    assert "t5" in text


def test_the_own_shift_is_that_of_screening() -> None:
    assert own_shift([0.0] * 20) == 0.0
    assert own_shift([0.1] * 20) == pytest.approx(np.expm1(0.1))


def test_slowdowns_that_were_really_there_are_counted_beside_those_that_scale_times() -> None:
    slowed = {by: measured(0.004, by=by) for by in INJECTED}
    recorded = Recorded(pairs=measured(0.004), slowed={**slowed, 0.2: {}}, shares=dict.fromkeys(measured(0.004), 0.5))
    result = calibration(recorded, 0.03, suites=20)
    assert [one.by for one in result.injected] == list(INJECTED)
    assert [one.measured for one in result.injected] == pytest.approx(INJECTED, abs=0.01)
    assert {one.rounds for one in result.injected} == {40}
    assert result.injected[-1].detected.rate == 1.0
    assert result.seconds >= 7 * 6 * 0.5
    text = render_text(calibration_document(result))
    assert "one side was kept busy" in text
    assert f"{result.seconds:.0f} s a run" in text
    assert '"slowdown <= ' in text


def flat(ratios: tuple[float, ...], base: float = 100.0) -> Pairs:
    return Pairs(base=(base,) * len(ratios), head=tuple(base * ratio for ratio in ratios), spread=0.5)


def test_rounds_are_drawn_in_a_ring_from_where_a_suite_starts() -> None:
    numbered = Pairs(base=tuple(map(float, range(1, 8))), head=tuple(map(float, range(11, 18))), spread=0.1)
    assert _block(numbered, 6, 3) == Pairs(base=(7.0, 1.0, 2.0), head=(17.0, 11.0, 12.0), spread=0.1)
    assert _block(numbered, 0, 2).base == (1.0, 2.0)


def test_screening_reads_five_rounds_of_the_ring() -> None:
    spike = [0.0] * 9 + [0.9]
    every = [sorted((spike + spike)[at : at + 5]) for at in range(10)]
    shifts = [abs(hodges_lehmann(five)) for five in every]
    assert own_shift(spike) == pytest.approx(np.expm1(np.quantile(shifts, 0.99)))
    ramp = [0.01 * n * n for n in range(10)]
    shifts = [abs(hodges_lehmann((ramp + ramp)[at : at + 5])) for at in range(10)]
    assert own_shift(ramp) == pytest.approx(np.expm1(np.quantile(shifts, 0.99)))


def test_a_test_s_limit_is_the_least_usual_one_that_nine_rounds_show() -> None:
    ratios = (1.03, 0.97, 1.02, 0.99, 1.0, 1.01, 0.98, 1.0)
    logs = [math.log(ratio) for ratio in ratios]
    own, limit, rounds = _own_limit(flat(ratios))
    scatter = stdev(logs)
    need = max(own, math.expm1(SURELY * scatter / math.sqrt(9)) / 2)
    assert limit == next(usual for usual in LIMITS if usual >= need)
    assert rounds == max(9, math.ceil((SURELY * scatter / math.log1p(limit) / (1 - 1 / 3)) ** 2))
    assert _own_limit(flat((3.0, 0.3) * 8))[1] == LIMITS[-1]
    assert _own_limit(flat((1.0,) * 8))[1] == LIMITS[0]


def test_a_suite_costs_the_rounds_of_each_test_until_it_is_decided() -> None:
    calm, slow = flat((1.0,) * 20), flat((1.5,) * 20)
    starts, shares = {"a": 0, "b": 0, "c": 0, "d": 0}, {"a": 1.0, "b": 2.0, "c": 4.0, "d": 8.0}
    clean = _judge_suite(dict.fromkeys(starts, calm), starts, 0.03, shares)
    assert (clean.processes, clean.seconds) == (7, 7 * 15)
    one = _judge_suite({**dict.fromkeys(starts, calm), "b": slow}, starts, 0.03, shares)
    assert (one.processes, one.seconds) == (7 + 4 / 4, 7 * 15 + 4 * 2), "one of four is found slower in eleven"
    assert one.decisions["b"] is Decision.SLOWER
    assert _judge_suite({**dict.fromkeys(starts, calm), "b": slow}, starts, 0.03, {"a": 1.0}).seconds == 7


def test_a_calibration_is_as_long_as_its_shortest_test_and_suits_the_wildest() -> None:
    recorded = Recorded(
        pairs={"long": flat((1.0,) * 30), "short": flat((1.2, 0.8) * 6)},
        slowed={0.05: {"long": flat((1.05,) * 9), "short": flat((1.05,) * 7)}},
    )
    result = calibration(recorded, 0.03, suites=4)
    assert (result.rounds, result.injected[0].rounds) == (12, 7)
    assert result.suits == max(limit for _, _, limit, _ in result.own) > LIMITS[0]
    assert replace(result, own=()).suits == 0.03
    assert result.undecided.count == 8


def test_the_last_round_is_screened_with_the_first_four() -> None:
    differences = [1.0, 1.0, *[0.0] * 17, 1.0]
    assert own_shift(differences) == pytest.approx(math.expm1(0.5))


def test_a_test_begins_with_the_round_that_was_drawn_and_ends_where_it_is_decided() -> None:
    pairs = flat((1.0,) * 16 + (1.04,) * 4)
    judged = [_judge_suite({"a": pairs}, {"a": at}, 0.03, {"a": 2.0}) for at in (0, 16)]
    assert (judged[0].processes, judged[0].seconds) == (7, 14.0)
    assert judged[1].processes > 7
    assert {one.decisions["a"] for one in judged} == {Decision.NOT_SLOWER}


def test_slowdowns_of_two_three_five_and_ten_percent_are_tried() -> None:
    result = calibration(Recorded(pairs={"a": pairs(*(1.0,) * 20)}), 0.03, suites=1)
    assert [by for by, _ in result.power] == [0.02, 0.03, 0.05, 0.1]
    assert result.seconds == 0.0


@pytest.mark.parametrize("usual", [0.01, 0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2])
def test_the_usual_limits(usual: float) -> None:
    """Each suits the test whose times of unchanged code differ by hardly less."""
    assert _own_limit(pairs(*(1 + 0.99 * usual,) * 20))[1] == usual


def test_no_more_than_a_fifth_is_ever_proposed_and_fifteen_rounds_are_the_least() -> None:
    assert _own_limit(pairs(*(1.5,) * 20))[1] == 0.2
    assert LEAST == 15


def scattered(half: float, rounds: int = 15, preloads: tuple[int, ...] = ()) -> Pairs:
    ratios = [math.exp(half * (-1) ** at) for at in range(rounds)]
    return replace(pairs(*ratios), preloads=preloads)


FORKED = tuple(1 + at // 3 for at in range(15))


@pytest.mark.parametrize(
    ("fresh", "forked", "suits"),
    [
        (scattered(0.01), scattered(0.009, preloads=FORKED), True),
        (scattered(0.01), scattered(0.01, preloads=FORKED), True),
        (scattered(0.01), scattered(0.011, preloads=FORKED), False),
        (scattered(0.01, 14), scattered(0.009, preloads=FORKED), False),
        (scattered(0.01), scattered(0.009, 14, preloads=FORKED[:14]), False),
        (scattered(0.01), scattered(0.009, preloads=(*FORKED[:14], 0)), False),
        (scattered(0.01), scattered(0.009), False),
    ],
)
def test_forks_suit_a_test_that_is_shown_to_scatter_no_more_by_them(
    fresh: Pairs, forked: Pairs, *, suits: bool
) -> None:
    """In fifteen rounds of each kind, every one of them of a preload; the floor is the scatter of fresh pairs."""
    floor = forkable(fresh, forked)
    assert floor == (pytest.approx(stdev(fresh.differences)) if suits else None)


def test_a_single_round_has_no_scatter() -> None:
    result = calibration(
        Recorded(pairs={"a": scattered(0.01)}, forked={"a": scattered(0.009, 1, preloads=(1,))}), 0.03, suites=1
    )
    ((name, fresh, forked),) = result.forks
    assert (name, fresh, forked) == ("a", pytest.approx(stdev(scattered(0.01).differences)), 0.0)
    two = Recorded(pairs={"a": scattered(0.01)}, forked={"a": scattered(0.009, 2, preloads=(1, 1))})
    assert calibration(two, 0.03, suites=1).forks[0][2] == pytest.approx(0.009 * 2**0.5)
