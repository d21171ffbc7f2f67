"""Ceilings: the rates that a device was measured to reach."""

from __future__ import annotations

from pytest_perfgate.model.values import value


@value
class Ceilings:
    """The best product of each dtype and the best copy on one device."""

    device: str
    """Key of the device."""
    compute: tuple[tuple[str, float], ...] = ()
    """(dtype, FLOP/s) pairs."""
    bandwidth: float | None = None
    """Bytes per second of a copy larger than the last cache: what it read plus what it wrote."""
    cache_bytes: float | None = None
    clock_hz: float | None = None
    method: str = ""
    when: str = ""
    """ISO date."""
    facts: tuple[tuple[str, str], ...] = ()
    """Threads, library, sizes: what the figures rest on."""
