"""How much communication computation covers, per stage, by union and kernel by kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pytest_perfgate.core.analysis import intervals
from pytest_perfgate.core.analysis.nsys.streams import computing_streams
from pytest_perfgate.model.nsys_job import UNKNOWN, Lane, OverlapRow

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]


def overlaps(lane: Lane) -> tuple[OverlapRow, ...]:
    """Stages by name, then what lies outside any stage by its purpose; barriers are elsewhere."""
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


def whole(lane: Lane) -> OverlapRow | None:
    """All communication of the window, barriers included; ``None`` when there is none."""
    return _row(lane, lane.talks, computation(lane), "", outside=False) if lane.talks.any() else None


def computation(lane: Lane) -> intervals.Spans:
    """The union of all that is not communication, on any stream."""
    return intervals.union(lane.kernels.start[~lane.talks], lane.kernels.end[~lane.talks])


def exposed(lane: Lane) -> intervals.Spans:
    """Where communication runs and nothing computes."""
    talk = intervals.union(lane.kernels.start[lane.talks], lane.kernels.end[lane.talks])
    return intervals.without(talk, computation(lane))


def _row(lane: Lane, chosen: Mask, cover: intervals.Spans, name: str, *, outside: bool) -> OverlapRow:
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


def computation_by_stage(lane: Lane) -> tuple[tuple[str, int], ...]:
    """Compute per stage, by union."""
    return tuple(
        (lane.stages[at], intervals.covered(lane.kernels.start[chosen], lane.kernels.end[chosen]))
        for at in range(len(lane.stages))
        if (chosen := ~lane.talks & (lane.stage == at)).any()
    )
