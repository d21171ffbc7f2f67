"""Opening SQLite exports read-only, and checking their schemas."""

from __future__ import annotations

import re
import sqlite3
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from math import inf
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pytest_perfgate.adapters.system.files import first_bytes
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.profiles import SQLITE

_WAL = b"\2\2"

_HEADER = 100

NEVER_NULL = " NOT NULL"


def _text(foreign: list[int], raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        foreign[0] += 1
        return raw.decode(errors="replace")


class Connection:
    """Queries on an export; SQLite's errors become ours."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.foreign, self.checked = [0], set[str]()  # texts that are not UTF-8, tables whose times are numbers
        with self._mapped():
            where = f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"
            self._inner = sqlite3.connect(where, uri=True, check_same_thread=False)  # used by one thread at a time
            weakref.finalize(self, self._inner.close)  # Python 3.13 warns of an open one
            self._inner.text_factory = partial(_text, self.foreign)
            self._inner.set_authorizer(allow)
            self._tables = _by_name(self._listed("table"))
            self.views = _by_name(self._listed("view"))
        self._kinds, self._sources = dict[str, dict[str, str]](), dict[str, str]()

    def _listed(self, kind: str) -> list[str]:
        return [str(name) for (name,) in self._inner.execute("SELECT name FROM sqlite_master WHERE type = ?", (kind,))]

    @contextmanager
    def _mapped(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise PerfgateError("nsys-damaged", f"SQLite says: {error}", place=str(self.path)) from error
        except UnicodeDecodeError as error:  # SQLite quotes a name of its own table that does not exist
            raise PerfgateError("nsys-damaged", f"SQLite meets {error.object!r:.60}", place=str(self.path)) from error

    def has(self, table: str) -> bool:
        return table.lower() in self._tables

    def numbered(self, table: str) -> bool:
        """Return whether a table's rows have numbers, by which they can be read in parts."""
        try:
            self._inner.execute(f"SELECT rowid FROM {self._actual(table)} LIMIT 0")
        except sqlite3.OperationalError:
            return False
        return True

    def begins(self, prefix: str) -> bool:
        return any(name.startswith(prefix.lower()) for name in self._tables)

    def columns(self, table: str) -> Mapping[str, str]:
        """Return a table's columns with their declared types; none if it is absent."""
        if table not in self._kinds:
            rows = self.rows(f"PRAGMA table_info({self._actual(table)})") if self.has(table) else []
            self._kinds[table] = {str(row[1]): f"{row[2]}{NEVER_NULL if row[3] else ''}".upper() for row in rows}
        return self._kinds[table]

    def source(self, table: str) -> str:
        """Return the SQL after FROM: the table, with numbers converted if they are declared as another type.

        SQLite compares texts with numbers by type, not by value; imported tables have such columns.
        """
        if table not in self._sources:
            kinds = self.columns(table)
            not_integers = [name for name in NUMBERS if name in kinds and "INT" not in kinds[name]]
            cast = [f"CAST({name} AS INTEGER) AS {name}" for name in not_integers]
            columns = [quoted(name) for name in kinds if name not in not_integers]
            whole = self._actual(table)
            self._sources[table] = (
                f"(SELECT {', '.join(['rowid', *cast, *columns])} FROM {whole})" if not_integers else whole
            )
        return self._sources[table]

    def _actual(self, table: str) -> str:
        return quoted(self._tables[table.lower()])

    def rows(self, sql: str, args: Sequence[object] = ()) -> list[Any]:
        with self._mapped():
            return self._inner.execute(sql, args).fetchall()

    def close(self) -> None:
        self._inner.close()


def _by_name(listed: Sequence[str]) -> dict[str, str]:
    """Return tables by lower-case name; of several forms, the one without a number, else the newest."""
    ranked: dict[str, tuple[float, str]] = {}
    for actual in listed:
        name, number = plain(actual)
        rank = (float(number) if number else inf, actual)
        ranked[name] = max(rank, ranked.get(name, rank))
    return {name: actual for name, (_, actual) in ranked.items()}


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def read_head(path: Path) -> bytes:
    """Return the first bytes of a file; raise if it cannot be opened."""
    try:
        return first_bytes(path, _HEADER)
    except OSError as error:
        raise PerfgateError("nsys-missing", str(error.strerror or error), place=str(path)) from error


def check_journal(path: Path, head: bytes) -> None:
    """Refuse a file with a write-ahead log or a hot journal, which a read-only connection ignores."""
    journal = path.with_name(path.name + ("-wal" if head[18:20] == _WAL else "-journal"))
    if journal.is_file() and any(read_head(journal)[: len(SQLITE)]):  # a used one is empty or begins with zeros
        raise PerfgateError("nsys-unfinished", f"{journal.name} holds changes not in the file", place=str(path))


def check_length(path: Path, head: bytes) -> None:
    """Refuse a file with fewer pages than its header counts, as after an interrupted copy."""
    size = int.from_bytes(head[16:18], "big")
    size = 65536 if size == 1 else size
    pages = int.from_bytes(head[28:32], "big")
    current = head[24:28] == head[92:96]
    have = path.stat().st_size
    if current and have < pages * size:
        what = f"{have:,} bytes of the {pages * size:,} that its header names"
        raise PerfgateError("nsys-damaged", what, place=str(path))


def connect(path: Path) -> Connection:
    """Open a file whose first bytes are those of an export."""
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
"""Names of the table before and after 2021."""

METADATA = ("META_DATA_EXPORT", "EXPORT_META_DATA")
"""Names of the table before and after schema 3.7."""

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
"""Columns without which a table would be misread."""

TIMED = "start IS NOT NULL AND end IS NOT NULL"
"""Selects rows with a known time. It may be negative: ``nsys export --ts-shift`` shifts the whole clock."""

_ALSO = ("eventType", "textId", "contextId", "shortName", "demangledName", "mangledName", "cuDevice")

NUMBERS = frozenset({name for names in NEEDED.values() for name in names} | set(_ALSO)) - {"value"}
"""Columns that hold whole numbers, in all tables."""

_TABLES = (KERNELS, COPIES, MEMSETS, RUNTIME, GRAPHS, RANGES, STRINGS, THREADS, *GPUS, *METADATA)

_READ = frozenset({"sqlite_master", "sqlite_schema", *map(str.lower, _TABLES)})

_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_PRAGMA})

_NUMBERED = re.compile(r"_v(\d+)$")


def plain(table: str) -> tuple[str, int]:
    """Return a table's name in lower case, and the number of its form: ``NAME_V2`` is form 2 of ``name``."""
    name = table.lower()
    hit = _NUMBERED.search(name)
    return (name[: hit.start()], int(hit.group(1))) if hit else (name, 0)


def allow(action: int, table: str | None, *_: object) -> int:
    """Allow SQLite to read only the tables that are needed; it asks before every column."""
    allowed = plain(table or "")[0] in _READ if action == sqlite3.SQLITE_READ else action in _ALLOWED
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


_ROCPD = "rocpd_"
"""Prefixes of the tables that rocprofv3 writes by default."""

_RPD = "rocpd_op"

_OTHER_TOOL = "its tables are named like those of rocprofv3 and mean other things"

_V3 = "profile again: rocprofv3 --kernel-trace --output-format csv -- PROGRAM"

_NVPROF = "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"

_WHOLE = "export all tables: nsys export --type=sqlite, without --tables"

_MOST_STRINGS = (1 << 32) - 1

_ALWAYS = {STRINGS: ("id", "value"), KERNELS: ("start", "end")}


def check_export(db: Connection) -> None:
    """Refuse another program's file, with what it is if its tables show that."""
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
    """Refuse a layout that could only be read by guessing."""
    problem = next(filter(None, map(partial(_read_refusal, db), NEEDED)), "") or _number_problem(db)
    if problem:
        raise PerfgateError("nsys-schema", problem, place=str(db.path))


def _read_refusal(db: Connection, table: str) -> str:
    """Return why a table cannot be read at all."""
    if not db.has(table):
        return f"{table} is a view, and only tables are read" if table.lower() in db.views else ""
    missing = [name for name in _ALWAYS.get(table, ()) if name not in db.columns(table)]
    if missing:
        return f"{table} has no column {' nor '.join(missing)}"
    return "" if db.numbered(table) else f"the rows of {table} have no numbers (WITHOUT ROWID)"


def _number_problem(db: Connection) -> str:
    """Return why kernels cannot be summed up by the lower half of their name's number; "" if they can."""
    most = db.rows(f"SELECT max(id) FROM {db.source(STRINGS)}")[0][0]
    return f"texts are numbered up to {most:,}, past 32 bits" if most is not None and most > _MOST_STRINGS else ""


def missing_columns(db: Connection, filled: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns that filled tables lack and figures need."""
    needed = ((table, name) for table in filled for name in NEEDED.get(table, ()))
    return tuple(f"{table}.{name}" for table, name in needed if name not in db.columns(table))


def complete(db: Connection, table: str) -> bool:
    """Return whether a table exists with all columns that are read."""
    return db.has(table) and all(name in db.columns(table) for name in NEEDED[table])
