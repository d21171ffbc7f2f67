"""The only tables of an export that are ever read; what holds the environment is not among them."""

from __future__ import annotations

import re
import sqlite3

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

_READ = frozenset(
    name.lower() for name in (KERNELS, COPIES, MEMSETS, RUNTIME, GRAPHS, RANGES, STRINGS, THREADS, *GPUS, *METADATA)
)
_SCHEMA = frozenset({"sqlite_master", "sqlite_schema"})
_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_PRAGMA})
_NUMBERED = re.compile(r"_v(\d+)$")


def plain(table: str) -> tuple[str, int]:
    """A table's name in lower case, and the number of its form: ``NAME_V2`` is form 2 of ``name``."""
    name = table.lower()
    hit = _NUMBERED.search(name)
    return (name[: hit.start()], int(hit.group(1))) if hit else (name, 0)


def allow(action: int, table: str | None, *_: object) -> int:
    """SQLite asks this for every column it is about to read: a door, not a promise."""
    if action == sqlite3.SQLITE_READ:
        name, _number = plain(table or "")
        return sqlite3.SQLITE_OK if name in _READ or name in _SCHEMA else sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY
