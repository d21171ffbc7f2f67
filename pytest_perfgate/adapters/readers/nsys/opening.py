"""Opening an export: its first bytes, its length, its layout, and then the connection."""

from __future__ import annotations

from pathlib import Path

from pytest_perfgate.adapters.readers.nsys.connection import Connection, check_journal, check_length, read_head
from pytest_perfgate.adapters.readers.nsys.layout import check_export
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.nsys import SQLITE


def connect(path: Path) -> Connection:
    """An export, once its first bytes say that it can be one."""
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
