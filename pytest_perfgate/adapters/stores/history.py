"""Entries over time in SQLite: many writers, one index lookup for each case."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from pytest_perfgate.adapters.stores.stored_forms import (
    PART,
    LazyLookup,
    Lookup,
    Run,
    by_run,
    entries_of,
    levels_of,
    metrics_text,
    moment_at,
    parse_facts,
    text_of,
    words_of,
)
from pytest_perfgate.adapters.system.files import locked, refusals, uncollected
from pytest_perfgate.model.errors import PerfgateError, refusal, without_secrets
from pytest_perfgate.model.plan import CaseKey, parse_case_key

if TYPE_CHECKING:
    from pytest_perfgate.model.measurement import HistoryEntry
    from pytest_perfgate.model.metric import FigureName, Levels

    Wanted = Mapping[tuple[str, CaseKey], Collection[FigureName]]

SCHEMA = 2

_APPLICATION = 0x50474154

_SECONDS = 30.0

_LOG = 16_000
"""Pages of the write-ahead log before a checkpoint; it is large because successive runs change the same pages."""

_REFUSED = ("readonly", "disk is full", "unable to open", "disk I/O error")
"""SQLite's messages for faults of the disk, not the database; Python has its error names only since 3.11."""

_TABLES = """
create table word (id integer primary key, text text not null unique);
create table run (
  id integer primary key, name text not null unique, at real not null, moment text not null, git_commit text not null,
  branch text not null
);
create table series (id integer primary key, device text not null, key text not null, unique (device, key));
create table sitting (
  series integer not null, at real not null, run integer not null, time real not null, processes integer not null,
  scatter real not null, clock_hz real, identity integer not null, outcome integer not null, host integer not null,
  card integer not null, facts integer not null, primary key (series, at, run)
) without rowid;
create table record (digest text primary key) without rowid;
create table figures (run integer not null, series integer not null, data text not null, primary key (run, series))
  without rowid
"""
"""Repeated texts are stored once, as words. The runs of a case are adjacent, in the order of time."""

_ENTRY = "run, time, processes, scatter, clock_hz, identity, outcome, host, card, facts"

_SERIES = "select id from series where device = ? and key = ?"

_RUN = "name, moment, git_commit, branch"

_FIRST_FORM = """
alter table sitting rename to before;
insert into run (name, at, moment, git_commit, branch)
  select distinct moment || ' ' || git_commit, moment_at(moment), moment, git_commit, branch from before where true
  on conflict do nothing;
insert into series (device, key) select distinct device, key from before;
insert into word (text) select identity from before union select '';
insert or ignore into sitting
  select s.id, r.at, r.id, b.time, b.processes, b.scatter, b.clock_hz, w.id, no.id, no.id, no.id, no.id
  from before b join series s on s.device = b.device and s.key = b.key
  join run r on r.name = b.moment || ' ' || b.git_commit join word w on w.text = b.identity
  join word no on no.text = '';
drop table before
"""
"""Converts a history with one table to the present form."""

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")

SERVERS = ("postgresql://", "postgres://")
"""Prefixes of addresses of histories that are not files."""


def history_file(root: Path, address: str = "") -> Path:
    """Return the path of the history; refuse another address, which would become a folder of that name."""
    if _ADDRESS.match(address):
        what = "the history is a file or a database of PostgreSQL, and this is another address"
        raise PerfgateError("history-address", what, place=without_secrets(address))
    return root / (address or ".perfgate/history.db")


