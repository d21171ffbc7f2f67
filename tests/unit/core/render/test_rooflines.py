"""Rooflines: points stand by their figures, and every number has room."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from pytest_perfgate.core.analysis.regressions import Trend
from pytest_perfgate.core.render.rooflines import Ceiling, Point, label, roofline, sparkline, trend_svg
from pytest_perfgate.core.render.words import TIMES, FigureLevel
from pytest_perfgate.model.measurement import HistoryEntry
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.values import Dimension
from tests.drawings import SVG, flaws, texts
from tests.reports import baseline

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
    assert not flaws(roofline("points", points, ROOF))


def test_a_point_stands_by_its_figures_under_its_roof() -> None:
    """At the balance point slope and roof meet; a point there at full rate stands on the corner."""
    picture = roofline("points", [point(1e15 / 4.8e12, 1e15, bound="compute")], ROOF)
    corner = ET.fromstring(picture.svg).find(f"{SVG}polyline")
    disc = ET.fromstring(picture.svg).find(f"{SVG}circle")
    assert corner is not None
    assert disc is not None
    end = [float(part) for part in corner.get("points", "").split()[-1].split(",")]
    assert [float(disc.get(name, "0")) for name in ("cx", "cy")] == pytest.approx(end, abs=0.2)
    assert "balance 208" in texts(picture.svg)
    assert picture.bars[0].parts == (1.0,)


def test_what_moved_has_a_line_from_where_it_was() -> None:
    still, moved = (roofline("points", [point(300, 4e14, before=before)], ROOF).svg for before in (None, (100.0, 1e14)))
    assert moved.count("<line") - still.count("<line") == 1
    assert moved.count("<circle") - still.count("<circle") == 1


def test_no_dot_lies_on_a_number() -> None:
    """Points of one place are led aside; what leads there is drawn before all that must be read."""
    svg = roofline("points", [point(10, 1e12) for _ in range(6)], ROOF).svg
    assert svg.count('r="3"') == 5
    assert svg.rindex('r="3"') < svg.index(">1</text>")


def test_a_drawing_keeps_within_its_frame_and_its_size() -> None:
    times = [1e5 + n % 7 * 100 for n in range(499)] + [1e9]
    key = CaseKey(nodeid="t.py::test_a")
    svg = trend_svg(
        Trend(
            [
                HistoryEntry(key=key, device="d", time=time, when="2026-01-02", run=f"{at}")
                for at, time in enumerate(times)
            ]
        )
    )
    assert len(svg) < 14_000
    assert re.findall(r'class="beyond"[^>]*><title>([^<]*)', svg) == ["1 s"], "a run above the drawing says so"
    path = re.search(r'class="run" d="M(\d+),(\d+)l([^"]*)"', svg)
    x, y = int(path[1]), int(path[2])
    for dx, dy in re.findall(r"(-?\d+)[ ,](-?\d+)", path[3]):
        x, y = x + int(dx), y + int(dy)
        assert 0 <= x <= 860
        assert 0 <= y <= 250


@pytest.mark.parametrize(("accepted", "side"), [(1e5, "end"), (2e5, "start")])
def test_the_accepted_time_is_named_where_the_newest_runs_leave_room(accepted: float, side: str) -> None:
    line = baseline("test_a", accepted)
    entries = [
        HistoryEntry(key=line.key, device=line.device, time=2e5 + n % 7 * 100, when="2026-06-02") for n in range(60)
    ]
    svg = trend_svg(Trend(entries, line))
    assert ('text-anchor="end" y=' in svg) is (side == "end")
    ticks = re.findall(r'<text x="(\d+)" y="\d+">[^<]*µs</text>', svg)
    assert sum(int(x) < 776 for x in ticks) == (side == "start")
    assert sorted(map(int, ticks))[-3] > 776, "a phone shows the right end first"


def test_few_runs_are_drawn_to_scale_however_far_apart_they_are() -> None:
    key = CaseKey(nodeid="t.py::test_a")
    svg = trend_svg(Trend([HistoryEntry(key=key, device="d", time=time, when="2026-01-02") for time in (1e5, 1e6)]))
    assert "beyond" not in svg
    top = re.findall(r">([0-9.,]+) (?:µs|ms)<", svg)[-1]
    assert float(top) >= 1.0, "the highest tick is above the highest run"


def test_a_figure_that_repeats_itself_takes_few_letters() -> None:
    key = CaseKey(nodeid="t.py::test_a")
    levels = [
        HistoryEntry(key=key, device="d", time=128.0 + (at >= 250), when="2026-01-02", run=f"{at}") for at in range(500)
    ]
    of = FigureLevel(title="registers", dimension=Dimension.COUNT, exact=True)
    assert len(trend_svg(Trend(levels, of=of))) < 2_500
    restless = [replace(one, time=1e3 + at % 7) for at, one in enumerate(levels)]
    assert 'class="step"' not in trend_svg(Trend(restless, of=of)), "a step a run says nothing"


@pytest.mark.parametrize("numbers", [[], [1.0]])
def test_one_run_has_no_line(numbers: list[float]) -> None:
    assert sparkline(numbers) == ""


def test_noise_is_drawn_flat_and_news_in_full_height() -> None:
    def heights(numbers: list[float]) -> int:
        path = re.search(r'd="M[^l]*l([^"]*)"', sparkline(numbers))
        steps = [int(dy) for _, dy in re.findall(r"(-?\d+)[ ,](-?\d+)", path[1])]
        return max(map(abs, steps))

    assert heights([100.0, 100.5] * 5) <= 2
    assert heights([100.0, 120.0] * 5) >= 18
    assert heights([0.0, 0.0, 0.0]) == 0


def test_a_long_name_breaks_between_its_words() -> None:
    assert label("t/k.py::test_a<b>[n]") == "t/<wbr>k.py::<wbr>test_<wbr>a&lt;b&gt;[<wbr>n]"


@pytest.mark.parametrize(
    ("of", "levels", "ticks"),
    [
        (TIMES, (85_300.0, 102_700.0), ["85 µs", "90 µs", "95 µs", "100 µs"]),
        (FigureLevel(title="peak_memory", dimension=Dimension.BYTES), (500 * 2.0**20, 564 * 2.0**20),
         ["500 MiB", "520 MiB", "540 MiB", "560 MiB"]),
        (FigureLevel(title="peak_memory", dimension=Dimension.BYTES), (2.0**30, 1.0001 * 2.0**30),
         ["1 GiB", "1.00005 GiB", "1.0001 GiB"]),
        (TIMES, (100_010.0, 100_050.0), ["100.01 µs", "100.02 µs", "100.03 µs", "100.04 µs", "100.05 µs"]),
        (FigureLevel(title="registers", dimension=Dimension.COUNT), (128.0, 130.0), ["128", "129", "130"]),
        (FigureLevel(title="spills", dimension=Dimension.COUNT, raised=1.0), (1.0, 5.0), ["0", "1", "2", "3", "4"]),
        (FigureLevel(title="GFLOPS", dimension=Dimension.COUNT), (0.19, 0.28), ["0.2", "0.25"]),
    ],
)  # fmt: skip
def test_ticks_of_a_trend_are_round_in_the_unit_of_its_figure(
    of: FigureLevel, levels: tuple[float, float], ticks: list[str]
) -> None:
    times = levels[:1] * 6 + levels[1:] * 6
    key = CaseKey(nodeid="t.py::test_a")
    runs = [HistoryEntry(key=key, device="host", time=time, when="2026-06-02") for time in times]
    svg = trend_svg(Trend(runs, of=of, levels=times))
    assert re.findall(r'<text x="780" y="\d+">([^<]*)</text>', svg) == ticks
