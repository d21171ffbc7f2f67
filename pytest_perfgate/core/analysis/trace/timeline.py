"""Busy, exposed and idle time by device and stream."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_perfgate.core.analysis import intervals
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.profiles import Category, Kind, Trace
from pytest_perfgate.model.values import TIME_UNIT, TIME_UNITS, array_value, regex, value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pytest_perfgate.core.analysis.intervals import Spans

    Ints = NDArray[np.int64]

    Floats = NDArray[np.float64]


MICRO_NS = 10_000
"""The longest gap that counts as micro idle: launch latency, not waiting."""


@value
class Timeline:
    """Nanoseconds of one device in one window; the parts of ``total`` sum to it."""

    computation: int
    exposed_comm: int
    exposed_memcpy: int
    exposed_memset: int
    idle: int
    total: int
    communication: int
    memcpy: int
    memset: int
    idle_micro: int
    idle_macro: int
    gaps: int
    rows: int
    exposed_sum: int = 0
    """Communication that no compute covers, summed over kernels."""
    comm_sum: int = 0
    least_covered: float | None = None
    """The smallest covered part of a communication kernel."""
    most_covered: float | None = None

    @property
    def busy(self) -> int:
        return self.total - self.idle

    @property
    def overlap(self) -> float | None:
        """The share of communication that compute hides; ``None`` without communication."""
        return 1 - self.exposed_comm / self.communication if self.communication else None

    @property
    def overlap_sum(self) -> float | None:
        """The same share, summed over communication kernels."""
        return 1 - self.exposed_sum / self.comm_sum if self.comm_sum else None

    def share(self, part: int) -> float:
        return part / self.total if self.total else 0.0


def timeline(
    starts: Ints, ends: Ints, kinds: NDArray[np.uint8], window: tuple[int, int] | None = None, micro: int = MICRO_NS
) -> Timeline:
    """Return the breakdown of GPU rows of one device; by default from first start to last end."""
    if window is None:
        window = (int(starts.min()), int(ends.max())) if len(starts) else (0, 0)
    low, high = window
    starts, ends = np.clip(starts, low, high), np.clip(ends, low, high)
    every = intervals.union(starts, ends)
    part = {kind: intervals.union(starts[kinds == kind], ends[kinds == kind]) for kind in Kind}
    exposed, covered = {}, part[Kind.COMPUTE]
    for kind in (Kind.COMMUNICATION, Kind.MEMCPY, Kind.MEMSET):
        together = intervals.joined_spans(covered, part[kind])
        exposed[kind] = intervals.length(together) - intervals.length(covered)
        covered = together
    pauses = _pauses(every, low, high)
    short = pauses <= micro
    return Timeline(
        computation=intervals.length(part[Kind.COMPUTE]),
        exposed_comm=exposed[Kind.COMMUNICATION],
        exposed_memcpy=exposed[Kind.MEMCPY],
        exposed_memset=exposed[Kind.MEMSET],
        idle=int(pauses.sum()),
        total=high - low,
        communication=intervals.length(part[Kind.COMMUNICATION]),
        memcpy=intervals.length(part[Kind.MEMCPY]),
        memset=intervals.length(part[Kind.MEMSET]),
        idle_micro=int(pauses[short].sum()),
        idle_macro=int(pauses[~short].sum()),
        gaps=len(pauses),
        rows=int(np.count_nonzero(ends > starts)),
        **_each(starts[kinds == Kind.COMMUNICATION], ends[kinds == Kind.COMMUNICATION], part[Kind.COMPUTE]),
    )


def _each(starts: Ints, ends: Ints, cover: Spans) -> dict[str, Any]:
    """Return how much of each communication kernel compute covers."""
    lengths = ends - starts
    hidden, real = intervals.covered_by(starts, ends, cover), lengths > 0
    parts = hidden[real] / lengths[real]
    return {
        "exposed_sum": int((lengths - hidden).sum()),
        "comm_sum": int(lengths.sum()),
        "least_covered": float(parts.min()) if len(parts) else None,
        "most_covered": float(parts.max()) if len(parts) else None,
    }


def _pauses(every: Spans, low: int, high: int) -> Ints:
    """Return the lengths of uncovered gaps between two ends of a window."""
    edges = (np.concatenate([[low], every[1]]), np.concatenate([every[0], [high]]))
    lengths: Ints = np.maximum(edges[1] - edges[0], 0)
    return lengths[lengths > 0]


@array_value
class GroupStats:
    """Statistics with one entry for each group."""

    count: Ints
    total: Floats
    mean: Floats
    median: Floats
    std: Floats
    low: Floats
    high: Floats
    first: Ints
    """The first row of each group."""


@value
class Spread:
    """How often something ran, and its nanoseconds: total, mean, least and most."""

    count: int
    total: float
    mean: float
    median: float
    std: float
    low: float
    high: float


def spread(stats: GroupStats, group: int) -> dict[str, Any]:
    fields = ("total", "mean", "median", "std", "low", "high")
    return {"count": int(stats.count[group]), **{name: float(getattr(stats, name)[group]) for name in fields}}


def busy(starts: Ints, ends: Ints, group: Ints, groups: int) -> Ints:
    """Return the length of the union of each group's intervals, in one pass over all of them."""
    if not len(starts):
        return np.zeros(groups, np.int64)
    low = starts.min()
    span = int(ends.max() - low) + 1
    if groups * span < 2**62:
        shift = group * span - low
        merged = intervals.union(starts + shift, ends + shift)
        owner = merged[0] // span
        lengths = np.zeros(groups, np.int64)
        np.add.at(lengths, owner, merged[1] - merged[0])
        return lengths
    return np.array([intervals.covered(starts[group == g], ends[group == g]) for g in range(groups)], np.int64)


