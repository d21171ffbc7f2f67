"""Processes that fall into groups: the machine is in two states, and no median tells which is true."""

from __future__ import annotations

from collections.abc import Sequence

GAP = 3
"""Within-process interquartile ranges between two groups."""
LEAST = 2
"""Processes on each side: one alone is an outlier."""


def split(medians: Sequence[float], spread: float, resolution: float = 0.0) -> tuple[float, float] | None:
    """The two edges of the widest gap that separates the process medians into groups."""
    if len(medians) < 2 * LEAST:
        return None
    ordered = sorted(medians)
    places = range(LEAST, len(ordered) - LEAST + 1)
    gaps = [(ordered[at] - ordered[at - 1], ordered[at - 1], ordered[at]) for at in places]
    widest = max(gaps)
    return widest[1:] if widest[0] > max(GAP * spread, 2 * resolution) else None
