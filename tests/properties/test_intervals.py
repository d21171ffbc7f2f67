from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pytest_perfgate.core.analysis import intervals

spans = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)), max_size=9).map(
    lambda pairs: (
        np.array([s for s, _ in pairs], dtype=np.int64),
        np.array([s + d for s, d in pairs], dtype=np.int64),
    )
)


def points(pair) -> set[int]:
    return {x for s, e in zip(*pair) for x in range(int(s), int(e))}


def assert_disjoint_and_sorted(pair) -> None:
    edges = [edge for both in zip(*pair) for edge in both]
    assert edges == sorted(edges)
    assert len(set(edges)) == len(edges)


@given(spans)
def test_a_union_covers_the_same_points_once(a) -> None:
    merged = intervals.union(*a)
    assert_disjoint_and_sorted(merged)
    assert points(merged) == points(a)
    assert intervals.length(merged) == intervals.covered(*a) == len(points(a))


@given(spans, spans)
def test_set_algebra(a, b) -> None:
    one, other = intervals.union(*a), intervals.union(*b)
    assert intervals.shared(one, other) == len(points(a) & points(b))
    assert points(intervals.crossed(one, other)) == points(a) & points(b)
    assert points(intervals.without(one, other)) == points(a) - points(b)
    assert points(intervals.joined_spans(one, other)) == points(a) | points(b)


@given(spans, spans)
def test_how_much_of_each_is_covered(a, b) -> None:
    cover = intervals.union(*b)
    alone = [len(points(([s], [e])) & points(b)) for s, e in zip(*a)]
    assert list(intervals.covered_by(*a, cover)) == alone


@given(spans, spans, spans)
def test_merging_is_associative(a, b, c) -> None:
    a, b, c = intervals.union(*a), intervals.union(*b), intervals.union(*c)
    left = intervals.joined_spans(intervals.joined_spans(a, b), c)
    right = intervals.joined_spans(a, intervals.joined_spans(b, c))
    assert left[0].tolist() == right[0].tolist()
    assert left[1].tolist() == right[1].tolist()


def test_a_train_is_as_long_as_the_kernels_that_fill_half_of_the_window() -> None:
    few_long = [(3_000 * n, 1_000) for n in range(30)] + [(90_000 + 30_000 * n, 29_000) for n in range(6)]
    starts, lengths = np.array(few_long, dtype=np.int64).T
    ends = starts + lengths
    assert (ends - starts).mean() < 6_000, "though kernels of 29 µs fill 64 % of the window"
    assert intervals.train(starts, ends, 5_000, 270_000) == 29_000
    assert intervals.train(starts, ends, 5_000, 170_000) == 1_000, "with the pauses behind them they fill 53 %"
    assert intervals.train(starts, ends, 5_000, 600_000) is None
    twice = np.concatenate([starts, starts]), np.concatenate([ends, ends])
    assert intervals.train(*twice, 5_000, 270_000) == 29_000, "what runs at once counts once"
