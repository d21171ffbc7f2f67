"""Sittings over time in SQLite: many writers, one index seek a case."""

from __future__ import annotations

import contextlib
import math
import re
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_perfgate.adapters.system.files import locked, refusals
from pytest_perfgate.model.errors import PerfgateError, refusal
from pytest_perfgate.model.measurement import Sitting
from pytest_perfgate.model.plan import CaseKey, parse_case_key

SCHEMA = 1

_APPLICATION = 0x50474154

_SECONDS = 30.0

_REFUSED = ("readonly", "disk is full", "unable to open", "disk I/O error")
"""What SQLite says where the disk, and no database, is at fault; names of its errors come with Python 3.11."""

_COLUMNS = "key, device, time, moment, git_commit, branch, processes, scatter, clock_hz, identity"

_TABLE = """
create table if not exists sitting (
  id integer primary key, key text not null, device text not null, time real not null, moment text not null,
  git_commit text not null, branch text not null, processes integer not null, scatter real not null,
  clock_hz real, identity text not null
);
create index if not exists sitting_of_case on sitting (key, device, id);
"""

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def history_file(root: Path, given: str = "") -> Path:
    """Where the history lies; an address is none, and would become a folder of its name."""
    if _ADDRESS.match(given):
        raise PerfgateError("history-address", "the history is a file, and this is an address", place=given)
    return root / (given or ".perfgate/history.db")


class SqliteHistory:
    """The history of a project, by default in ``.perfgate/history.db``."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def append(self, sittings: Sequence[Sitting]) -> None:
        if not sittings:
            return
        with refusals(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._opened() as database:
            marks = ", ".join("?" * 10)
            database.executemany(f"insert into sitting ({_COLUMNS}) values ({marks})", map(_row, sittings))  # noqa: S608

    def read(self, key: CaseKey, device: str, last: int = 0) -> tuple[Sitting, ...]:
        """Sittings of a case, oldest first; the newest so many where ``last`` says so."""
        if not self._is_there():
            return ()
        query = f"select {_COLUMNS} from sitting where key = ? and device = ? order by id desc limit ?"  # noqa: S608
        with self._opened(reading=True) as database:
            rows = database.execute(query, (str(key), device, last or -1)).fetchall()
            return tuple(_sitting(row) for row in reversed(rows))

    def _is_there(self) -> bool:
        """Whether there is a history; one that may not be looked for is not taken for none."""
        try:
            self._path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as fault:
            raise refusal(fault, str(self._path)) from fault
        return True

    def keys(self, device: str = "") -> tuple[tuple[str, CaseKey], ...]:
        """(device, case) of all that was ever measured."""
        if not self._is_there():
            return ()
        query = "select distinct device, key from sitting where device = ?1 or ?1 = '' order by device, key"
        with self._opened(reading=True) as database:
            return tuple((_text(name), parse_case_key(_text(key))) for name, key in database.execute(query, (device,)))

    @contextlib.contextmanager
    def _opened(self, *, reading: bool = False) -> Iterator[sqlite3.Connection]:
        try:
            database = self._connected(reading=reading)
            try:
                with database:
                    yield database
            finally:
                database.close()
        except (TypeError, ValueError, OverflowError) as fault:
            what = f"a row of it holds something else than was written: {fault}"
            raise PerfgateError("history-unreadable", what, place=str(self._path)) from fault
        except sqlite3.Error as fault:
            if _is_refusal(fault):
                what = f"it cannot be written: {fault}"
                raise PerfgateError("file-unwritable", what, place=str(self._path)) from fault
            raise PerfgateError("history-unreadable", str(fault), place=str(self._path)) from fault

    def _connected(self, *, reading: bool) -> sqlite3.Connection:
        """A connection; where nothing can be written, one that reads what was there before."""
        database = sqlite3.connect(self._path, timeout=_SECONDS)
        try:
            self._prepare(database)
        except BaseException as fault:
            database.close()
            if not reading or not _is_refusal(fault) or _unread(self._path):
                raise
            database = sqlite3.connect(f"{self._path.absolute().as_uri()}?immutable=1", uri=True)
            self._prepare(database)
        return database

    def _prepare(self, database: sqlite3.Connection) -> None:
        version = database.execute("pragma user_version").fetchone()[0]
        owner = database.execute("pragma application_id").fetchone()[0]
        if version > SCHEMA and owner == _APPLICATION:
            what = f"its form is version {version}, this one reads {SCHEMA}"
            raise PerfgateError("history-version", what, place=str(self._path))
        if owner == _APPLICATION and version == SCHEMA:
            return
        with locked(_home(self._path), self._path):  # going over to a write-ahead log does not wait its turn
            self._create(database)

    def _create(self, database: sqlite3.Connection) -> None:
        owner = database.execute("pragma application_id").fetchone()[0]
        if database.execute("select count(*) from sqlite_master").fetchone()[0] and owner != _APPLICATION:
            raise PerfgateError("history-unreadable", "it holds somebody else's tables", place=str(self._path))
        database.execute("pragma journal_mode = wal")
        database.execute("begin immediate")
        for statement in _TABLE.split(";"):
            database.execute(statement)
        database.execute(f"pragma application_id = {_APPLICATION}")
        database.execute(f"pragma user_version = {SCHEMA}")
        database.commit()


def _is_refusal(fault: BaseException) -> bool:
    """Whether the disk, and no database, is at fault."""
    return isinstance(fault, sqlite3.Error) and any(word in str(fault) for word in _REFUSED)


def _unread(path: Path) -> bool:
    """Whether a writer left something beside the database that only a writable disk could join to it."""
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def _home(path: Path) -> Path:
    """The folder whose ``.perfgate`` holds the lock."""
    return path.parent.parent if path.parent.name == ".perfgate" else path.parent


def _row(sitting: Sitting) -> tuple[object, ...]:
    s = sitting
    return (str(s.key), s.device, s.time, s.when, s.commit, s.branch, s.processes, s.scatter, s.clock_hz, s.identity)


def _sitting(row: Sequence[object]) -> Sitting:
    key, device, time, when, commit, branch, processes, scatter, clock_hz, identity = row
    return Sitting(
        key=parse_case_key(_text(key)),
        device=_text(device),
        time=_number(time),
        when=_text(when),
        commit=_text(commit),
        branch=_text(branch),
        processes=int(_number(processes)),
        scatter=_number(scatter),
        clock_hz=None if clock_hz is None else _number(clock_hz),
        identity=_text(identity),
    )


def _text(cell: object) -> str:
    if not isinstance(cell, str):
        raise TypeError(f"{cell!r:.40} where a text belongs")
    return cell


def _number(cell: object) -> float:
    if not isinstance(cell, (int, float)) or not math.isfinite(cell):
        raise ValueError(f"{cell!r:.40} where a number belongs")
    return cell
