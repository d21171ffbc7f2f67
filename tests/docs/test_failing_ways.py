"""The table of ways to fail names tests that exist, and every one of them has a test."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = (ROOT / "docs" / "timing.md").read_text(encoding="utf-8").partition("## Ways in which an instrument fails")[2]
ROWS = [line for line in TABLE.partition("\n## ")[0].splitlines() if line.startswith("| ") and "`test_" in line]


def test_every_way_has_tests_that_exist() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    written = set(re.findall(r"^def (test_\w+)", sources, re.MULTILINE))
    named = [name for row in ROWS for name in re.findall(r"`(test_\w+)`", row)]
    assert len(ROWS) >= 25
    assert [name for name in named if name not in written] == []


def test_every_row_is_whole() -> None:
    for row in ROWS:
        what, outcome, tests = (cell.strip() for cell in row.strip("|").split("|"))
        assert what
        assert outcome
        assert "test_" in tests, row
