"""Reading whole columns from SQLite."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_perfgate.adapters.readers import nsys_connection as tables
from pytest_perfgate.adapters.readers.nsys_connection import NEVER_NULL, Connection, complete
from pytest_perfgate.model.nsys import OPEN, Calls, Ranges, TimedCalls, pid_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


CHUNK = 50_000

_SEPARATOR = "\x1f"

_MOST = (1 << 63) - 1


def chunks(
    connection: Connection, table: str, columns: Sequence[str], where: str = "1", args: Sequence[object] = ()
) -> Iterator[list[Ints]]:
    """Yield integer columns of the selected rows, some thousands at a time; NULL reads as -1.

    SQLite releases the interpreter, so the next chunk is read while one is parsed.
    """
    listed = ", ".join(f"group_concat(ifnull(CAST({column} AS INTEGER), -1))" for column in columns)
    sql = f"SELECT {listed} FROM {connection.source(table)} WHERE rowid BETWEEN ? AND ? AND ({where})"
    for row in _read_ahead(
        lambda first: connection.rows(sql, (first, _last(first), *args))[0], _firsts(connection, table)
    ):
        if row[0] is not None:
            yield [np.fromstring(text, dtype=np.int64, sep=",") for text in row]


def _firsts(connection: Connection, table: str) -> list[int]:
    """Return the first row number of each chunk; gaps in the numbers are skipped."""
    firsts: list[int] = []
    source = connection.source(table)
    first = connection.rows(f"SELECT min(rowid) FROM {source}")[0][0]
    while first is not None:
        firsts.append(first)
        first = connection.rows(f"SELECT min(rowid) FROM {source} WHERE rowid > ?", (_last(first),))[0][0]
    return firsts


def _last(first: int) -> int:
    return min(first + CHUNK - 1, _MOST)


def _read_ahead(read: Callable[[int], Sequence[str | None]], firsts: Sequence[int]) -> Iterator[Sequence[Any]]:
    """Yield each chunk's row while the next one is read in a thread, unless there is only one chunk."""
    if len(firsts) < 2:
        yield from map(read, firsts)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(read, firsts[0])
        for first in firsts[1:]:
            row = coming.result()
            coming = reader.submit(read, first)
            yield row
        yield coming.result()


def numbers(
    connection: Connection, table: str, columns: Sequence[str], where: str = "1", args: Sequence[object] = ()
) -> list[Ints]:
    """Return integer columns as a whole."""
    parts = list(chunks(connection, table, columns, where, args))
    if not parts:
        return [np.empty(0, dtype=np.int64) for _ in columns]
    return [np.concatenate(column) for column in zip(*parts)]


def texts(connection: Connection, table: str, column: str, where: str) -> tuple[Ints, list[str]]:
    """Return a text column as indices into its distinct values; NULL becomes the empty text."""
    places: dict[str, int] = {}
    parts: list[Ints] = []
    for first in _firsts(connection, table):
        words = _words(connection, table, column, f"rowid BETWEEN {first} AND {_last(first)} AND ({where})")
        for word in dict.fromkeys(words):
            places.setdefault(word, len(places))
        parts.append(np.fromiter(map(places.__getitem__, words), np.int64, len(words)))
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64), list(places)


def _words(connection: Connection, table: str, column: str, where: str) -> list[str]:
    """Return one text for each row; texts that contain the separator are read one by one."""
    rows = f"FROM {connection.source(table)} WHERE {where}"
    sql = f"SELECT count(*), group_concat(ifnull({column}, ''), char(31)) {rows}"
    count, joined = connection.rows(sql)[0]
    if not count:
        return []
    words = str(joined).split(_SEPARATOR)
    if len(words) == count:
        return words
    return [str(word) for (word,) in connection.rows(f"SELECT ifnull({column}, '') {rows}")]


THREAD = f"globalTid & {(1 << 63) - 1}"
"""A thread's number without the top bit of the machine's: a negative number means no thread."""

