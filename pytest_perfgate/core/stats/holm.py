"""Holm's step-down: asking many tests at once, and still alarming on so few clean suites."""

from __future__ import annotations

from collections.abc import Sequence


def adjusted(levels: Sequence[float], among: int = 0) -> tuple[float, ...]:
    """Each p as it counts after Holm: rejected at any family-wise level that is no smaller.

    Of so many tests ``among`` which these are, where the others are asked elsewhere: those may all be surer.
    """
    order = sorted(range(len(levels)), key=levels.__getitem__)
    tests = max(among, len(levels))
    counted, highest = [0.0] * len(levels), 0.0
    for step, at in enumerate(order):
        highest = max(highest, min(1.0, (tests - step) * levels[at]))
        counted[at] = highest
    return tuple(counted)
