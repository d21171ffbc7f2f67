from __future__ import annotations

import multiprocessing
import sqlite3
import sys
from functools import partial
from pathlib import Path

import pytest

from pytest_perfgate.adapters.stores.history import SqliteHistory, history_file
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Sitting
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.project import Config
from pytest_perfgate.wiring import gate_tools
from pytest_perfgate.wiring.stores import history_store

KEY = CaseKey(nodeid="t.py::test_a[1]", name="bwd")


def sitting(time: float, key: CaseKey = KEY) -> Sitting:
    return Sitting(key=key, device="d", time=time, when="2026-06-01", commit="c0ffee", clock_hz=1.5e9)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".perfgate" / "history.db"


def test_sittings_come_back_in_order(path: Path) -> None:
    history = SqliteHistory(path)
    assert history.read(KEY, "d") == ()
    assert history.keys() == ()
    history.append([sitting(float(n)) for n in range(1, 6)])
    history.append([])
    assert history.read(KEY, "d") == tuple(sitting(float(n)) for n in range(1, 6))
    assert [s.time for s in history.read(KEY, "d", last=2)] == [4.0, 5.0]
    assert history.read(KEY, "other") == ()
    assert history.keys() == (("d", KEY),)
    assert history.keys("other") == ()


def _write(path: Path, writer: int) -> None:
    for n in range(10):
        SqliteHistory(path).append([sitting(writer * 100.0 + n)] * 3)


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
    assert [history_file(Path("/p"), given) for given in ("h.db", "/q/h.db")] == [Path("/p/h.db"), Path("/q/h.db")]
    for given in ("http://x/y", "sqlite:///h.db", "postgresql+psycopg://team@host/h"):
        with pytest.raises(PerfgateError, match="history-address") as said:
            history_file(Path("/p"), given)
        assert (said.value.place, said.value.code.family.exit) == (given, 2)
        for store in (history_store, partial(gate_tools, kinds={})):
            with pytest.raises(PerfgateError, match="history-address"):
                store(Path("/p"), Config(history=given))


def test_what_cannot_be_written_is_still_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = SqliteHistory(path)
    history.append([sitting(1.0)])
    prepare, refusals = SqliteHistory._prepare, [full]

    def once(self: SqliteHistory, database: sqlite3.Connection) -> None:
        (refusals.pop() if refusals else lambda database: prepare(self, database))(database)

    monkeypatch.setattr(SqliteHistory, "_prepare", once)
    refusals[:] = [full]
    assert history.read(KEY, "d") == (sitting(1.0),)
    refusals[:] = [full]
    assert history.keys() == (("d", KEY),)
    refusals[:] = [full]
    with pytest.raises(PerfgateError) as caught:
        history.append([sitting(2.0)])
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
    for ask in (lambda h: h.read(KEY, "d"), lambda h: h.append([sitting(1.0)]), lambda h: h.keys()):
        with pytest.raises(PerfgateError, match="history-unreadable"):
            ask(SqliteHistory(path))
    assert path.read_bytes() == data


ODD = [
    ("key", b"\xff\xfe"), ("device", b"d"), ("time", ""), ("time", b"1"), ("time", 1e999), ("moment", b"x"),
    ("processes", "three"), ("scatter", ""), ("clock_hz", "x"), ("identity", b"x"),
]  # fmt: skip


@pytest.mark.parametrize(("column", "cell"), ODD)
def test_a_cell_that_nobody_wrote_is_an_error(path: Path, column: str, cell: object) -> None:
    history = SqliteHistory(path)
    history.append([sitting(1.0)])
    database = sqlite3.connect(path)
    with database:
        database.execute(f"update sitting set {column} = ?", (cell,))
    database.close()
    with pytest.raises(PerfgateError, match="history-unreadable"):
        _ = [history.read(key, device) for device, key in history.keys()]  # noqa: SIM118


def test_somebody_elses_database(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as database:
        database.execute("create table sitting (x)")
    database.close()
    with pytest.raises(PerfgateError, match="somebody else"):
        SqliteHistory(path).append([sitting(1.0)])


def test_a_later_version(path: Path) -> None:
    SqliteHistory(path).append([sitting(1.0)])
    database = sqlite3.connect(path)
    database.execute("pragma user_version = 9")
    database.close()
    with pytest.raises(PerfgateError, match="history-version"):
        SqliteHistory(path).read(KEY, "d")


def test_one_seek_a_case(path: Path) -> None:
    SqliteHistory(path).append([sitting(1.0)])
    database = sqlite3.connect(path)
    plan = str(database.execute(
        "explain query plan select time from sitting where key = 'a' and device = 'd' order by id desc limit 5"
    ).fetchall())  # fmt: skip
    database.close()
    assert "USING INDEX sitting_of_case" in plan
    assert "TEMP B-TREE" not in plan
