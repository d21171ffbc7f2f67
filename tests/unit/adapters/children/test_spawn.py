"""Tests of adapters/children/spawn."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_perfgate.adapters.children import spawn as cluster
from pytest_perfgate.adapters.children.channel import VARIABLE
from pytest_perfgate.adapters.children.spawn import LocalSpawner
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.protocol import Bye, ChildSpec


def test_without_a_cluster_files_are_looked_at_here():
    assert list(cluster.spread("")(str, [1, 2])) == ["1", "2"]


def test_a_cluster_needs_its_package(monkeypatch):
    monkeypatch.setattr(cluster, "find_spec", lambda _: None)
    with pytest.raises(PerfgateError, match="needs Dask's distributed"):
        cluster.spread("local")


def test_files_are_sent_to_the_scheduler_that_was_named(monkeypatch):
    asked = []

    class Client:
        def __init__(self, *address, **options):
            asked.append((address, options))

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def map(self, function, items, *, pure):
            assert pure is False
            return [SimpleNamespace(result=lambda item=item: function(item)) for item in items]

    fake = SimpleNamespace(Client=Client, as_completed=reversed)
    monkeypatch.setitem(sys.modules, "distributed", fake)
    monkeypatch.setattr(cluster, "find_spec", lambda _: object())
    assert list(cluster.spread("tcp://head:8786")(str, [1, 2])) == ["2", "1"]
    assert list(cluster.spread("local")(str, [])) == []
    assert asked == [(("tcp://head:8786",), {"timeout": 10}), ((), {"processes": True, "threads_per_worker": 1})]


def test_an_error_of_a_worker_comes_back_as_itself(monkeypatch):
    def broken(_):
        raise PerfgateError("trace-empty", "no events")

    class Client:
        __init__ = __enter__ = __exit__ = lambda *_, **__: None

        def map(self, function, items, *, pure):
            return [SimpleNamespace(result=lambda item=item: function(item)) for item in items if not pure]

    client = Client()
    monkeypatch.setattr(Client, "__enter__", lambda _: client)
    fake = SimpleNamespace(Client=lambda *_, **__: client, as_completed=iter)
    monkeypatch.setitem(sys.modules, "distributed", fake)
    monkeypatch.setattr(cluster, "find_spec", lambda _: object())
    assert cluster.attempted(broken, 1).what == "no events"
    with pytest.raises(PerfgateError, match="no events"):
        list(cluster.spread("tcp://head:8786")(broken, [1]))


def test_a_scheduler_that_does_not_answer_is_an_error(monkeypatch):
    def refuse(*_, **__):
        raise OSError("timed out")

    monkeypatch.setitem(sys.modules, "distributed", SimpleNamespace(Client=refuse, as_completed=None))
    monkeypatch.setattr(cluster, "find_spec", lambda _: object())
    with pytest.raises(PerfgateError, match="no scheduler answers at tcp://head:8786"):
        list(cluster.spread("tcp://head:8786")(str, [1]))


def spec(code: str) -> ChildSpec:
    return ChildSpec(argv=("-c", code), python=(sys.executable, "-S"), cwd=Path(), env=(), label="the test's child")


CALLS = f"""
import os, socket
port, token = os.environ["{VARIABLE}"].split(":")
def call(text):
    line = socket.create_connection(("127.0.0.1", int(port)))
    line.sendall(text.encode() + b"\\n")
    return line
"""


def test_a_connection_without_the_token_is_closed() -> None:
    hello = '{"kind": "Hello", "body": {"token": "%s", "pid": 1}}'
    code = f"{CALLS}\nstranger = call('{hello}' % 'guess')\nown = call('{hello}' % token)\n"
    code += 'own.sendall(b\'{"kind": "Bye", "body": {}}\\n\'); own.recv(1)'
    child = LocalSpawner().spawn(spec(code))
    try:
        assert child.receive(10) == Bye()
    finally:
        child.close()


def test_a_child_that_dies_before_it_calls_says_what_it_printed() -> None:
    child = LocalSpawner().spawn(spec("import sys; sys.exit('no such option: --frobnicate')"))
    with pytest.raises(PerfgateError, match="exit code 1") as caught:
        child.receive(10)
    assert "--frobnicate" in str(caught.value)
    child.close()


def test_a_launcher_that_is_not_there_is_named() -> None:
    with pytest.raises(PerfgateError, match="no-such-launcher does not start"):
        LocalSpawner().spawn(ChildSpec(argv=(), python=("x",), cwd=Path(), env=(), prefix=("no-such-launcher",)))
