"""Tests of adapters/children/spawn."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_perfgate.adapters.children import spawn as spawn_module
from pytest_perfgate.adapters.children.channel import VARIABLE
from pytest_perfgate.adapters.children.spawn import LocalSpawner
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.protocol import Bye, ChildSpec


def test_without_a_cluster_files_are_looked_at_here():
    assert list(spawn_module.mapper("")(str, [1, 2])) == ["1", "2"]


def test_a_cluster_needs_its_package(monkeypatch):
    monkeypatch.setattr(spawn_module, "find_spec", lambda _: None)
    with pytest.raises(PerfgateError, match="needs Dask's distributed"):
        spawn_module.mapper("local")


class Cluster:
    """A scheduler of our own: what was asked of it, and how much was under way at once."""

    def __init__(self, faults: dict[object, Exception] | None = None) -> None:
        self.asked: list[tuple[object, ...]] = []
        self.faults = faults or {}
        self.pending = self.most = 0

    def install(self, monkeypatch) -> None:
        monkeypatch.setitem(sys.modules, "distributed", SimpleNamespace(Client=self.client, as_completed=Completed))
        monkeypatch.setattr(spawn_module, "find_spec", lambda _: object())

    def client(self, *address, **options):
        self.asked.append((address, options))
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def ncores(self) -> dict[str, int]:
        return {"a": 2, "b": 1}

    def submit(self, function, item, *, pure):
        assert pure is False
        self.pending += 1
        self.most = max(self.most, self.pending)

        def result():
            self.pending -= 1
            if item in self.faults:
                raise self.faults[item]
            return function(item)

        return SimpleNamespace(key=str(item), result=result)


class Completed:
    """The newest first, as a cluster may."""

    def __init__(self, futures) -> None:
        self.futures = list(futures)

    def update(self, futures) -> None:
        self.futures += futures

    def __iter__(self):
        return self

    def __next__(self):
        if not self.futures:
            raise StopIteration
        return self.futures.pop()


def test_files_are_sent_to_the_scheduler_that_was_named(monkeypatch):
    one = Cluster()
    one.install(monkeypatch)
    assert sorted(spawn_module.mapper("tcp://head:8786")(str, [1, 2])) == ["1", "2"]
    assert list(spawn_module.mapper("local")(str, [])) == []
    assert one.asked == [(("tcp://head:8786",), {"timeout": 10}), ((), {"processes": True, "threads_per_worker": 1})]


def test_few_files_are_under_way_at_once(monkeypatch):
    one = Cluster()
    one.install(monkeypatch)
    assert sorted(spawn_module.mapper("local")(int, range(1000))) == list(range(1000))
    assert one.most == 12


def test_an_error_of_a_worker_comes_back_as_itself_and_names_the_file(monkeypatch):
    def broken(_):
        raise PerfgateError("trace-empty", "no events")

    Cluster().install(monkeypatch)
    assert spawn_module.attempted(broken, 1).what == "no events"
    with pytest.raises(PerfgateError) as error:
        list(spawn_module.mapper("tcp://head:8786")(broken, [(7, Path("rank7.json"))]))
    assert (error.value.code.name, error.value.place) == ("trace-empty", "rank7.json")


@pytest.mark.parametrize(
    ("fault", "code"), [(type("KilledWorker", (Exception,), {})("x"), "cluster-lost"), (OSError("x"), "cluster-tool")]
)
def test_a_file_that_kills_its_workers_is_named(monkeypatch, fault: Exception, code: str):
    Cluster({(7, Path("rank7.json")): fault}).install(monkeypatch)
    with pytest.raises(PerfgateError) as error:
        list(spawn_module.mapper("local")(str, [(7, Path("rank7.json"))]))
    assert (error.value.code.name, error.value.place) == (code, "rank7.json")


@pytest.mark.slow
def test_four_thousand_files_on_a_cluster_with_a_worker_that_is_lost(tmp_path: Path) -> None:
    """A real cluster of two processes, one of which is killed on the way: every answer comes once."""
    distributed = pytest.importorskip("distributed", reason="Dask's distributed is not installed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as here:
        victims = [worker.process.pid for worker in here.workers.values()]
        answers = []
        for at, answer in enumerate(spawn_module.mapper(here.scheduler_address)(_squared, range(4096))):
            answers.append(answer)
            if at == 1000:
                os.kill(victims[0], signal.SIGKILL)
    assert sorted(answers) == [number * number for number in range(4096)]


def _squared(number: int) -> int:
    return number * number


def test_a_scheduler_that_does_not_answer_is_an_error(monkeypatch):
    def refuse(*_, **__):
        raise OSError("timed out")

    monkeypatch.setitem(sys.modules, "distributed", SimpleNamespace(Client=refuse, as_completed=None))
    monkeypatch.setattr(spawn_module, "find_spec", lambda _: object())
    with pytest.raises(PerfgateError, match="no scheduler answers at tcp://head:8786"):
        list(spawn_module.mapper("tcp://head:8786")(str, [1]))


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
    hello = 'Hello {"token": "%s"}'
    code = f"{CALLS}\nstranger = call('{hello}' % 'guess')\nown = call('{hello}' % token)\n"
    code += 'own.sendall(b"Bye {}\\n"); own.recv(1)'
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


@pytest.mark.parametrize(("code", "others", "readings"), [(0, (), 1), (0, (7,), 2), (None, (), 2)])
def test_all_processes_are_read_once_for_a_child_that_has_ended(monkeypatch, code, others, readings) -> None:
    """One that still ran, or left others behind, may have changed them until a second reading."""
    remaining = iter((others, ()))
    read: list[str] = []
    monkeypatch.setattr(spawn_module, "marked", lambda mark: (read.append(mark), next(remaining))[1])
    monkeypatch.setattr(spawn_module, "_is_running", lambda *_: False)
    monkeypatch.setattr(spawn_module.os, "killpg", lambda *_: None)
    monkeypatch.setattr(spawn_module.os, "kill", lambda *_: None)
    spawn_module.ProcessFamily(SimpleNamespace(pid=1, poll=lambda: code, wait=lambda timeout: 0), "m").end()
    assert read == ["m"] * readings
