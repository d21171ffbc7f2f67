"""A limit that is finer than the timer of short calls can tell, as it held."""

from __future__ import annotations

from pytest_perfgate.core.render.quantity import signed


def by_floor(limit: str, raised: float | None) -> str:
    """The limit, and what the floor raised it to where it did."""
    return f"{limit} (the floor raised it to {signed(raised)})" if raised is not None else limit
