"""The overlap view: one row per rank and stage."""

from __future__ import annotations

from pytest_perfgate.core.analysis.nsys.metrics import figures
from pytest_perfgate.core.analysis.nsys.prose import sentences
from pytest_perfgate.core.analysis.nsys.views import columns as c
from pytest_perfgate.core.analysis.nsys.views.notes import notes
from pytest_perfgate.model.document import Block, Cell, Document, Paragraph, Table
from pytest_perfgate.model.nsys import stream_name
from pytest_perfgate.model.nsys_job import Job, OverlapRow, RankResult

_ALWAYS = (c.text("pid"), c.text("rank"), c.text("stage"), c.ns("exposed_ns"), c.part("overlap"),
           c.part("overlap_min"), c.part("overlap_max"))  # fmt: skip
_SUMS = (c.ns("exposed_sum"), c.part("overlap_sum"))
_NO_ROWS = "no communication on a stream of its own in the window"
_LAST = (c.count("kernels"), c.text("window"))


def overlap(job: Job) -> Document:
    """What was hidden, for a person in three sentences and for a tool in a table."""
    blocks: list[Block] = [Paragraph(text=sentences(job)), overlap_table(job), *_barriers(job)]
    return Document(title="Overlap per rank and stage", blocks=(*blocks, *notes(job)))


def _barriers(job: Job) -> tuple[Table, ...]:
    """Communication on a stream that computes: it cannot overlap what follows it there."""
    columns = (c.text("pid"), c.text("rank"), c.text("stream"), c.ns("barrier_ns"), c.part("of the window"))
    rows = tuple(
        (str(r.rank.pid), r.rank.name, stream_name(s.stream), s.barrier_ns, s.barrier_ns / max(r.time.window_ns, 1))
        for r in job.ranks
        for s in r.streams
        if s.barrier_ns
    )
    return (Table(title="Barriers: communication on streams that compute", columns=columns, rows=rows),) if rows else ()


def overlap_table(job: Job) -> Table:
    """Stages, then what lies outside them in brackets."""
    original = job.reading.original
    rows = [_row(result, row, original=original) for result in job.ranks for row in _listed(result, original)]
    note = "(name): outside any stage, by purpose. "
    note += "_sum: per kernel; the others by union of what runs at once." if not original else ""
    heads = (*_ALWAYS, *_LAST) if original else (*_ALWAYS, *_SUMS, *_LAST)
    silent = "no communication in the window" if all(r.whole is None for r in job.ranks) else _NO_ROWS
    return Table(columns=heads, rows=tuple(rows), note=note.strip() if rows else silent)


def _listed(result: RankResult, original: bool) -> tuple[OverlapRow, ...]:
    """The original drops what lies outside any stage."""
    return tuple(row for row in result.overlaps if not (original and row.outside))


def _row(result: RankResult, row: OverlapRow, *, original: bool) -> tuple[Cell, ...]:
    share, exposed = figures(row, original=original)
    name = f"({row.stage})" if row.outside else row.stage
    first = (str(result.rank.pid), result.rank.name, name, exposed, share, row.least, row.most)
    sums = () if original else (row.exposed_sum, row.overlap_sum)
    return (*first, *sums, row.kernels, str(result.lane.window))
