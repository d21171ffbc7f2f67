"""Values of an Nsight Systems export: what was run where and when, as columns, and how to read it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pytest_perfgate.model.values import array_value, value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


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
    """(table, rows of it without a start or an end): they are in no figure."""


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
    start, end, pid, device, stream, correlation, name = columns
    return Activity(start=start, end=end, pid=pid, device=device, stream=stream, correlation=correlation, name=name)


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
        columns = (self.start[kept], self.end[kept], self.tid[kept], self.text[kept])
        start, end, tid, text = columns
        return Ranges(start=start, end=end, tid=tid, text=text, texts=self.texts)


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
        """Names with namespaces, among them those of kernels whose ``name`` elsewhere is the short one."""

    def kernels(self, low: int, high: int, whole: Collection[int] = ()) -> Activity:
        """Kernels that touch the span; those whose full name is one of ``whole`` go by it."""

    def copies(self, low: int, high: int) -> Activity:
        """Copies and memory sets that touch the span; ``name`` is 0 for a copy and 1 for a set."""

    def calls(self, first: int, last: int) -> Calls:
        """Runtime calls with a correlation in the closed range."""

    def names(self, ids: Sequence[int]) -> Mapping[int, str]: ...

    def kernel_totals(self, low: int, high: int, whole: Collection[int] = ()) -> tuple[KernelTotal, ...]:
        """Totals of kernels that start in the span."""

    def api_totals(self, spans: Mapping[int, tuple[int, int]], like: str = "") -> tuple[ApiTotal, ...]:
        """Host time per call, each process's clipped to its own span; only of calls with this word in their name."""


class NsysReader(Protocol):
    """Opens an export, or exports a report first."""

    def __call__(self, path: Path) -> NsysExport: ...


@value
class Scrubbed:
    """What a clean copy of an export lacks."""

    path: str
    out: str
    tables: tuple[str, ...]
    strings: int = 0
    """Texts taken out of the table of strings: nothing that stays points to them."""


class Scrub(Protocol):
    """Writes a clean copy of an export."""

    def __call__(self, path: Path, out: Path) -> Scrubbed: ...


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
