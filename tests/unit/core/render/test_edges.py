from __future__ import annotations

import pytest

from pytest_perfgate.core.render.words import edges
from pytest_perfgate.model.metric import Metric
from pytest_perfgate.model.values import Dimension, Interval


def metric(value: float, low: float | None, high: float = 0.0, dimension: Dimension = Dimension.TIME) -> Metric:
    interval = None if low is None else Interval(low=low, high=high)
    return Metric(name="m", value=value, dimension=dimension, interval=interval)


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (metric(1e3, None), ""),
        (metric(1e3, 1e2, 1e4), "[too wide to say: 2 samples]"),
        (metric(1e3, 1.01e2, 1e4), "[101 ns, 10 µs]"),
        (metric(1e3, 1e2, 0.99e4), "[100 ns, 9.9 µs]"),
        (metric(1e3, 0.0, 6e14), "[too wide to say: 2 samples]"),
        (metric(0.5, 0.0, 1.0, Dimension.FRACTION), "[0 %, 100 %]"),
        (metric(0.0, 0.0, 4.0, Dimension.COUNT), "[0, 4]"),
    ],
)
def test_a_range_nobody_can_use_is_not_written(found: Metric, text: str) -> None:
    assert edges(found, change=False, rests_on="2 samples") == text
    assert "too wide" not in edges(found, change=False, decided=True), "it said enough for a verdict"


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (metric(0.079, 0.071, 0.086), "[+7.1, +8.6]"),
        (metric(0.0, -0.8, 8.9), "[-80.0, +890.0]"),
        (metric(0.0, -0.9, 9.0), "[too wide to say]"),
        (metric(1.0, -0.7, 19.0), "[-70.0, +1,900]"),
        (metric(1.0, -0.8, 19.0), "[too wide to say]"),
    ],
)
def test_a_change_is_wide_as_the_ratio_that_it_is_of(found: Metric, text: str) -> None:
    assert edges(found, change=True) == text
