"""Exporting a report, and copying an export without secrets."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from pytest_perfgate.adapters.readers.fields import PAIR, known_names
from pytest_perfgate.adapters.readers.nsys_connection import STRINGS, connect, plain, quoted, read_head
from pytest_perfgate.adapters.system.files import last_lines
from pytest_perfgate.adapters.system.processes import run_captured
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.privacy import Names, masked, named_in, shareable
from pytest_perfgate.model.profiles import REPORTS, SQLITE, Scrubbed

if TYPE_CHECKING:
    from pytest_perfgate.adapters.readers.nsys_export import Export

_VERSION = re.compile(rb"(20\d\d\.\d{1,2}\.\d{1,2}\.\d{1,5})-[0-9a-f]{6,}")
"""With its revision, since the header also holds the environment, which has other versions."""

_EDGE, _MINUTES = 1 << 16, 30


def read_nsys(path: Path) -> Export:
    """Return an open export of either kind of file; an export may have a report's name."""
    from pytest_perfgate.adapters.readers.nsys_export import open_export

    report = path.suffix in REPORTS and not (read_head(path) or SQLITE).startswith(SQLITE)
    return _exported(path, open_export) if report else open_export(path)


def version_in(path: Path) -> str:
    """Return the version that wrote a report, from either end of the file; "" if there is none."""
    try:
        with path.open("rb") as file:
            head = file.read(_EDGE)
            file.seek(max(len(head), path.stat().st_size - _EDGE))
            match = _VERSION.search(head) or _VERSION.search(file.read(_EDGE))
    except OSError as error:
        raise PerfgateError("nsys-missing", str(error.strerror or error), place=str(path)) from error
    return match.group(1).decode() if match else ""


def _exported(path: Path, opened: Callable[[Path, Path], Export]) -> Export:
    """Open a temporary export and delete it at once, because it holds the environment."""
    version = version_in(path)
    command = ["nsys", "export", "--type=sqlite", "--force-overwrite=true"]
    if shutil.which("nsys") is None:
        written = f"; the report was written by {version}" if version else ""
        what = f"a report is read through its SQLite export, and nsys is not on the PATH{written}"
        fix = f"where nsys {version or 'of the same version or newer'} is: {' '.join(command)} {path.name}"
        raise PerfgateError("nsys-report", what, place=str(path), fix=fix)
    with tempfile.TemporaryDirectory(prefix="perfgate-nsys-") as folder:
        out = Path(folder) / f"{path.stem}.sqlite"
        _run([*command, f"--output={out}", str(path)], path, version)
        return opened(out, path)


def _run(command: list[str], path: Path, version: str) -> None:
    written = f" (the report was written by {version})" if version else ""
    try:
        result = run_captured(command, 60 * _MINUTES)
    except subprocess.TimeoutExpired as error:
        what = f"nsys export took over {_MINUTES} minutes{written}"
        raise PerfgateError("nsys-report", what, place=str(path)) from error
    out = Path(command[-2].partition("=")[2])
    if result.returncode or not out.is_file():
        tail = "\n".join(last_lines((result.stdout + result.stderr).decode("utf-8", "replace"), 5))
        what = f"nsys export ended with {result.returncode}{written}: {tail}"
        by_hand = f"nsys export --type=sqlite --output={path.stem}.sqlite {path.name}"
        fix = f"with nsys {version or 'of the same version'} or newer: {by_hand}"
        raise PerfgateError("nsys-report", what, place=str(path), fix=fix)


SECRET = ("TARGET_INFO_SYSTEM_ENV", "META_DATA_CAPTURE", "ANALYSIS_FILE", "ProcessStreams")
"""Tables of the environment, the capture's command and settings, log files, and output of the process."""

REMOVED = "[removed by perfgate scrub]"

_POINTS = re.compile(r"(name|textId|stringId|symbol|module|name_?id)$", re.IGNORECASE)
"""Matches columns that hold the number of a string."""


