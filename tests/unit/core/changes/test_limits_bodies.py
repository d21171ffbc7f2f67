"""Tests of core/changes/limits: what a change makes of a test."""

from __future__ import annotations

import pytest

from pytest_perfgate.core.changes.fixtures import marks_of
from pytest_perfgate.core.changes.limits import reworked, same_program, same_test
from pytest_perfgate.core.changes.source import AROUND, ITSELF, LOOSE, PARAMETERS

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


BEHIND = {
    "if": "if pk.big:\n    TEST",
    "with": "with pk.lock:\n    TEST",
    "try": "try:\n    TEST\nfinally:\n    pass",
    "except": "try:\n    import torch\nexcept ImportError:\n    TEST",
    "match": "match pk.device:\n  case 'cuda':\n    TEST",
}


@pytest.mark.parametrize("around", BEHIND)
def test_a_test_behind_a_condition_is_known(around: str) -> None:
    text = BEHIND[around].replace("TEST", "def test_deep(perfgate):\n        perfgate(f)")
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


@pytest.mark.parametrize(
    "line",
    [
        "torch.backends.cuda.matmul.allow_tf32 = False",
        "os.environ['OMP_NUM_THREADS'] = '1'",
        "SIZES['large'] = 4096",
        "for size in (1, 2):\n    SIZES.append(size)",
        "class TestIn:\n    pk.settings.fast = False",
    ],
)
def test_what_a_file_does_at_import_is_part_of_its_tests(line: str) -> None:
    assert reworked(WRAPPED, f"{WRAPPED}\n{line}\n") == {"test_dot": (LOOSE,)}


@pytest.mark.parametrize(
    "lines",
    [
        "if __name__ == '__main__':\n    pytest.main()",
        "class Other(Exception): ...",
        "class Other:\n    'Words.'\n    size: int",
        "if TYPE_CHECKING:\n    from pk import Other",
        "log = logging.getLogger(__name__)",
        "def other(): pk.freeze()",
    ],
)
def test_lines_without_effect_on_tests_are_no_part_of_them(lines: str) -> None:
    assert reworked(WRAPPED, f"{WRAPPED}\n{lines}\n") == {}


PARAMETRISED = {
    "a name": "sizes = MARK\n@sizes\ndef test_dot(perfgate, n): pass",
    "the file": "pytestmark = [MARK]\ndef test_dot(perfgate, n): pass",
    "the file, added": "pytestmark = []\npytestmark += [MARK]\ndef test_dot(perfgate, n): pass",
    "the class": "@MARK\nclass TestIn:\n    def test_dot(self, perfgate, n): pass",
    "marks of the class": "class TestIn:\n    pytestmark = MARK\n    def test_dot(self, perfgate, n): pass",
}


@pytest.mark.parametrize("place", PARAMETRISED)
def test_parameters_are_those_of_the_file_and_the_class_too(place: str) -> None:
    text = PARAMETRISED[place].replace("MARK", "pytest.mark.parametrize('n', [pytest.param(4096, id='large')])")
    assert list(reworked(text, text.replace("4096", "16")).values()) == [(PARAMETERS,)]
    assert reworked(text, text.replace("id='large')", "id='large'), pytest.param(16, id='small')")) == {}


NAMED = """
import pytest


@pytest.fixture(name="matrix")
def make_matrix():
    return 4096


@pytest.fixture
def quiet():
    return 1


@pytest.mark.usefixtures("quiet")
def test_dot(perfgate, matrix, request):
    perfgate(pk.dot, matrix, request.getfixturevalue("late"))


@pytest.fixture
def late():
    return 2


def pytest_generate_tests(metafunc):
    metafunc.parametrize("n", [3])
"""


