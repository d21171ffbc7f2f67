"""NVTX ranges: where they start and end, on which thread, and what they say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pytest_perfgate.adapters.readers.nsys import tables
from pytest_perfgate.adapters.readers.nsys.columns import numbers, texts
from pytest_perfgate.adapters.readers.nsys.connection import NEVER_NULL, Connection
from pytest_perfgate.adapters.readers.nsys.layout import complete
from pytest_perfgate.model.nsys import OPEN, Ranges

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

THREAD = f"globalTid & {(1 << 63) - 1}"
"""Without the top bit of the machine's number: below zero stands for no thread."""
_TYPES = "(eventType BETWEEN 59 AND 60 OR eventType BETWEEN 70 AND 71)"
"""Push and pop, start and end; and the same two as text files bring them in."""
Names = Callable[[Sequence[int]], Mapping[int, str]]


def read_ranges(db: Connection, names: Names) -> Ranges:
    """All of them: the anchors, the labels and the launches' contexts lie anywhere."""
    if not complete(db, tables.RANGES):
        none = np.empty(0, dtype=np.int64)
        return Ranges(start=none, end=none, tid=none, text=none, texts=())
    have = db.columns(tables.RANGES)
    until, held = _ended(have)
    known = "textId" if "textId" in have else "-1"
    start, end, tid, ids = numbers(db, tables.RANGES, ["start", until, THREAD, known], held)
    inline, words = np.zeros_like(ids), [""]
    if "text" in have:
        inline, words = texts(db, tables.RANGES, "text", held)
    text, whole = _resolved(ids, inline, words, names)
    return Ranges(start=start, end=end, tid=tid, text=text, texts=whole)


def _ended(have: Mapping[str, str]) -> tuple[str, str]:
    """(the end of a range, which rows are ranges); an open one has no end, or 0 where something must stand."""
    if "eventType" not in have:  # a range that never ended could as well be a mark
        return "end", "end >= start"
    end = "nullif(end, 0)" if NEVER_NULL in have["end"] else "end"
    return f"ifnull({end}, {OPEN})", f"start IS NOT NULL AND ifnull({end} >= start, 1) AND {_TYPES}"


def _resolved(ids: Ints, inline: Ints, words: list[str], names: Names) -> tuple[Ints, tuple[str, ...]]:
    """A text stands in the row itself, a registered one in the table of strings; old schemas number both."""
    registered, position = np.unique(ids, return_inverse=True)
    found = names(registered.tolist())
    listed = [*words, *(found.get(int(known), "") for known in registered)]
    elsewhere = ids >= 0
    if any(words):
        elsewhere &= np.array([not word for word in words], dtype=bool)[inline]
    return np.where(elsewhere, len(words) + position, inline).astype(np.int64), tuple(listed)