def scrub(path: Path, out: Path) -> Scrubbed:
    """Write a clean copy; ``out`` may be ``path`` itself, which is then replaced atomically."""
    connect(path).close()
    partial = out.with_name(out.name + ".partial")
    partial.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(_uri(partial, "rwc"), uri=True, isolation_level=None)) as target:
            scrubbed = _rebuild(path, target)
        partial.replace(out)
    except (sqlite3.Error, OSError) as error:
        raise PerfgateError("nsys-scrub", str(error), place=str(path)) from error
    finally:
        partial.unlink(missing_ok=True)
    return replace(scrubbed, path=str(path), out=str(out))


def is_secret(table: str) -> bool:
    """Return whether a table is dropped: a known one, or any whose name suggests an environment."""
    upper = plain(table)[0].upper()
    return upper in {name.upper() for name in SECRET} or upper.endswith("_ENV") or "ENVIRONMENT" in upper


def _rebuild(path: Path, target: sqlite3.Connection) -> Scrubbed:
    """Copy the other tables without names in their texts, so that the new file never held what is dropped."""
    for setting in ("trusted_schema = OFF", "synchronous = OFF", "journal_mode = MEMORY"):
        target.execute(f"PRAGMA {setting}")
    target.execute("ATTACH ? AS source", (_uri(path, "ro&immutable=1"),))
    listed = target.execute(
        "SELECT type, name, tbl_name, sql FROM source.sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
    ).fetchall()
    tables = {name: sql for kind, name, _, sql in listed if kind == "table"}
    public = [name for name in tables if not is_secret(name)]
    chosen = {name: _selected(target, name, public) for name in public}
    changed = _clean_with(target, _names(target, tables))
    target.set_authorizer(_authorize)
    target.execute("BEGIN")
    for name in public:
        target.execute(tables[name])
        target.execute(f"INSERT INTO main.{quoted(name)} SELECT {chosen[name]} FROM source.{quoted(name)}")
    for kind, _, table, sql in listed:
        if kind == "index" and not is_secret(table):
            target.execute(sql)
    target.execute("COMMIT")
    target.execute("DETACH source")
    texts = [quoted(name) for name in public if _is_strings(name)]
    counted = [target.execute(f"SELECT count(*) FROM {name} WHERE value = '{REMOVED}'").fetchone()[0] for name in texts]
    dropped = tuple(name for name in tables if is_secret(name))
    return Scrubbed(path=str(path), out="", tables=dropped, strings=sum(counted), named=len(changed))


def _is_strings(table: str) -> bool:
    return plain(table)[0] == STRINGS.lower()


def _selected(target: sqlite3.Connection, table: str, remaining: Sequence[str]) -> str:
    """Return the SQL for a table's copied columns, in their order."""
    if _is_strings(table):
        return _pointed_to(target, remaining)
    columns = ((quoted(column), kind) for column, kind in _columns(target, table))
    return ", ".join(column if _is_number(kind) else _shareable(column) for column, kind in columns)


def _columns(target: sqlite3.Connection, table: str) -> list[tuple[str, str]]:
    rows = target.execute(f"PRAGMA source.table_info({quoted(table)})").fetchall()
    return [(name, str(kind).upper()) for _, name, kind, *_ in rows]


def _is_number(kind: str) -> bool:
    """Return whether a column only holds numbers; any other may hold text, since nsys stores JSON."""
    return any(part in kind for part in ("INT", "REAL", "FLOA", "DOUB"))


def _names(target: sqlite3.Connection, tables: Iterable[str]) -> Names:
    """Return the names in the dropped tables, and in every path to a home folder."""
    listed, texts, pairs = list(tables), list[str](), list[tuple[str, str]]()
    for table in listed:
        pairs += _named_values(target, table)
        for column in (column for column, kind in _columns(target, table) if not _is_number(kind)):
            homes = " OR ".join(f"{quoted(column)} LIKE '%{part}%'" for part in ("/home", "Users"))
            blocks = f" OR instr(CAST({quoted(column)} AS BLOB), x'00')" if _is_strings(table) else ""
            texts += [text for (text,) in _cells(target, table, (column,), homes + blocks)]
    texts += [text for _, text in pairs]
    pairs += [pair for text in texts if "=" in text for pair in PAIR.findall(text)]
    return named_in(texts, known_names(pairs))


