"""The summary view: where the time went, on the device and on the host."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pytest_perfgate.core.analysis.communication import communication
from pytest_perfgate.core.analysis.nsys.metrics import is_launch
from pytest_perfgate.core.analysis.nsys.prose import window_text
from pytest_perfgate.core.analysis.nsys.views import columns as c
from pytest_perfgate.core.analysis.nsys.views.notes import notes
from pytest_perfgate.model.document import Cell, Document, Table
from pytest_perfgate.model.nsys import ApiTotal, KernelTotal
from pytest_perfgate.model.nsys_job import Job


def summary(
    job: Job, totals: Iterable[tuple[str, KernelTotal]], calls: Iterable[tuple[str, ApiTotal]], *, shown: int = 20
) -> Document:
    """Kernels of the whole capture, and the window's devices and host; (rank, total) pairs in."""
    kernels = kernel_table(totals, communication(job.reading.preset.communication), shown)
    blocks = (kernels, *window_tables(job, calls, shown), *notes(job))
    return Document(title="Summary", subtitle=window_text(job.ranks), blocks=blocks)


def kernel_table(totals: Iterable[tuple[str, KernelTotal]], talks: re.Pattern[str], shown: int) -> Table:
    """Kernels by total time; (rank, total) pairs in."""
    listed = sorted(totals, key=lambda pair: -pair[1].total_ns)
    whole = sum(total.total_ns for _, total in listed) or 1
    columns = (c.text("rank"), c.text("kernel"), c.text("class"), c.count("count"), c.ns("total_ns"), c.part("share"),
               c.time("mean"), c.time("min"), c.time("max"))  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (rank, t.name, "communication" if talks.search(t.name) else "compute", t.count, t.total_ns,
         t.total_ns / whole, t.total_ns / t.count, t.least_ns, t.most_ns)
        for rank, t in listed
    ]  # fmt: skip
    return Table(title="Kernels of the whole capture", columns=columns, rows=tuple(rows), limit=shown)


def window_tables(job: Job, calls: Iterable[tuple[str, ApiTotal]], shown: int) -> tuple[Table, ...]:
    """Each device's use of its window, and the host's calls in it."""
    uses = Table(
        title="Device in the window: parts that sum to it",
        columns=(c.text("rank"), c.ns("window_ns"), c.part("computation"), c.part("exposed_comm"),
                 c.part("exposed_copies"), c.part("idle"), c.part("launch_share")),
        rows=tuple(
            (r.rank.name, t.window_ns, t.computation_ns / w, t.exposed_comm_ns / w, t.exposed_copies_ns / w,
             t.idle_ns / w, _launching(r.api) / w if r.api else None)
            for r in job.ranks
            for t in (r.time,)
            for w in (max(t.window_ns, 1),)
        ),
        note="launch_share: time the host spends launching, over the window, summed over threads",
    )  # fmt: skip
    listed = sorted(calls, key=lambda pair: -pair[1].total_ns)
    host = Table(
        title="Host calls in the window",
        columns=(c.text("rank"), c.text("call"), c.count("count"), c.ns("total_ns")),
        rows=tuple((rank, row.name, row.count, row.total_ns) for rank, row in listed),
        limit=shown,
    )
    return (uses, host) if listed else (uses,)


def _launching(api: Iterable[ApiTotal]) -> int:
    return sum(row.total_ns for row in api if is_launch(row.name))
