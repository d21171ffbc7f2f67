"""What is committed below the folder that a machine keeps for itself fails the run in CI."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pytest_perfgate.adapters.stores.repository import GitRepository
from pytest_perfgate.app.changed_project import binary_files, tracked_files
from pytest_perfgate.model.plan import Effect, Policy
from pytest_perfgate.model.project import Base


def court(repository: Any, *, ci: bool = True, base: str = "") -> Any:
    return SimpleNamespace(
        tools=SimpleNamespace(repository=repository), context=SimpleNamespace(policy=Policy(ci=ci)),
        revision="", accepted=SimpleNamespace(base=Base(commit=base)),
    )  # fmt: skip


def test_a_history_that_is_committed_is_nobody_s(tmp_path: Path) -> None:
    own = tmp_path / ".perfgate"
    own.mkdir()
    (own / ".gitignore").write_text("*\n")
    (own / "history.db").write_text("24 runs")
    (tmp_path / "a.py").touch()
    subprocess.run(["git", "init", "-q", tmp_path], check=True)

    def commit(*paths: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        for words in (("add", "-f", *paths), (*who, "commit", "-qm", "one")):
            subprocess.run(["git", *words], cwd=tmp_path, check=True)

    repository = GitRepository(tmp_path, {})
    commit("a.py", ".perfgate/.gitignore")
    assert list(tracked_files(court(repository))) == []
    commit(".perfgate/history.db")
    (note,) = tracked_files(court(repository))
    assert (note.effect, note.names) == (Effect.FAIL, (".perfgate/history.db",))
    assert note.text.startswith("1 file under .perfgate/ is committed")
    assert list(tracked_files(court(repository, ci=False))) == []
    assert list(tracked_files(court(None))) == []


def test_a_binary_that_python_may_load_is_named(tmp_path: Path) -> None:
    """One with an unchecked hash is loaded in place of the source beside it, whatever that says."""

    def commit(*paths: str) -> str:
        for path in paths:
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_bytes(b"1")
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        for words in (("add", "-f", "-A"), (*who, "commit", "-qm", "one")):
            subprocess.run(["git", *words], cwd=tmp_path, check=True)
        return GitRepository(tmp_path, {}).head()

    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    repository = GitRepository(tmp_path, {})
    base = commit("src/kern.py", "src/old.so")
    (tmp_path / "src" / "old.so").unlink()
    commit("src/kern.py", "src/__pycache__/kern.cpython-311.pyc")
    (note,) = binary_files(court(repository, base=base))
    assert (note.kind, note.effect) == ("binary", Effect.WARN)
    assert note.names == ("src/__pycache__/kern.cpython-311.pyc",)
    assert list(binary_files(court(repository, base=base, ci=False))) == []
    assert list(binary_files(court(repository, base=repository.head()))) == []
