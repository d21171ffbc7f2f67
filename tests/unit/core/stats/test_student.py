from __future__ import annotations

import math

import pytest

from pytest_perfgate.core.stats.summary import t_quantile, t_tail

DEGREES = (1, 2, 3, 4, 5, 9, 13, 30, 100, 1000)
POINTS = (0.5, 0.6, 0.9, 0.975, 0.99, 0.99975, 1 - 1e-7)


@pytest.mark.parametrize("dof", DEGREES)
def test_against_the_oracle(dof: int) -> None:
    from scipy.stats import t

    for confidence in POINTS:
        assert t_quantile(confidence, dof) == pytest.approx(t.ppf(confidence, dof), rel=1e-9, abs=1e-12)
        assert t_quantile(1 - confidence, dof) == pytest.approx(t.ppf(1 - confidence, dof), rel=1e-8, abs=1e-12)
    for x in (-30.0, -2.0, -0.1, 0.0, 0.3, 1.0, 5.0, 80.0):
        assert t_tail(x, dof) == pytest.approx(t.sf(x, dof), rel=1e-10, abs=1e-300)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, 2.0])
def test_a_probability_lies_between(confidence: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        t_quantile(confidence, 3)


def test_nothing_lies_beyond_infinity() -> None:
    assert (t_tail(math.inf, 3), t_tail(-math.inf, 3), t_tail(1e200, 1)) == (0.0, 1.0, 0.0)
