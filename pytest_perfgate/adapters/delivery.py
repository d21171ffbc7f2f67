"""Delivering reports: comments, check runs and annotations of a change, webhooks, files."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

from pytest_perfgate.clock import HOST_CLOCK
from pytest_perfgate.model.errors import PerfgateError, without_secrets
from pytest_perfgate.model.plan import Effect
from pytest_perfgate.model.verdict import Annotation, Posting, RunReport

MARK = "<!-- pytest-perfgate"
"""The first line of our comments; their key follows."""

_UNKEYED = f"{MARK} -->"
"""The first line of versions with one comment for all jobs."""

_LARGEST = 60_000

_TITLE = 255
"""The most characters of an annotation's title; GitHub refuses a check run with a longer one."""

_PAGE, _PAGES = 100, 30

_PLAIN = Posting()


class Words(Protocol):
    """The texts of a report."""

    def comment(self, report: RunReport, *, only_changes: bool = False) -> str: ...

    def clean(self, report: RunReport) -> str:
        """Return one line if nobody needs to act, else ""."""

    def annotations(self, report: RunReport) -> Sequence[Annotation]: ...

    def conclusion(self, report: RunReport) -> str: ...


class _Place:
    """Where comments are listed, made and edited."""

    def __init__(self, base: str, headers: Mapping[str, str], edit: Callable[[Any], tuple[str, str]]) -> None:
        self.base, self.headers, self.edit = base, headers, edit

    def deliver(self, text: str, clean: str, posting: Posting) -> str:
        """Edit the comment of this key, or make one; a clean run makes none, and reduces an earlier one to a line."""
        mark = f"{MARK} {posting.key} -->"
        body = {"body": _shortened(f"{mark}\n{clean or text}")}
        if posting.dry_run:
            place = without_secrets(self.base)
            into = "a clean run makes no comment, and an earlier one becomes" if clean else f"for {place}"
            return f"nothing was sent; {into}:\n{body['body'].rstrip()}"
        comments = [one for one in self._comments() if _begins(one, MARK)]
        own_comments = [one for one in comments if _begins(one, mark)] or [
            one for one in comments if _begins(one, _UNKEYED)
        ]
        if own_comments:  # a host that answered too late has several, and none may keep an old verdict
            first, *_ = [self._written(*self.edit(one), body) for one in own_comments]
            return f"edited the comment at {first}"
        if clean:
            return f"no comment: {clean}"
        return f"commented at {self._written('POST', self.base, body)}"

    def _comments(self) -> Iterator[Any]:
        for page in range(1, _PAGES + 1):
            comments = api_answer(list, "GET", f"{self.base}?per_page={_PAGE}&page={page}", headers=self.headers)
            yield from (
                comment for comment in comments if isinstance(comment, dict) and isinstance(comment.get("id"), int)
            )
            if len(comments) < _PAGE:
                return

    def _written(self, method: str, url: str, body: Any) -> str:
        """Return the address for viewing what was written, as the host reports it, else the request's address."""
        page = api_answer(dict, method, url, headers=self.headers, body=body).get("html_url", "")
        return without_secrets(page if isinstance(page, str) and page.startswith(("https://", "http://")) else url)


def _begins(comment: Any, mark: str) -> bool:
    """Return whether a comment begins with a mark; a person's may quote one."""
    return str(comment.get("body", "")).lstrip().startswith(mark)


def keyed(posting: Posting, report: RunReport, job: str) -> Posting:
    """Add the key of a comment if none was given: that of a merged record, or of this job."""
    key = posting.key or ("merged" if len(report.shards) > 1 else job or "run")
    plain = re.sub(r"[^\w./ ]+|-{2,}", "-", key)[:120]
    return Posting(key=plain, only_changes=posting.only_changes, dry_run=posting.dry_run)


