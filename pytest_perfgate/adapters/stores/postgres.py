"""Entries over time in PostgreSQL: one history, to which many machines write at the same time."""

from __future__ import annotations

import contextlib
import selectors
import struct
import weakref
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pytest_perfgate.adapters.stores.history import SeriesReader
from pytest_perfgate.adapters.stores.stored_forms import (
    PART,
    LazyLookup,
    Lookup,
    by_run,
    entries_of,
    levels_of,
    metrics_text,
    moment_at,
    parse_facts,
    text_of,
    words_of,
)
from pytest_perfgate.adapters.system.files import uncollected
from pytest_perfgate.model.errors import PerfgateError, without_secrets
from pytest_perfgate.model.plan import CaseKey, parse_case_key

if TYPE_CHECKING:
    from psycopg import Connection, Cursor

    from pytest_perfgate.adapters.stores.history import Wanted
    from pytest_perfgate.model.measurement import HistoryEntry
    from pytest_perfgate.model.metric import FigureName, Levels

SCHEMA = 1

_LOCK = 0x50474154
"""The advisory lock for creating tables and adding words."""

_CONNECT_S, _TRIES = 10, 3

_TABLES = """
create schema if not exists perfgate;
create table perfgate.form (version integer not null);
create table perfgate.word (id integer generated always as identity primary key, text text not null);
create unique index on perfgate.word (md5(text));
create table perfgate.run (
  id integer generated always as identity primary key, name text not null unique, at double precision not null,
  moment text not null, git_commit text not null, branch text not null
);
create table perfgate.series (
  id integer generated always as identity primary key, device text not null, key text not null
);
create unique index on perfgate.series (device, md5(key));
create table perfgate.sitting (
  series integer not null references perfgate.series, at double precision not null,
  run integer not null references perfgate.run, time double precision not null, processes integer not null,
  scatter double precision not null, clock_hz double precision, identity integer not null, outcome integer not null,
  host integer not null, card integer not null, facts integer not null,
  primary key (series, at, run) include (time, processes, scatter, clock_hz, identity, outcome, host, card, facts)
);
create table perfgate.figures (run integer not null, series integer not null, data jsonb not null,
  primary key (run, series));
create table perfgate.record (digest text primary key);
create view perfgate.times as
  select to_timestamp(s.at) as time, r.git_commit as commit, c.device, c.key as case, s.time as nanoseconds,
    o.text as outcome, h.text as host, k.text as card, r.name as run, f.data as figures
  from perfgate.sitting s join perfgate.run r on r.id = s.run join perfgate.series c on c.id = s.series
  join perfgate.word o on o.id = s.outcome join perfgate.word h on h.id = s.host join perfgate.word k on k.id = s.card
  left join perfgate.figures f on f.run = s.run and f.series = s.series;
comment on view perfgate.times is 'What a dashboard asks: a row a case and run';
insert into perfgate.form values (1)
"""

_ENTRY = "run, time, processes, scatter, clock_hz, identity, outcome, host, card, facts"

_COLUMNS = f"series, at, {_ENTRY}"

_OF_CASE = f"""
select {_ENTRY} from perfgate.sitting where series = %s and processes >= %s order by at desc, run desc limit %s
"""  # noqa: S608

_SENT = {
    "clock_hz": "array_agg(clock_hz)", "run": "string_agg(int4send(run), '')",
    **{name: f"string_agg(float8send({name}), '')" for name in ("time", "scatter")},
    **{
        f"{one}_{other}": f"string_agg(int8send(({one}::bigint << 32) | {other}::bigint), '')"
        for one, other in (("identity", "outcome"), ("host", "card"), ("facts", "processes"))
    },
}  # fmt: skip
"""Columns as the bytes of their numbers, none of them below 0; arrays would take both sides longer."""

_OF_SOME = f"""
select c.id, {", ".join(f"s.{name}" for name in _SENT)}
from unnest(%s::integer[]) c(id) cross join lateral (
  select {", ".join(f"{sent} as {name}" for name, sent in _SENT.items())}
  from (
    select {_ENTRY} from perfgate.sitting where series = c.id and processes >= %s order by at desc, run desc limit %s
  ) n
) s
where s.run is not null
"""  # noqa: S608
"""Returns one row for each case with arrays as columns: a row for each run would take longer to transfer."""

_FIGURES = """
select f.series, f.run, f.data::text
from unnest(%s::integer[], %s::integer[]) a(series, run) join perfgate.figures f using (run, series)
"""

