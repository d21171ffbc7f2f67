"""Traces, kernels and other tools' benchmarks as columns."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Union

from pytest_perfgate.model.metric import Finding, Problem
from pytest_perfgate.model.values import Dimension, array_value, value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

    Small = NDArray[np.int32]

    Bytes = NDArray[np.uint8]


SQLITE = b"SQLite format 3\0"
"""The first bytes of an Nsight Systems export."""

REPORTS = (".nsys-rep", ".qdrep")
"""The endings of its reports, from which an export is made."""


class Category(enum.IntEnum):
    """The category of a row; the value is what the column holds."""

    OTHER = 0
    OPERATOR = 1
    ANNOTATION = 2
    PYTHON = 3
    RUNTIME = 4
    KERNEL = 5
    MEMCPY = 6
    MEMSET = 7
    GPU_ANNOTATION = 8


GPU = (Category.KERNEL, Category.MEMCPY, Category.MEMSET)

HOST = (Category.OPERATOR, Category.ANNOTATION, Category.PYTHON, Category.RUNTIME)


class Kind(enum.IntEnum):
    """Classes of GPU work; the value is what the column holds."""

    COMPUTE = 0
    COMMUNICATION = 1
    MEMCPY = 2
    MEMSET = 3


@value
class Thread:
    """The thread of host rows."""

    process: Union[int, str]
    thread: Union[int, str]
    rank: int | None = None
    process_name: str = ""
    process_label: str = ""
    name: str = ""


@value
class Queue:
    """The queue of GPU rows."""

    device: int
    stream: Union[int, str]
    rank: int | None = None


@value
class Message:
    """The profiler's record of a collective."""

    collective: str
    group: str = ""
    ranks: int | None = None
    sent: float | None = None
    """Bytes of the input of this rank."""
    received: float | None = None
    """Bytes of its output."""
    dtype: str = ""

    @property
    def size(self) -> float | None:
        """The larger of both, which is what bandwidths count: an all-gather's output, a reduce-scatter's input."""
        sizes = [size for size in (self.sent, self.received) if size is not None]
        return max(sizes) if sizes and (self.received is not None or "gather" not in self.collective) else None


@array_value
class Trace:
    """One file of one or more ranks. All columns have one length; -1 means not recorded."""

    path: str
    start: Ints
    end: Ints
    category: Bytes
    name: Small
    place: Small
    """Row of ``threads`` for host rows, of ``queues`` for GPU rows."""
    correlation: Ints
    external: Ints
    sequence: Ints
    size: Ints
    """Bytes of a copy or fill."""
    argument: Small
    """Row of ``arguments``."""
    index: Ints
    """The event's number in the file, counting every event of any kind."""
    names: tuple[str, ...]
    threads: tuple[Thread, ...]
    queues: tuple[Queue, ...]
    arguments: tuple[tuple[bytes, bytes, bytes, bytes], ...]
    """Dims, types, strides and concrete inputs as JSON, decoded on use."""
    messages: Mapping[int, Message]
    """By row."""
    rank: int | None
    world: int | None
    devices: tuple[str, ...]
    base_ns: int
    """The zero of relative times on the file's clock."""
    shapes: bool
    dropped: Mapping[str, int]
    """Events left out, by reason."""
    stamps: tuple[object, object] | None = None
    """Start and duration in the file's own microseconds, as floats, for compatibility."""
    flows: frozenset[int] = frozenset()
    """Correlations whose launch starts an arrow to the GPU."""
    events: int = 0
    """Every event of the file, of any kind."""
    frames: int = 0
    """Python frames that were skipped, since only call stacks need them."""
    guessed: tuple[int, ...] = ()
    """GPU rows whose duration was negative or overflowed: they end where the next one starts."""
    untimed: int = 0
    """GPU events left out because their duration is unknown."""
    device_memory: bool = False
    """Whether device memory was allocated or freed, so that a device exists even if its work was not recorded."""
    foreign: tuple[tuple[str, int], ...] = ()
    """Unknown categories with their numbers of events, which may be work of a device."""
    backend: str = ""
    """The backend of the job's collectives, from the header: ``nccl``, ``gloo``."""

    def __len__(self) -> int:
        return len(self.start)


@value
class Launch:
    """How a kernel was started: blocks, threads a block, and the shared memory the launch adds."""

    block: tuple[int, int, int]
    grid: tuple[int, int, int] = (0, 0, 0)
    """Zeros if only the block is known."""
    shared_dynamic: int = 0
    source: str = ""
    """The source of the figures: the report, a file beside the cubin, an option."""

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]


CODE_SUFFIXES = (".cubin", ".fatbin", ".o", ".so")
"""Suffixes of files in a folder that may hold machine code."""

SOURCE = ".cu"

PTXAS_LOG = b"\nptxas info"
"""The prefix of a line of ``ptxas -v``."""

FROM_CODE, FROM_LOG = "cubin", "ptxas"
"""The sources of resources: the machine code itself, and the log of its compiler."""


