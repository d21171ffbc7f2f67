"""Pictures of a job: streams of its ranks, hidden communication by stage, the window's parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pytest_perfgate.core.analysis import intervals
from pytest_perfgate.core.analysis.nsys import views
from pytest_perfgate.core.analysis.nsys.metrics import sentences, window_text
from pytest_perfgate.core.analysis.nsys.overlap import exposed, members
from pytest_perfgate.core.render import lanes
from pytest_perfgate.core.render.charts import (
    MOST_ROWS,
    TIME_KEY,
    Row,
    lengths_picture,
    merged,
    overlap_bars,
    overlap_row,
    stacked,
)
from pytest_perfgate.core.render.words import plural, quantity
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Block, Cell, Column, Document, Paragraph, Picture, Table
from pytest_perfgate.model.nsys import COMPUTE, Job, RankLane, RankResult, StreamRow, stream_name
from pytest_perfgate.model.values import Dimension

_RANKS = 8

_SPANS = 10

_NAMED = 100
"""The least part of a window for a kernel that is labelled with its stage."""


def timeline_view(job: Job) -> Document:
    """Return streams as lanes; of many ranks the first few."""
    hidden = len(job.ranks) - len(job.ranks[:_RANKS])
    blocks: list[Block] = [Paragraph(text=sentences(job)), timeline_picture(job)]
    if hidden:
        blocks.append(Paragraph(text=f"{hidden} more ranks are not drawn; the overlap view has all of them."))
    spans = [row for result in job.ranks for row in _spans(result)]
    spans.sort(key=lambda row: -row[3])
    columns = (
        Column(name="rank"),
        views.ns("start"),
        views.ns("end"),
        *Column.header("length: time | stage | kernel"),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(spans[:_SPANS])
    if rows:
        blocks.append(Table(title="Longest exposed communication", columns=columns, rows=rows))
    return Document(title="Timeline of the window", subtitle=window_text(job.ranks), blocks=tuple(blocks))


def _spans(result: RankResult) -> list[tuple[str, int, int, int, str, str]]:
    """Return a rank's longest exposed spans, each with the first kernel that runs in it."""
    lane = result.lane
    start, end = exposed(lane)
    spans = []
    for at in np.argsort(start - end, kind="stable")[:_SPANS]:
        low, high = int(start[at]), int(end[at])
        runs = np.flatnonzero(lane.talks & (lane.kernels.start < high) & (lane.kernels.end > low))
        first = int(runs[np.argmin(lane.kernels.start[runs])])
        spans.append(
            (result.rank.name, low, high, high - low, _stage(lane, first), lane.names[lane.kernels.name[first]])
        )
    return spans


def _stage(lane: RankLane, at: int) -> str:
    """Return a kernel's stage, or outside of stages its purpose in brackets."""
    if lane.stage[at] >= 0:
        return lane.stages[int(lane.stage[at])]
    return f"({lane.purposes[int(lane.purpose[at])]})" if lane.purpose[at] >= 0 else "-"


def timeline_picture(job: Job) -> Picture:
    """Draw a lane for each stream of the first ranks; exposed time is marked across a rank's lanes."""
    shown = job.ranks[:_RANKS]
    part = "" if len(shown) == len(job.ranks) else f"{len(shown)} of "
    any_exposed = any(len(exposed(result.lane)[0]) for result in shown)
    marking = "exposed communication is marked" if any_exposed else "no communication is exposed"
    alt = f"A lane per stream of {part}{plural(len(job.ranks), 'rank')}; {marking}"
    return lanes.timeline("timeline", alt, [_group(result) for result in shown], lanes.LANE_KEY)


def _group(result: RankResult) -> lanes.Group:
    window, exposed_spans = result.lane.window, exposed(result.lane)
    rows = [_lane(result, row, exposed_spans) for row in result.streams]
    if len(result.lane.copies):
        copies = intervals.union(result.lane.copies.start, result.lane.copies.end)
        rows.append(lanes.Lane(label="copies", spans=(("copies", copies),)))
    title = f"rank {result.rank.name}: {quantity(window.length, Dimension.TIME)}"
    return lanes.Group(title=title, start=window.start, end=window.end, lanes=tuple(rows), marked=exposed_spans)


