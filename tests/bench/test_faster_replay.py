"""The recorded turns through the judge: no clean suite alarms, and 10 % more work is seen."""

from __future__ import annotations

import random
import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "ci" / "bench" / "verdicts" / "faster.py"


@pytest.fixture(scope="module")
def faster() -> dict:
    return runpy.run_path(str(SCRIPT), run_name="faster")


@pytest.mark.parametrize("condition", ["quiet", "hogs"])
@pytest.mark.parametrize("title", ["of the accepted", "absolute"])
def test_clean_tests_are_kept_and_slower_ones_are_seen(faster: dict, condition: str, title: str) -> None:
    rounds, dice = faster["tape"](condition), random.Random(3)
    assert len(rounds) == 40
    limit = faster["LIMITS"][title]
    outcomes = {work: [] for work in faster["CALLS"].values()}
    for _ in range(60):
        for work, results in outcomes.items():
            then, now = faster["drawn"](rounds, work, dice)
            results.append(faster["outcome"](limit, faster["accepted"](then), now)[0])
    clean, slowed = outcomes[0], outcomes[1]
    assert not [one for one in clean if one in faster["ALARMS"]]
    assert not [one for one in slowed if one in faster["KEPT"]]
    assert sum(one in faster["ALARMS"] for one in slowed) >= 0.9 * len(slowed)
