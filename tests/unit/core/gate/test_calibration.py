"""Error rates from rounds of known scatter."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_perfgate.core.gate.calibration import INJECTED, Recorded, calibration, own_shift
from pytest_perfgate.core.gate.rounds import Pairs
from pytest_perfgate.core.render.calibration import calibration_document
from pytest_perfgate.core.render.text import render_text


def measured(scatter: float, tests: int = 6, rounds: int = 40, by: float = 0.0) -> dict[str, Pairs]:
    dice = np.random.default_rng(5)
    return {
        f"t{at}": Pairs(
            base=tuple(100 * np.exp(dice.normal(0, scatter, rounds))),
            head=tuple(100 * (1 + by) * np.exp(dice.normal(0, scatter, rounds))),
            spread=0.05,
        )
        for at in range(tests)
    }


def test_a_calm_machine_sees_five_percent_and_never_alarms() -> None:
    found = calibration(Recorded(pairs=measured(0.004)), 0.03, suites=40)
    assert (found.alarms.hits, found.alarms.count) == (0, 40)
    assert found.alarms.bounds.high == pytest.approx(0.088, abs=0.001)
    power = {by: rate.rate for by, rate in found.power}
    assert power[0.05] == power[0.10] == 1.0
    assert power[0.02] < 0.5
    assert 5 <= found.processes < 6
    assert all(limit <= 0.02 and rounds == 10 for _, _, limit, rounds in found.own)
    assert found.suits <= 0.02
    assert (found.seconds, found.injected) == (0.0, ())


def test_a_wild_machine_says_so() -> None:
    found = calibration(Recorded(pairs=measured(0.08)), 0.03, suites=30)
    assert found.undecided.rate > 0.8
    assert dict(found.power)[0.05].rate < 0.3
    assert min(limit for _, _, limit, _ in found.own) >= 0.05
    assert max(rounds for *_, rounds in found.own) > 10


def test_the_document_has_bounds_a_curve_and_a_limit_a_test() -> None:
    text = render_text(calibration_document(calibration(Recorded(pairs=measured(0.004)), 0.03, suites=20)))
    assert "0.0% (0/20, 0.0% to 16.8%) of suites of this project's 6 tests alarm" in text
    assert "+10.0 %" in text
    assert "t5" in text


def test_the_own_shift_is_that_of_screening() -> None:
    assert own_shift([0.0] * 20) == 0.0
    assert own_shift([0.1] * 20) == pytest.approx(np.expm1(0.1))


def test_slowdowns_that_were_really_there_are_counted_beside_those_that_scale_times() -> None:
    slowed = {by: measured(0.004, by=by) for by in INJECTED}
    recorded = Recorded(pairs=measured(0.004), slowed={**slowed, 0.2: {}}, shares=dict.fromkeys(measured(0.004), 0.5))
    found = calibration(recorded, 0.03, suites=20)
    assert [one.by for one in found.injected] == list(INJECTED)
    assert [one.found for one in found.injected] == pytest.approx(INJECTED, abs=0.01)
    assert {one.rounds for one in found.injected} == {40}
    assert found.injected[-1].seen.rate == 1.0
    assert found.seconds >= 5 * 6 * 0.5
    text = render_text(calibration_document(found))
    assert "one side was kept busy" in text
    assert f"{found.seconds:.0f} s a run" in text
    assert '"slowdown <= ' in text
