"""The only tables of an export that are ever read; what holds the environment is not among them."""

from __future__ import annotations

import sqlite3

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
COPIES = "CUPTI_ACTIVITY_KIND_MEMCPY"
MEMSETS = "CUPTI_ACTIVITY_KIND_MEMSET"
RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
RANGES = "NVTX_EVENTS"
STRINGS = "StringIds"
GPUS = "TARGET_INFO_GPU"
METADATA = ("META_DATA_EXPORT", "EXPORT_META_DATA")
"""The table changed its name with schema 3.7."""

READ = frozenset({KERNELS, COPIES, MEMSETS, RUNTIME, GRAPHS, RANGES, STRINGS, GPUS, *METADATA})
_SCHEMA = frozenset({"sqlite_master", "sqlite_schema"})
_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_PRAGMA})


def allow(action: int, table: str | None, *_: object) -> int:
    """SQLite asks this for every column it is about to read: a door, not a promise."""
    if action == sqlite3.SQLITE_READ:
        return sqlite3.SQLITE_OK if table in READ or table in _SCHEMA else sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY
