"""Tests of core/changes/fixtures."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from pytest_perfgate.core.changes.fixtures import LOOSE, collectable, fixture_sources, passed_on

TEST = """
import pytest
import pk
import shapes
from marks import fast
from . import near
from pk.sizes import LARGE, dot, listed as wide

SIZES = [LARGE, 2]


@fast
@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("m", shapes.SMALL)
@pytest.mark.parametrize("k", near.FEW)
@pytest.mark.parametrize("kernel", [dot])
@pytest.mark.parametrize("w", wide())
def test_dot(perfgate, n, m, k, kernel, w, matrix):
    perfgate(kernel, n)
"""
CONFTEST = '''
"""Of all benches."""
import pytest
import pk

SCALE = 2


@pytest.fixture
def matrix():
    return [1] * SCALE


@pytest.fixture
def quiet():
    yield


@pytest.fixture
def other():
    yield


@pytest.fixture(autouse=True)
def always():
    yield


def pytest_terminal_summary():
    print("words")
'''
MODULE = """
import pytest

fast = pytest.mark.perfgate("slowdown <= 3%")
BASE = 1
SMALL = FEW = LARGE = [BASE]


def listed():
    return [1]


def dot(n):
    return n
"""


def sources_of_edit(path: str, text: str, old: str, new: str) -> tuple[str, ...]:
    assert old in text
    return fixture_sources({"tests/bench/test_k.py": (TEST, {"test_dot"})}, {path: (text, text.replace(old, new))}).get(
        path, ()
    )


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("SCALE = 2", "SCALE = 1", ("matrix",)),
        ("[1] * SCALE", "[1]", ("matrix",)),
        ("def quiet():\n    yield", "def quiet():\n    pk.freeze()\n    yield", ("quiet",)),
        ("def other():\n    yield", "def other():\n    pk.freeze()\n    yield", ()),
        ("def always():\n    yield", "def always():\n    pk.freeze()\n    yield", ("always",)),
        ("SCALE = 2", "SCALE = 2\npk.dot = pk.small", (LOOSE,)),
        ("SCALE = 2", "SCALE = 2\ndef pytest_collection_modifyitems(items): ...", ("pytest_collection_modifyitems",)),
        ("words", "other words", ()),
        ("Of all benches", "Of all", ()),
    ],
)
def test_of_a_conftest_what_the_tests_name_and_what_runs_beside_all_is_told(
    old: str, new: str, names: tuple[str, ...]
) -> None:
    for path in ("conftest.py", "tests/bench/conftest.py"):
        assert sources_of_edit(path, CONFTEST, old, new) == names
    assert sources_of_edit("tests/unit/conftest.py", CONFTEST, old, new) == ()


BRANCHED = """
if pk.fast:
    @pytest.fixture
    def matrix():
        return [1]
else:
    @pytest.fixture
    def other():
        return [3]
try:
    @pytest.fixture(autouse=True)
    def always():
        return [2]
finally:
    @pytest.fixture
    def last():
        return [4]
for _ in range(1):
    @pytest.fixture
    def another():
        return [5]
