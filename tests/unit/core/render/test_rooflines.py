"""Rooflines: points stand by their figures, and every number has room."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from pytest_perfgate.core.render.rooflines import Ceiling, Point, roofline
from tests.drawings import SVG, flaws, texts

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
