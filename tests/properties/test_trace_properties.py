"""Trees and unions of a trace against the slow way, on whatever hypothesis thinks of."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_perfgate.core.analysis import intervals
from pytest_perfgate.core.analysis.trace.matching import edits
from pytest_perfgate.core.analysis.trace.timeline import busy, statistics, timeline
from pytest_perfgate.core.analysis.trace.tree import STRADDLE_NS, nested_parents, node
from pytest_perfgate.model.profiles import Kind

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30)), min_size=1, max_size=40)


def columns(spans, scale=1):
    starts = np.array([s for s, _ in spans], np.int64) * scale
    return starts, starts + np.array([n for _, n in spans], np.int64) * scale


@given(SPANS, st.sampled_from([1, STRADDLE_NS]))
def test_a_parent_contains_its_child_and_is_the_innermost_open(spans, scale):
    starts, ends = columns(spans, scale)
    order = np.lexsort((-ends, starts))
    starts, ends = starts[order], ends[order]
    above, dropped = nested_parents(starts, ends)
    assert 0 <= dropped < len(starts)
    for child, parent in enumerate(above.tolist()):
        if parent >= 0:
            assert parent < child
            assert starts[parent] <= starts[child]
            assert ends[child] <= ends[parent]


@given(SPANS, st.data())
def test_unions_of_groups_are_those_of_each_alone(spans, data):
    starts, ends = columns(spans)
    group = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(spans), max_size=len(spans))), np.int64)
    together = busy(starts, ends, group, 4)
    assert together.tolist() == [intervals.covered(starts[group == g], ends[group == g]) for g in range(4)]


@given(SPANS, st.data())
def test_the_parts_of_a_timeline_sum_to_its_total(spans, data):
    starts, ends = columns(spans)
    kinds = np.array(
        data.draw(st.lists(st.sampled_from(list(Kind)), min_size=len(spans), max_size=len(spans))), np.uint8
    )
    window = data.draw(st.none() | st.tuples(st.integers(0, 40), st.integers(41, 100)))
    line = timeline(starts, ends, kinds, window)
    parts = line.computation + line.exposed_comm + line.exposed_memcpy + line.exposed_memset + line.idle
    assert parts == line.total
    assert line.idle_micro + line.idle_macro == line.idle
    assert line.overlap is None or 0 <= line.overlap <= 1


@settings(suppress_health_check=[HealthCheck.too_slow])  # the first float drawn reads the constants of all modules
@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1e9)), min_size=4, max_size=40))
def test_statistics_of_groups_are_numpy_s(rows):
    rows += [(g, 1.0) for g in range(4)]
    group, values = np.array([g for g, _ in rows]), np.array([v for _, v in rows])
    stats = statistics(values, group, 4)
    for g in range(4):
        mine = values[group == g]
        np.testing.assert_allclose(stats.total[g], mine.sum(), rtol=1e-9)
        np.testing.assert_allclose(stats.median[g], np.median(mine), rtol=1e-9)
        assert (stats.low[g], stats.high[g], stats.count[g]) == (mine.min(), mine.max(), len(mine))


TREES = st.recursive(
    st.sampled_from("abc").map(node), lambda inner: st.builds(node, st.sampled_from("abc"), st.lists(inner, max_size=4).map(tuple)), max_leaves=8
)  # fmt: skip


@given(st.lists(TREES, max_size=4), st.lists(TREES, max_size=4))
def test_trees_differ_from_others_and_not_from_themselves(one, two):
    first, second = node("", tuple(one)), node("", tuple(two))
    assert edits(first, first) == ()
    assert bool(edits(first, second)) == (first != second)