"""


@pytest.mark.parametrize(("old", "name"), [("[1]", "matrix"), ("[2]", "always"), ("[5]", "")])
def test_a_fixture_in_a_branch_of_a_conftest_is_one_too(old: str, name: str) -> None:
    names = sources_of_edit("conftest.py", BRANCHED, old, "[9]")
    assert name in names if name else not names


@pytest.mark.parametrize(
    ("path", "old", "new", "names"),
    [
        ("tests/bench/marks.py", "3%", "90%", ("fast",)),
        ("tests/bench/shapes.py", "FEW = LARGE = [BASE]", "FEW = LARGE = [2]", ("SMALL",)),
        ("tests/bench/near.py", "BASE = 1", "BASE = 2", ("FEW",)),
        ("tests/near.py", "BASE = 1", "BASE = 2", ()),
        ("src/pk/sizes.py", "BASE = 1", "BASE = 2", ("LARGE",)),
        ("src/pk/sizes/__init__.py", "return [1]", "return [2]", ("listed",)),
        ("src/pk/sizes.py", "return n", "return -n", ()),
        ("src/other/sizes.py", "BASE = 1", "BASE = 2", ()),
    ],
)
def test_of_a_module_what_marks_name_is_told_and_no_kernel(
    path: str, old: str, new: str, names: tuple[str, ...]
) -> None:
    assert sources_of_edit(path, MODULE, old, new) == names


@pytest.mark.parametrize(
    ("keyword", "names"),
    [
        ("limits=sizes.LARGE", ("LARGE",)),
        ("limits=[f'slowdown <= {sizes.SMALL}%']", ("SMALL",)),
        ("work=work.items(sizes.listed())", ("listed",)),
        ("setup=sizes.listed", ()),
        ("check=sizes.SMALL", ()),
    ],
)
def test_of_a_module_what_limits_and_work_of_a_call_name_is_told(keyword: str, names: tuple[str, ...]) -> None:
    """A change that doubles the operations which it counts keeps a limit on their rate with a slower kernel."""
    test = f"from pk import sizes\ndef test_dot(perfgate):\n    perfgate(sizes.dot, 1, {keyword})\n"
    changed = {"src/pk/sizes.py": (MODULE, MODULE.replace("BASE = 1", "BASE = 2").replace("[1]", "[2]"))}
    sources = fixture_sources({"tests/test_k.py": (test, {"test_dot"})}, changed)
    assert sources == ({"src/pk/sizes.py": names} if names else {})
    assert fixture_sources({"tests/test_k.py": (f"{test}def test_b(perfgate): pass\n", {"test_b"})}, changed) == {}


def test_a_decorator_of_a_module_is_called_and_no_kernel() -> None:
    test = "from pk import sizes\n@sizes.dot\ndef test_dot(perfgate):\n    perfgate(sizes.listed)\n"
    changed = {"src/pk/sizes.py": (MODULE, MODULE.replace("return n", "return -n").replace("return [1]", "return [2]"))}
    assert fixture_sources({"tests/test_k.py": (test, {"test_dot"})}, changed) == {"src/pk/sizes.py": ("dot",)}


PLUGIN = "import pytest\nclass Base:\n    pytestmark = [pytest.mark.perfgate('slowdown <= 3%')]\n"
PLUGIN += "@pytest.fixture\ndef warm():\n    pass\ndef pytest_runtest_setup(item):\n    pass\ndef kernel():\n    pass\n"


@pytest.mark.parametrize(
    ("test", "names"),
    [
        ("pytest_plugins = ['pk.plug']\ndef test_dot(perfgate): pass\n", ("pytest_runtest_setup",)),
        ("pytest_plugins = 'pk.plug'\ndef test_dot(perfgate, warm): pass\n", ("pytest_runtest_setup", "warm")),
        ("from pk.plug import warm\ndef test_dot(perfgate, warm): pass\n", ("warm",)),
        ("from pk.plug import Base\nclass TestDot(Base):\n    def test_dot(self, perfgate): pass\n", ("Base",)),
        ("from pk.plug import kernel\ndef test_dot(perfgate):\n    perfgate(kernel)\n", ()),
        ("from pk import plug\ndef test_dot(perfgate):\n    perfgate(plug.kernel)\n", ()),
    ],
)
def test_what_a_test_file_loads_or_imports_for_its_tests_is_told_and_no_kernel(
    test: str, names: tuple[str, ...]
) -> None:
    changed = {"src/pk/plug.py": (PLUGIN, PLUGIN.replace("3%", "90%").replace("    pass", "    return 1"))}
    name = "TestDot::test_dot" if "class" in test else "test_dot"
    assert fixture_sources({"tests/test_k.py": (test, {name})}, changed).get("src/pk/plug.py", ()) == names


def test_a_file_that_is_new_or_gone_is_told_and_one_of_the_tests_is_not() -> None:
    tests = {"tests/test_k.py": (TEST, {"test_dot"})}
    whole = {"tests/conftest.py": ("always", LOOSE, "matrix", "quiet")}  # it imports pk, and nothing there uses it
    assert fixture_sources(tests, {"tests/conftest.py": (None, CONFTEST)}) == whole
    assert fixture_sources(tests, {"tests/conftest.py": (CONFTEST, None)}) == whole
    assert fixture_sources(tests, {"tests/test_k.py": (TEST, "")}) == {}
    assert fixture_sources(tests, {"tests/conftest.py": ("def (", "def (")}) == {}


def test_what_another_test_of_the_file_takes_is_no_matter() -> None:
    text = f"{TEST}\n\ndef test_new(perfgate, other): pass\n\n\nclass TestIn:\n    def test_in(self, perfgate, other): pass\n"
    changed = {"conftest.py": (CONFTEST, CONFTEST.replace("def other():\n    yield", "def other():\n    pk.freeze()"))}
    assert fixture_sources({"tests/test_k.py": (text, {"test_dot"})}, changed) == {}
    for name in ("test_new", "TestIn::test_in", "TestIn::test_of_a_base_class"):
        assert fixture_sources({"tests/test_k.py": (text, {"test_dot", name})}, changed) == {"conftest.py": ("other",)}


def taken(imported: str, values: str, *others: str, path: str = "tests/bench/test_k.py") -> list[str]:
    """Which of these files a mark takes from."""
    test = f"import pytest\n{imported}\n@pytest.mark.parametrize('n', {values})\ndef test_dot(perfgate, n): pass\n"
    both = ("SMALL = [1]\nwide = [1]\n", "SMALL = [2]\nwide = [2]\n")
    return [*fixture_sources({path: (test, {"test_dot"})}, dict.fromkeys(others, both))]


def test_a_module_is_known_however_it_is_imported() -> None:
    for imported, values in (
        ("import pk.shapes", "pk.shapes.SMALL"),
        ("import pk.shapes as s", "s.SMALL"),
        ("from pk import shapes", "shapes.SMALL"),
        ("from pk.shapes import SMALL", "SMALL"),
        ("from pk.shapes import SMALL as S", "S"),
    ):
        assert taken(imported, values, "pk/shapes.py", "src/pk/shapes.py", "shapes.py", "pk/other.py") == [
            "pk/shapes.py",
            "src/pk/shapes.py",
        ], imported
    assert taken("import shapes", "shapes.SMALL", "shapes.py", "pk.py") == ["shapes.py"]
    assert taken("import shapes", "shapes", "shapes.py") == [], "a module by itself is no value"
    assert taken("import shapes\nOWN = shapes.SMALL", "OWN.sizes", "shapes.py", "sizes.py") == ["shapes.py"]


def test_points_lead_as_far_up_as_there_are_folders() -> None:
    for imported, path, other in (
        ("from .shapes import SMALL", "test_k.py", "shapes.py"),
        ("from .shapes import SMALL", "tests/bench/test_k.py", "tests/bench/shapes.py"),
        ("from ..shapes import SMALL", "tests/bench/test_k.py", "tests/shapes.py"),
        ("from ...shapes import SMALL", "tests/bench/test_k.py", "shapes.py"),
    ):
        assert taken(imported, "SMALL", other, "pk/shapes.py", path=path) == [other]
    assert taken("from ..shapes import SMALL", "SMALL", "shapes.py", path="test_k.py") == []


def test_a_module_that_is_new_brings_what_its_names_stand_for() -> None:
    test = (
        "import pytest\nfrom pk import SMALL\n@pytest.mark.parametrize('n', SMALL)\ndef test_dot(perfgate, n): pass\n"
    )
    for sides in ((None, "SMALL = [1]\n"), ("SMALL = [1]\n", None)):
        assert fixture_sources({"t.py": (test, {"test_dot"})}, {"pk.py": sides}) == {"pk.py": ("SMALL",)}


def test_a_line_that_does_nothing_is_none_that_runs() -> None:
    assert sources_of_edit("conftest.py", CONFTEST, "SCALE = 2", "SCALE = 2\npass") == ()
    assert sources_of_edit("conftest.py", CONFTEST, "SCALE = 2", "SCALE = 2\npk.freeze()") == (LOOSE,)


HELPED = """
import helpers
from tests.bench.data import inputs
from pk.shapes import inputs as wide


