"""Whether baselines were kept before a change that deletes them all: one question to git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from pytest_perfgate.adapters.stores.before import kept_before


def git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Lines on main, and a change of two commits that takes them away."""
    git(tmp_path, "init", "-q", "-b", "main")
    home = tmp_path / "bench" / "accepted" / "host-x"
    home.mkdir(parents=True)
    (home / "t.py.yaml").write_text("perfgate: 1\n")
    (tmp_path / "bench" / "t.py").touch()
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "one")
    git(tmp_path, "checkout", "-qb", "change")
    git(tmp_path, "rm", "-qr", "bench/accepted")
    git(tmp_path, "commit", "-qm", "two")
    return tmp_path / "bench"


def test_the_commit_before_and_the_branch_that_ci_names_are_asked(root: Path) -> None:
    env = dict(os.environ)
    assert kept_before(root, "accepted", env)
    assert not kept_before(root, "baselines", env)
    git(root, "branch", "-m", "main", "release")
    assert kept_before(root, "accepted", env), "the parent has it"
    git(root, "commit", "-q", "--allow-empty", "-m", "three")
    assert not kept_before(root, "accepted", env)
    assert kept_before(root, "accepted", {**env, "GITHUB_BASE_REF": "release"})


def test_without_git_there_was_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not kept_before(tmp_path, "baselines", {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)})

    monkeypatch.setenv("PATH", str(tmp_path))
    assert not kept_before(tmp_path, "baselines", {})
