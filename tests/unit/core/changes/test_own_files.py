"""Tests of core/changes/own_files."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.changes.own_files import OwnFiles, edited_in_calls, may_be_read
from pytest_perfgate.model.plan import Case, Plan

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
FIXTURE = "import pytest\n\n@pytest.fixture\ndef n(): return 1\n"
EDITED = FIXTURE + "\n@pytest.fixture\ndef other(): return new.size\n"
ENDED = "the base build ended with exit code 4; its last output:\n"
LOADING = (
    f"{ENDED}    ImportError while loading conftest '/p/b/conftest.py'.\n    E   ImportError: no new\n    a last line"
)


def files_of_base(**conftests: tuple[str | None, str]) -> tuple[OwnFiles, Case]:
    texts = {"b/t.py": (THEN, NOW), **{f"{name}/conftest.py": both for name, both in conftests.items()}}
    case = Case(nodeid="b/t.py::test_one[1]", path="b/t.py", limits=(), plan=Plan())
    return OwnFiles(lambda path: texts.get(path, (None, ""))), case


def test_a_test_takes_one_more_of_its_own_files_at_each_failure() -> None:
    own, case = files_of_base(b=(FIXTURE, EDITED))
    assert (own.version(case.nodeid), own.files([case]), own.reason(case.nodeid)) == ((False, False, ()), (), "")
    assert own.falls_back(case, "call: TypeError")
    assert own.files([case]) == (("b/t.py", THEN),)
    assert own.falls_back(case, "setup: AttributeError")
    assert own.files([case]) == (("b/t.py", THEN), ("b/conftest.py", FIXTURE))
    why = "fails at this test as it is here (call: TypeError), and ran its own test file and conftest.py"
    assert own.reason(case.nodeid) == why
    assert not own.falls_back(case, "call: TypeError")
    assert own.edited(case)


def test_tests_whose_conftests_are_their_own_start_apart_from_others() -> None:
    own, case = files_of_base(b=(FIXTURE, EDITED))
    elsewhere = replace(case, nodeid="c/t.py::test_one[1]", path="c/t.py")
    for other in ("the base build died of SIGSEGV", LOADING.replace("base", "head")):
        assert not own.take_conftests([elsewhere, case], other)
    assert own.take_conftests([elsewhere, case], LOADING)
    assert own.same_version([case, elsewhere]) == [elsewhere]
    assert own.same_version([case]) == [case]
    assert own.reason(case.nodeid) == (
        "cannot start with a conftest.py as it is here (ImportError: no new), and ran its own conftest.py"
    )
    assert not own.take_conftests([elsewhere, case], LOADING), "the own ones do not load either"


def test_tests_take_their_own_conftests_where_one_of_them_is_named_and_all_do_where_none_is() -> None:
    texts = {f"{name}conftest.py": (FIXTURE, EDITED) for name in ("", "b/", "c/")}
    cases = [Case(nodeid=f"{name}/t.py::t", path=f"{name}/t.py", limits=(), plan=Plan()) for name in ("b", "c", "d")]
    for error, expected in (
        (LOADING, [True, False, False]),
        (LOADING.replace("/b", ""), [True, True, True]),
        (f'{ENDED}    ERROR: Error importing plugin "new": no new', [True, True, True]),
    ):
        own = OwnFiles(lambda path: texts.get(path, (None, "")))
        assert own.take_conftests(cases, error)
        assert [own.version(case.nodeid)[1] for case in cases] == expected


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (
            "    INTERNALERROR>     import new\n    INTERNALERROR> ImportError: no new\n    no tests ran in 0.1s",
            "no new",
        ),
        ('    ERROR: Error importing plugin "new": no new', "no new"),
        ("    E   ImportError: no new\n    E   two more lines", "ImportError: no new"),
        ("    something else: no new", "no new"),
    ],
)
def test_the_error_is_shown_that_ended_pytest(output: str, message: str) -> None:
    own, case = files_of_base(b=(None, EDITED))
    assert own.take_conftests([case], ENDED + output)
    assert own.reason(case.nodeid).endswith(f"{message}), and ran without conftest.py")


def test_a_test_that_cannot_be_collected_takes_its_own_file_and_then_its_own_conftests() -> None:
    own, case = files_of_base(b=(None, EDITED))
    for version in ((True, False), (True, True), (True, True)):
        own.take([case], ["b/t.py: ImportError: no new"])
        assert own.version(case.nodeid)[:2] == version
    why = "cannot collect this test file as it is here (ImportError: no new)"
    assert own.reason(case.nodeid) == f"{why}, and ran its own test file without conftest.py"


def test_a_resumed_run_takes_the_files_that_the_one_before_it_took() -> None:
    for error, conftest in ((LOADING, FIXTURE), (LOADING, None), ("", None)):
        (before, case), (own, _) = files_of_base(b=(conftest, EDITED)), files_of_base(b=(conftest, EDITED))
        before.take_conftests([case], error)
        before.falls_back(case, "call: TypeError, and ran away")
        own.take_again([(case, before.reason(case.nodeid)), (case, "")])
        assert own.version(case.nodeid) == before.version(case.nodeid) == (True, bool(error), ())
        assert own.reason(case.nodeid) == before.reason(case.nodeid)


@pytest.mark.parametrize(
    ("then", "now", "differs"),
    [
        (FIXTURE, EDITED, False),
        (FIXTURE, EDITED.replace("return 1", "return 2"), True),
        (None, EDITED.replace(FIXTURE, "import pytest\n"), False),
        (None, EDITED.replace("fixture", "fixture(autouse=True)"), True),
        (FIXTURE, "import torch\ntorch.set_num_threads(1)\n" + FIXTURE, True),
    ],
)
def test_a_test_differs_by_the_fixtures_that_it_uses(then: str | None, now: str, differs: bool) -> None:
    own, case = files_of_base(b=(then, now))
    assert own.take_conftests([case], LOADING)
    assert own.differs(case) is differs
    assert own.files([case]) == (("b/conftest.py", then or ""),)


def test_a_test_differs_by_its_function_its_parameters_and_what_they_use() -> None:
    helper = "def made(n): return [{n}]\n"
    text = helper + THEN.replace("sum, [n]", "sum, made(n)")
    for now, differs in [
        (text.replace("gone", "kept"), False),
        (text.replace("@pytest.mark.perfgate", "@pytest.mark.perfgate('time <= 1ms')"), False),
        (text.replace("sum, made", "max, made"), True),
        (text.replace("[1])\ndef", "[1, 2])\ndef"), True),
        (text.replace("[{n}]", "[{n}] * 2"), True),
        ("def broken(", True),
    ]:
        case = Case(nodeid="t.py::test_one[1]", path="t.py", limits=(), plan=Plan())
        own = OwnFiles(lambda path, now=now: (text, now) if path == "t.py" else (None, ""))
        assert not own.differs(case), "both builds run the head's file"
        assert own.falls_back(case, "call: TypeError")
        assert own.differs(case) is differs, now


def test_a_conftest_that_the_change_leaves_as_it_is_has_no_other_version() -> None:
    for both in ((FIXTURE, FIXTURE), (None, ""), ("", "")):
        own, case = files_of_base(b=both)
        assert not own.take_conftests([case], LOADING)


TIMED = """import pytest
import numpy as np

