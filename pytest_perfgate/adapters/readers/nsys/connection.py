"""Opening an export: read-only, immutable, and with a clear word for every way it can be wrong."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pytest_perfgate.adapters.readers.nsys import tables
from pytest_perfgate.model.errors import PerfgateError

MAGIC = b"SQLite format 3\0"
_WAL = b"\2\2"
_HEADER = 100

_ROCPD = "rocpd_"
"""How the tables begin that rocprofv3 writes by default."""


class Connection:
    """Rows of an export by SQL; foreign errors become ours."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.foreign = 0
        with self._mapped():
            where = f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"
            self._inner = sqlite3.connect(where, uri=True, check_same_thread=False)  # one thread at a time uses it
            self._inner.text_factory = self._text
            self._inner.set_authorizer(tables.allow)
            self._tables = {str(name).lower(): str(name) for (name,) in self._listed()}
        self._columns: dict[str, frozenset[str]] = {}

    def _listed(self) -> list[Any]:
        return self._inner.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()

    def _text(self, raw: bytes) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.foreign += 1
            return raw.decode(errors="replace")

    @contextmanager
    def _mapped(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.DatabaseError, sqlite3.OperationalError) as error:
            raise PerfgateError("nsys-damaged", f"SQLite says: {error}", place=str(self.path)) from error

    def has(self, table: str) -> bool:
        return table.lower() in self._tables

    def begins(self, prefix: str) -> bool:
        """Whether a table has such a name."""
        return any(name.startswith(prefix) for name in self._tables)

    def columns(self, table: str) -> frozenset[str]:
        """Names of a table's columns; none when it is absent."""
        if table not in self._columns:
            rows = self.rows(f"PRAGMA table_info({table})") if self.has(table) else []
            self._columns[table] = frozenset(str(row[1]) for row in rows)
        return self._columns[table]

    def rows(self, sql: str, args: Sequence[object] = ()) -> list[Any]:
        with self._mapped():
            return self._inner.execute(sql, args).fetchall()

    def close(self) -> None:
        self._inner.close()


def connect(path: Path) -> Connection:
    """An export, once its first bytes say that it can be one."""
    head = _head(path)
    if not head:
        raise PerfgateError("nsys-missing", "the file is empty", place=str(path))
    if not head.startswith(MAGIC):
        raise PerfgateError("nsys-not-export", f"it starts with {head[:16]!r}, not as SQLite does", place=str(path))
    _check_journal(path, head)
    _check_length(path, head)
    connection = Connection(path)
    if not connection.has(tables.STRINGS):
        connection.close()
        raise _no_export(connection, path)
    return connection


def _no_export(connection: Connection, path: Path) -> PerfgateError:
    """What else it is, as far as its tables say."""
    if connection.begins(_ROCPD):
        mend = f"rocpd convert -i {path.name} --output-format csv, and name the folder that it writes"
        return PerfgateError("rocprof-csv", "a database of rocprofv3, which is read as CSV", place=str(path), mend=mend)
    return PerfgateError("nsys-not-export", f"an SQLite file without the table {tables.STRINGS}", place=str(path))


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_HEADER)
    except OSError as error:
        raise PerfgateError("nsys-missing", str(error.strerror or error), place=str(path)) from error


def _check_journal(path: Path, head: bytes) -> None:
    """An immutable reader sees neither a write-ahead log nor a hot journal."""
    suffixes = ("-wal",) if head[18:20] == _WAL else ("-journal",)
    for suffix in suffixes:
        beside = path.with_name(path.name + suffix)
        if beside.is_file() and beside.stat().st_size:
            raise PerfgateError("nsys-unfinished", f"{beside.name} holds changes not in the file", place=str(path))


def _check_length(path: Path, head: bytes) -> None:
    """The header counts the pages: fewer on disk mean that the copy broke off."""
    size = int.from_bytes(head[16:18], "big")
    size = 65536 if size == 1 else size
    pages = int.from_bytes(head[28:32], "big")
    current = head[24:28] == head[92:96]
    have = path.stat().st_size
    if current and have < pages * size:
        what = f"{have:,} bytes of the {pages * size:,} that its header names"
        raise PerfgateError("nsys-damaged", what, place=str(path))
