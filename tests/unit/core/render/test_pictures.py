"""Reports, pictures, logs and comments of a run: pure text."""

from __future__ import annotations

import math
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from pytest_perfgate.core.render.drawing import standalone
from pytest_perfgate.core.render.pictures import (
    distribution_picture,
    history_picture,
    roofline_picture,
    rounds_picture,
    timeline,
)
from pytest_perfgate.core.stats.change_points import ChangePoint
from pytest_perfgate.model.device import Basis, Roof
from pytest_perfgate.model.measurement import HistoryEntry
from pytest_perfgate.model.metric import Picture
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.verdict import Arms
from tests.drawings import SVG, flaws, texts
from tests.reports import DEVICE, case

SLOW = case("test_<i>[1]", 1.2e6, 1e6, Outcome.REGRESSED)
ROOFED = replace(DEVICE, roofs=(Roof(basis=Basis.CLOCK, compute=(("bf16", 1e15), ("fp32", 6e13)), bandwidth=4.8e12),))
ENTRIES = [
    HistoryEntry(key=SLOW.key, device="d", time=1e6 + n * 1e4, when="2026-05-01", commit="c0ffee1") for n in range(9)
]


def drawn(picture: Picture | None) -> ET.Element:
    assert picture is not None
    return ET.fromstring(picture.svg)


def numbers(svg: ET.Element) -> list[float]:
    return [
        float(v) for node in svg.iter() for name in ("x", "y", "cx", "cy", "width", "height") if (v := node.get(name))
    ]


def test_pictures_are_sound_svg() -> None:
    for picture in (
        distribution_picture(SLOW),
        history_picture(SLOW, ENTRIES),
        roofline_picture([case("test_a", 1e6, device=ROOFED)]),
    ):
        assert picture is not None
        assert not flaws(picture)
        svg = drawn(picture)
        assert all(math.isfinite(n) for n in numbers(svg))
        assert "<i>" not in picture.svg


def test_a_drawing_in_a_file_of_its_own_lies_on_paper_and_needs_no_page_for_its_colours() -> None:
    """`history --svg` was black on whatever the viewer shows behind it, and grey lines were lost without a style."""
    picture = history_picture(SLOW, ENTRIES)
    assert picture is not None
    svg = standalone(picture.svg)
    paper, *rest = ET.fromstring(svg)
    assert (paper.get("width"), paper.get("height"), paper.get("fill")) == ("100%", "100%", "#fff")
    assert len(rest) == len(drawn(picture))
    assert "var(" not in svg
    assert "currentColor" not in svg
    assert "#2f6fb7" in svg, "the marks keep their colour"


def test_a_row_a_process_and_one_for_the_runs_before() -> None:
    picture = distribution_picture(SLOW, ENTRIES)
    assert picture is not None
    rows = SLOW.measurement.processes if SLOW.measurement else ()
    names = ["9 runs before", *(f"process {n}" for n in range(1, len(rows) + 1))]
    assert [text for text in texts(picture.svg) if text in names] == names
    assert [bar.label for bar in picture.bars] == names
    assert "accepted 1 ms" in texts(picture.svg)


def test_calls_that_waited_for_a_processor_do_not_squeeze_the_rest() -> None:
    """A neighbour held a tenth of the calls up for a hundred times as long: all others fell into one column."""
    assert SLOW.measurement is not None
    first = SLOW.measurement.processes[0]
    held_up = replace(first, durations=(*(1e6 + n * 2e3 for n in range(90)), *(1e8 + n for n in range(10))))
    picture = distribution_picture(replace(SLOW, measurement=replace(SLOW.measurement, processes=(held_up,))))
    assert picture is not None
    assert picture.svg.count(" samples</title>") > 10
    assert "the slowest 10 samples beyond" in picture.alt


def test_what_is_accepted_has_its_scatter_and_its_anchor() -> None:
    assert SLOW.baseline is not None
    accepted = replace(SLOW, baseline=replace(SLOW.baseline, scatter=0.01, anchor=9e5))
    plain, banded = (distribution_picture(one) for one in (SLOW, accepted))
    assert plain is not None
    assert banded is not None
    assert banded.svg.count("fill-opacity") - plain.svg.count("fill-opacity") == 1
    assert "anchor 900 µs" in texts(banded.svg)
    assert not flaws(banded)


def test_rounds_stand_on_the_side_of_what_is_slower() -> None:
    arms = Arms(base="a1b2c3d", differences=(0.10, -0.02, 0.09, math.nan))
    picture = rounds_picture(replace(SLOW, arms=arms))
    assert picture is not None
    assert not flaws(picture)
    assert picture.alt.endswith("-2.0 % to +10.5 %; dashed: the limit, +3 %")
    assert {"0 %", "+5 %", "+10 %"} <= set(texts(picture.svg)), "ticks of the axis"
    circles = [float(node.get("cy", "0")) for node in drawn(picture).iter(f"{SVG}circle")]
    assert len(circles) == 3, "what is no number is no round"
    assert circles[0] < circles[2] < circles[1], "slower is up"
    assert {"slower", "faster"} < set(texts(picture.svg))
    confirmed = rounds_picture(replace(SLOW, builds=Arms(base="a1b2c3d", differences=(0.10, 0.09))))
    assert confirmed is not None, "rounds that confirmed a slower time"
    assert {"slower", "faster"} & set(texts(confirmed.svg)) == {"slower"}
    assert rounds_picture(SLOW) is None
    assert rounds_picture(replace(SLOW, arms=Arms(base="a", differences=(0.1,)))) is None


def test_many_changes_of_level_leave_out_words_rather_than_lay_them_on_each_other() -> None:
    entries = [replace(ENTRIES[0], time=1e6 * (1 + n // 4), when=f"2026-05-{1 + n % 28:02}") for n in range(80)]
    steps = tuple(ChangePoint(index=at, before=1e6, after=2e6, p=0.01) for at in range(4, 80, 4))
    picture = timeline("many", entries, steps, SLOW.baseline)
    assert not flaws(picture)
    assert picture.svg.count('stroke-dasharray="2 4"') == len(steps)


def test_a_run_that_failed_its_limits_has_another_shape() -> None:
    entries = [replace(one, outcome="regressed" if at == 5 else "passed") for at, one in enumerate(ENTRIES)]
    picture = history_picture(SLOW, entries)
    assert picture is not None
    assert picture.svg.count("l6,6 m0,-6 l-6,6") == 1
    assert "oldest first; crossed: failed" in picture.svg
    assert "crossed" not in history_picture(SLOW, ENTRIES).svg


@pytest.mark.parametrize(
    ("days", "label", "ticks"),
    [((1, 1, 1), "runs of 2026-05-01, oldest first", ">10:0"), ((1, 2, 3), "runs, oldest first", ">2026-05-0")],
)
def test_runs_of_one_day_are_told_apart_by_their_time(days: tuple[int, ...], label: str, ticks: str) -> None:
    entries = [replace(ENTRIES[0], when=f"2026-05-{day:02}T10:0{at}:00+00:00") for at, day in enumerate(days)]
    svg = timeline("case", entries, (), SLOW.baseline).svg
    assert label in svg
    assert ticks in svg


@pytest.mark.parametrize("time", [float("nan"), math.inf])
def test_samples_that_are_no_numbers_are_no_picture(time: float) -> None:
    assert distribution_picture(case("test_a", time)) is None
    assert roofline_picture([case("test_a", time, device=ROOFED)]) is None


def test_nothing_is_drawn_of_nothing() -> None:
    bare = replace(SLOW, measurement=None)
    assert distribution_picture(bare) is None
    assert history_picture(SLOW, ENTRIES[:2]) is None
    assert roofline_picture([SLOW]) is None
    assert roofline_picture([]) is None
    assert drawn(distribution_picture(case("test_a", 5.0, spread=0.0))) is not None


@pytest.mark.parametrize("count", [1, 6, 7, 40])
def test_many_processes_have_lower_rows_and_more_are_said(count: int) -> None:
    assert SLOW.measurement is not None
    many = replace(SLOW.measurement, processes=SLOW.measurement.processes[:1] * count)
    picture = distribution_picture(replace(SLOW, measurement=many), ENTRIES)
    assert picture is not None
    assert not flaws(picture)
    assert len([text for text in texts(picture.svg) if text.startswith("process ")]) == min(count, 24)
    assert ("the first 24 drawn" in picture.alt) == (count > 24)
    assert float(drawn(picture).get("height", "0")) < 720


def test_a_case_under_its_roof_leads_from_its_accepted_time() -> None:
    moved, fresh = (roofline_picture([case("test_a", 1.2e6, then, device=ROOFED)]) for then in (1e6, None))
    assert moved is not None
    assert fresh is not None
    assert (moved.svg.count('r="4.5"'), fresh.svg.count('r="4.5"')) == (1, 0)
    assert "lines lead from the accepted times" in moved.alt
    assert not flaws(moved)
