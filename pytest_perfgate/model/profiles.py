"""Traces, kernels, other tools' benchmarks as columns."""

from __future__ import annotations

import enum
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


class Category(enum.IntEnum):
    """What a row is; the value is what the column holds."""

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


@value
class Thread:
    """Where host rows ran."""

    process: Union[int, str]
    thread: Union[int, str]
    rank: int | None = None
    process_name: str = ""
    process_label: str = ""
    name: str = ""


@value
class Queue:
    """Where GPU rows ran."""

    device: int
    stream: Union[int, str]
    rank: int | None = None


@value
class Message:
    """What the profiler recorded of a collective."""

    collective: str
    group: str = ""
    ranks: int | None = None
    sent: float | None = None
    """Bytes of the input of this rank."""
    received: float | None = None
    dtype: str = ""


@array_value
class Trace:
    """One file of one or more ranks. All columns have one length; -1 stands for not recorded."""

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
    forward_thread: Ints
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
    """Dims, types, strides and concrete inputs as JSON, decoded by whoever needs them."""
    messages: Mapping[int, Message]
    """By row."""
    rank: int | None
    world: int | None
    devices: tuple[str, ...]
    base_ns: int
    """What the relative zero is on the file's clock."""
    shapes: bool
    dropped: Mapping[str, int]
    """Events left out, by reason."""
    stamps: tuple[object, object] | None = None
    """Start and duration in the file's own microseconds, as floats: what compatibility needs."""
    flows: frozenset[int] = frozenset()
    """Correlations whose launch starts an arrow to the GPU."""
    events: int = 0
    """Every event of the file, of any kind."""
    frames: int = 0
    """Frames of Python that were passed over: no figure needs them, only call stacks."""
    guessed: tuple[int, ...] = ()
    """GPU rows whose duration was negative or overflowed: they end where the next one starts."""
    untimed: int = 0
    """GPU events left out since nothing tells how long they took."""
    device_memory: bool = False
    """Whether memory of a device was taken or given back: then there is one, whether or not its work was recorded."""
    foreign: tuple[tuple[str, int], ...] = ()
    """Categories that nothing here knows, and how many events each has: they may be work of a device."""
    backend: str = ""
    """What carries the collectives of the job, as the header says: ``nccl``, ``gloo``."""

    def __len__(self) -> int:
        return len(self.start)


@value
class Launch:
    """How a kernel was started: blocks, threads a block, and the shared memory the launch adds."""

    block: tuple[int, int, int]
    grid: tuple[int, int, int] = (0, 0, 0)
    """Zeros where only the block is known."""
    shared_dynamic: int = 0
    source: str = ""
    """Where the figures are from: the report, a file beside the cubin, an option."""

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]


CODE_SUFFIXES = (".cubin", ".fatbin", ".o", ".so")
"""Of the files of a folder that may hold machine code."""

SOURCE = ".cu"

PTXAS_LOG = b"\nptxas info"
"""What a line of ``ptxas -v`` begins with."""

FROM_CODE, FROM_LOG = "cubin", "ptxas"
"""The source of resources that the machine code itself says, and that the log of its compiler says."""


@value
class Resources:
    """What one thread and one block take, as the toolchain or the driver says."""

    registers: int
    shared: int = 0
    """Static bytes a block."""
    stack: int = 0
    local: int = 0
    constant: int = 0
    source: str = ""
    """The tool that said so; tools differ on shared memory, so a baseline keeps to one."""
    unsaid: tuple[str, ...] = ()
    """``shared`` and ``stack`` where the tool said nothing of them: their zero is none."""


@value
class Control:
    """The scheduling bits of one instruction. A barrier of 7 is none."""

    stall: int
    yields: bool
    write_barrier: int
    read_barrier: int
    wait: int
    """Bit mask of the barriers 0-5 waited for."""
    reuse: int


@array_value
class KernelCode:
    """The machine code of one kernel as columns; instruction ``i`` sits at address ``16 * i``."""

    opcodes: tuple[str, ...]
    operands: tuple[str, ...]
    predicates: tuple[str, ...]
    controls: tuple[int, ...] = ()
    """21 bits each; empty where the words were not at hand."""
    words: bytes = b""
    """The machine code itself, where it was at hand."""
    compiler: str = ""
    """The ptxas that wrote it, where the file says so: code differs between versions."""
    disassembler: str = ""

    def __len__(self) -> int:
        return len(self.opcodes)


