"""Figures of a trace as metrics, and absent ones with the reason."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pytest_perfgate.core.analysis.roofline import BEYOND, GIVEN, above_every_peak, place
from pytest_perfgate.core.analysis.trace.operators import (
    KernelRow,
    OperatorRow,
    kernel_groups,
    recompute_share,
    sole_workers,
)
from pytest_perfgate.core.analysis.trace.survey import Survey, pooled, timelines, trace_metric
from pytest_perfgate.core.analysis.trace.tables import brief, kernel_table, roof_note
from pytest_perfgate.model.metric import Absent, Block, Cell, Column, Labels, Metric, MetricSet, Section, Table, labels
from pytest_perfgate.model.profiles import Category
from pytest_perfgate.model.values import Dimension, grouped

if TYPE_CHECKING:
    from pytest_perfgate.core.analysis.trace.timeline import Timeline
    from pytest_perfgate.model.device import Roof

_TIME, _PART, _COUNT = Dimension.TIME, Dimension.FRACTION, Dimension.COUNT

SHORT_NS = 10_000

_CHECK = "perfgate check TRACE LIMIT"

NO_GPU = "the trace has no GPU activity"

NO_WORK_HERE = "no GPU work lies in this window"

NO_OPERATOR_HERE = "no operator lies in this window"

NO_STACKS = "the trace has no Python stacks: profile with with_stack=True"

NO_COMMUNICATION = "no communication in this window"

_TIMES = (
    ("computation_time", "computation"),
    ("communication_time", "communication"),
    ("exposed_comm", "exposed_comm"),
    ("exposed_memcpy", "exposed_memcpy"),
    ("exposed_memset", "exposed_memset"),
    ("memcpy_time", "memcpy"),
    ("memset_time", "memset"),
    ("busy_time", "busy"),
    ("idle_time", "idle"),
    ("idle_micro", "idle_micro"),
    ("idle_macro", "idle_macro"),
    ("total_time", "total"),
)

_ON_HOST = ("computation_time", "busy_time", "idle_time", "idle_micro", "idle_macro", "total_time")
"""Metrics that a program without a GPU has too, with working operators in place of kernels."""

HOST_ONLY = "this program has no GPU: its operators run on the host"

ON_HOST = "profile it where its work runs on a GPU, or limit what a host has: idle, total_time, op_time, op_count"

SEVERAL = "several devices are in this trace, and each has a timeline of its own"

NAME_ONE = "name a device: gpu=0, or all of them: gpu=*"

WITH_GPU = "profile with ProfilerActivity.CUDA on a machine with a GPU, around work that reaches it"

_SHARES = (
    ("computation", "computation"),
    ("communication", "communication"),
    ("busy", "busy"),
    ("idle", "idle"),
    ("exposed_share", "exposed_comm"),
    ("exposed_memcpy_share", "exposed_memcpy"),
    ("exposed_memset_share", "exposed_memset"),
    ("memcpy_share", "memcpy"),
    ("idle_micro_share", "idle_micro"),
    ("idle_macro_share", "idle_macro"),
)

_SHARES_ON_HOST = ("computation", "busy", "idle", "idle_micro_share", "idle_macro_share")

_EACH = ("overlap_sum", "overlap_min", "overlap_max", "exposed_sum")

_NAMES = ("overlap", *_EACH, *dict(_TIMES), *dict(_SHARES), "coverage", "unread")

_OF_ONE = ("overlap", *_EACH, *dict(_TIMES), *dict(_SHARES))
"""Figures of a single device that have no sum over several."""

_KERNELS = ("kernel_time", "kernel_count", "short_kernels")

ONLY_COPIES = "no kernel ran here, only copies and fills"

OF_COPIES = "limit memcpy_time or memset_time, or profile work that starts kernels"


def scopes_of(rank: int | None) -> tuple[Labels, ...]:
    """Return the labels of a single trace's figures: none, and its rank."""
    return ((), labels(rank=rank)) if rank is not None else ((),)


def no_work(survey: Survey) -> tuple[str, str]:
    """Return why nothing ran on a device, and the fix."""
    here = NO_OPERATOR_HERE if survey.on_host else NO_WORK_HERE
    why, fix = (NO_GPU, WITH_GPU) if survey.window is None else (here, "name another with --set window=")
    return why + (f"; it may be in {survey.unknown_categories}" if survey.unknown_categories else ""), fix