_TYPES = "(eventType BETWEEN 59 AND 60 OR eventType BETWEEN 70 AND 71)"
"""Push-pop and start-end ranges, and the same two kinds as text imports number them."""

Names = Callable[[Sequence[int]], Mapping[int, str]]


def read_ranges(db: Connection, names: Names) -> Ranges:
    """Return all ranges, since anchors, labels and contexts of launches may be anywhere."""
    if not complete(db, tables.RANGES):
        none = np.empty(0, dtype=np.int64)
        return Ranges(start=none, end=none, tid=none, text=none, texts=())
    have = db.columns(tables.RANGES)
    until, has = _end_condition(have)
    text_id = "textId" if "textId" in have else "-1"
    start, end, tid, ids = numbers(db, tables.RANGES, ["start", until, THREAD, text_id], has)
    inline, words = np.zeros_like(ids), [""]
    if "text" in have:
        inline, words = texts(db, tables.RANGES, "text", has)
    text, whole = _resolved(ids, inline, words, names)
    return Ranges(start=start, end=end, tid=tid, text=text, texts=whole)


def _end_condition(have: Mapping[str, str]) -> tuple[str, str]:
    """Return (the expression of a range's end, the condition for ranges); an open range ends in NULL or 0."""
    if "eventType" not in have:  # a range without an end could also be a mark
        return "end", "end >= start"
    end = "nullif(end, 0)" if NEVER_NULL in have["end"] else "end"
    return f"ifnull({end}, {OPEN})", f"start IS NOT NULL AND ifnull({end} >= start, 1) AND {_TYPES}"


def _resolved(ids: Ints, inline: Ints, words: list[str], names: Names) -> tuple[Ints, tuple[str, ...]]:
    """Return texts, which are in the row itself, or registered in the table of strings; old schemas do both."""
    registered, position = np.unique(ids, return_inverse=True)
    texts_of = names(registered.tolist())
    listed = [*words, *(texts_of.get(int(number), "") for number in registered)]
    elsewhere = ids >= 0
    if any(words):
        elsewhere &= np.array([not word for word in words], dtype=bool)[inline]
    return np.where(elsewhere, len(words) + position, inline).astype(np.int64), tuple(listed)


def read_calls(db: Connection, first: int, last: int) -> Calls:
    """Return runtime calls with a correlation in the closed range."""
    if complete(db, tables.RUNTIME):
        columns, condition = ["start", THREAD, "correlationId"], "correlationId BETWEEN ? AND ?"
        start, tid, correlation = numbers(db, tables.RUNTIME, columns, condition, (first, last))
    else:
        start, tid, correlation = (np.empty(0, dtype=np.int64) for _ in range(3))
    return Calls(start=start, tid=tid, correlation=correlation)


def read_timed(db: Connection, low: int, high: int, kinds: Sequence[re.Pattern[str]]) -> tuple[TimedCalls, ...]:
    """Return the calls in the span for each pattern of names, from one query."""
    none = np.empty(0, dtype=np.int64)
    if not complete(db, tables.RUNTIME):
        return tuple((none, none, none) for _ in kinds)
    likely = " OR ".join(f"value LIKE '%{word}%'" for word in ("Synchronize", "Memcpy", "Launch"))
    listed = db.rows(f"SELECT id, value FROM {db.source(tables.STRINGS)} WHERE {likely}")
    chosen = [[int(number) for number, name in listed if kind.search(str(name))] for kind in kinds]
    every = {number for ids in chosen for number in ids}
    condition = f"start < ? AND end > ? AND nameId IN ({', '.join(map(str, every)) or -1})"
    thread, start, end, name = numbers(db, tables.RUNTIME, [THREAD, "start", "end", "nameId"], condition, (high, low))
    process = pid_of(thread)
    return tuple((process[rows], start[rows], end[rows]) for ids in chosen for rows in (np.isin(name, ids),))
