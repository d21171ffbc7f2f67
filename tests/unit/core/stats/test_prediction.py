from __future__ import annotations

import math

import pytest

from pytest_perfgate.core.stats.inference import Prior, predict, prior


@pytest.mark.parametrize(
    ("kind", "sittings", "published"),
    [(Prior.CPU, 1, 0.80), (Prior.GPU_LOCKED, 1, 0.08), (Prior.CPU, 10, 0.21), (Prior.GPU_LOCKED, 10, 0.025)],
)
def test_the_published_figures(kind: Prior, sittings: int, published: float) -> None:
    found = predict(kind, scatter=kind, sittings=sittings, gates=40).reach
    assert found == pytest.approx(published, rel=0.06)


def test_against_the_oracle() -> None:
    from scipy.stats import t

    found = predict(0.04, scatter=0.02, sittings=6, gates=10)
    pooled = math.sqrt((4 * 0.04**2 + 5 * 0.02**2) / 9)
    assert (found.scatter, found.dof) == (pytest.approx(pooled), 9)
    assert found.log_reach == pytest.approx(t.ppf(1 - 0.001, 9) * pooled * math.sqrt(1 + 1 / 6))
    assert found.reach == pytest.approx(math.exp(found.log_reach) - 1)


def test_more_gates_reach_further_and_more_sittings_less_far() -> None:
    assert predict(0.04, gates=400).reach > predict(0.04, gates=4).reach
    assert predict(0.04, scatter=0.04, sittings=9).reach < predict(0.04, sittings=1).reach


def test_nonsense_counts_are_one() -> None:
    assert predict(0.04, sittings=0, gates=0) == predict(0.04)
    assert (predict(0.04).gates, predict(0.04).sittings) == (1, 1)


def test_classes_of_devices() -> None:
    assert [p.value for p in Prior] == [0.005, 0.015, 0.04]
    assert prior("host", "lock") is Prior.CPU
    assert prior("gpu", "lock") is Prior.GPU_LOCKED
    assert prior("gpu", "observe") is Prior.GPU_FREE
