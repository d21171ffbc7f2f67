"""Overlap of computation and communication, use of devices, balance, stated work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pytest_perfgate.core.analysis import intervals
from pytest_perfgate.model.metric import Absent, Finding, Metric, MetricSet, labels
from pytest_perfgate.model.nsys import (
    COMMUNICATION,
    COMPUTE,
    MIXED,
    UNKNOWN,
    OverlapRow,
    RankLane,
    RankResult,
    StreamRow,
    TimedCalls,
    TimeRow,
)
from pytest_perfgate.model.values import value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pytest_perfgate.core.analysis.kernels.bottleneck import BottleneckOptions

    Mask = NDArray[np.bool_]


def overlaps(lane: RankLane) -> tuple[OverlapRow, ...]:
    """Return stages by name, then what is outside of stages by its purpose; barriers are listed elsewhere."""
    cover = computation(lane)
    asynchronous = lane.talks & ~np.isin(lane.kernels.stream, list(computing_streams(lane)))
    rows = [
        _row(lane, asynchronous & (lane.stage == at), cover, lane.stages[at], outside=False)
        for at in np.unique(lane.stage[asynchronous & (lane.stage >= 0)])
    ]
    loose = asynchronous & (lane.stage < 0)
    for at in np.unique(lane.purpose[loose]):
        name = lane.purposes[at] if at >= 0 else UNKNOWN
        rows.append(_row(lane, loose & (lane.purpose == at), cover, name, outside=True))
    return tuple(rows)


def all_communication(lane: RankLane) -> OverlapRow | None:
    """Return all communication of the window with barriers; ``None`` if there is none."""
    return _row(lane, lane.talks, computation(lane), "", outside=False) if lane.talks.any() else None


def computation(lane: RankLane) -> intervals.Spans:
    """Return the union of all that is not communication, on any stream."""
    return intervals.union(lane.kernels.start[~lane.talks], lane.kernels.end[~lane.talks])


def exposed(lane: RankLane) -> intervals.Spans:
    """Return when communication runs and nothing computes."""
    talk = intervals.union(lane.kernels.start[lane.talks], lane.kernels.end[lane.talks])
    return intervals.without(talk, computation(lane))


def members(lane: RankLane, row: OverlapRow) -> list[float]:
    """Return how much of each kernel of a row is hidden."""
    asynchronous = lane.talks & ~np.isin(lane.kernels.stream, list(computing_streams(lane)))
    names, of = (lane.purposes, lane.purpose) if row.outside else (lane.stages, lane.stage)
    at = names.index(row.stage) if row.stage in names else -1
    chosen = asynchronous & (of == at) & ((lane.stage < 0) == row.outside)
    start, end = lane.kernels.start[chosen], lane.kernels.end[chosen]
    hidden = intervals.covered_by(start, end, computation(lane))
    parts: list[float] = (hidden / np.maximum(end - start, 1)).tolist()
    return parts


def _row(lane: RankLane, chosen: Mask, cover: intervals.Spans, name: str, *, outside: bool) -> OverlapRow:
    start, end = lane.kernels.start[chosen], lane.kernels.end[chosen]
    lengths = end - start
    hidden = intervals.covered_by(start, end, cover)
    talk = intervals.union(start, end)
    parts = hidden[lengths > 0] / lengths[lengths > 0]
    return OverlapRow(
        stage=name,
        outside=outside,
        kernels=len(start),
        total_ns=intervals.length(talk),
        exposed_ns=intervals.length(talk) - intervals.shared(talk, cover),
        total_sum=int(lengths.sum()),
        exposed_sum=int((lengths - hidden).sum()),
        least=float(parts.min()) if len(parts) else float("nan"),
        most=float(parts.max()) if len(parts) else float("nan"),
    )


def computation_by_stage(lane: RankLane) -> tuple[tuple[str, int], ...]:
    """Return compute by stage, as unions."""
    return tuple(
        (lane.stages[at], intervals.covered(lane.kernels.start[chosen], lane.kernels.end[chosen]))
        for at in range(len(lane.stages))
        if (chosen := ~lane.talks & (lane.stage == at)).any()
    )


def streams(lane: RankLane) -> tuple[StreamRow, ...]:
    """Return the streams that are active in the window, whatever their counts and durations."""
    return tuple(_stream_row(lane, int(stream)) for stream in np.unique(lane.kernels.stream))


def computing_streams(lane: RankLane) -> frozenset[int]:
    """Return the streams on which anything other than communication ran."""
    return frozenset(np.unique(lane.kernels.stream[~lane.talks]).tolist())


def _stream_row(lane: RankLane, stream: int) -> StreamRow:
    on = lane.kernels.stream == stream
    talks = lane.talks[on]
    start, end = lane.kernels.start[on], lane.kernels.end[on]
    computes = not talks.all()
    purposes = _kernels_by_purpose(lane, on) if not computes else {}
    purpose = next(iter(purposes), "") if len(purposes) < 2 else MIXED
    listed = ", ".join(f"{name} {count}" for name, count in sorted(purposes.items()))
    return StreamRow(
        stream=stream,
        kind=COMPUTE if computes else COMMUNICATION,
        purpose=purpose,
        kernels=int(on.sum()),
        busy_ns=intervals.covered(start[~talks] if computes else start, end[~talks] if computes else end),
        barrier_ns=intervals.covered(start[talks], end[talks]) if computes else 0,
        detail=listed if purpose == MIXED else "",
    )


def _kernels_by_purpose(lane: RankLane, on: NDArray[np.bool_]) -> dict[str, int]:
    """Count kernels by the purpose of their launch; those that an edge cuts only count if there are no others."""
    cut = (lane.kernels.start == lane.window.start) | (lane.kernels.end == lane.window.end)
    whole = on & ~cut
    codes, counts = np.unique(lane.purpose[whole if whole.any() else on], return_counts=True)
    return {lane.purposes[at] if at >= 0 else UNKNOWN: n for at, n in zip(codes.tolist(), counts.tolist())}


def times(lane: RankLane) -> TimeRow:
    """Return computation, exposed communication, exposed copies and idle time of the window."""
    kernels, copies = lane.kernels, lane.copies
    compute = computation(lane)
    talk = intervals.union(kernels.start[lane.talks], kernels.end[lane.talks])
    either = intervals.joined_spans(compute, talk)
    starts, ends = np.append(kernels.start, copies.start), np.append(kernels.end, copies.end)
    busy = intervals.covered(starts, ends)
    return TimeRow(
        computation_ns=intervals.length(compute),
        communication_ns=intervals.length(talk),
        exposed_comm_ns=intervals.length(either) - intervals.length(compute),
        exposed_copies_ns=busy - intervals.length(either),
        busy_ns=busy,
        idle_ns=lane.window.length - busy,
        window_ns=lane.window.length,
    )


def stages(ranks: Sequence[RankResult]) -> tuple[str, ...]:
    """Return every stage that computes on any rank."""
    return tuple(sorted({stage for result in ranks for stage, _ in result.compute}))


def result(lane: RankLane, launches: TimedCalls | None = None, waits: TimedCalls | None = None) -> RankResult:
    """Return the result of one rank; launching and waiting calls may be those of a whole file."""
    launching = _launching(lane, launches) if launches is not None else None
    waiting = _waiting(lane, waits) if waits is not None and launching is not None else None
    return RankResult(
        lane=lane,
        streams=streams(lane),
        overlaps=overlaps(lane),
        comm=all_communication(lane),
        time=times(lane),
        compute=computation_by_stage(lane),
        launch_ns=launching,
        sync_ns=_idle_after_waits(lane, waiting) if waiting is not None else None,
        sync_count=_inside(lane, waiting) if waiting is not None else None,
    )


def _launching(lane: RankLane, launches: TimedCalls) -> int | None:
    """Return the launch time in the window; ``None`` if the process launched nothing in it."""
    process, start, end = launches
    window, of_rank = lane.window, process == lane.rank.pid
    start, end = np.clip(start[of_rank], window.start, window.end), np.clip(end[of_rank], window.start, window.end)
    return intervals.covered(start, end) if of_rank.any() else None


def _waiting(lane: RankLane, waits: TimedCalls) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return start and end of the waits of this process."""
    process, start, end = waits
    of_rank = process == lane.rank.pid
    return start[of_rank], end[of_rank]


