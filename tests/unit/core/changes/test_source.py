"""Tests of core/changes/source."""

from __future__ import annotations

import ast

import pytest

from pytest_perfgate.core.changes.source import parts_of, split


def ids(mark: str) -> list[str]:
    return [*split(ast.parse(mark, mode="eval").body)[1]]


@pytest.mark.parametrize(
    ("values", "expected"),
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
def test_values_are_distinct_names_where_each_has_an_id_of_its_own(values: str, expected: list[str]) -> None:
    assert ids(f"mark.parametrize('n', {values})") == expected


@pytest.mark.parametrize(
    "mark", ["mark.parametrize", "mark.parametrize('n', [1], True)", "mark.parametrize('n', [1], ids=f)"]
)
def test_what_more_is_said_of_the_values_makes_them_one(mark: str) -> None:
    frame, values = split(ast.parse(mark, mode="eval").body)
    assert (len(frame), values) == (1, {})


@pytest.mark.parametrize("indent", ["", "    "])
def test_twice_the_tests_take_twice_the_reading(monkeypatch: pytest.MonkeyPatch, indent: str) -> None:
    dump, reads = ast.dump, 0

    def counted(node: ast.AST) -> str:
        nonlocal reads
        reads += 1
        return dump(node)

    def readings(tests: int) -> int:
        nonlocal reads
        reads = 0
        lines = (
            f"{indent}@mark.parametrize('n', [{at}])\n{indent}def test_{at}(self, n): f(n)\n" for at in range(tests)
        )
        assert len(parts_of("class Test:\n" * bool(indent) + "".join(lines))) == tests
        return reads

    monkeypatch.setattr(ast, "dump", counted)
    assert readings(80) < 3 * readings(40)
