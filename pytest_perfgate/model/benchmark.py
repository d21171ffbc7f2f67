"""Results of other benchmark tools, as far as they agree on what a result is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pytest_perfgate.model.quantity import Dimension
from pytest_perfgate.model.values import value


@value
class BenchResult:
    """One benchmark of another tool's file."""

    name: str
    time: float | None
    """Nanoseconds of one call; ``None`` where the file has none."""
    statistic: str = "median"
    """What the tool made of its samples: median, mean or minimum."""
    also: tuple[tuple[str, float], ...] = ()
    """(statistic, nanoseconds) that the file has beside it: another file may have no other."""
    scatter: float | None = None
    """Relative standard deviation within the process, where the file has it."""
    samples: int = 0
    device: str = ""
    rates: tuple[tuple[str, float, Dimension], ...] = ()
    """(metric, value, dimension) that the tool derived itself."""
    skipped: str = ""
    """Why there is no time."""


@value
class BenchFile:
    """All of a file."""

    tool: str
    results: tuple[BenchResult, ...]
    commit: str = ""
    when: str = ""
    machine: str = ""
    untimed: int = 0
    """Benchmarks of memory or another unit, which are not read."""


BenchReader = Callable[[Path], BenchFile]
