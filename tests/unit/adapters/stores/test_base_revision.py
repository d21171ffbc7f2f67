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

from pytest_perfgate.adapters.stores.base_revision import BaseRevision, kept_before, protected, pushed
from pytest_perfgate.adapters.stores.repository import GitRepository
from pytest_perfgate.cli.doctor import commits
from pytest_perfgate.cli.doctor import git as doctor_git
from pytest_perfgate.model.plan import Base
from pytest_perfgate.model.project import Config, targets

HEAD, FORK, BEFORE, PARENT = "head", "fork", "before", "parent"


def answering(answers: dict[str, str], *, shallow: bool = False) -> Callable[..., str | None]:
    """A git that knows some names; each is an ancestor of HEAD, or stands where it says."""

    def git(*words: str) -> str | None:
        name = words[-1].removesuffix("^{commit}").removeprefix("refs/remotes/").removeprefix("refs/heads/")
        if words[0] == "merge-base":
            return answers[name].strip("-") if words[1] == "HEAD" else words[1]
        if words[-1] == "--is-shallow-repository":
            return "true" if shallow else "false"
        return answers.get("lines of " + words[3]) if words[0] == "diff" else answers.get(name)

    return git


def stood(answers: dict[str, str], target: str = "", *, shallow: bool = False, **environment: str) -> tuple[str, ...]:
    base = BaseRevision(answering(answers, shallow=shallow), environment, HEAD).base(target)
    return base.commit, base.name, base.why


def test_the_merge_base_with_the_branch_that_is_named() -> None:
    settings = '[tool.perfgate]\ntarget = "release"\n'
    answers = {"origin/release": FORK, "main": "other", "other:./pyproject.toml": settings}
    assert stood(answers, "release") == (FORK, "the merge base with origin/release", "")
    assert stood(answers) == ("other", "the merge base with main", "")
    assert stood(answers, GITHUB_BASE_REF="release")[0] == FORK


@pytest.mark.parametrize(
    ("target", "start", "request_", "other"),
    [
        ("DRONE_TARGET_BRANCH", "DRONE_BUILD_EVENT", "pull_request", "push"),
        ("CODEBUILD_WEBHOOK_BASE_REF", "CODEBUILD_WEBHOOK_EVENT", "PULL_REQUEST_UPDATED", "PULL_REQUEST_MERGED"),
        ("SEMAPHORE_GIT_BRANCH", "SEMAPHORE_GIT_REF_TYPE", "pull-request", "branch"),
        ("TRAVIS_BRANCH", "TRAVIS_EVENT_TYPE", "pull_request", "push"),
        ("CI_COMMIT_TARGET_BRANCH", "CI_PIPELINE_EVENT", "pull_request", ""),
        ("CIRRUS_BASE_BRANCH", "CIRRUS_PR", "12", ""),
    ],
)
def test_the_target_that_other_servers_name(target: str, start: str, request_: str, other: str) -> None:
    """A release branch may be faster than the usual one: what loses that speed is slower than its target."""
    answers = {"origin/release": FORK, "origin/main": "other"}
    assert stood(answers, **{target: "refs/heads/release", start: request_})[0] == FORK
    assert stood(answers, **{target: "release" if other else "", start: other})[0] == "other"


@pytest.mark.parametrize("variable", ["CODEBUILD_WEBHOOK_PREV_COMMIT", "DRONE_COMMIT_BEFORE", "GIT_PREVIOUS_COMMIT"])
def test_the_commit_before_a_push_as_other_servers_name_it(variable: str) -> None:
    answers = {"main": HEAD, BEFORE: BEFORE, "HEAD^1": PARENT}
    assert stood(answers, **{variable: BEFORE}) == (BEFORE, "what was there before this push", "")
    assert stood(answers, **{variable: BEFORE, "CI_COMMIT_BEFORE_SHA": "gone"})[0] == PARENT