@value
class Counter:
    """One metric of a profiler under its full name, in the unit it was given in."""

    name: str
    value: float
    unit: str = ""


@value
class SourceLine:
    """A line of source or machine code with what was sampled on it."""

    place: str
    """``file.cu:42``; empty where the report does not say."""
    text: str
    """Empty where the report holds samples, and not the code."""
    samples: float | None = None
    executed: float | None = None
    reason: str = ""
    """The leading stall reason."""
    offset: int = 0
    """Bytes from the start of the kernel."""
    ptx: str = ""


@array_value
class KernelFacts:
    """One kernel, or one launch of it, as one artifact shows it. What is absent is absent."""

    name: str
    arch: str
    """``sm_90`` or ``gfx942``; empty where the artifact does not say."""
    source: str = ""
    """The file it is from."""
    device: str = ""
    index: int = 0
    """Position in the artifact, to tell launches of one kernel apart."""
    launch: Launch | None = None
    resources: Resources | None = None
    most_threads: int | None = None
    """Of a block, as ``__launch_bounds__`` says."""
    code: KernelCode | None = None
    counters: Mapping[str, Counter] = field(default_factory=dict)
    duration: float | None = None
    """Nanoseconds; absent, never zero, where the instrument had none."""
    findings: tuple[Finding, ...] = ()
    """What the profiler's own rules said."""
    lines: tuple[SourceLine, ...] = ()
    """Instructions that were sampled or counted, in the order of the code."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Text of source files that the report brought along."""
    executed: Mapping[str, float] = field(default_factory=dict)
    """Warp instructions that were executed, by opcode."""
    problems: tuple[Problem, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)


@array_value
class Disassembly:
    """The text that a disassembler printed for one file, and the words it was printed from."""

    source: str
    arch: str
    listing: bytes
    """JSON of ``nvdisasm -json``; several documents when the file was read in parts."""
    words: Mapping[str, bytes]
    """Machine code by function name."""
    resources: Mapping[str, Resources]
    """What each kernel takes; a function that is not among them is called by others."""
    launches: Mapping[str, Launch] = field(default_factory=dict)
    bounds: Mapping[str, int] = field(default_factory=dict)
    """Most threads a block by function, where the source says so."""
    parts: tuple[bytes, ...] = ()
    log: str = ""
    """What ``ptxas -v`` printed, where that is the file: resources, and no machine code."""


@value
class BenchResult:
    """One benchmark of another tool's file."""

    name: str
    time: float | None
    """Nanoseconds of one call; ``None`` where the file has none."""
    statistic: str = "median"
    """What the tool made of its samples: median, mean or minimum."""
    also: tuple[tuple[str, float], ...] = ()
    """(statistic, nanoseconds) that the file has beside it: another file may have no other."""
    scatter: float | None = None
    """Relative standard deviation within the process, where the file has it."""
    samples: int = 0
    device: str = ""
    rates: tuple[tuple[str, float, Dimension], ...] = ()
    """(metric, value, dimension) that the tool derived itself."""
    skipped: str = ""
    """Why there is no time."""


@value
class BenchFile:
    """All of a file."""

    tool: str
    results: tuple[BenchResult, ...]
    commit: str = ""
    when: str = ""
    machine: str = ""
    untimed: int = 0
    """Benchmarks of memory or another unit, which are not read."""


BenchReader = Callable[[Path], BenchFile]


@value
class Scrubbed:
    """What a clean copy of an export lacks."""

    path: str
    out: str
    tables: tuple[str, ...]
    strings: int = 0
    """Texts taken out of the table of strings: nothing that stays points to them."""
    named: int = 0
    """Texts that named a person, a machine or a home folder."""


Scrub = Callable[[Path, Path], Scrubbed]
"""Writes a clean copy of an export."""


class Kind(enum.IntEnum):
    """Classes of GPU work; the value is what the column holds."""

    COMPUTE = 0
    COMMUNICATION = 1
    MEMCPY = 2
    MEMSET = 3
