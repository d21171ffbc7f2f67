"""Intervals of work on a device: their kinds, and unions, intersections and differences as sorted columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_perfgate.model.profiles import Category, Kind, Trace
from pytest_perfgate.model.values import regex

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Spans = tuple[Ints, Ints]
    """Starts and ends, of equal length."""


def union(starts: Ints, ends: Ints) -> Spans:
    """Return the disjoint, sorted intervals that cover the same points, without empty ones."""
    lasting = ends > starts
    starts, ends = starts[lasting], ends[lasting]
    if not len(starts):
        return starts, ends
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    reach = np.maximum.accumulate(ends)
    opens = np.empty(len(starts), dtype=bool)
    opens[0] = True
    np.greater(starts[1:], reach[:-1], out=opens[1:])
    closes = np.append(opens[1:], True)
    return starts[opens], reach[closes]


def length(spans: Spans) -> int:
    """Return the total length of disjoint intervals."""
    return int(np.sum(spans[1] - spans[0]))


def distinct(column: NDArray[np.signedinteger[Any]]) -> list[int]:
    """Return sorted distinct values; np.unique would first import masked arrays."""
    values: list[int] = np.unique(column, return_index=True)[0].tolist()
    return values


def covered(starts: Ints, ends: Ints) -> int:
    return length(union(starts, ends))


def middle(numbers: NDArray[Any]) -> float:
    """Return the median; numpy's imports masked arrays, which takes longer than reading small traces."""
    ordered, half = np.sort(numbers), len(numbers) // 2
    return float(ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2)


def joined_spans(a: Spans, b: Spans) -> Spans:
    """Return the union of two sets of intervals."""
    starts, ends = (np.concatenate(edges) for edges in zip(a, b))
    return union(starts, ends)


def shared(a: Spans, b: Spans) -> int:
    """Return the length of the intersection of two disjoint, sorted sets."""
    return length(a) + length(b) - length(joined_spans(a, b))


def without(spans: Spans, cover: Spans) -> Spans:
    """Return the part of ``spans`` that ``cover`` leaves; both are disjoint and sorted."""
    (starts, ends), (cover_starts, cover_ends) = spans, cover
    if not len(starts) or not len(cover_starts):
        return spans
    low, high = min(starts[0], cover_starts[0]) - 1, max(ends[-1], cover_ends[-1]) + 1
    gaps = (np.append(np.int64(low), cover_ends), np.append(cover_starts, np.int64(high)))
    return crossed(spans, gaps)


def crossed(a: Spans, b: Spans) -> Spans:
    """Return the intersection of two disjoint, sorted sets, as intervals."""
    (a_starts, a_ends), (b_starts, b_ends) = a, b
    first = np.searchsorted(b_ends, a_starts, side="right")  # each of a meets those of b from first to before last
    last = np.searchsorted(b_starts, a_ends, side="left")
    counts = np.maximum(last - first, 0)
    of_a = np.repeat(np.arange(len(a_starts)), counts)
    offsets = np.arange(len(of_a)) - np.repeat(np.cumsum(counts) - counts, counts)
    of_b = np.repeat(first, counts) + offsets
    starts = np.maximum(a_starts[of_a], b_starts[of_b])
    ends = np.minimum(a_ends[of_a], b_ends[of_b])
    lasting = ends > starts
    return starts[lasting], ends[lasting]


def covered_by(starts: Ints, ends: Ints, cover: Spans) -> Ints:
    """Return how much of each interval a disjoint, sorted set covers."""
    edges = np.empty(2 * len(cover[0]), dtype=np.int64)
    edges[0::2], edges[1::2] = cover
    steps = np.zeros(len(edges) + 1, dtype=np.int64)
    np.cumsum(cover[1] - cover[0], out=steps[2::2])
    steps[1::2] = steps[0:-1:2]

    def before(points: Ints) -> Ints:
        """Return the covered length left of each point."""
        at = np.searchsorted(edges, points, side="right")
        inside = at % 2 == 1
        opened = np.where(inside, edges[np.maximum(at - 1, 0)] if len(edges) else 0, points)
        done: Ints = steps[at] + np.where(inside, points - opened, 0)
        return done

    result: Ints = before(ends) - before(starts)
    return result


