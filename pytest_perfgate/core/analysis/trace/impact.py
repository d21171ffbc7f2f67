"""What reaching a share of the roof would gain end to end, as a range and never as one number."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_perfgate.core.analysis.roofline import place
from pytest_perfgate.core.analysis.trace.operators import OperatorRow
from pytest_perfgate.core.analysis.trace.tables import shapes
from pytest_perfgate.model.device import Roof
from pytest_perfgate.model.document import Column, Table
from pytest_perfgate.model.quantity import Dimension, Interval
from pytest_perfgate.model.values import value

TARGETS = (0.2, 0.5, 0.8)


@value
class Impact:
    """One operator at its present fraction of the roof, and the gains at each target above it."""

    row: OperatorRow
    fraction: float
    gains: tuple[tuple[float, float, float], ...]
    """(target, time then, end-to-end gain)."""

    @property
    def interval(self) -> Interval | None:
        return Interval(low=self.gains[0][2], high=self.gains[-1][2], confidence=0.0) if self.gains else None


def impact(row: OperatorRow, roof: Roof | None, total_ns: float) -> Impact | None:
    """Gains of one operator over a window of ``total_ns``; ``None`` without a model or a roof."""
    if row.work is None or roof is None or total_ns <= 0:
        return None
    fraction = place(row.work, row.total / row.count, roof).fraction
    if fraction is None or fraction <= 0:
        return None
    gains = []
    for target in TARGETS:
        if target > fraction:
            then = row.total * fraction / target
            gains.append((target, then, (row.total - then) / total_ns))
    return Impact(row=row, fraction=fraction, gains=tuple(gains))


def impact_table(impacts: Sequence[Impact]) -> Table:
    """One line for each target of each operator."""
    rows = tuple(
        (i.row.name, shapes(i.row), i.row.total, i.fraction, f"{target:.0%}", then, gain)
        for i in impacts
        for target, then, gain in i.gains
    )
    return Table(
        columns=(
            Column(name="operator"),
            Column(name="shapes"),
            Column(name="GPU time", dimension=Dimension.TIME),
            Column(name="of the roof", dimension=Dimension.FRACTION),
            Column(name="if it reached"),
            Column(name="time then", dimension=Dimension.TIME),
            Column(name="end-to-end gain, at most", dimension=Dimension.FRACTION),
        ),
        rows=rows,
        note="A gain assumes that the saved time lies on the critical path.",
    )
