"""What all pictures share: axes, fills, words that fit, colours that can be read."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from pytest_perfgate.core.render import drawing
from pytest_perfgate.core.render.drawing import (
    FILLS,
    Axis,
    Frame,
    area,
    complete_drawing,
    grid,
    legend,
    shortened,
    standalone,
    text_width,
)
from tests.drawings import contrast, outside, overlapping, palettes, root, unfilled


@pytest.mark.parametrize("palette", palettes(), ids=["day", "night"])
@pytest.mark.parametrize("ground", ["paper", *sorted({fill[6:8] for fill, _ in FILLS.values()})])
def test_words_are_read_on_paper_and_on_every_fill(palette: dict[str, str], ground: str) -> None:
    assert contrast(palette["ink"], palette[ground]) >= 4.5
    if ground == "paper":
        assert contrast(palette["soft"], palette[ground]) >= 4.5


@pytest.mark.parametrize("palette", palettes(), ids=["day", "night"])
@pytest.mark.parametrize("mark", ["mark", "mark2", "soft"])
def test_lines_and_outlines_stand_out_from_paper(palette: dict[str, str], mark: str) -> None:
    assert contrast(palette[mark], palette["paper"]) >= 3


def test_a_file_of_its_own_has_the_colours_of_the_day() -> None:
    day = palettes()[0]
    named = re.findall(r"var\(--(\w+),(#\w+)\)", f"{drawing.SOFT}{drawing.MARK}{drawing.OTHER}{drawing.PAPER}{FILLS}")
    assert {name: day[name] for name, _ in named} == dict(named)


def test_fills_that_stand_together_differ_without_their_colours() -> None:
    """In one picture no two of them have the same pattern."""
    for together in (
        ("compute", "exposed", "hidden", "copies"),
        ("worse", "better", "idle"),
        ("exposed", "compute", "other"),
    ):
        assert len({FILLS[name][1] for name in together}) == len(together)


def test_two_drawings_on_a_page_do_not_share_their_patterns() -> None:
    marks = [area(0, 0, 10, 10, "exposed")]
    one, two = (complete_drawing(20, 20, marks, alt) for alt in ("one", "two"))
    names = [re.findall(r'id="([^"]+)"', svg) for svg in (one, two)]
    assert len({*names[0], *names[1]}) == 2
    assert not [flaw for svg in (one, two, standalone(one)) for flaw in unfilled(svg)]
    assert "currentColor" not in standalone(one)
    assert "var(" not in standalone(one)


@pytest.mark.parametrize(
    ("text", "pixels", "expected"),
    [("whole", 100, "whole"), ("a long name of an operator", 100, "a long name …"), ("long", 12, ""), ("", 0, "")],
)
def test_words_that_do_not_fit_are_cut_or_left_out(text: str, pixels: float, expected: str) -> None:
    assert shortened(text, pixels) == expected
    assert text_width(shortened(text, pixels)) <= pixels


@pytest.mark.parametrize("width", [160, 344, 760])
@pytest.mark.parametrize(
    "axis",
    [
        Axis(low=0, high=1, label="share", text="{:.0%}".format),
        Axis(low=0, high=123_456_789, label="calls", text="{:,.0f}".format),
        Axis(low=0.001, high=1e9, label="rate", log=True, text="{:,.3f}".format),
        Axis(low=5, high=5, label="one"),
    ],
    ids=["share", "long", "log", "point"],
)
def test_ticks_never_lie_on_each_other(width: int, axis: Axis) -> None:
    frame = Frame(x=axis, y=Axis(low=0, high=1, label=""), width=width, height=120, left=60, right=60)
    svg = complete_drawing(width, 120, list(grid(frame)), "axis")
    assert not overlapping(svg)
    assert root(svg).get("aria-label") == "axis"


def test_a_legend_takes_the_lines_that_it_needs() -> None:
    entries = [("compute", "computation"), ("exposed", "communication, exposed"), ("idle", "idle")]
    for width in (120, 344, 760):
        marks, end = legend(entries, 0, width)
        svg = complete_drawing(width, end, marks, "key")
        assert not outside(svg)
        assert not overlapping(svg)
    assert legend([], 0, 100) == ([], 2)


def test_a_narrow_scale_of_few_powers_keeps_the_ticks_that_have_room() -> None:
    axis = Axis(low=5e3, high=5e5, label="length", log=True, text=lambda tick: f"{tick / 1e3:.0f} µs")
    svg = complete_drawing(
        360, 200, grid(Frame(x=axis, y=Axis(low=0, high=1, label=""), width=360, height=200)), "ticks"
    )
    assert len(re.findall(r"\d µs<", svg)) >= 4
    assert not overlapping(svg)


def test_labels_are_moved_apart_and_stay_inside() -> None:
    moved = drawing.spread_out([10, 11, 90, 91], 15, 0, 100)
    assert all(b - a >= 15 for a, b in pairwise(sorted(moved)))
    assert 0 <= min(moved) <= max(moved) <= 100
