"""Ways to damage JSON, CSV and SQLite with their structure in view."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.damage import BYTES, TEXT, Way, cut

ODD: tuple[Any, ...] = (
    None, True, "", "12", "x" * 3000, -1, 0, 1e308, -1e308, 2**63, 2**200, 1e-320, float("nan"), float("inf"), [], {},
    [[]], {"a": None}, "\u0000", "\ud800", "1e400", "0x10", " 5 ",
)  # fmt: skip


def _places(tree: Any, places: list[tuple[Any, Any]] | None = None) -> list[tuple[Any, Any]]:
    """Every (container, key) of a tree."""
    places = [] if places is None else places
    for key, child in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        places.append((tree, key))
        _places(child, places)
    return places


def _tree(change: Callable[[Random, Any, list[tuple[Any, Any]]], Any]) -> Callable[[Random, bytes], bytes]:
    """A change of the parsed tree as one of the text; of what is no JSON nothing changes."""

    def make(rng: Random, data: bytes) -> bytes:
        try:
            tree = json.loads(data)
        except (ValueError, RecursionError):
            return data
        places = _places(tree)
        return json.dumps(change(rng, tree, places) if places else tree).encode("utf-8", "surrogatepass")

    return make


def _odd(rng: Random, tree: Any, places: list[tuple[Any, Any]]) -> Any:
    """A value becomes one of another kind."""
    for _ in range(rng.choice((1, 1, 3))):
        inside, key = rng.choice(places)
        with contextlib.suppress(IndexError):
            inside[key] = rng.choice(ODD)
    return tree


def _all_odd(rng: Random, tree: Any, places: list[tuple[Any, Any]]) -> Any:
    """Every number of one field becomes the same, or those of a few objects do; fields of many objects come first."""
    numbers = [(inside, key) for inside, key in places if isinstance(inside, dict) and _is_number(inside[key])]
    for _ in range(rng.choice((1, 3, 5)) if numbers else 0):
        changed, odd, part = rng.choice(numbers)[1], rng.choice(SAME), rng.choice((1.0, 0.5, 0.1))
        for inside, key in numbers:
            if key == changed and rng.random() < part:
                inside[key] = odd
    return tree


SAME = (0, 0, 0, 0, 1, -1, 1e-9, 1e18, 1e308)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _lost(rng: Random, tree: Any, places: list[tuple[Any, Any]]) -> Any:
    inside, key = rng.choice(places)
    del inside[key]
    return tree


def _all_lost(rng: Random, tree: Any, places: list[tuple[Any, Any]]) -> Any:
    """Every field of one name is missing."""
    names = sorted({key for _, key in places if isinstance(key, str)})
    lost = rng.choice(names) if names else ""
    for inside, key in places:
        if key == lost:
            inside.pop(key, None)
    return tree


def _renamed(rng: Random, tree: Any, places: list[tuple[Any, Any]]) -> Any:
    inside, key = rng.choice([place for place in places if isinstance(place[0], dict)] or places)
    if isinstance(inside, dict):
        inside[rng.choice((key.upper(), key + " ", "x", ""))] = inside.pop(key)
    return tree


def _deep(rng: Random, tree: Any, places: list[tuple[Any, Any]]) -> Any:
    """A value lies some levels deeper than it should."""
    inside, key = rng.choice(places)
    for _ in range(rng.choice((1, 2, 60))):
        inside[key] = [inside[key]] if rng.random() < 0.5 else {"a": inside[key]}
    return tree


def _twice(rng: Random, tree: Any, places: list[tuple[Any, Any]]) -> Any:
    inside, key = rng.choice([place for place in places if isinstance(place[0], list)] or places)
    if isinstance(inside, list):
        inside.insert(key, inside[key])
    return tree


def _turned(rng: Random, tree: Any, places: list[tuple[Any, Any]]) -> Any:
    """Fields of objects in another order: no object has one."""
    if isinstance(tree, dict):
        names = sorted(tree, key=lambda _: rng.random())
        return {name: _turned(rng, tree[name], places) for name in names}
    return [_turned(rng, child, places) for child in tree] if isinstance(tree, list) else tree


def spaced(rng: Random, data: bytes) -> bytes:
    """The same tree with other blanks."""
    with contextlib.suppress(ValueError, RecursionError):
        return json.dumps(json.loads(data), indent=rng.choice((None, 0, 1, 4)), ensure_ascii=rng.random() < 0.5).encode(
            "utf-8", "surrogatepass"
        )
    return data


def nested(rng: Random, data: bytes) -> bytes:
    """In more brackets than any reader's stack is deep."""
    depth = rng.choice((1, 1000, 200_000))
    return b"[" * depth + data + (b"]" * depth if rng.random() < 0.5 else b"")


