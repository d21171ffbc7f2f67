"""What a report holds operators against: the peaks, and where they are from."""

from __future__ import annotations

from pytest_perfgate.core.render.quantity import ABSENT, quantity
from pytest_perfgate.model.device import Roof
from pytest_perfgate.model.document import Column, Table
from pytest_perfgate.model.quantity import Dimension


def hardware_table(**roofs: Roof | None) -> Table:
    """One column a device: its name and source, bandwidth, and peak of each element type."""
    dtypes = dict.fromkeys(dtype for roof in roofs.values() if roof for dtype, _ in roof.compute)
    rows = [("peaks", *(roof.note if roof else "not known" for roof in roofs.values()))]
    rows.append(("memory bandwidth", *(_shown(roof.bandwidth if roof else None) for roof in roofs.values())))
    rows += [(dtype, *(_peak(roof, dtype) for roof in roofs.values())) for dtype in dtypes]
    return Table(columns=(Column(name="hardware"), *(Column(name=name) for name in roofs)), rows=tuple(rows))


def _shown(bandwidth: float | None) -> str:
    return quantity(bandwidth, Dimension.BANDWIDTH) if bandwidth else ABSENT


def _peak(roof: Roof | None, dtype: str) -> str:
    rates = dict(roof.compute) if roof else {}
    return quantity(rates[dtype], Dimension.FLOPS) if dtype in rates else ABSENT