def _lane(result: RankResult, row: StreamRow, exposed_spans: intervals.Spans) -> lanes.Lane:
    lane = result.lane
    on = lane.kernels.stream == row.stream
    compute, talk = (
        intervals.union(lane.kernels.start[chosen], lane.kernels.end[chosen])
        for chosen in (on & ~lane.talks, on & lane.talks)
    )
    long = lane.kernels.end - lane.kernels.start > lane.window.length // _NAMED
    named = np.flatnonzero(on & lane.talks & (lane.stage >= 0) & long)
    order = named[np.argsort(lane.kernels.start[named], kind="stable")]
    kind = "" if row.kind == COMPUTE else f", {row.purpose}"
    return lanes.Lane(
        label=f"stream {stream_name(row.stream)}{kind}",
        spans=(
            ("compute", compute),
            ("hidden", intervals.without(talk, exposed_spans)),
            ("exposed", intervals.crossed(talk, exposed_spans)),
        ),
        words=tuple(
            (int(lane.kernels.start[at]), int(lane.kernels.end[at]), lane.stages[lane.stage[at]])
            for at in order.tolist()
        ),
    )


def times_picture(*jobs: Job) -> Picture:
    """Draw how each rank's window was spent, of one job or of two; of many ranks means, of each job its own."""
    sides = [merged([_time_row(r, _side(jobs, job)) for r in job.ranks], MOST_ROWS // len(jobs)) for job in jobs]
    shown = _paired([row for rows, _ in sides for row in rows])
    sizes = list(dict.fromkeys(plural(size, "rank") for _, size in sides))
    alt = f"Time of the window, {plural(len(jobs[0].ranks), 'rank')}{', before and after' * (len(jobs) > 1)}"
    note = f"each bar is the mean of {', and after of '.join(sizes)}" if sizes != ["1 rank"] else ""
    return stacked("ranks", alt, shown, TIME_KEY, lambda at: quantity(at, Dimension.TIME, 3) if at else "0", note)


def _time_row(result: RankResult, side: str) -> Row:
    time = result.time
    return Row(
        label=f"rank {result.rank.name}{side}",
        amounts=(time.computation_ns, time.exposed_comm_ns, time.exposed_copies_ns, time.idle_ns),
        text=quantity(time.window_ns, Dimension.TIME, 3),
    )


def _side(jobs: Sequence[Job], job: Job) -> str:
    if len(jobs) < 2:
        return ""
    return ", after" if job is jobs[1] else ", before"


def overlap_picture(*jobs: Job) -> Picture:
    """Draw the hidden part by stage and rank, with the distribution of kernels; two jobs side by side."""
    rows = [pair for job in jobs for pair in _overlap_rows(job, _side(jobs, job))]
    if not rows:
        raise PerfgateError("picture-none", "no communication has a stream of its own in the window")
    ranked = [row for _, row in sorted(rows, key=lambda pair: -pair[0])]
    first = [row for row in _paired([row for _, row in rows]) if row in ranked[:MOST_ROWS]]
    return overlap_bars([*first, *ranked[MOST_ROWS:]], "stage")


def _overlap_rows(job: Job, side: str) -> Iterator[tuple[float, Row]]:
    """Yield the exposed time of each stage and rank, and its row."""
    for result in job.ranks:
        rank = f"rank {result.rank.name}: " if len(job.ranks) > 1 else ""
        for row in result.overlaps:
            label = f"{rank}{f'({row.stage})' if row.outside else row.stage}{side}"
            hidden_ns = row.total_ns - row.exposed_ns
            yield row.exposed_ns, overlap_row(label, hidden_ns, row.total_ns, members(result.lane, row))


def _paired(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of two jobs so that those of one name follow each other, in the order of the first job."""
    names = [row.label.replace(", before", "").replace(", after", "") for row in rows]
    places = {name: at for at, name in enumerate(dict.fromkeys(names))}
    return [row for _, row in sorted(zip(names, rows), key=lambda pair: places[pair[0]])]


def kernels_picture(job: Job) -> Picture:
    """Draw how many kernels of the windows are short."""
    return lengths_picture(np.concatenate([r.lane.kernels.end - r.lane.kernels.start for r in job.ranks]))


def drawn(name: str, *jobs: Job) -> Picture:
    """Draw one picture of a job, or of one before and one after a change."""
    if name == "timeline":
        return timeline_picture(jobs[0])
    if name == "kernels":
        return kernels_picture(jobs[0])
    return overlap_picture(*jobs) if name == "overlap" else times_picture(*jobs)
