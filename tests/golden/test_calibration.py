"""What a calibration says and draws; ``PERFGATE_GOLDEN=write`` writes it anew."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_perfgate.core.judge.calibration import Calibration, Injected, Rate, calibration_document, curve
from pytest_perfgate.core.render.text import render_text

PAGES = Path(__file__).parent / "calibration"

SCALED = Calibration(
    limit=0.03,
    rounds=40,
    tests=6,
    alarms=Rate(hits=1, count=200),
    undecided=Rate(hits=12, count=1200),
    power=((0.02, Rate(hits=40, count=200)), (0.05, Rate(hits=198, count=200))),
    processes=7.25,
    own=(("test_a", 0.004, 0.02, 9), ("test_b", 0.012, 0.05, 30)),
    seconds=0.0,
    injected=(),
)
INJECTED = replace(
    SCALED,
    own=(("test_a", 0.00412, 0.0213, 9), ("test_b", 0.0123, 0.05, 31)),
    seconds=90.0,
    injected=(Injected(by=0.05, measured=0.062, detected=Rate(hits=190, count=200), rounds=15),),
    forks=(("test_a", 0.00412, 0.00362),),
)


@pytest.mark.parametrize(("name", "result"), [("scaled", SCALED), ("injected", INJECTED)])
def test_a_calibration_says_and_draws_what_it_did(name: str, result: Calibration) -> None:
    for page, text in ((f"{name}.txt", render_text(calibration_document(result))), (f"{name}.svg", curve(result).svg)):
        if os.environ.get("PERFGATE_GOLDEN") == "write":
            (PAGES / page).write_text(text, encoding="utf-8")
        assert text == (PAGES / page).read_text(encoding="utf-8")