def _shortened(text: str) -> str:
    """Return the text; if it is longer than hosts accept, with its end cut, open blocks closed, and a mark."""
    if len(text) <= _LARGEST:
        return text
    begun = text[:_LARGEST].rpartition("\n")[0]
    begun += "\n" + "`" * 80 if begun.count("\n```") % 2 else ""  # a fence may be closed by a longer one
    ends = "\n</details>" * (begun.count("\n<details>") - begun.count("\n</details>"))
    return f"{begun}\n{ends}\n\n... the rest is in the record\n"


class _Forge:
    """A host of changes, as the environment of a job names it."""

    def __init__(self, words: Words, environment: Mapping[str, str] = os.environ, posting: Posting = _PLAIN) -> None:
        self._words, self._environment, self._posting = words, environment, posting

    def posting(self, how: Posting) -> Any:
        return type(self)(self._words, self._environment, how)


class _Github(_Forge):
    """The repository, the change and the token of a job."""

    def _headers(self) -> dict[str, str]:
        dry = self._posting.dry_run
        token = "" if dry else _required(self._environment, "GITHUB_TOKEN", "a token that may write to the change")
        return {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}

    def _repository(self, name: str) -> str:
        """Return the address of a repository; without a name, that of the job."""
        name = name or self._environment.get("GITHUB_REPOSITORY", "OWNER/NAME" if self._posting.dry_run else "")
        if not name:
            fix = "run in a job, or name it: github:OWNER/NAME#12"
            raise PerfgateError("delivery-failed", "there is no repository to write to", fix=fix)
        return f"{self._environment.get('GITHUB_API_URL', 'https://api.github.com')}/repos/{name}"

    def _event(self) -> Any:
        path = self._environment.get("GITHUB_EVENT_PATH", "")
        try:
            event = json.loads(Path(path).read_text(encoding="utf-8")) if path else {}
        except (OSError, ValueError, RecursionError):
            event = {}
        return event if isinstance(event, dict) else {}

    def _change(self) -> Any:
        """Return the event's change as a table, whatever the event contains."""
        change = self._event().get("pull_request")
        return change if isinstance(change, dict) else {}

    def _job(self) -> str:
        return self._environment.get("GITHUB_JOB", "")


class GithubComment(_Github):
    """A comment on a GitHub pull request; target: ``OWNER/NAME#NUMBER``, else taken from the job."""

    name = "github"

    def deliver(self, report: RunReport, target: str) -> str:
        posting = keyed(self._posting, report, self._job())
        repository, _, number = target.partition("#")
        number = number or _number(self._event().get("number") or self._change().get("number"))
        if posting.dry_run:  # printed wherever it is tried
            repository, number = repository or self._environment.get("GITHUB_REPOSITORY", "OWNER/NAME"), number or "12"
        if not (repository or self._environment.get("GITHUB_REPOSITORY")) or not number:
            fix = "run in a pull request's job, or name it: github:OWNER/NAME#12"
            raise PerfgateError("delivery-failed", "there is no pull request to comment on", fix=fix)
        issues = f"{self._repository(repository)}/issues"
        edit: Callable[[Any], tuple[str, str]] = lambda comment: ("PATCH", f"{issues}/comments/{comment['id']}")  # noqa: E731
        place = _Place(f"{issues}/{number}/comments", self._headers(), edit)
        text = self._words.comment(report, only_changes=posting.only_changes)
        return place.deliver(text, self._words.clean(report), posting)


