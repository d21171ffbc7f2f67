"""Operators and kernels of each step and of each of several devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pytest_perfgate.core.analysis.trace.grouped import busy
from pytest_perfgate.core.analysis.trace.operators import OUTSIDE
from pytest_perfgate.core.analysis.trace.survey import Survey, narrowed
from pytest_perfgate.model.metric import Labels, Metric, MetricSet, labels
from pytest_perfgate.model.quantity import Dimension
from pytest_perfgate.model.trace import Category

MOST = 20_000
"""Figures of this kind for one job; a trace of thousands of steps is looked at with ``--set window=step=N``."""
Figure = tuple[str, float, Dimension, Labels]
"""Name, number, dimension, and what it is of beside the step or device."""
_TIME, _PART, _COUNT = Dimension.TIME, Dimension.FRACTION, Dimension.COUNT


def scoped_metrics(seen: Survey, steps: Sequence[Survey], scopes: Sequence[Labels], most: int = MOST) -> MetricSet:
    """``op_time(op=aten::mm, step=5)`` and the like; none where they would be more than ``most``."""
    parts = [(part, labels(step=part.window.step)) for part in steps if part.window and part.window.step]
    devices = np.unique(seen.device).tolist()
    if len(devices) > 1:
        parts += [(narrowed(seen, np.flatnonzero(seen.device == d)), labels(gpu=d)) for d in devices]
    made: list[Metric] = []
    for part, where in parts:
        for name, number, dimension, what in (*_operators(part), *_kernels(part)):
            wheres = (tuple(sorted((*scope, *where, *what))) for scope in scopes)
            made += [_metric(name, number, dimension, labelled) for labelled in wheres]
        if len(made) > most:
            return MetricSet()
    return MetricSet(metrics=tuple(made))


def _operators(part: Survey) -> Iterator[Figure]:
    if not len(part.rows):
        return
    owners, instance = np.unique(part.owner, return_inverse=True)
    spent = busy(part.start, part.end, instance, len(owners)).astype(np.float64)
    names = np.where(owners >= 0, part.trace.name[np.maximum(owners, 0)], -1)
    numbers, group = np.unique(names, return_inverse=True)
    total, count = np.bincount(group, weights=spent), np.bincount(group)
    everything = float(total.sum()) or 1.0
    for at, number in enumerate(numbers.tolist()):
        what = (("op", part.trace.names[number] if number >= 0 else OUTSIDE),)
        yield "op_time", float(total[at]), _TIME, what
        yield "op_count", float(count[at]), _COUNT, what
        yield "op_share", float(total[at]) / everything, _PART, what


def _kernels(part: Survey) -> Iterator[Figure]:
    if part.on_host or not len(part.rows):
        return
    real = part.trace.category[part.rows] == Category.KERNEL
    yield "kernel_time", float((part.end - part.start)[real].sum()), _TIME, ()
    yield "kernel_count", float(np.count_nonzero(real)), _COUNT, ()
    numbers, group = np.unique(part.trace.name[part.rows], return_inverse=True)
    total, count = np.bincount(group, weights=part.end - part.start), np.bincount(group)
    for at, number in enumerate(numbers.tolist()):
        what = (("kernel", part.trace.names[number]),)
        yield "kernel_time", float(total[at]), _TIME, what
        yield "kernel_count", float(count[at]), _COUNT, what


def _metric(name: str, number: float, dimension: Dimension, where: Labels) -> Metric:
    return Metric(name=name, value=number, dimension=dimension, labels=where, source="trace")