N = 4096

def kernel(x):
    return part(x) + 1

def part(x):
    return x * 2

def data(n):
    return np.ones(n)

@pytest.fixture
def size():
    return N

@pytest.fixture
def rows():
    return drawn(N)

def drawn(n):
    return [n]

def test_of_a_fixture(perfgate, rows):
    perfgate(lambda: kernel(rows))

def test_direct(perfgate):
    x = data(N)
    perfgate(kernel, x)

def test_called_by_a_lambda(perfgate, size):
    x = data(size)
    perfgate(lambda: kernel(x))

def test_in_a_region(perfgate):
    x = data(N)
    with perfgate.region("forward"):
        kernel(x)

def test_by_a_local_name(perfgate):
    run = kernel
    perfgate(run, data(N))

@pytest.mark.parametrize("call", [kernel, part])
def test_by_its_parameter(perfgate, call):
    perfgate(call, data(N))

@pytest.mark.parametrize("call", [pytest.param(kernel, id="k")])
def test_by_an_id(perfgate, call):
    perfgate(call, data(N))

def test_of_another(perfgate):
    perfgate(sorted, data(N))
"""
ALL = {
    "test_of_a_fixture",
    "test_direct",
    "test_called_by_a_lambda",
    "test_in_a_region",
    "test_by_an_id",
    "test_by_a_local_name",
    "test_by_its_parameter",
}


@pytest.mark.parametrize(
    ("old", "new", "edited"),
    [
        ("x * 2", "x * 3", dict.fromkeys(ALL, ("part",))),
        ("part(x) + 1", "np.sort(part(x)) + 1", dict.fromkeys(ALL, ("kernel",))),
        ("return part(x) + 1", "return other(x)\n\ndef other(x): return x", {**dict.fromkeys(ALL, ("kernel", "other", "part")), "test_by_its_parameter": ("kernel", "other")}),
        ("N = 4096\n\ndef kernel(x):", "N = 4096\nimport math\n\ndef kernel(x):\n    math.sqrt(2)", dict.fromkeys(ALL, ("kernel",))),
        ("def part", "@jit\ndef part", dict.fromkeys(ALL, ("part",))),
        ("np.ones(n)", "np.ones(2 * n)", {}),  # prepares data
        ("[n]", "[n, n]", {}),  # prepares the data of a fixture
        ("N = 4096", "N = 8192", {}),
        ("    return N", "    return 2 * N", {}),  # a fixture
        ("perfgate(kernel, x)", "perfgate(kernel, x + 1)", {}),
        ("perfgate(call,", "perfgate(sorted,", {}),
        (TIMED, "def broken(", {}),
    ],
)  # fmt: skip
def test_functions_of_a_test_file_are_edited_in_what_a_test_times(
    old: str, new: str, edited: dict[str, object]
) -> None:
    assert edited_in_calls(TIMED, TIMED.replace(old, new)) == edited


def test_a_test_whose_data_and_kernel_are_edited_is_not_edited_in_its_call_alone() -> None:
    both = TIMED.replace("x * 2", "x * 3").replace("np.ones(n)", "np.ones(2 * n)").replace("[n]", "[n, n]")
    assert edited_in_calls(TIMED, both) == {}


PREPARED = """
import pytest
import numpy as np

