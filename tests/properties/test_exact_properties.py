"""Laws that the exact tests keep for any numbers."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_perfgate.core.judge.rounds import Design, Pairs, cleared, convicted
from pytest_perfgate.core.stats.inference import adjusted, clopper_pearson, hodges_lehmann, shift_interval, signed_rank
from pytest_perfgate.model.verdict import Decision

shifts = st.lists(st.floats(-1, 1, allow_subnormal=False), min_size=1, max_size=14)
levels = st.lists(st.floats(0, 1), max_size=8)


@given(shifts)
def test_swapping_now_and_then_inverts_the_shift(d: list[float]) -> None:
    back = [-x for x in d]
    assert hodges_lehmann(back) == pytest.approx(-hodges_lehmann(d))
    assert shift_interval(back).low == pytest.approx(-shift_interval(d).high)


@given(shifts, st.floats(0, 1))
def test_slower_pairs_are_never_less_convincing(d: list[float], more: float) -> None:
    untied = all(len({abs(round(x + by, 9)) for x in d} - {0.0}) == len(d) for by in (0, more))
    assert not untied or signed_rank([x + more for x in d]) <= signed_rank(d) + 1e-12
    assert hodges_lehmann([x + more for x in d]) == pytest.approx(hodges_lehmann(d) + more)


@given(shifts)
def test_the_interval_holds_the_shift_and_p_keeps_its_floor(d: list[float]) -> None:
    interval, shift = shift_interval(d), hodges_lehmann(d)
    assert interval.low - 1e-12 <= shift <= interval.high + 1e-12
    assert 0.5 ** len(d) * (1 - 1e-12) <= signed_rank(d) <= 1


@given(st.lists(st.floats(-0.2, 0.2), min_size=10, max_size=12), st.floats(0.01, 0.3), st.integers(7, 10))
def test_whoever_is_spared_the_rest_of_the_rounds_would_not_have_been_convicted(
    d: list[float], counts: float, played: int
) -> None:
    heads, design = [math.exp(x) for x in d], Design()
    whole = Pairs(base=(1.0,) * len(d), head=tuple(heads), spread=0.01)
    part = Pairs(base=(1.0,) * played, head=tuple(heads[:played]), spread=0.01)
    if cleared(part, counts, len(d), design):
        assert convicted({"a": whole}, {"a": counts}, design)["a"].decision is not Decision.SLOWER


def stepped_down(p: list[float], alpha: float) -> list[bool]:
    """Holm's procedure in its own words: from the smallest on, until one is not below its share of what is left."""
    rejected = [False] * len(p)
    for step, at in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        if p[at] > alpha / (len(p) - step):
            break
        rejected[at] = True
    return rejected


@given(levels, st.floats(0.001, 0.2))
def test_holm_rejects_no_more_than_each_test_and_no_less_than_bonferroni(p: list[float], alpha: float) -> None:
    for level, rejected, counted in zip(p, stepped_down(p, alpha), adjusted(p)):
        assert not rejected or level <= alpha
        assert rejected or level > alpha / len(p)
        assert counted >= level
        assert rejected == (counted <= alpha) or math.isclose(counted, alpha, rel_tol=1e-9)


@given(st.integers(1, 400), st.data())
def test_more_hits_move_the_bounds_up(count: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, count - 1))
    less, more = clopper_pearson(hits, count), clopper_pearson(hits + 1, count)
    assert less.low <= hits / count <= less.high
    assert less.low <= more.low
    assert less.high <= more.high
