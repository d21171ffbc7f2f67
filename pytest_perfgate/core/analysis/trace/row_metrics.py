"""Figures of single rows: argument sets, kernels by launcher and stream, modules, passes, what a roof would give."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from pytest_perfgate.core.analysis.trace import tables
from pytest_perfgate.core.analysis.trace.backward import passes, passes_table
from pytest_perfgate.core.analysis.trace.figures import table_metrics, told_apart
from pytest_perfgate.core.analysis.trace.fusion import fusion_candidates, fusion_table
from pytest_perfgate.core.analysis.trace.impact import impact, impact_table
from pytest_perfgate.core.analysis.trace.kernels import KernelRow
from pytest_perfgate.core.analysis.trace.metrics import rates
from pytest_perfgate.core.analysis.trace.operators import OperatorRow
from pytest_perfgate.core.analysis.trace.survey import Survey
from pytest_perfgate.model.device import Roof
from pytest_perfgate.model.metric import Labels, Metric, MetricSet, labels

_RATES = ("calls", "GPU time", "intensity", "rate", "bandwidth", "of the roof")
"""Columns of the roofline whose metrics are made with the note that says which roof was used, or stand elsewhere."""


def row_metrics(
    seen: Survey,
    rows: Sequence[OperatorRow],
    kernels: Sequence[KernelRow],
    roof: Roof | None,
    scopes: Sequence[Labels],
    most: int,
) -> MetricSet:
    """What every row of every table of one trace says; the longest rows, where there are more than ``most`` figures."""
    apart = told_apart(rows)
    made = chain(
        table_metrics("arguments", tables.argument_table(rows), apart, scopes, most),
        table_metrics("roofline", tables.roofline_table(rows, roof), apart, scopes, most, _RATES),
        _rated(rows, apart, roof, scopes, most),
        _kernels(seen, kernels, scopes, most),
        _modules(seen, scopes, most),
    )
    return MetricSet(metrics=tuple(made))


def _rated(
    rows: Sequence[OperatorRow], apart: Sequence[Labels], roof: Roof | None, scopes: Sequence[Labels], most: int
) -> Iterator[Metric]:
    for row, where in list(zip(rows, apart))[: most // (8 * len(scopes))]:
        for scope in scopes:
            yield from rates([row], roof, tuple(sorted((*scope, *where))))


def impact_metrics(
    rows: Sequence[OperatorRow], top: int, roof: Roof | None, total: float, scopes: Sequence[Labels]
) -> MetricSet:
    """What the operators on top would gain at each share of their roof."""
    named = list(zip(rows[:top], told_apart(rows)))
    found = [(made, where) for row, where in named if (made := impact(row, roof, total)) is not None]
    where = [tuple(sorted((*w, ("target", f"{t:.0%}")))) for made, w in found for t, _, _ in made.gains]
    table = impact_table([made for made, _ in found])
    known = ("GPU time", "of the roof")
    return MetricSet(metrics=tuple(table_metrics("impact", table, where, scopes, 10**6, known)))


def _kernels(seen: Survey, rows: Sequence[KernelRow], scopes: Sequence[Labels], most: int) -> Iterator[Metric]:
    if seen.on_host:
        return
    several = len(np.unique(seen.device)) > 1
    where = [
        labels(kernel=row.name, launcher=row.launcher, stream=row.stream, **({"gpu": row.device} if several else {}))
        for row in rows
    ]
    yield from table_metrics("kernels", tables.kernel_table(rows), where, scopes, most)


def _modules(seen: Survey, scopes: Sequence[Labels], most: int) -> Iterator[Metric]:
    """Modules and passes, where the trace has stacks or sequence numbers at all."""
    if any(name.startswith("nn.Module: ") for name in seen.trace.names):
        found = fusion_candidates(seen)
        where = [labels(module=one.module) for one in found]
        yield from table_metrics("fusion", fusion_table(found), where, scopes, most)
    if len(seen.trace) and int(seen.trace.sequence.max()) >= 0:
        both = passes(seen)
        yield from table_metrics("backward", passes_table(both), [labels(op=one.name) for one in both], scopes, most)