class SeriesReader:
    """Reads entries by case and device; a history says how it finds those of one case, and those of all."""

    def read(self, key: CaseKey, device: str, last: int = 0) -> tuple[HistoryEntry, ...]:
        """Return the entries of a case, oldest first; with ``last``, only so many of the newest."""
        return self._series(key, device, last, 1)

    def figures(self, key: CaseKey, device: str, last: int = 0) -> tuple[HistoryEntry, ...]:
        """Return the same as ``read`` with figures, including entries without a time."""
        return self._series(key, device, last, 0)

    def lines(self, last: int = 0, detailed: int = 0) -> Iterator[tuple[HistoryEntry, ...]]:
        """Yield the same as ``read`` for each case and device; the newest ``detailed`` entries with all figures."""
        return (line for line, _ in self._lines((last, detailed, 1)))

    def levels(self, of: Wanted, last: int = 0, detailed: int = 0) -> Iterator[tuple[tuple[HistoryEntry, ...], Levels]]:
        """Yield the same as ``lines`` for these cases, timed or not, with each run's values of the named figures."""
        return self._lines((last, detailed, 0), of)

    def _series(self, key: CaseKey, device: str, last: int, least: int) -> tuple[HistoryEntry, ...]:
        """Return the entries in so many processes at least; those in 0 or more come with figures."""
        raise NotImplementedError

    def _lines(
        self, counts: tuple[int, int, int], of: Wanted | None = None
    ) -> Iterator[tuple[tuple[HistoryEntry, ...], Levels]]:
        """Yield lines by their last entries, those of them with figures, and the least number of processes."""
        raise NotImplementedError


