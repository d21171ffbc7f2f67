"""Who, when and what: the setup, window and streams views."""

from __future__ import annotations

import re

from pytest_perfgate.core.analysis.nsys.views import columns as c
from pytest_perfgate.core.analysis.nsys.views.notes import notes
from pytest_perfgate.model.document import Cell, Document, Table
from pytest_perfgate.model.nsys import stream_name
from pytest_perfgate.model.nsys_job import Job, Rank


def setup(job: Job) -> Document:
    """The mapping of process to rank, device and place in the mesh."""
    columns = tuple(map(c.text, ("pid", "rank", "gpu", "device", "mesh", "settings", "named by", "file")))
    rows = tuple(_rank(job, result.rank) for result in job.ranks)
    return Document(title="Setup", blocks=(Table(columns=columns, rows=rows), *_files(job), *notes(job)))


def _rank(job: Job, rank: Rank) -> tuple[Cell, ...]:
    facts = job.files[rank.file]
    device = dict(facts.gpus).get(rank.device)
    mesh = " ".join(f"{axis}={at}/{size}" for axis, at, size in rank.mesh)
    settings = " ".join(f"{key}={number}" for key, number in rank.settings)
    by_thread = bool(re.search(job.reading.preset.thread, rank.label))
    named = "order of devices" if not rank.label else "its thread's name" if by_thread else "its first labelled range"
    return (str(rank.pid), rank.name, str(rank.device), device, mesh or "-", settings or "-", named, facts.path)


def _files(job: Job) -> tuple[Table, ...]:
    rows = tuple((facts.path, facts.product or None, facts.schema or None) for facts in job.files)
    return (Table(columns=(c.text("file"), c.text("nsys"), c.text("schema")), rows=rows),)


def window(job: Job) -> Document:
    """Where every figure is from, and what its edges cut."""
    columns = (c.text("pid"), c.text("rank"), c.ns("start"), c.ns("end"), c.time("length"), c.count("kernels"),
               c.count("straddling"), c.time("cut off"), c.text("chosen as"))  # fmt: skip
    rows = tuple(
        (str(r.rank.pid), r.rank.name, w.start, w.end, w.length, len(r.lane.kernels), r.lane.straddlers, r.lane.cut,
         w.how)
        for r in job.ranks
        for w in (r.lane.window,)
    )  # fmt: skip
    rule = "left out whole" if job.reading.original else "clipped to it"
    table = Table(columns=columns, rows=rows, note=f"Kernels that straddle an edge of the window are {rule}.")
    return Document(title="Window", blocks=(table, *notes(job)))


def streams(job: Job) -> Document:
    """Streams that are active in the window, by what runs on them."""
    columns = (c.text("pid"), c.text("rank"), c.text("stream"), c.text("kind"), c.text("purpose"), c.count("kernels"),
               c.ns("busy_ns"), c.ns("barrier_ns"), c.text("window"))  # fmt: skip
    rows = tuple(
        (str(r.rank.pid), r.rank.name, stream_name(s.stream), s.kind,
         f"{s.purpose} ({s.detail})" if s.detail else s.purpose, s.kernels, s.busy_ns, s.barrier_ns, str(r.lane.window))
        for r in job.ranks
        for s in r.streams
    )  # fmt: skip
    note = "A stream computes if any kernel on it does; barrier: communication on such a stream."
    return Document(title="Streams in the window", blocks=(Table(columns=columns, rows=rows, note=note), *notes(job)))
