"""Tests whose measuring child died: they are judged, and their bodies do not run again in pytest's own process.

What killed the child would end the whole run there: silently, and as a success where it exits with 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container

    import pytest


def spare(item: pytest.Item, died: Container[str]) -> None:
    """Neither the fixtures nor the body of such a test run; its phases do, and the gate says its verdict."""
    if item.nodeid in died:
        vars(item).update(setup=_nothing, runtest=_nothing)


def _nothing() -> None:
    """In place of what would run."""