def made():
    return helpers.sizes.of(inputs())


def test_dot(perfgate):
    perfgate(dot, made(), wide())


def test_new(perfgate):
    perfgate(dot, helpers.other())
"""
DATA = "N = 4\n\n\ndef inputs():\n    return [1] * N\n\n\ndef other():\n    return 1\n\n\nsizes = N\n"


@pytest.mark.parametrize(
    ("path", "old", "names"),
    [
        ("tests/bench/data.py", "N = 4", ("inputs",)),
        ("tests/bench/data.py", "return 1\n", ()),
        ("tests/bench/helpers.py", "N = 4", ("sizes",)),
        ("tests/helpers.py", "N = 4", ("sizes",)),
        ("tests/bench/helpers.py", "return [1]", ()),
        ("src/pk/shapes.py", "N = 4", ()),
        ("helpers.py", "N = 4", ()),
    ],
)
def test_a_helper_among_the_tests_is_told_and_what_is_measured_is_not(
    path: str, old: str, names: tuple[str, ...]
) -> None:
    assert old in DATA
    changed = {path: (DATA, DATA.replace(old, old.replace("4", "2").replace("1", "7")))}
    assert fixture_sources({"tests/bench/test_k.py": (HELPED, {"test_dot"})}, changed).get(path, ()) == names


def test_a_helper_that_is_new_or_gone_is_told() -> None:
    for sides in ((None, DATA), (DATA, None)):
        sources = fixture_sources({"tests/bench/test_k.py": (HELPED, {"test_dot"})}, {"tests/helpers.py": sides})
        assert sources == {"tests/helpers.py": ("sizes",)}


PROJECT_TEST = """
import pytest
from marks import fast


