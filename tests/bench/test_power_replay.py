"""The recording of an H100 through the rule: no alarm on unchanged code, and +5 % is seen, at its power limit too."""

from __future__ import annotations

import random
import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "ci" / "bench" / "verdicts" / "power.py"


@pytest.fixture(scope="module")
def power() -> dict:
    return runpy.run_path(str(SCRIPT), run_name="power")


def test_no_suite_alarms_and_five_percent_is_seen(power) -> None:
    for name in power["PAIRS"]:
        tape = power["recorded"](name)
        assert len(tape) == 18
        dice = random.Random(3)
        runs = [power["suite"](tape, 0.03, 0.05, dice) for _ in range(5)]
        assert sum(alarms for alarms, _, _ in runs) == 0, name
        assert sum(alarms for _, alarms, _ in runs) == 5 * power["SLOWED"], name


def test_a_line_confirms_nothing_where_two_builds_can(power) -> None:
    rows = [row.split("|") for row in power["runs_table"](20, 1).splitlines()[2:]]
    assert len(rows) == 3 * len(power["RUNS"])
    assert {row[5].strip() for row in rows} == {"0"}
    assert [row[3].strip() for row in rows if row[1].strip() == "copy 256 MB"][2] == "0.0%"
