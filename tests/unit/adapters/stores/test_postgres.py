from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from pytest_perfgate.adapters.stores.history import SqliteHistory
from pytest_perfgate.adapters.stores.postgres import PostgresHistory
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.project import Config
from pytest_perfgate.wiring.stores import history_store
from tests import histories, postgres_server
from tests.histories import KEY, OTHER, entry


@pytest.fixture(scope="module")
def server() -> Iterator[postgres_server.Server]:
    if why := postgres_server.missing():
        pytest.skip(why)
    with postgres_server.served() as server:
        yield server


@pytest.fixture
def address(server: postgres_server.Server) -> str:
    return server.emptied()


@pytest.mark.parametrize("check", histories.CONTRACT, ids=lambda check: check.__name__)
def test_it_does_what_every_history_does(address: str, check: Callable[[histories.Open], None]) -> None:
    check(lambda: PostgresHistory(address))


def _write(address: str, writer: int) -> None:
    history = PostgresHistory(address)
    for run in range(6):
        own = [entry(1 + 1e3 * writer + run + case / 100, run=f"w{writer}.{run}", when="2026-06-01",
                       key=histories.CaseKey(nodeid=f"t.py::test_{case}"), facts=(("run", f"{writer}.{run}"),))
               for case in range(10)]  # fmt: skip
        history.append(own)
        history.append([entry(9.0, OTHER, run=f"shared{run}", when="2026-06-01", host=f"h{run}")])


def test_sixteen_writers_at_once(address: str) -> None:
    """They make the tables, the words and one run of each other at the same time."""
    with ThreadPoolExecutor(16) as writers:
        assert list(writers.map(partial(_write, address), range(16))) == [None] * 16
    lines = {line[0].key: line for line in PostgresHistory(address).lines()}
    assert len(lines.pop(OTHER)) == 6
    assert [len(line) for line in lines.values()] == [16 * 6] * 10
    assert all(len({s.run for s in line}) == 96 for line in lines.values())


def test_a_connection_that_was_lost_is_made_again(server: postgres_server.Server, address: str) -> None:
    history = PostgresHistory(address)
    history.append([entry(1.0)])
    server.stop(kill=True)
    try:
        with pytest.raises(PerfgateError, match="history-unreachable") as caught:
            history.append([entry(2.0)])
        assert caught.value.code.family.exit == 21
    finally:
        server.start()
    assert history.append([entry(1.0), entry(2.0)]) == 1, "what was confirmed is there"
    assert [s.time for s in history.read(KEY, "d")] == [1.0, 2.0]


def test_a_server_that_was_restarted_meanwhile_is_asked_anew(server: postgres_server.Server, address: str) -> None:
    history = PostgresHistory(address)
    for time in (1.0, 2.0):
        assert history.append([entry(time)]) == 1
        server.stop()
        server.start()
        assert len(history.read(KEY, "d")) == time
        server.stop()
        server.start()


def test_an_address_that_cannot_be_read_is_not_quoted() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(PerfgateError) as caught:
        PostgresHistory("postgresql://team:se%cret@127.0.0.1:9/h").keys()
    assert caught.value.code.name == "history-address"
    assert "cret" not in caught.value.text()


def test_a_later_form_and_somebody_elses_tables(address: str) -> None:
    import psycopg

    PostgresHistory(address).append([entry(1.0)])
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("update perfgate.form set version = 9")
        with pytest.raises(PerfgateError, match="history-version"):
            PostgresHistory(address).read(KEY, "d")
        connection.execute("update perfgate.form set version = 1")
        connection.execute("alter table perfgate.sitting rename column time to moment")
        with pytest.raises(PerfgateError, match="history-unreadable"):
            PostgresHistory(address).read(KEY, "d")


def test_a_dashboard_has_a_view(address: str) -> None:
    import psycopg

    PostgresHistory(address).append([entry(2.0, outcome="passed", host="n7", metrics=histories.METRICS)])
    with psycopg.connect(address) as connection:
        query = "select device, nanoseconds, outcome, host, figures->1->>0, extract(year from time) from perfgate.times"
        assert connection.execute(query).fetchall() == [("d", 2.0, "passed", "n7", "sol", 2026)]


def test_one_seek_a_case(address: str) -> None:
    import psycopg

    history = PostgresHistory(address)
    history.append([entry(float(n), histories.CaseKey(nodeid=f"t.py::t{n % 7}")) for n in range(1, 3000)])
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("analyze perfgate.sitting")
        query = "explain select time from perfgate.sitting where series = 3 order by at desc, run desc limit 5"
        plan = str(connection.execute(query).fetchall())
    assert "Backward using sitting_pkey" in plan
    assert "Sort" not in plan


@pytest.mark.parametrize("address", ["postgresql://team:secret@127.0.0.1:9/h", "postgres://team:secret@127.0.0.1:9/h"])
def test_a_server_that_is_not_there_and_no_secret_is_said(address: str) -> None:
    history = history_store(Path("/p"), Config(history=address))
    assert isinstance(history, PostgresHistory)
    with pytest.raises(PerfgateError) as caught:
        history.keys()
    assert caught.value.code.name in {"history-unreachable", "history-driver"}
    assert "secret" not in caught.value.text()


def test_without_the_driver_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(PerfgateError, match=r"history-driver") as caught:
        PostgresHistory("postgresql://h/n").keys()
    assert "pytest-perfgate[postgres]" in caught.value.fix


def test_a_file_is_no_server() -> None:
    assert isinstance(history_store(Path("/p"), Config()), SqliteHistory)


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning", "error::ResourceWarning")
def test_a_history_that_goes_leaves_no_connection_open(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    unraisable: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", unraisable.append)
    history = PostgresHistory(address)
    history.append([entry(1.0)])
    del history
    gc.collect()
    assert unraisable == []
