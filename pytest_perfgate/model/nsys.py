"""Columns of an Nsight Systems export and the job they belong to."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pytest_perfgate.model.values import array_value, value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

TimedCalls = tuple["Ints", "Ints", "Ints"]
"""(process, start, end) of calls."""


SQLITE = b"SQLite format 3\0"
"""How an export begins."""

REPORTS = (".nsys-rep", ".qdrep")
"""How reports are called, of which an export is made."""


def pid_of(thread: Ints) -> Ints:
    """The process id inside a ``globalTid`` or ``globalPid``, as NVIDIA's manual prescribes."""
    return (thread >> 24) & 0xFFFFFF


@value
class ExportFacts:
    """Where an export comes from and what it holds, by count of rows."""

    path: str
    product: str = ""
    schema: str = ""
    gpus: tuple[tuple[int, str], ...] = ()
    """(device, name); empty when the export does not say."""
    tables: tuple[str, ...] = ()
    """Tables of interest that have rows."""
    foreign: int = 0
    """Strings that are not UTF-8, seen so far."""
    graphs: int = 0
    """Launches of CUDA graphs whose kernels were not recorded."""
    lacking: tuple[str, ...] = ()
    """Columns that figures need and the export does not have, as ``TABLE.column``."""
    untimed: tuple[tuple[str, int], ...] = ()
    """(table, rows of it without a start or an end, or longer than a day)."""


@array_value
class Activity:
    """What ran on devices, one row each; every column has the same length."""

    start: Ints
    end: Ints
    pid: Ints
    device: Ints
    stream: Ints
    correlation: Ints
    name: Ints
    """Index into the export's names, or -1."""

    def __len__(self) -> int:
        return len(self.start)

    def columns(self) -> tuple[Ints, ...]:
        return (self.start, self.end, self.pid, self.device, self.stream, self.correlation, self.name)

    def where(self, kept: NDArray[np.bool_] | Ints) -> Activity:
        return activity([column[kept] for column in self.columns()])


def activity(columns: Sequence[Ints]) -> Activity:
    """Rows of what ran from their seven columns."""
    names = ("start", "end", "pid", "device", "stream", "correlation", "name")
    return Activity(**dict(zip(names, columns, strict=True)))


_STREAM = 32


def in_context(stream: Ints, context: Ints) -> Ints:
    """Streams of several contexts told apart: each context numbers its own from the same start."""
    return (context << _STREAM) | stream


def stream_name(stream: int) -> str:
    """A stream's number, and its context's where a process has several on one device."""
    number, context = stream & ((1 << _STREAM) - 1), stream >> _STREAM
    return f"{number} (context {context})" if context else str(number)


OPEN = 1 << 62
"""The end of a range that was still open when the capture stopped."""


@array_value
class Ranges:
    """NVTX ranges, in order of neither time nor thread."""

    start: Ints
    end: Ints
    tid: Ints
    """The thread as nsys counts it: ``pid_of`` names its process."""
    text: Ints
    """Index into ``texts``."""
    texts: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.start)

    def where(self, kept: NDArray[np.bool_] | Ints) -> Ranges:
        return replace(self, start=self.start[kept], end=self.end[kept], tid=self.tid[kept], text=self.text[kept])


@array_value
class Calls:
    """Calls of the runtime on the host."""

    start: Ints
    tid: Ints
    correlation: Ints


@value
class KernelTotal:
    """All launches of one kernel on one device by one process."""

    pid: int
    device: int
    name: str
    count: int
    total_ns: int
    least_ns: int
    most_ns: int


@value
class ApiTotal:
    """Time a process spent in one call of the runtime, summed over its threads."""

    pid: int
    name: str
    count: int
    total_ns: int


@value
class Extent:
    """First start and last end of a process's kernels on one device."""

    pid: int
    device: int
    first: int
    last: int
    kernels: int


class NsysExport(Protocol):
    """An open export: aggregates where an aggregate answers, columns of a span elsewhere."""

    def facts(self) -> ExportFacts: ...

    def processes(self) -> tuple[tuple[int, int], ...]:
        """(pid, device) of everyone who ran a kernel."""

    def extents(self) -> tuple[Extent, ...]: ...

    def threads(self) -> tuple[tuple[int, str], ...]:
        """(pid, name) of every thread that has one."""

    def ranges(self) -> Ranges: ...

    def full_names(self) -> Mapping[int, str]:
        """Names with namespaces, also of kernels that go by their short ones."""

    def kernels(self, low: int, high: int, whole: Collection[int] = ()) -> Activity:
        """Kernels that touch the span; those whose full name is one of ``whole`` go by it."""

    def copies(self, low: int, high: int) -> Activity:
        """Copies and memory sets that touch the span; ``name`` is 0 for a copy and 1 for a set."""

    def calls(self, first: int, last: int) -> Calls:
        """Runtime calls with a correlation in the closed range."""

    def names(self, ids: Sequence[int]) -> Mapping[int, str]: ...

    def kernel_totals(self, low: int, high: int, whole: Collection[int] = ()) -> tuple[KernelTotal, ...]:
        """Totals of kernels that start in the span."""

    def timed(self, low: int, high: int, kinds: Sequence[re.Pattern[str]]) -> tuple[TimedCalls, ...]:
        """Calls in the span for each pattern that finds their names."""

    def api_totals(self, spans: Mapping[int, tuple[int, int]]) -> tuple[ApiTotal, ...]:
        """Host time per call, each process's clipped to its own span."""


