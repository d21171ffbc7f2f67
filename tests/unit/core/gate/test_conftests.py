"""What runs around a test without being named by it: packages of tests, plugins, and what a conftest imports."""

from __future__ import annotations

import pytest

from pytest_perfgate.core.changes.fixtures import LOOSE, borrowed

TEST = """
import pytest
from marks import fast


@fast
@pytest.mark.usefixtures("quiet")
def test_dot(perfgate, matrix):
    perfgate(sum, matrix)
"""
CONFTEST = """
import pytest
import pk

SCALE = 2


@pytest.fixture
def matrix():
    return [1] * SCALE


@pytest.fixture
def quiet():
    pk.rest()


@pytest.fixture
def other():
    yield


@pytest.fixture(autouse=True)
def always():
    yield
"""
PATCH = "import kern\n\n\ndef fast(s): return s\n\n\nkern.smooth = fast\n"


def test_the_package_that_a_test_lies_in_is_imported_before_it() -> None:
    tests = {"tests/bench/test_k.py": (TEST, {"test_dot"})}
    for path in ("tests/__init__.py", "tests/bench/__init__.py"):
        assert borrowed(tests, {path: (None, PATCH)}) == {path: (LOOSE,)}
        assert borrowed(tests, {path: (PATCH, PATCH.replace("return s", "return [s]"))}) == {path: (LOOSE,)}
        assert borrowed(tests, {path: (None, "")}) == {}
    assert borrowed(tests, {"tests/unit/__init__.py": (None, PATCH), "__init__.py": (None, PATCH)}) == {}


def test_the_lines_of_a_helper_that_is_imported_at_all_are_told() -> None:
    test = "import patches\ndef test_dot(perfgate): pass\n"
    changed = {"tests/patches.py": (None, PATCH), "src/patches.py": (None, PATCH), "tests/other.py": (None, PATCH)}
    assert borrowed({"tests/test_k.py": (test, {"test_dot"})}, changed) == {"tests/patches.py": (LOOSE,)}


@pytest.mark.parametrize(
    ("then", "now"),
    [
        (None, "pytest_plugins = ['myplug']"),
        ("pytest_plugins = ['plug']", "pytest_plugins = ['plug', 'myplug']"),
        ("pytest_plugins = ['plug']", None),
    ],
)
def test_the_plugins_that_a_conftest_loads_are_told(then: str | None, now: str | None) -> None:
    tests = {"tests/test_k.py": (TEST, {"test_dot"})}
    assert borrowed(tests, {"conftest.py": (then, now)}) == {"conftest.py": ("pytest_plugins",)}


def test_a_plugin_of_the_project_is_read_as_a_conftest_is() -> None:
    tests = {"tests/test_k.py": (TEST, {"test_dot"})}
    standing = {"conftest.py": "pytest_plugins = ['pk.myplug']"}
    changed = {"src/pk/myplug.py": (None, PATCH + CONFTEST), "src/myplug.py": (None, PATCH)}
    assert borrowed(tests, changed, standing) == {"src/pk/myplug.py": ("always", "fast", "matrix", "quiet", LOOSE)}


def test_of_a_module_that_a_conftest_imports_fixtures_and_hooks_are_told_and_no_kernel() -> None:
    tests = {"tests/test_k.py": (TEST, {"test_dot"})}
    changed = {"src/kfix.py": (CONFTEST, CONFTEST.replace("[1] * SCALE", "[1]")), "src/kern.py": (None, PATCH)}
    for imported in ("from kfix import *", "from kfix import matrix", "from kfix import matrix as m, quiet"):
        assert borrowed(tests, changed, {"conftest.py": f"{imported}\nfrom kern import fast"}) == {
            "src/kfix.py": ("matrix",)
        }
    assert borrowed(tests, changed, {"conftest.py": "from kfix import quiet"}) == {}
    hook = {"src/kfix.py": ("", "def pytest_runtest_call(item): ...")}
    assert borrowed(tests, hook, {"conftest.py": "from kfix import *"}) == {"src/kfix.py": ("pytest_runtest_call",)}
    helper = {"tests/kit.py": ("SIZE = 1\nMORE = 1\n", "SIZE = 2\nMORE = 2\n")}
    assert borrowed(tests, helper, {"conftest.py": "from tests.kit import SIZE\nprint(SIZE)"}) == {
        "tests/kit.py": ("SIZE",)
    }


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("import fastkern", (LOOSE,)),
        ("import fastkern\ndef matrix(): return fastkern.m()", ("matrix",)),
        ("from __future__ import annotations", ()),
        ("if True:\n    x = 1\n    kern.smooth = x", (LOOSE,)),
        ("try:\n    import cupy\nexcept ImportError:\n    cupy = None", ()),
        ("class Patch:\n    kern.smooth = 1", (LOOSE,)),
        ("class Plain:\n    size = 1", ()),
        ("x = setattr(kern, 'smooth', 1)", ("x",)),
        ("size = 1", ()),
    ],
)
def test_what_a_new_conftest_does_when_it_is_imported(line: str, told: tuple[str, ...]) -> None:
    found = borrowed({"tests/test_k.py": (TEST, {"test_dot"})}, {"conftest.py": (None, line)})
    assert found.get("conftest.py", ()) == told


def test_an_import_that_a_fixture_begins_to_use_does_nothing_more() -> None:
    used = CONFTEST.replace("def other():\n", "def other():\n    pk.freeze()\n")
    assert borrowed({"tests/test_k.py": (TEST, {"test_dot"})}, {"conftest.py": (CONFTEST, used)}) == {}