@pytest.mark.parametrize(
    ("value", "name"), [("4096", "matrix"), ("1", "quiet"), ("2", "late"), ("[3]", "pytest_generate_tests")]
)
def test_a_fixture_is_known_by_its_name_however_a_test_asks_for_it(value: str, name: str) -> None:
    assert reworked(NAMED, NAMED.replace(value, "[16]"))["test_dot"] == (name,)


@pytest.mark.parametrize("autouse", [True, False])
def test_a_fixture_of_a_class_is_one_of_its_tests(autouse: bool) -> None:
    fixture = f"class TestIn:\n    @pytest.fixture(autouse={autouse})\n    def matrix(self): return 4096\n"
    text = f"{fixture}    def test_dot(self, perfgate{'' if autouse else ', matrix'}): perfgate(pk.dot)\n"
    assert reworked(text, text.replace("4096", "16"))["TestIn::test_dot"] == ("matrix",)


def test_a_mark_by_another_name_for_pytest_mark_is_no_code_around_a_test() -> None:
    text = "from pytest import mark as m\n@m.perfgate('time <= 5ms')\ndef test_dot(perfgate): pass\n"
    assert reworked(text, text.replace("5ms", "50ms")) == {}


PROGRAM = """
import torch
SIZE = 4

def inputs(): return torch.ones(SIZE)

class TestConv:
    def test_one(self, perfgate): perfgate(conv, inputs())

def test_one(perfgate): perfgate(relu, inputs())

def test_other(perfgate): perfgate(gelu, inputs())
"""


def same_after(then: str, now: str, test: str = "test_one") -> bool:
    return same_test(PROGRAM, PROGRAM.replace(then, now), test)


def test_a_test_is_edited_with_whatever_its_file_says_beside_other_tests() -> None:
    assert same_after("gelu", "tanh")
    assert same_after("def test_other", "def test_third")
    for then, now in (("relu", "tanh"), ("ones(", "zeros("), ("SIZE = 4", "SIZE = 8"), ("import torch", "import jax")):
        assert not same_after(then, now), then


def test_limits_words_and_cases_that_come_or_go_edit_no_test() -> None:
    marks = "@pytest.mark.perfgate('slowdown <= 3%')\n@pytest.mark.parametrize('n', [1, 2])\ndef test_one("
    text = PROGRAM.replace("def test_one(perfgate)", f"{marks}perfgate, n)")
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
    assert not same_test(PROGRAM, "def (", "test_one")
    assert not same_test("def (", PROGRAM, "test_one")
    assert same_program("A = 1\n", "# one\n\nA = 1")


def test_a_decorator_that_is_no_mark_is_one_of_the_test_s_lines() -> None:
    for decorator in ("@fast", "@gate('time <= 1ms')", "@pk.traced", "@pk.traced('a')"):
        text = PROGRAM.replace("\ndef test_one(", f"\n{decorator}\ndef test_one(")
        assert same_test(text, text, "test_one")
        assert not same_test(text, PROGRAM, "test_one")


def test_two_programs_that_differ_in_a_test_are_two() -> None:
    assert not same_program("def test_a(): f()\n", "def test_a(): g()\n")


IN_CLASS = """
import pytest

class TestAll:
    @pytest.fixture
    def data(self):
        return made(1)

    def prepare(self):
        return 1

    def test_dot(self, perfgate, data):
        perfgate(f, data, prepare)
"""


def test_a_fixture_of_the_class_is_part_of_its_tests_and_a_method_of_that_name_is_not() -> None:
    edited = reworked(IN_CLASS, IN_CLASS.replace("made(1)", "made(2)"))
    assert edited["TestAll::test_dot"] == ("data",)
    assert "TestAll::test_dot" not in reworked(IN_CLASS, IN_CLASS.replace("return 1\n", "return 2\n"))


def test_a_text_that_is_no_python_is_no_same_test() -> None:
    assert not same_test("x = (", FILE, "test_dot")
    assert not same_test(FILE, "x = (", "test_dot")
    assert same_test(FILE, FILE, "test_dot")
