from __future__ import annotations

from pytest_perfgate.core.changes.tests import is_new, same_bodies, same_test

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


def test_a_test_is_the_same_by_its_function_and_its_parameters() -> None:
    assert same_test(THEN, NOW, "t.py::TestOps::test_in")
    assert same_test(THEN, NOW, "t.py::test_one[1]")
    assert not same_test(THEN, NOW.replace("[1])\ndef", "[1, 2])\ndef"), "t.py::test_one[1]")
    assert not same_test(THEN, NOW.replace("sum, [n]", "max, [n]"), "t.py::test_one[1]")
    assert not same_test(THEN, NOW, "t.py::test_new")
    assert not same_test(THEN, "def broken(", "t.py::test_one[1]")


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