N = 8

def kernel(x):
    return x * 2

def data(n):
    return list(range(n))

@pytest.fixture
def run():
    return kernel

def test_of_a_fixture(perfgate, run):
    perfgate(run, 1)

@pytest.mark.parametrize("rows", [data(3)])
def test_of_parameters(perfgate, rows):
    perfgate(kernel, np.array(rows))

def test_in_blocks(perfgate):
    with open("x") as file:
        rows = data(3)
    with np.errstate(), perfgate.region():
        kernel(rows)
"""
KERNEL = "x * 2", "x * 3"


@pytest.mark.parametrize(
    ("edits", "edited"),
    [
        ([KERNEL], dict.fromkeys(("test_of_a_fixture", "test_of_parameters", "test_in_blocks"), ("kernel",))),
        ([("range(n)", "range(n + 1)")], {}),
        ([KERNEL, ("import numpy as np", "import cupy as np")], {"test_of_a_fixture": ("kernel",)}),
        ([KERNEL, ("return kernel", "call = kernel\n    return call")], {"test_of_parameters": ("kernel",), "test_in_blocks": ("kernel",)}),
        ([KERNEL, ("import numpy as np\n", "")], dict.fromkeys(("test_of_a_fixture", "test_of_parameters", "test_in_blocks"), ("kernel",))),
        ([("x * 2", "x * N"), ("N = 8", "N = 9")], {}),
    ],
    ids=["a kernel", "data", "a kernel and another package", "a kernel and a fixture", "a kernel and one import less", "a kernel and a constant"],
)  # fmt: skip
def test_what_prepares_a_call_is_not_what_it_times(edits: list[tuple[str, str]], edited: dict[str, object]) -> None:
    now = PREPARED
    for old, new in edits:
        assert old in now
        now = now.replace(old, new)
    assert edited_in_calls(PREPARED, now) == edited


def test_a_test_takes_the_edited_modules_that_its_file_imports_directly_or_through_others() -> None:
    texts = {
        "b/t.py": ("import conftest\nfrom kernels import run\n",) * 2,
        "b/kernels.py": ("from . import parts\n", "from . import parts\n"),
        "b/parts.py": ("X = 1\n", "X = 2\n"),
        "b/other.py": ("X = 1\n", "X = 2\n"),  # loaded by another test of the process
        "b/conftest.py": ("import parts\n", "import parts, os\n"),
    }
    case = Case(nodeid="b/t.py::test_one", path="b/t.py", limits=(), plan=Plan())
    own = OwnFiles(lambda path: texts[path])
    assert own.take_edited([case], {}) == frozenset()
    assert own.take_edited([case], {case.nodeid: tuple(texts)}) == {case.nodeid}
    assert own.take_edited([case], {case.nodeid: tuple(texts)}) == frozenset(), "it has taken them"
    assert own.files([case]) == (("b/parts.py", "X = 1\n"),)
    assert own.reason(case.nodeid) == "has another b/parts.py, and ran its own b/parts.py"
    texts |= {"b/parts.py": ("X = 1  # one\n", "X = 1\n"), "b/kernels.py": ("from . import parts\n", "import parts\n")}
    again = OwnFiles(lambda path: (None, texts[path][1]) if path == "b/kernels.py" else texts[path])
    assert again.take_edited([case], {case.nodeid: tuple(texts)}) == frozenset(), "a comment, and a module that is new"


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
