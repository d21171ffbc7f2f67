"""Steps of a trace by the host's marks, and its GPU rows in a window: classes, launches, owners."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

import numpy as np

from pytest_perfgate.core.analysis import intervals
from pytest_perfgate.core.analysis.intervals import gpu_rows, kinds
from pytest_perfgate.core.analysis.operators import model_of
from pytest_perfgate.core.analysis.trace.timeline import Timeline, TraceWindow, busy, parse_window, steps, timeline
from pytest_perfgate.core.analysis.trace.tree import (
    Linkage,
    Tree,
    call_tree,
    collectives_of,
    link,
    operators,
    outer_operators,
)
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Labels, Metric, MetricSet, labels
from pytest_perfgate.model.profiles import GPU, Category, Kind, Trace
from pytest_perfgate.model.values import Dimension, Work, array_value, regex, value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


OUTSIDE = "(launched outside any operator)"

_OF_GPUS = ("nccl", "rccl")
"""Backends of collectives that only move memory of GPUs."""

_ANNOTATED = tuple(f"{name}:" for name in _OF_GPUS)
"""The framework's annotations of such collectives on the host."""

_OF_DEVICES = regex(
    r"aten::(?:_?(?:cudnn|miopen|mps)_(?!is_acceptable$)|_thnn_fused_|\w+_for_mps$|_(?:flash|efficient)_attention_(?:for|back)ward$|"
    r"_scaled_dot_product_(?:cudnn|efficient)_attention|_scaled_dot_product_flash_attention(?:_backward)?$)|"
    r"(?:npu|hpu|xpu)::|(?:ze|ur|hip|cuda)[A-Z]\w*$|clEnqueue\w+$"
)
"""Operators and calls that only a device has: host times of launches. An LSTM asks for cuDNN on the host too."""


@value
class AnalysisSettings:
    communication: tuple[str, ...] = ()
    """Further patterns of communication kernels."""
    micro_ns: int = 10_000
    floor: float = 0.9
    """The coverage below which every limit is INVALID."""
    top: int = 6
    models: Mapping[str, Callable[..., Work]] = field(default_factory=dict)
    """Work of the user's own operators."""


@array_value
class Survey:
    trace: Trace
    tree: Tree
    link: Linkage
    kinds: NDArray[np.uint8]
    device: Ints
    """The device of each GPU row."""
    owner: Ints
    """The operator row that each GPU row belongs to; -1 if unknown."""
    window: TraceWindow | None
    settings: AnalysisSettings
    on_host: bool = False
    """Whether the trace is of a program without a GPU, with working operators in place of kernels."""

    @property
    def rows(self) -> Ints:
        return self.link.rows

    @property
    def start(self) -> Ints:
        """Starts of the GPU rows, cut to the window."""
        starts: Ints = self.trace.start[self.rows]
        return np.clip(starts, *self.window.pair) if self.window else starts

    @property
    def end(self) -> Ints:
        ends: Ints = self.trace.end[self.rows]
        return np.clip(ends, *self.window.pair) if self.window else ends

    @property
    def label(self) -> str:
        named = self.window.label if self.window else "whole trace"
        guessed, untimed = int(self.guessed.sum()), self.trace.untimed
        parts = [f"{guessed:,} guessed from the next start"] if guessed else []
        parts += [f"{untimed:,} left out"] if untimed else []
        if parts:
            named += f"; GPU durations that cannot be read: {', '.join(parts)}"
        if self.trace.foreign:
            named += f"; without {self.unknown_categories}"
        return f"{named}, on the host: this program has no GPU" if self.on_host else named

    @property
    def stretch(self) -> str:
        """The name of its window alone, where others stand beside it."""
        return self.window.label if self.window else self.label

    @property
    def unknown_categories(self) -> str:
        """The events of unknown categories; "" if there are none."""
        names = [f"{name} ({count:,})" for name, count in self.trace.foreign[:4]]
        return f"the events of unknown categories: {', '.join(names)}" if names else ""

    @property
    def has_kernels(self) -> bool:
        """Whether a kernel ran, and not only copies and fills."""
        return bool((self.trace.category[self.rows] == Category.KERNEL).any())

    @property
    def guessed(self) -> NDArray[np.bool_]:
        """The GPU rows without a readable duration, which end at the next one's start."""
        return np.isin(self.rows, self.trace.guessed) if self.trace.guessed else np.zeros(len(self.rows), bool)

    @property
    def unread(self) -> float:
        """The part of GPU events, or of their time if larger, that was guessed or left out."""
        untimed = self.trace.untimed
        spent = self.end - self.start
        total = int(spent.sum())
        guessed = float(spent[self.guessed].sum() / total) if total else 0.0
        return max(guessed, untimed / (untimed + len(self.rows)) if untimed else 0.0)

    @property
    def coverage(self) -> float | None:
        """The linked part of the GPU time in the window; None for a program without a GPU."""
        if self.on_host:
            return None
        spent = self.end - self.start
        total = int(spent.sum())
        return float(spent[self.link.launch >= 0].sum() / total) if total else None