NsysReader = Callable[[Path], NsysExport]
"""Opens an export, or exports a report first."""


@value
class Preset:
    """How a program names its ranges; all patterns are regular expressions, searched without case."""

    name: str
    anchors: tuple[str, ...]
    """The window is the median range that matches the first of these that matches any."""
    stage: str
    """The last match in the innermost range that has one names the stage."""
    purposes: tuple[tuple[str, str], ...]
    """(pattern, purpose of a communication stream)."""
    thread: str = r"^MPI Rank (\d+)$"
    """How a thread is called that names its process's rank, where no range does."""
    rank: str = r"\brank\s*[=:]\s*(\d+)"
    mesh: str = r"\b(pp|dp|cp|ep|tp|sp)\s*[=:]\s*(\d+)\s*/\s*(\d+)"
    settings: str = r"\b(mbs|seq)\s*[=:]\s*(\d+)"
    communication: tuple[str, ...] = ()
    """Kernel names that communicate, beside the known ones."""


COMPUTE, COMMUNICATION = "compute", "communication"

MIXED, UNKNOWN = "mixed", "unknown"


@value
class Reading:
    """How the exports of a job are read: what the options came to."""

    preset: Preset
    anchor: str = ""
    """The user's own; one that matches nothing is an error."""
    span: tuple[int, int] | None = None
    """``--start`` and ``--end`` in nanoseconds."""
    original: bool = False
    """As PithTrain's own scripts: kernels wholly inside the window, summed per kernel."""
    ranks: tuple[str, ...] = ()
    """The ranks to look at; none named are all."""


@value
class Rank:
    """One process on one device, by the name its job gives it."""

    name: str
    pid: int
    device: int
    file: int = 0
    """Which of the files it is from."""
    mesh: tuple[tuple[str, int, int], ...] = ()
    """(dimension, coordinate, size)."""
    settings: tuple[tuple[str, int], ...] = ()
    label: str = ""
    """The range or the thread that named it; empty when the order of devices did."""


AS_GIVEN = "as given"
"""How a window was chosen whose start and end a person named."""


@value
class Window:
    """The span that every figure is from, and how it was chosen."""

    start: int
    end: int
    how: str
    covers: float | None = field(default=None, compare=False)
    """The part of the rank's capture that all ranges like this one cover, or the window that was given."""
    apart: int | None = field(default=None, compare=False)
    """From the start of one such range to the start of the next, in the median."""

    @property
    def length(self) -> int:
        return self.end - self.start

    def __str__(self) -> str:
        return f"{self.start}..{self.end}"


@array_value
class Lane:
    """One rank inside its window: kernels clipped to it, each with what is known about it."""

    rank: Rank
    window: Window
    kernels: Activity
    names: tuple[str, ...]
    """By the index in ``kernels.name``."""
    talks: NDArray[np.bool_]
    """Whether a kernel is communication."""
    stage: Ints
    """Index into ``stages``, or -1."""
    stages: tuple[str, ...]
    purpose: Ints
    """Index into ``purposes``, or -1."""
    purposes: tuple[str, ...]
    linked: NDArray[np.bool_]
    """Whether the launch on the host was found."""
    copies: Activity
    cut: int = 0
    """Kernel time outside the window that clipping took away, or of kernels left out."""
    straddlers: int = 0
    faults: tuple[str, ...] = ()
    """What makes its kernels none that a device ran."""
    unnamed: int = 0
    """Kernels in the window whose name the table of strings does not hold."""


@value
class StreamRow:
    """One stream that is active in the window."""

    stream: int
    kind: str
    purpose: str
    kernels: int
    busy_ns: int
    """By union."""
    barrier_ns: int
    """Communication on a stream that computes."""
    detail: str = ""
    """What the kernels said where they disagree."""


@value
class OverlapRow:
    """Communication of one (rank, stage), or of one purpose outside the stages."""

    stage: str
    outside: bool
    kernels: int
    total_ns: int
    """By union."""
    exposed_ns: int
    total_sum: int
    exposed_sum: int
    least: float
    most: float

    @property
    def overlap(self) -> float:
        return 1 - self.exposed_ns / self.total_ns if self.total_ns else float("nan")

    @property
    def overlap_sum(self) -> float:
        return 1 - self.exposed_sum / self.total_sum if self.total_sum else float("nan")


@value
class TimeRow:
    """What a rank's device did with its window; the parts sum to it."""

    computation_ns: int
    communication_ns: int
    exposed_comm_ns: int
    exposed_copies_ns: int
    busy_ns: int
    idle_ns: int
    window_ns: int


@array_value
class RankResult:
    """Everything about one rank."""

    lane: Lane
    streams: tuple[StreamRow, ...]
    overlaps: tuple[OverlapRow, ...]
    whole: OverlapRow | None
    """All communication of the window; ``None`` when there is none."""
    time: TimeRow
    compute: tuple[tuple[str, int], ...]
    """(stage, compute by union)."""
    launch_ns: int | None = None
    """How long the host launched, by union over its threads; ``None`` where no launch was recorded."""
    sync_ns: int | None = None
    """How long the device was idle behind calls that wait for it; ``None`` where no call was recorded."""

    @property
    def rank(self) -> Rank:
        return self.lane.rank


@array_value
class Job:
    """All ranks of one job, from one file or several."""

    reading: Reading
    files: tuple[ExportFacts, ...]
    ranks: tuple[RankResult, ...]
    notes: tuple[str, ...] = ()
    """What was left out, and why."""