def _number(value: Any) -> str:
    """Return the number of a change; raise for other text, which would form another address."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


class GithubCheck(_Github):
    """A check run on the commit of a job, neutral if verdicts are open; target: ``OWNER/NAME@COMMIT``."""

    name = "check"

    def deliver(self, report: RunReport, target: str) -> str:
        repository, _, commit = target.partition("@")
        head = self._change().get("head")
        named = str(head.get("sha") or "") if isinstance(head, dict) else ""
        commit = commit or named or self._environment.get("GITHUB_SHA", "") or report.environment.commit
        if not commit:
            fix = "name it: check:OWNER/NAME@COMMIT"
            raise PerfgateError("delivery-failed", "there is no commit to check", fix=fix)
        summary = self._words.clean(report) or self._words.comment(report, only_changes=True)
        key = keyed(self._posting, report, self._job()).key
        body = {
            "name": f"perfgate {key}",
            "head_sha": commit,
            "status": "completed",
            "conclusion": self._words.conclusion(report),
            "output": {
                "title": summary.partition("\n")[0].lstrip("# "),
                "summary": _shortened(summary),
                "annotations": [_located(annotation) for annotation in self._words.annotations(report)],
            },
        }
        url = f"{self._repository(repository)}/check-runs"
        if self._posting.dry_run:
            return f"nothing was sent; for {without_secrets(url)}:\n{json.dumps(body, indent=1)}"
        api_answer(dict, "POST", url, headers=self._headers(), body=body)
        return f"checked {commit[:10]}: {body['conclusion']}"


class GithubAnnotations(_Github):
    """Annotations on tests that need attention, as commands on the standard output of a job."""

    name = "annotations"

    def deliver(self, report: RunReport, target: str) -> str:
        del target
        remarks = self._words.annotations(report)
        for annotation in remarks:
            place = _located(annotation)
            level = "error" if annotation.level == "failure" else "warning"
            where = f"file={_property(annotation.path)},line={place['start_line']},title={_property(annotation.title)}"
            sys.stdout.write(f"::{level} {where}::{_data(annotation.message)}\n")
        return f"annotated {len(remarks)} test{'s' * (len(remarks) != 1)}"


def _located(annotation: Annotation) -> dict[str, Any]:
    """Return the annotation at its test's line in the working copy, or at the first line if the test is not there."""
    line = _line(Path(annotation.path), annotation.test)
    return {
        "path": annotation.path, "start_line": line, "end_line": line,
        "annotation_level": annotation.level, "title": annotation.title[:_TITLE], "message": annotation.message,
    }  # fmt: skip


def _line(path: Path, test: str) -> int:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return 1
    begins = re.compile(rf"\s*(async\s+)?def\s+{re.escape(test)}\b")
    return next((number for number, text in enumerate(lines, 1) if begins.match(text)), 1)


def _data(text: str) -> str:
    """Return text of a GitHub command, with its separators escaped."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


class GitlabComment(_Forge):
    """A note on a GitLab merge request; target: ``PROJECT!NUMBER``, else taken from the job."""

    name = "gitlab"

    def deliver(self, report: RunReport, target: str) -> str:
        environment = self._environment
        dry = self._posting.dry_run
        token = "" if dry else _required(environment, "GITLAB_TOKEN", "a project token with the api scope")
        project, _, number = target.partition("!")
        project = project or environment.get("CI_PROJECT_ID", "")
        number = number or environment.get("CI_MERGE_REQUEST_IID", "")
        if dry:
            project, number = project or "GROUP/NAME", number or "12"
        if not project or not number:
            fix = "run in a merge request's job, or name it: gitlab:GROUP/NAME!12"
            raise PerfgateError("delivery-failed", "there is no merge request to comment on", fix=fix)
        api = environment.get("CI_API_V4_URL", "https://gitlab.com/api/v4")
        notes = f"{api}/projects/{quote(project, safe='')}/merge_requests/{number}/notes"
        place = _Place(notes, {"PRIVATE-TOKEN": token}, lambda comment: ("PUT", f"{notes}/{comment['id']}"))
        posting = keyed(self._posting, report, environment.get("CI_JOB_NAME", ""))
        text = self._words.comment(report, only_changes=posting.only_changes)
        return place.deliver(text, self._words.clean(report), posting)


def _required(environment: Mapping[str, str], name: str, what: str) -> str:
    if not environment.get(name):
        raise PerfgateError("delivery-failed", f"{name} is not set: {what}", fix=f"give the job {name}")
    return environment[name]


_TRIES = 4

_TIMEOUT = (5.0, 30.0)

_WAIT = 0.5

_LONGEST_WAIT = 60.0
"""The most seconds that a host may ask to wait before the next try."""

T = TypeVar("T")


def api_answer(kind: type[T], method: str, url: str, *, headers: Mapping[str, str], body: Any = None) -> T:
    """Return the answer of a host's API; raise for other content, such as a sign-in page, which stored nothing."""
    try:
        answer = json.loads(server_answer(method, url, headers=headers, body=body) or b"null")
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, kind):
        fix = "a proxy or a sign-in page may answer for the host: check the address that the job names"
        what = "the answer is not one of this host's API"
        raise PerfgateError("delivery-failed", what, fix=fix, place=without_secrets(url))
    return answer


