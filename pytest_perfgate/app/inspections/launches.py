"""Launches under a profiler, whosever it is: two reports held against each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pytest_perfgate.core.analysis.kernels.comparison import counters_compared, slowdowns
from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis
from pytest_perfgate.core.analysis.kernels.measured import metrics_of
from pytest_perfgate.model.analysis import Analysis
from pytest_perfgate.model.metric import Labels, MetricSet
from pytest_perfgate.model.values import array_value


@array_value
class Side:
    """The files of one side and what they hold."""

    paths: Sequence[Path]
    found: Sequence[Diagnosis]

    @property
    def named(self) -> str:
        return ", ".join(map(str, self.paths))


def launches_compared(kind: str, before: Side, after: Side, nouns: str, asked: Iterable[Labels] = ()) -> Analysis:
    """The figures of the second side, its slowdowns against the first, and what moved."""
    old, new = before.found, after.found
    subject = f"{before.named} -> {after.named}"
    return Analysis(
        kind=kind,
        subject=subject,
        metrics=metrics_of(new, kind, asked) | MetricSet(metrics=tuple(slowdowns(old, new))),
        views={"comparison": lambda: counters_compared(old, new, subject)},
        window=f"{len(old)} and {len(new)} {nouns}",
    )
