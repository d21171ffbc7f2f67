from __future__ import annotations

import pytest

from pytest_perfgate.core.render.words import writable

BLOCK = "time  3 µs … ≤ 4\n  why   ü"


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("utf-8", BLOCK),
        (None, BLOCK),
        ("no such encoding", BLOCK),
        ("ascii", "time  3 us ... <= 4\n  why   \\xfc"),
        ("latin-1", "time  3 us ... <= 4\n  why   ü"),
    ],
)
def test_a_block_keeps_its_lines_whatever_letters_a_terminal_has(encoding: str | None, shown: str) -> None:
    assert writable(BLOCK, encoding) == shown
