"""Tests of core/changes/source."""

from __future__ import annotations

import ast

import pytest

from pytest_perfgate.core.changes.source import may_be_read, parts_of, split


def test_a_table_may_be_read_by_code_and_a_page_is_not() -> None:
    for path in (
        "tuning.txt",
        "data/tiles.json",
        "models/m.bin",
        "requirements.txt",
        "deep/license_table.csv",
        "tests/data/a.png",
    ):
        assert may_be_read(path), path
    for path in ("README.md", "src/k.py", "src/k.cu", ".github/workflows/ci.yml", "pyproject.toml", "LICENSE",
                 "baselines/host/t.py.yaml", "baselines/host/environments/1.json", "docs/a.rst", "docs/a.json", "NEWS.txt", "Makefile", "img/a.png", "tests/README.md"):  # fmt: skip
        assert not may_be_read(path), path
    assert not may_be_read("perf/lines/host/t.py.yaml", "perf/lines")


def test_a_source_that_no_build_took_up_may_be_compiled_by_a_test() -> None:
    for path in ("src/k.cu", "csrc/k.c", "run.sh", "tuning.txt"):
        assert may_be_read(path, same=True), path
    for path in ("src/k.py", ".github/build.sh", "docs/k.cu", "Makefile", "README.md"):
        assert not may_be_read(path, same=True), path


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
