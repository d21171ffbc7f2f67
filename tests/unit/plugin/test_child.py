"""Tests of plugin/child."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.plugin.child import OwnModule, _last_line


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


TEXT = "def size():\n    return 7\n\ndef test_size():\n    assert size() == 8\n"


def test_another_text_stands_in_for_the_file(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    (tmp_path / "test_own.py").write_text("import nowhere\n")
    config = SimpleNamespace(rootpath=tmp_path, getoption=request.config.getoption, getini=request.config.getini)
    collector = SimpleNamespace(path=tmp_path / "test_own.py", text=TEXT, config=config)
    module = OwnModule._getobj(collector)
    try:
        assert (module.__name__, module.size()) == ("test_own", 7)
        assert inspect.getsource(module.test_size) == "def test_size():\n    assert size() == 8\n"
        with pytest.raises(AssertionError, match="assert 7 == 8"):
            module.test_size()
    finally:
        del sys.modules["test_own"]
