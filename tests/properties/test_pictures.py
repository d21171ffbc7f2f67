"""Whatever the figures: marks inside the frame, labels apart, and areas in proportion."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_perfgate.core.render.charts import MOST_ROWS, Row, lengths_picture, merged, mfu_of_steps, stacked
from pytest_perfgate.core.render.lanes import LANE_KEY, Group, Lane, Node, icicle, timeline
from pytest_perfgate.core.render.rooflines import Ceiling, Point, roofline
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.core.render.words import display_width
from pytest_perfgate.model.metric import Document
from tests.drawings import areas, flaws

NAMES = st.text(alphabet="abcXYZ_:<>&'\" 0µ複", max_size=90)

AMOUNTS = st.one_of(st.just(0.0), st.floats(1e-6, 1e12))

KEY = (("compute", "computation"), ("exposed", "exposed communication"), ("idle", "idle"))

ROWS = st.lists(
    st.builds(
        lambda label, amounts, spread: Row(
            label=label, amounts=amounts, text=f"{sum(amounts):.3g}", spread=tuple(spread)
        ),
        NAMES,
        st.tuples(AMOUNTS, AMOUNTS, AMOUNTS),
        st.lists(st.floats(0, 1), max_size=5),
    ),
    max_size=60,
)


@given(ROWS)
@settings(max_examples=60, deadline=None)
def test_bars_of_anything_are_sound(rows: list[Row]) -> None:
    shown, size = merged(rows)
    assert len(shown) <= MOST_ROWS
    assert (len(rows) > MOST_ROWS) == (size > 1)
    picture = stacked("bars", "any", shown, KEY, "{:.3g}".format)
    assert not flaws(picture)
    for room in (40, 100, 200):
        lines = render_text(Document(title="t", blocks=(picture,)), 60, room).splitlines()
        assert max(map(display_width, lines)) <= max(room, 60, *(len(row.text) for row in shown)) + 40


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=300))
@settings(max_examples=40, deadline=None)
def test_a_line_of_anything_is_sound(figures: list[float]) -> None:
    steps = [(str(at), figure) for at, figure in enumerate(figures)]
    assert not flaws(mfu_of_steps("any", steps))


@given(st.lists(st.integers(1, 10**11), min_size=1, max_size=200))
@settings(max_examples=60, deadline=None)
def test_lengths_of_anything_are_all_counted(lengths: list[int]) -> None:
    picture = lengths_picture(np.array(lengths, np.int64))
    assert not flaws(picture)
    assert sum(bar.parts[0] for bar in picture.bars) == pytest.approx(1)


def spans(pairs: list[tuple[int, int]]):
    edges = np.unique([edge for pair in pairs for edge in pair])
    edges = edges[: len(edges) // 2 * 2].astype(np.int64)
    return edges[0::2], edges[1::2]


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), max_size=80), NAMES)
@settings(max_examples=60, deadline=None)
def test_a_timeline_of_anything_is_sound(pairs: list[tuple[int, int]], name: str) -> None:
    busy = spans(pairs)
    lane = Lane(label=name, spans=(("compute", busy),), words=tuple((int(a), int(b), "stage") for a, b in zip(*busy)))
    groups = [Group(title=name, start=0, end=10**9, lanes=(lane, lane), marked=busy)]
    picture = timeline("timeline", "any", groups, LANE_KEY)
    assert not flaws(picture)
    assert len(picture.svg) < 400_000


TREES = st.recursive(
    st.builds(Node, name=NAMES, amount=AMOUNTS),
    lambda inner: st.builds(
        lambda name, children: Node(name=name, amount=sum(c.amount for c in children), children=tuple(children)),
        NAMES,
        st.lists(inner, max_size=6),
    ),
    max_leaves=40,
)


@given(TREES)
@settings(max_examples=60, deadline=None)
def test_an_icicle_of_anything_is_sound_and_no_child_is_wider_than_its_parent(tree: Node) -> None:
    picture = icicle("any", tree)
    assert not flaws(picture)
    rows: dict[float, float] = {}
    for _, y, width, _ in areas(picture.svg):
        rows[y] = rows.get(y, 0.0) + width
    wide = [rows[y] for y in sorted(rows)]
    assert all(below <= above + 3 for above, below in pairwise(wide))


POINTS = st.lists(
    st.builds(
        lambda label, x, y, moved: Point(
            label=label, intensity=x, rate=y, text="1 ms, 40% of its roof", before=(x / 3, y * 2) if moved else None
        ),
        NAMES,
        st.floats(1e-4, 1e6),
        st.floats(1e3, 1e16),
        st.booleans(),
    ),
    min_size=1,
    max_size=12,
)


@given(POINTS, st.lists(st.floats(1e9, 1e16), min_size=1, max_size=5), st.floats(1e9, 1e13))
@settings(max_examples=60, deadline=None)
def test_a_roofline_of_anything_is_sound(points: list[Point], peaks: list[float], band: float) -> None:
    ceiling = Ceiling(peaks=tuple((f"fp{at}", peak) for at, peak in enumerate(peaks)), bandwidth=band, note="any")
    assert not flaws(roofline("any", points, ceiling))
