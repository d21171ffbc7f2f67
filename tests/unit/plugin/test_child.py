"""Tests of plugin/child."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterator
from compileall import compile_file
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path

import pytest

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Case, Plan
from pytest_perfgate.model.protocol import Answer, ChildJob, Command, Entered, Finish, Finished, Go, Ready, Skip
from pytest_perfgate.plugin.child import OwnFileFinder, _last_line
from pytest_perfgate.plugin.options import CHILD


def shown(*errors: tuple[str, str]) -> str:
    """As pytest shows a chain of errors: each in a block of its own."""
    blocks = ["\n".join(f"E   {line}" for line in f"{kind}: {text}".splitlines()) for kind, text in errors]
    return "\n\nThe above exception was the direct cause of the following exception:\n\n".join(blocks)


def test_our_error_is_said_with_its_code_and_remedy_whatever_it_came_of() -> None:
    ours = PerfgateError("clocks-denied", "nvmlDeviceSetGpuLockedClocks: Insufficient Permissions", fix="ask root")
    cause = ("pynvml.NVMLError_NoPermission", "Insufficient Permissions")
    kind = "pytest_perfgate.model.errors.PerfgateError"
    message = "nvmlDeviceSetGpuLockedClocks: Insufficient Permissions  [clocks-denied]; next: ask root"
    assert _last_line(shown(cause, (kind, str(ours)))) == message
    assert _last_line(shown((kind, str(ours)))) == message
    missing = "pytest_perfgate.plugin.calls.MetricMissing", str(PerfgateError("not-measured", "mfu", fix="measure it"))
    assert _last_line(shown(missing)) == "mfu  [not-measured]; next: measure it"


def test_other_errors_are_said_by_their_first_line() -> None:
    assert (
        _last_line("> x\nE   assert 1 == 2\nE    +  where 1 = f()\n\ntest_it.py:3: AssertionError") == "assert 1 == 2"
    )
    assert _last_line(shown(("KeyError", "'a'"), ("ValueError", "no a"))) == "ValueError: no a"
    assert _last_line("") == "no reason given"
    assert _last_line("something\nelse") == "else"


HELPER = "size = 6\n"
TEXT = "from own_suite.helper import size\n\ndef test_size():\n    assert size + 1 == 8\n"


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of tests whose modules raise, and a helper."""
    folder = tmp_path / "own_suite"
    folder.mkdir()
    for name in ("__init__.py", "conftest.py", "test_own.py", "helper.py"):
        (folder / name).write_text("import nowhere\n" if "t" in name[:5] else HELPER)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/arm/numba")
    yield folder
    for name in [one for one in sys.modules if one.startswith("own_suite")]:
        del sys.modules[name]


@pytest.mark.parametrize("file", ["conftest", "test_own"])
def test_another_text_stands_in_for_the_file(suite: Path, file: str, request: pytest.FixtureRequest) -> None:
    place, name = suite / f"{file}.py", f"own_suite.{file}"
    place.write_text("size = 1\n")
    compile_file(str(place), quiet=1)
    sys.meta_path.insert(0, own := OwnFileFinder({str(place.resolve()): TEXT}, request.config))
    module = import_module(name)
    assert (module.size, module.__file__, module.__package__) == (6, str(place), "own_suite")
    assert inspect.getsource(module.test_size) == "def test_size():\n    assert size + 1 == 8\n"
    with pytest.raises(AssertionError, match=r"\(6 \+ 1\) == 8"):
        module.test_size()
    assert fnmatch(os.environ["NUMBA_CACHE_DIR"], "/arm/numba/own-????????"), "Numba compares the times of files"
    assert own.find_spec("own_suite.helper", [str(suite)]) is None
    assert own.find_spec(file, [str(suite.parent)]) is None
    assert own.find_spec(f"nowhere.{file}", [str(suite)]) is not None, "pytest names a module by its place"


def test_another_text_stands_in_for_a_package(suite: Path, request: pytest.FixtureRequest) -> None:
    place = suite / "__init__.py"
    place.write_text("size = 1\n")
    sys.meta_path.insert(0, OwnFileFinder({str(place.resolve()): "size = 6\n"}, request.config))
    assert import_module("own_suite").size == 6


FIRST = """
import pytest

@pytest.fixture(scope="module")
def shared():
    yield
    raise OSError("cannot be closed")

def test_a(perfgate, shared): perfgate(int)

def test_b(perfgate, shared): perfgate(int)
"""


class LeavingOut:
    """A parent that has every test run but one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._last: Ready | Entered = Ready(nodeid="")
        self.outcomes: dict[str, str] = {}

    def send(self, answer: Answer) -> None:
        self._last = answer if isinstance(answer, (Ready, Entered)) else self._last
        if isinstance(answer, Finished):
            self.outcomes[answer.nodeid] = f"{answer.outcome} {answer.text}"

    def receive(self) -> Command:
        if isinstance(self._last, Entered):
            return Finish()
        return Skip() if self._last.nodeid.endswith(self._name) else Go()


@pytest.mark.parametrize("left_out", ["test_b", "test_c"])
def test_the_test_behind_one_that_the_other_build_lacks_runs(tmp_path: Path, left_out: str) -> None:
    (tmp_path / "test_first.py").write_text(FIRST)
    (tmp_path / "test_second.py").write_text("def test_c(perfgate): perfgate(int)\n")
    nodeids = ("test_first.py::test_a", "test_first.py::test_b", "test_second.py::test_c")
    job = ChildJob(cases=tuple(Case(nodeid=one, limits=(), plan=Plan()) for one in nodeids), root=str(tmp_path))
    parent = LeavingOut(left_out)

    class Starting:
        @pytest.hookimpl(trylast=True)
        def pytest_load_initial_conftests(self, early_config: pytest.Config) -> None:
            early_config.stash[CHILD] = (parent, job)

    words = ["-q", "--import-mode=importlib", "-p", "no:cacheprovider", "-p", "no:randomly", f"--rootdir={tmp_path}"]
    pytest.main([*words, str(tmp_path)], plugins=[Starting()])
    failed = {"test_first.py::test_b": "failed teardown: OSError: cannot be closed"} if left_out == "test_c" else {}
    expected = {one: "passed " for one in nodeids if not one.endswith(left_out)}
    assert parent.outcomes == expected | failed
