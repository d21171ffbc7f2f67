"""Git as arms need it: commits, snapshots of the working copy, detached worktrees."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.values import value

_SELF = {"GIT_AUTHOR_NAME": "perfgate", "GIT_AUTHOR_EMAIL": "perfgate@localhost", "GIT_COMMITTER_NAME": "perfgate"}
_SELF["GIT_COMMITTER_EMAIL"] = "perfgate@localhost"


@value
class Revision:
    """A commit with its tree; a dirty one is a snapshot of the working copy."""

    commit: str
    tree: str
    dirty: bool = False


class Git:
    """One repository, by its top folder."""

    def __init__(self, inside: Path) -> None:
        self._inside = inside
        self.top = Path(self._checked("rev-parse", "--show-toplevel"))

    def revision(self, name: str) -> Revision:
        """The commit that a name means, or a clear error with the command that fetches it."""
        found = self._run("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        if found.returncode:
            raise self._missing(name)
        commit = found.stdout.strip()
        return Revision(commit=commit, tree=self._checked("rev-parse", f"{commit}^{{tree}}"))

    def snapshot(self) -> Revision:
        """The working copy as a commit that no branch names: staged, unstaged and untracked files."""
        head = self.revision("HEAD")
        with tempfile.TemporaryDirectory() as scratch:
            index = Path(scratch, "index")
            own = Path(self._checked("rev-parse", "--path-format=absolute", "--git-path", "index"))
            if own.exists():
                shutil.copy2(own, index)
            variables = {"GIT_INDEX_FILE": str(index)}
            self._checked("add", "--all", "--", ":/", variables=variables)
            tree = self._checked("write-tree", variables=variables)
        if tree == head.tree:
            return head
        commit = self._checked("commit-tree", tree, "-p", head.commit, "-m", "working copy", variables=_SELF)
        return Revision(commit=commit, tree=tree, dirty=True)

    def add_worktree(self, folder: Path, revision: Revision) -> None:
        """A detached worktree with its submodules, cloned from here where they are here."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        self._checked("worktree", "add", "--detach", "--force", str(folder), revision.commit)
        if (folder / ".gitmodules").exists():
            self._add_submodules(folder)

    def remove_worktree(self, folder: Path) -> None:
        self._run("worktree", "remove", "--force", "--force", str(folder))
        shutil.rmtree(folder, ignore_errors=True)
        self._run("worktree", "prune")

    def lost_worktrees(self) -> tuple[str, ...]:
        """Folders that git still holds for worktrees, and that are gone."""
        listed = self._run("worktree", "list", "--porcelain").stdout.split("\n\n")
        lines = [entry.splitlines() for entry in listed]
        gone = (entry[0].removeprefix("worktree ") for entry in lines if any(x.startswith("prunable") for x in entry))
        return tuple(gone)

    def _add_submodules(self, folder: Path) -> None:
        own = Path(self._checked("rev-parse", "--path-format=absolute", "--git-common-dir")) / "modules"
        listed = self._run("config", "--file", str(folder / ".gitmodules"), "--get-regexp", r"\.url$").stdout
        names = [line.split(" ", 1)[0][len("submodule.") : -len(".url")] for line in listed.splitlines()]
        urls = [f"submodule.{name}.url={own / name}" for name in names if (own / name).is_dir()]
        options = [part for url in urls for part in ("-c", url)]
        update = ("submodule", "update", "--init", "--recursive", "--quiet")
        done = self._run("-C", str(folder), "-c", "protocol.file.allow=always", *options, *update)
        if done.returncode:
            raise PerfgateError(
                "submodule-missing",
                f"a submodule of {folder.name} could not be checked out: {_tail(done.stderr)}",
            )

    def _missing(self, name: str) -> PerfgateError:
        if self._run("rev-parse", "--is-shallow-repository").stdout.strip() == "true":
            return PerfgateError("revision-shallow", f"{name!r} is not in this shallow clone")
        mend = f"git fetch origin {name.removeprefix('origin/')}"
        return PerfgateError("revision-missing", f"{name!r} is not in this clone", mend=mend)

    def _checked(self, *arguments: str, variables: Mapping[str, str] | None = None) -> str:
        done = self._run(*arguments, variables=variables)
        if done.returncode:
            code = "no-repository" if "not a git repository" in done.stderr else "revision-missing"
            raise PerfgateError(code, f"git {arguments[0]} failed: {_tail(done.stderr)}")
        return done.stdout.strip()

    def _run(self, *arguments: str, variables: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        ours = {k: v for k, v in os.environ.items() if k not in {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"}}
        try:
            return subprocess.run(
                ["git", *arguments],
                cwd=getattr(self, "top", self._inside),
                env={**ours, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", **(variables or {})},
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
        except FileNotFoundError as error:
            raise PerfgateError("no-repository", "git is not installed", mend="install git") from error


def _tail(text: str, lines: int = 3) -> str:
    return " / ".join(text.strip().splitlines()[-lines:])
