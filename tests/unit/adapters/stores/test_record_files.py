"""What goes wrong on the way to a record is told in words, and nothing waits without end."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from pytest_perfgate.adapters.stores import record_files as fetch
from pytest_perfgate.adapters.stores.record_files import fetched, packed, unpacked
from pytest_perfgate.model.errors import PerfgateError, without_secrets
from pytest_perfgate.model.metric import Figure, Metric, MetricSet
from pytest_perfgate.model.values import Dimension

Answer = Callable[[socket.socket], None]
HALF = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"
ROUND = b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Answer], int]]:
    monkeypatch.setattr(fetch.time, "sleep", lambda seconds: None)
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(64)
    clients: list[socket.socket] = []

    def run(answer: Answer) -> None:
        while True:
            try:
                client = listening.accept()[0]
            except OSError:
                return
            clients.append(client)
            threading.Thread(target=answered, args=(client, answer), daemon=True).start()

    def start(answer: Answer) -> int:
        threading.Thread(target=run, args=(answer,), daemon=True).start()
        return int(listening.getsockname()[1])

    yield start
    listening.close()
    for client in clients:
        client.close()


def answered(client: socket.socket, answer: Answer) -> None:
    with contextlib.suppress(OSError):  # whoever asked may be gone
        client.recv(4096)
        answer(client)


def sending(data: bytes) -> Answer:
    def answer(client: socket.socket) -> None:
        client.sendall(data)
        client.shutdown(socket.SHUT_RDWR)

    return answer


def refusal_of(url: str) -> str:
    with pytest.raises(PerfgateError) as caught:
        fetched(url, wait=0)
    assert caught.value.code.name == "record-fetch"
    return caught.value.what


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (HALF, "closed in the middle of its answer"),
        (b"", "closed without an answer"),
        (b"garbage\r\n\r\n", "does not speak HTTP"),
        (ROUND, "redirects without end"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", "not compressed as it says"),
    ],
)
def test_what_a_server_does_is_told_in_words(serve: Callable[[Answer], int], data: bytes, words: str) -> None:
    assert words in refusal_of(f"http://127.0.0.1:{serve(sending(data))}/record.json")


def test_https_of_a_server_without_it(serve: Callable[[Answer], int]) -> None:
    assert "does not speak TLS" in refusal_of(f"https://127.0.0.1:{serve(sending(b'plain words'))}/record.json")


def test_nobody_listens_and_nobody_is_known(serve: Callable[[Answer], int]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        assert "refuses the connection" in refusal_of(f"http://127.0.0.1:{free.getsockname()[1]}/record.json")
    assert "no host has this name" in refusal_of("http://no-such-host.invalid/record.json")


@pytest.mark.parametrize(
    "url", ["http://[::1", "http:///x", "http://a b/", "http://host:99999/", f"http://{'a' * 300}/"]
)
def test_what_is_no_address(url: str) -> None:
    assert refusal_of(url) == "this is not an address"


@pytest.mark.parametrize("begins", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200"])
def test_a_server_that_sends_a_byte_now_and_then_is_left(
    serve: Callable[[Answer], int], monkeypatch: pytest.MonkeyPatch, begins: bytes
) -> None:
    monkeypatch.setattr(fetch, "_LOOK", 0.2)
    ended = threading.Event()

    def drip(client: socket.socket) -> None:
        client.sendall(begins)
        while not ended.wait(0.02):
            try:
                client.sendall(b"x")
            except OSError:
                return

    assert "bytes in 0.2 s and was not done" in refusal_of(f"http://127.0.0.1:{serve(drip)}/record.json")
    ended.set()


def test_a_server_that_says_nothing(serve: Callable[[Answer], int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "_ANSWER", 0.05)
    assert refusal_of(f"http://127.0.0.1:{serve(lambda client: None)}/record.json").startswith("no answer in")


def test_what_is_no_address_tells_no_secret() -> None:
    assert without_secrets("http://user:secret@[::1?token=abc") == "http://[::1"


@pytest.mark.parametrize(
    ("dimension", "text"),
    [
        (Dimension.COUNT, "0.25"),
        (Dimension.PLAIN, "0.25 plain"),
        (Dimension.FRACTION, "25%"),
        (Dimension.BYTES, "0.25B"),
    ],
)
def test_an_accepted_figure_comes_back_as_it_was(dimension: Dimension, text: str) -> None:
    figure = Figure(name="loss", value=0.25, dimension=dimension, labels=(("case", "a, b"),))
    tree, shared = packed(figure)
    assert shared == [f'loss(case="a, b"): {text}']
    assert unpacked(tree, shared, Figure) == figure


def test_a_path_that_is_not_utf_8_is_kept_as_text_that_json_holds() -> None:
    metric = Metric(name="µ", value=1.0, dimension=Dimension.COUNT, labels=(("file", "/b\udcff/t.py"),))
    tree, shared = packed(MetricSet(metrics=(metric,)))
    again = unpacked(json.loads(json.dumps(tree)), json.loads(json.dumps(shared).encode("utf-8")), MetricSet)
    assert (again.metrics[0].name, again.metrics[0].labels) == ("µ", (("file", "/b\\udcff/t.py"),))


def test_several_shared_values_in_a_row_are_one_entry() -> None:
    metrics = tuple(Metric(name=name, value=1.0, dimension=Dimension.COUNT) for name in "abc")
    tree, shared = packed(MetricSet(metrics=metrics))
    assert (tree, len(shared)) == ({"metrics": {"shared": [0, 1, 2]}}, 3)
    assert unpacked(tree, shared, MetricSet) == MetricSet(metrics=metrics)
    apart = {"metrics": [{"shared": 0}, {"shared": 1}, {"shared": 2}]}  # as records have it that were written before
    assert unpacked(apart, shared, MetricSet) == MetricSet(metrics=metrics)
    assert packed(MetricSet(metrics=metrics[:1]))[0] == {"metrics": [{"shared": 0}]}


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://team:se/cret@host/db", "postgresql://host/db"),
        ("postgresql://team:se#cret@host:5432/db", "postgresql://host:5432/db"),
        ("postgresql://team:se?cret@[::1]:5432/db", "postgresql://[::1]:5432/db"),
        ("postgresql://a:1,b:2/db?user=x@y", "postgresql://a:1,b:2/db"),
        ("https://host:8080/@scope/r.json", "https://host:8080/@scope/r.json"),
        ("https://[::1]:80/a@b", "https://[::1]:80/a@b"),
    ],
)
def test_a_password_with_any_sign_is_left_out(address: str, shown: str) -> None:
    assert without_secrets(address) == shown
