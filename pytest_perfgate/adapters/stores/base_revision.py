"""Merge base by branch or CI."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from pytest_perfgate.adapters.stores.configuration import target_at
from pytest_perfgate.model.plan import Base

Git = Callable[..., "str | None"]
"""What git answers to some words; ``None`` where it refuses."""

_DEEPER = "check out with fetch-depth: 0, or git fetch --unshallow"

_TELL = "in another CI set CI_COMMIT_BEFORE_SHA to the commit that it tested before"

_OWN_TARGET = 'of a branch that changes are merged into: protect it, or name it: [tool.perfgate] target = "BRANCH"'

_FORK = "fetch the target branch of the project that the merge request is for, not that of a fork"


class BaseRevision:
    """The current commit of one repository, seen from its target branch."""

    def __init__(self, git: Git, environment: Mapping[str, str], head: str) -> None:
        self._git, self._environment, self._head = git, environment, head

    def base(self, target: str) -> Base:
        """The merge base with the target branch; on that branch itself, what was there before."""
        if base := self._named():
            return base
        for name in self._asked(target):
            if commit := self._common(name):
                return self._pointed(self._from(name, commit), name, target)
        return self._none(target)

    def resolved(self, revision: str) -> bool:
        return bool(self._git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"))

    def shallow(self) -> bool:
        return self._git("rev-parse", "--is-shallow-repository") == "true"

    def _common(self, name: str) -> str:
        """The newest commit that HEAD shares with a revision; empty where either is not here."""
        return (self._git("merge-base", "HEAD", name) or "") if self.resolved(name) else ""

    def _named(self) -> Base | None:
        """What CI itself calls the base; branches of a fork's clone are its developer's own."""
        name = named_base(self._environment)
        commit = self._common(name) if name else ""
        if commit and commit != self._head:
            return Base(commit=commit, name="the base that CI names")
        return self._shallow() if name and not commit and self.shallow() else None

    def _from(self, name: str, found: str) -> Base:
        """What judges a commit that shares this one with a target branch."""
        base = Base(commit=found, name=f"the merge base with {_shown(name)}")
        if targets(self._environment):
            return base if found != self._head else self._merged(name)
        return self._before() if found == self._head else self._elsewhere(base)

    def _merged(self, name: str) -> Base:
        """A request for what its target has already: that branch may be the one of a fork."""
        commit = self._common(requested(self._environment) or self._head)
        if commit and commit != self._head:
            return Base(commit=commit, name="the base that CI names")
        return Base(why=f"{_shown(name)} already contains this commit, so it cannot be its target", fix=_FORK)

    def _elsewhere(self, left: Base) -> Base:
        """A push to another branch: of one that is protected, what was there before; else its lines are no base."""
        pushed_from = pushed(self._environment)
        if not pushed_from or pushed_from == self._head or self._common(pushed_from) != pushed_from:
            return left
        if protected(self._environment):
            return Base(commit=pushed_from, name="what was there before this push")
        if not self._git("diff", "--name-only", left.commit, pushed_from, "--", "*.py.yaml"):
            return left
        return replace(left, why=f"not those of {pushed_from[:10]}, which was there before this push", fix=_OWN_TARGET)

    def _pointed(self, base: Base, used: str, target: str) -> Base:
        """A target that the change itself wrote may be the change: where it left another branch, it was not there."""
        if not target or used not in _forms(target) or used in _forms(*targets(self._environment)):
            return base
        name, commit = self._left(target)
        if not commit or target_at(self._git("show", f"{commit}:./pyproject.toml") or "") == target:
            return base
        why = f"[tool.perfgate] target names '{target}' since this change left {_shown(name)}"
        fix = f"merge that setting into {_shown(name)} by itself, or remove it"
        default = self._default()
        if self._environment.get("CI") and default and name in _forms(default):
            return Base(commit=commit, name=f"the merge base with {_shown(name)}", why=why, fix=fix)
        older = self._git("merge-base", commit, base.commit) == commit != base.commit
        if not base.why:
            return replace(base, why=why, fix=fix) if older else base
        return replace(base, why=f"{base.why}, and {why}")

    def _left(self, target: str) -> tuple[str, str]:
        """Where this change left the usual branch, the first that is here and not its target; not for the default."""
        if target and target == self._default():
            return "", ""
        others = [form for one in self._usual() if one != target for form in _forms(one)]
        name = next(filter(self.resolved, others), "")
        commit = self._common(name) if name else ""
        return (name, commit) if commit and commit != self._head else ("", "")

    def _before(self) -> Base:
        """On the target branch: the tip before this push where CI tells it, else the parent."""
        pushed_from = pushed(self._environment)
        commit = self._common(pushed_from) if pushed_from else ""
        if commit and commit != self._head:
            return Base(commit=commit, name="what was there before this push")
        name, base = self._left("") if unborn(self._environment) and brings(self._environment) else ("", "")
        if base:
            return Base(commit=base, name=f"the merge base with {_shown(name)}: this branch is new")
        parent = self._git("rev-parse", "--verify", "--quiet", "HEAD^1")
        if not parent:
            return self._shallow() if self.shallow() else Base(name="the first commit")
        why, fix = (
            ("CI does not say which commit came before this push", _TELL) if brings(self._environment) else ("", "")
        )
        if pushed_from:
            place = "this commit" if commit else "not in the history of this clone"
            why = f"{pushed_from[:10]}, which was there before this push, is {place}"
            fix = _DEEPER if self.shallow() else ""
        return Base(commit=parent, name="the parent", why=why, fix=fix)

    def _none(self, target: str) -> Base:
        if self.shallow():
            return self._shallow()
        known = [name for name in self._asked(target) if self.resolved(name)]
        why, fix = "no target branch is known in this clone", 'name it: [tool.perfgate] target = "BRANCH"'
        if known:
            why = f"{_shown(known[0])} and this commit have no common commit"
        elif branches := targets(self._environment):
            why = f"'{branches[0]}', which CI names as the target, is not a branch in this clone"
            fix = f"check out with fetch-depth: 0, or git fetch origin {branches[0]}:refs/remotes/origin/{branches[0]}"
        elif target:
            why = f"[tool.perfgate] target names '{target}', which is not a branch in this clone"
            fix = f"git fetch origin {target}:refs/remotes/origin/{target}"
        return Base(why=why, fix=fix)

    def _shallow(self) -> Base:
        return Base(why="this clone is shallow", fix=_DEEPER)

    def _asked(self, target: str) -> list[str]:
        """What CI says of a merge request comes first: the change itself can write another target in its settings."""
        branches = targets(self._environment)
        tip = requested(self._environment) if branches else ""
        return [*_forms(*branches), *filter(None, [tip]), *_forms(*([target] if target else self._usual()))]

    def _usual(self) -> list[str]:
        default = self._default()
        return [*([default] if default else []), *USUAL]

    def _default(self) -> str:
        """The branch that the server calls the default one, as CI or the clone knows it."""
        cloned = self._git("symbolic-ref", "--quiet", "refs/remotes/origin/HEAD") or ""
        return default_branch(self._environment) or cloned.removeprefix("refs/remotes/origin/")


def _forms(*names: str) -> list[str]:
    """References in full that a branch's name can mean: a tag of the same name would be asked before a branch."""
    return [form for name in names for form in _references(name.removeprefix("refs/heads/").removeprefix("origin/"))]