@fast
@pytest.mark.usefixtures("quiet")
def test_dot(perfgate, matrix):
    perfgate(sum, matrix)
"""
PROJECT_CONFTEST = """
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
    tests = {"tests/bench/test_k.py": (PROJECT_TEST, {"test_dot"})}
    for path in ("tests/__init__.py", "tests/bench/__init__.py"):
        assert fixture_sources(tests, {path: (None, PATCH)}) == {path: (LOOSE,)}
        assert fixture_sources(tests, {path: (PATCH, PATCH.replace("return s", "return [s]"))}) == {path: (LOOSE,)}
        assert fixture_sources(tests, {path: (None, "")}) == {}
    assert fixture_sources(tests, {"tests/unit/__init__.py": (None, PATCH), "__init__.py": (None, PATCH)}) == {}
    beside_code = {"pk/bench/test_k.py": (PROJECT_TEST, {"test_dot"})}
    packages = {"pk/__init__.py": (None, PATCH), "pk/bench/__init__.py": (None, PATCH)}
    assert fixture_sources(beside_code, packages) == {"pk/bench/__init__.py": (LOOSE,)}


def test_the_lines_of_a_helper_that_is_imported_at_all_are_told() -> None:
    test = "import patches\nimport pk\ndef test_dot(perfgate): pass\n"
    paths = ["tests/kit/patches.py", "tests/patches.py", "src/patches.py", "tests/other.py"]
    changed = dict.fromkeys(paths, (None, PATCH))
    sources = {path: (LOOSE,) for path in paths[:2]}
    assert fixture_sources({"tests/test_k.py": (test, {"test_dot"})}, changed) == sources
    assert fixture_sources({"tests/test_k.py": ("", {"test_dot"})}, changed, {"conftest.py": test}) == sources
    assert fixture_sources({"tests/test_k.py": ("", {"test_dot"})}, changed, {"conftest.py": "import pk"}) == {}


@pytest.mark.parametrize(
    ("then", "now"),
    [
        (None, "pytest_plugins = ['myplug']"),
        ("pytest_plugins = ['plug']", "pytest_plugins = ['plug', 'myplug']"),
        ("pytest_plugins = ['plug']", None),
    ],
)
def test_the_plugins_that_a_conftest_loads_are_told(then: str | None, now: str | None) -> None:
    tests = {"tests/test_k.py": (PROJECT_TEST, {"test_dot"})}
    assert fixture_sources(tests, {"conftest.py": (then, now)}) == {"conftest.py": ("pytest_plugins",)}


def test_a_plugin_of_the_project_is_read_as_a_conftest_is() -> None:
    tests = {"tests/test_k.py": (PROJECT_TEST, {"test_dot"})}
    standing = {"conftest.py": "import os\npytest_plugins = ['pk.myplug'] if len(os.environ) > 1 else []"}
    changed = {"src/pk/myplug.py": (None, PATCH + PROJECT_CONFTEST), "src/myplug.py": (None, PATCH)}
    assert fixture_sources(tests, changed, standing) == {
        "src/pk/myplug.py": ("always", LOOSE, "fast", "matrix", "quiet")
    }


