"""Reports, pictures, logs and comments of a run: pure text."""

from __future__ import annotations

import math
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from pytest_perfgate.core.render.drawing import alone
from pytest_perfgate.core.render.pictures import distribution_picture, history_picture, roofline_picture
from pytest_perfgate.model.device import Basis, Roof
from pytest_perfgate.model.measurement import Sitting
from pytest_perfgate.model.metric import Picture
from pytest_perfgate.model.plan import Outcome
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
