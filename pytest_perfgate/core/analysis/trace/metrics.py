"""Every figure of a trace as a metric that a limit can name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from pytest_perfgate.core.analysis.roofline import place
from pytest_perfgate.core.analysis.trace.kernels import KernelRow
from pytest_perfgate.core.analysis.trace.operators import OperatorRow, recompute_share
from pytest_perfgate.core.analysis.trace.survey import Survey, pooled, timelines
from pytest_perfgate.core.analysis.trace.timeline import Timeline
from pytest_perfgate.model.device import Roof
from pytest_perfgate.model.metric import Absent, Labels, Metric, MetricSet, labels
from pytest_perfgate.model.quantity import Dimension
from pytest_perfgate.model.trace import Category

_TIME, _PART, _COUNT = Dimension.TIME, Dimension.FRACTION, Dimension.COUNT
SHORT_NS = 10_000
NO_GPU = "the trace has no GPU activity"
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
_SHARES = (("computation", "computation"), ("communication", "communication"), ("busy", "busy"), ("idle", "idle"))


def scopes_of(rank: int | None, ranks: int) -> tuple[Labels, ...]:
    """Labels under which figures of one rank stand: bare too while it is the only one."""
    named = (labels(rank=rank),) if rank is not None else ()
    return ((), *named) if ranks < 2 else named


def timeline_metrics(seen: Survey, scopes: Sequence[Labels]) -> MetricSet:
    """Breakdown per device; a single device's figures stand for the trace too."""
    found = timelines(seen)
    if not found:
        names = ("overlap", "exposed_share", *dict(_TIMES), *dict(_SHARES), "coverage")
        return MetricSet(absent=tuple(Absent(name=name, labels=s, why=NO_GPU) for name in names for s in scopes))
    metrics: list[Metric] = []
    absent: list[Absent] = []
    whole = pooled(list(found.values()))
    for scope in scopes:
        lines = [] if seen.on_host else [(_with(scope, gpu=device), line) for device, line in found.items()]
        for where, line in [(scope, whole), *lines] if whole else lines:
            made, missing = _line(line, where)
            metrics += made
            absent += missing
        if seen.coverage is not None:
            metrics.append(_metric("coverage", seen.coverage, _PART, scope))
    return MetricSet(metrics=tuple(metrics), absent=tuple(absent))


def _line(line: Timeline, where: Labels) -> tuple[list[Metric], list[Absent]]:
    made = [_metric(name, getattr(line, field), _TIME, where) for name, field in _TIMES]
    made += [_metric(name, line.share(getattr(line, field)), _PART, where) for name, field in _SHARES]
    made.append(_metric("exposed_share", line.share(line.exposed_comm), _PART, where))
    if line.overlap is None:
        return made, [Absent(name="overlap", labels=where, why=NO_COMMUNICATION)]
    return [*made, _metric("overlap", line.overlap, _PART, where)], []


def step_metrics(parts: Sequence[Survey], scopes: Sequence[Labels]) -> MetricSet:
    """The breakdown of each step."""
    found = MetricSet()
    metrics: list[Metric] = []
    absent: list[Absent] = []
    for part in parts:
        if part.window is None or not len(part.rows):
            continue
        inner = [_with(scope, step=part.window.step) for scope in scopes]
        made = timeline_metrics(part, inner)
        metrics += made.metrics
        absent += made.absent
        metrics += [_metric("step_time", part.window.end - part.window.start, _TIME, scope) for scope in inner]
    return found | MetricSet(metrics=tuple(metrics), absent=tuple(absent))


def operator_metrics(rows: Sequence[OperatorRow], roof: Roof | None, scopes: Sequence[Labels]) -> MetricSet:
    """Time, count, rates and fractions by operator and by category."""
    metrics = [m for scope in scopes for m in _operators(rows, roof, scope)]
    if roof is None and rows:
        why, mend = "no peaks are known for this trace's device", "give --set device=NAME or --set peak=bf16=989TFLOPS"
        names = ("mfu", "mfu_datasheet", "sol", "sol_datasheet")
        return MetricSet(metrics=tuple(metrics), absent=tuple(Absent(name=n, why=why, mend=mend) for n in names))
    why = "the clock that ran is not in a trace"
    mend = "limit mfu_datasheet or sol_datasheet, or give the peaks with --set peak=bf16=989TFLOPS"
    absent = tuple(Absent(name=name, why=why, mend=mend) for name in ("mfu", "sol")) if rows else ()
    return MetricSet(metrics=tuple(metrics), absent=absent)


