"""Timelines and icicles: what is drawn is as long as it took, and nothing lies outside."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_perfgate.core.render.lanes import Group, Lane, Node, icicle, timeline, visible
from tests.drawings import areas, flaws, texts

KEY = (("compute", "computation"), ("exposed", "communication, exposed"))


def spans(*pairs: tuple[int, int]):
    return np.array([a for a, _ in pairs], np.int64), np.array([b for _, b in pairs], np.int64)


def group(title: str = "rank 0", end: int = 1000, *, marked: bool = True) -> Group:
    lanes = (
        Lane(label="stream 7", spans=(("compute", spans((0, 400), (600, end))),)),
        Lane(
            label="stream 20, communication", spans=(("exposed", spans((400, 600))),), words=((400, 600, "stage2_f"),)
        ),
    )
    return Group(title=title, start=0, end=end, lanes=lanes, marked=spans((400, 600)) if marked else None)


@pytest.mark.parametrize("groups", [[group()], [group("rank 0"), group("rank 1", 4000)], [group(marked=False)]])
def test_a_timeline_is_drawn_soundly(groups: list[Group]) -> None:
    assert not flaws(timeline("timeline", "streams", groups, KEY))


def test_all_groups_have_one_scale() -> None:
    picture = timeline("timeline", "streams", [group("rank 0"), group("rank 1", 4000)], KEY)
    short, long = [box[2] for box in areas(picture.svg) if box[3] == 20][1::3]
    assert long / short == pytest.approx(3400 / 400, rel=1e-3)


def test_what_is_marked_reaches_through_all_lanes_and_is_seen_without_colour() -> None:
    with_marks, without = (timeline("t", "streams", [group(marked=marked)], KEY).svg for marked in (True, False))
    assert with_marks.count('fill="currentColor"/>') - without.count('fill="currentColor"/>') == 1
    bars = timeline("t", "streams", [group()], KEY).bars
    assert [bar.label for bar in bars] == ["stream 7", "stream 20, communication", "exposed communication"]
    assert [bar.text[-9:] for bar in bars] == ["80 % busy", "20 % busy", " " * 5 + "20 %"]


def test_spans_that_no_eye_tells_apart_are_one() -> None:
    many = spans(*[(at * 10, at * 10 + 9) for at in range(100_000)])
    assert visible(many, 1000.0) == [(0, 999_999)]
    assert len(visible(many, 1.0)) == 100_000
    assert visible(spans(), 1.0) == []


TREE = Node(
    name="all",
    amount=100.0,
    children=(
        Node(name="forward", amount=60.0, children=(Node(name="aten::mm", amount=60.0),)),
        Node(name="<lambda>", amount=39.0),
        *(Node(name=f"tiny{n}", amount=0.1) for n in range(10)),
    ),
)


def test_an_icicle_is_as_wide_as_its_times() -> None:
    picture = icicle("calls", TREE)
    assert not flaws(picture)
    widths = sorted({round(box[2]) for box in areas(picture.svg)}, reverse=True)
    assert widths[1] / widths[0] == pytest.approx(0.6, rel=1e-2)
    assert "10 small ones together" in picture.svg
    assert "small ones together" in texts(picture.svg), "what is filled so stands in the legend"
    assert "&lt;lambda&gt;" in picture.svg
    assert picture.bars[2].label == "    aten::mm"


def test_a_compared_icicle_says_slower_and_faster_in_words_and_patterns() -> None:
    tree = Node(
        name="all",
        amount=100.0,
        before=120.0,
        children=(
            Node(name="slower", amount=60.0, before=30.0),
            Node(name="faster", amount=10.0, before=60.0),
            Node(name="alike", amount=30.0, before=30.0),
            Node(name="gone", amount=0.0, before=20.0),
        ),
    )
    picture = icicle("calls", tree)
    assert not flaws(picture)
    shown = " ".join(texts(picture.svg))
    assert "+100.0 %" in shown
    assert "-83.3 %" in shown
    assert "gone, was" in picture.svg
    assert [name in picture.svg for name in ("-worse)", "-better)")] == [True, True]


def test_a_deep_tree_stays_of_a_bounded_height() -> None:
    node = Node(name="leaf", amount=1.0)
    for depth in range(200):
        node = Node(name=f"level {depth}", amount=1.0, children=(node,))
    assert not flaws(icicle("deep", node))


def test_the_rows_of_a_terminal_add_up_to_what_is_above_them() -> None:
    layers = tuple(Node(name=f"layer {n}", amount=10.0) for n in range(8))
    bars = icicle("calls", Node(name="all", amount=80.0, children=layers)).bars
    assert [bar.label for bar in bars[-2:]] == ["  layer 5", "  2 more"]
    assert sum(bar.parts[0] for bar in bars[1:]) == pytest.approx(bars[0].parts[0])
