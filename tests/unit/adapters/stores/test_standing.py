"""Which revision lies before a change: by the target branch, by what CI says, and why there is none."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.adapters.stores.repository import GitRepository
from pytest_perfgate.adapters.stores.standing import Standing, pushed
from pytest_perfgate.cli.symptoms import commits
from pytest_perfgate.cli.symptoms import git as git_symptom
from pytest_perfgate.model.config import Config
from pytest_perfgate.model.repository import Base

HEAD, FORK, BEFORE, PARENT = "head", "fork", "before", "parent"


def answering(known: dict[str, str], *, shallow: bool = False) -> Callable[..., str | None]:
    """A git that knows some names; each is an ancestor of HEAD, or stands where it says."""

    def git(*words: str) -> str | None:
        if words[0] == "merge-base":
            return known[words[2]].strip("-") if words[1] == "HEAD" else words[1]
        if words[-1] == "--is-shallow-repository":
            return "true" if shallow else "false"
        return known.get(words[-1].removesuffix("^{commit}"))

    return git


def stood(known: dict[str, str], target: str = "", *, shallow: bool = False, **environment: str) -> tuple[str, ...]:
    base = Standing(answering(known, shallow=shallow), environment, HEAD).base(target)
    return base.commit, base.name, base.why


def test_the_merge_base_with_the_branch_that_is_named() -> None:
    settings = '[tool.perfgate]\ntarget = "release"\n'
    known = {"origin/release": FORK, "main": "other", "other:./pyproject.toml": settings}
    assert stood(known, "release") == (FORK, "the merge base with origin/release", "")
    assert stood(known) == ("other", "the merge base with main", "")
    assert stood(known, GITHUB_BASE_REF="release")[0] == FORK


@pytest.mark.parametrize("told", [BEFORE, "0" * 40, "", "gone"])
def test_on_the_target_branch_it_is_what_was_there_before_the_push(told: str) -> None:
    known = {"main": HEAD, BEFORE: BEFORE, "HEAD^1": PARENT}
    commit, name, why = stood(known, CI_COMMIT_BEFORE_SHA=told)
    if told == BEFORE:
        assert (commit, name, why) == (BEFORE, "what was there before this push", "")
    else:
        assert (commit, name) == (PARENT, "the parent")
        assert ("gone" in why) == (told == "gone")


@pytest.mark.parametrize(
    ("variable", "event", "brings"),
    [
        ("GITHUB_EVENT_NAME", "schedule", False),
        ("GITHUB_EVENT_NAME", "workflow_dispatch", False),
        ("GITHUB_EVENT_NAME", "push", True),
        ("CI_PIPELINE_SOURCE", "schedule", False),
        ("CI_PIPELINE_SOURCE", "push", True),
        ("BUILD_REASON", "Schedule", False),
        ("BUILD_REASON", "", True),
        ("JENKINS", "timer", True),
    ],
)
def test_a_run_that_brings_no_commits_has_nothing_to_say_of_a_push(variable: str, event: str, *, brings: bool) -> None:
    commit, name, why = stood({"main": HEAD, "HEAD^1": PARENT}, **{variable: event})
    assert (commit, name) == (PARENT, "the parent")
    assert bool(why) == brings
    gone = stood({"main": HEAD, "HEAD^1": PARENT}, CI_COMMIT_BEFORE_SHA="gone", **{variable: event})
    assert "gone, which was there before" in gone[2], "what CI told and nobody can use is said in any case"


@pytest.mark.parametrize("event", [{"before": BEFORE}, {"before": None}, [], None])
def test_what_github_says_of_a_push(tmp_path: Path, event: object) -> None:
    file = tmp_path / "event.json"
    if event is not None:
        file.write_text(json.dumps(event))
    assert pushed({"GITHUB_EVENT_PATH": str(file)}) == (BEFORE if event == {"before": BEFORE} else "")


def test_what_ci_says_of_a_merge_request_outweighs_a_target_that_the_change_can_write() -> None:
    known = {"origin/main": FORK, "pr": HEAD, "HEAD^1": PARENT}
    assert stood(known, "pr", GITHUB_BASE_REF="main") == (FORK, "the merge base with origin/main", "")
    assert stood(known, "pr")[0] == PARENT
    assert stood({"release": FORK}, "release", GITHUB_BASE_REF="gone")[0] == FORK
    assert stood({}, GITHUB_BASE_REF="gone")[2] == "'gone', which CI names as the target, is no branch in this clone"


def committed(folder: Path, **files: str) -> str:
    """The commit that holds these files."""
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("add", "."), (*who, "commit", "-qm", "one", "--allow-empty")):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return GitRepository(folder, {}).head()


def test_a_target_that_the_change_itself_wrote_is_said_on_a_plain_push(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=tmp_path, check=True)

    def seen(target: str, **environment: str) -> tuple[str, str, str]:
        base = GitRepository(tmp_path, {"PATH": os.environ["PATH"], **environment}, target).base()
        return base.commit, base.name, base.why

    git("init", "-q", "-b", "main")
    main = committed(tmp_path, pyproject_toml="")
    git("checkout", "-qb", "pr")
    first = committed(tmp_path, pyproject_toml='[tool.perfgate]\ntarget = "pr"\n')
    git("branch", "other")
    committed(tmp_path, k_py="slow")
    told = seen("pr", CI_COMMIT_BEFORE_SHA=first, CI_PIPELINE_SOURCE="push")
    assert told[:2] == (first, "what was there before this push")
    assert told[2] == "[tool.perfgate] target names 'pr' since this change left main"
    new = seen("pr", CI_COMMIT_BEFORE_SHA="0" * 40, CI_PIPELINE_SOURCE="push")
    assert new == (main, "the merge base with main: this branch is new", "")
    assert seen("other")[2] == "[tool.perfgate] target names 'other' since this change left main"
    assert seen("main") == seen("") == (main, "the merge base with main", "")
    assert seen("pr", CI_COMMIT_BEFORE_SHA=first, CHANGE_TARGET="main")[0] == main
    git("checkout", "-q", "main")
    git("checkout", "-qB", "main", "pr")
    assert seen("pr", CI_COMMIT_BEFORE_SHA=first)[2] == "", "where it is merged it holds"


@pytest.mark.parametrize(
    ("known", "target", "shallow", "why"),
    [
        ({"main": HEAD}, "", False, ""),
        ({"main": HEAD}, "", True, "this clone is shallow"),
        ({}, "", True, "this clone is shallow"),
        ({}, "", False, "no target branch is known"),
        ({"main": FORK}, "release", False, "target names 'release'"),
        ({"main": "-"}, "", False, "main and this commit have no common one"),
    ],
)
def test_why_there_is_none(known: dict[str, str], target: str, shallow: bool, why: str) -> None:
    commit, name, said = stood(known, target, shallow=shallow)
    assert commit == ""
    assert why in said
    assert (name == "the first commit") == (not said)


def test_a_checkout_that_git_does_not_answer_for(tmp_path: Path) -> None:
    assert GitRepository(tmp_path).base().why == "there is no git repository here"
    assert "not installed" in GitRepository(tmp_path, {"PATH": str(tmp_path)}).base().why
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    assert GitRepository(tmp_path).base().why == "nothing was ever committed here"
    liar = tmp_path / "git"
    said = "fatal: detected dubious ownership\\n\\tgit config --add safe.directory /x\\n"
    liar.write_text(f'#!/bin/sh\nprintf "{said}" >&2\nexit 128\n')
    liar.chmod(0o755)
    base = GitRepository(tmp_path, {"PATH": f"{tmp_path}:/bin:/usr/bin"}).base()
    assert "does not trust this folder" in base.why
    assert base.mend == "git config --add safe.directory /x"


@pytest.mark.parametrize(
    ("base", "said"),
    [
        (
            Base(commit="c0ffee", name="the merge base with main"),
            "baselines of c0ffee, the merge base with main, judge",
        ),
        (Base(why="git is away", mend="install git"), "the work tree's baselines judge: git is away"),
        (Base(name="the first commit"), "the first commit: the work tree's baselines judge"),
    ],
)
def test_the_doctor_says_whose_lines_judge(base: Base, said: str) -> None:
    repository = SimpleNamespace(base=lambda: base, head=lambda: "abc", branch=lambda: "dev")
    project: Any = SimpleNamespace(repository=repository)
    (finding,) = git_symptom(project)
    assert (finding.what, finding.mend) == (f"dev at abc; {said}", base.mend)


@pytest.mark.parametrize(("brought", "mend"), [("c0ffee", False), ("", True)])
def test_the_doctor_counts_lines_of_commits_that_are_gone(brought: str, mend: bool) -> None:
    lines = {name: SimpleNamespace(commit=name) for name in ("gone", "here", "old+dirty", "")}
    repository = SimpleNamespace(missing=lambda named: {"gone"} & set(named), brought=lambda *_: brought)
    store = SimpleNamespace(devices=lambda: ("host",), read_all=lambda device: lines)
    project: Any = SimpleNamespace(repository=repository, baselines=store, config=Config())
    (finding,) = commits(project)
    assert finding.what.startswith("1 line of a commit that is not in this clone")
    assert bool(finding.mend) is mend