def timeline_metrics(survey: Survey, scopes: Sequence[Labels]) -> MetricSet:
    """Return the breakdown by device; a single device's figures are also the trace's."""
    by_device = timelines(survey)
    if not by_device:
        names = (*_NAMES, *_KERNELS)
        why, fix = no_work(survey)
        missing = [Absent(name=name, labels=s, why=why, fix=fix) for name in names for s in scopes]
        return MetricSet(absent=tuple(missing))
    metrics: list[Metric] = []
    absent: list[Absent] = []
    whole = pooled(list(by_device.values()))
    for scope in scopes:
        if survey.on_host and whole:
            line_metrics, missing = _host_line(whole, scope)
            metrics += line_metrics
            absent += missing
            continue
        lines = [(_with(scope, gpu=device), line) for device, line in by_device.items()]
        if whole is None:
            absent += [Absent(name=name, labels=scope, why=SEVERAL, fix=NAME_ONE) for name in _OF_ONE]
        for where, line in [(scope, whole), *lines] if whole else lines:
            line_metrics, missing = _line(line, where)
            metrics += line_metrics
            absent += missing
        if survey.coverage is not None:
            metrics.append(trace_metric("coverage", survey.coverage, _PART, scope))
            metrics.append(trace_metric("unread", survey.unread, _PART, scope))
    return MetricSet(metrics=tuple(metrics), absent=tuple(absent))


def _line(line: Timeline, where: Labels) -> tuple[list[Metric], list[Absent]]:
    metrics = [trace_metric(name, getattr(line, field), _TIME, where) for name, field in _TIMES]
    metrics += [trace_metric(name, line.share(getattr(line, field)), _PART, where) for name, field in _SHARES]
    missing = []
    for name, dimension, figure in (
        ("overlap", _PART, line.overlap),
        ("overlap_sum", _PART, line.overlap_sum),
        ("overlap_min", _PART, line.least_covered),
        ("overlap_max", _PART, line.most_covered),
        ("exposed_sum", _TIME, line.exposed_sum if line.comm_sum else None),
    ):
        if figure is None:
            missing.append(Absent(name=name, labels=where, why=NO_COMMUNICATION))
        else:
            metrics.append(trace_metric(name, figure, dimension, where))
    return metrics, missing


def _host_line(line: Timeline, where: Labels) -> tuple[list[Metric], list[Absent]]:
    """Return the figures that need no device, and the others as absent instead of zero."""
    metrics = [m for m in _line(line, where)[0] if m.name in (*_ON_HOST, *_SHARES_ON_HOST)]
    names = {metric.name for metric in metrics}
    missing = [name for name in (*_NAMES, *_KERNELS) if name not in names]
    return metrics, [Absent(name=name, labels=where, why=HOST_ONLY, fix=ON_HOST) for name in missing]


def step_metrics(parts: Sequence[Survey], scopes: Sequence[Labels]) -> MetricSet:
    """Return the breakdown of each step."""
    collected = MetricSet()
    metrics: list[Metric] = []
    absent: list[Absent] = []
    for part in parts:
        if part.window is None:
            continue
        inner = [_with(scope, step=part.window.step) for scope in scopes]
        of_step = timeline_metrics(part, inner)
        metrics += of_step.metrics
        absent += of_step.absent
        metrics += [trace_metric("step_time", part.window.end - part.window.start, _TIME, scope) for scope in inner]
    return collected | MetricSet(metrics=tuple(metrics), absent=tuple(absent))


def operator_metrics(
    rows: Sequence[OperatorRow], roof: Roof | None, scopes: Sequence[Labels], *, on_host: bool
) -> MetricSet:
    """Return time, count, rates and fractions by operator and category; without a model, absent with the reason."""
    if not rows:
        return MetricSet()
    metrics = MetricSet()
    for scope in scopes:
        metrics |= _operators(rows, roof, scope)
    if roof is None:
        why, fix = "no peaks are known for this trace's device", f"{_CHECK} --device NAME, or --peak bf16=989TFLOPS"
        if on_host:
            why, fix = "a trace does not say the host's peaks", f"{_CHECK} --peak fp32=1TFLOPS --bandwidth 100GB/s"
        names: tuple[str, ...] = ("mfu", "mfu_datasheet", "sol", "sol_datasheet")
    else:
        why, names = "a trace does not record the clock", ("mfu", "sol")
        fix = f"limit mfu_datasheet or sol_datasheet, or give the peaks: {_CHECK} --peak bf16=989TFLOPS"
    return metrics | MetricSet(absent=tuple(Absent(name=name, why=why, fix=fix) for name in names))


