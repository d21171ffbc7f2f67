"""Tests of model/values."""

from __future__ import annotations

import pytest

from pytest_perfgate.model.values import TIME_UNITS, span_seconds
from pytest_perfgate.model.values import LazySequence as Later


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2", 2.0), (".5", 0.5), ("1e-3", 1e-3), ("250 ns", 250e-9), ("3us", 3e-6), ("3µs", 3e-6), ("3\u03bcs", 3e-6),
        ("500 ms", 0.5), (" 2 min ", 120.0), ("1h", 3600.0),
    ],
)  # fmt: skip
def test_a_span_is_read_in_every_unit(text: str, seconds: float) -> None:
    assert span_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "soon", "1 day", "1.2.3", "-1 s", "ms"])
def test_what_is_no_span_is_nothing(text: str) -> None:
    assert span_seconds(text) is None


def test_the_letter_of_microseconds_is_read_in_both_code_points() -> None:
    assert TIME_UNITS["\u00b5s"] == TIME_UNITS["\u03bcs"] == TIME_UNITS["us"]


def test_members_are_made_when_asked_for_and_once() -> None:
    made = []
    later = Later(lambda: made.append("made") or ["a", "b"])
    assert made == []
    assert (list(later), later[0], later[-1], len(later), "b" in later) == (["a", "b"], "a", "b", 2, True)
    assert made == ["made"]