class SqliteHistory(SeriesReader):
    """The history of a project, by default in ``.perfgate/history.db``."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def append(self, entries: Sequence[HistoryEntry], record: str = "") -> int:
        """Add entries and return how many were new."""
        if not entries and not record:
            return 0
        with self._open() as database:
            database.execute("begin immediate")
            if record:
                database.execute("insert or ignore into record (digest) values (?)", (record,))
            return sum(_add(database, run, list(some)) for run, some in by_run(entries))

    @contextlib.contextmanager
    def kept_open(self) -> Iterator[None]:
        """Keep the file open while many runs are appended, because closing it last writes out its whole log."""
        with self._open():
            yield

    def has(self, record: str) -> bool:
        """Return whether a record of this digest was added before."""
        if not self._is_there():
            return False
        with self._open(reading=True) as database:
            return database.execute("select 1 from record where digest = ?", (record,)).fetchone() is not None

    def _series(self, key: CaseKey, device: str, last: int, least: int) -> tuple[HistoryEntry, ...]:
        if not self._is_there():
            return ()
        counts = (last, 0 if least else last or -1, least)
        with self._open(reading=True) as database:
            series = database.execute(_SERIES, (device, str(key))).fetchone()
            return _line(database, (device, key, series[0]), _lookup(database), counts)[0] if series else ()

    def _lines(
        self, counts: tuple[int, int, int], of: Wanted | None = None
    ) -> Iterator[tuple[tuple[HistoryEntry, ...], Levels]]:
        if not self._is_there():
            return
        with self._open(reading=True) as database:
            yield from _every_line(database, counts, of)

    def keys(self, device: str = "") -> tuple[tuple[str, CaseKey], ...]:
        """Return (device, case) of all that was ever measured."""
        if not self._is_there():
            return ()
        query = "select device, key from series where ? in ('', device) order by device, key"
        with self._open(reading=True) as database:
            return tuple(
                (text_of(name), parse_case_key(text_of(key))) for name, key in database.execute(query, (device,))
            )

    def _is_there(self) -> bool:
        """Return whether there is a history; raise if that cannot be found out."""
        try:
            self._path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as fault:
            raise refusal(fault, str(self._path)) from fault
        return True

    @contextlib.contextmanager
    def _open(self, *, reading: bool = False) -> Iterator[sqlite3.Connection]:
        if not reading:
            with refusals(self._path):
                self._path.parent.mkdir(parents=True, exist_ok=True)
        try:
            database = self._connect(reading=reading)
            try:
                with database:
                    yield database
            finally:
                database.close()
        except (TypeError, ValueError, OverflowError) as fault:
            what = f"a row is not as perfgate wrote it: {fault}"
            raise PerfgateError("history-unreadable", what, place=str(self._path)) from fault
        except sqlite3.Error as fault:
            if _is_refusal(fault):
                what = f"it cannot be written: {fault}"
                raise PerfgateError("file-unwritable", what, place=str(self._path)) from fault
            if "locked" in str(fault):
                again = "repeat this" if reading else "perfgate history add"
                fix = f"end the program that writes to it (fuser {quote(str(self._path))}), then: {again}"
                raise PerfgateError("history-unreachable", str(fault), fix=fix, place=str(self._path)) from fault
            raise PerfgateError("history-unreadable", str(fault), place=str(self._path)) from fault

    def _connect(self, *, reading: bool) -> sqlite3.Connection:
        """Return a connection; on a read-only disk, one that only reads."""
        database = sqlite3.connect(self._path, timeout=_SECONDS)
        try:
            self._prepare(database)
            database.execute("pragma synchronous = normal")  # a power cut may cost the newest runs; records have them
            database.execute(f"pragma wal_autocheckpoint = {_LOG}")
        except BaseException as fault:
            database.close()
            if not reading or not _is_refusal(fault) or _has_unmerged_log(self._path):
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
        with locked(_home(self._path), self._path):  # switching to a write-ahead log does not wait for other writers
            self._create(database)

    def _create(self, database: sqlite3.Connection) -> None:
        owner = database.execute("pragma application_id").fetchone()[0]
        if database.execute("select count(*) from sqlite_master").fetchone()[0] and owner != _APPLICATION:
            raise PerfgateError("history-unreadable", "it holds tables of another program", place=str(self._path))
        database.create_function("moment_at", 1, moment_at)
        database.execute("pragma journal_mode = wal")
        database.execute("begin immediate")
        version = database.execute("pragma user_version").fetchone()[0]
        if version < SCHEMA:
            first, *rest = _FIRST_FORM.split(";") if version else [""]
            for statement in (first, *_TABLES.split(";"), *rest):
                database.execute(statement)
        database.execute(f"pragma application_id = {_APPLICATION}")
        database.execute(f"pragma user_version = {SCHEMA}")
        database.commit()


def _add(database: sqlite3.Connection, run: str, entries: Sequence[HistoryEntry]) -> int:
    """Add the entries of one run and return how many were new."""
    first = entries[0]
    at = moment_at(first.when)
    naming = (at, run, first.when, first.commit, first.branch)
    database.execute(f"insert or ignore into run (at, {_RUN}) values (?, ?, ?, ?, ?)", naming)  # noqa: S608
    number, at = database.execute("select id, at from run where name = ?", (run,)).fetchone()
    places, texts = [(s.device, str(s.key)) for s in entries], [*map(words_of, entries)]
    series = _numbers(database, "series", places)
    words = _numbers(database, "word", ((text,) for texts_of in set(texts) for text in texts_of))
    numbers = {texts_of: [words[(text,)] for text in texts_of] for texts_of in set(texts)}
    rows = [(series[place], s, numbers[texts_of]) for place, s, texts_of in zip(places, entries, texts)]
    before = database.total_changes
    database.executemany(
        f"insert or ignore into sitting (series, at, {_ENTRY}) values ({', '.join('?' * 12)})",  # noqa: S608
        [(place, at, number, s.time, s.processes, s.scatter, s.clock_hz, *texts) for place, s, texts in rows],
    )
    new = database.total_changes - before
    figures = [(number, place, metrics_text(s.metrics)) for place, s, _ in rows if s.metrics]
    database.executemany("insert or ignore into figures (run, series, data) values (?, ?, ?)", figures)
    return new


_COLUMNS = {"word": "text", "series": "device, key"}


def _numbers(database: sqlite3.Connection, table: str, rows: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], int]:
    """Return the numbers of these rows, after adding the missing ones."""
    columns, wide = _COLUMNS[table], f"({', '.join('?' * len(_COLUMNS[table].split()))})"
    write = f"insert into {table} ({columns}) values {wide}"  # noqa: S608
    wanted = list(dict.fromkeys(rows))
    numbers: dict[tuple[str, ...], int] = {}
    for at in range(0, len(wanted), _ASKED):
        some = wanted[at : at + _ASKED]
        either = ", ".join([wide] * len(some))
        values = f"with asked ({columns}) as (values {either})"
        find = f"{values} select id, {columns} from asked cross join {table} using ({columns})"  # noqa: S608 - by its index
        numbers.update((tuple(row), number) for number, *row in database.execute(find, [*chain(*some)]))
    for row in wanted:
        if row not in numbers:
            numbers[row] = int(database.execute(write, row).lastrowid or 0)
    return numbers


_ASKED = 400
"""Rows of one query: SQLite allows at least 999 parameters."""


def _lookup(database: sqlite3.Connection) -> Lookup:
    """Return runs and words, each read once."""

    def run(number: int) -> Run:
        row = database.execute(f"select {_RUN} from run where id = ?", (number,)).fetchone()  # noqa: S608
        name, moment, commit, branch = map(text_of, row)
        return name, moment, commit, branch

    def word(number: int) -> str:
        return text_of(database.execute("select text from word where id = ?", (number,)).fetchone()[0])

    words = LazyLookup(word)
    return Lookup(LazyLookup(run), words, LazyLookup(lambda number: parse_facts(words[number])), {})


def _every_line(
    database: sqlite3.Connection, counts: tuple[int, int, int],
    of: Wanted | None,
) -> Iterator[tuple[tuple[HistoryEntry, ...], Levels]]:  # fmt: skip
    """Yield the lines of these cases, or of all; as many at a time as have few rows."""
    lookup, rows = _lookup(database), database.execute("select device, key, id from series order by device, key")
    listed = [(text_of(name), parse_case_key(text_of(text)), number) for name, text, number in rows]
    wanted = [place for place in listed if of is None or place[:2] in of]
    some = max(1, PART // (counts[0] or PART))
    for first in range(0, len(wanted), some):
        with uncollected():
            part = [(place, of[place[:2]] if of else ()) for place in wanted[first : first + some]]
            lines = [_line(database, place, lookup, counts, names) for place, names in part]
        yield from lines


def _line(
    database: sqlite3.Connection, series: tuple[str, CaseKey, int], lookup: Lookup, counts: tuple[int, int, int],
    names: Collection[FigureName] = (),
) -> tuple[tuple[HistoryEntry, ...], Levels]:  # fmt: skip
    """Return the newest runs of a case in so many processes, oldest first, some of them with figures."""
    device, key, place = series
    last, detailed, least = counts
    newest = "where s.series = ? and processes >= ? order by at desc, s.run desc limit ?"
    query = f"select {_ENTRY.replace('run', 's.run')} from sitting s {newest}"  # noqa: S608
    columns = list(zip(*database.execute(query, (place, least, last or -1))))
    figures: list[str] = []
    if detailed or names:
        query = f"select data from sitting s left join figures using (run, series) {newest}"  # noqa: S608
        most = min(last or detailed, detailed) if detailed > 0 and not names else last or -1
        figures = [text for (text,) in database.execute(query, (place, least, most))]
    line = entries_of(columns, device, key, lookup, figures[:detailed] if names else figures)
    return tuple(reversed(line)), levels_of(figures, names)


def _is_refusal(fault: BaseException) -> bool:
    """Return whether the disk, and not the database, is at fault."""
    return isinstance(fault, sqlite3.Error) and any(word in str(fault) for word in _REFUSED)


def _has_unmerged_log(path: Path) -> bool:
    """Return whether a write-ahead log holds data that only a writable disk could merge."""
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def _home(path: Path) -> Path:
    """Return the folder whose ``.perfgate`` holds the lock."""
    return path.parent.parent if path.parent.name == ".perfgate" else path.parent