def statistics(values: Floats, group: Ints, groups: int) -> GroupStats:
    """Return count, sum, mean, median, sample deviation, extremes and first row; no group may be empty."""
    order = np.lexsort((values, group))
    ranked = values[order]
    count = np.bincount(group, minlength=groups)
    ends = np.cumsum(count)
    begins = ends - count
    total: Floats = np.bincount(group, weights=values, minlength=groups).astype(np.float64)
    mean = total / count
    spread = np.bincount(group, weights=(values - mean[group]) ** 2, minlength=groups)
    with np.errstate(invalid="ignore", divide="ignore"):
        std = np.sqrt(spread / (count - 1))
    first = np.full(groups, len(values), np.int64)
    np.minimum.at(first, group, np.arange(len(values)))
    return GroupStats(
        count=count,
        total=total,
        mean=mean,
        median=(ranked[begins + (count - 1) // 2] + ranked[begins + count // 2]) / 2,
        std=std,
        low=ranked[begins],
        high=ranked[ends - 1],
        first=first,
    )


def numbered(*columns: Ints) -> tuple[Ints, int]:
    """Return a group number for each distinct row of several columns, and the number of groups."""
    code = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, inverse = np.unique(column, return_inverse=True)
        code = code * len(values) + inverse
        code = np.unique(code, return_inverse=True)[1]
    return code, int(code.max(initial=-1)) + 1


_STEP = regex(r"^ProfilerStep#(\d+)$")

_RANGE = regex(rf"^(\d+(?:\.\d+)?)\s*({TIME_UNIT})?\s*\.\.\s*(\d+(?:\.\d+)?)\s*({TIME_UNIT})$")


@value
class TraceWindow:
    """A stretch of a trace, in its own nanoseconds, with its name."""

    label: str
    start: int
    end: int
    step: str = ""
    on_host: bool = False
    """Whether the host marked it, while the GPU may run later."""

    @property
    def pair(self) -> tuple[int, int]:
        return self.start, self.end


def steps(trace: Trace) -> tuple[TraceWindow, ...]:
    """Return windows of profiler steps by the GPU, else by the host; PyTorch 1 recorded them as operators."""
    for category in (Category.GPU_ANNOTATION, Category.ANNOTATION, Category.OPERATOR):
        marked = [w for w in ranges(trace, "ProfilerStep#*", category) if w.step]
        if marked:
            return tuple(marked)
    return ()


def ranges(trace: Trace, pattern: str, category: Category) -> tuple[TraceWindow, ...]:
    """Return windows of matching ranges; one on several streams is their hull, by its id or the number of a step."""
    wanted = {i for i, name in enumerate(trace.names) if fnmatchcase(name, pattern) or name == pattern}
    rows = np.flatnonzero((trace.category == category) & np.isin(trace.name, list(wanted)))
    on_host = category != Category.GPU_ANNOTATION
    hulls: dict[tuple[str, int], TraceWindow] = {}
    latest, taken = dict[str, int](), set[tuple[int, int]]()
    for row in rows[np.argsort(trace.start[rows], kind="stable")].tolist():
        name, start, end = trace.names[trace.name[row]], int(trace.start[row]), int(trace.end[row])
        step, instance = _STEP.match(name), int(trace.external[row])
        if step:
            instance = 0
        elif instance <= 0:  # no id: a range of the host is an instance, and so is what overlaps on streams of the GPU
            hull, last = None if on_host else hulls.get((name, latest.get(name, 0))), latest.get(name, 0)
            joins = hull and start < hull.end and (last, int(trace.place[row])) not in taken  # one range a stream
            latest[name] = instance = last if joins else -1 - row
            taken.add((instance, int(trace.place[row])))
        before = hulls.get((name, instance))
        low, high = (min(before.start, start), max(before.end, end)) if before else (start, end)
        number = step.group(1) if step else ""
        hulls[name, instance] = TraceWindow(label=name, start=low, end=high, step=number, on_host=on_host)
    return tuple(hulls.values())


def parse_window(trace: Trace, text: str) -> tuple[TraceWindow, ...]:
    """Return the windows of an option: ``steps``, ``step=3``, ``annotation=NAME`` or ``2ms..5ms``."""
    text = text.strip()
    if text in {"", "whole"}:
        return ()
    ranged = _RANGE.match(text)
    if ranged:
        low, unit, high, end_unit = ranged.groups()
        start, end = float(low) * TIME_UNITS[unit or end_unit], float(high) * TIME_UNITS[end_unit]
        if end <= start:
            raise PerfgateError("trace-option", f"the window {text!r} ends before it starts")
        return (TraceWindow(label=f"from {text}", start=round(start), end=round(end)),)
    kind, _, name = text.partition("=")
    windows: tuple[TraceWindow, ...]
    if kind in {"steps", "step"}:
        windows = tuple(w for w in steps(trace) if not name or fnmatchcase(w.step, name))
    else:
        name = name if kind == "annotation" else text
        windows = ranges(trace, name, Category.GPU_ANNOTATION) or ranges(trace, name, Category.ANNOTATION)
    if not windows:
        raise PerfgateError(
            "trace-window", f"no step or annotation fits {text!r}", place=trace.path, fix=_ranges(trace)
        )
    return windows


def _ranges(trace: Trace) -> str:
    rows = np.flatnonzero((trace.category == Category.ANNOTATION) | (trace.category == Category.GPU_ANNOTATION))
    names = sorted({trace.names[n] for n in np.unique(trace.name[rows]).tolist()})[:8]
    return (
        f"the trace has: {', '.join(names)}" if names else "the trace has no annotations; use a range such as 2ms..5ms"
    )