def idle_after_waits(busy: Spans, waits: tuple[Ints, Ints], edges: tuple[int, int]) -> int:
    """Return how long a device idled after calls that wait for it, from a wait's start until the next work."""
    # A gap counts if a wait ends in it; a wait that ends while the device works has cost nothing.
    begun, done = waits
    if not len(done):
        return 0
    starts, ends = np.append(edges[0], busy[1]), np.append(busy[0], edges[1])
    order = np.argsort(done, kind="stable")
    first = np.searchsorted(done[order], starts, side="left")
    behind = np.searchsorted(done[order], ends, side="right")
    total = 0
    for gap in np.flatnonzero((behind > first) & (ends > starts)).tolist():
        earliest = int(begun[order[first[gap] : behind[gap]]].min())
        total += max(int(ends[gap]) - max(int(starts[gap]), earliest), 0)
    return total


TRAIN = 20
"""The least kernels of a train."""


def train(starts: Ints, ends: Ints, close_ns: int, window_ns: int) -> float | None:
    """Return the length up to which intervals, with close pauses behind them, fill half of a window; else None."""
    if len(starts) < TRAIN:
        return None
    order = np.argsort(starts, kind="stable")
    pauses = np.append(np.maximum(starts[order][1:] - np.maximum.accumulate(ends[order])[:-1], 0), 0)
    lengths = (ends - starts)[order]
    at_once = covered(starts, ends) / max(int(lengths.sum()), 1)
    spent = lengths * at_once + np.where(pauses <= close_ns, pauses, 0)
    by_length = np.argsort(lengths, kind="stable")
    half = int(np.searchsorted(np.cumsum(spent[by_length]), window_ns / 2))
    return float(lengths[by_length[half]]) if half < len(lengths) else None


LAUNCHES = regex("launch|invokeKernel|^runFunction", re.IGNORECASE)
"""Calls that launch work; MTIA's is ``runFunction - job_prep_and_submit_for_execution``, MLU's ``cnInvokeKernel``."""

BLOCKS = regex(r"^(?:cuda|hip|musa|cu)(?:Device|Stream|Event|Ctx)Synchronize|^(?:cuda|hip|musa)Memcpy(?!.*Async)")
"""Calls that return when the device has done its work, including copies without Async."""

PATTERNS = (
    r"(?i:nccl|rccl|cross_device_reduce)",
    r"(^|::|\s)(deep_ep|dpsk::ep)::.*(dispatch|combine|notify)",
    r"(?i:\bnvshmem|(^|::)multimem|nvshmemi?_)",
)
"""The second is case-sensitive: a plain ``dispatch`` would match CUB's ``DispatchReduceByKey``."""

MARKS = ("nccl", "rccl", "cross_device_reduce", "deep_ep", "dpsk::ep", "nvshmem", "multimem")
"""In lower case, parts of every name that the patterns match; testing them first is a hundred times faster."""


def communication(extra: Sequence[str] = ()) -> re.Pattern[str]:
    """Return one pattern for communication kernels, with the user's own beside the known ones."""
    return re.compile("|".join(f"(?:{pattern})" for pattern in (*PATTERNS, *extra)))


_COPY = regex(r"^MEMORY_COPY_|__amd_rocclr_copyBuffer|CopyDeviceToHost|CopyHostToDevice|CopyDeviceToDevice")

_FILL = regex(r"fillBuffer|^MEMORY_FILL")


def gpu_rows(trace: Trace) -> NDArray[np.int64]:
    """Return the rows of kernels, copies and fills in the order of the file; none if none of them took time."""
    rows = np.flatnonzero((trace.category >= Category.KERNEL) & (trace.category <= Category.MEMSET))
    return rows if (trace.end[rows] > trace.start[rows]).any() else rows[:0]


def kinds(
    trace: Trace, rows: NDArray[np.int64], extra: Sequence[str] = (), sent: NDArray[np.bool_] | None = None
) -> NDArray[np.uint8]:
    """Return the class of each of these GPU rows; ``extra`` patterns and ``sent`` mark more communication."""
    by_name = np.zeros(len(trace.names), np.uint8)
    pattern = communication(extra)
    for name in distinct(trace.name[rows]):
        by_name[name] = _kind(trace.names[name], pattern)
    classes: NDArray[np.uint8] = by_name[trace.name[rows]]
    if sent is not None:
        classes[sent & (classes == Kind.COMPUTE)] = Kind.COMMUNICATION
    category = trace.category[rows]
    classes[category == Category.MEMCPY] = Kind.MEMCPY
    classes[category == Category.MEMSET] = Kind.MEMSET
    return classes


def _kind(name: str, pattern: re.Pattern[str]) -> Kind:
    if pattern.search(name):
        return Kind.COMMUNICATION
    if _COPY.search(name):
        return Kind.MEMCPY
    return Kind.MEMSET if _FILL.search(name) else Kind.COMPUTE
