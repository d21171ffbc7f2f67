"""What CI says of the change under test: its target, its base, the push that brought it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

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
    told = (environment[name] for name in _BASES if environment.get(name))
    return next(told, "") if targets(environment) else ""


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
    told = _before(environment)
    return told if told.strip("0") else ""


def unborn(environment: Mapping[str, str]) -> bool:
    """Whether CI says that the branch was not there before this push."""
    told = _before(environment)
    return bool(told) and not told.strip("0")


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
    except (OSError, ValueError):
        return {}


def _text(told: object, *names: str) -> str:
    """A text some tables deep; empty where a table or the text is not there."""
    for name in names:
        told = told.get(name) if isinstance(told, dict) else None
    return told if isinstance(told, str) else ""