def survey(trace: Trace, settings: AnalysisSettings, window: TraceWindow | None = None) -> Survey:
    """Survey a trace; with a window, only the GPU rows that touch it."""
    tree = call_tree(trace)
    rows = gpu_rows(trace)
    host = not len(rows) and of_host_only(trace)
    rows = outer_operators(trace, tree, settings.models) if host else rows
    links = Linkage(rows=rows, launch=rows, leaf=rows, coverage=0.0) if host else link(trace, tree, rows)
    devices = np.array([queue.device for queue in trace.queues] or [-1], np.int64)
    whole = Survey(
        trace=trace,
        tree=tree,
        link=links,
        kinds=kinds(trace, rows, settings.communication, collectives_of(trace, links)),
        device=devices[trace.place[rows]] if len(rows) and not host else np.full(len(rows), -1, np.int64),
        owner=rows if host else _owners(trace, tree, links.leaf, settings),
        window=None,
        settings=settings,
        on_host=host,
    )
    return in_window(whole, window) if window else whole


def in_window(whole: Survey, window: TraceWindow) -> Survey:
    return in_windows(whole, [window])[0]


def in_windows(whole: Survey, windows: Sequence[TraceWindow]) -> list[Survey]:
    """Return the same survey in each of several windows."""
    rows = whole.link.rows
    starts, ends = whole.trace.start[rows], whole.trace.end[rows]
    order = np.argsort(starts, kind="stable")
    ranked, reach = starts[order], np.maximum.accumulate(ends[order])
    parts = []
    for window in windows:
        low, high = window.pair
        first, last = np.searchsorted(reach, low, side="right"), np.searchsorted(ranked, high, side="left")
        near = order[first:last]
        parts.append(narrowed(whole, np.sort(near[ends[near] > low]), window))
    return parts


def narrowed(whole: Survey, chosen: Ints, window: TraceWindow | None = None) -> Survey:
    """Return the same survey with some of its GPU rows, in its own or a given window."""
    return Survey(
        trace=whole.trace,
        tree=whole.tree,
        link=Linkage(
            rows=whole.link.rows[chosen],
            launch=whole.link.launch[chosen],
            leaf=whole.link.leaf[chosen],
            coverage=whole.link.coverage,
        ),
        kinds=whole.kinds[chosen],
        device=whole.device[chosen],
        owner=whole.owner[chosen],
        window=window or whole.window,
        settings=whole.settings,
        on_host=whole.on_host,
    )


def timelines(survey: Survey) -> dict[int, Timeline]:
    """Return the breakdown of each device."""
    window = survey.window.pair if survey.window else None
    if survey.on_host and len(survey.rows):
        return {-1: _of_host(survey, window)}
    by_device = {}
    for device in intervals.distinct(survey.device):
        here = survey.device == device
        by_device[device] = timeline(
            survey.start[here], survey.end[here], survey.kinds[here], window, survey.settings.micro_ns
        )
    return by_device