def nul_in_text(rng: Random, data: bytes) -> bytes:
    """A run of NUL bytes over quotes and names."""
    quotes = [at for at, byte in enumerate(data) if byte == 34]
    if not quotes:
        return data
    at = rng.choice(quotes)
    return data[:at] + b"\0" * rng.randint(1, 300) + data[at + rng.randint(1, 300) :]


JSON: Mapping[str, Way] = {
    **TEXT,
    "cut": Way(cut, same=True),
    "value odd": Way(_tree(_odd)),
    "value lost": Way(_tree(_lost)),
    "field odd": Way(_tree(_all_odd)),
    "field lost": Way(_tree(_all_lost)),
    "field renamed": Way(_tree(_renamed)),
    "deeper": Way(_tree(_deep)),
    "element twice": Way(_tree(_twice)),
    "fields turned": Way(_tree(_turned), same=True),
    "spaced": Way(spaced, same=True),
    "nested": Way(nested, same=True),
    "NUL in text": Way(nul_in_text, same=True),
}


def _behind_kind(way: Way) -> Way:
    """Return the way for the JSON of a message, which follows its kind."""

    def make(rng: Random, data: bytes) -> bytes:
        kind, space, body = data.partition(b" ")
        return kind + space + way.make(rng, body)

    return Way(make, way.same)


MESSAGE: Mapping[str, Way] = {title: way if title in TEXT else _behind_kind(way) for title, way in JSON.items()}


def _rows(data: bytes) -> list[list[str]]:
    try:
        return list(csv.reader(io.StringIO(data.decode("utf-8", "replace"), newline="")))
    except csv.Error:
        return []


def _written(rows: list[list[str]]) -> bytes:
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return out.getvalue().encode()


def _table(change: Callable[[Random, list[list[str]]], list[list[str]]]) -> Callable[[Random, bytes], bytes]:
    def make(rng: Random, data: bytes) -> bytes:
        rows = _rows(data)
        return _written(change(rng, rows)) if len(rows) > 1 and all(rows) else data

    return make


def _longer(rng: Random, rows: list[list[str]]) -> list[list[str]]:
    row = rng.choice(rows[1:])
    row.insert(rng.randrange(len(row)), rng.choice(("", "1", "x")))
    return rows


def _shorter(rng: Random, rows: list[list[str]]) -> list[list[str]]:
    row = rng.choice(rows[1:])
    del row[rng.randrange(len(row))]
    return rows


def _cell(rng: Random, rows: list[list[str]]) -> list[list[str]]:
    row = rng.choice(rows)
    row[rng.randrange(len(row))] = rng.choice(
        (
            "",
            "x",
            "nan",
            "inf",
            "-1",
            "1e308",
            "-1e308",
            "1e400",
            "1.2.3",
            "1,5",
            "99999999999999999999",
            "0",
            "%",
            "\0",
        )
    )
    return rows


def _column(rng: Random, rows: list[list[str]]) -> list[list[str]]:
    """Every number of one column becomes the same."""
    at, odd = rng.randrange(len(rows[0])), f"{rng.choice(SAME):g}"
    for row in rows[1:]:
        if at < len(row) and row[at].replace(".", "").replace(",", "").isdigit():
            row[at] = odd
    return rows


def _columns(rng: Random, rows: list[list[str]]) -> list[list[str]]:
    """The same columns in another order, where all rows have them."""
    if len({len(row) for row in rows}) > 1:
        return rows
    order = sorted(range(len(rows[0])), key=lambda _: rng.random())
    return [[row[at] for at in order] for row in rows]


