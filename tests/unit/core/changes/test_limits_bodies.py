"""Tests of core/changes/limits: what a change makes of a test."""

from __future__ import annotations

import pytest

from pytest_perfgate.core.changes.limits import reworked
from pytest_perfgate.core.changes.source import AROUND, ITSELF, PARAMETERS, marks_of

FILE = '''
"""About it."""
import pytest
import pk
from pk.data import DATA, SIZES as LARGE

SCALE = 2
try:
    import fast
except ImportError:
    fast = None


def prepare():
    return scaled(DATA)


def scaled(data):
    return data * SCALE


@pytest.fixture
def matrix():
    return prepare()


@pytest.fixture(autouse=True)
def quiet():
    yield


@pytest.mark.perfgate("slowdown <= 3%")
@pytest.mark.parametrize("n", [1, 2], ids=["s", "l"])
def test_dot(perfgate, n, matrix):
    """It is fast."""
    perfgate(pk.dot, matrix, fast)


class TestAll:
    size = 7

    def made(self):
        return self.size

    def test_in(self, perfgate):
        perfgate(pk.dot, setup=lambda: (self.made(), LARGE))
'''
INNER = "TestAll::test_in"


@pytest.mark.parametrize(
    ("old", "new", "dot", "inner"),
    [
        ("import pk\n", "import old as pk\n", ("pk",), ("pk",)),
        ("import DATA,", "import OTHER as DATA,", ("DATA",), ()),
        ("SIZES as LARGE", "SMALL as LARGE", (), ("LARGE",)),
        ("SCALE = 2", "SCALE = 1", ("SCALE",), ()),
        ("return data * SCALE", "return data", ("SCALE", "scaled"), ()),
        ("    import fast", "    import slow as fast", ("fast",), ()),
        ("    yield", "    pk.warm()\n    yield", ("quiet",), ("quiet",)),
        ("[1, 2]", "[1, 1]", (PARAMETERS,), ()),
        ("pk.dot, matrix", "pk.dot, matrix[:1]", (ITSELF,), ()),
        ("size = 7", "size = 1", (), ("size",)),
        ("return self.size", "return 1", (), ("made", "size")),
        ("setup=lambda: (self", "calls=2, setup=lambda: (self", (), (ITSELF,)),
        ("SCALE = 2", "SCALE = 2\n\n\ndef setup_function(): pk.freeze()", ("setup_function",), ("setup_function",)),
        ("import pytest\n", "import pytest\nfrom own import *\n", ("*",), ("*",)),
        ("<= 3%", "<= 30%", (), ()),
        ("It is fast", "It is quick", (), ()),
        ("def test_dot(perfgate, n, matrix)", "def test_dot(perfgate: Perfgate, n: int, matrix) -> None", (), ()),
        ("pk.dot, matrix, fast)", "pk.dot, matrix, fast, limits=['time <= 3ms'])", (), ()),
        ("pk.dot, matrix, fast)", "pk.dot, matrix, fast, limits=['time <= 3ms'], calls=2)", (ITSELF,), ()),
        ("import pytest\n", "import os\nimport pytest\n", (), ()),
        ("import pk\n", "import pk\nimport pk.warm\n", ("pk",), ("pk",)),
        ("SCALE = 2", "SCALE = 2\nimport old as DATA", ("DATA",), ()),
        ("SCALE = 2", "SCALE = 2\nREST = SCALE * DATA", (), ()),
        ("SCALE = 2", "if pk.big:\n    SCALE = 2\nelse:\n    SCALE = 3", ("SCALE",), ()),
        ("SCALE = 2", "SCALE = 2\nwith pk.lock:\n    def prepare(): return DATA", ("prepare",), ()),
        ("SCALE = 2", "SCALE = 2\nwhile pk.old:\n    from old import DATA", ("DATA",), ()),
    ],
)
def test_what_a_change_makes_of_a_test_is_named(
    old: str, new: str, dot: tuple[str, ...], inner: tuple[str, ...]
) -> None:
    assert old in FILE
    apart = reworked(FILE, FILE.replace(old, new))
    assert (apart.get("test_dot", ()), apart.get(INNER, ())) == (dot, inner)


def test_limits_of_another_call_are_no_limits_of_the_gate() -> None:
    clipped = FILE.replace("pk.dot, matrix, fast)", "pk.clip(matrix, limits=3), fast)")
    assert reworked(clipped, clipped.replace("limits=3", "limits=4"))["test_dot"] == (ITSELF,)


def test_of_another_object_an_attribute_is_none_of_the_class() -> None:
    other = FILE.replace("self.made()", "pk.made()")
    assert INNER not in reworked(other, other.replace("return self.size", "return 1"))


