"""What kind of work a kernel, a copy or a call of the host is, by its name and its category."""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pytest_perfgate.core.analysis import intervals
from pytest_perfgate.model.profiles import Category, Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

LAUNCHES = re.compile("launch", re.IGNORECASE)
"""Calls that launch something."""

BLOCKS = re.compile(r"^(?:cuda|hip|cu)(?:Device|Stream|Event|Ctx)Synchronize|^(?:cuda|hip)Memcpy(?!.*Async)")
"""Calls that return when the device has done its work; a copy without Async is one of them."""

PATTERNS = (
    r"(?i:nccl|rccl|cross_device_reduce)",
    r"(^|::|\s)(deep_ep|dpsk::ep)::.*(dispatch|combine|notify)",
    r"(?i:\bnvshmem|(^|::)multimem|nvshmemi?_)",
)
"""Case matters in the second: a bare ``dispatch`` would take CUB's ``DispatchReduceByKey``."""

MARKS = ("nccl", "rccl", "cross_device_reduce", "deep_ep", "dpsk::ep", "nvshmem", "multimem")
"""In lower case, what a name has in it before one of the patterns can find it: told a hundred times sooner."""


def communication(extra: Sequence[str] = ()) -> re.Pattern[str]:
    """One pattern that finds communication kernels, with the user's own beside the known ones."""
    return re.compile("|".join(f"(?:{pattern})" for pattern in (*PATTERNS, *extra)))


class Kind(enum.IntEnum):
    """Classes of GPU work; the value is what the column holds."""

    COMPUTE = 0
    COMMUNICATION = 1
    MEMCPY = 2
    MEMSET = 3


WORDS = {Kind.COMPUTE: "compute", Kind.COMMUNICATION: "communication", Kind.MEMCPY: "memcpy", Kind.MEMSET: "memset"}

_COPY = re.compile(r"^MEMORY_COPY_|__amd_rocclr_copyBuffer|CopyDeviceToHost|CopyHostToDevice|CopyDeviceToDevice")

_FILL = re.compile(r"fillBuffer|^MEMORY_FILL")


def gpu_rows(trace: Trace) -> NDArray[np.int64]:
    """Rows of kernels, copies and fills, in the order of the file; none where not one of them took time."""
    rows = np.flatnonzero((trace.category >= Category.KERNEL) & (trace.category <= Category.MEMSET))
    return rows if (trace.end[rows] > trace.start[rows]).any() else rows[:0]


def kinds(
    trace: Trace, rows: NDArray[np.int64], extra: Sequence[str] = (), sent: NDArray[np.bool_] | None = None
) -> NDArray[np.uint8]:
    """The class of each of these GPU rows; ``extra`` patterns and ``sent``, one a row, find more communication."""
    by_name = np.zeros(len(trace.names), np.uint8)
    pattern = communication(extra)
    for name in intervals.distinct(trace.name[rows]):
        by_name[name] = _kind(trace.names[name], pattern)
    found: NDArray[np.uint8] = by_name[trace.name[rows]]
    if sent is not None:
        found[sent & (found == Kind.COMPUTE)] = Kind.COMMUNICATION
    category = trace.category[rows]
    found[category == Category.MEMCPY] = Kind.MEMCPY
    found[category == Category.MEMSET] = Kind.MEMSET
    return found


def _kind(name: str, pattern: re.Pattern[str]) -> Kind:
    if pattern.search(name):
        return Kind.COMMUNICATION
    if _COPY.search(name):
        return Kind.MEMCPY
    return Kind.MEMSET if _FILL.search(name) else Kind.COMPUTE