def _operators(rows: Sequence[OperatorRow], roof: Roof | None, scope: Labels) -> MetricSet:
    by_name, by_category = grouped(rows, lambda row: row.name), grouped(rows, lambda row: row.category)
    shaped = any(row.call.recorded for row in rows)
    everything = sum(row.total for row in rows) or 1.0
    made: list[Metric] = []
    unknown = Absent(name="op_variants", why="the trace has no shapes", fix="profile with record_shapes=True")
    missing = [] if shaped else [unknown]
    for key, table in (("op", by_name), ("category", by_category)):
        running = 0.0
        for name, group in sorted(table.items(), key=lambda item: (-sum(row.total for row in item[1]), item[0])):
            where = _with(scope, **{key: name})
            spent, count = sum(row.total for row in group), sum(row.count for row in group)
            running += spent / everything
            made += [trace_metric("op_time", spent, _TIME, where), trace_metric("op_count", count, _COUNT, where)]
            made.append(trace_metric("op_share", spent / everything, _PART, where))
            if key == "op":
                made.append(trace_metric("op_mean", spent / count, _TIME, where))
                if shaped:
                    made.append(trace_metric("op_variants", len(group), _COUNT, where))
                made.append(trace_metric("op_running", min(1.0, running), _PART, where))
            metrics = list(rates(group, roof, where))
            made += metrics
            missing += _absent_rates(group, {rate.name for rate in metrics}, where)
    modelled = [row for row in rows if row.work is not None]
    made.append(trace_metric("modelled", sum(row.total for row in modelled) / everything, _PART, scope))
    return MetricSet(metrics=tuple(made), absent=tuple(missing))


def _absent_rates(group: Sequence[OperatorRow], have: set[str], where: Labels) -> Iterator[Absent]:
    """Yield the rates that an operator lacks, with the reason."""
    why = next((row.why or (row.work.note if row.work else "") for row in group), "") or "its work is not known"
    for name in ("tflops", "bandwidth", "intensity"):
        if name not in have:
            yield Absent(name=name, labels=where, why=why)


def rates(group: Sequence[OperatorRow], roof: Roof | None, where: Labels) -> Iterator[Metric]:
    """Yield rates of the calls with known work, over their time only."""
    known = [row for row in group if row.work is not None and row.total > 0]
    partly = _partly(group, known)
    notes = [row.work.note for row in known if row.work and "lower bound" in row.work.note]
    bounds = "; ".join(dict.fromkeys(filter(None, (*notes, partly))))
    counted, flops, spent = _summed(known, "flops")
    if spent:
        yield trace_metric("tflops", flops / spent * 1e9, Dimension.FLOPS, where, bounds)
    _, moved, spent = _summed(known, "bytes")
    if spent:
        yield trace_metric("bandwidth", moved / spent * 1e9, Dimension.BANDWIDTH, where, partly)
    counted, moved, _ = _summed(counted, "bytes")
    if moved:
        yield trace_metric("intensity", _summed(counted, "flops")[1] / moved, Dimension.INTENSITY, where, bounds)
    if roof is None:
        return
    is_given = roof.note.startswith(GIVEN)
    for name, part in (("mfu", "compute"), ("sol", "claimed")):
        fraction = mean_fraction(known, roof, part)
        if fraction is not None:
            note = "; ".join(filter(None, (roof.note, bounds)))
            yield trace_metric(f"{name}_datasheet", fraction, _PART, where, note)
            if is_given:
                yield trace_metric(name, fraction, _PART, where, note)


def _partly(group: Sequence[OperatorRow], known: Sequence[OperatorRow]) -> str:
    """Return which part of a group the rates cover, if not all of it."""
    spent, total = sum(row.total for row in known), sum(row.total for row in group)
    return f"of the {spent / total * 100:.1f} % of its time that has a work model" if 0 < spent < 0.9995 * total else ""


def _summed(rows: Sequence[OperatorRow], part: str) -> tuple[list[OperatorRow], float, float]:
    """Return the rows with this part of work, its sum over all calls, and their time."""
    known = [row for row in rows if getattr(row.work, part) is not None]
    return known, sum(getattr(row.work, part) * row.count for row in known), sum(row.total for row in known)


def mean_fraction(rows: Sequence[OperatorRow], roof: Roof, part: str) -> float | None:
    """Return the mean fraction of a roof, weighted by time, of rows that have one; ``None`` if none has."""
    spent = reached = 0.0
    for row in rows:
        fraction = getattr(row.placement(roof), part, None)
        if fraction is not None:
            spent += row.total
            reached += fraction * row.total
    return reached / spent if spent else None


