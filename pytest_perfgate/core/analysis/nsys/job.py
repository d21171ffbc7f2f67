"""Ranks analysed and joined: what each step of the preparation finds, in order."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_perfgate.core.analysis.nsys.overlap import computation_by_stage, overlaps, whole
from pytest_perfgate.core.analysis.nsys.streams import streams
from pytest_perfgate.core.analysis.nsys.usage import times
from pytest_perfgate.model.nsys import ApiTotal
from pytest_perfgate.model.nsys_job import Lane, RankResult


def result(lane: Lane, api: Sequence[ApiTotal] = ()) -> RankResult:
    """Everything about one rank; the calls may be those of a whole file."""
    rank = lane.rank
    return RankResult(
        lane=lane,
        streams=streams(lane),
        overlaps=overlaps(lane),
        whole=whole(lane),
        time=times(lane),
        compute=computation_by_stage(lane),
        api=tuple(row for row in api if row.pid == rank.pid),
    )