def _inside(lane: RankLane, calls: tuple[NDArray[np.int64], NDArray[np.int64]]) -> int:
    return int(np.count_nonzero((calls[0] < lane.window.end) & (calls[1] > lane.window.start)))


def _idle_after_waits(lane: RankLane, waits: tuple[NDArray[np.int64], NDArray[np.int64]]) -> int:
    starts, ends = np.append(lane.kernels.start, lane.copies.start), np.append(lane.kernels.end, lane.copies.end)
    return intervals.idle_after_waits(intervals.union(starts, ends), waits, (lane.window.start, lane.window.end))


@value
class Balance:
    """Compute by coordinate of one dimension of the mesh; ``over`` is ``rank`` without a mesh."""

    over: str
    parts: tuple[tuple[str, float, int], ...]
    """(coordinate, mean compute in ns, ranks)."""

    @property
    def excess(self) -> float:
        """Return the busiest part over the mean of the parts, minus one."""
        amounts = [amount for _, amount, _ in self.parts]
        mean = sum(amounts) / len(amounts)
        return max(amounts) / mean - 1 if mean else float("nan")


def balances(ranks: Sequence[RankResult], stage: str = "") -> tuple[Balance, ...]:
    """Return a balance for each dimension with several coordinates, and over ranks; of one stage if named."""
    amounts = [(result, amount) for result in ranks if (amount := _computed(result, stage)) is not None]
    axes = sorted({axis for result, _ in amounts for axis, _, size in result.rank.mesh if size > 1})
    rows = [_over(axis, [(_coordinates(result).get(axis), amount) for result, amount in amounts]) for axis in axes]
    everyone: list[tuple[str | None, int]] = [(result.rank.name, amount) for result, amount in amounts]
    return tuple(balance for balance in (*rows, _over("rank", everyone)) if len(balance.parts) > 1)


