"""Columns of an Nsight Systems export, and the job they belong to."""

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


def pid_of(thread: Ints) -> Ints:
    """Return the process id inside a ``globalTid`` or ``globalPid``, as NVIDIA's manual specifies."""
    return (thread >> 24) & 0xFFFFFF


@value
class ExportFacts:
    """The origin of an export and its content, by count of rows."""

    path: str
    product: str = ""
    schema: str = ""
    gpus: tuple[tuple[int, str], ...] = ()
    """(device, name); empty if the export has none."""
    tables: tuple[str, ...] = ()
    """Tables of interest that have rows."""
    foreign: int = 0
    """Strings so far that are not UTF-8."""
    graphs: int = 0
    """Launches of CUDA graphs whose kernels were not recorded."""
    lacking: tuple[str, ...] = ()
    """Columns that figures need and the export lacks, as ``TABLE.column``."""
    untimed: tuple[tuple[str, int], ...] = ()
    """(table, number of its rows without a start or an end, or longer than a day)."""


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

    def where(self, rows: NDArray[np.bool_] | Ints) -> Activity:
        return activity([column[rows] for column in self.columns()])


def activity(columns: Sequence[Ints]) -> Activity:
    """Return rows of activity from their seven columns."""
    names = ("start", "end", "pid", "device", "stream", "correlation", "name")
    return Activity(**dict(zip(names, columns, strict=True)))


_STREAM = 32


def in_context(stream: Ints, context: Ints) -> Ints:
    """Return streams with distinct numbers across contexts, each of which counts from the same start."""
    return (context << _STREAM) | stream


def stream_name(stream: int) -> str:
    """Return a stream's number, and its context's if a process has several on one device."""
    number, context = stream & ((1 << _STREAM) - 1), stream >> _STREAM
    return f"{number} (context {context})" if context else str(number)


OPEN = 1 << 62
"""The end of a range that was still open when the capture stopped."""


@array_value
class Ranges:
    """NVTX ranges, sorted neither by time nor by thread."""

    start: Ints
    end: Ints
    tid: Ints
    """The thread as nsys numbers it: ``pid_of`` returns its process."""
    text: Ints
    """Index into ``texts``."""
    texts: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.start)

    def where(self, rows: NDArray[np.bool_] | Ints) -> Ranges:
        return replace(self, start=self.start[rows], end=self.end[rows], tid=self.tid[rows], text=self.text[rows])


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
    """An open export: totals by SQL, and columns of a span."""

    def facts(self) -> ExportFacts: ...

    def processes(self) -> tuple[tuple[int, int], ...]:
        """Return (pid, device) of all that ran a kernel."""

    def extents(self) -> tuple[Extent, ...]: ...

    def threads(self) -> tuple[tuple[int, str], ...]:
        """Return (pid, name) of every thread that has one."""

    def ranges(self) -> Ranges: ...

    def full_names(self) -> Mapping[int, str]:
        """Return names with namespaces, also of kernels that are listed by short names."""

    def kernels(self, low: int, high: int, whole: Collection[int] = ()) -> Activity:
        """Return kernels that touch the span; those with a full name in ``whole`` have it."""

    def copies(self, low: int, high: int) -> Activity:
        """Return copies and memory sets that touch the span; ``name`` is 0 for a copy and 1 for a set."""

    def calls(self, first: int, last: int) -> Calls:
        """Return runtime calls with a correlation in the closed range."""

    def names(self, ids: Sequence[int]) -> Mapping[int, str]: ...

    def kernel_totals(self, low: int, high: int, whole: Collection[int] = ()) -> tuple[KernelTotal, ...]:
        """Return totals of kernels that start in the span."""

    def timed(self, low: int, high: int, kinds: Sequence[re.Pattern[str]]) -> tuple[TimedCalls, ...]:
        """Return the calls in the span for each pattern of names."""

    def api_totals(self, spans: Mapping[int, tuple[int, int]]) -> tuple[ApiTotal, ...]:
        """Return host time by call, with each process's cut to its own span."""


NsysReader = Callable[[Path], NsysExport]
"""Opens an export, or exports a report first."""


