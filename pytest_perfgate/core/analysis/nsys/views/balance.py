"""The balance view: compute per part of the mesh, per rank and per stage."""

from __future__ import annotations

from pytest_perfgate.core.analysis.nsys.balance import balances
from pytest_perfgate.core.analysis.nsys.prose import window_text
from pytest_perfgate.core.analysis.nsys.views import columns as c
from pytest_perfgate.model.document import Document, Table
from pytest_perfgate.model.nsys_job import Job


def balance(job: Job) -> Document:
    """How much more than the mean the busiest part computes."""
    found = balances(job.ranks)
    excess = Table(
        columns=(c.text("over"), c.part("balance"), c.count("parts")),
        rows=tuple((b.over, b.excess, len(b.parts)) for b in found),
        note="balance: the busiest part's compute over the mean of the parts, minus one" if found
        else "one part alone: there is nothing to balance",
    )  # fmt: skip
    parts = Table(
        columns=(c.text("over"), c.text("part"), c.ns("compute_ns"), c.count("ranks")),
        rows=tuple((b.over, name, amount, ranks) for b in found for name, amount, ranks in b.parts),
    )
    stages = Table(
        title="Compute per rank and stage",
        columns=(c.text("rank"), c.text("stage"), c.ns("compute_ns"), c.part("of its compute")),
        rows=tuple(
            (r.rank.name, stage, amount, amount / r.time.computation_ns)
            for r in job.ranks
            for stage, amount in r.compute
        ),
    )  # fmt: skip
    tables = tuple(table for table in (excess, parts, stages) if table.rows or table.note)
    return Document(title="Balance", subtitle=window_text(job.ranks), blocks=tables)
