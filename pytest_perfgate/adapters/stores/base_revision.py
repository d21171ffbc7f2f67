"""The revision that a change is compared with: the merge base, by the target branch or by CI."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote

from pytest_perfgate.adapters.stores.configuration import target_at
from pytest_perfgate.model.plan import Base
from pytest_perfgate.model.project import targets

Git = Callable[..., "str | None"]
"""Returns git's answer to some arguments; ``None`` if git refuses."""

_DEEPER = "check out with fetch-depth: 0, or git fetch --unshallow"
_UNSAID = "CI does not say which commit came before this push", "set CI_COMMIT_BEFORE_SHA to that commit"
_OWN_TARGET = 'of a branch that changes are merged into: protect it, or name it: [tool.perfgate] target = "BRANCH"'
_FORK = "fetch the target branch of the project that the merge request is for, not that of a fork"


class BaseRevision:
    """The current commit of one repository, seen from its target branch."""

    def __init__(self, git: Git, environment: Mapping[str, str], head: str) -> None:
        self._git, self._environment, self._head = git, environment, head
        self._remotes = (git("remote") or "").split()
        self._remote = _usual_remote(self._remotes)

    def base(self, target: str) -> Base:
        """Return the merge base with the target branch; on that branch itself, the commit before this change."""
        if base := self._ci_base():
            return base
        for name in self._candidates(target):
            if commit := self._common(name):
                return self._checked_target(self._merge_base(name, commit), name, target)
        return self._no_base(target)

    def exists(self, revision: str) -> bool:
        return bool(self._git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"))

    def shallow(self) -> bool:
        return self._git("rev-parse", "--is-shallow-repository") == "true"

    def _common(self, name: str) -> str:
        """Return the newest commit that HEAD shares with a revision; "" if either is missing here."""
        return (self._git("merge-base", "HEAD", name) or "") if self.exists(name) else ""

    def _ci_base(self) -> Base | None:
        """Return the base that CI names; None if it names none, since a fork's own branches are its developer's."""
        name = named_base(self._environment)
        commit = self._common(name) if name else ""
        if commit and commit != self._head:
            return Base(commit=commit, name="the base that CI names")
        return self._shallow() if name and not commit and self.shallow() else None

    def _merge_base(self, name: str, commit: str) -> Base:
        """Return the base for a commit that shares this one with a target branch."""
        base = Base(commit=commit, name=f"the merge base with {_shown(name)}")
        if targets(self._environment):
            return base if commit != self._head else self._request_base(name)
        return self._target_base() if commit == self._head else self._pushed_base(base)

    def _request_base(self, name: str) -> Base:
        """Return the base of a request whose target already contains it, since that branch may be the fork's own."""
        commit = self._common(requested(self._environment) or self._head)
        if commit and commit != self._head:
            return Base(commit=commit, name="the base that CI names")
        if name not in self._forms(*targets(self._environment)):
            return self._shallow() if self.shallow() else self._absent_target()
        return Base(why=f"{_shown(name)} already contains this commit, so it cannot be its target", fix=_FORK)

    def _pushed_base(self, base: Base) -> Base:
        """Return the base of a push to another branch: a protected one's earlier tip, else the merge base."""
        pushed_from = pushed(self._environment)
        if not pushed_from or pushed_from == self._head or self._common(pushed_from) != pushed_from:
            return base
        if protected(self._environment):
            return Base(commit=pushed_from, name="what was there before this push")
        if not self._git("diff", "--name-only", base.commit, pushed_from, "--", "*.py.yaml"):
            return base
        return replace(base, why=f"not those of {pushed_from[:10]}, which was there before this push", fix=_OWN_TARGET)

    def _checked_target(self, base: Base, used: str, target: str) -> Base:
        """Return the base, with a warning if the change itself introduced the target, which may contain the change."""
        if not target or used not in self._forms(target) or used in self._forms(*targets(self._environment)):
            return base
        name, commit = self._branch_point(target)
        if not commit or target_at(self._git("show", f"{commit}:./pyproject.toml") or "") == target:
            return base
        why = f"[tool.perfgate] target names '{target}' since this change left {_shown(name)}"
        fix = f"merge that setting into {_shown(name)} by itself, or remove it"
        default = self._default()
        if self._environment.get("CI") and default and name in self._forms(default):
            return Base(commit=commit, name=f"the merge base with {_shown(name)}", why=why, fix=fix)
        older = self._git("merge-base", commit, base.commit) == commit != base.commit
        if not base.why:
            return replace(base, why=why, fix=fix) if older else base
        return replace(base, why=f"{base.why}, and {why}")

    def _branch_point(self, target: str) -> tuple[str, str]:
        """Return where this change left the first usual branch that exists and is not its target, if there is one."""
        if target and target == self._default():
            return "", ""
        others = self._forms(*(one for one in self._usual_branches() if one != target))
        name = next(filter(self.exists, others), "")
        commit = self._common(name) if name else ""
        return (name, commit) if commit and commit != self._head else ("", "")

    def _target_base(self) -> Base:
        """Return the base on the target branch: the tip before this push if CI names it, else the parent."""
        pushed_from = pushed(self._environment)
        commit = self._common(pushed_from) if pushed_from else ""
        if commit and commit != self._head:
            return Base(commit=commit, name="what was there before this push")
        new = _previous_tip(self._environment) and not pushed_from
        name, base = self._branch_point("") if new and brings(self._environment) else ("", "")
        if base:
            return Base(commit=base, name=f"the merge base with {_shown(name)}: this branch is new")
        parent = self._git("rev-parse", "--verify", "--quiet", "HEAD^1")
        if not parent:
            return self._shallow() if self.shallow() else Base(name="the first commit")
        why, fix = _UNSAID if brings(self._environment) else ("", "")
        if pushed_from:
            place = "this commit" if commit else "not in the history of this clone"
            why = f"{pushed_from[:10]}, which was there before this push, is {place}"
            fix = _DEEPER if self.shallow() else ""
        return Base(commit=parent, name="the parent", why=why, fix=fix)

    def _no_base(self, target: str) -> Base:
        if self.shallow():
            return self._shallow()
        existing = [name for name in self._candidates(target) if self.exists(name)]
        why, fix = "no target branch is known in this clone", 'name it: [tool.perfgate] target = "BRANCH"'
        if existing:
            why = f"{_shown(existing[0])} and this commit have no common commit"
        elif targets(self._environment):
            return self._absent_target()
        elif name := target or self._default():
            source = "[tool.perfgate] target names" if target else "the default branch is"
            why, fix = f"{source} '{name}', which is not a branch in this clone", _fetching(name, self._remotes)
        return Base(why=why, fix=fix)

    def _absent_target(self) -> Base:
        branch = targets(self._environment)[0]
        why = f"'{branch}', which CI names as the target, is not a branch in this clone"
        return Base(why=why, fix=f"check out with fetch-depth: 0, or {_fetching(branch, self._remotes)}")

    def _shallow(self) -> Base:
        return Base(why="this clone is shallow", fix=_DEEPER)

    def _candidates(self, target: str) -> list[str]:
        """Return the possible targets, those of CI first, because a change can edit the target in its own settings."""
        branches, others = targets(self._environment), [target] if target else self._usual_branches()
        tip = requested(self._environment) if branches else ""
        return [*self._forms(*branches), *filter(None, [tip]), *self._forms(*others)]

    def _usual_branches(self) -> list[str]:
        return [*filter(None, [self._default()]), *USUAL]

    def _default(self) -> str:
        """Return the server's default branch, as CI or the clone knows it."""
        place = f"refs/remotes/{self._remote}/"
        cloned = self._git("symbolic-ref", "--quiet", f"{place}HEAD") or ""
        return default_branch(self._environment) or cloned.removeprefix(place)

    def _forms(self, *names: str) -> list[str]:
        """Return full references for branch names, because git would prefer a tag of the same name."""
        return [form for name in names for form in _references(name, self._remote)]


def _fetching(name: str, remotes: Sequence[str]) -> str:
    """Return the command that fetches a branch to where it is looked for."""
    longest_first = sorted({usual := _usual_remote(remotes), *remotes}, key=len, reverse=True)  # a/b before a
    pairs = ((one, remote) for one in _references(name, usual) for remote in longest_first)
    place, remote = next(pair for pair in pairs if pair[0].startswith(f"refs/remotes/{pair[1]}/"))
    fetch = f"git fetch {remote} {quote(f'{place[14 + len(remote) :]}:{place}')}"  # below refs/remotes/
    return fetch if remote in remotes else f"git remote add {remote} URL, then {fetch}"


def _usual_remote(remotes: Sequence[str]) -> str:
    """Return the remote that has the target branch, if none is named: the only one, whatever its name, or origin."""
    return remotes[0] if len(remotes) == 1 else "origin"


def _references(name: str, remote: str) -> Iterator[str]:
    name = name.removeprefix("refs/heads/").removeprefix(f"{remote}/").removeprefix("origin/")
    if "/" in name:
        yield f"refs/remotes/{name}"
    yield f"refs/remotes/{remote}/{name}"
    yield f"refs/heads/{name}"


def _shown(reference: str) -> str:
    return reference.removeprefix("refs/remotes/").removeprefix("refs/heads/")


USUAL = ("main", "master", "trunk", "develop")
"""Branches that changes are usually merged into, if none is named."""

_BASES = ("CI_MERGE_REQUEST_TARGET_BRANCH_SHA", "CI_MERGE_REQUEST_DIFF_BASE_SHA")
"""For a merged result the tip it was merged into; else where the change left the target, also from a fork."""

_BEFORE = ("CI_COMMIT_BEFORE_SHA", "CODEBUILD_WEBHOOK_PREV_COMMIT", "DRONE_COMMIT_BEFORE", "GIT_PREVIOUS_COMMIT")
_EVENTS = {
    "GITHUB_EVENT_NAME": {"push", "merge_group", "pull_request", "pull_request_target"},
    "CI_PIPELINE_SOURCE": {"push", "merge_request_event", "external_pull_request_event"},
    "BUILD_REASON": {"IndividualCI", "BatchedCI", "PullRequest"}, "BUILDKITE_SOURCE": {"webhook"},
    "DRONE_BUILD_EVENT": {"push", "pull_request"}, "TRAVIS_EVENT_TYPE": {"push", "pull_request"},
}  # fmt: skip
"""CI's variables for the kind of a run's trigger, with the kinds that bring new commits."""


def named_base(environment: Mapping[str, str]) -> str:
    """Return the commit that CI names as the base of a merge queue or a merge request, or ""."""
    if environment.get("GITHUB_EVENT_NAME") == "merge_group":
        return _text(_event(environment), "merge_group", "base_sha")
    return next(filter(None, map(environment.get, _BASES)), "") if targets(environment) else ""


def requested(environment: Mapping[str, str]) -> str:
    """Return the target branch's tip when GitHub last looked; a newer one in the clone is the better base."""
    return _text(_event(environment), "pull_request", "base", "sha")


def default_branch(environment: Mapping[str, str]) -> str:
    """Return the server's default branch, or "" if CI does not name it."""
    return environment.get("CI_DEFAULT_BRANCH") or _text(_event(environment), "repository", "default_branch")


def protected(environment: Mapping[str, str]) -> bool:
    """Return whether this is a push to a protected branch, into which changes are merged as into the usual one."""
    flags = (("GITHUB_EVENT_NAME", "GITHUB_REF_PROTECTED"), ("CI_PIPELINE_SOURCE", "CI_COMMIT_REF_PROTECTED"))
    return any(environment.get(event) == "push" and environment.get(flag) == "true" for event, flag in flags)


def pushed(environment: Mapping[str, str]) -> str:
    """Return the commit of the branch before the tested push, or "" if CI does not name it."""
    before = _previous_tip(environment)
    return before if before.strip("0") else ""


def kept_before(root: Path, folder: str, environment: Mapping[str, str]) -> bool:
    """Return whether a revision that this change may have left has the folder; the exact base is found later."""
    from pytest_perfgate.adapters.system.git import ask_git

    listed = ask_git(root, "remote", env=environment)
    remotes = listed.stdout.decode("utf-8", "surrogateescape").split() if listed is not None else []
    revisions = dict.fromkeys(_revisions(environment, _usual_remote(remotes)))
    stdin = "".join(f"{revision}:./{folder}\n" for revision in revisions).encode("utf-8", "surrogateescape")
    done = ask_git(root, "cat-file", "--batch-check", env=environment, stdin=stdin)
    return done is not None and any(line.split()[1:2] == [b"tree"] for line in done.stdout.splitlines())


def _revisions(environment: Mapping[str, str], remote: str) -> Iterator[str]:
    yield from filter(None, (named_base(environment), requested(environment), pushed(environment)))
    yield "HEAD^1"
    for branch in filter(None, (*targets(environment), default_branch(environment), *USUAL)):
        yield from _references(branch, remote)
    yield f"refs/remotes/{remote}/HEAD"


def brings(environment: Mapping[str, str]) -> bool:
    """Return whether this run may test new commits; False if CI says that a schedule or a person started it."""
    return all(environment[name] in bringing for name, bringing in _EVENTS.items() if environment.get(name))


def _previous_tip(environment: Mapping[str, str]) -> str:
    return next(filter(None, map(environment.get, _BEFORE)), None) or _text(_event(environment), "before")


def _event(environment: Mapping[str, str]) -> object:
    """Return GitHub's event that started this run; an empty table if there is none or its file is unreadable."""
    try:
        return json.loads(Path(environment.get("GITHUB_EVENT_PATH", "")).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}


def _text(entry: object, *names: str) -> str:
    """Return a text in nested tables; "" if a table or the text is missing."""
    for name in names:
        entry = entry.get(name) if isinstance(entry, dict) else None
    return entry if isinstance(entry, str) else ""
