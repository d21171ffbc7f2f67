"""Records that are fetched from an address, and files beside them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pytest_perfgate.adapters.stores import record_files as fetch
from pytest_perfgate.adapters.stores.records import Records, render_record, same_folder_url
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Outcome
from tests.reports import case, run

REPORT = run(case("test_a", 1e6, 9e5, Outcome.REGRESSED), case("test_b[x]", 2e6))


def test_an_address_of_another_kind(records: Records) -> None:
    with pytest.raises(PerfgateError, match="ftp:// is not read") as caught:
        records.read("ftp://user:secret@host/record.json")
    assert caught.value.place == "ftp://host/record.json"


class Server(BaseHTTPRequestHandler):
    answers: list[tuple[int, bytes]] = []

    def do_GET(self) -> None:
        status, body = self.answers.pop(0) if self.answers else (404, b"")
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(fetch.time, "sleep", lambda seconds: None)
    Server.answers = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://user:secret@127.0.0.1:{server.server_port}/run/record.json?token=abc"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_record_is_fetched_though_the_server_was_busy(records: Records, address: str) -> None:
    Server.answers = [(503, b""), (200, render_record(REPORT))]
    assert records.read(address) == REPORT


def test_a_page_to_sign_in_is_no_record_and_no_secret_is_told(records: Records, address: str) -> None:
    Server.answers = [(200, b"\n <!doctype html><title>Sign in</title>")]
    with pytest.raises(PerfgateError, match="web page and no record") as caught:
        records.read(address)
    assert "sign in" in caught.value.fix
    assert "secret" not in caught.value.place + caught.value.text()
    assert "token" not in caught.value.text()


def test_samples_are_fetched_under_the_same_permission() -> None:
    signed = "https://host/a/b/record.json?signature=x/y%2Fz&part=1"
    assert same_folder_url(signed, "r 1.samples") == "https://host/a/b/r%201.samples?signature=x/y%2Fz&part=1"


@pytest.mark.parametrize("status", [404, 403, 500])
def test_a_record_that_cannot_be_fetched(records: Records, address: str, status: int) -> None:
    Server.answers = [(status, b"")] * 5
    with pytest.raises(PerfgateError, match="record-fetch") as caught:
        records.read(address)
    assert "secret" not in str(caught.value)
    assert "token" not in str(caught.value)
    assert len(Server.answers) == (2 if status == 500 else 4)
