from __future__ import annotations

import re

import pytest

from pytest_perfgate.core.analysis.regressions import Trend
from pytest_perfgate.core.render.trends import label, sparkline, trend_svg
from pytest_perfgate.model.measurement import Sitting
from pytest_perfgate.model.plan import CaseKey


def test_a_drawing_keeps_within_its_frame_and_its_size() -> None:
    times = [1e5 + n % 7 * 100 for n in range(499)] + [1e9]
    key = CaseKey(nodeid="t.py::test_a")
    svg = trend_svg(
        Trend(
            [Sitting(key=key, device="d", time=time, when="2026-01-02", run=f"{at}") for at, time in enumerate(times)]
        )
    )
    assert len(svg) < 14_000
    path = re.search(r'class="run" d="M(\d+),(\d+)l([^"]*)"', svg)
    x, y = int(path[1]), int(path[2])
    for dx, dy in re.findall(r"(-?\d+)[ ,](-?\d+)", path[3]):
        x, y = x + int(dx), y + int(dy)
        assert 0 <= x <= 860
        assert 0 <= y <= 250


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
