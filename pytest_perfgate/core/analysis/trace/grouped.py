"""Statistics and unions of many groups at once, without a loop over rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_perfgate.core.analysis import intervals
from pytest_perfgate.model.values import array_value, value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


@array_value
class Stats:
    """One entry a group."""

    count: Ints
    total: Floats
    mean: Floats
    median: Floats
    std: Floats
    low: Floats
    high: Floats
    first: Ints
    """The first row of each group."""


@value
class Spread:
    """How often something ran, and nanoseconds in all, at a time, at least and at most."""

    count: int
    total: float
    mean: float
    median: float
    std: float
    low: float
    high: float


def spread(stats: Stats, group: int) -> dict[str, Any]:
    """The fields of one group's spread."""
    fields = ("total", "mean", "median", "std", "low", "high")
    return {"count": int(stats.count[group]), **{name: float(getattr(stats, name)[group]) for name in fields}}


def busy(starts: Ints, ends: Ints, group: Ints, groups: int) -> Ints:
    """Length of the union of the intervals of each group, in one pass over all of them."""
    if not len(starts):
        return np.zeros(groups, np.int64)
    low = starts.min()
    span = int(ends.max() - low) + 1
    if groups * span < 2**62:
        shift = group * span - low
        merged = intervals.union(starts + shift, ends + shift)
        owner = merged[0] // span
        lengths = np.zeros(groups, np.int64)
        np.add.at(lengths, owner, merged[1] - merged[0])
        return lengths
    return np.array([intervals.covered(starts[group == g], ends[group == g]) for g in range(groups)], np.int64)


def statistics(values: Floats, group: Ints, groups: int) -> Stats:
    """Count, sum, mean, median, sample deviation, extremes and first row of each group; none may be empty."""
    order = np.lexsort((values, group))
    ranked = values[order]
    count = np.bincount(group, minlength=groups)
    ends = np.cumsum(count)
    begins = ends - count
    total: Floats = np.bincount(group, weights=values, minlength=groups).astype(np.float64)
    mean = total / count
    spread = np.bincount(group, weights=(values - mean[group]) ** 2, minlength=groups)
    with np.errstate(invalid="ignore", divide="ignore"):
        std = np.sqrt(spread / (count - 1))
    first = np.full(groups, len(values), np.int64)
    np.minimum.at(first, group, np.arange(len(values)))
    return Stats(
        count=count,
        total=total,
        mean=mean,
        median=(ranked[begins + (count - 1) // 2] + ranked[begins + count // 2]) / 2,
        std=std,
        low=ranked[begins],
        high=ranked[ends - 1],
        first=first,
    )


def numbered(*columns: Ints) -> tuple[Ints, int]:
    """A group number for each distinct row of several columns, and how many there are."""
    code = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, inverse = np.unique(column, return_inverse=True)
        code = code * len(values) + inverse
        code = np.unique(code, return_inverse=True)[1]
    return code, int(code.max(initial=-1)) + 1
