"""A line that would hold less without another time: each part that does so is named, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.accepted_line import widened
from pytest_perfgate.model.measurement import DIRTY
from tests.unit.core.gate.bench import accepted

LINE = accepted(1e6, commit="a1b2c3d4e5", scatter=0.04, expires="2026-06-01")


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({}, 0),
        ({"scatter": 0.08}, 0),
        ({"scatter": 0.081}, 1),
        ({"blind": 0.05}, 0),
        ({"blind": 0.051}, 1),
        ({"expires": "2026-05-01"}, 0),
        ({"expires": "2026-07-01"}, 1),
        ({"expires": ""}, 1),
        ({"commit": "ffffffffff"}, 1),
        ({"commit": ""}, 1),
        ({"commit": "ffffffffff", "time": 1.1e6}, 0),
        ({"commit": "ffffffffff", "blind": 1.0, "expires": ""}, 3),
    ],
)
def test_what_a_line_loses_is_named(fields: dict, named: int) -> None:
    assert len(widened(LINE, replace(LINE, **fields))) == named
    assert widened(LINE, replace(LINE, **fields, why="a reason of its own")) == ()


def test_a_commit_that_nobody_can_build_is_no_loss() -> None:
    for commit in ("", f"a1b2c3d4e5{DIRTY}"):
        before = replace(LINE, commit=commit)
        assert widened(before, replace(before, commit="ffffffffff")) == ()
    assert widened(LINE, replace(LINE, commit="ffffffffff")) == ("commit a1b2c3d -> fffffff",)
