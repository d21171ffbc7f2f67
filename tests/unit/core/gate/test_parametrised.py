"""By which id each value of ``parametrize`` is told apart, and where all of them are one."""

from __future__ import annotations

import ast

import pytest

from pytest_perfgate.core.changes.source import split


def ids(mark: str) -> list[str]:
    return [*split(ast.parse(mark, mode="eval").body)[1]]


@pytest.mark.parametrize(
    ("values", "known"),
    [
        ("[1, 'two', 3.5, None, True]", ["1", "two", "3.5", "None", "True"]),
        ("[(1, 'a'), (2, 'b')]", ["1-a", "2-b"]),
        ("[param(f(1), id='small'), 2]", ["small", "2"]),
        ("[param(1)]", []),
        ("[param(1, id='')]", []),
        ("[param(1, id=NAME)]", []),
        ("[f(1)]", []),
        ("[(1, [2])]", []),
        ("[[1], 2]", []),
        ("[1, 1]", []),
        ("[]", []),
        ("SIZES", []),
    ],
)
def test_values_are_told_apart_where_each_has_an_id_of_its_own(values: str, known: list[str]) -> None:
    assert ids(f"mark.parametrize('n', {values})") == known


@pytest.mark.parametrize(
    "mark", ["mark.parametrize", "mark.parametrize('n', [1], True)", "mark.parametrize('n', [1], ids=f)"]
)
def test_what_more_is_said_of_the_values_makes_them_one(mark: str) -> None:
    frame, values = split(ast.parse(mark, mode="eval").body)
    assert (len(frame), values) == (1, {})
