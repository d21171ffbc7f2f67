"""The card while rows are measured: its clocks are held as asked; what it spoiled is neither held nor missed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pytest_perfgate.model.metric import Problem
from pytest_perfgate.wiring import devices as wired

SPOILING = frozenset({"throttled", "clock-moved", "foreign-process", "hot", "device-lost", "device-faulty"})
"""What the watch of a card finds; work that escapes a timer is a finding about the timer."""
Row = dict[str, Any]


@contextmanager
def watched_clocks(check: Any, runtime: Any = None) -> Iterator[list[str]]:
    """Hold and watch the card's clocks in the block; afterwards the list says what spoiled the measurements."""
    spoiling: list[str] = []
    with wired.clocks().hold((runtime or check.runtime).device(), check.plan) as watch:
        yield spoiling
    spoiling += spoiled(watch.problems())


def spoiled(problems: Iterable[Problem]) -> list[str]:
    return [problem.what for problem in problems if problem.code in SPOILING]


def under_bar(row: Row, bar: str, good: bool, problems: Sequence[str] = ()) -> Row:
    """Return the row under its bar: held, missed, or invalid with the reason."""
    spoilt = [*row.get("invalid", ()), *problems]
    return {**row, "bar": bar, "invalid": spoilt} if spoilt else {**row, "bar": bar, "held": good}
