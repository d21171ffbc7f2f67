"""Lines that came with the change judge where a project's root is new: those of before lie elsewhere."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.adapters.stores.baselines import Baselines, Kept
from pytest_perfgate.adapters.stores.repository import GitRepository
from pytest_perfgate.app.changed_project import uprooted_lines
from pytest_perfgate.model.plan import CaseKey, Choice, Effect, Policy
from pytest_perfgate.model.project import Base
from pytest_perfgate.model.verdict import CaseReport

LINE = "perfgate: 1\nbaselines:\n  'test_x': {time: TIME, commit: c0ffee, when: 2026-05-02, why: \"WHY\"}\n"
HOME = "baselines/host-x/t/test_k.py.yaml"


def git(folder: Path, *words: str) -> str:
    names = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    kept = {"PATH": os.environ["PATH"], "HOME": str(folder), **names}
    return subprocess.run(
        ["git", *words], cwd=folder, env=kept, check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(folder: Path, files: dict[str, tuple[str, str] | None]) -> str:
    for name, said in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(LINE.replace("TIME", said[0]).replace("WHY", said[1])) if said else path.unlink()
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "x")
    return git(folder, "rev-parse", "HEAD")


def notes(top: Path, root: str, base: str, policy: Policy = Policy(ci=True, baseless=Choice.FAIL)) -> list[Any]:
    repository = GitRepository(top / root, {"PATH": os.environ["PATH"]})
    kept = Kept(lambda _revision: "baselines", repository.files)
    store = Baselines(top / root, ["*"], show=repository.show, kept=kept)
    (line,) = store.read_all("host-x").values()
    report = CaseReport(key=CaseKey(nodeid=str(line.key)), verdicts=(), baseline=line)
    court: Any = SimpleNamespace(
        context=SimpleNamespace(policy=policy),
        accepted=SimpleNamespace(base=Base(commit=base)),
        tools=SimpleNamespace(repository=repository, baselines=store),
    )
    return list(uprooted_lines(court, [report]))


@pytest.mark.parametrize(
    ("before", "after", "root", "told"),
    [
        ({f"a/{HOME}": ("1us", "first")}, {f"a/{HOME}": None, f"b/{HOME}": ("2us", "first")}, "b", True),
        ({f"a/{HOME}": ("1us", "first")}, {f"a/{HOME}": None, f"b/{HOME}": ("1us", "first")}, "b", False),
        ({f"a/{HOME}": ("1us", "first")}, {f"a/{HOME}": None, f"b/{HOME}": ("0.5us", "first")}, "b", False),
        ({f"a/{HOME}": ("1us", "first")}, {f"a/{HOME}": None, f"b/{HOME}": ("2us", "exact")}, "b", False),
        ({f"a/{HOME}": ("1us", "first")}, {f"b/{HOME}": ("2us", "first")}, "b", False),
        ({f"a/{HOME}": ("1us", "first")}, {f"a/{HOME}": None, HOME: ("2us", "first")}, "", True),
        ({HOME: ("1us", "first")}, {"t/baselines/host-x/test_k.py.yaml": ("2us", "first")}, "t", True),
        ({HOME: ("1us", "first")}, {HOME: ("2us", "first")}, "", False),
    ],
    ids=[
        "renamed",
        "as it was",
        "faster",
        "with a reason",
        "a package beside",
        "up to the top",
        "a root within",
        "in its place",
    ],
)
def test_lines_that_a_new_root_brings_are_held_against_those_of_before(
    tmp_path: Path, before: dict[str, Any], after: dict[str, Any], root: str, *, told: bool
) -> None:
    git(tmp_path, "init", "-q")
    base = commit(tmp_path, before)
    commit(tmp_path, after)
    found = notes(tmp_path, root, base)
    assert [(note.kind, note.effect) for note in found] == ([("uprooted", Effect.FAIL)] if told else [])
    assert all(name.endswith("test_k.py::test_x: 1 µs -> 2 µs") for note in found for name in note.names)
    assert notes(tmp_path, root, base, Policy()) == notes(tmp_path, root, "") == []
