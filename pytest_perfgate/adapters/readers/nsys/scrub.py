"""An export without the environment: rebuilt from the tables that may stay, so no byte is left over."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from pytest_perfgate.adapters.readers.nsys.connection import connect
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.nsys import Scrubbed

SECRET = ("TARGET_INFO_SYSTEM_ENV", "META_DATA_CAPTURE", "ANALYSIS_FILE", "ProcessStreams")
"""The environment, the capture's command and settings, log files, what the process printed."""
REMOVED = "[removed by perfgate scrub]"
_STREAMS = "ProcessStreams"
_STRINGS = "StringIds"


def scrub(path: Path, out: Path) -> Scrubbed:
    """Write a clean copy; ``out`` may be ``path`` itself, which is then replaced in one step."""
    connect(path).close()
    partial = out.with_name(out.name + ".partial")
    partial.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(_uri(partial, "rwc"), uri=True, isolation_level=None)) as target:
            dropped, strings = _rebuild(path, target)
        os.replace(partial, out)
    except (sqlite3.Error, OSError) as error:
        partial.unlink(missing_ok=True)
        raise PerfgateError("nsys-scrub", str(error), place=str(path)) from error
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return Scrubbed(path=str(path), out=str(out), tables=dropped, strings=strings)


def is_secret(table: str) -> bool:
    """Whether a table is dropped: the known ones, and whatever says of itself that it holds an environment."""
    upper = table.upper()
    return upper in {name.upper() for name in SECRET} or upper.endswith("_ENV") or "ENVIRONMENT" in upper


def _rebuild(path: Path, target: sqlite3.Connection) -> tuple[tuple[str, ...], int]:
    """Tables that may stay are copied; what is dropped is never read, and never was in the new file."""
    target.execute("PRAGMA trusted_schema = OFF")
    target.execute("PRAGMA synchronous = OFF")
    target.execute("PRAGMA journal_mode = MEMORY")
    target.execute("ATTACH ? AS source", (_uri(path, "ro&immutable=1"),))
    listed = target.execute(
        "SELECT type, name, tbl_name, sql FROM source.sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
    ).fetchall()
    tables = [(name, sql) for kind, name, _, sql in listed if kind == "table"]
    kept = [(name, sql) for name, sql in tables if not is_secret(name)]
    strings = _strings(target, {name for name, _ in tables})
    target.set_authorizer(_door)
    target.execute("BEGIN")
    for name, sql in kept:
        target.execute(sql)
        chosen = _without(strings) if name == _STRINGS else "*"
        target.execute(f"INSERT INTO main.{_quoted(name)} SELECT {chosen} FROM source.{_quoted(name)}")
    for kind, _, table, sql in listed:
        if kind == "index" and not is_secret(table):
            target.execute(sql)
    target.execute("COMMIT")
    target.set_authorizer(None)
    target.execute("DETACH source")
    return tuple(name for name, _ in tables if is_secret(name)), len(strings)


def _strings(target: sqlite3.Connection, tables: set[str]) -> list[int]:
    """What the process printed lies in the table of strings; only the numbers of the lines are read."""
    if _STREAMS not in tables:
        return []
    have = {str(row[1]) for row in target.execute(f"PRAGMA source.table_info({_STREAMS})")}
    columns = [column for column in ("filenameId", "contentId") if column in have]
    found: set[int] = set()
    for column in columns:
        found.update(int(known) for (known,) in target.execute(f"SELECT {column} FROM source.{_STREAMS}") if known)
    return sorted(found)


def _without(strings: Sequence[int]) -> str:
    """The line stays, so that numbers that point to it still do; its text never reaches the new file."""
    return f"id, CASE WHEN id IN ({', '.join(map(str, strings))}) THEN '{REMOVED}' ELSE value END"


def _uri(path: Path, mode: str) -> str:
    return f"file:{quote(str(path.resolve()))}?mode={mode}"


def _door(action: int, table: str | None, *_: object) -> int:
    """SQLite asks before it reads a column: of a table that is dropped it reads none."""
    refused = action == sqlite3.SQLITE_READ and table is not None and is_secret(table)
    return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