def server_answer(method: str, url: str, *, headers: Mapping[str, str], body: Any = None, place: str = "") -> bytes:
    """Return the server's answer; requested waits are kept, and redirects are not followed."""
    import requests

    last = ""
    for attempt in range(_TRIES):
        wait = _WAIT * 2**attempt
        try:
            answer = requests.request(
                method, url, headers=dict(headers), json=body, timeout=_TIMEOUT, allow_redirects=False
            )
        except requests.RequestException as fault:
            last = type(fault).__name__
        else:
            if answer.status_code < 300:
                return bytes(answer.content)
            last = f"the server answers {answer.status_code} {answer.reason}"
            requested = _asked_to_wait(answer.headers)
            if answer.status_code < 500 and answer.status_code != 429 and requested is None:
                break
            wait = wait if requested is None else requested
            if wait > _LONGEST_WAIT:
                last += f", and asks to wait {wait:.0f} s"
                break
        if attempt + 1 < _TRIES:
            time.sleep(wait)
    raise PerfgateError("delivery-failed", last, place=place or without_secrets(url))


def _asked_to_wait(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a host asks to wait: after too many requests, or until its hourly limit is reset."""
    names = ("Retry-After", "x-ratelimit-remaining", "x-ratelimit-reset")
    after, remaining, reset = (headers.get(name, "") for name in names)
    if after.strip().isdecimal():
        return float(after)
    if remaining.strip() == "0" and reset.strip().isdecimal():
        return max(0.0, float(reset) - HOST_CLOCK.date())
    return None


class Webhook:
    """Posts to the target, or to PERFGATE_WEBHOOK, which keeps the address out of logs."""

    name = "webhook"

    def __init__(self, words: Words, environment: Mapping[str, str] = os.environ) -> None:
        self._words, self._environment = words, environment

    def deliver(self, report: RunReport, target: str) -> str:
        url = target or self._environment.get("PERFGATE_WEBHOOK", "")
        if not url:
            raise PerfgateError(
                "delivery-failed", "no address was named", fix="write webhook:URL, or set PERFGATE_WEBHOOK"
            )
        text = self._words.comment(report)
        body = {
            "text": text,
            "failed": [str(case.key) for case in report.cases if case.effect is Effect.FAIL],
            "outcomes": dict(Counter(case.worst.value for case in report.cases)),
            "commit": report.environment.commit,
            "complete": report.complete,
        }
        shown = re.match(r"\w+://[^/]*", without_secrets(url))  # chat services have their key in the path
        host = shown[0] if shown else "the address of the webhook"
        server_answer("POST", url, headers={}, body=body, place=host)
        return f"posted to {host}"


class File:
    """Writes a renderer's output to a file, or prints it for ``-``."""

    def __init__(self, name: str, render: Callable[[RunReport], bytes]) -> None:
        self.name, self._render = name, render

    def deliver(self, report: RunReport, target: str) -> str:
        if not target:
            raise PerfgateError("delivery-failed", "no file was named", fix=f"write {self.name}:FILE")
        path, data = Path(target), self._render(report)
        if target == "-":
            return data.decode("utf-8").rstrip("\n")
        try:
            folder_note = "" if path.parent.is_dir() else f", and made the folder {path.parent}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except OSError as fault:
            fix = "name a file in a folder that you may write to"
            raise PerfgateError("delivery-failed", f"it cannot be written: {fault}", fix=fix, place=target) from fault
        return f"wrote {target}{folder_note}"
