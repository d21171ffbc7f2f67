"""SQLite opened read-only; schemas."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from math import inf
from pathlib import Path
from typing import Any
from urllib.parse import quote

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
        self.foreign, self.checked = 0, set[str]()  # texts that are no UTF-8, tables whose times are numbers
        with self._mapped():
            where = f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"
            self._inner = sqlite3.connect(where, uri=True, check_same_thread=False)  # one thread at a time uses it
            self._inner.text_factory = self._text
            self._inner.set_authorizer(allow)
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
        except UnicodeDecodeError as error:  # SQLite quotes a name of its own table that is none
            raise PerfgateError("nsys-damaged", f"SQLite meets {error.object!r:.60}", place=str(self.path)) from error

    def has(self, table: str) -> bool:
        return table.lower() in self._tables

    def numbered(self, table: str) -> bool:
        """Whether the rows of a table have numbers, by which they are read in parts."""
        try:
            self._inner.execute(f"SELECT rowid FROM {self._actual(table)} LIMIT 0")
        except sqlite3.OperationalError:
            return False
        return True

    def begins(self, prefix: str) -> bool:
        """Whether a table has such a name."""
        return any(name.startswith(prefix.lower()) for name in self._tables)

    def columns(self, table: str) -> Mapping[str, str]:
        """A table's columns with what they are declared as; none when it is absent."""
        if table not in self._kinds:
            rows = self.rows(f"PRAGMA table_info({self._actual(table)})") if self.has(table) else []
            self._kinds[table] = {str(row[1]): f"{row[2]}{NEVER_NULL if row[3] else ''}".upper() for row in rows}
        return self._kinds[table]

    def source(self, table: str) -> str:
        """What stands behind FROM: the table, with numbers made of what it declares as something else.

        SQLite compares a text with a number by kind, not by value; a table that was imported has such columns.
        """
        if table not in self._sources:
            kinds = self.columns(table)
            odd = [name for name in NUMBERS if name in kinds and "INT" not in kinds[name]]
            cast = [f"CAST({name} AS INTEGER) AS {name}" for name in odd]
            columns = [quoted(name) for name in kinds if name not in odd]
            whole = self._actual(table)
            self._sources[table] = f"(SELECT {', '.join(['rowid', *cast, *columns])} FROM {whole})" if odd else whole
        return self._sources[table]

    def _actual(self, table: str) -> str:
        return quoted(self._tables[table.lower()])

    def rows(self, sql: str, args: Sequence[object] = ()) -> list[Any]:
        with self._mapped():
            return self._inner.execute(sql, args).fetchall()

    def close(self) -> None:
        self._inner.close()


def _by_name(listed: Sequence[str]) -> dict[str, str]:
    """By the name in lower case; the one without a number comes first, else the newest form."""
    ranked: dict[str, tuple[float, str]] = {}
    for actual in listed:
        name, number = plain(actual)
        rank = (float(number) if number else inf, actual)
        ranked[name] = max(rank, ranked.get(name, rank))
    return {name: actual for name, (_, actual) in ranked.items()}


def quoted(text: str) -> str:
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


def connect(path: Path) -> Connection:
    """An export, once its first bytes say that it can be one."""
    head = read_head(path)
    if not head:
        raise PerfgateError("nsys-missing", "the file is empty", place=str(path))
    if not head.startswith(SQLITE):
        raise PerfgateError("nsys-not-export", f"it starts with {head[:16]!r}, not as SQLite does", place=str(path))
    check_journal(path, head)
    check_length(path, head)
    connection = Connection(path)
    try:
        check_export(connection)
    except PerfgateError:
        connection.close()
        raise
    return connection


KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
COPIES = "CUPTI_ACTIVITY_KIND_MEMCPY"
MEMSETS = "CUPTI_ACTIVITY_KIND_MEMSET"
RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"

RANGES = "NVTX_EVENTS"

STRINGS = "StringIds"

THREADS = "ThreadNames"

GPUS = ("TARGET_INFO_GPU", "TARGET_INFO_CUDA_GPU")
"""The table changed its name in 2021."""

METADATA = ("META_DATA_EXPORT", "EXPORT_META_DATA")
"""The table changed its name with schema 3.7."""

_PLACE = ("start", "end", "deviceId", "streamId", "globalPid")

NEEDED = {
    KERNELS: (*_PLACE, "correlationId"),
    COPIES: _PLACE,
    MEMSETS: _PLACE,
    RUNTIME: ("start", "end", "globalTid", "correlationId", "nameId"),
    RANGES: ("start", "end", "globalTid"),
    STRINGS: ("id", "value"),
    THREADS: ("globalTid", "nameId"),
}
"""Columns without which a table says something else than it seems to."""

