"""The timeline view: a picture of the window and the longest exposed spans beneath it."""

from __future__ import annotations

import numpy as np

from pytest_perfgate.core.analysis.nsys.overlap import exposed
from pytest_perfgate.core.analysis.nsys.prose import sentences
from pytest_perfgate.core.analysis.nsys.timeline import timeline
from pytest_perfgate.core.analysis.nsys.views import columns as c
from pytest_perfgate.model.document import Block, Cell, Document, Paragraph, Picture, Table
from pytest_perfgate.model.nsys_job import Job, Lane, RankResult

_RANKS = 8
_SPANS = 10


def timeline_view(job: Job) -> Document:
    """Streams as lanes; of many ranks the first few."""
    shown = job.ranks[:_RANKS]
    left = len(job.ranks) - len(shown)
    alt = (
        f"A lane per stream of {len(shown)} of {len(job.ranks)} ranks; what stands exposed is marked across all lanes."
    )
    blocks: list[Block] = [Paragraph(text=sentences(job)), Picture(svg=timeline(shown), alt=alt)]
    if left:
        blocks.append(Paragraph(text=f"{left} more ranks are not drawn; the overlap view has all of them."))
    spans = [row for result in job.ranks for row in _spans(result)]
    spans.sort(key=lambda row: -row[3])
    columns = (c.text("rank"), c.ns("start"), c.ns("end"), c.ns("length"), c.text("stage"), c.text("kernel"))
    rows: tuple[tuple[Cell, ...], ...] = tuple(spans[:_SPANS])
    if rows:
        blocks.append(Table(title="Longest exposed communication", columns=columns, rows=rows))
    return Document(title="Timeline of the window", blocks=tuple(blocks))


def _spans(result: RankResult) -> list[tuple[str, int, int, int, str, str]]:
    """A rank's longest exposed spans, each with the first kernel that runs in it."""
    lane = result.lane
    start, end = exposed(lane)
    found = []
    for at in np.argsort(start - end, kind="stable")[:_SPANS]:
        low, high = int(start[at]), int(end[at])
        runs = np.flatnonzero(lane.talks & (lane.kernels.start < high) & (lane.kernels.end > low))
        first = int(runs[np.argmin(lane.kernels.start[runs])])
        found.append(
            (result.rank.name, low, high, high - low, _stage(lane, first), lane.names[lane.kernels.name[first]])
        )
    return found


def _stage(lane: Lane, at: int) -> str:
    """A kernel's stage, or in brackets what it is for outside of any."""
    if lane.stage[at] >= 0:
        return lane.stages[int(lane.stage[at])]
    return f"({lane.purposes[int(lane.purpose[at])]})" if lane.purpose[at] >= 0 else "-"
