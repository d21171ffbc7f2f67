"""Counts as people write them."""

from __future__ import annotations

from collections.abc import Sequence


def plural(count: int, noun: str, several: str = "") -> str:
    """``1 case``, ``2 cases``; ``several`` where an s is not enough."""
    return f"{count} {noun if count == 1 else several or noun + 's'}"


def first_of(names: Sequence[str], most: int) -> str:
    """``a, b and 3 more``."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