_SERIES = "select id from perfgate.series where device = %s and md5(key) = md5(%s)"
_RUNS = "select id, name, moment, git_commit, branch from perfgate.run where id = any(%s)"
_WORDS = "select id, text from perfgate.word where id = any(%s)"


class PostgresHistory(SeriesReader):
    """The history at an address ``postgresql://…``, in the schema ``perfgate``."""

    def __init__(self, address: str) -> None:
        self._address, self._place = address, without_secrets(address)
        self._connection: Connection[Any] | None = None
        words: dict[int, str] = {}
        self._lookup = Lookup({}, words, LazyLookup(lambda number: parse_facts(words[number])), {})

    def append(self, entries: Sequence[HistoryEntry], record: str = "") -> int:
        """Add entries and return how many were new."""
        if not entries and not record:
            return 0
        for _ in range(_TRIES - 1):
            with contextlib.suppress(_Again):
                return self._append(entries, record)
        return self._append(entries, record)

    def _append(self, entries: Sequence[HistoryEntry], record: str) -> int:
        with self._open() as cursor:
            if record:
                cursor.execute("insert into perfgate.record values (%s) on conflict do nothing", (record,))
            words = _numbers(cursor, "word", {(text,) for s in entries for text in words_of(s)})
            series = _numbers(cursor, "series", {(s.device, str(s.key)) for s in entries})
            return sum(_add(cursor, run, list(some), (series, words)) for run, some in by_run(entries))

    def kept_open(self) -> contextlib.AbstractContextManager[None]:
        """Do nothing: the connection stays open in any case."""
        return contextlib.nullcontext()

    def has(self, record: str) -> bool:
        """Return whether a record of this digest was added before."""
        with self._open() as cursor:
            return cursor.execute("select 1 from perfgate.record where digest = %s", (record,)).fetchone() is not None

    def _series(self, key: CaseKey, device: str, last: int, least: int) -> tuple[HistoryEntry, ...]:
        with self._open() as cursor:
            series = cursor.execute(_SERIES, (device, str(key))).fetchone()
            rows = cursor.execute(_OF_CASE, (series[0], least, last or None)).fetchall() if series else []
            columns = list(zip(*rows))
            self._learn(cursor, [columns])
            places = [] if least else [(series[0], row[0]) for row in rows]
            figures = _figures(cursor, places)
            return self._line((device, key), columns, [figures.get(place, "") for place in places])

    def _lines(
        self, counts: tuple[int, int, int], of: Wanted | None = None
    ) -> Iterator[tuple[tuple[HistoryEntry, ...], Levels]]:
        with self._open() as cursor:
            rows = cursor.execute("select id, device, key from perfgate.series order by device, key").fetchall()
            every = [(number, (device, parse_case_key(text_of(key)))) for number, device, key in rows]
        listed = [(n, place, of[place] if of else ()) for n, place in every if of is None or place in of]
        some = max(1, PART // (counts[0] or PART))
        for first in range(0, len(listed), some):
            yield from self._lines_of(listed[first : first + some], counts)

    @uncollected()
    def _lines_of(
        self, listed: Sequence[tuple[int, tuple[str, CaseKey], Collection[FigureName]]], counts: tuple[int, int, int]
    ) -> Sequence[tuple[tuple[HistoryEntry, ...], Levels]]:
        last, detailed, least = counts
        with self._open() as cursor:
            cursor.execute("set local jit = off")
            rows = cursor.execute(_OF_SOME, ([number for number, *_ in listed], least, last or None)).fetchall()
            lines = {number: _columns(columns) for number, *columns in rows}
            self._learn(cursor, list(lines.values()))
            most = {number: last or None if names else detailed for number, _, names in listed}
            places = [(number, run) for number, columns in lines.items() for run in columns[0][: most[number]]]
            figures = _figures(cursor, places)
        read = []
        for number, place, names in (one for one in listed if one[0] in lines):
            texts = [figures.get((number, run), "") for run in lines[number][0]] if places else []
            read.append((self._line(place, lines[number], texts[:detailed]), levels_of(texts, names)))
        return read

    def _line(
        self, place: tuple[str, CaseKey], columns: Sequence[Sequence[Any]], texts: Sequence[str] = ()
    ) -> tuple[HistoryEntry, ...]:
        return tuple(reversed(entries_of(columns, *place, self._lookup, texts)))

    def keys(self, device: str = "") -> tuple[tuple[str, CaseKey], ...]:
        """Return (device, case) of all that was ever measured."""
        query = "select device, key from perfgate.series where %s in ('', device) order by device, key"
        with self._open() as cursor:
            return tuple((name, parse_case_key(text_of(key))) for name, key in cursor.execute(query, (device,)))

    def _learn(self, cursor: Cursor[Any], lines: Sequence[Sequence[Sequence[Any]]]) -> None:
        """Read the unknown ones of the runs and words that the rows name."""
        lookup = self._lookup
        runs = set[int]().union(*(columns[0] for columns in lines if columns)) - lookup.runs.keys()
        words = set[int]().union(*(column for columns in lines for column in columns[5:])) - lookup.words.keys()
        if runs:
            lookup.runs.update({number: tuple(run) for number, *run in cursor.execute(_RUNS, (list(runs),))})
        if words:
            lookup.words.update(dict(cursor.execute(_WORDS, (list(words),))))

    @contextlib.contextmanager
    def _open(self) -> Iterator[Cursor[Any]]:
        """Open a cursor in a transaction of its own."""
        driver = _driver()
        try:
            connection = self._connect()
            with connection.transaction(), connection.cursor(binary=True) as cursor:
                yield cursor
        except (driver.errors.DeadlockDetected, driver.errors.SerializationFailure) as fault:
            raise _Again("history-unreachable", _first_line(fault), place=self._place) from fault
        except driver.OperationalError as fault:
            raise PerfgateError("history-unreachable", _first_line(fault), place=self._place) from fault
        except (driver.Error, KeyError, TypeError, ValueError, struct.error) as fault:
            fix = "check the schema perfgate there; if it is missing, the next write creates it"
            raise PerfgateError("history-unreadable", _first_line(fault), fix=fix, place=self._place) from fault

    def _connect(self) -> Connection[Any]:
        if self._connection is None or self._connection.closed or _has_ended(self._connection):
            self._connection = _fresh(self._address, self._place)
            weakref.finalize(self, self._connection.close)  # psycopg warns of an open one
        return self._connection


def _fresh(address: str, place: str) -> Connection[Any]:
    driver, options = _driver(), {"connect_timeout": _CONNECT_S, "application_name": "perfgate"}
    try:
        connection: Connection[Any] = driver.connect(address, autocommit=True, **options)
    except driver.ProgrammingError:
        what = "the driver cannot read this address"  # its own words may quote the password
        fix = "check it; in a password, write signs as their codes: %40 for @, %2F for /, %25 for %"
        raise PerfgateError("history-address", what, fix=fix, place=place) from None
    try:
        _prepare(connection, place)
    except BaseException:
        connection.close()
        raise
    return connection


def _has_ended(connection: Connection[Any]) -> bool:
    """Return whether the server has closed an idle connection, which then has something to read."""
    with selectors.DefaultSelector() as waiting:
        waiting.register(connection.fileno(), selectors.EVENT_READ)
        return bool(waiting.select(0))


def _columns(sent: Sequence[Any]) -> list[Sequence[Any]]:
    """Return the columns of one case from their bytes, in the order of a row."""
    clocks, runs, *others = sent
    count = len(clocks)
    times, scatters = (struct.unpack(f"!{count}d", some) for some in others[:2])
    words, places, rest = (struct.unpack(f"!{2 * count}i", some) for some in others[2:])
    facts, processes = rest[::2], rest[1::2]
    run = struct.unpack(f"!{count}i", runs)
    return [run, times, processes, scatters, clocks, words[::2], words[1::2], places[::2], places[1::2], facts]


def _figures(cursor: Cursor[Any], places: Sequence[tuple[int, int]]) -> dict[tuple[int, int], str]:
    """Return the stored figures of these (case, run)."""
    columns = tuple(map(list, zip(*places)))
    return {(series, run): data for series, run, data in cursor.execute(_FIGURES, columns)} if places else {}


class _Again(PerfgateError):
    """Raised when two writers conflicted, so that the transaction is repeated."""


def _driver() -> Any:
    try:
        import psycopg
    except ImportError as fault:
        raise PerfgateError("history-driver", f"psycopg cannot be loaded: {_first_line(fault)}") from fault
    return psycopg


def _first_line(fault: BaseException) -> str:
    return (str(fault).strip().splitlines() or [type(fault).__name__])[0]


def _prepare(connection: Connection[Any], place: str) -> None:
    """Create the tables unless they exist; only one of several processes does it."""
    version = _version(connection)
    if version is None:
        with connection.transaction():
            connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))
            version = _version(connection)
            if version is None:
                connection.execute(_TABLES)
                version = SCHEMA
    if version > SCHEMA:
        what = f"its form is version {version}, this one reads {SCHEMA}"
        raise PerfgateError("history-version", what, place=place)