def _computed(result: RankResult, stage: str) -> int | None:
    """Return the compute of a rank, or of one stage on it; None if the rank lacks the stage."""
    return dict(result.compute).get(stage) if stage else result.time.computation_ns


def _coordinates(result: RankResult) -> dict[str, str]:
    """Return a rank's coordinate in every dimension."""
    return {axis: str(at) for axis, at, _ in result.rank.mesh}


def _over(axis: str, members: Sequence[tuple[str | None, int]]) -> Balance:
    parts: dict[str, list[int]] = {}
    for coordinate, amount in members:
        if coordinate is not None:
            parts.setdefault(coordinate, []).append(amount)
    listed = ((name, sum(amounts) / len(amounts), len(amounts)) for name, amounts in parts.items())
    return Balance(over=axis, parts=tuple(sorted(listed, key=lambda part: (len(part[0]), part[0]))))


STATED = (
    ("flops", "operations of one window of a rank, such as 137.4GFLOP"),
    ("bytes", "bytes that it moved, such as 201MB"),
    ("items", "the unit of its throughput, such as '8192 tokens'"),
    ("dtype", "the type that sets the peak, such as fp16"),
    ("device", "the device of the catalogue, where the export does not name it"),
    ("peak", "peaks by dtype, such as bf16=708TFLOPS, instead of a device"),
    ("bandwidth", "memory bandwidth, such as 5.3TB/s, instead of a device"),
    ("rates", "datasheet or achievable: which column of the catalogue is the roof"),
)
"""Facts about a window that an export lacks; without the work there is no rate to compare with a roof."""

_BY = "the window, idle time included"


def work_metrics(ranks: Sequence[RankResult], stated: BottleneckOptions | None) -> MetricSet:
    """Return rates of the stated work over the window of each rank."""
    if stated is None:
        return MetricSet()
    from pytest_perfgate.core.analysis.kernels.bottleneck import stated_metrics

    metrics, absent = list[Metric](), list[Absent]()
    for result in ranks:
        every, where = stated_metrics(stated, float(result.lane.window.length), _BY), labels(rank=result.rank.name)
        metrics += [replace(metric, labels=where) for metric in every.metrics]
        absent += [replace(missing, labels=where) for missing in every.absent]
    return MetricSet(metrics=tuple(metrics), absent=tuple(absent))


def work_findings(ranks: Sequence[RankResult], stated: BottleneckOptions | None) -> Iterator[Finding]:
    """Yield the same rates as sentences; for a roof without work, what to state."""
    if stated is None:
        return
    from pytest_perfgate.core.analysis.kernels.bottleneck import run_figures

    for result in ranks:
        figures = [f"{name} {text}" for name, text in run_figures(stated, float(result.lane.window.length))]
        yield Finding(
            title=f"Stated work of rank {result.rank.name}" if figures else "No work is stated",
            detail=f"{'; '.join(figures)}; over {_BY}." if figures else "A roof alone gives no rate.",
            trigger=f"window={result.lane.window}",
            advice="" if figures else "state the work of one window: --set flops=137.4GFLOP --set dtype=bf16",
        )
        if not figures:
            return
