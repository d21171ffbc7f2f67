"""Kernels: what a compiler wrote, what a launch asked for, what counters saw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from pytest_perfgate.model.problem import Finding, Problem
from pytest_perfgate.model.values import array_value, value


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
FROM_CODE = "cubin"
"""The source of resources that the machine code itself says."""


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
