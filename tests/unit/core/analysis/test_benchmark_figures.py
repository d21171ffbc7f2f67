from __future__ import annotations

import random

import pytest

from pytest_perfgate.core.analysis.results import FIGURES, Figures


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7, 8, 21, 100])
def test_every_figure_is_pytest_benchmark_s(count: int) -> None:
    theirs = pytest.importorskip("pytest_benchmark.stats").Stats()
    source = random.Random(count)
    theirs.data = [source.lognormvariate(-9, 0.4) for _ in range(count)]
    found = Figures(theirs.data)
    assert set(theirs.fields) == set(FIGURES)
    for name in FIGURES:
        expected = getattr(theirs, name)
        assert getattr(found, name) == (expected if isinstance(expected, str) else pytest.approx(expected)), name


def test_figures_by_hand() -> None:
    found = Figures([4.0, 1.0, 2.0, 3.0, 100.0])
    assert (found.min, found.max, found.mean, found.median, found.rounds) == (1.0, 100.0, 22.0, 3.0, 5)
    assert (found.q1, found.q3, found.iqr) == (1.75, 28.0, 26.25)
    assert (found.iqr_outliers, found.hd15iqr, found.ld15iqr) == (1, 4.0, 1.0)
    assert found.outliers == "1;1"
    assert found.ops == 5 / 110
    assert found.data == [4.0, 1.0, 2.0, 3.0, 100.0], "in the order in which they were taken"
    assert found
    assert Figures([0.0]).ops == 0.0


def test_of_nothing_there_is_nothing_to_say() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Figures([])
