"""Laws that the exact tests keep for any numbers."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_perfgate.core.judge.rounds import Design, Pairs, all_looks, one_look
from pytest_perfgate.core.stats.inference import clopper_pearson, hodges_lehmann, shift_and_interval, signed_rank
from pytest_perfgate.model.plan import Decision

shifts = st.lists(st.floats(-1, 1, allow_subnormal=False), min_size=1, max_size=14)
levels = st.lists(st.floats(0, 1), max_size=8)


@given(shifts)
def test_swapping_now_and_then_inverts_the_shift(d: list[float]) -> None:
    back = [-x for x in d]
    assert hodges_lehmann(back) == pytest.approx(-hodges_lehmann(d))
    assert shift_and_interval(back)[1].low == pytest.approx(-shift_and_interval(d)[1].high)


@given(shifts, st.floats(0, 1))
def test_slower_pairs_are_never_less_convincing(d: list[float], more: float) -> None:
    untied = all(len({abs(round(x + by, 9)) for x in d} - {0.0}) == len(d) for by in (0, more))
    assert not untied or signed_rank([x + more for x in d]) <= signed_rank(d) + 1e-12
    assert hodges_lehmann([x + more for x in d]) == pytest.approx(hodges_lehmann(d) + more)


@given(shifts)
def test_the_interval_holds_the_shift_and_p_keeps_its_floor(d: list[float]) -> None:
    shift, interval = shift_and_interval(d)
    assert interval.low - 1e-12 <= shift <= interval.high + 1e-12
    assert 0.5 ** len(d) * (1 - 1e-12) <= signed_rank(d) <= 1


@given(st.lists(st.floats(-0.2, 0.2), min_size=1, max_size=30), st.floats(0.01, 0.3), st.integers(1, 50))
def test_looking_after_each_round_says_what_looking_once_does(d: list[float], counts: float, cases: int) -> None:
    whole, design = Pairs(base=(1.0,) * len(d), head=tuple(map(math.exp, d)), spread=0.01), Design(cases=cases)
    looked = None
    for count in range(1, len(d) + 1):
        looked = all_looks(looked, whole.first(count), counts, design)
    once = all_looks(None, whole, counts, design)
    assert looked == once
    assert once.decision is not Decision.SLOWER or once.rounds in design.looks


@given(st.lists(st.floats(-0.2, 0.2), min_size=7, max_size=30), st.floats(0.01, 0.3), st.floats(0.01, 0.3))
def test_loosening_a_limit_never_turns_a_pass_into_a_regression(d: list[float], counts: float, more: float) -> None:
    whole = Pairs(base=(1.0,) * len(d), head=tuple(map(math.exp, d)), spread=0.01)
    tight, loose = one_look(whole, counts), one_look(whole, counts + more)
    assert tight.decision is not Decision.NOT_SLOWER or loose.decision is Decision.NOT_SLOWER
    assert loose.decision is not Decision.SLOWER or tight.decision is not Decision.NOT_SLOWER


@given(st.integers(1, 400), st.data())
def test_more_hits_move_the_bounds_up(count: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, count - 1))
    less, more = clopper_pearson(hits, count), clopper_pearson(hits + 1, count)
    assert less.low <= hits / count <= less.high
    assert less.low <= more.low
    assert less.high <= more.high