@pytest.mark.parametrize("sha", [BEFORE, "0" * 40, "", "gone"])
def test_on_the_target_branch_it_is_what_was_there_before_the_push(sha: str) -> None:
    answers = {"main": HEAD, BEFORE: BEFORE, "HEAD^1": PARENT}
    commit, name, why = stood(answers, CI_COMMIT_BEFORE_SHA=sha)
    if sha == BEFORE:
        assert (commit, name, why) == (BEFORE, "what was there before this push", "")
    else:
        assert (commit, name) == (PARENT, "the parent")
        assert ("gone" in why) == (sha == "gone")


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
    result = stood({"main": HEAD, "HEAD^1": PARENT}, CI_COMMIT_BEFORE_SHA="gone", **{variable: event})
    assert "gone, which was there before" in result[2], "what CI told and nobody can use is said in any case"


@pytest.mark.parametrize("event", [{"before": BEFORE}, {"before": None}, [], None])
def test_what_github_says_of_a_push(tmp_path: Path, event: object) -> None:
    file = tmp_path / "event.json"
    if event is not None:
        file.write_text("[" * 10**6 if event == [] else json.dumps(event))
    assert pushed({"GITHUB_EVENT_PATH": str(file)}) == (BEFORE if event == {"before": BEFORE} else "")


def test_what_ci_says_of_a_merge_request_outweighs_a_target_that_the_change_can_write() -> None:
    answers = {"origin/main": FORK, "pr": HEAD, "HEAD^1": PARENT}
    assert stood(answers, "pr", GITHUB_BASE_REF="main") == (FORK, "the merge base with origin/main", "")
    assert stood(answers, "pr")[0] == PARENT
    assert stood({"release": FORK}, "release", GITHUB_BASE_REF="gone")[0] == FORK
    own = {"pr": HEAD, "mine": PARENT, "main": FORK, "fork:./pyproject.toml": ""}
    assert "'mine' since this change left main" in stood(own, "mine", GITHUB_BASE_REF="gone")[2]
    assert stood({}, GITHUB_BASE_REF="gone")[2] == "'gone', which CI names as the target, is not a branch in this clone"


def event(folder: Path, **fields: object) -> str:
    """The file in which GitHub tells of an event."""
    file = folder / "event.json"
    file.write_text(json.dumps(fields))
    return str(file)


def test_a_merge_queue_is_judged_by_the_base_that_it_names(tmp_path: Path) -> None:
    answers = {"origin/main": FORK, "queued": "queued"}
    path = event(tmp_path, merge_group={"base_sha": "queued", "base_ref": "refs/heads/release/1"}, before="else")
    named = ("queued", "the base that CI names", "")
    assert stood(answers, GITHUB_EVENT_NAME="merge_group", GITHUB_EVENT_PATH=path) == named
    assert stood(answers, GITHUB_EVENT_NAME="push", GITHUB_EVENT_PATH=path)[0] == FORK
    assert stood({"main": FORK}, GITHUB_EVENT_NAME="merge_group", GITHUB_EVENT_PATH=path)[0] == FORK
    odd = event(tmp_path, merge_group=["base_sha"])
    assert stood(answers, GITHUB_EVENT_NAME="merge_group", GITHUB_EVENT_PATH=odd)[0] == FORK


def test_a_push_to_another_branch_is_judged_by_what_was_there_where_that_is_protected() -> None:
    answers = {"main": FORK, BEFORE: BEFORE, f"lines of {BEFORE}": "baselines/d/test_a.py.yaml"}
    push = {"CI_PIPELINE_SOURCE": "push", "CI_COMMIT_BEFORE_SHA": BEFORE}
    assert stood(answers, **push, CI_COMMIT_REF_PROTECTED="true") == (BEFORE, "what was there before this push", "")
    assert stood(answers, **push) == (
        FORK,
        "the merge base with main",
        "not those of before, which was there before this push",
    )
    assert stood({"main": FORK, BEFORE: BEFORE}, **push) == (FORK, "the merge base with main", "")
    assert stood({**answers, BEFORE: "rewritten"}, **push, CI_COMMIT_REF_PROTECTED="true")[0] == FORK
    assert protected({"GITHUB_EVENT_NAME": "push", "GITHUB_REF_PROTECTED": "true"})
    assert not protected({"GITHUB_EVENT_NAME": "merge_group", "GITHUB_REF_PROTECTED": "true"})


