"""Two jobs side by side, in neutral words."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_perfgate.core.analysis.nsys.compare import Comparison, Pair
from pytest_perfgate.core.analysis.nsys.metrics import figures
from pytest_perfgate.core.analysis.nsys.prose import window_text
from pytest_perfgate.core.analysis.nsys.views import columns as c
from pytest_perfgate.core.render.quantity import quantity, signed
from pytest_perfgate.model.document import Block, Bullets, Cell, Column, Document, Paragraph, Table
from pytest_perfgate.model.nsys_job import Job, OverlapRow
from pytest_perfgate.model.quantity import Dimension

_SHOWN = 20
_ABSENT = "-"


def difference(found: Comparison, before: Job, after: Job) -> Document:
    """The whole in sentences, then ranks, stages with their overlap, and kernels."""
    tables = (
        _table("Ranks", found.ranks, "rank", found.step.name),
        _overlaps(before, after),
        _table("Stages: all that each launched, by union", found.stages, "stage"),
        _table("Kernels", found.kernels, "kernel", limit=_SHOWN),
    )
    windows = Bullets(items=(f"before: {window_text(before.ranks)}", f"after: {window_text(after.ranks)}"))
    blocks: list[Block] = [Paragraph(text=sentences(found)), windows]
    blocks += [table for table in tables if table.rows]
    return Document(title="Before and after", blocks=tuple(blocks))


def sentences(found: Comparison) -> str:
    """What a person waits for, what runs, what communicates, and the greatest difference."""
    said = [f"The {found.step.name} of a rank went {_change(found.step)}; time in kernels went {_change(found.total)}."]
    if found.communication.before_ns or found.communication.after_ns:
        alone = f", all of it {found.talkers[0]}" if len(found.talkers) == 1 else ""
        said.append(f"Communication went {_change(found.communication)}{alone}.")
    if found.kernels:
        top = found.kernels[0]
        said.append(f"The greatest difference is {top.name} on rank {top.rank}: {_change(top)}.")
    if not found.anchored:
        said.append("The windows are whole captures: they compare only if both did the same work.")
    return " ".join(said)


def _change(pair: Pair) -> str:
    if pair.before_ns is None or pair.after_ns is None:
        side = "after" if pair.before_ns is None else "before"
        return f"{quantity(pair.after_ns or pair.before_ns, Dimension.TIME)}, only {side}"
    old, new = (quantity(amount, Dimension.TIME) for amount in (pair.before_ns, pair.after_ns))
    share = f" ({signed(pair.slowdown)})" if pair.slowdown is not None else ""
    return f"from {old}{_launches(pair.before_count)} to {new}{_launches(pair.after_count)}{share}"


def _launches(count: int) -> str:
    return f" in {count:,} kernel{'s' if count != 1 else ''}" if count else ""


def _table(title: str, pairs: Iterable[Pair], what: str, how: str = "", limit: int = 0) -> Table:
    named = [c.text("rank")] + ([c.text(what)] if what != "rank" else [])
    columns = [*named, c.count("count before"), c.count("count after"), *_sides()]
    rows = []
    for pair in pairs:
        names: tuple[Cell, ...] = (pair.rank,) if what == "rank" else (pair.rank, pair.name)
        old, new, slower = (
            _ABSENT if side is None else side for side in (pair.before_ns, pair.after_ns, pair.slowdown)
        )
        sides: tuple[Cell, ...] = (old, new, pair.difference, slower)
        rows.append((*names, pair.before_count, pair.after_count, *sides))
    if what == "rank":
        columns = [*named, *_sides()]
        rows = [(row[0], *row[3:]) for row in rows]
    note = f"{_ABSENT}: not on that side" if any(_ABSENT in row for row in rows) else ""
    return Table(
        title=f"{title} ({how})" if how else title, note=note, columns=tuple(columns), rows=tuple(rows), limit=limit
    )


def _sides() -> tuple[Column, ...]:
    return (c.ns("before_ns"), c.ns("after_ns"), c.ns("difference_ns"), c.part("slowdown"))


def _overlaps(before: Job, after: Job) -> Table:
    """Exposed communication and overlap per rank and stage, both sides in one row."""
    sides = [
        {
            (r.rank.name, _name(row)): figures(row, original=job.reading.original)
            for r in job.ranks
            for row in r.overlaps
        }
        for job in (before, after)
    ]
    rows: list[tuple[Cell, ...]] = []
    for key in dict.fromkeys([*sides[0], *sides[1]]):
        (old, bare), (new, now) = (side.get(key, (None, None)) for side in sides)
        rows.append((*key, bare, now, old, new))
    columns = (c.text("rank"), c.text("stage"), c.ns("exposed before_ns"), c.ns("exposed after_ns"),
               c.part("overlap before"), c.part("overlap after"))  # fmt: skip
    return Table(title="Overlap", columns=columns, rows=tuple(rows))


def _name(row: OverlapRow) -> str:
    return f"({row.stage})" if row.outside else row.stage
