"""The figures of each view, and the metrics by which limits name them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from pytest_perfgate.core.analysis import intervals
from pytest_perfgate.core.analysis.trace import tables
from pytest_perfgate.core.analysis.trace.metrics import IMPOSSIBLE, rated_kernels, rates
from pytest_perfgate.core.analysis.trace.passes import fusion_candidates, fusion_table, passes, passes_table
from pytest_perfgate.core.analysis.trace.tables import listed, scalars
from pytest_perfgate.model.metric import Absent, Labels, Metric, MetricSet, Table, labels
from pytest_perfgate.model.values import value

if TYPE_CHECKING:
    from pytest_perfgate.core.analysis.trace.operators import KernelRow, OperatorRow
    from pytest_perfgate.core.analysis.trace.survey import Survey
    from pytest_perfgate.model.device import Roof


@value
class ViewFigure:
    """A column, or a row, of a view and its metric."""

    view: str
    shown: str
    metric: str
    scopes: str = ""


def _all(view: str, scopes: str, **named: str) -> tuple[ViewFigure, ...]:
    """Return figures of one view: the metric of each column, with underscores for spaces."""
    return tuple(ViewFigure(view=view, shown=k.replace("_", " "), metric=m, scopes=scopes) for k, m in named.items())


_STATS = {"mean": "mean", "median": "median", "deviation": "std", "min": "min", "max": "max"}

_ARGUMENTS, _KERNEL = "op, shapes, types, strides, scalars", "kernel, launcher, stream"

_LINE = {
    "computation": "computation_time",
    "exposed_communication": "exposed_comm",
    "exposed_copies": "exposed_memcpy",
    "exposed_memory_sets": "exposed_memset",
    "idle,_in_short_gaps": "idle_micro",
    "idle,_in_longer_gaps": "idle_macro",
    "total": "total_time",
    "all_communication": "communication_time",
    "all_copies": "memcpy_time",
}

_SHARE = {
    "computation": "computation",
    "exposed_communication": "exposed_share",
    "exposed_copies": "exposed_memcpy_share",
    "exposed_memory_sets": "exposed_memset_share",
    "idle,_in_short_gaps": "idle_micro_share",
    "idle,_in_longer_gaps": "idle_macro_share",
    "all_communication": "communication",
    "all_copies": "memcpy_share",
}

_RANKED = {
    "window": "total_time",
    "computation": "computation",
    "exposed_communication": "exposed_share",
    "exposed_copies": "exposed_memcpy_share",
    "idle": "idle",
    "overlap": "overlap",
    "communication": "communication_time",
}

_SHARED = {
    "instances": "comm_count",
    "ranks": "comm_ranks",
    "latency": "comm_latency",
    "largest_skew": "comm_skew",
    "bytes": "comm_bytes",
    "algorithm": "alg_bandwidth",
    "bus": "bus_bandwidth",
    "transfer_and_waiting": "comm_time",
}

_SIDES = {
    "calls,_reference": "compared_calls",
    "calls,_target": "compared_calls",
    "reference": "compared_time",
    "target": "compared_time",
    "difference": "difference",
    "relative": "slowdown",
    "expected": "expected_slowdown",
}

FIGURES: tuple[ViewFigure, ...] = (
    *_all("timeline", "rank, gpu, step", **_LINE),
    *_all("timeline", "rank, gpu, step", **{f"{name},_of_the_window": metric for name, metric in _SHARE.items()}),
    *_all("steps", "step, rank, gpu", **_RANKED),
    *_all("categories", "category", GPU_time="op_time", share="op_share", calls="op_count"),
    *_all("ops", "op", GPU_time="op_time", share="op_share", running="op_running", calls="op_count"),
    *_all("ops", "op", mean="op_mean", argument_sets="op_variants"),
    *_all("arguments", _ARGUMENTS, calls="op_count", total="op_time", share="op_share", kernels_a_call="op_kernels"),
    *_all("arguments", _ARGUMENTS, **{shown: f"op_{name}" for shown, name in _STATS.items()}),
    *_all("kernels", _KERNEL, count="kernel_count", total="kernel_time", share="kernel_share"),
    *_all("kernels", _KERNEL, **{shown: f"kernel_{name}" for shown, name in _STATS.items()}),
    *_all("kernels", _KERNEL, rate="tflops", bandwidth="bandwidth", of_the_roof="sol_datasheet"),
    *_all("roofline", _ARGUMENTS, calls="op_count", GPU_time="op_time", work="op_flops", bytes="op_bytes"),
    *_all("roofline", _ARGUMENTS, intensity="intensity", rate="tflops", bandwidth="bandwidth"),
    *_all("roofline", _ARGUMENTS, of_the_roof="sol_datasheet"),
    *_all("impact", _ARGUMENTS, GPU_time="op_time", of_the_roof="sol_datasheet"),
    *_all("impact", f"{_ARGUMENTS}, target", **{"time_then": "time_then", "end-to-end_gain,_at_most": "gain"}),
    *_all("fusion", "module", instances="module_count", kernels_each="module_kernels"),
    *_all("fusion", "module", **{"GPU_time,_all_instances": "module_time", "mean_kernel": "module_kernel_mean"}),
    *_all("fusion", "module", **{"saving,_at_most": "module_saving"}),
    *_all("backward", "op", calls="forward_calls", with_a_backward_pass="backward_calls"),  # noqa: S106
    *_all("backward", "op", forward_GPU_time="forward_time", backward_GPU_time="backward_time"),
    *_all("backward", "op", **{"backward_/_forward": "backward_ratio"}),
    *_all("selection", _ARGUMENTS, calls="op_count", GPU_time="op_time"),
    *_all("ranks", "rank", waits_for_others="comm_wait", by_starts="start_wait"),
    *_all("ranks", "collective", **_SHARED),
    *_all("report of many ranks", "rank, gpu", **_RANKED),
    *_all("report of many ranks", "rank", coverage="coverage"),
    *_all("compare: ops, arguments, categories, kernels", "op, shapes, category, kernel, side", **_SIDES),
    *_all("compare: where the time went", "part, side", reference="compared_time", target="compared_time"),
    *_all("compare: where the time went", "part", difference="difference", relative="slowdown"),
    *_all("compare: tree", "", operators="tree_edits"),
)
"""Each numeric column of each view; a view that repeats another's table has that table's metrics."""


def metric_of(view: str) -> Mapping[str, str]:
    return {figure.shown: figure.metric for figure in FIGURES if figure.view == view}


_ROWS = ("arguments", "kernels", "roofline", "impact", "fusion", "backward")

_WHOLE = {figure.metric for figure in FIGURES if figure.view in {"timeline", "steps", "categories", "ops"}}

_OF_ROWS = {figure.metric for figure in FIGURES if figure.view in _ROWS} - _WHOLE

_SCOPES = {"shapes", "types", "strides", "scalars", "launcher", "module", "target"}


def names_rows(limits: str) -> bool:
    """Return whether these limits need figures of single rows, which a record keeps only then."""
    return bool(set(re.findall(r"\w+", limits)) & (_OF_ROWS | _SCOPES))


_ROW_RATES = ("calls", "GPU time", "intensity", "rate", "bandwidth", "of the roof")
"""Columns of the roofline whose metrics are made elsewhere, with a note on the roof."""


def row_metrics(
    survey: Survey,
    rows: Sequence[OperatorRow],
    kernels: Sequence[KernelRow],
    roof: Roof | None,
    scopes: Sequence[Labels],
    most: int,
) -> MetricSet:
    """Return the figures of every row of every table of a trace; above ``most``, those of the longest rows."""
    row_labels = distinct_labels(rows)
    metrics = chain(
        table_metrics("arguments", tables.argument_table(rows), row_labels, scopes, most),
        table_metrics("roofline", tables.roofline_table(rows, roof), row_labels, scopes, most, _ROW_RATES),
        _rated(rows, row_labels, roof, scopes, most),
    )
    of_kernels = MetricSet() if survey.on_host else _kernels(survey, rows, kernels, roof, scopes, most)
    return MetricSet(metrics=tuple(metrics)) | of_kernels | MetricSet(metrics=tuple(_modules(survey, scopes, most)))


def _rated(
    rows: Sequence[OperatorRow], row_labels: Sequence[Labels], roof: Roof | None, scopes: Sequence[Labels], most: int
) -> Iterator[Metric]:
    for row, where in list(zip(rows, row_labels))[: most // (8 * len(scopes))]:
        for scope in scopes:
            yield from rates([row], roof, tuple(sorted((*scope, *where))))


_WHY = "more than the hardware can do: the peak or the work count is wrong"

_CHECK = "check --peak and --bandwidth, or --device"


def _kernels(
    survey: Survey,
    rows: Sequence[OperatorRow],
    kernels: Sequence[KernelRow],
    roof: Roof | None,
    scopes: Sequence[Labels],
    most: int,
) -> MetricSet:
    """Return the figures of kernels; a fraction of the roof that is impossible is absent with the reason."""
    several = len(intervals.distinct(survey.device)) > 1
    where = [
        labels(kernel=row.name, launcher=row.launcher, stream=row.stream, **({"gpu": row.device} if several else {}))
        for row in kernels
    ]
    sums = () if survey.has_kernels else ("kernel_time", "kernel_count")  # absent beside copies only: no row stands in
    every = table_metrics("kernels", tables.kernel_table(kernels), where, scopes, most)
    times = (metric for metric in every if metric.name not in sums)
    rated = rated_kernels(survey, rows, kernels, roof)
    rates_of = (
        replace(metric, note=roof.note) if roof and metric.name == "sol_datasheet" else metric
        for metric in table_metrics("kernels", rated, where, scopes, most, ("count", "total"))
    )
    absent = (
        Absent(name="sol_datasheet", labels=tuple(sorted((*scope, *of))), why=_WHY, fix=_CHECK, code="above-peak")
        for row, of in zip(rated.rows, where)
        if row[-1] == IMPOSSIBLE
        for scope in scopes
    )
    return MetricSet(metrics=(*times, *rates_of), absent=tuple(absent))


def _modules(survey: Survey, scopes: Sequence[Labels], most: int) -> Iterator[Metric]:
    """Yield modules and passes, if the trace has stacks or sequence numbers."""
    if any(name.startswith("nn.Module: ") for name in survey.trace.names):
        candidates = fusion_candidates(survey)
        where = [labels(module=one.module) for one in candidates]
        yield from table_metrics("fusion", fusion_table(candidates), where, scopes, most)
    if len(survey.trace) and int(survey.trace.sequence.max()) >= 0:
        both = passes(survey)
        yield from table_metrics("backward", passes_table(both), [labels(op=one.name) for one in both], scopes, most)


def table_metrics(
    view: str, table: Table, of: Sequence[Labels], scopes: Sequence[Labels], most: int, without: Sequence[str] = ()
) -> Iterator[Metric]:
    """Yield the figures of a view's table row by row; above ``most``, those of the first rows."""
    named = metric_of(view)
    columns = [
        (at, c, named[c.name]) for at, c in enumerate(table.columns) if c.name in named and c.name not in without
    ]
    rows = max(most // max(len(columns) * len(scopes), 1), 0)
    for row, where in zip(table.rows[:rows], of):
        for at, column, metric in columns:
            cell = row[at]
            if isinstance(cell, str) or cell is None:
                continue
            for scope in scopes:
                yield Metric(
                    name=metric,
                    value=float(cell),
                    dimension=column.dimension,
                    labels=tuple(sorted((*scope, *where))),
                    source="trace",
                )


def distinct_labels(rows: Sequence[OperatorRow]) -> list[Labels]:
    """Return labels of argument sets: operator, shapes, and further differences as needed."""
    scopes = [labels(op=row.name, shapes=row.call.shapes().replace("×", "x") or "none") for row in rows]
    for name, describe in _FURTHER.items():
        counts = Counter(scopes)
        scopes = [
            tuple(sorted((*where, (name, describe(row))))) if counts[where] > 1 else where
            for row, where in zip(rows, scopes)
        ]
    return scopes


_FURTHER: Mapping[str, Callable[[OperatorRow], str]] = {
    "types": lambda row: " ".join(row.call.types),
    "strides": lambda row: listed(row.call.strides),
    "scalars": scalars,
}