def step_lines(parts: Sequence[Survey]) -> Iterator[tuple[str, Timeline]]:
    for part in parts:
        by_device = timelines(part)
        for device, line in by_device.items():
            yield f"{part.stretch}, device {device}" if len(by_device) > 1 else part.stretch, line


def _of_host(survey: Survey, window: tuple[int, int] | None) -> Timeline:
    """Return when any operator ran, since calls of others have work of their own in between."""
    trace, rows = survey.trace, operators(survey.trace)
    if window:
        rows = rows[(trace.start[rows] < window[1]) & (trace.end[rows] > window[0])]
    kinds_of_rows = np.full(len(trace), Kind.COMPUTE, np.uint8)
    kinds_of_rows[survey.rows] = survey.kinds
    return timeline(trace.start[rows], trace.end[rows], kinds_of_rows[rows], window, survey.settings.micro_ns)


def of_host_only(trace: Trace) -> bool:
    """Return whether a trace shows no sign of a device: none listed, used, launched on or needed."""
    if (
        trace.foreign
        or trace.device_memory
        or any(name in trace.backend for name in _OF_GPUS)
        or any(name.startswith(_ANNOTATED) or _OF_DEVICES.match(name) for name in trace.names)
    ):
        return False
    device_side = (trace.category == Category.RUNTIME) | np.isin(trace.category, GPU)
    return not trace.devices and not bool(device_side.any())


def _owners(trace: Trace, tree: Tree, leaf: Ints, settings: AnalysisSettings) -> Ints:
    """Return the nearest operator at or above the launcher that has a model, else the launcher."""
    modelled = np.array([model_of(name, settings.models) is not None for name in trace.names] or [False])
    owner: Ints = leaf.copy()
    seeking = np.flatnonzero((owner >= 0) & ~modelled[trace.name[np.maximum(owner, 0)]])
    at = owner[seeking]
    while len(seeking):
        parent = tree.parent[at]
        above = np.where(parent >= 0, tree.operator[np.maximum(parent, 0)], -1)
        open_rows = above >= 0
        seeking, at = seeking[open_rows], above[open_rows]
        hit = modelled[trace.name[at]]
        owner[seeking[hit]] = at[hit]
        seeking, at = seeking[~hit], at[~hit]
    return owner


def pooled(parts: Sequence[Timeline]) -> Timeline | None:
    """Return the timeline of a trace of one device; None for several, which have no sum."""
    return parts[0] if len(parts) == 1 else None


BEHIND = "by launches"
"""The note on windows by launched work, because the GPU runs later than the host."""


def steps_of(survey: Survey) -> tuple[TraceWindow, ...]:
    """Return the steps of a trace; none if it marks none, or no GPU work belongs to one."""
    return _of_the_gpu(survey, steps(survey.trace))


def windows_of(survey: Survey, text: str) -> tuple[TraceWindow, ...]:
    """Return the windows that an option names."""
    marked = parse_window(survey.trace, text)
    every = steps(survey.trace)
    if not all(window in every for window in marked):
        windows = _of_the_gpu(survey, _numbered(marked))
    else:
        known = {window.step: window for window in steps_of(survey)}
        windows = tuple(known[window.step] for window in marked if window.step in known)
    if marked and not windows:
        names = ", ".join(window.label for window in marked[:4])
        what = f"nothing that was launched in {names} is in the trace"
        fix = "name another, or a range such as 2ms..5ms; a profile that stops early loses the work of its last step"
        raise PerfgateError("trace-window", what, place=survey.trace.path, fix=fix)
    return windows


def _numbered(windows: Sequence[TraceWindow]) -> tuple[TraceWindow, ...]:
    """Number the instances of an annotation as steps are."""
    if len(windows) < 2:
        return tuple(windows)
    return tuple(replace(w, label=f"{w.label} ({n})", step=str(n)) for n, w in enumerate(windows, 1))