def _references(name: str) -> Iterator[str]:
    if "/" in name:
        yield f"refs/remotes/{name}"
    yield f"refs/remotes/origin/{name}"
    yield f"refs/heads/{name}"


def _shown(reference: str) -> str:
    return reference.removeprefix("refs/remotes/").removeprefix("refs/heads/")


USUAL = ("main", "master", "trunk", "develop")
"""Branches that changes are merged into where nothing names one."""

_TARGETS = (
    "GITHUB_BASE_REF",
    "CI_MERGE_REQUEST_TARGET_BRANCH_NAME",
    "CHANGE_TARGET",
    "BUILDKITE_PULL_REQUEST_BASE_BRANCH",
    "BITBUCKET_PR_DESTINATION_BRANCH",
    "SYSTEM_PULLREQUEST_TARGETBRANCH",
)

_BASES = ("CI_MERGE_REQUEST_TARGET_BRANCH_SHA", "CI_MERGE_REQUEST_DIFF_BASE_SHA")
"""Of a merged result the tip that it was merged into; else where the change left the target, a fork's too."""

_EVENTS = {
    "GITHUB_EVENT_NAME": {"push", "merge_group", "pull_request", "pull_request_target"},
    "CI_PIPELINE_SOURCE": {"push", "merge_request_event", "external_pull_request_event"},
    "BUILD_REASON": {"IndividualCI", "BatchedCI", "PullRequest"},
    "BUILDKITE_SOURCE": {"webhook"},
    "DRONE_BUILD_EVENT": {"push", "pull_request"},
    "TRAVIS_EVENT_TYPE": {"push", "pull_request"},
}
"""What CI calls that which began a run, and the names of it that bring new commits."""


