"""Every delivery takes a report somewhere, against a server of our own."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pytest_perfgate.adapters import delivery as delivery_module
from pytest_perfgate.adapters.delivery import (
    MARK,
    GithubAnnotations,
    GithubCheck,
    GithubComment,
    GitlabComment,
    Webhook,
)
from pytest_perfgate.clock import HOST_CLOCK
from pytest_perfgate.core.render.html import CommentWords, render_comment
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Effect, Outcome
from pytest_perfgate.model.verdict import CaseReport, Excuse, Posting, RunReport, SuiteNote
from pytest_perfgate.wiring.stores import deliveries
from tests.reports import case, run

WORDS = CommentWords()
CLEAN = run(case("test_same", 1e6, 1e6))
REPORT = run(case("test_slow[`x`|y]", 1.2e6, 1e6, Outcome.REGRESSED), case("test_same", 1e6, 1e6))


class Long(CommentWords):
    def comment(self, report: RunReport, *, only_changes: bool = False) -> str:
        del report, only_changes
        lines = "a line\n" * 10_000
        return f"<details><summary>all</summary>\n\n````text\n{lines}````\n\n</details>\n"


def test_a_comment_that_is_cut_closes_what_it_opened() -> None:
    text = GithubComment(Long(), {}, Posting(dry_run=True)).deliver(REPORT, "")
    assert 59_000 < len(text) < 61_000
    fence, *ends = text.splitlines()[-5:]
    assert (set(fence), ends) == ({"`"}, ["", "</details>", "", "... the rest is in the record"])


class Host(BaseHTTPRequestHandler):
    comments: list[dict] = []
    checks: list[dict] = []
    requests: list[tuple[str, str]] = []
    failures = 0
    refusals: list[tuple[int, dict[str, str]]] = []

    def answer(self) -> None:
        path = urlsplit(self.path).path
        type(self).requests.append((self.command, path))
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        if Host.failures:
            type(self).failures -= 1
            return self.send(503, None)
        if Host.refusals:
            status, headers = Host.refusals.pop(0)
            return self.send(status, None, headers)
        if self.command == "GET":
            page = int(dict(p.split("=") for p in urlsplit(self.path).query.split("&"))["page"])
            return self.send(200, Host.comments[(page - 1) * 100 : page * 100])
        if path.endswith("/check-runs"):
            Host.checks.append(body)
        elif self.command == "POST":
            Host.comments.append({"id": len(Host.comments), **body})
        else:
            Host.comments[int(path.rpartition("/")[2])].update(body)
        return self.send(200, {})

    do_GET = do_POST = do_PATCH = do_PUT = answer

    def send(self, status: int, body: object, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


waits: list[float] = []


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    waits.clear()
    monkeypatch.setattr(delivery_module.time, "sleep", waits.append)
    Host.comments, Host.requests, Host.failures = [{"id": n, "body": "nice"} for n in range(130)], [], 0
    Host.checks, Host.refusals = [], []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Host)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def github(url: str, tmp_path: Path) -> GithubComment:
    (tmp_path / "event.json").write_text('{"pull_request": {"number": 7}}')
    names = {
        "GITHUB_TOKEN": "t0ken",
        "GITHUB_REPOSITORY": "a/b",
        "GITHUB_API_URL": url,
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
    }
    return GithubComment(WORDS, names)


def gitlab(url: str, tmp_path: Path) -> GitlabComment:
    names = {"GITLAB_TOKEN": "t0ken", "CI_PROJECT_ID": "a/b", "CI_MERGE_REQUEST_IID": "7", "CI_API_V4_URL": url}
    return GitlabComment(WORDS, names)


@pytest.mark.parametrize("make", [github, gitlab])
def test_one_comment_edited_in_place(make, url: str, tmp_path: Path) -> None:
    delivery = make(url, tmp_path)
    assert delivery.deliver(REPORT, "").startswith("commented at")
    assert delivery.deliver(run(), "").startswith("edited the comment at")
    ours = [c["body"] for c in Host.comments if MARK in c["body"]]
    assert len(ours) == 1
    assert "nothing measured" in ours[0]


@pytest.mark.parametrize("make", [github, gitlab])
def test_a_busy_server_is_asked_again(make, url: str, tmp_path: Path) -> None:
    Host.failures = 2
    make(url, tmp_path).deliver(REPORT, "")
    Host.failures = 4
    with pytest.raises(PerfgateError, match="503") as caught:
        make(url, tmp_path).deliver(REPORT, "")
    assert "t0ken" not in str(caught.value)


@pytest.mark.parametrize("delivery", [GithubComment(WORDS, {}), GitlabComment(WORDS, {}), Webhook(WORDS, {})])
def test_without_a_token_or_an_address(delivery) -> None:
    with pytest.raises(PerfgateError, match="delivery-failed"):
        delivery.deliver(REPORT, "")


@pytest.mark.parametrize(("make", "token"), [(GithubComment, "GITHUB_TOKEN"), (GitlabComment, "GITLAB_TOKEN")])
def test_outside_of_a_request(make, token: str) -> None:
    with pytest.raises(PerfgateError, match="request to comment on"):
        make(WORDS, {token: "t"}).deliver(REPORT, "")


@pytest.mark.parametrize("event", ["[" * 10**6, '{"pull_request": [7]}', '{"number": ["7/../../8"]}'])
def test_an_event_that_is_none_of_a_change_names_none(event: str, tmp_path: Path, url: str) -> None:
    (tmp_path / "event.json").write_text(event)
    names = {"GITHUB_TOKEN": "t", "GITHUB_REPOSITORY": "a/b", "GITHUB_API_URL": url, "GITHUB_SHA": "c0ffee"}
    names["GITHUB_EVENT_PATH"] = str(tmp_path / "event.json")
    with pytest.raises(PerfgateError, match="request to comment on"):
        GithubComment(WORDS, names).deliver(REPORT, "")
    assert GithubCheck(WORDS, names).deliver(CLEAN, "") == "checked c0ffee: success"


def test_a_webhook_tells_programs(url: str) -> None:
    hook = Webhook(WORDS, {"PERFGATE_WEBHOOK": f"{url}/services/T0/s3cret?key=secret"})
    assert hook.deliver(REPORT, "") == f"posted to {url}"
    assert Host.comments[-1]["failed"] == ["tests/test_k.py::test_slow[`x`|y]"]
    assert Host.comments[-1]["outcomes"] == {"regressed": 1, "passed": 1}


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("http://[bad/services/key", "http://[bad"),
        ("hooks.example.com/services/key", "the address of the webhook"),
        ("http://user:secret/word@127.0.0.1:1/key", "http://127.0.0.1:1"),
    ],
)
def test_an_address_that_cannot_be_posted_to_is_not_quoted_whole(address: str, place: str) -> None:
    with pytest.raises(PerfgateError) as error:
        Webhook(WORDS, {}).deliver(REPORT, address)
    assert (error.value.code.name, error.value.place) == ("delivery-failed", place)


def test_a_failed_webhook_shows_no_path_of_its_address(url: str) -> None:
    Host.refusals = [(404, {})]
    with pytest.raises(PerfgateError, match="404") as refused:
        Webhook(WORDS, {}).deliver(REPORT, f"{url}/services/T0/s3cret")
    assert refused.value.place == url


def test_a_long_name_does_not_fail_a_check_run(url: str) -> None:
    environment = {"GITHUB_TOKEN": "t", "GITHUB_REPOSITORY": "a/b", "GITHUB_API_URL": url, "GITHUB_SHA": "c0ffee"}
    report = run(case(f"test_slow[{'x' * 400}]", 1.2e6, 1e6, Outcome.REGRESSED))
    GithubCheck(WORDS, environment).deliver(report, "")
    (check,) = Host.checks
    assert [len(one["title"]) for one in check["output"]["annotations"]] == [255], "GitHub takes no longer title"


@pytest.mark.parametrize("name", ["json", "html", "markdown"])
def test_files(name: str, tmp_path: Path) -> None:
    delivery = next(d for d in deliveries(tmp_path) if d.name == name)
    target = tmp_path / "out" / "report"
    assert delivery.deliver(REPORT, str(target)) == f"wrote {target}, and made the folder {target.parent}"
    assert delivery.deliver(REPORT, str(target)) == f"wrote {target}"
    assert b"test_slow" in target.read_bytes()
    assert "test_slow" in delivery.deliver(REPORT, "-"), "to standard output, by who asks for it"
    with pytest.raises(PerfgateError, match="delivery-failed"):
        delivery.deliver(REPORT, "")
    for place in (tmp_path, target / "below"):
        with pytest.raises(PerfgateError, match="delivery-failed") as refused:
            delivery.deliver(REPORT, str(place))
        assert "that you may write to" in str(refused.value)


def test_the_comment_keeps_its_form() -> None:
    text = render_comment(REPORT)
    assert text.startswith(
        "### perfgate: 1 failed\n\n2 cases: 1 regressed, 1 passed. Commit `c0ffee1234` on `NVIDIA H200`.\n"
    )
    assert "```text\nREGRESSED  test_slow[`x`|y]  time  +20.0 %" in text
    assert r"test\_slow\[\`x\`\|y\]" in text
    assert text.rstrip().endswith("</details>")


def test_a_note_of_the_comment_says_of_which_tests() -> None:
    note = SuiteNote(kind="dropped", effect=Effect.FAIL, text="1 accepted case no longer collected", names=("t.py::a",))
    assert "1 accepted case no longer collected: t.py::a" in render_comment(replace(CLEAN, notes=(note,)))


def ours() -> list[str]:
    return [comment["body"] for comment in Host.comments if MARK in comment["body"]]


def test_each_job_has_a_comment_and_one_without_a_key_is_taken_over(url: str, tmp_path: Path) -> None:
    Host.comments.append({"id": 130, "body": f"{MARK} -->\nof an earlier version"})
    delivery = github(url, tmp_path)
    for key in ("h100", "h200", "h100"):
        delivery.posting(Posting(key=key)).deliver(REPORT, "")
    assert [body.partition("\n")[0] for body in ours()] == [f"{MARK} h100 -->", f"{MARK} h200 -->"]


@pytest.mark.parametrize("make", [github, gitlab])
def test_a_comment_that_was_stored_twice_is_edited_twice(make, url: str, tmp_path: Path) -> None:
    Host.comments += [{"id": n, "body": f"{MARK} k -->\nREGRESSED"} for n in (130, 131)]
    make(url, tmp_path).posting(Posting(key="k")).deliver(CLEAN, "")
    assert [body for body in ours() if "REGRESSED" in body] == []


def test_a_comment_that_quotes_ours_is_left_alone(url: str, tmp_path: Path) -> None:
    Host.comments.append({"id": 130, "body": f"why?\n> {MARK} k -->\n> REGRESSED"})
    assert github(url, tmp_path).posting(Posting(key="k")).deliver(REPORT, "").startswith("commented at")
    assert Host.comments[130]["body"].startswith("why?")


KEYS = ((Posting(), "gate", "gate"), (Posting(), "", "run"), (Posting(key="a --> <b>"), "gate", "a - -b-"))


@pytest.mark.parametrize(("posting", "job", "key"), KEYS)
def test_a_comment_is_named_by_its_key_or_its_job(posting: Posting, job: str, key: str) -> None:
    assert delivery_module.keyed(posting, REPORT, job).key == key


@pytest.mark.parametrize("make", [github, gitlab])
def test_a_clean_run_makes_no_comment_and_turns_an_earlier_one_into_a_line(make, url: str, tmp_path: Path) -> None:
    delivery = make(url, tmp_path).posting(Posting(key="k"))
    assert delivery.deliver(CLEAN, "").startswith("no comment")
    assert ours() == []
    delivery.deliver(REPORT, "")
    delivery.deliver(CLEAN, "")
    (body,) = ours()
    assert len(body.strip().splitlines()) == 2
    assert "1 case" in body


def open_case() -> CaseReport:
    undecided = case("test_slow", 1e6, 1e6, Outcome.UNDECIDED)
    (verdict,) = undecided.verdicts
    return replace(undecided, verdicts=(replace(verdict, effect=Effect.WARN),))


def accepted_case() -> CaseReport:
    """Slower, and the change accepts it: a reviewer must see that without opening the job."""
    return case("test_slow", 1e6, 1e6, Outcome.ACCEPTED)


NOT_CLEAN = (
    replace(CLEAN, complete=False),
    replace(CLEAN, status=1),
    replace(CLEAN, notes=(SuiteNote(kind="x", effect=Effect.WARN, text="y"),)),
    run(open_case()),
    run(accepted_case()),
    run(),
    run(notes=(SuiteNote(kind="x", effect=Effect.PASS, text="y"),)),
)


@pytest.mark.parametrize("report", NOT_CLEAN)
def test_what_needs_a_person_is_not_clean(report) -> None:
    assert WORDS.clean(report) == ""


def test_the_one_line_of_a_clean_run_does_not_hide_what_was_not_measured() -> None:
    skipped = replace(case("test_a", 1e6), excuse=Excuse.NOT_RUN)
    assert WORDS.clean(CLEAN).startswith("perfgate: 1 case, all limits kept. Commit ")
    assert WORDS.clean(run(case("test_same", 1e6), skipped)).startswith("perfgate: 2 cases, all limits kept, 1 not")
    assert WORDS.clean(run(skipped)).startswith("perfgate: 1 case, nothing measured. ")


def test_only_changes_leaves_the_table_of_all_out(url: str, tmp_path: Path) -> None:
    github(url, tmp_path).posting(Posting(only_changes=True)).deliver(REPORT, "")
    (body,) = ours()
    assert "test_slow" in body
    assert "test_same" not in body


@pytest.mark.parametrize("make", [github, gitlab])
def test_a_dry_run_sends_nothing_and_needs_no_token(make, url: str, tmp_path: Path) -> None:
    delivery = make(url, tmp_path)
    delivery._environment.pop("GITHUB_TOKEN", None)
    delivery._environment.pop("GITLAB_TOKEN", None)
    text = delivery.posting(Posting(dry_run=True)).deliver(REPORT, "")
    assert "REGRESSED" in text
    assert Host.requests == []


@pytest.mark.parametrize("make", [GithubComment, GitlabComment])
def test_a_dry_run_needs_no_change_to_comment_on(make) -> None:
    delivery = make(WORDS, {}).posting(Posting(dry_run=True))
    assert "REGRESSED" in delivery.deliver(REPORT, "")
    assert "a clean run makes no comment" in delivery.deliver(run(case("test_a", 1e6, 1e6)), "")


NOW = 1_800_000_000.0
LIMITED = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": f"{NOW + 9:.0f}"}
REFUSALS = (
    ([(429, {"Retry-After": "7"})], [7.0]),
    ([(403, {"Retry-After": "3"}), (502, {})], [3.0, 1.0]),
    ([(403, LIMITED)], [9.0]),
    ([(500, {})], [0.5]),
)


@pytest.mark.parametrize(("refusals", "waited"), REFUSALS)
def test_a_host_that_asks_to_wait_is_waited_for(refusals, waited, url: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(delivery_module, "HOST_CLOCK", HOST_CLOCK._replace(date=lambda: NOW))
    Host.refusals = list(refusals)
    github(url, tmp_path).deliver(REPORT, "")
    assert waits == waited
    assert len(ours()) == 1


@pytest.mark.parametrize(
    ("status", "headers", "text"),
    [
        (429, {"Retry-After": "600"}, "asks to wait 600 s"),
        (403, {}, "403"),
        (401, {}, "401"),
        (302, {"Location": "/elsewhere"}, "302"),
        (200, {}, "not one of this host's API"),
    ],
)
def test_a_host_that_asks_for_too_long_or_refuses_is_an_error(status, headers, text, url: str, tmp_path: Path) -> None:
    Host.refusals = [(status, headers)]
    with pytest.raises(PerfgateError, match=text):
        github(url, tmp_path).deliver(REPORT, "")
    assert waits == []
    assert len(Host.requests) == 1, "to another address nothing is sent"


@pytest.mark.parametrize("comment", [[], None, {"body": MARK}, {"id": "7", "body": MARK}])
def test_a_comment_without_a_number_is_not_edited(comment, url: str, tmp_path: Path) -> None:
    Host.comments = [comment]
    assert github(url, tmp_path).deliver(REPORT, "").startswith("commented at")


CONCLUSIONS = ((REPORT, "failure"), (CLEAN, "success"), (NOT_CLEAN[0], "neutral"), (NOT_CLEAN[3], "neutral"))


@pytest.mark.parametrize(("report", "conclusion"), CONCLUSIONS)
def test_a_check_run_is_neutral_where_verdicts_are_open(report, conclusion, url: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_k.py").write_text("import x\n\nasync def test_slow(perfgate):\n    pass\n")
    environment = {"GITHUB_TOKEN": "t", "GITHUB_REPOSITORY": "a/b", "GITHUB_API_URL": url, "GITHUB_SHA": "c0ffee"}
    GithubCheck(WORDS, environment).deliver(report, "")
    (check,) = Host.checks
    assert (check["conclusion"], check["head_sha"], check["status"]) == (conclusion, "c0ffee", "completed")
    lines = {one["start_line"] for one in check["output"]["annotations"]}
    assert lines == (set() if conclusion == "success" or report is NOT_CLEAN[0] else {3})


def test_remarks_are_commands_of_the_job_whose_separators_are_escaped(capsys, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    many = run(*(case(f"test_slow[{n},a:b%]", 1.2e6, 1e6, Outcome.REGRESSED) for n in range(12)))
    assert GithubAnnotations(WORDS, {}).deliver(many, "") == "annotated 10 tests"
    first, *rest = capsys.readouterr().out.splitlines()
    assert len(rest) == 9
    assert first.startswith("::error file=tests/test_k.py,line=1,title=regressed%3A test_slow[0%2Ca%3Ab%25]::REGRESSED")
    assert "%0A" in first