TIMED = "start IS NOT NULL AND end IS NOT NULL"
"""A row whose time is known. Below zero is a time like any other: ``nsys export --ts-shift`` moves the whole clock."""

_ALSO = (
    "eventType", "textId", "contextId", "shortName", "demangledName", "mangledName", "cuDevice"
)  # fmt: skip

NUMBERS = frozenset({name for names in NEEDED.values() for name in names} | set(_ALSO)) - {"value"}
"""Columns that hold whole numbers, in whichever table."""

_TABLES = (KERNELS, COPIES, MEMSETS, RUNTIME, GRAPHS, RANGES, STRINGS, THREADS, *GPUS, *METADATA)

_READ = frozenset({"sqlite_master", "sqlite_schema", *map(str.lower, _TABLES)})

_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_PRAGMA})

_NUMBERED = re.compile(r"_v(\d+)$")


def plain(table: str) -> tuple[str, int]:
    """A table's name in lower case, and the number of its form: ``NAME_V2`` is form 2 of ``name``."""
    name = table.lower()
    hit = _NUMBERED.search(name)
    return (name[: hit.start()], int(hit.group(1))) if hit else (name, 0)


def allow(action: int, table: str | None, *_: object) -> int:
    """SQLite asks this for every column it is about to read: a door, not a promise."""
    allowed = plain(table or "")[0] in _READ if action == sqlite3.SQLITE_READ else action in _ALLOWED
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


_ROCPD = "rocpd_"
"""How the tables begin that rocprofv3 writes by default."""

_RPD = "rocpd_op"

_OTHER_TOOL = "its tables are named like those of rocprofv3 and mean other things"

_V3 = "profile again: rocprofv3 --kernel-trace --output-format csv -- PROGRAM"

_NVPROF = "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"

_WHOLE = "export all tables: nsys export --type=sqlite, without --tables"

_MOST_STRINGS = (1 << 32) - 1

_ALWAYS = {STRINGS: ("id", "value"), KERNELS: ("start", "end")}


def check_export(db: Connection) -> None:
    """Another program's file is an error that says what it is, as far as its tables do."""
    if db.has(STRINGS):
        return
    place, what, fix = str(db.path), f"an SQLite file without the table {STRINGS}", ""
    present = [table for table in NEEDED if db.has(table)]
    if db.has(_RPD):
        what = "a database of rocmProfileData, which is not read"
        raise PerfgateError("rocprof-csv", what, why=_OTHER_TOOL, fix=_V3, place=place)
    if db.begins(_ROCPD):
        fix = f"rocpd convert -i {db.path.name} --output-format csv, and name the folder that it writes"
        raise PerfgateError("rocprof-csv", "a database of rocprofv3, which is read as CSV", place=place, fix=fix)
    if db.has(_NVPROF):
        what, fix = "a database of nvprof, which nsys has replaced", "capture again with: nsys profile"
    elif present:
        what = f"it holds {', '.join(present)} and no {STRINGS}, where their names are"
        raise PerfgateError("nsys-schema", what, place=place, fix=_WHOLE)
    raise PerfgateError("nsys-not-export", what, place=place, fix=fix)


def check_layout(db: Connection) -> None:
    """What could not be read without guessing is an error."""
    problem = next(filter(None, map(partial(_unread, db), NEEDED)), "") or _misnumbered(db)
    if problem:
        raise PerfgateError("nsys-schema", problem, place=str(db.path))


def _unread(db: Connection, table: str) -> str:
    """Why a table cannot be read at all."""
    if not db.has(table):
        return f"{table} is a view, and only tables are read" if table.lower() in db.views else ""
    gone = [name for name in _ALWAYS.get(table, ()) if name not in db.columns(table)]
    if gone:
        return f"{table} has no column {' nor '.join(gone)}"
    return "" if db.numbered(table) else f"the rows of {table} have no numbers (WITHOUT ROWID)"


def _misnumbered(db: Connection) -> str:
    """Kernels are added up by the lower half of their name's number."""
    most = db.rows(f"SELECT max(id) FROM {db.source(STRINGS)}")[0][0]
    return f"texts are numbered up to {most:,}, past 32 bits" if most is not None and most > _MOST_STRINGS else ""


def lacking(db: Connection, filled: tuple[str, ...]) -> tuple[str, ...]:
    """Columns that filled tables do not have and figures need."""
    needed = ((table, name) for table in filled for name in NEEDED.get(table, ()))
    return tuple(f"{table}.{name}" for table, name in needed if name not in db.columns(table))


def complete(db: Connection, table: str) -> bool:
    """Whether a table is there with all that is read of it."""
    return db.has(table) and all(name in db.columns(table) for name in NEEDED[table])
