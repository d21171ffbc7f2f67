"""Whether a project kept baselines before this change: one question to git, asked in CI where none are here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_perfgate.adapters.stores.ci_words import USUAL, default_branch, named_base, pushed, requested, targets
from pytest_perfgate.adapters.system.git import ask_git


def kept_before(root: Path, folder: str, environment: Mapping[str, str]) -> bool:
    """Whether a revision that this change may have left has the folder; which one judges is found out afterwards."""
    asked = "".join(f"{revision}:./{folder}\n" for revision in dict.fromkeys(_revisions(environment)))
    done = ask_git(root, "cat-file", "--batch-check", env=environment, stdin=asked.encode("utf-8", "surrogateescape"))
    if done is None:
        return False
    return any(line.split()[1:2] == [b"tree"] for line in done.stdout.splitlines())


def _revisions(environment: Mapping[str, str]) -> Iterator[str]:
    told = (*targets(environment), default_branch(environment), *USUAL)
    yield from (commit for commit in (named_base(environment), requested(environment), pushed(environment)) if commit)
    yield "HEAD^1"
    for branch in told:
        if branch:
            yield from (f"refs/remotes/origin/{branch}", f"refs/heads/{branch}")
    yield "refs/remotes/origin/HEAD"
