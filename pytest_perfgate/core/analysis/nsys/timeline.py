"""One window's lanes as data (drawing moves to render/pictures)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

import numpy as np

from pytest_perfgate.core.analysis import intervals
from pytest_perfgate.core.analysis.nsys import views as c
from pytest_perfgate.core.analysis.nsys.metrics import sentences
from pytest_perfgate.core.analysis.nsys.overlap import exposed
from pytest_perfgate.core.render.words import quantity
from pytest_perfgate.model.metric import Block, Cell, Document, Paragraph, Picture, Table
from pytest_perfgate.model.nsys import COMPUTE, Job, Lane, RankResult, StreamRow, stream_name
from pytest_perfgate.model.values import Dimension, value

WIDTH, LEFT, RIGHT, LANE, GAP, TOP = 1180, 210, 20, 22, 6, 58

LEAST = 760
"""Pixels below which its words are no longer read: a narrower page scrolls."""

COLOURS = {"compute": "#4c78a8", "hidden": "#2a9d8f", "exposed": "#e4572e", "copies": "#b9a5c9"}

_LEGEND = (("compute", "compute"), ("hidden", "communication, covered"), ("exposed", "communication, exposed"),
           ("copies", "copies and sets"))  # fmt: skip

_TICKS = 8

_FONT = "font-family='ui-sans-serif,system-ui,Helvetica,Arial,sans-serif'"


@value
class Scale:
    """Nanoseconds of a window to pixels."""

    start: int
    end: int

    def x(self, at: float) -> float:
        return LEFT + (at - self.start) / max(self.end - self.start, 1) * (WIDTH - LEFT - RIGHT)

    @property
    def pixel(self) -> float:
        """Nanoseconds under one pixel."""
        return max(self.end - self.start, 1) / (WIDTH - LEFT - RIGHT)


def timeline(ranks: Sequence[RankResult]) -> str:
    """The ranks below each other, each on the scale of its own window."""
    parts: list[str] = []
    top = TOP
    for result in ranks:
        drawn, top = _rank(result, top)
        parts += drawn
    height = top + 8
    head = (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' width='100%' "
        f"style='min-width:{LEAST}px' "
        f"role='img' {_FONT} font-size='12'>"
        f"<rect width='{WIDTH}' height='{height}' fill='#ffffff'/>"
    )
    return "".join((head, *_legend(), *parts, "</svg>"))


def _legend() -> Iterator[str]:
    x = LEFT
    for key, words in _LEGEND:
        yield f"<rect x='{x}' y='14' width='14' height='14' rx='2' fill='{COLOURS[key]}'/>"
        yield f"<text x='{x + 20}' y='25' fill='#333'>{words}</text>"
        x += 44 + 7 * len(words)


def _rank(result: RankResult, top: int) -> tuple[list[str], int]:
    lane = result.lane
    scale = Scale(start=lane.window.start, end=lane.window.end)
    bare = exposed(lane)
    size = quantity(lane.window.length, Dimension.TIME)
    title = f"rank {result.rank.name}: {lane.window} ns ({size})"
    parts = [f"<text x='12' y='{top}' font-weight='600' fill='#111'>{escape(title)}</text>"]
    first = top + 30
    lanes = [*result.streams, *_copies(result)]
    bottom = first + len(lanes) * (LANE + GAP)
    parts += _axis(scale, first - 8, bottom - GAP + 2)
    parts += _bands(scale, bare, first - 4, bottom - GAP + 2)
    for number, row in enumerate(lanes):
        parts += _stream(result, row, bare, scale, first + number * (LANE + GAP))
    return parts, bottom + 22


def _copies(result: RankResult) -> tuple[StreamRow, ...]:
    """One lane for copies, where there are any."""
    if not len(result.lane.copies):
        return ()
    return (StreamRow(stream=-1, kind="copies", purpose="", kernels=len(result.lane.copies), busy_ns=0, barrier_ns=0),)


def _axis(scale: Scale, top: float, bottom: float) -> Iterator[str]:
    for step in range(_TICKS + 1):
        at = scale.start + (scale.end - scale.start) * step / _TICKS
        x = scale.x(at)
        anchor = "start" if step == 0 else "end" if step == _TICKS else "middle"
        words = quantity(at - scale.start, Dimension.TIME, 3) if step else "0"
        yield f"<line x1='{x:.1f}' y1='{top}' x2='{x:.1f}' y2='{bottom}' stroke='#e3e3e3'/>"
        yield f"<text x='{x:.1f}' y='{top - 4}' fill='#777' font-size='10' text-anchor='{anchor}'>{words}</text>"


def _bands(scale: Scale, bare: intervals.Spans, top: float, bottom: float) -> Iterator[str]:
    """Where communication stands exposed, across all lanes."""
    for start, end in _visible(bare, scale):
        x, width = _box(scale, start, end)
        yield (
            f"<rect x='{x:.2f}' y='{top}' width='{width:.2f}' height='{bottom - top}' "
            f"fill='{COLOURS['exposed']}' opacity='0.13'/>"
        )


def _stream(result: RankResult, row: StreamRow, bare: intervals.Spans, scale: Scale, y: float) -> Iterator[str]:
    lane = result.lane
    yield f"<text x='12' y='{y + 15}' fill='#333'>{escape(_label(row))}</text>"
    yield f"<rect x='{LEFT}' y='{y}' width='{WIDTH - LEFT - RIGHT}' height='{LANE}' fill='#f4f5f7'/>"
    if row.stream < 0:
        spans = intervals.union(lane.copies.start, lane.copies.end)
        yield from _boxes(spans, scale, y, "copies")
        return
    on = lane.kernels.stream == row.stream
    for talks in (False, True):
        chosen = on & (lane.talks == talks)
        spans = intervals.union(lane.kernels.start[chosen], lane.kernels.end[chosen])
        if not talks:
            yield from _boxes(spans, scale, y, "compute")
            continue
        yield from _boxes(spans, scale, y, "hidden")
        yield from _boxes(intervals.crossed(spans, bare), scale, y, "exposed")
    yield from _stages(result, row, scale, y)


def _label(row: StreamRow) -> str:
    if row.stream < 0:
        return "copies"
    kind = row.kind if row.kind == COMPUTE else row.purpose
    return f"stream {stream_name(row.stream)}  {kind}"


def _boxes(spans: intervals.Spans, scale: Scale, y: float, what: str) -> Iterator[str]:
    for start, end in _visible(spans, scale):
        x, width = _box(scale, start, end)
        words = f"{what} {start}..{end} ns"
        yield (
            f"<rect x='{x:.2f}' y='{y}' width='{width:.2f}' height='{LANE}' fill='{COLOURS[what]}'>"
            f"<title>{words}</title></rect>"
        )


def _box(scale: Scale, start: int, end: int) -> tuple[float, float]:
    x = scale.x(start)
    return x, max(scale.x(end) - x, 0.6)


def _visible(spans: intervals.Spans, scale: Scale) -> Iterator[tuple[int, int]]:
    """Spans no eye could tell apart drawn as one, so that a picture has a bounded size."""
    starts, ends = spans
    if not len(starts):
        return
    apart = np.append(True, starts[1:] - ends[:-1] > scale.pixel / 2)
    last = np.append(apart[1:], True)
    yield from zip(starts[apart].tolist(), ends[last].tolist())


def _stages(result: RankResult, row: StreamRow, scale: Scale, y: float) -> Iterator[str]:
    """Names of stages on communication that is wide enough to hold them."""
    lane = result.lane
    shown = (lane.kernels.stream == row.stream) & lane.talks & (lane.stage >= 0)
    wide = shown & ((lane.kernels.end - lane.kernels.start) > 60 * scale.pixel)
    for at in np.flatnonzero(wide):
        middle = scale.x((int(lane.kernels.start[at]) + int(lane.kernels.end[at])) / 2)
        name = escape(lane.stages[lane.stage[at]])
        yield f"<text x='{middle:.1f}' y='{y + 15}' fill='#fff' font-size='11' text-anchor='middle'>{name}</text>"


_RANKS = 8

_SPANS = 10


def timeline_view(job: Job) -> Document:
    """Streams as lanes; of many ranks the first few."""
    shown = job.ranks[:_RANKS]
    hidden = len(job.ranks) - len(shown)
    alt = (
        f"A lane per stream of {len(shown)} of {len(job.ranks)} ranks; what stands exposed is marked across all lanes."
    )
    blocks: list[Block] = [Paragraph(text=sentences(job)), Picture(svg=timeline(shown), alt=alt)]
    if hidden:
        blocks.append(Paragraph(text=f"{hidden} more ranks are not drawn; the overlap view has all of them."))
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
    spans = []
    for at in np.argsort(start - end, kind="stable")[:_SPANS]:
        low, high = int(start[at]), int(end[at])
        runs = np.flatnonzero(lane.talks & (lane.kernels.start < high) & (lane.kernels.end > low))
        first = int(runs[np.argmin(lane.kernels.start[runs])])
        spans.append(
            (result.rank.name, low, high, high - low, _stage(lane, first), lane.names[lane.kernels.name[first]])
        )
    return spans


def _stage(lane: Lane, at: int) -> str:
    """A kernel's stage, or in brackets what it is for outside of any."""
    if lane.stage[at] >= 0:
        return lane.stages[int(lane.stage[at])]
    return f"({lane.purposes[int(lane.purpose[at])]})" if lane.purpose[at] >= 0 else "-"