def test_a_merge_request_from_a_fork_is_judged_by_the_base_that_ci_names() -> None:
    forked = {"origin/main": "mine", "left": "left", "tip": "tip", "HEAD^1": PARENT}
    request = {"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main", "CI_MERGE_REQUEST_DIFF_BASE_SHA": "left"}
    assert stood(forked, **request) == ("left", "the base that CI names", "")
    assert stood(forked, **request, CI_MERGE_REQUEST_TARGET_BRANCH_SHA="tip")[0] == "tip"
    assert stood({"origin/main": "mine"}, **request)[0] == "mine", "a newer diff than the clone has"
    assert stood({"origin/main": "mine"}, shallow=True, **request)[2] == "this clone is shallow"
    assert stood(forked, CI_MERGE_REQUEST_DIFF_BASE_SHA="left")[0] == "mine", "no merge request"


def test_a_target_that_has_the_commit_already_is_no_base_of_its_merge_request(tmp_path: Path) -> None:
    answers = {"origin/main": HEAD, "HEAD^1": PARENT, "sha": FORK}
    assert stood(answers, GITHUB_BASE_REF="main") == (
        "", "", "origin/main already contains this commit, so it cannot be its target",
    )  # fmt: skip
    path = event(tmp_path, pull_request={"base": {"sha": "sha"}})
    assert stood(answers, GITHUB_BASE_REF="main", GITHUB_EVENT_PATH=path)[0] == FORK
    assert stood({"sha": FORK, "pr": PARENT}, "pr", GITHUB_BASE_REF="main", GITHUB_EVENT_PATH=path)[0] == FORK


def test_a_target_that_is_not_in_the_clone_is_named_and_not_the_branch_that_the_clone_has() -> None:
    """A clone of one branch names it as the default: it holds the commit, and is not the target that CI names."""
    answers = {"origin/main": HEAD, "HEAD^1": PARENT}
    absent = "'release', which CI names as the target, is not a branch in this clone"
    assert stood(answers, GITHUB_BASE_REF="release") == ("", "", absent)
    assert stood(answers, shallow=True, GITHUB_BASE_REF="release")[2] == "this clone is shallow"


def test_the_target_as_each_ci_names_it() -> None:
    assert targets({"BUILDKITE_PULL_REQUEST_BASE_BRANCH": "main", "CHANGE_TARGET": ""}) == ["main"]
    assert stood({"origin/main": FORK}, SYSTEM_PULLREQUEST_TARGETBRANCH="refs/heads/main")[0] == FORK
    assert stood({"upstream/main": FORK, "main": "own"}, "upstream/main")[0] == FORK
    assert stood({"origin/main": FORK, "main": "own"}, "origin/main")[0] == FORK


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

    def base_of(target: str, **environment: str) -> tuple[str, str, str]:
        base = GitRepository(tmp_path, {"PATH": os.environ["PATH"], **environment}, target).base()
        return base.commit, base.name, base.why

    git("init", "-q", "-b", "main")
    main = committed(tmp_path, pyproject_toml="")
    git("checkout", "-qb", "pr")
    first = committed(tmp_path, pyproject_toml='[tool.perfgate]\ntarget = "pr"\n')
    git("branch", "other")
    committed(tmp_path, k_py="slow")
    changed = base_of("pr", CI_COMMIT_BEFORE_SHA=first, CI_PIPELINE_SOURCE="push")
    assert changed[:2] == (first, "what was there before this push")
    assert changed[2] == "[tool.perfgate] target names 'pr' since this change left main"
    new = base_of("pr", CI_COMMIT_BEFORE_SHA="0" * 40, CI_PIPELINE_SOURCE="push")
    assert new == (main, "the merge base with main: this branch is new", "")
    assert base_of("other")[2] == "[tool.perfgate] target names 'other' since this change left main"
    assert base_of("main") == base_of("") == (main, "the merge base with main", "")
    git("tag", "main", "pr")
    git("tag", "origin/main", "pr")
    assert base_of("main") == base_of("") == (main, "the merge base with main", ""), "a tag is not a branch"
    strict = base_of("pr", CI="1", CI_DEFAULT_BRANCH="main")
    assert strict == (main, "the merge base with main", changed[2]), "the target is as the default branch has it"
    assert base_of("pr", CI="1", CI_DEFAULT_BRANCH="pr")[2] == "CI does not say which commit came before this push"
    assert base_of("pr", CI="1")[2].endswith(changed[2])
    assert base_of("pr", CI_COMMIT_BEFORE_SHA=first, CHANGE_TARGET="main")[0] == main
    git("checkout", "-q", "main")
    git("checkout", "-qB", "main", "pr")
    assert base_of("pr", CI_COMMIT_BEFORE_SHA=first)[2] == "", "where it is merged it holds"


