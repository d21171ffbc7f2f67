"""Streams by what runs on them: compute unless everything communicates, purpose only if all agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pytest_perfgate.core.analysis import intervals
from pytest_perfgate.model.nsys_job import COMMUNICATION, COMPUTE, MIXED, UNKNOWN, Lane, StreamRow

if TYPE_CHECKING:
    from numpy.typing import NDArray


def streams(lane: Lane) -> tuple[StreamRow, ...]:
    """The streams that are active in the window; no counts, durations or averages decide."""
    return tuple(_row(lane, int(stream)) for stream in np.unique(lane.kernels.stream))


def computing_streams(lane: Lane) -> frozenset[int]:
    """Streams on which anything but communication ran."""
    return frozenset(np.unique(lane.kernels.stream[~lane.talks]).tolist())


def _row(lane: Lane, stream: int) -> StreamRow:
    on = lane.kernels.stream == stream
    talks = lane.talks[on]
    start, end = lane.kernels.start[on], lane.kernels.end[on]
    computes = not talks.all()
    said = _said(lane, on) if not computes else {}
    purpose = "" if computes else next(iter(said)) if len(said) == 1 else MIXED
    listed = ", ".join(f"{name} {count}" for name, count in sorted(said.items()))
    return StreamRow(
        stream=stream,
        kind=COMPUTE if computes else COMMUNICATION,
        purpose=purpose,
        kernels=int(on.sum()),
        busy_ns=intervals.covered(start[~talks] if computes else start, end[~talks] if computes else end),
        barrier_ns=intervals.covered(start[talks], end[talks]) if computes else 0,
        detail=listed if purpose == MIXED else "",
    )


def _said(lane: Lane, on: NDArray[np.bool_]) -> dict[str, int]:
    """How many kernels were launched for which purpose."""
    found, counts = np.unique(lane.purpose[on], return_counts=True)
    return {lane.purposes[at] if at >= 0 else UNKNOWN: n for at, n in zip(found.tolist(), counts.tolist())}
