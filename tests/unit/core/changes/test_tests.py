"""Tests of core/changes/tests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.changes.fixtures import imported
from pytest_perfgate.core.changes.tests import (
    Successor,
    hidden,
    is_new,
    rename_candidates,
    renamed_nodes,
    same_bodies,
    same_function,
)
from pytest_perfgate.model.measurement import Identity
from pytest_perfgate.model.plan import CaseKey, Reach
from tests.reports import DEVICE
from tests.unit.core.judge.bench import accepted

THEN = """
class TestOps:
    def test_in(self, perfgate): perfgate(sum, [1])

@pytest.mark.perfgate
@pytest.mark.parametrize("n", [1])
def test_one(perfgate, n): perfgate(sum, [n])

def test_gone(perfgate): perfgate(len, [1])
"""
NOW = (
    THEN.replace("@pytest.mark.perfgate", "@pytest.mark.perfgate('time <= 1ms')").replace("gone", "kept")
    + """
def test_new(perfgate): perfgate(max, [1])
"""
)


def test_what_came_with_the_change_is_new_and_what_was_renamed_is_not() -> None:
    assert is_new(THEN, NOW, "t.py::test_new")
    assert is_new(None, NOW, "t.py::test_one[1]")
    assert is_new("", NOW, "t.py::test_one[1]")
    assert not is_new(THEN, NOW, "t.py::test_kept")
    assert not is_new(THEN, NOW, "t.py::test_one[7]")
    assert not is_new(THEN, NOW, "t.py::test_inherited")
    assert not is_new("def broken(", NOW, "t.py::test_new")


def test_a_function_that_moves_into_a_class_does_the_same() -> None:
    inside = "class TestK:\n    def test_k(self, perfgate, n=1): perfgate(sum, [n])\n"
    assert same_bodies("def test_k(perfgate, n=1): perfgate(sum, [n])\n", inside) == {"test_k": "TestK::test_k"}
    assert same_bodies("def test_k(perfgate, n=2): perfgate(sum, [n])\n", inside) == {}


OTHER = Identity(device=DEVICE.key, threads="9")


def test_a_successor_is_slower_where_both_were_measured_alike_or_nobody_knows() -> None:
    old, new = accepted(1e6), accepted(2e6)
    for ours in (new, replace(new, identity=None)):
        assert Successor(removed=old, new=ours).slower == 1.0
        assert Successor(removed=replace(old, identity=None), new=ours).slower == 1.0
    assert Successor(removed=old, new=replace(new, identity=OTHER)).slower == 0.0


def test_a_folder_whose_name_is_a_pattern_is_left_out_by_its_name() -> None:
    assert Reach(without=("tests/[a]",)).leaves_out("tests/[a]/test_k.py::test_a")
    assert not Reach(beneath=("tests/t.py",)).holds("tests/t.pyx::test_a")


TEST = "tests/bench/test_k.py::TestK::test_one[2]"


@pytest.mark.parametrize(
    ("reach", "holds"),
    [
        (Reach(), True),
        (Reach(beneath=("tests/bench",)), True),
        (Reach(beneath=("tests", "kern")), True),
        (Reach(beneath=(".",)), True),
        (Reach(beneath=("tests/bench/test_k.py",)), True),
        (Reach(beneath=("tests/ben", "kern")), False),
        (Reach(beneath=("tests/bench/test_k.py::TestK",)), True),
        (Reach(beneath=("tests/bench/test_k.py::TestK::test_one",)), True),
        (Reach(beneath=(TEST,)), True),
        (Reach(beneath=("tests/bench/test_k.py::TestK::test_on",)), False),
        (Reach(without=("docs",)), True),
        (Reach(without=("tests/bench",)), False),
        (Reach(without=("*bench*",)), False),
        (Reach(without=("tests/bench/test_k.py",)), False),
        (Reach(beneath=("tests",), without=("tests/bench/slow",)), True),
    ],
)
def test_what_a_run_could_have_collected(reach: Reach, *, holds: bool) -> None:
    assert reach.holds(TEST) is holds


SAME = "def {}(): f()\n"


def test_of_two_old_tests_that_do_the_same_neither_is_the_new_one() -> None:
    now = SAME.format("new")
    assert same_bodies(SAME.format("one"), now) == {"one": "new"}
    assert same_bodies(SAME.format("one") + SAME.format("two"), now) == {}


def test_other_parameters_make_no_other_function() -> None:
    one, uno = (f"@pytest.mark.parametrize('n', [{n}])\ndef {name}(n): f(n)\n" for n, name in ((1, "one"), (2, "uno")))
    assert same_bodies(one, uno) == {"one": "uno"}
    assert same_function(one, one.replace("[1]", "[2]"), CaseKey(nodeid="t.py::one[2]", name="x").function)
    assert not same_function(one, one.replace("f(n)", "g(n)"), CaseKey(nodeid="t.py::one[2]", name="x").function)
    assert not same_function(one, one, "two")


def test_a_function_that_asks_for_another_fixture_is_another() -> None:
    assert same_bodies("def one(big): f()\n", "def uno(small): f()\n") == {}
    inside = "class TestA:\n    def one(self, big): f()\n"
    assert same_bodies(inside, "def uno(big): f()\n") == {"TestA::one": "uno"}


def test_what_stands_in_the_brackets_of_a_parameter_is_no_name_of_a_call() -> None:
    nodes = ("t.py::one[a#b]#x[0]", "t.py::uno[a#b]#x[0]")
    assert list(renamed_nodes(nodes[:1], nodes[1:], {"one": "uno"})) == [nodes]
    named = ("t.py::one#x[0]", "t.py::uno#x[0]")
    assert list(renamed_nodes(named[:1], named[1:], {"one": "uno"})) == [named]


def test_of_two_files_the_own_one_is_looked_into_first() -> None:
    new = ["a.py::test_gemm_v2", "b.py::test_gemm_v2"]
    for path in "ab":
        assert list(rename_candidates([f"{path}.py::test_gemm"], new)) == [
            (f"{path}.py::test_gemm", f"{path}.py::test_gemm_v2")
        ]


def test_of_a_renamed_function_those_with_the_same_parameters_are_the_same() -> None:
    old, new = (
        [f"t.py::{name}[{at}]" for at in range(count)] for name, count in (("test_mm_bf16", 60), ("test_mm_fp16", 45))
    )
    pairs = dict(rename_candidates(sorted(old), sorted(new)))
    assert pairs == dict(zip(old, new))
    calls = [f"t.py::test_a[{at}]#{call}" for at in (1, 2) for call in ("fwd", "bwd")]
    later = [call.replace("test_a", "test_b") for call in calls[::-1]]
    assert dict(rename_candidates(calls, later)) == {call: call.replace("test_a", "test_b") for call in calls}


def test_a_family_that_stays_keeps_its_own_before_another_with_the_same_parameters() -> None:
    pairs = dict(rename_candidates(["t.py::test_a[1]"], ["t.py::test_b[1]", "t.py::test_a[01]"]))
    assert pairs == {"t.py::test_a[1]": "t.py::test_a[01]"}


@pytest.mark.parametrize(("reach", "count"), [(Reach(), 1), (Reach(beneath=("docs",)), 0), (Reach(without=("t",)), 0)])
def test_a_test_outside_of_what_a_run_reaches_is_not_hidden(reach: Reach, count: int) -> None:
    then = "def test_a(perfgate): perfgate(sum)\n"
    texts = {"t/test_k.py": (then, then.replace("test_a", "tst_a"))}
    assert len(list(hidden(texts, frozenset(), reach, hides=False, lined=set()))) == count


def test_files_that_import_each_other_are_each_imported_once() -> None:
    texts = {"a.py": "import b\nimport c\n", "b.py": "import c\n", "c.py": "import b\n", "d.py": "import a\n"}
    assert list(imported("a.py", texts)) == ["b.py", "c.py"]
