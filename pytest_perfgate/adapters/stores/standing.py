"""Where a commit stands: what was there before it, by the target branch and by what CI says of a push."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from pytest_perfgate.adapters.stores.settings import target_at
from pytest_perfgate.model.repository import Base

Git = Callable[..., "str | None"]
"""What git answers to some words; ``None`` where it refuses."""

_TARGETS = ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "CHANGE_TARGET")
_USUAL = ("main", "master", "trunk", "develop")
_DEEPER = "check out with fetch-depth: 0, or git fetch --unshallow"
_EVENTS = {
    "GITHUB_EVENT_NAME": {"push", "merge_group", "pull_request", "pull_request_target"},
    "CI_PIPELINE_SOURCE": {"push", "merge_request_event", "external_pull_request_event"},
    "BUILD_REASON": {"IndividualCI", "BatchedCI", "PullRequest"},
    "BUILDKITE_SOURCE": {"webhook"},
    "DRONE_BUILD_EVENT": {"push", "pull_request"},
    "TRAVIS_EVENT_TYPE": {"push", "pull_request"},
}
"""What CI calls that which began a run, and the names of it that bring new commits."""
_TELL = "in another CI set CI_COMMIT_BEFORE_SHA to the commit that it tested before"


class Standing:
    """The current commit of one repository, seen from its target branch."""

    def __init__(self, git: Git, environment: Mapping[str, str], head: str) -> None:
        self._git, self._environment, self._head = git, environment, head

    def base(self, target: str) -> Base:
        """The merge base with the target branch; on that branch itself, what was there before."""
        for name in self._forms(self._asked(target)):
            found = self._git("merge-base", "HEAD", name) if self.resolved(name) else None
            if found:
                left = Base(commit=found, name=f"the merge base with {name}")
                return self._pointed(self._before() if found == self._head else left, target)
        return self._none(target)

    def resolved(self, revision: str) -> bool:
        return bool(self._git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"))

    def shallow(self) -> bool:
        return self._git("rev-parse", "--is-shallow-repository") == "true"

    def _pointed(self, base: Base, target: str) -> Base:
        """A target that the change itself wrote may be the change: where it left another branch, it was not there."""
        if not target or targets(self._environment) or base.why:
            return base
        name, found = self._left(target)
        if not found or self._git("merge-base", found, base.commit) != found or found == base.commit:
            return base
        if target_at(self._git("show", f"{found}:./pyproject.toml") or "") == target:
            return base
        why = f"[tool.perfgate] target names '{target}' since this change left {name}"
        return replace(base, why=why, mend=f"merge that setting into {name} by itself, or take it away")

    def _left(self, target: str) -> tuple[str, str]:
        """Where this change left the usual branch, the first that is here and not its target."""
        others = self._forms([one for one in self._targets() if one.removeprefix("origin/") != target])
        name = next(filter(self.resolved, others), "")
        found = self._git("merge-base", "HEAD", name) if name else None
        return (name, found) if found and found != self._head else ("", "")

    def _before(self) -> Base:
        """On the target branch: the tip before this push where CI tells it, else the parent."""
        told = pushed(self._environment)
        found = self._git("merge-base", "HEAD", told) if told and self.resolved(told) else None
        if found and found != self._head:
            return Base(commit=found, name="what was there before this push")
        name, left = self._left("") if unborn(self._environment) and brings(self._environment) else ("", "")
        if left:
            return Base(commit=left, name=f"the merge base with {name}: this branch is new")
        parent = self._git("rev-parse", "--verify", "--quiet", "HEAD^1")
        if not parent:
            return self._shallow() if self.shallow() else Base(name="the first commit")
        why, mend = ("nothing says what was there before this push", _TELL) if brings(self._environment) else ("", "")
        if told:
            place = "this commit" if found else "not in the history of this clone"
            why = f"{told[:10]}, which was there before this push, is {place}"
            mend = _DEEPER if self.shallow() else ""
        return Base(commit=parent, name="the parent", why=why, mend=mend)

    def _none(self, target: str) -> Base:
        if self.shallow():
            return self._shallow()
        known = [name for name in self._forms(self._asked(target)) if self.resolved(name)]
        why, mend = "no target branch is known in this clone", 'name it: [tool.perfgate] target = "BRANCH"'
        if known:
            why = f"{known[0]} and this commit have no common one"
        elif told := targets(self._environment):
            why = f"'{told[0]}', which CI names as the target, is no branch in this clone"
            mend = f"check out with fetch-depth: 0, or git fetch origin {told[0]}:refs/remotes/origin/{told[0]}"
        elif target:
            why = f"[tool.perfgate] target names '{target}', which is no branch in this clone"
            mend = f"git fetch origin {target}:refs/remotes/origin/{target}"
        return Base(why=why, mend=mend)

    def _shallow(self) -> Base:
        return Base(why="this clone is shallow", mend=_DEEPER)

    def _asked(self, target: str) -> list[str]:
        """What CI says of a merge request comes first: the change itself can write another target in its settings."""
        return [*targets(self._environment), target] if target else self._targets()

    def _targets(self) -> list[str]:
        named = targets(self._environment)
        default = self._git("symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
        return [*named, *([default] if default else []), *_USUAL]

    @staticmethod
    def _forms(names: list[str]) -> list[str]:
        return [form for name in names for form in (f"origin/{name}", name)]


def targets(environment: Mapping[str, str]) -> list[str]:
    """The branch that a merge request is for, as CI names it; none where this is no merge request."""
    return [environment[name] for name in _TARGETS if environment.get(name)]


def pushed(environment: Mapping[str, str]) -> str:
    """The commit that a branch stood at before the push that CI tests; empty where CI does not say."""
    told = environment.get("CI_COMMIT_BEFORE_SHA") or _event(environment.get("GITHUB_EVENT_PATH", "")).get("before")
    return told if isinstance(told, str) and told.strip("0") else ""


def unborn(environment: Mapping[str, str]) -> bool:
    """Whether CI says that the branch was not there before this push."""
    told = environment.get("CI_COMMIT_BEFORE_SHA") or _event(environment.get("GITHUB_EVENT_PATH", "")).get("before")
    return isinstance(told, str) and bool(told) and not told.strip("0")


def brings(environment: Mapping[str, str]) -> bool:
    """Whether this run may test new commits: not one that a schedule or a person began, where CI tells that."""
    return all(environment[name] in bringing for name, bringing in _EVENTS.items() if environment.get(name))


def _event(path: str) -> Mapping[str, object]:
    """What GitHub says of the event that began this run; a file that does not read says nothing."""
    try:
        told = json.loads(Path(path).read_text(encoding="utf-8")) if path else {}
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}