def kernel_metrics(rows: Sequence[KernelRow], survey: Survey, scopes: Sequence[Labels]) -> MetricSet:
    """Return time and count by name, and the share of short kernels; absent if only copies and fills ran."""
    spent: dict[str, float] = defaultdict(float)
    count: dict[str, int] = defaultdict(int)
    for row in rows:
        spent[row.name] += row.total
        count[row.name] += row.count
    kernel = survey.trace.category[survey.rows] == Category.KERNEL
    lengths = (survey.end - survey.start)[kernel]
    recomputed = recompute_share(survey)
    metrics: list[Metric] = []
    absent: list[Absent] = []
    for scope in scopes:
        if recomputed is not None:
            metrics.append(trace_metric("recompute", recomputed, _PART, scope))
        else:
            absent.append(Absent(name="recompute", labels=scope, why=NO_STACKS))
        if survey.on_host:
            continue
        if len(kernel) and not len(lengths):
            absent += [Absent(name=name, labels=scope, why=ONLY_COPIES, fix=OF_COPIES) for name in _KERNELS]
            continue
        metrics += [trace_metric("kernel_time", t, _TIME, _with(scope, kernel=name)) for name, t in spent.items()]
        metrics += [trace_metric("kernel_count", n, _COUNT, _with(scope, kernel=name)) for name, n in count.items()]
        if len(lengths):
            metrics.append(trace_metric("kernel_time", float(lengths.sum()), _TIME, scope))
            metrics.append(trace_metric("kernel_count", len(lengths), _COUNT, scope))
            metrics.append(trace_metric("short_kernels", float(np.mean(lengths < SHORT_NS)), _PART, scope))
    return MetricSet(metrics=tuple(metrics), absent=tuple(absent))


def kernel_block(survey: Survey, rows: Sequence[OperatorRow], kernels: Sequence[KernelRow], roof: Roof | None) -> Block:
    """Return the times of kernels, and their rates where work is known."""
    if survey.on_host:
        return replace(kernel_table(()), note="A program without a GPU has no kernels: --view ops has its operators.")
    times, rated = kernel_table(kernels), rated_kernels(survey, rows, kernels, roof)
    return Section(title="Times and rates", blocks=(times, rated)) if rated.rows else times


def rated_kernels(
    survey: Survey, rows: Sequence[OperatorRow], kernels: Sequence[KernelRow], roof: Roof | None
) -> Table:
    """Return the rates of kernels that alone do the work of their calls; the others say why they have none."""
    table = brief(kernel_table(kernels), "kind", "mean", "median", "deviation", "min", "max", "share")
    columns = (
        *table.columns,
        *Column.header("rate: flops | bandwidth: bandwidth | of the roof: fraction | why there is no rate"),
    )
    known = any(row.work for row in rows) and not survey.on_host
    cells = _kernel_rates(survey, rows, kernels, roof) if known else ()
    rated = tuple((*row, *more) for row, more in zip(table.rows, cells))
    return replace(table, title="Rates", columns=columns, rows=rated, note=roof_note(roof))


IMPOSSIBLE = "INVALID: more than the hardware can do"


def _kernel_rates(
    survey: Survey, rows: Sequence[OperatorRow], kernels: Sequence[KernelRow], roof: Roof | None
) -> Iterator[tuple[Cell, ...]]:
    operator, sharing = sole_workers(survey, rows)
    *_, group, groups = kernel_groups(survey)
    figures_of_rows = (
        [row.work.flops if row.work else None for row in rows],
        [row.work.bytes if row.work else None for row in rows],
        [place(row.work, 1.0, roof).claimed if row.work and roof else None for row in rows],
    )
    flops, moved, ideal = (
        np.bincount(group, np.where(sharing == 1, np.array(column, np.float64)[operator], np.nan), groups)
        for column in figures_of_rows
    )
    for kernel in kernels:
        of, count = int(group[kernel.first]), int(sharing[kernel.first])
        total = kernel.total or math.nan
        rate, band, part = (float(sums[of]) / total for sums in (flops * 1e9, moved * 1e9, ideal))
        why, figures = "", tuple(None if math.isnan(figure) else figure for figure in (rate, band, part))
        if part > BEYOND or (roof and rate > 0 and above_every_peak(rate, roof)):
            why, figures = IMPOSSIBLE, (*figures[:2], None)
        elif not kernel.total:
            why = "it takes no time in this trace"
        elif figures[:2] == (None, None):
            if count == 0:
                why = "it prepares the memory of its call's kernel"
            elif count > 1:
                why = f"one of {count} kernels of its call: --view roofline has the rate of the call"
            else:
                why = rows[int(operator[kernel.first])].why or "other kernels share the work of some of its calls"
        yield *figures, why


def _with(scope: Labels, **more: object) -> Labels:
    return tuple(sorted((*scope, *labels(**more))))


_NEEDED = ("op_time", "op_count", "op_share", "op_mean", "op_variants", "op_running", "modelled", "tflops", "bandwidth",
          "intensity", "mfu", "sol", "mfu_datasheet", "sol_datasheet")  # fmt: skip


def without_operators(survey: Survey, scopes: Sequence[Labels]) -> MetricSet:
    why, fix = no_work(survey)
    return MetricSet(absent=tuple(Absent(name=name, labels=s, why=why, fix=fix) for name in _NEEDED for s in scopes))