@value
class Resources:
    """What one thread and one block use, by the toolchain or the driver."""

    registers: int
    shared: int = 0
    """Static bytes a block."""
    stack: int = 0
    local: int = 0
    source: str = ""
    """The tool that reported it; tools differ on shared memory, so a baseline keeps to one."""
    unstated: tuple[str, ...] = ()
    """Which of ``shared``, ``stack`` and ``registers`` were not reported, so that their number means nothing."""


@array_value
class KernelCode:
    """The machine code of one kernel as columns; instruction ``i`` is at address ``16 * i``."""

    opcodes: tuple[str, ...]
    operands: tuple[str, ...]
    predicates: tuple[str, ...]
    controls: tuple[int, ...] = ()
    """21 bits each; empty if the words were not available."""
    words: bytes = b""
    """The machine code itself, if it was available."""
    compiler: str = ""
    """The ptxas that wrote it, if the file names it: code differs between versions."""

    def __len__(self) -> int:
        return len(self.opcodes)


@value
class Counter:
    """One metric of a profiler under its full name, in its given unit."""

    name: str
    value: float
    unit: str = ""


@value
class SourceLine:
    """A line of source or machine code with its samples."""

    place: str
    """``file.cu:42``; "" if the report does not have it."""
    text: str
    """"" if the report holds samples without code."""
    samples: float | None = None
    executed: float | None = None
    reason: str = ""
    """The leading stall reason."""
    offset: int = 0
    """Bytes from the start of the kernel."""
    ptx: str = ""


@array_value
class KernelFacts:
    """One kernel, or one launch of it, as one artifact shows it."""

    name: str
    arch: str
    """``sm_90`` or ``gfx942``; "" if the artifact does not have it."""
    source: str = ""
    """The file it is from."""
    device: str = ""
    index: int = 0
    """Position in the artifact, to distinguish launches of one kernel."""
    launch: Launch | None = None
    resources: Resources | None = None
    most_threads: int | None = None
    """Threads of a block, by ``__launch_bounds__``."""
    code: KernelCode | None = None
    counters: Mapping[str, Counter] = field(default_factory=dict)
    duration: float | None = None
    """Nanoseconds; None, never zero, if the instrument has none."""
    findings: tuple[Finding, ...] = ()
    """Results of the profiler's own rules."""
    lines: tuple[SourceLine, ...] = ()
    """Instructions that were sampled or counted, in the order of the code."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Texts of source files in the report."""
    executed: Mapping[str, float] = field(default_factory=dict)
    """Executed warp instructions, by opcode."""
    problems: tuple[Problem, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)


@array_value
class Disassembly:
    """A disassembler's output for one file, and the words it was printed from."""

    source: str
    arch: str
    listing: bytes
    """JSON of ``nvdisasm -json``."""
    words: Mapping[str, bytes]
    """Machine code by function name."""
    resources: Mapping[str, Resources]
    """The resources of each kernel; other functions are called by kernels."""
    launches: Mapping[str, Launch] = field(default_factory=dict)
    bounds: Mapping[str, int] = field(default_factory=dict)
    """Most threads a block by function, if the source states it."""
    left_out: tuple[str, ...] = ()
    """Architectures whose code in the same library is not read."""
    log: str = ""
    """The output of ``ptxas -v`` if that is the file: resources, and no machine code."""


@value
class BenchResult:
    """One benchmark of another tool's file."""

    name: str
    time: float | None
    """Nanoseconds of one call; ``None`` where the file has none."""
    statistic: str = "median"
    """The tool's summary of its samples: median, mean or minimum."""
    also: tuple[tuple[str, float], ...] = ()
    """Further (statistic, nanoseconds) of the file, for comparison with files that have another one."""
    scatter: float | None = None
    """Relative standard deviation within the process, if the file has it."""
    samples: int = 0
    device: str = ""
    rates: tuple[tuple[str, float | None, Dimension], ...] = ()
    """(metric, value, dimension) that the tool derived itself; ``None`` if it is not finite."""
    own: tuple[tuple[str, float | None, Dimension], ...] = ()
    """(name, value, dimension) of the user's own figures, as the file names them; ``None`` if it is not finite."""
    label: str = ""
    """A text that the user gave it."""
    skipped: str = ""
    """Why there is no time."""
    timed: bool = True
    """Whether it measures a time at all."""

    @property
    def family(self) -> str:
        """The name without arguments: benchmarks of one family have the same figures."""
        return re.split(r"[/\[]", self.name, maxsplit=1)[0]


@value
class BenchFile:
    """The results in one file of another benchmark tool."""

    tool: str
    results: tuple[BenchResult, ...]
    commit: str = ""
    when: str = ""
    machine: str = ""


BenchReader = Callable[[Path], BenchFile]


@value
class Scrubbed:
    """What a clean copy of an export lacks."""

    path: str
    out: str
    tables: tuple[str, ...]
    strings: int = 0
    """Texts removed from the table of strings, because no remaining row refers to them."""
    named: int = 0
    """Texts that named a person, a machine or a home folder."""


Scrub = Callable[[Path, Path], Scrubbed]
"""Writes a clean copy of an export."""
