"""Counts and lists as people write them."""

from __future__ import annotations

from pytest_perfgate.core.render.words import first_of, plural


def test_a_noun_follows_its_count() -> None:
    assert [plural(n, "case") for n in (0, 1, 2)] == ["0 cases", "1 case", "2 cases"]
    assert plural(2, "process", "processes") == "2 processes"


def test_of_many_names_the_first_are_said_and_the_others_counted() -> None:
    assert first_of([], 2) == ""
    assert first_of(["a", "b"], 2) == "a, b"
    assert first_of(["a", "b", "c", "d"], 2) == "a, b and 2 more"
