"""Which new test takes the place of one that is gone: a wrong guess lets a slower time in as a fresh start."""

from __future__ import annotations

from pytest_perfgate.core.changes.tests import renamed_nodes, same_bodies, same_function, twins

SAME = "def {}(): f()\n"


def test_of_two_old_tests_that_do_the_same_neither_is_the_new_one() -> None:
    now = SAME.format("new")
    assert same_bodies(SAME.format("one"), now) == {"one": "new"}
    assert same_bodies(SAME.format("one") + SAME.format("two"), now) == {}


def test_other_parameters_make_no_other_function() -> None:
    one, uno = (f"@pytest.mark.parametrize('n', [{n}])\ndef {name}(n): f(n)\n" for n, name in ((1, "one"), (2, "uno")))
    assert same_bodies(one, uno) == {"one": "uno"}
    assert same_function(one, one.replace("[1]", "[2]"), "one[2]#x")
    assert not same_function(one, one.replace("f(n)", "g(n)"), "one[2]#x")
    assert not same_function(one, one, "two[1]")


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
        assert list(twins([f"{path}.py::test_gemm"], new)) == [(f"{path}.py::test_gemm", f"{path}.py::test_gemm_v2")]


def test_of_a_renamed_function_those_with_the_same_parameters_are_the_same() -> None:
    gone, new = (
        [f"t.py::{name}[{at}]" for at in range(count)] for name, count in (("test_mm_bf16", 60), ("test_mm_fp16", 45))
    )
    pairs = dict(twins(sorted(gone), sorted(new)))
    assert pairs == dict(zip(gone, new))
    calls = [f"t.py::test_a[{at}]#{call}" for at in (1, 2) for call in ("fwd", "bwd")]
    later = [call.replace("test_a", "test_b") for call in calls[::-1]]
    assert dict(twins(calls, later)) == {call: call.replace("test_a", "test_b") for call in calls}


def test_a_family_that_stays_keeps_its_own_before_another_with_the_same_parameters() -> None:
    found = dict(twins(["t.py::test_a[1]"], ["t.py::test_b[1]", "t.py::test_a[01]"]))
    assert found == {"t.py::test_a[1]": "t.py::test_a[01]"}