def targets(environment: Mapping[str, str]) -> list[str]:
    """The branch that a merge request is for, as CI names it; none where this is no merge request."""
    return [environment[name] for name in _TARGETS if environment.get(name)]


def named_base(environment: Mapping[str, str]) -> str:
    """The commit that a merge queue or a merge request is held against, where CI itself names it."""
    if environment.get("GITHUB_EVENT_NAME") == "merge_group":
        return _text(_event(environment), "merge_group", "base_sha")
    names = (environment[name] for name in _BASES if environment.get(name))
    return next(names, "") if targets(environment) else ""


def requested(environment: Mapping[str, str]) -> str:
    """The tip of the target branch when GitHub last looked: a newer one of the clone is the better base."""
    return _text(_event(environment), "pull_request", "base", "sha")


def default_branch(environment: Mapping[str, str]) -> str:
    """The branch that the server calls the default one; empty where CI does not say."""
    return environment.get("CI_DEFAULT_BRANCH") or _text(_event(environment), "repository", "default_branch")


def protected(environment: Mapping[str, str]) -> bool:
    """Whether this is a push to a branch that the server protects: changes are merged into it as into the usual one."""
    flags = (("GITHUB_EVENT_NAME", "GITHUB_REF_PROTECTED"), ("CI_PIPELINE_SOURCE", "CI_COMMIT_REF_PROTECTED"))
    return any(environment.get(event) == "push" and environment.get(flag) == "true" for event, flag in flags)


def pushed(environment: Mapping[str, str]) -> str:
    """The commit that a branch stood at before the push that CI tests; empty where CI does not say."""
    before = _before(environment)
    return before if before.strip("0") else ""


def unborn(environment: Mapping[str, str]) -> bool:
    """Whether CI says that the branch was not there before this push."""
    before = _before(environment)
    return bool(before) and not before.strip("0")


def brings(environment: Mapping[str, str]) -> bool:
    """Whether this run may test new commits: not one that a schedule or a person began, where CI tells that."""
    return all(environment[name] in bringing for name, bringing in _EVENTS.items() if environment.get(name))


def _before(environment: Mapping[str, str]) -> str:
    return environment.get("CI_COMMIT_BEFORE_SHA") or _text(_event(environment), "before")


def _event(environment: Mapping[str, str]) -> object:
    """What GitHub says of the event that began this run; a file that does not read says nothing."""
    path = environment.get("GITHUB_EVENT_PATH", "")
    try:
        return json.loads(Path(path).read_text(encoding="utf-8")) if path else {}
    except (OSError, ValueError, RecursionError):
        return {}


def _text(entry: object, *names: str) -> str:
    """A text some tables deep; empty where a table or the text is not there."""
    for name in names:
        entry = entry.get(name) if isinstance(entry, dict) else None
    return entry if isinstance(entry, str) else ""
