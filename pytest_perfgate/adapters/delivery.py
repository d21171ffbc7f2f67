"""Webhook, PR comment, files."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Effect
from pytest_perfgate.model.verdict import RunReport

MARK = "<!-- pytest-perfgate -->"

Comment = Callable[[RunReport], str]

_LARGEST = 60_000

_PAGE = 100

_PAGES = 30


class _Place:
    """Where comments are listed, made and edited."""

    def __init__(self, base: str, headers: Mapping[str, str], edit: Callable[[Any], tuple[str, str]]) -> None:
        self.base, self.headers, self.edit = base, headers, edit

    def deliver(self, text: str) -> str:
        body = {"body": _fitting(f"{MARK}\n{text}")}
        for comment in self._comments():
            if MARK in str(comment.get("body", "")):
                method, url = self.edit(comment)
                sent(method, url, headers=self.headers, body=body)
                return f"edited the comment at {shown(url)}"
        sent("POST", self.base, headers=self.headers, body=body)
        return f"commented at {shown(self.base)}"

    def _comments(self) -> Iterator[Any]:
        for page in range(1, _PAGES + 1):
            comments = sent("GET", f"{self.base}?per_page={_PAGE}&page={page}", headers=self.headers) or []
            yield from comments
            if len(comments) < _PAGE:
                return


def _fitting(text: str) -> str:
    """Hosts refuse very long comments; the end is left out and that is said."""
    return (
        text if len(text) <= _LARGEST else text[:_LARGEST].rpartition("\n")[0] + "\n\n... the rest is in the record\n"
    )


class GithubComment:
    """A comment on a GitHub pull request; target: ``OWNER/NAME#NUMBER``, else taken from the job."""

    name = "github"

    def __init__(self, comment: Comment, environment: Mapping[str, str] = os.environ) -> None:
        self._comment, self._environment = comment, environment

    def deliver(self, report: RunReport, target: str) -> str:
        environment = self._environment
        token = _needed(environment, "GITHUB_TOKEN", "a token that may write comments")
        repository, _, number = target.partition("#") if target else (environment.get("GITHUB_REPOSITORY", ""), "", "")
        number = number or _github_number(environment)
        if not repository or not number:
            mend = "run in a pull request's job, or name it: github:OWNER/NAME#12"
            raise PerfgateError("delivery-failed", "there is no pull request to comment on", mend=mend)
        api = environment.get("GITHUB_API_URL", "https://api.github.com")
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
        issues = f"{api}/repos/{repository}/issues"
        place = _Place(f"{issues}/{number}/comments", headers, lambda c: ("PATCH", f"{issues}/comments/{c['id']}"))
        return place.deliver(self._comment(report))


def _github_number(environment: Mapping[str, str]) -> str:
    """The number of the pull request, from the event that started the job."""
    path = environment.get("GITHUB_EVENT_PATH", "")
    try:
        event = json.loads(Path(path).read_text(encoding="utf-8")) if path else {}
    except (OSError, ValueError):
        event = {}
    number = event.get("number") or (event.get("pull_request") or {}).get("number")
    return str(number or "")


class GitlabComment:
    """A note on a GitLab merge request; target: ``PROJECT!NUMBER``, else taken from the job."""

    name = "gitlab"

    def __init__(self, comment: Comment, environment: Mapping[str, str] = os.environ) -> None:
        self._comment, self._environment = comment, environment

    def deliver(self, report: RunReport, target: str) -> str:
        environment = self._environment
        token = _needed(environment, "GITLAB_TOKEN", "a project token with the api scope")
        project, _, number = target.partition("!")
        project = project or environment.get("CI_PROJECT_ID", "")
        number = number or environment.get("CI_MERGE_REQUEST_IID", "")
        if not project or not number:
            mend = "run in a merge request's job, or name it: gitlab:GROUP/NAME!12"
            raise PerfgateError("delivery-failed", "there is no merge request to comment on", mend=mend)
        api = environment.get("CI_API_V4_URL", "https://gitlab.com/api/v4")
        notes = f"{api}/projects/{quote(project, safe='')}/merge_requests/{number}/notes"
        place = _Place(notes, {"PRIVATE-TOKEN": token}, lambda c: ("PUT", f"{notes}/{c['id']}"))
        return place.deliver(self._comment(report))


def _needed(environment: Mapping[str, str], name: str, what: str) -> str:
    if not environment.get(name):
        raise PerfgateError("delivery-failed", f"{name} is not set: {what}", mend=f"give the job {name}")
    return environment[name]


_TRIES = 3

_TIMEOUT = (5.0, 30.0)

_WAIT = 0.5


def sent(method: str, url: str, *, headers: Mapping[str, str], body: Any = None) -> Any:
    """The server's answer as JSON, ``None`` where it has none."""
    import requests

    last = ""
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_WAIT * 2 ** (attempt - 1))
        try:
            answer = requests.request(method, url, headers=dict(headers), json=body, timeout=_TIMEOUT)
        except requests.RequestException as fault:
            last = type(fault).__name__
            continue
        if answer.status_code < 300:
            return answer.json() if answer.content else None
        last = f"the server answers {answer.status_code} {answer.reason}"
        if answer.status_code < 500 and answer.status_code != 429:
            break
    raise PerfgateError("delivery-failed", last, place=shown(url))


def shown(url: str) -> str:
    """The address without user, password and query, fit for a log."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


class Webhook:
    """Posts to the target, or to PERFGATE_WEBHOOK, which keeps the address out of logs."""

    name = "webhook"

    def __init__(self, comment: Callable[[RunReport], str], environment: Mapping[str, str] = os.environ) -> None:
        self._comment, self._environment = comment, environment

    def deliver(self, report: RunReport, target: str) -> str:
        url = target or self._environment.get("PERFGATE_WEBHOOK", "")
        if not url:
            raise PerfgateError(
                "delivery-failed", "no address was named", mend="write webhook:URL, or set PERFGATE_WEBHOOK"
            )
        text = self._comment(report)
        body = {
            "text": text,
            "failed": [str(case.key) for case in report.cases if case.effect is Effect.FAIL],
            "outcomes": dict(Counter(case.worst.value for case in report.cases)),
            "commit": report.environment.commit,
            "complete": report.complete,
        }
        sent("POST", url, headers={}, body=body)
        return f"posted to {shown(url)}"


class File:
    """Writes what a renderer makes of the report."""

    def __init__(self, name: str, render: Callable[[RunReport], bytes]) -> None:
        self.name, self._render = name, render

    def deliver(self, report: RunReport, target: str) -> str:
        if not target:
            raise PerfgateError("delivery-failed", "no file was named", mend=f"write {self.name}:FILE")
        path, data = Path(target), self._render(report)
        try:
            made = "" if path.parent.is_dir() else f", and made the folder {path.parent}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except OSError as fault:
            mend = "name a file in a folder that you may write to"
            raise PerfgateError("delivery-failed", f"it cannot be written: {fault}", mend=mend, place=target) from fault
        return f"wrote {target}{made}"
