from __future__ import annotations

import multiprocessing
import sqlite3
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from pytest_perfgate.adapters.stores import history
from pytest_perfgate.adapters.stores.history import SqliteHistory, history_file
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Metric
from pytest_perfgate.model.project import Config
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.wiring import gate_tools
from pytest_perfgate.wiring.stores import history_store
from tests import histories
from tests.histories import KEY, entry


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".perfgate" / "history.db"


@pytest.mark.parametrize("check", histories.CONTRACT, ids=lambda check: check.__name__)
def test_it_does_what_every_history_does(path: Path, check: Callable[[histories.Open], None]) -> None:
    check(lambda: SqliteHistory(path))


FIRST_FORM = """
create table sitting (
  id integer primary key, key text not null, device text not null, time real not null, moment text not null,
  git_commit text not null, branch text not null, processes integer not null, scatter real not null,
  clock_hz real, identity text not null
);
create index sitting_of_case on sitting (key, device, id);
"""


def test_a_history_of_the_first_form_goes_on(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as database:
        for statement in (*FIRST_FORM.split(";"), "pragma application_id = 1346847060", "pragma user_version = 1"):
            database.execute(statement)
        rows = [
            (None, str(KEY), "d", float(n), f"2026-06-0{n}T10:00:00", "c0ffee", "", 3, 0.0, None, "usual")
            for n in (1, 2, 3)
        ]
        database.executemany(f"insert into sitting values ({', '.join('?' * 11)})", rows)
    database.close()
    history = SqliteHistory(path)
    assert [(s.time, s.identity, s.outcome, s.run) for s in history.read(KEY, "d")] == [
        (float(n), "usual", "", f"2026-06-0{n}T10:00:00 c0ffee") for n in (1, 2, 3)
    ]
    assert history.append([entry(9e6)]) == 1
    assert len(SqliteHistory(path).read(KEY, "d")) == 4


def _write(path: Path, writer: int) -> None:
    for n in range(10):
        SqliteHistory(path).append([entry(1 + writer * 100.0 + n + part / 10) for part in range(3)])


def test_eight_writers_at_once(path: Path) -> None:
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    writers = [context.Process(target=_write, args=(path, n)) for n in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 8
    assert len(SqliteHistory(path).read(KEY, "d")) == 240


def full(_: object) -> None:
    raise sqlite3.OperationalError("database or disk is full")


def test_an_address_is_no_file() -> None:
    assert history_file(Path("/p")) == Path("/p/.perfgate/history.db")
    assert [history_file(Path("/p"), address) for address in ("h.db", "/q/h.db")] == [Path("/p/h.db"), Path("/q/h.db")]
    for address in ("http://x/y", "mysql://host/h"):
        with pytest.raises(PerfgateError, match="history-address") as caught:
            history_file(Path("/p"), address)
        assert (caught.value.place, caught.value.code.family.exit) == (address, 2)
        for store in (history_store, partial(gate_tools, kinds={})):
            with pytest.raises(PerfgateError, match="history-address"):
                store(Path("/p"), Config(history=address))


def test_what_cannot_be_written_is_still_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = SqliteHistory(path)
    history.append([entry(1.0)])
    prepare, refusals = SqliteHistory._prepare, [full]

    def once(self: SqliteHistory, database: sqlite3.Connection) -> None:
        (refusals.pop() if refusals else lambda database: prepare(self, database))(database)

    monkeypatch.setattr(SqliteHistory, "_prepare", once)
    refusals[:] = [full]
    assert history.read(KEY, "d") == (entry(1.0),)
    refusals[:] = [full]
    assert history.keys() == (("d", KEY),)
    refusals[:] = [full]
    with pytest.raises(PerfgateError) as caught:
        history.append([entry(2.0)])
    assert (caught.value.code.name, caught.value.place) == ("file-unwritable", str(path))
    path.with_name("history.db-wal").write_bytes(b"what a writer left behind")
    refusals[:] = [full]
    with pytest.raises(PerfgateError, match="disk is full"):
        history.read(KEY, "d")


@pytest.mark.parametrize(
    "data", [b"not a database at all, but long enough" * 50, b"SQLite format 3\x00" + b"\xff" * 4000]
)
def test_a_damaged_file(path: Path, data: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(data)
    for ask in (lambda h: h.read(KEY, "d"), lambda h: h.append([entry(1.0)]), lambda h: h.keys()):
        with pytest.raises(PerfgateError, match="history-unreadable"):
            ask(SqliteHistory(path))
    assert path.read_bytes() == data


ODD = [
    ("word.text", "5"), ("figures.data", '[["mfu", 1, "fraction", 5]]'), ("figures.data", '[["mfu", 1, "fraction", {}, 1]]'),
    ("sitting.time", 0.0), ("sitting.time", -5.0),
    ("series.key", b"\xff\xfe"), ("series.device", b"d"), ("sitting.time", ""), ("sitting.time", b"1"),
    ("sitting.time", 1e999), ("run.moment", b"x"), ("sitting.processes", "three"), ("sitting.scatter", ""),
    ("sitting.clock_hz", "x"), ("sitting.identity", 99), ("sitting.run", 99), ("word.text", b"x"),
    ("figures.data", "[[1]]"), ("figures.data", "{"), ("figures.data", b"x"),
]  # fmt: skip


@pytest.mark.parametrize(("column", "cell"), ODD)
def test_a_cell_that_nobody_wrote_is_an_error(path: Path, column: str, cell: object) -> None:
    table, _, column = column.partition(".")
    history = SqliteHistory(path)
    history.append([entry(1.0, metrics=(Metric(name="mfu", value=0.5, dimension=Dimension.FRACTION),))])
    database = sqlite3.connect(path)
    with database:
        database.execute(f"update {table} set {column} = ?", (cell,))
    database.close()
    with pytest.raises(PerfgateError, match="history-unreadable"):
        _ = [history.read(key, device) for device, key in history.keys()], list(history.lines(detailed=1))  # noqa: SIM118


def test_somebody_elses_database(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as database:
        database.execute("create table sitting (x)")
    database.close()
    with pytest.raises(PerfgateError, match="another program"):
        SqliteHistory(path).append([entry(1.0)])


def test_a_later_version(path: Path) -> None:
    SqliteHistory(path).append([entry(1.0)])
    database = sqlite3.connect(path)
    database.execute("pragma user_version = 9")
    database.close()
    with pytest.raises(PerfgateError, match="history-version"):
        SqliteHistory(path).read(KEY, "d")


def test_one_seek_a_case(path: Path) -> None:
    SqliteHistory(path).append([entry(1.0)])
    database = sqlite3.connect(path)
    plan = str(database.execute(
        "explain query plan select time from sitting where series = 1 order by at desc, run desc limit 5"
    ).fetchall())  # fmt: skip
    database.close()
    assert "USING PRIMARY KEY" in plan
    assert "TEMP B-TREE" not in plan


def test_a_history_that_another_program_has_locked_is_not_said_to_be_damaged(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "_SECONDS", 0.1)
    locked = SqliteHistory(path)
    locked.append([entry(1.0)])
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("begin immediate")
    with pytest.raises(PerfgateError) as error:
        locked.append([entry(2.0)])
    assert error.value.code.name == "history-unreachable"
    assert error.value.fix.endswith("perfgate history add")
    other.close()
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("pragma journal_mode = delete")
    holder.execute("begin exclusive")
    with pytest.raises(PerfgateError) as reading:
        locked.read(entry(1.0).key, entry(1.0).device)
    holder.close()
    assert (reading.value.code.name, reading.value.fix[-11:]) == ("history-unreachable", "repeat this"), (
        "nothing to add"
    )
    assert locked.append([entry(2.0)]) == 1