@pytest.mark.parametrize(
    ("answers", "target", "shallow", "why"),
    [
        ({"main": HEAD}, "", False, ""),
        ({"main": HEAD}, "", True, "this clone is shallow"),
        ({}, "", True, "this clone is shallow"),
        ({}, "", False, "no target branch is known"),
        ({"main": FORK}, "release", False, "target names 'release'"),
        (
            {"origin/HEAD": "refs/remotes/origin/dev"},
            "",
            False,
            "the default branch is 'dev', which is not a branch in",
        ),
        ({"main": "-"}, "", False, "main and this commit have no common commit"),
    ],
)
def test_why_there_is_none(answers: dict[str, str], target: str, shallow: bool, why: str) -> None:
    commit, name, reason = stood(answers, target, shallow=shallow)
    assert commit == ""
    assert why in reason
    assert (name == "the first commit") == (not reason)


def test_a_checkout_that_git_does_not_answer_for(tmp_path: Path) -> None:
    assert GitRepository(tmp_path).base().why == "there is no git repository here"
    assert "not installed" in GitRepository(tmp_path, {"PATH": str(tmp_path)}).base().why
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    base = GitRepository(tmp_path).base()
    assert (base.why, base.unversioned) == ("this repository has no commit", True)
    liar = tmp_path / "git"
    message = "fatal: detected dubious ownership\\n\\tgit config --add safe.directory /x\\n"
    liar.write_text(f'#!/bin/sh\nprintf "{message}" >&2\nexit 128\n')
    liar.chmod(0o755)
    base = GitRepository(tmp_path, {"PATH": f"{tmp_path}:/bin:/usr/bin"}).base()
    assert "does not trust this folder" in base.why
    assert base.fix == "git config --add safe.directory /x"


@pytest.mark.parametrize(
    ("base", "sentence"),
    [
        (
            Base(commit="c0ffee", name="the merge base with main"),
            "baselines of c0ffee, the merge base with main, judge",
        ),
        (Base(why="git is away", fix="install git"), "the work tree's baselines judge: git is away"),
        (Base(name="the first commit"), "the first commit: the work tree's baselines judge"),
    ],
)
def test_the_doctor_says_whose_lines_judge(base: Base, sentence: str) -> None:
    repository = SimpleNamespace(base=lambda: base, head=lambda: "abc", branch=lambda: "dev")
    project: Any = SimpleNamespace(repository=repository)
    (finding,) = doctor_git(project)
    assert (finding.what, finding.fix) == (f"dev at abc; {sentence}", base.fix)


@pytest.mark.parametrize(("brought", "fix"), [("c0ffee", False), ("", True)])
def test_the_doctor_counts_lines_of_commits_that_are_gone(brought: str, fix: bool) -> None:
    lines = {name: SimpleNamespace(commit=name) for name in ("gone", "here", "old+dirty", "")}
    repository = SimpleNamespace(missing=lambda named: {"gone"} & set(named), brought=lambda *_: brought)
    store = SimpleNamespace(devices=lambda: ("host",), read_all=lambda device: lines)
    project: Any = SimpleNamespace(repository=repository, baselines=store, config=Config())
    (finding,) = commits(project)
    assert finding.what.startswith("1 line of a commit that is not in this clone")
    assert bool(finding.fix) is fix