def _of_the_gpu(survey: Survey, windows: Sequence[TraceWindow]) -> tuple[TraceWindow, ...]:
    """Return the host's windows if all they launch ends in them, else the hulls of what they launched."""
    linked = np.flatnonzero(survey.link.launch >= 0)
    if survey.on_host or not len(linked) or not any(window.on_host for window in windows):
        return tuple(windows)
    rows, at = survey.link.rows[linked], survey.trace.start[survey.link.launch[linked]]
    order = np.argsort(at, kind="stable")
    rows, at = rows[order], at[order]
    hulls = []
    for window in windows:
        low, high = np.searchsorted(at, window.pair, side="left")
        inside = rows[low:high]
        if len(inside):
            hulls.append((window, int(survey.trace.start[inside].min()), int(survey.trace.end[inside].max())))
    if all(end <= window.end for window, _, end in hulls):
        return tuple(windows)
    return tuple(replace(w, start=low, end=high, label=f"{w.label}, {BEHIND}") for w, low, high in hulls)


MOST = 20_000
"""The most figures by step for one job; ``--set window=step=N`` selects a step of longer traces."""

ScopedFigure = tuple[str, float, Dimension, Labels]
"""Name, number, dimension, and the scope beside step or device."""

_TIME, _PART, _COUNT = Dimension.TIME, Dimension.FRACTION, Dimension.COUNT


def scoped_metrics(survey: Survey, steps: Sequence[Survey], scopes: Sequence[Labels], most: int) -> MetricSet:
    """Return ``op_time(op=aten::mm, step=5)`` and the like; none if there would be more than ``most``."""
    metrics: list[Metric] = []
    ran = survey.has_kernels
    for part, where in stretches(survey, steps):
        for name, number, dimension, what in (*_operators(part), *(_kernels(part) if ran else ())):
            wheres = (tuple(sorted((*scope, *where, *what))) for scope in scopes)
            metrics += [trace_metric(name, number, dimension, labelled) for labelled in wheres]
        if len(metrics) > most:
            return MetricSet()
    return MetricSet(metrics=tuple(metrics))


def stretches(survey: Survey, steps: Sequence[Survey]) -> list[tuple[Survey, Labels]]:
    """Return the steps, and each device if there are several, with their scopes."""
    parts = [(part, labels(step=part.window.step)) for part in steps if part.window and part.window.step]
    devices = intervals.distinct(survey.device)
    if len(devices) > 1:
        parts += [(narrowed(survey, np.flatnonzero(survey.device == d)), labels(gpu=d)) for d in devices]
    return parts


def call_times(survey: Survey) -> tuple[Ints, Ints, NDArray[np.float64]]:
    """Return the operator rows of all calls, the call of each GPU row, and the GPU time of each call."""
    owners, instance = np.unique(survey.owner, return_inverse=True)
    return owners, instance, busy(survey.start, survey.end, instance, len(owners)).astype(np.float64)


def _operators(part: Survey) -> Iterator[ScopedFigure]:
    if not len(part.rows):
        return
    owners, _, spent = call_times(part)
    names = np.where(owners >= 0, part.trace.name[np.maximum(owners, 0)], -1)
    numbers, group = np.unique(names, return_inverse=True)
    total, count = np.bincount(group, weights=spent), np.bincount(group)
    everything = float(total.sum()) or 1.0
    for at, number in enumerate(numbers.tolist()):
        what = (("op", part.trace.names[number] if number >= 0 else OUTSIDE),)
        yield "op_time", float(total[at]), _TIME, what
        yield "op_count", float(count[at]), _COUNT, what
        yield "op_share", float(total[at]) / everything, _PART, what


def _kernels(part: Survey) -> Iterator[ScopedFigure]:
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


def trace_metric(name: str, number: float, dimension: Dimension, where: Labels, note: str = "") -> Metric:
    return Metric(name=name, value=float(number), dimension=dimension, labels=where, source="trace", note=note)
