"""Export of a report, secrets removed."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from pytest_perfgate.adapters.readers.nsys_connection import STRINGS, connect, plain, read_head
from pytest_perfgate.adapters.readers.nsys_export import Export, open_export
from pytest_perfgate.adapters.system.files import last_lines
from pytest_perfgate.adapters.system.processes import run_captured
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.nsys import REPORTS, SQLITE
from pytest_perfgate.model.profiles import Scrubbed

_VERSION = re.compile(rb"(20\d\d\.\d{1,2}\.\d{1,2}\.\d{1,5})-[0-9a-f]{6,}")
"""With the revision behind it: the header also holds the environment, where other versions stand."""

_EDGE = 1 << 16

_MINUTES = 30


def read_nsys(path: Path) -> Export:
    """An open export of either kind of file."""
    return _exported(path) if path.suffix in REPORTS and _is_report(path) else open_export(path)


def _is_report(path: Path) -> bool:
    """Whether it has content, and other content than an export that only bears a report's name."""
    head = read_head(path)
    return head != b"" and not head.startswith(SQLITE)


def version_in(path: Path) -> str:
    """The version that wrote a report, from either end of the file; empty where neither says."""
    try:
        with path.open("rb") as file:
            head = file.read(_EDGE)
            file.seek(max(len(head), path.stat().st_size - _EDGE))
            match = _VERSION.search(head) or _VERSION.search(file.read(_EDGE))
    except OSError as error:
        raise PerfgateError("nsys-missing", str(error.strerror or error), place=str(path)) from error
    return match.group(1).decode() if match else ""


def _exported(path: Path) -> Export:
    """The temporary export holds the environment: it is unlinked as soon as it is open."""
    version = version_in(path)
    command = ["nsys", "export", "--type=sqlite", "--force-overwrite=true"]
    if shutil.which("nsys") is None:
        written = f"; the report was written by {version}" if version else ""
        what = f"a report is read through its SQLite export, and nsys is not on the PATH{written}"
        mend = f"where nsys {version or 'of the same version or newer'} is: {' '.join(command)} {path.name}"
        raise PerfgateError("nsys-report", what, place=str(path), mend=mend)
    with tempfile.TemporaryDirectory(prefix="perfgate-nsys-") as folder:
        out = Path(folder) / f"{path.stem}.sqlite"
        _run([*command, f"--output={out}", str(path)], path, version)
        return open_export(out)


def _run(command: list[str], path: Path, version: str) -> None:
    written = f" (the report was written by {version})" if version else ""
    try:
        done = run_captured(command, 60 * _MINUTES)
    except subprocess.TimeoutExpired as error:
        what = f"nsys export took over {_MINUTES} minutes{written}"
        raise PerfgateError("nsys-report", what, place=str(path)) from error
    out = Path(command[-2].partition("=")[2])
    if done.returncode or not out.is_file():
        tail = "\n".join(last_lines((done.stdout + done.stderr).decode("utf-8", "replace"), 5))
        what = f"nsys export ended with {done.returncode}{written}: {tail}"
        by_hand = f"nsys export --type=sqlite --output={path.stem}.sqlite {path.name}"
        mend = f"with nsys {version or 'of the same version'} or newer: {by_hand}"
        raise PerfgateError("nsys-report", what, place=str(path), mend=mend)


SECRET = ("TARGET_INFO_SYSTEM_ENV", "META_DATA_CAPTURE", "ANALYSIS_FILE", "ProcessStreams")
"""The environment, the capture's command and settings, log files, what the process printed."""

REMOVED = "[removed by perfgate scrub]"

_POINTS = re.compile(r"(name|textId|stringId|symbol|module|name_?id)$", re.IGNORECASE)
"""Columns that hold the number of a string."""


def scrub(path: Path, out: Path) -> Scrubbed:
    """Write a clean copy; ``out`` may be ``path`` itself, which is then replaced in one step."""
    connect(path).close()
    partial = out.with_name(out.name + ".partial")
    partial.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(_uri(partial, "rwc"), uri=True, isolation_level=None)) as target:
            dropped, strings = _rebuild(path, target)
        partial.replace(out)
    except (sqlite3.Error, OSError) as error:
        partial.unlink(missing_ok=True)
        raise PerfgateError("nsys-scrub", str(error), place=str(path)) from error
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return Scrubbed(path=str(path), out=str(out), tables=dropped, strings=strings)


def is_secret(table: str) -> bool:
    """Whether a table is dropped: the known ones, and whatever says of itself that it holds an environment."""
    upper = plain(table)[0].upper()
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
    tables = {name: sql for kind, name, _, sql in listed if kind == "table"}
    public = [name for name in tables if not is_secret(name)]
    named = _named(target, public)
    target.set_authorizer(_door)
    target.execute("BEGIN")
    for name in public:
        target.execute(tables[name])
        chosen = named if _is_strings(name) else "*"
        target.execute(f"INSERT INTO main.{_quoted(name)} SELECT {chosen} FROM source.{_quoted(name)}")
    for kind, _, table, sql in listed:
        if kind == "index" and not is_secret(table):
            target.execute(sql)
    target.execute("COMMIT")
    target.execute("DETACH source")
    counted = [
        f"SELECT count(*) FROM {_quoted(name)} WHERE value = '{REMOVED}'" for name in public if _is_strings(name)
    ]
    strings = sum(target.execute(sql).fetchone()[0] for sql in counted)
    return tuple(name for name in tables if is_secret(name)), strings


def _is_strings(table: str) -> bool:
    return plain(table)[0] == STRINGS.lower()


def _named(target: sqlite3.Connection, kept: Sequence[str]) -> str:
    """The strings with the text of those alone that something which stays points to.

    nsys stores the environment of every process on the machine, and what the child printed, as
    strings that no other table names; a block of variables is taken out even if a number meets it.
    """
    pointing = [
        f"SELECT {_quoted(column)} FROM source.{_quoted(table)}"
        for table in kept
        for _, column, kind, *_ in target.execute(f"PRAGMA source.table_info({_quoted(table)})").fetchall()
        if not _is_strings(table) and "INT" in str(kind).upper() and _POINTS.search(column)
    ]
    pointed = f"id IN ({' UNION '.join(pointing)})" if pointing else "0"
    block = "instr(CAST(value AS BLOB), x'00') AND instr(CAST(value AS BLOB), x'3D')"
    return f"id, CASE WHEN {pointed} AND NOT ({block}) THEN value ELSE '{REMOVED}' END"


def _uri(path: Path, mode: str) -> str:
    return f"file:{quote(str(path.resolve()))}?mode={mode}"


def _door(action: int, table: str | None, *_: object) -> int:
    """SQLite asks before it reads a column: of a table that is dropped it reads none."""
    refused = action == sqlite3.SQLITE_READ and table is not None and is_secret(table)
    return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
