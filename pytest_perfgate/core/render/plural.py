"""Counts as people write them."""

from __future__ import annotations


def plural(count: int, noun: str, several: str = "") -> str:
    """``1 case``, ``2 cases``; ``several`` where an s is not enough."""
    return f"{count} {noun if count == 1 else several or noun + 's'}"
