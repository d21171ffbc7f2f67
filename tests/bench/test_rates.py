"""The statistics that only the benches use, against scipy's."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from ci.rates import upper_bound

SOURCE = Path(__file__).resolve().parents[2] / "ci" / "bench" / "verdicts" / "mann_whitney.py"


@pytest.fixture(scope="module")
def mann_whitney():
    """The test as the bench imports it, by its folder."""
    spec = importlib.util.spec_from_file_location("mann_whitney", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.mann_whitney


def test_the_one_sided_bound_of_no_alarm_is_the_rule_of_three() -> None:
    assert upper_bound(0, 300) == pytest.approx(1 - 0.05 ** (1 / 300))
    assert upper_bound(4, 4) == 1.0
    assert upper_bound(3, 30) == upper_bound(3, 30, 0.95)


@pytest.mark.parametrize(
    ("size", "method"),
    [
        ((4, 6), "exact"),
        ((20, 20), "exact"),
        ((21, 21), "asymptotic"),
        ((3, 25), "asymptotic"),
        ((60, 80), "asymptotic"),
    ],
)
def test_mann_whitney_is_the_oracles(mann_whitney, size: tuple[int, int], method: str) -> None:
    stats = pytest.importorskip("scipy.stats")
    dice = np.random.default_rng(7)
    a, b = dice.normal(0.3, 1, size[0]), dice.normal(0, 1, size[1])
    oracle = stats.mannwhitneyu(a, b, alternative="greater", method=method).pvalue
    assert mann_whitney(a, b) == pytest.approx(oracle, rel=1e-9)


def test_ties_are_taken_by_the_normal_limit(mann_whitney) -> None:
    stats = pytest.importorskip("scipy.stats")
    tied = [1, 2, 2, 3], [1, 1, 2, 5]
    oracle = stats.mannwhitneyu(*tied, alternative="greater", method="asymptotic").pvalue
    assert mann_whitney(*tied) == pytest.approx(oracle)
    assert mann_whitney([1, 1], [1, 1]) == 1.0
    assert mann_whitney([1, 1], [1, 2]) == pytest.approx(0.9331928)
