"""The page of what must not pass in silence names a test for each of its rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "nothing-passes-vacuously.md"
HEADS = ("| what happens |", "| --- |")
LINES = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
ROWS = [line for line in LINES if not line.startswith(HEADS)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip()[:40])
def test_every_row_has_its_test(row: str) -> None:
    named = re.findall(r"(tests/[\w/]+\.py)::(test_\w+)", row.partition("<!--")[2])
    assert named, "a comment at its end names the test"
    for file, test in named:
        assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), f"{file} has no {test}"


def test_the_rows_are_there() -> None:
    assert len(ROWS) > 30
    every = (ROOT / "tests" / "plugin").glob("test_vacuous*.py")
    tests = {name for path in every for name in re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.MULTILINE)}
    controls = {
        "test_what_is_well_passes",
        "test_a_baseline_that_is_kept_and_one_that_is_not",
        "test_a_skipped_test_is_counted_and_two_calls_are_distinct_names",
    }
    page = PAGE.read_text(encoding="utf-8")
    assert sorted(name for name in tests - controls if name not in page) == []
