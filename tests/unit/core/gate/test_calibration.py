"""Error rates from rounds of known scatter."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_perfgate.core.gate.calibration import calibration, own_shift
from pytest_perfgate.core.gate.rounds import Pairs
from pytest_perfgate.core.render.calibration import calibration_document
from pytest_perfgate.core.render.text import render_text


def measured(scatter: float, tests: int = 6, rounds: int = 40) -> dict[str, Pairs]:
    dice = np.random.default_rng(5)
    return {
        f"t{at}": Pairs(
            base=tuple(100 * np.exp(dice.normal(0, scatter, rounds))),
            head=tuple(100 * np.exp(dice.normal(0, scatter, rounds))),
            spread=0.05,
        )
        for at in range(tests)
    }


def test_a_calm_machine_sees_five_percent_and_never_alarms() -> None:
    found = calibration(measured(0.004), 0.03, suites=40)
    assert (found.alarms.hits, found.alarms.count) == (0, 40)
    assert found.alarms.bounds.high == pytest.approx(0.088, abs=0.001)
    power = {by: rate.rate for by, rate in found.power}
    assert power[0.05] == power[0.10] == 1.0
    assert power[0.02] < 0.5
    assert 5 <= found.processes < 6
    assert all(limit <= 0.02 for _, _, limit in found.own)


def test_a_wild_machine_says_so() -> None:
    found = calibration(measured(0.08), 0.03, suites=30)
    assert found.undecided.rate > 0.8
    assert dict(found.power)[0.05].rate < 0.3
    assert min(limit for _, _, limit in found.own) >= 0.05


def test_the_document_has_bounds_a_curve_and_a_limit_a_test() -> None:
    text = render_text(calibration_document(calibration(measured(0.004), 0.03, suites=20)))
    assert "0.0% (0/20, 0.0% to 16.8%) of suites of this project's 6 tests alarm" in text
    assert "+10.0 %" in text
    assert "t5" in text


def test_the_own_shift_is_that_of_screening() -> None:
    assert own_shift([0.0] * 20) == 0.0
    assert own_shift([0.1] * 20) == pytest.approx(np.expm1(0.1))