def appended(_rng: Random, data: bytes) -> bytes:
    """A file behind itself."""
    return data + data


CSV: Mapping[str, Way] = {
    **TEXT,
    "row longer": Way(_table(_longer), same=True),
    "row shorter": Way(_table(_shorter), same=True),
    "cell odd": Way(_table(_cell)),
    "column odd": Way(_table(_column)),
    "columns turned": Way(_table(_columns), same=True),
    "appended": Way(appended, same=True),
    "zeroed": Way(BYTES["zeroed"].make, same=True),
}


@contextlib.contextmanager
def _database(data: bytes) -> Iterator[tuple[sqlite3.Connection, Path]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.sqlite"
        path.write_bytes(data)
        database = sqlite3.connect(path)
        try:
            yield database, path
        finally:
            database.close()


def _altered(change: Callable[[Random, sqlite3.Connection, str, list[str]], None]) -> Callable[[Random, bytes], bytes]:
    """A change of one table that has rows."""

    def make(rng: Random, data: bytes) -> bytes:
        with _database(data) as (database, path):
            try:
                database.execute("pragma synchronous = off")
                names = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
                table = rng.choice(names)
                columns = [row[1] for row in database.execute(f"pragma table_info({table})")]
                change(rng, database, table, columns)
                database.commit()
            except (sqlite3.Error, IndexError, UnicodeDecodeError):  # SQLite quotes a name of its own that is none
                return data
            database.close()
            return path.read_bytes()

    return make


def _one(rng: Random, database: sqlite3.Connection, table: str) -> int:
    rows = [row for (row,) in database.execute(f"select rowid from {table}")]
    return int(rng.choice(rows))


def _set(rng: Random, database: sqlite3.Connection, table: str, columns: list[str]) -> None:
    odd = rng.choice((None, -1, 0, 2**63 - 1, -(2**63), 1e308, "x", b"\xff\xfe", "", 2**40))
    where = "" if rng.random() < 0.2 else f" where rowid = {_one(rng, database, table)}"
    database.execute(f'update or ignore {table} set "{rng.choice(columns)}" = ?{where}', (odd,))


def _drop(_rng: Random, database: sqlite3.Connection, table: str, _columns: list[str]) -> None:
    database.execute(f"drop table {table}")


def _rename(rng: Random, database: sqlite3.Connection, table: str, columns: list[str]) -> None:
    database.execute(f'alter table {table} rename column "{rng.choice(columns)}" to "x"')


def _again(rng: Random, database: sqlite3.Connection, table: str, columns: list[str]) -> None:
    listed = ", ".join(f'"{name}"' for name in columns if name != "id")
    row = _one(rng, database, table)
    database.execute(f"insert or ignore into {table} ({listed}) select {listed} from {table} where rowid = {row}")


def _empty(_rng: Random, database: sqlite3.Connection, table: str, _columns: list[str]) -> None:
    database.execute(f"delete from {table}")


def _vacuum(_rng: Random, database: sqlite3.Connection, _table: str, _columns: list[str]) -> None:
    database.execute("pragma page_size = 8192")
    database.execute("vacuum")


def _more(_rng: Random, database: sqlite3.Connection, table: str, _columns: list[str]) -> None:
    database.execute(f"alter table {table} add column unheard_of text default 'x'")


def page_zeroed(rng: Random, data: bytes) -> bytes:
    """A page of the database is lost."""
    at = rng.randrange(max(1, len(data) // 4096)) * 4096
    return data[:at] + b"\0" * 4096 + data[at + 4096 :]


SQLITE: Mapping[str, Way] = {
    **BYTES,
    "value odd": Way(_altered(_set)),
    "table dropped": Way(_altered(_drop)),
    "table emptied": Way(_altered(_empty)),
    "column renamed": Way(_altered(_rename)),
    "row twice": Way(_altered(_again)),
    "column added": Way(_altered(_more), same=True),
    "vacuumed": Way(_altered(_vacuum), same=True),
    "page zeroed": Way(page_zeroed, same=True),
}