def _git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Lines on main, and a change of two commits that takes them away."""
    _git(tmp_path, "init", "-q", "-b", "main")
    home = tmp_path / "bench" / "accepted" / "host-x"
    home.mkdir(parents=True)
    (home / "t.py.yaml").write_text("perfgate: 1\n")
    (tmp_path / "bench" / "t.py").touch()
    _git(tmp_path, "add", "-A")
    _git(tmp_path, "commit", "-qm", "one")
    _git(tmp_path, "checkout", "-qb", "change")
    _git(tmp_path, "rm", "-qr", "bench/accepted")
    _git(tmp_path, "commit", "-qm", "two")
    return tmp_path / "bench"


def test_the_commit_before_and_the_branch_that_ci_names_are_asked(root: Path) -> None:
    env = dict(os.environ)
    assert kept_before(root, "accepted", env)
    assert not kept_before(root, "baselines", env)
    _git(root, "branch", "-m", "main", "release")
    assert kept_before(root, "accepted", env), "the parent has it"
    _git(root, "commit", "-q", "--allow-empty", "-m", "three")
    assert not kept_before(root, "accepted", env)
    assert kept_before(root, "accepted", {**env, "GITHUB_BASE_REF": "release"})
    _git(root, "remote", "add", "theirs", str(root.parent))
    _git(root, "fetch", "-q", "theirs", "release:refs/remotes/theirs/main")
    _git(root, "branch", "-D", "release")
    assert kept_before(root, "accepted", env), "the only remote, whatever its name"


def test_without_git_there_was_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not kept_before(tmp_path, "baselines", {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)})

    monkeypatch.setenv("PATH", str(tmp_path))
    assert not kept_before(tmp_path, "baselines", {})


@pytest.mark.parametrize(
    ("remote", "target"),
    [
        ("origin", "release"),
        ("origin", "origin/release"),
        ("origin", "refs/heads/release"),
        ("theirs", "release"),
        ("theirs", "theirs/release"),
        ("theirs", "origin/release"),
        ("team/fork", "release"),
        ("team/fork", "team/fork/release"),
    ],
)
def test_the_command_that_fetches_a_target_makes_it_known(tmp_path: Path, remote: str, target: str) -> None:
    upstream, clone = tmp_path / "upstream", tmp_path / "clone"
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    for folder, words in (
        (tmp_path, ("init", "-q", "-b", "work", "upstream")),
        (upstream, (*identity, "commit", "-q", "--allow-empty", "-m", "1")),
        (upstream, ("branch", "release")),
        (upstream, (*identity, "commit", "-q", "--allow-empty", "-m", "2")),
        (tmp_path, ("clone", "-q", "-o", remote, "--single-branch", "upstream", "clone")),
    ):
        subprocess.run(["git", *words], cwd=folder, check=True)
    quiet = {name: text for name, text in os.environ.items() if not name.startswith(("CI", "GITHUB"))}
    of_ci = GitRepository(clone, {**quiet, "SYSTEM_PULLREQUEST_TARGETBRANCH": target}).base().fix.partition(", or ")[2]
    of_settings = GitRepository(clone, quiet).base(target).fix
    assert of_ci == of_settings
    subprocess.run(of_ci, shell=True, cwd=clone, check=True)
    assert GitRepository(clone, quiet).base(target).name == f"the merge base with {remote}/release"


def test_a_clone_without_a_remote_needs_one_first(root: Path) -> None:
    quiet = {name: text for name, text in os.environ.items() if not name.startswith(("CI", "GITHUB"))}
    base = GitRepository(root, quiet).base("release")
    step = "git remote add origin URL, then git fetch origin release:refs/remotes/origin/release"
    assert (base.commit, base.fix) == ("", step)


def test_a_target_of_another_remote_is_fetched_from_there(root: Path) -> None:
    """A developer's own fork is ``origin``, and the project is ``theirs``."""
    bare = root.parent / "bare"
    _git(root, "clone", "-q", "--bare", str(root.parent), str(bare))
    _git(root, "branch", "-qm", "main", "old")
    for remote in ("origin", "theirs"):
        _git(root, "remote", "add", remote, str(bare))
    quiet = {name: text for name, text in os.environ.items() if not name.startswith(("CI", "GITHUB"))}
    base = GitRepository(root, quiet).base("theirs/main")
    assert (base.commit, base.fix) == ("", "git fetch theirs main:refs/remotes/theirs/main")
    subprocess.run(base.fix, shell=True, cwd=root, check=True)
    assert GitRepository(root, quiet).base("theirs/main").name == "the merge base with theirs/main"
    assert not GitRepository(root, quiet).base().commit, "of two remotes only origin is the usual one"
    _git(root, "remote", "remove", "origin")
    assert GitRepository(root, quiet).base().name == "the merge base with theirs/main"
    assert not kept_before(root, "elsewhere", quiet)
