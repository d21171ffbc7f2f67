"""A repository of one module."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.layouts import commit, git


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / ".gitignore").write_text(".perfgate/\n")
    (folder / "k.py").write_text("SPEED = 1\n")
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "one")
    return folder
