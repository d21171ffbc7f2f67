from __future__ import annotations

from pytest_perfgate.core.limits.merge import matches, unmatched
from pytest_perfgate.model.project import ConfigPattern

NODES = ("t.py::test_a[4]", "t.py::test_b")


def test_brackets_stand_for_themselves() -> None:
    assert matches("t.py::test_a[x]", "*::test_a[x]")
    assert not matches("t.py::test_ax", "*::test_a[x]")


def test_a_table_that_one_test_answers_to_is_matched() -> None:
    one, all_of_them, none = (ConfigPattern(pattern=text) for text in ("*_b", "t.py::*", "*_c"))
    assert unmatched([one, all_of_them, none], NODES) == [none]
    assert unmatched([one, all_of_them], []) == [one, all_of_them]