def _named_values(db: sqlite3.Connection, table: str) -> list[tuple[str, str]]:
    """Return the rows of a table of names and values, such as a heading or an environment."""
    columns = {column.lower() for column, kind in _columns(db, table) if not _is_number(kind)}
    if not {"name", "value"} <= columns:
        return []
    return [(name, text) for name, text in _cells(db, table, ("name", "value"), "name IS NOT NULL")]


def _cells(target: sqlite3.Connection, table: str, columns: Sequence[str], where: str) -> Iterator[tuple[str, ...]]:
    chosen = ", ".join(f"CAST({quoted(column)} AS BLOB)" for column in columns)
    for row in target.execute(f"SELECT {chosen} FROM source.{quoted(table)} WHERE {where}"):
        yield tuple((cell or b"").decode(errors="replace") for cell in row)


def _clean_with(target: sqlite3.Connection, names: Names) -> list[int]:
    """Register SQL functions that remove names; the returned list grows by each changed text."""
    changed: list[int] = []

    def clean(raw: bytes | None, is_text: int) -> bytes | None:
        text = (raw or b"").decode("utf-8" if is_text else "ascii", "surrogateescape")
        cleaned = (shareable if is_text else masked)(text, names)
        if cleaned == text:
            return raw
        changed.append(1)
        return cleaned.encode("utf-8" if is_text else "ascii", "surrogateescape")

    target.create_function("shareable", 2, clean, deterministic=True)
    return changed


def _shareable(column: str) -> str:
    """Return SQL for a column without names; bytes keep their length, because offsets into them are stored."""
    text = f"CAST(shareable(CAST({column} AS BLOB), 1) AS TEXT)"
    return f"CASE typeof({column}) WHEN 'text' THEN {text} WHEN 'blob' THEN shareable({column}, 0) ELSE {column} END"


def _pointed_to(target: sqlite3.Connection, remaining: Sequence[str]) -> str:
    """Return SQL for the strings, keeping only texts that a remaining row refers to.

    nsys stores every process's environment, and the child's output, as strings without references. A block of variables
    is removed even if a number happens to match it.
    """
    pointing = [
        f"SELECT {quoted(column)} FROM source.{quoted(table)}"
        for table in remaining
        for column, kind in _columns(target, table)
        if not _is_strings(table) and "INT" in kind and _POINTS.search(column)
    ]
    pointed = f"id IN ({' UNION '.join(pointing)})" if pointing else "0"
    block = "instr(CAST(value AS BLOB), x'00') AND instr(CAST(value AS BLOB), x'3D')"
    return f"id, CASE WHEN {pointed} AND NOT ({block}) THEN {_shareable('value')} ELSE '{REMOVED}' END"


def _uri(path: Path, mode: str) -> str:
    return f"file:{quote(str(path.resolve()))}?mode={mode}"


def _authorize(action: int, table: str | None, *_: object) -> int:
    """Deny SQLite the columns of a dropped table; it asks before it reads one."""
    refused = action == sqlite3.SQLITE_READ and table is not None and is_secret(table)
    return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK


def pairs_of_export(path: Path) -> list[tuple[str, str]]:
    """Return the pairs of the small tables of names and values, so that a view need not read a whole export."""
    with suppress(sqlite3.Error), closing(sqlite3.connect("file::memory:", uri=True)) as db:
        db.execute("ATTACH ? AS source", (_uri(path, "ro&immutable=1"),))
        tables = [name for (name,) in db.execute("SELECT name FROM source.sqlite_master WHERE type = 'table'")]
        return [pair for table in tables for pair in _named_values(db, table)]
    return []
