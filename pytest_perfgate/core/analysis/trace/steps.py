"""Steps and annotations from host marks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from pytest_perfgate.core.analysis.trace.operators import OUTSIDE
from pytest_perfgate.core.analysis.trace.survey import Survey, narrowed
from pytest_perfgate.core.analysis.trace.timeline import Window, busy, parse_window, steps
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Labels, Metric, MetricSet, labels
from pytest_perfgate.model.profiles import Category
from pytest_perfgate.model.values import Dimension

BEHIND = "by launches"
"""Said where the GPU runs behind the host, and a window is that of the work which was launched in it."""


def steps_of(seen: Survey) -> tuple[Window, ...]:
    """The steps of a trace; none where it marks none, or where none of its GPU work belongs to one."""
    return _of_the_gpu(seen, steps(seen.trace))


def windows_of(seen: Survey, text: str) -> tuple[Window, ...]:
    """The windows that an option names."""
    marked = parse_window(seen.trace, text)
    every = steps(seen.trace)
    if not all(window in every for window in marked):
        windows = _of_the_gpu(seen, _numbered(marked))
    else:
        known = {window.step: window for window in steps_of(seen)}
        windows = tuple(known[window.step] for window in marked if window.step in known)
    if marked and not windows:
        names = ", ".join(window.label for window in marked[:4])
        what = f"nothing that was launched in {names} is in the trace"
        mend = "name another, or a range such as 2ms..5ms; a profile that stops early loses the work of its last step"
        raise PerfgateError("trace-window", what, place=seen.trace.path, mend=mend)
    return windows


def _numbered(found: Sequence[Window]) -> tuple[Window, ...]:
    """The instances of an annotation, told apart as steps are."""
    if len(found) < 2:
        return tuple(found)
    return tuple(replace(w, label=f"{w.label} ({n})", step=str(n)) for n, w in enumerate(found, 1))


def _of_the_gpu(seen: Survey, found: Sequence[Window]) -> tuple[Window, ...]:
    """The host's windows as they are while all that they launch ends in them, else the hulls of what they launched."""
    linked = np.flatnonzero(seen.link.launch >= 0)
    if seen.on_host or not len(linked) or not any(window.on_host for window in found):
        return tuple(found)
    rows, at = seen.link.rows[linked], seen.trace.start[seen.link.launch[linked]]
    order = np.argsort(at, kind="stable")
    rows, at = rows[order], at[order]
    hulls = []
    for window in found:
        low, high = np.searchsorted(at, window.pair, side="left")
        inside = rows[low:high]
        if len(inside):
            hulls.append((window, int(seen.trace.start[inside].min()), int(seen.trace.end[inside].max())))
    if all(end <= window.end for window, _, end in hulls):
        return tuple(found)
    return tuple(replace(w, start=low, end=high, label=f"{w.label}, {BEHIND}") for w, low, high in hulls)


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