@pytest.mark.parametrize("around", ["if pk.big", "with pk.lock", "try"])
def test_a_test_behind_a_condition_is_known(around: str) -> None:
    rest = "\nfinally:\n    pass" if around == "try" else ""
    text = f"{around}:\n    def test_deep(perfgate):\n        perfgate(f){rest}\n"
    assert reworked(text, text.replace("(f)", "(g)")) == {"test_deep": (ITSELF,)}


def test_another_test_or_no_python_is_no_edit() -> None:
    assert reworked(FILE, FILE.replace("test_dot", "test_new")) == reworked(FILE, "def (") == reworked("", FILE) == {}


def test_a_line_that_is_nested_too_deep_is_compared_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def dump(_node: object) -> str:
        raise RecursionError

    monkeypatch.setattr("ast.dump", dump)
    assert reworked(FILE, FILE.replace("SCALE = 2", "SCALE = 1"))["test_dot"] == ("SCALE",)
    assert reworked(FILE, FILE) == {}


def test_marks_are_those_of_the_test_its_classes_and_its_file() -> None:
    marked = FILE.replace("@pytest.mark.perfgate(", "@pytest.mark.nightly\n@pytest.mark.perfgate(")
    assert marks_of(FILE, "test_dot") != marks_of(marked, "test_dot")
    assert marks_of(FILE, INNER) == marks_of(marked, INNER) == ()
    assert marks_of(FILE.replace("    size", "    pytestmark = pytest.mark.slow\n    size"), INNER) != ()
    assert marks_of(FILE + "pytestmark = [pytest.mark.slow]\n", INNER) != ()
    assert marks_of(FILE, "test_new") is marks_of("def (", "test_dot") is None


LISTED = """
import pytest
from pk.data import WIDE, SMALL


@pytest.mark.parametrize("n", VALUES)
def test_dot(perfgate, n):
    perfgate(pk.dot, n)
"""


@pytest.mark.parametrize(
    ("then", "now", "differs"),
    [
        ("[1, 2]", "[1, 2, 4]", False),
        ("[1, -2, None]", "(None, 1)", False),
        ("[1, 2]", "[1, '2']", True),
        ("[(1, 'a'), (2, 'b')]", "[(2, 'b')]", False),
        ("[pytest.param(WIDE, id='w')]", "[pytest.param(WIDE, id='w'), pytest.param(SMALL, id='s')]", False),
        ("[pytest.param(WIDE, id='w')]", "[pytest.param(SMALL, id='w')]", True),
        ("[WIDE, 2]", "[SMALL, 2]", True),
        ("[WIDE, 2]", "[WIDE, 2, 4]", True),
        ("[1, 1]", "[1, 1, 2]", True),
        ("[1, 2]", "[1, 2], ids=['a', 'b']", True),
        ("[1, 2]", "range(1, 3)", True),
        ("[{1}, 2]", "[{1}, 3]", True),
    ],
)
def test_a_value_that_comes_or_goes_changes_no_other_case(then: str, now: str, differs: bool) -> None:
    apart = reworked(LISTED.replace("VALUES", then), LISTED.replace("VALUES", now))
    assert apart == ({"test_dot": (PARAMETERS,)} if differs else {})


def test_what_a_value_of_both_stands_for_is_its_parameter() -> None:
    text = LISTED.replace("VALUES", "[pytest.param(WIDE, id='w')]")
    assert reworked(text, text.replace("import WIDE", "import LARGE as WIDE")) == {"test_dot": (PARAMETERS,)}


WRAPPED = LISTED.replace("VALUES", "[1]")


@pytest.mark.parametrize(
    ("line", "differs"),
    [
        ("@mock.patch('pk.dot', quick)", True),
        ("@half", True),
        ("@pytest.mark.usefixtures('fast')", True),
        ("@pytest.mark.timeout(3)", False),
        ("@slow", False),
        ("@pytest.mark.perfgate('time <= 1s')", False),
    ],
)
def test_what_stands_around_a_test_is_part_of_it_and_other_marks_are_not(line: str, differs: bool) -> None:
    text = "slow = pytest.mark.slow\n" + WRAPPED
    apart = reworked(text, text.replace("def test_dot", f"{line}\ndef test_dot"))
    assert apart == ({"test_dot": (AROUND,)} if differs else {})


@pytest.mark.parametrize("where", ["", "class TestIn:\n    "])
def test_fixtures_that_a_whole_file_or_class_asks_for_are_part_of_its_tests(where: str) -> None:
    text = f"{where}mark_me = 1\n{'    ' if where else ''}def test_dot(perfgate): pass\n"
    changes = reworked(text, text.replace("mark_me = 1", "pytestmark = [pytest.mark.usefixtures('fast')]"))
    assert list(changes.values()) == [(AROUND,)]