def test_of_a_module_that_a_conftest_imports_fixtures_and_hooks_are_told_and_no_kernel() -> None:
    tests = {"tests/test_k.py": (PROJECT_TEST, {"test_dot"})}
    changed = {
        "src/kfix.py": (PROJECT_CONFTEST, PROJECT_CONFTEST.replace("[1] * SCALE", "[1]")),
        "src/kern.py": (None, PATCH),
    }
    for imported in ("from kfix import *", "from kfix import matrix", "from kfix import matrix as m, quiet"):
        assert fixture_sources(tests, changed, {"conftest.py": f"{imported}\nfrom kern import fast"}) == {
            "src/kfix.py": ("matrix",)
        }
    assert fixture_sources(tests, changed, {"conftest.py": "from kfix import quiet"}) == {}
    hook = {"src/kfix.py": ("", "def pytest_runtest_call(item): ...")}
    for name, sources in (("*", True), ("pytest_runtest_call", True), ("matrix", False)):
        assert fixture_sources(tests, hook, {"conftest.py": f"from kfix import {name}"}) == (
            {"src/kfix.py": ("pytest_runtest_call",)} if sources else {}
        )
    helper = {"tests/kit.py": ("SIZE = 1\nMORE = 1\n", "SIZE = 2\nMORE = 2\n")}
    assert fixture_sources(tests, helper, {"conftest.py": "from tests.kit import SIZE\nprint(SIZE)"}) == {
        "tests/kit.py": ("SIZE",)
    }


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("import fastkern", (LOOSE,)),
        ("from fastkern import fast", (LOOSE,)),
        ("import fastkern\ndef matrix(): return fastkern.m()", ("matrix",)),
        ("from __future__ import annotations", ()),
        ("if True:\n    x = 1\n    kern.smooth = x", (LOOSE,)),
        ("try:\n    import cupy\nexcept ImportError:\n    cupy = None", ()),
        ("try:\n    import cupy\nexcept ImportError:\n    raise", ()),
        ("if True:\n    def smooth(): kern.smooth()", ()),
        ("if True:\n    'words'", ()),
        ("class Patch:\n    kern.smooth = 1", (LOOSE,)),
        ("class Plain:\n    size = 1", ()),
        ("x = setattr(kern, 'smooth', 1)", ("x",)),
        ("size = 1", ()),
    ],
)
def test_what_a_new_conftest_does_when_it_is_imported(line: str, expected: tuple[str, ...]) -> None:
    sources = fixture_sources({"tests/test_k.py": (PROJECT_TEST, {"test_dot"})}, {"conftest.py": (None, line)})
    assert sources.get("conftest.py", ()) == expected


@pytest.mark.parametrize("unused", [CONFTEST, CONFTEST.replace("import pk\n", "")], ids=["imported", "missing"])
def test_an_import_that_a_fixture_uses_does_nothing_by_itself(unused: str) -> None:
    used = CONFTEST.replace("def other():\n", "def other():\n    pk.freeze()\n")
    for sides in ((unused, used), (used, unused)):
        assert fixture_sources({"tests/test_k.py": (PROJECT_TEST, {"test_dot"})}, {"conftest.py": sides}) == {}


def test_a_function_that_is_defined_once_more_is_still_one() -> None:
    fixture = f"{CONFTEST}\n\nif pk:\n    @pytest.fixture\n    def matrix():\n        return [2]\n"
    assert sources_of_edit("conftest.py", fixture, "[2]", "[3]") == ("matrix",)
    assert sources_of_edit("src/pk/sizes.py", f"{MODULE}\n\ndot = pk.jit(dot)\n", "return n", "return -n") == (), (
        "a kernel"
    )


def test_a_name_of_a_helper_that_a_test_file_replaces_is_not_used() -> None:
    test = "import helpers\nhelpers.sizes = [1]\ndef test_dot(perfgate): pass\n"
    changed = {"tests/helpers.py": (DATA, DATA.replace("N = 4", "N = 2"))}
    assert fixture_sources({"tests/test_k.py": (test, {"test_dot"})}, changed) == {}


