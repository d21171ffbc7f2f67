"""What the ranks of a job come to without their traces: parts join in any order and grouping."""

from __future__ import annotations

from pytest_perfgate.core.analysis.trace.collectives import Collective
from pytest_perfgate.core.analysis.trace.ranks import Meeting
from pytest_perfgate.core.analysis.trace.timeline import Timeline
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import MetricSet
from pytest_perfgate.model.problem import Finding, Problem
from pytest_perfgate.model.values import value


@value
class RankFigures:
    """One rank: all that is kept of its trace."""

    rank: int
    path: str
    window: str
    metrics: MetricSet
    lines: tuple[tuple[int, Timeline], ...]
    """The breakdown of each of its devices."""
    collectives: tuple[Collective, ...]
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()


@value
class Job:
    """Some ranks of a job, in the order of ranks."""

    ranks: tuple[RankFigures, ...] = ()

    def __or__(self, other: Job) -> Job:
        owner = {one.rank: one.path for one in self.ranks}
        for one in other.ranks:
            if one.rank in owner:
                both = " and ".join(sorted((owner[one.rank], one.path)))
                raise PerfgateError("trace-ranks", f"rank {one.rank} is claimed by {both}")
        return Job(ranks=tuple(sorted((*self.ranks, *other.ranks), key=lambda one: one.rank)))

    @property
    def meeting(self) -> Meeting:
        """The collectives of all ranks."""
        parts = tuple(part for one in self.ranks for part in one.collectives)
        return Meeting(parts=parts, present=frozenset(one.rank for one in self.ranks))

    @property
    def metrics(self) -> MetricSet:
        """The figures of every rank."""
        return MetricSet(
            metrics=tuple(metric for one in self.ranks for metric in one.metrics.metrics),
            absent=tuple(absent for one in self.ranks for absent in one.metrics.absent),
        )