def _version(connection: Connection[Any]) -> int | None:
    """Return the version of the tables; None if there are none."""
    there = "select 1 from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'perfgate'"
    if connection.execute(f"{there} and c.relname = 'form'").fetchone() is None:
        return None  # the catalogue is queried, because the session's cached names may be older than the lock
    row = connection.execute("select version from perfgate.form").fetchone()
    return int(row[0]) if row else None


_NAMES = {"word": ("text",), "series": ("device", "key")}
"""The columns of a table; the last one, which may be long, is searched by its digest."""


def _numbers(cursor: Cursor[Any], table: str, rows: set[tuple[str, ...]]) -> dict[tuple[str, ...], int]:
    """Return the numbers of these rows; one writer at a time adds the missing ones."""
    columns = _NAMES[table]
    numbers = _stored_numbers(cursor, table, rows)
    missing = sorted(rows - numbers.keys())
    if missing:
        cursor.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))
        places = ", ".join(["%s"] * len(columns))
        write = f"insert into perfgate.{table} ({', '.join(columns)}) values ({places}) on conflict do nothing"  # noqa: S608
        cursor.executemany(write, missing)
        numbers |= _stored_numbers(cursor, table, set(missing))
    return numbers


def _stored_numbers(cursor: Cursor[Any], table: str, rows: set[tuple[str, ...]]) -> dict[tuple[str, ...], int]:
    columns = _NAMES[table]
    keys = ", ".join(f"unnest(%s::text[]) as {name}" for name in columns)
    match = " and ".join(f"t.{name} = w.{name}" for name in columns[:-1])
    query = (
        f"select t.id, {', '.join(f't.{name}' for name in columns)} from (select {keys}) w join perfgate.{table} t"  # noqa: S608
        f" on {match + ' and ' if match else ''}md5(t.{columns[-1]}) = md5(w.{columns[-1]})"
    )
    listed = sorted(rows)
    matches = cursor.execute(query, [[row[at] for row in listed] for at in range(len(columns))])
    return {tuple(row[1:]): row[0] for row in matches}


