"""Opening an export: read-only, immutable, and with a clear word for every way it can be wrong."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pytest_perfgate.adapters.readers.nsys import tables
from pytest_perfgate.adapters.system.files import first_bytes
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.nsys import SQLITE

_WAL = b"\2\2"
_HEADER = 100
NEVER_NULL = " NOT NULL"


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
            self._tables = _by_name(self._listed("table"))
            self.views = _by_name(self._listed("view"))
        self._kinds: dict[str, dict[str, str]] = {}
        self._sources: dict[str, str] = {}

    def _listed(self, kind: str) -> list[str]:
        rows = self._inner.execute("SELECT name FROM sqlite_master WHERE type = ?", (kind,)).fetchall()
        return [str(name) for (name,) in rows]

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

    def numbered(self, table: str) -> bool:
        """Whether the rows of a table have numbers, by which they are read in parts."""
        try:
            self._inner.execute(f"SELECT rowid FROM {self._quoted(table)} LIMIT 0")
        except sqlite3.OperationalError:
            return False
        return True

    def begins(self, prefix: str) -> bool:
        """Whether a table has such a name."""
        return any(name.startswith(prefix.lower()) for name in self._tables)

    def columns(self, table: str) -> Mapping[str, str]:
        """A table's columns with what they are declared as; none when it is absent."""
        if table not in self._kinds:
            rows = self.rows(f"PRAGMA table_info({self._quoted(table)})") if self.has(table) else []
            self._kinds[table] = {str(row[1]): f"{row[2]}{NEVER_NULL if row[3] else ''}".upper() for row in rows}
        return self._kinds[table]

    def source(self, table: str) -> str:
        """What stands behind FROM: the table, with numbers made of what it declares as something else.

        SQLite compares a text with a number by kind, not by value; a table that was imported has such columns.
        """
        if table not in self._sources:
            kinds = self.columns(table)
            odd = [name for name in tables.NUMBERS if name in kinds and "INT" not in kinds[name]]
            cast = [f"CAST({name} AS INTEGER) AS {name}" for name in odd]
            kept = [_name(name) for name in kinds if name not in odd]
            whole = self._quoted(table)
            self._sources[table] = f"(SELECT {', '.join(['rowid', *cast, *kept])} FROM {whole})" if odd else whole
        return self._sources[table]

    def _quoted(self, table: str) -> str:
        return _name(self._tables[table.lower()])

    def rows(self, sql: str, args: Sequence[object] = ()) -> list[Any]:
        with self._mapped():
            return self._inner.execute(sql, args).fetchall()

    def close(self) -> None:
        self._inner.close()


def _by_name(listed: Sequence[str]) -> dict[str, str]:
    """By the name in lower case; the one without a number comes first, else the newest form."""
    found: dict[str, tuple[float, str]] = {}
    for actual in listed:
        name, number = tables.plain(actual)
        rank = (float(number) if number else inf, actual)
        found[name] = max(rank, found.get(name, rank))
    return {name: actual for name, (_, actual) in found.items()}


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def read_head(path: Path) -> bytes:
    """The first bytes of a file; one that cannot be opened is an error."""
    try:
        return first_bytes(path, _HEADER)
    except OSError as error:
        raise PerfgateError("nsys-missing", str(error.strerror or error), place=str(path)) from error


def check_journal(path: Path, head: bytes) -> None:
    """An immutable reader sees neither a write-ahead log nor a hot journal."""
    beside = path.with_name(path.name + ("-wal" if head[18:20] == _WAL else "-journal"))
    if beside.is_file() and any(read_head(beside)[: len(SQLITE)]):  # one that was used up is empty or begins with zeros
        raise PerfgateError("nsys-unfinished", f"{beside.name} holds changes not in the file", place=str(path))


def check_length(path: Path, head: bytes) -> None:
    """The header counts the pages: fewer on disk mean that the copy broke off."""
    size = int.from_bytes(head[16:18], "big")
    size = 65536 if size == 1 else size
    pages = int.from_bytes(head[28:32], "big")
    current = head[24:28] == head[92:96]
    have = path.stat().st_size
    if current and have < pages * size:
        what = f"{have:,} bytes of the {pages * size:,} that its header names"
        raise PerfgateError("nsys-damaged", what, place=str(path))
