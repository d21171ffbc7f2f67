"""Every delivery takes a report somewhere, against a server of our own."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pytest_perfgate.adapters import delivery as requests_session
from pytest_perfgate.adapters.delivery import MARK, GithubComment, GitlabComment, Webhook
from pytest_perfgate.core.render.html import render_comment
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.wiring.stores import deliveries
from tests.reports import case, run

REPORT = run(case("test_slow[`x`|y]", 1.2e6, 1e6, Outcome.REGRESSED), case("test_same", 1e6, 1e6))


class Host(BaseHTTPRequestHandler):
    comments: list[dict] = []
    asked: list[tuple[str, str]] = []
    failures = 0

    def answer(self) -> None:
        path = urlsplit(self.path).path
        type(self).asked.append((self.command, path))
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        if Host.failures:
            type(self).failures -= 1
            return self.said(503, None)
        if self.command == "GET":
            page = int(dict(p.split("=") for p in urlsplit(self.path).query.split("&"))["page"])
            return self.said(200, Host.comments[(page - 1) * 100 : page * 100])
        if self.command == "POST":
            Host.comments.append({"id": len(Host.comments), **body})
        else:
            Host.comments[int(path.rpartition("/")[2])].update(body)
        return self.said(200, {})

    do_GET = do_POST = do_PATCH = do_PUT = answer

    def said(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(requests_session.time, "sleep", lambda seconds: None)
    Host.comments, Host.asked, Host.failures = [{"id": n, "body": "nice"} for n in range(130)], [], 0
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
    return GithubComment(render_comment, names)


def gitlab(url: str, tmp_path: Path) -> GitlabComment:
    names = {"GITLAB_TOKEN": "t0ken", "CI_PROJECT_ID": "a/b", "CI_MERGE_REQUEST_IID": "7", "CI_API_V4_URL": url}
    return GitlabComment(render_comment, names)


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
    Host.failures = 3
    with pytest.raises(PerfgateError, match="503") as caught:
        make(url, tmp_path).deliver(REPORT, "")
    assert "t0ken" not in str(caught.value)


@pytest.mark.parametrize(
    "delivery", [GithubComment(render_comment, {}), GitlabComment(render_comment, {}), Webhook(render_comment, {})]
)
def test_without_a_token_or_an_address(delivery) -> None:
    with pytest.raises(PerfgateError, match="delivery-failed"):
        delivery.deliver(REPORT, "")


@pytest.mark.parametrize(("make", "token"), [(GithubComment, "GITHUB_TOKEN"), (GitlabComment, "GITLAB_TOKEN")])
def test_outside_of_a_request(make, token: str) -> None:
    with pytest.raises(PerfgateError, match="request to comment on"):
        make(render_comment, {token: "t"}).deliver(REPORT, "")


def test_a_webhook_tells_programs(url: str) -> None:
    assert (
        Webhook(render_comment, {"PERFGATE_WEBHOOK": f"{url}/hook?key=secret"}).deliver(REPORT, "")
        == f"posted to {url}/hook"
    )
    assert Host.comments[-1]["failed"] == ["tests/test_k.py::test_slow[`x`|y]"]
    assert Host.comments[-1]["outcomes"] == {"regressed": 1, "passed": 1}


@pytest.mark.parametrize("name", ["json", "html", "markdown"])
def test_files(name: str, tmp_path: Path) -> None:
    delivery = next(d for d in deliveries(tmp_path) if d.name == name)
    target = tmp_path / "out" / "report"
    assert delivery.deliver(REPORT, str(target)) == f"wrote {target}, and made the folder {target.parent}"
    assert delivery.deliver(REPORT, str(target)) == f"wrote {target}"
    assert b"test_slow" in target.read_bytes()
    with pytest.raises(PerfgateError, match="delivery-failed"):
        delivery.deliver(REPORT, "")
    for place in (tmp_path, target / "below"):
        with pytest.raises(PerfgateError, match="delivery-failed") as refused:
            delivery.deliver(REPORT, str(place))
        assert "that you may write to" in str(refused.value)


def test_the_comment_keeps_its_form() -> None:
    text = render_comment(REPORT)
    assert text.startswith("### perfgate: 1 failed\n\n2 cases: 1 regressed, 1 passed.\n")
    assert "```text\nREGRESSED  test_slow[`x`|y]  time  +20.0 %" in text
    assert r"test\_slow\[\`x\`\|y\]" in text
    assert text.rstrip().endswith("</details>")
