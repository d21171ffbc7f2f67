"""Rates of alarms, as the benches and checks report them."""

from __future__ import annotations

from pytest_perfgate.core.stats.inference import clopper_pearson


def upper_bound(hits: int, count: int, confidence: float = 0.95) -> float:
    """Return the one-sided bound of Clopper and Pearson: the rate is below it with this confidence."""
    return clopper_pearson(hits, count, 2 * confidence - 1).high
