"""A job's figures as metrics that limits can be held against."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

import numpy as np

from pytest_perfgate.core.analysis.nsys.balance import balances, stages
from pytest_perfgate.model.metric import Absent, Labels, Metric, MetricSet, labels
from pytest_perfgate.model.nsys_job import Job, OverlapRow, RankResult
from pytest_perfgate.model.quantity import Dimension

_TIME, _PART, _COUNT = Dimension.TIME, Dimension.FRACTION, Dimension.COUNT
LAUNCH = "launch"
"""What the names of calls that launch something have in common."""
SILENT = "no-communication"
_ASKED = ("overlap", "overlap_sum", "overlap_min", "overlap_max", "exposed_comm", "exposed_sum")


def metrics(job: Job) -> MetricSet:
    """Every figure by rank, by rank and stage, by rank and kernel; nothing is added up over ranks."""
    found: list[Metric] = []
    absent: list[Absent] = []
    for result in job.ranks:
        found += _rank(result)
        found += _kernels(result)
        for row in filter(_lasts, result.overlaps):
            found += _overlap(row, scope(result, row), original=job.reading.original)
        if result.whole is not None and _lasts(result.whole):
            found += _overlap(result.whole, labels(rank=result.rank.name), original=job.reading.original)
        absent += _missing(result)
    found += _balances(job)
    return MetricSet(metrics=tuple(found), absent=tuple(absent))


def _lasts(row: OverlapRow) -> bool:
    """Communication that took no time at all is covered neither by nothing nor by everything."""
    return row.total_ns > 0


def _balances(job: Job) -> Iterator[Metric]:
    """Of all compute, and of each stage that several parts have."""
    for stage in ("", *stages(job.ranks)):
        for balance in balances(job.ranks, stage):
            where = labels(over=balance.over, **({"stage": stage} if stage else {}))
            if isfinite(balance.excess):
                yield Metric(name="balance", value=balance.excess, dimension=_PART, labels=where, source="nsys")


def scope(result: RankResult, row: OverlapRow) -> Labels:
    """A stage is a stage; what lies outside is a category, so that a limit on stages leaves it alone."""
    if row.outside:
        return labels(rank=result.rank.name, category=row.stage)
    return labels(rank=result.rank.name, stage=row.stage)


def figures(row: OverlapRow, *, original: bool) -> tuple[float, int]:
    """Overlap and exposure as the reading wants them: by union, or per kernel as the original."""
    return (row.overlap_sum, row.exposed_sum) if original else (row.overlap, row.exposed_ns)


def _overlap(row: OverlapRow, where: Labels, *, original: bool) -> Iterator[Metric]:
    overlap, exposed = figures(row, original=original)
    values: tuple[tuple[str, float, Dimension], ...] = (
        ("overlap", overlap, _PART),
        ("overlap_sum", row.overlap_sum, _PART),
        ("overlap_min", row.least, _PART),
        ("overlap_max", row.most, _PART),
        ("exposed_comm", exposed, _TIME),
        ("exposed_sum", row.exposed_sum, _TIME),
    )
    for name, number, dimension in values:
        yield Metric(name=name, value=float(number), dimension=dimension, labels=where, source="nsys")


def _rank(result: RankResult) -> Iterator[Metric]:
    time, window = result.time, max(result.time.window_ns, 1)
    launching = sum(row.total_ns for row in result.api if is_launch(row.name))
    values: list[tuple[str, float, Dimension]] = [
        ("total_time", time.window_ns, _TIME),
        ("busy", time.busy_ns / window, _PART),
        ("busy_time", time.busy_ns, _TIME),
        ("idle", time.idle_ns / window, _PART),
        ("idle_time", time.idle_ns, _TIME),
        ("computation", time.computation_ns / window, _PART),
        ("computation_time", time.computation_ns, _TIME),
        ("communication", time.communication_ns / window, _PART),
        ("communication_time", time.communication_ns, _TIME),
        ("exposed_memcpy", time.exposed_copies_ns, _TIME),
        ("barrier", sum(row.barrier_ns for row in result.streams), _TIME),
        ("straddling", result.lane.cut, _TIME),
    ]
    if result.whole is not None:
        values.append(("exposed_share", time.exposed_comm_ns / window, _PART))
    if result.api:
        values.append(("launch_share", launching / window, _PART))
    where = labels(rank=result.rank.name)
    for name, number, dimension in values:
        yield Metric(name=name, value=float(number), dimension=dimension, labels=where, source="nsys")


def is_launch(api: str) -> bool:
    """Whether a call of the runtime launches something."""
    return LAUNCH in api.lower()


def _kernels(result: RankResult) -> Iterator[Metric]:
    lane = result.lane
    number = lane.kernels.name
    lengths = lane.kernels.end - lane.kernels.start
    counts = np.bincount(number, minlength=len(lane.names))
    totals = np.bincount(number, lengths, minlength=len(lane.names))
    for at in np.flatnonzero(counts):
        where = labels(rank=result.rank.name, kernel=lane.names[at])
        yield Metric(name="kernel_time", value=float(totals[at]), dimension=_TIME, labels=where, source="nsys")
        yield Metric(name="kernel_count", value=float(counts[at]), dimension=_COUNT, labels=where, source="nsys")


def _missing(result: RankResult) -> Iterator[Absent]:
    """Where nothing communicated there is no overlap: neither 0 nor 100 %."""
    staged = [row for row in result.overlaps if not row.outside]
    silent = {*dict(result.compute), *(row.stage for row in staged)} - {row.stage for row in staged if _lasts(row)}
    window = str(result.lane.window)
    for name in _ASKED:
        if result.whole is None or not _lasts(result.whole):
            why = f"rank {result.rank.name} has no communication in the window {window}"
            yield Absent(name=name, labels=labels(rank=result.rank.name), why=why, code=SILENT)
        for stage in sorted(silent):
            why = f"{stage} of rank {result.rank.name} has no communication in the window {window}"
            yield Absent(name=name, labels=labels(rank=result.rank.name, stage=stage), why=why, code=SILENT)