def _operators(rows: Sequence[OperatorRow], roof: Roof | None, scope: Labels) -> Iterator[Metric]:
    by_name, by_category = defaultdict(list), defaultdict(list)
    for row in rows:
        by_name[row.name].append(row)
        by_category[row.category].append(row)
    everything = sum(row.total for row in rows) or 1.0
    for key, table in (("op", by_name), ("category", by_category)):
        for name, group in table.items():
            where = _with(scope, **{key: name})
            spent = sum(row.total for row in group)
            yield _metric("op_time", spent, _TIME, where)
            yield _metric("op_count", sum(row.count for row in group), _COUNT, where)
            yield _metric("op_share", spent / everything, _PART, where)
            yield from _rates(group, roof, where)
    modelled = [row for row in rows if row.work is not None]
    yield _metric("modelled", sum(row.total for row in modelled) / everything, _PART, scope)
    yield from _rates(rows, roof, scope)


def _rates(group: Sequence[OperatorRow], roof: Roof | None, where: Labels) -> Iterator[Metric]:
    """Rates of the modelled calls over the time of those calls only."""
    known = [row for row in group if row.work is not None and row.total > 0]
    spent = sum(row.total for row in known)
    if not spent:
        return
    flops = sum((row.work.flops or 0.0) * row.count for row in known if row.work)
    moved = sum((row.work.bytes or 0.0) * row.count for row in known if row.work)
    yield _metric("tflops", flops / spent * 1e9, Dimension.FLOPS, where)
    yield _metric("bandwidth", moved / spent * 1e9, Dimension.BANDWIDTH, where)
    if moved:
        yield _metric("intensity", flops / moved, Dimension.INTENSITY, where)
    if roof is None:
        return
    given = roof.note == "peaks as given"
    for name, fraction in (("mfu", _weighted(known, roof, "compute")), ("sol", _weighted(known, roof, "fraction"))):
        if fraction is not None:
            yield _metric(f"{name}_datasheet", fraction, _PART, where, roof.note)
            if given:
                yield _metric(name, fraction, _PART, where, roof.note)


def _weighted(rows: Sequence[OperatorRow], roof: Roof, part: str) -> float | None:
    """The mean fraction of the roof, weighted by time; ``None`` where a row's roof is unknown."""
    spent = reached = 0.0
    for row in rows:
        if row.work is None:
            continue
        fraction = getattr(place(row.work, row.total / row.count, roof), part)
        if fraction is not None:
            spent += row.total
            reached += fraction * row.total
    return reached / spent if spent else None


def kernel_metrics(rows: Sequence[KernelRow], seen: Survey, scopes: Sequence[Labels]) -> MetricSet:
    """Time and count by kernel name, and the share of short ones."""
    spent: dict[str, float] = defaultdict(float)
    count: dict[str, int] = defaultdict(int)
    for row in rows:
        spent[row.name] += row.total
        count[row.name] += row.count
    kernel = seen.trace.category[seen.rows] == Category.KERNEL
    lengths = (seen.end - seen.start)[kernel]
    recomputed = recompute_share(seen)
    metrics: list[Metric] = []
    for scope in scopes:
        metrics += [_metric("kernel_time", t, _TIME, _with(scope, kernel=name)) for name, t in spent.items()]
        metrics += [_metric("kernel_count", n, _COUNT, _with(scope, kernel=name)) for name, n in count.items()]
        if len(lengths):
            metrics.append(_metric("kernel_time", float(lengths.sum()), _TIME, scope))
            metrics.append(_metric("kernel_count", len(lengths), _COUNT, scope))
            metrics.append(_metric("short_kernels", float(np.mean(lengths < SHORT_NS)), _PART, scope))
        if recomputed is not None:
            metrics.append(_metric("recompute", recomputed, _PART, scope))
    return MetricSet(metrics=tuple(metrics))


def _with(scope: Labels, **more: object) -> Labels:
    return tuple(sorted((*scope, *labels(**more))))


def _metric(name: str, number: float, dimension: Dimension, where: Labels, note: str = "") -> Metric:
    return Metric(name=name, value=float(number), dimension=dimension, labels=where, source="trace", note=note)
