"""Tests of core/changes/source."""

from __future__ import annotations

import ast

import pytest

from pytest_perfgate.core.changes.source import may_be_read, same_program, same_test, split

FILE = """
import torch
SIZE = 4

def inputs(): return torch.ones(SIZE)

class TestConv:
    def test_one(self, perfgate): perfgate(conv, inputs())

def test_one(perfgate): perfgate(relu, inputs())

def test_other(perfgate): perfgate(gelu, inputs())
"""


def same_after(then: str, now: str, test: str = "test_one") -> bool:
    return same_test(FILE, FILE.replace(then, now), test)


def test_a_test_is_edited_with_whatever_its_file_says_beside_other_tests() -> None:
    assert same_after("gelu", "tanh")
    assert same_after("def test_other", "def test_third")
    for then, now in (("relu", "tanh"), ("ones(", "zeros("), ("SIZE = 4", "SIZE = 8"), ("import torch", "import jax")):
        assert not same_after(then, now), then


def test_limits_words_and_cases_that_come_or_go_edit_no_test() -> None:
    marks = "@pytest.mark.perfgate('slowdown <= 3%')\n@pytest.mark.parametrize('n', [1, 2])\ndef test_one("
    text = FILE.replace("def test_one(perfgate)", f"{marks}perfgate, n)")
    for now in (marks.replace("3%", "5%"), marks.replace("[1, 2]", "[1, 2, 4]"), marks.replace("[1, 2]", "[2]")):
        assert same_test(text, text.replace(marks, now), "test_one"), now
    for now in (marks.replace("[1, 2]", "[1, '2']"), marks.replace("[1, 2]", "range(1, 3)"), marks.replace("'n'", "'m'"),
                marks.replace("3%'", "3%', rounds=1")):  # fmt: skip
        assert not same_test(text, text.replace(marks, now), "test_one"), now
    assert same_after("def test_one(perfgate): ", "def test_one(perfgate):\n    'Words.'\n    ")


def test_a_test_of_a_class_is_edited_with_its_class() -> None:
    assert same_after("relu", "tanh", "TestConv::test_one")
    assert not same_after("conv", "tanh", "TestConv::test_one")
    assert not same_after("conv", "tanh")


def test_what_does_not_parse_is_the_same_only_where_not_a_letter_changed() -> None:
    assert same_program("def (", "def (")
    assert not same_program("def (", "def  (")
    assert not same_test("def (", "def (", "test_one")
    assert not same_test(FILE, "def (", "test_one")
    assert not same_test("def (", FILE, "test_one")
    assert same_program("A = 1\n", "# one\n\nA = 1")


def test_a_table_may_be_read_by_code_and_a_page_is_not() -> None:
    for path in ("tuning.txt", "data/tiles.json", "models/m.bin", "requirements.txt", "deep/license_table.csv"):
        assert may_be_read(path), path
    for path in ("README.md", "src/k.py", "src/k.cu", ".github/workflows/ci.yml", "pyproject.toml", "LICENSE",
                 "baselines/host/t.py.yaml", "baselines/host/environments/1.json", "docs/a.rst", "docs/a.json", "NEWS.txt", "Makefile"):  # fmt: skip
        assert not may_be_read(path), path
    assert not may_be_read("perf/lines/host/t.py.yaml", "perf/lines")


def test_a_decorator_that_is_no_mark_is_one_of_the_test_s_lines() -> None:
    for decorator in ("@fast", "@gate('time <= 1ms')", "@pk.traced", "@pk.traced('a')"):
        text = FILE.replace("\ndef test_one(", f"\n{decorator}\ndef test_one(")
        assert same_test(text, text, "test_one")
        assert not same_test(text, FILE, "test_one")


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


def test_two_programs_that_differ_in_a_test_are_two() -> None:
    assert not same_program("def test_a(): f()\n", "def test_a(): g()\n")
