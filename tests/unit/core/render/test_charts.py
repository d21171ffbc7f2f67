"""Charts: every mark inside the frame and no label on another, at both widths; lengths that are the amounts."""

from __future__ import annotations

import re

import numpy as np
import pytest

from pytest_perfgate.core.render.charts import (
    MOST_ROWS,
    Bins,
    Panel,
    Row,
    histogram,
    lengths_picture,
    merged,
    mfu_of_steps,
    occupancy_stairs,
    sparkline,
    stacked,
    with_shorter_sparkline,
)
from pytest_perfgate.core.render.drawing import NARROW, WIDE
from tests.drawings import areas, flaws, root, texts

KEY = (("compute", "computation"), ("exposed", "exposed communication"), ("idle", "idle"))


def steps(*amounts: tuple[float, ...], spread: tuple[float, ...] = ()) -> list[Row]:
    return [
        Row(label=f"step {at}", amounts=row, text=f"{sum(row):g} ms", spread=spread) for at, row in enumerate(amounts)
    ]


@pytest.mark.parametrize(
    "rows",
    [
        steps((3.0, 1.0, 0.0), (1.0, 0.0, 7.0)),
        steps((3.0, 1.0, 0.0), spread=(0.0, 0.0, 1.0)),
        steps((0.0, 0.0, 0.0)),
        [
            Row(
                label="ncclDevKernel_AllReduce_Sum_bf16_RING_LL of a very long name",
                amounts=(1, 1e-9, 5),
                text="1 of 5",
            )
        ],
        [],
    ],
    ids=["plain", "with members", "nothing", "long name", "none"],
)
def test_bars_are_drawn_soundly(rows: list[Row]) -> None:
    assert not flaws(stacked("steps", "time <per> step", rows, KEY, "{:g}".format, "a note"))


def test_lengths_are_amounts_on_one_scale() -> None:
    picture = stacked("steps", "times", steps((3.0, 1.0, 0.0), (1.0, 0.0, 7.0)), KEY, "{:g}".format)
    first, second, third, fourth = [width for _, _, width, _ in areas(picture.svg)]
    assert (first / second, third / second, fourth / second) == (
        pytest.approx(3, rel=1e-3),
        pytest.approx(1, rel=1e-3),
        pytest.approx(7, rel=1e-3),
    )
    assert [bar.parts for bar in picture.bars] == [(3 / 8, 1 / 8, 0), (1 / 8, 0, 7 / 8)]
    assert [float(root(svg).get("width", "0")) for svg in (picture.svg, picture.narrow)] == [WIDE, NARROW]


def test_the_legend_names_what_is_there_only() -> None:
    shown = texts(stacked("steps", "times", steps((3.0, 0.0, 1.0)), KEY, "{:g}".format).svg)
    assert ("computation" in shown, "exposed communication" in shown) == (True, False)


def test_two_kinds_of_members_stand_apart_below_their_bar() -> None:
    """Half of the kernels hidden, half exposed: a mean alone would say that each is half hidden."""
    row = steps((1.0, 1.0, 0.0), spread=(0.0, 0.02, 0.98, 1.0))
    picture = stacked("overlap", "members", row, KEY, "{:g}".format)
    bar, *_, first, last = sorted(areas(picture.svg), key=lambda box: (box[1], box[0]))
    assert first[0] - bar[0] < 5
    assert last[0] > 700 * 0.8
    assert first[3] == last[3]
    assert picture.bars[0].text.endswith("█                  █")


@pytest.mark.parametrize(("count", "shown", "size"), [(0, 0, 1), (24, 24, 1), (25, 13, 2), (1000, 24, 42)])
def test_many_rows_are_put_together(count: int, shown: int, size: int) -> None:
    rows = steps(*[(2.0, 0.0, float(at % 2)) for at in range(count)])
    few, together = merged(rows)
    assert (len(few), together) == (shown, size)
    assert shown <= MOST_ROWS
    if together > 1:
        assert few[0].amounts[0] == 2.0
        assert few[0].label.startswith("step 0 – ")


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [((), ""), ((0, 0), "  "), ((1, 2, 4, 8), "▁▂▄█"), ((0, 0.001, 8), " ▁█")],
)
def test_a_sparkline_shows_whatever_is_there(numbers: tuple[float, ...], expected: str) -> None:
    assert sparkline(numbers) == expected


@pytest.mark.parametrize(
    ("text", "by", "expected"),
    [
        (" ▁▂▃▄▅▆▇█ ▁█    ▁  4 % busy", 8, " ▂▄▆█▁█ ▁  4 % busy"),
        ("                 0 % busy", 0, "                 0 % busy"),
        ("▁▂▃▄▅▆▇█  4 % busy", 3, "▁▂▃▄▅▆▇█  4 % busy"),
        ("1 of 5  ▁▂▃", 5, "1 of 5  ▁▂▃"),
    ],
    ids=["joined", "as it is", "too short already", "no leading line"],
)
def test_a_squeezed_line_keeps_its_peaks(text: str, by: int, expected: str) -> None:
    assert with_shorter_sparkline(text, by) == expected


def test_short_kernels_stand_out_up_to_the_border() -> None:
    bins = Bins(edges=(1e3, 2e3, 1e4, 1e5), members=(0.5, 0.3, 0.2), time=(0.05, 0.15, 0.8))
    picture = histogram("kernels", "lengths", bins, 1e4, "length")
    assert not flaws(picture)
    assert picture.svg.count("-exposed)") == 2 + 1, "two bins and the legend"
    tall = [box[3] for box in areas(picture.svg)]
    assert tall[0] / tall[1] == pytest.approx(10, rel=1e-2)
    assert [bar.parts for bar in picture.bars] == [(0.5,), (0.3,), (0.2,)]


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_panels_say_where_one_stands_and_where_it_falls(count: int) -> None:
    panel = Panel(label="registers a thread", stairs=((16, 64), (33, 48), (65, 16), (255, 0)), here=(64, 48), cliff=64)
    picture = occupancy_stairs("cliffs", [panel] * count)
    assert not flaws(picture)
    assert texts(picture.svg).count("falls past 64") == count
    assert texts(picture.narrow).count("here: 64") == count
    places = re.findall(r'y="([0-9.]+)"[^>]*>here: 64', picture.svg)
    assert places == ["15.0"] * count  # above the frame, which begins at 20, where no line crosses it


@pytest.mark.parametrize("count", [2, 9, 400])
def test_a_figure_over_steps_has_its_mean(count: int) -> None:
    figures = [(str(at), 0.4 + 0.1 * (at % 2)) for at in range(count)]
    picture = mfu_of_steps("MFU", figures)
    assert not flaws(picture)
    assert picture.svg.count("<circle") == count
    assert any(text.startswith("mean 4") for text in texts(picture.svg))


def test_a_kernel_that_runs_for_hours_has_a_column() -> None:
    picture = lengths_picture(np.array([100, 7_200_000_000_000]))
    assert not flaws(picture)
    assert picture.bars[-1].text == "50.0 % of kernels, 100.0 % of time"
