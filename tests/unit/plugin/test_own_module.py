from __future__ import annotations

import inspect
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_perfgate.plugin.child import OwnModule

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