@pytest.mark.parametrize(
    "test",
    [
        "from helpers import *\ndef test_dot(perfgate): perfgate(f, made())",
        "from .helpers import *\ndef test_dot(perfgate): perfgate(f, made())",
        "def test_dot(perfgate):\n    from helpers import made\n    perfgate(f, made())",
        "@pytest.fixture\ndef data():\n    import helpers\n    return helpers.made()\ndef test_dot(perfgate, data): ...",
        "try:\n    from helpers import made\nexcept ImportError:\n    made = None\ndef test_dot(perfgate): made()",
    ],
)
def test_a_helper_is_told_wherever_it_is_imported(test: str) -> None:
    helper = "def made(): return 4096\ndef other(): return 1\n"
    of = {"tests/test_k.py": (f"import pytest\n{test}\n", {"test_dot"})}
    edits = {"tests/helpers.py": (helper, helper.replace("4096", "16"))}
    assert fixture_sources(of, edits) == {"tests/helpers.py": ("made",)}
    assert fixture_sources(of, {"tests/helpers.py": (helper, helper.replace("1", "2"))}) == {}


@pytest.mark.parametrize(
    "near", ["@pytest.fixture\ndef data(inner)", "@pytest.fixture(autouse=True)\ndef always(inner)"]
)
def test_a_fixture_that_a_nearer_conftest_requests_is_told(near: str) -> None:
    far = "import pytest\n@pytest.fixture\ndef inner(): return 4096\n@pytest.fixture\ndef other(): return 1\n"
    of = {"tests/test_k.py": ("def test_dot(perfgate, data): perfgate(f, data)", {"test_dot"})}
    conftests = {"tests/conftest.py": f"import pytest\n{near}: return inner\n"}
    assert fixture_sources(of, {"conftest.py": (far, far.replace("4096", "16"))}, conftests) == {
        "conftest.py": ("inner",)
    }
    assert fixture_sources(of, {"conftest.py": (far, far.replace("1", "2"))}, conftests) == {}


def test_a_fixture_is_told_by_the_name_that_it_is_given() -> None:
    conftest = "import pytest\n@pytest.fixture(name='data')\ndef made(): return 4096\n"
    of = {"test_k.py": ("def test_dot(perfgate, request): request.getfixturevalue('data')", {"test_dot"})}
    assert fixture_sources(of, {"conftest.py": (conftest, conftest.replace("4096", "16"))}) == {
        "conftest.py": ("data",)
    }


def test_a_package_with_twice_the_imports_in_a_branch_takes_twice_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    walk, nodes = ast.walk, 0

    def counted(node: ast.AST) -> Iterator[ast.AST]:
        nonlocal nodes
        for one in walk(node):
            nodes += 1
            yield one

    def readings(names: int) -> int:
        nonlocal nodes
        nodes = 0
        package = "try:\n" + "".join(f"    from .a import n{at}\n" for at in range(names)) + "finally:\n    x = 1\n"
        assert passed_on(package, {"*"}, set()) == {}
        return nodes

    monkeypatch.setattr(ast, "walk", counted)
    assert readings(80) < 3 * readings(40)


ONE = "def test_a(): pass\n"


@pytest.mark.parametrize(
    ("path", "text", "tests"),
    [
        ("b/test_k.py", ONE, {"test_a"}),
        ("b/k_test.py", ONE, {"test_a"}),
        ("b/bench_k.py", ONE, set()),
        ("test_k.py", f"__test__ = False\n{ONE}", set()),
        ("test_k.py", f"{ONE}def broken(", set()),
        ("test_k.py", "def helper(): pass\nasync def test_b(): pass\n", {"test_b"}),
        ("test_k.py", "class TestOne:\n    def test_m(self): pass\n    def part(self): pass\n", {"TestOne::test_m"}),
        ("test_k.py", "class One:\n    def test_m(self): pass\n", set()),
        ("test_k.py", "class TestOne:\n    def __init__(self): pass\n    def test_m(self): pass\n", set()),
        ("test_k.py", f"if True:\n    {ONE}", set()),
    ],
)
def test_what_pytest_collects_by_its_defaults(path: str, text: str, tests: set[str]) -> None:
    assert collectable(text, path) == tests