def _add(
    cursor: Cursor[Any], run: str, entries: Sequence[HistoryEntry],
    numbers: tuple[dict[tuple[str, ...], int], dict[tuple[str, ...], int]],
) -> int:  # fmt: skip
    """Add the entries of one run and return how many were new."""
    (series, words), first = numbers, entries[0]
    naming = (run, moment_at(first.when), first.when, first.commit, first.branch)
    columns = "name, at, moment, git_commit, branch"
    cursor.execute(f"insert into perfgate.run ({columns}) values (%s, %s, %s, %s, %s) on conflict do nothing", naming)  # noqa: S608
    number, at = cursor.execute("select id, at from perfgate.run where name = %s", (run,)).fetchone() or (0, 0.0)
    places = [series[s.device, str(s.key)] for s in entries]
    rows = [
        (place, at, number, s.time, s.processes, s.scatter, s.clock_hz, *(words[(text,)] for text in words_of(s)))
        for place, s in zip(places, entries)
    ]
    new = _copy(cursor, "sitting", _COLUMNS, rows)
    figures = [(number, place, metrics_text(s.metrics)) for place, s in zip(places, entries) if s.metrics]
    _copy(cursor, "figures", "run, series, data", figures)
    return new


def _copy(cursor: Cursor[Any], table: str, columns: str, rows: Sequence[tuple[Any, ...]]) -> int:
    """Copy rows into a table and return how many were new."""
    if not rows:
        return 0
    cursor.execute(f"create temp table if not exists new_{table} (like perfgate.{table}) on commit delete rows")
    cursor.execute(f"truncate new_{table}")
    with cursor.copy(f"copy new_{table} ({columns}) from stdin") as copy:
        for row in rows:
            copy.write_row(row)
    cursor.execute(
        f"insert into perfgate.{table} ({columns}) select {columns} from new_{table} on conflict do nothing"  # noqa: S608
    )
    return int(cursor.rowcount)
