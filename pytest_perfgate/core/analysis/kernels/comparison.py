"""Two profiles of the same kernels: what moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis
from pytest_perfgate.core.render.quantity import quantity, signed
from pytest_perfgate.model.document import Block, Bullets, Cell, Column, Document, Section, Table
from pytest_perfgate.model.metric import Metric, labels
from pytest_perfgate.model.quantity import Dimension

SHOWN = (
    ("duration", Dimension.TIME), ("tc_util", Dimension.FRACTION), ("dram", Dimension.FRACTION),
    ("sm", Dimension.FRACTION), ("occupancy", Dimension.FRACTION), ("l2_hit", Dimension.FRACTION),
    ("registers", Dimension.COUNT), ("spills", Dimension.BYTES), ("smem", Dimension.BYTES), ("waves", Dimension.PLAIN),
)  # fmt: skip


def paired(before: Sequence[Diagnosis], after: Sequence[Diagnosis]) -> list[tuple[Diagnosis, Diagnosis]]:
    """Launches of one name in their order; what has no partner is left out and shown as such."""
    there: dict[str, list[Diagnosis]] = {}
    for d in after:
        there.setdefault(d.name, []).append(d)
    return [(d, there[d.name].pop(0)) for d in before if there.get(d.name)]


def slowdowns(before: Sequence[Diagnosis], after: Sequence[Diagnosis]) -> Iterator[Metric]:
    """Time against time of each pair, minus one."""
    for old, new in paired(before, after):
        then, now = old.numbers.get("duration"), new.numbers.get("duration")
        if then and now:
            yield Metric(
                name="slowdown", value=now / then - 1, dimension=Dimension.FRACTION, labels=labels(kernel=new.name)
            )


def counters_compared(before: Sequence[Diagnosis], after: Sequence[Diagnosis], subject: str) -> Document:
    """A table for each pair, and the kernels that appeared or left."""
    pairs = paired(before, after)
    blocks: list[Block] = [Section(title=new.name, blocks=(moved_table(old, new),)) for old, new in pairs]
    gone = [d.name for d in before if all(d is not old for old, _ in pairs)]
    come = [d.name for d in after if all(d is not new for _, new in pairs)]
    for title, names in (("Only in the first", gone), ("Only in the second", come)):
        if names:
            blocks.append(Section(title=title, blocks=(Bullets(items=tuple(names)),)))
    return Document(title=f"Kernels compared: {subject}", blocks=tuple(blocks))


def moved_table(old: Diagnosis, new: Diagnosis) -> Table:
    """Metric, before, after, change: every row has a dimension of its own, so cells are text."""
    rows: list[tuple[Cell, ...]] = []
    for name, dimension in SHOWN:
        then, now = old.numbers.get(name), new.numbers.get(name)
        if then is None and now is None:
            continue
        change = signed(now / then - 1) if then and now is not None else "--"
        rows.append((name, quantity(then, dimension), quantity(now, dimension), change))
    rows.append(("class", old.classification.bottleneck.value, new.classification.bottleneck.value, ""))
    return Table(
        columns=tuple(Column(name=name) for name in ("Metric", "Previous", "Current", "Change")), rows=tuple(rows)
    )
