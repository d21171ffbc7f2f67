"""Which tests a table of ``[[tool.perfgate.tests]]`` is meant for."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase

from pytest_perfgate.model.config import ConfigPattern


def matches(nodeid: str, pattern: str) -> bool:
    """Whether a pattern means a test; the brackets of node ids stand for themselves."""
    return fnmatchcase(nodeid, pattern.replace("[", "[[]"))


def unmatched(tables: Iterable[ConfigPattern], nodeids: Collection[str]) -> list[ConfigPattern]:
    """Tables whose pattern no node id matches."""
    return [table for table in tables if not any(matches(nodeid, table.pattern) for nodeid in nodeids)]
