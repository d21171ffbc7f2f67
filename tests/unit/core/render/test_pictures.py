"""Reports, pictures, logs and comments of a run: pure text."""

from __future__ import annotations

import math
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from pytest_perfgate.core.render.drawing import alone
from pytest_perfgate.core.render.pictures import (
    Ceiling,
    Point,
    distribution_picture,
    history_picture,
    roofline,
    roofline_picture,
)
from pytest_perfgate.model.device import Basis, Roof
from pytest_perfgate.model.measurement import Sitting
from pytest_perfgate.model.metric import Picture
from pytest_perfgate.model.plan import Outcome
from tests.drawings import SVG, flaws, texts
from tests.reports import DEVICE, case

SLOW = case("test_<i>[1]", 1.2e6, 1e6, Outcome.REGRESSED)
ROOFED = replace(DEVICE, roofs=(Roof(basis=Basis.CLOCK, compute=(("bf16", 1e15), ("fp32", 6e13)), bandwidth=4.8e12),))
SITTINGS = [
    Sitting(key=SLOW.key, device="d", time=1e6 + n * 1e4, when="2026-05-01", commit="c0ffee1") for n in range(9)
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
        history_picture(SLOW, SITTINGS),
        roofline_picture([case("test_a", 1e6, device=ROOFED)]),
    ):
        svg = drawn(picture)
        assert all(math.isfinite(n) for n in numbers(svg))
        assert "<i>" not in picture.svg


def test_a_drawing_in_a_file_of_its_own_lies_on_paper_and_needs_no_page_for_its_colours() -> None:
    """`history --svg` was black on whatever the viewer shows behind it, and grey lines were lost without a style."""
    picture = history_picture(SLOW, SITTINGS)
    assert picture is not None
    svg = alone(picture.svg)
    paper, *rest = ET.fromstring(svg)
    assert (paper.get("width"), paper.get("height"), paper.get("fill")) == ("100%", "100%", "#fff")
    assert len(rest) == len(drawn(picture))
    assert "var(" not in svg
    assert "currentColor" not in svg
    assert "#2f6fb7" in svg, "the marks keep their colour"


def test_what_is_counted_has_no_ticks_between_two() -> None:
    """Rows were numbered 0 0 1 2 2 3, and four sittings 1 2 2 2 3 4 4."""

    def ticks(picture: Picture | None) -> list[str]:
        return [text.text or "" for text in drawn(picture).iter() if (text.text or "").isdigit()]

    assert ticks(history_picture(SLOW, SITTINGS[:4])) == ["1", "2", "3", "4"]
    rows = SLOW.measurement.processes if SLOW.measurement else ()
    assert ticks(distribution_picture(SLOW)) == [str(n + 1) for n in range(len(rows))]


@pytest.mark.parametrize("time", [float("nan"), math.inf])
def test_samples_that_are_no_numbers_are_no_picture(time: float) -> None:
    assert distribution_picture(case("test_a", time)) is None
    assert roofline_picture([case("test_a", time, device=ROOFED)]) is None


def test_nothing_is_drawn_of_nothing() -> None:
    bare = replace(SLOW, measurement=None)
    assert distribution_picture(bare) is None
    assert history_picture(SLOW, SITTINGS[:2]) is None
    assert roofline_picture([SLOW]) is None
    assert roofline_picture([]) is None
    assert drawn(distribution_picture(case("test_a", 5.0, spread=0.0))) is not None


ROOF = Ceiling(peaks=(("bf16", 1e15), ("fp32", 6e13)), bandwidth=4.8e12, note="of the data sheet")


def point(intensity: float, rate: float, **more: object) -> Point:
    return Point(label="aten::mm <64×64>", intensity=intensity, rate=rate, text="9 µs, 40% of its roof", **more)


@pytest.mark.parametrize(
    "points",
    [
        [point(300, 4e14, bound="compute")],
        [point(2, 1e12), point(400, 5e14, before=(100, 1e14))],
        [point(10 + n / 10, 1e12 + n * 1e9) for n in range(12)],
        [point(10, 1e12) for _ in range(40)],
        [point(1e-3, 1e5), point(1e6, 1e17)],
    ],
    ids=["one", "moved", "close", "heaped", "far"],
)
def test_a_roofline_is_drawn_soundly(points: list[Point]) -> None:
    assert not flaws(roofline("roofline", "points", points, ROOF))


def test_a_point_stands_by_its_figures_under_its_roof() -> None:
    """At the balance point slope and roof meet; a point there at full rate stands on the corner."""
    picture = roofline("roofline", "points", [point(1e15 / 4.8e12, 1e15, bound="compute")], ROOF)
    corner = ET.fromstring(picture.svg).find(f"{SVG}polyline")
    disc = ET.fromstring(picture.svg).find(f"{SVG}circle")
    assert corner is not None
    assert disc is not None
    end = [float(part) for part in corner.get("points", "").split()[-1].split(",")]
    assert [float(disc.get(name, "0")) for name in ("cx", "cy")] == pytest.approx(end, abs=0.2)
    assert "balance 208" in texts(picture.svg)
    assert picture.bars[0].parts == (1.0,)


def test_what_moved_has_a_line_from_where_it_was() -> None:
    still, moved = (
        roofline("roofline", "points", [point(300, 4e14, before=before)], ROOF).svg for before in (None, (100.0, 1e14))
    )
    assert moved.count("<line") - still.count("<line") == 1
    assert moved.count("<circle") - still.count("<circle") == 1