@value
class Preset:
    """How a program names its ranges; all patterns are regular expressions, searched without case."""

    name: str
    anchors: tuple[str, ...]
    """The window is the median range matching the first of these patterns that matches any."""
    stage: str
    """The last match in the innermost range that has one names the stage."""
    purposes: tuple[tuple[str, str], ...]
    """(pattern, purpose of a communication stream)."""
    thread: str = r"^MPI Rank (\d+)$"
    """Names of threads that give their process's rank, if no range does."""
    rank: str = r"\brank\s*[=:]\s*(\d+)"
    mesh: str = r"\b(pp|dp|cp|ep|tp|sp)\s*[=:]\s*(\d+)\s*/\s*(\d+)"
    settings: str = r"\b(mbs|seq)\s*[=:]\s*(\d+)"
    communication: tuple[str, ...] = ()
    """Kernel names that communicate, besides the known ones."""


COMPUTE, COMMUNICATION = "compute", "communication"

MIXED, UNKNOWN = "mixed", "unknown"


@value
class ReadOptions:
    """How the exports of a job are read, by the options."""

    preset: Preset
    anchor: str = ""
    """The user's own patterns; one that matches nothing is an error."""
    span: tuple[int, int] | None = None
    """``--start`` and ``--end`` in nanoseconds."""
    original: bool = False
    """As PithTrain's own scripts: kernels wholly inside the window, summed per kernel."""
    ranks: tuple[str, ...] = ()
    """The ranks to analyse; empty for all."""


@value
class Rank:
    """One process on one device, by its name in the job."""

    name: str
    pid: int
    device: int
    file: int = 0
    """The number of its file."""
    mesh: tuple[tuple[str, int, int], ...] = ()
    """(dimension, coordinate, size)."""
    settings: tuple[tuple[str, int], ...] = ()
    label: str = ""
    """The range or the thread that named it; "" if it was numbered by device."""


AS_GIVEN = "as given"
"""How a window with a given start and end was chosen."""


@value
class Window:
    """The span of every figure, and how it was chosen."""

    start: int
    end: int
    how: str
    covers: float | None = field(default=None, compare=False)
    """The part of the rank's capture that all ranges like this one cover, or the given window."""
    between_starts: int | None = field(default=None, compare=False)
    """The median time from the start of one such range to the start of the next."""

    @property
    def length(self) -> int:
        return self.end - self.start

    def __str__(self) -> str:
        return f"{self.start}..{self.end}"


@array_value
class RankLane:
    """One rank inside its window: kernels clipped to it, with what is known of each."""

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
    """Kernel time that clipping cut off outside of the window, or of kernels left out."""
    straddlers: int = 0
    faults: tuple[str, ...] = ()
    """Faults of kernels that cannot have run on a device."""
    unnamed: int = 0
    """Kernels in the window whose name is missing from the table of strings."""


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
    """The purposes of its kernels, if they disagree."""


@value
class OverlapRow:
    """Communication of one (rank, stage), or of one purpose outside of the stages."""

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
    def lasts(self) -> bool:
        """Whether communication took any time: otherwise no share of it is covered or exposed."""
        return self.total_ns > 0

    @property
    def overlap(self) -> float:
        return 1 - self.exposed_ns / self.total_ns if self.total_ns else float("nan")

    @property
    def overlap_sum(self) -> float:
        return 1 - self.exposed_sum / self.total_sum if self.total_sum else float("nan")


@value
class TimeRow:
    """How a rank's device spent its window; the parts sum to it."""

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

    lane: RankLane
    streams: tuple[StreamRow, ...]
    overlaps: tuple[OverlapRow, ...]
    comm: OverlapRow | None
    """All communication of the window; ``None`` when there is none."""
    time: TimeRow
    compute: tuple[tuple[str, int], ...]
    """(stage, compute by union)."""
    launch_ns: int | None = None
    """How long the host launched, by union over its threads; ``None`` if no launch was recorded."""
    sync_ns: int | None = None
    sync_count: int | None = None
    """How long the device idled after calls that wait for it; ``None`` if no call was recorded."""

    @property
    def rank(self) -> Rank:
        return self.lane.rank


@array_value
class Job:
    """All ranks of one job, from one file or several."""

    reading: ReadOptions
    files: tuple[ExportFacts, ...]
    ranks: tuple[RankResult, ...]
    notes: tuple[str, ...] = ()
    """What was left out, and why."""
