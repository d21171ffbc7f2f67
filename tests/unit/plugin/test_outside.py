"""Tests of two projects in one run: only those below the rootdir are gated."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pytest_perfgate.plugin.state import outside


def item(top: Path, path: Path, nodeid: str) -> Any:
    config = SimpleNamespace(rootpath=top, invocation_params=SimpleNamespace(dir=top.parent))
    return SimpleNamespace(config=config, path=path, nodeid=f"{nodeid}::test_a")


def test_a_test_of_the_project_beside_is_refused_by_its_path(tmp_path: Path) -> None:
    one, other = tmp_path / "a", tmp_path / "b"
    assert outside(item(one, one / "tests/test_a.py", "tests/test_a.py")) is None
    fault = outside(item(one, other / "tests/test_a.py", "tests/test_a.py"))
    assert fault is not None
    assert fault.code.name == "test-outside"
    assert "b/tests/test_a.py lies outside the rootdir, a" in fault.text()
    assert "run each project by itself" in fault.text()


def test_a_test_that_its_node_id_leads_to_by_a_link_is_inside(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "test_a.py").touch()
    top = tmp_path / "link"
    top.symlink_to(tmp_path / "real")
    assert outside(item(top, tmp_path / "real" / "test_a.py", "test_a.py")) is None
