"""Labels and values of Nsight Compute's columns, and its source page with instructions and samples."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_perfgate.adapters.readers.fields import PageLines, parse_numeral
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.profiles import Counter, KernelFacts, Launch, Resources, SourceLine
from pytest_perfgate.model.values import TIME_UNITS, array_value

if TYPE_CHECKING:
    from pytest_perfgate.model.metric import Finding


_ELAPSED = ".avg.pct_of_peak_sustained_elapsed"

_L1 = "l1tex__throughput.avg.pct_of_peak_sustained_active"

LABELS: dict[tuple[str, str], str] = {
    ("Duration", ""): "gpu__time_duration.sum",
    ("DRAM Throughput", "%"): f"dram__throughput{_ELAPSED}",
    ("Memory Throughput", "%"): f"gpu__compute_memory_throughput{_ELAPSED}",
    ("Memory Throughput", "byte/s"): "dram__bytes.sum.per_second",
    ("Compute (SM) Throughput", "%"): f"sm__throughput{_ELAPSED}",
    ("SM [%]", "%"): f"sm__throughput{_ELAPSED}",
    ("Memory [%]", "%"): f"gpu__compute_memory_throughput{_ELAPSED}",
    ("SOL SM", "%"): f"sm__throughput{_ELAPSED}",
    ("SOL Memory", "%"): f"gpu__compute_memory_throughput{_ELAPSED}",
    ("SOL DRAM", "%"): f"dram__throughput{_ELAPSED}",
    ("SOL FB", "%"): f"dram__throughput{_ELAPSED}",
    ("SOL L2", "%"): f"lts__throughput{_ELAPSED}",
    ("SOL L2 Cache", "%"): f"lts__throughput{_ELAPSED}",
    ("L2 Cache Throughput", "%"): f"lts__throughput{_ELAPSED}",
    ("L1/TEX Cache Throughput", "%"): _L1,
    ("SOL L1/TEX Cache", "%"): _L1,
    ("SOL TEX", "%"): _L1,
    ("L1/TEX Hit Rate", "%"): "l1tex__t_sector_hit_rate.pct",
    ("L2 Hit Rate", "%"): "lts__t_sector_hit_rate.pct",
    ("Achieved Occupancy", "%"): "sm__warps_active.avg.pct_of_peak_sustained_active",
    ("Achieved Active Warps Per SM", ""): "sm__warps_active.avg.per_cycle_active",
    ("Theoretical Occupancy", "%"): "sm__maximum_warps_per_active_cycle_pct",
    ("Theoretical Active Warps per SM", ""): "sm__maximum_warps_avg_per_active_cycle",
    ("Block Limit SM", ""): "launch__occupancy_limit_blocks",
    ("Block Limit Registers", ""): "launch__occupancy_limit_registers",
    ("Block Limit Shared Mem", ""): "launch__occupancy_limit_shared_mem",
    ("Block Limit Warps", ""): "launch__occupancy_limit_warps",
    ("Registers Per Thread", ""): "launch__registers_per_thread",
    ("Waves Per SM", ""): "launch__waves_per_multiprocessor",
    ("Static Shared Memory Per Block", ""): "launch__shared_mem_per_block_static",
    ("Dynamic Shared Memory Per Block", ""): "launch__shared_mem_per_block_dynamic",
    ("Driver Shared Memory Per Block", ""): "launch__shared_mem_per_block_driver",
    ("Shared Memory Configuration Size", ""): "launch__shared_mem_config_size",
    ("Block Size", ""): "launch__block_size",
    ("Threads", ""): "launch__thread_count",
}
"""(label, base unit) to full name; an empty unit matches any."""

_FULL = re.compile(r"[a-z0-9]\w*__\w+(?:\.\w+)*")
"""A full name, alone or beside its label."""

_PREFIXES = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}

_BASES = frozenset(
    (
        "byte", "hz", "Hz", "inst", "cycle", "cycles", "block", "cluster", "thread", "warp", "register", "sector",
        "sectors", "request", "requests", "wavefront", "wavefronts", "branches", "sample", "samples", "op", "ops",
    )
)  # fmt: skip
"""Units that a prefix may scale."""

_LONG = {**TIME_UNITS, "nsecond": 1.0, "usecond": 1e3, "msecond": 1e6, "second": 1e9}

_SHARE_MOST = 110.0
"""The accepted excess over a peak, in percent: passes of one kernel differ slightly."""

_SHARES = re.compile(
    "|".join(re.escape(full) for full in LABELS.values() if ".pct_of_peak" in full or full.endswith("_cycle_pct"))
    + r"|(?:gpu__dram_throughput|sm__pipe_\w+_cycles_active|sm__inst_executed_pipe_\w+|lts__throughput)"
    r"\.avg\.pct_of_peak_sustained_(?:elapsed|active)"
)
"""All names that our figures are read from."""

_LEAST = {"launch__registers_per_thread": 1.0, "launch__block_size": 1.0, "launch__waves_per_multiprocessor": 0.0}

_MOST = {"launch__registers_per_thread": 256.0, "launch__block_size": 1024.0, "gpu__time_duration.sum": 1e18,
         **dict.fromkeys(("lts__t_sector_hit_rate.pct", "l1tex__t_sector_hit_rate.pct"), 200.0)}  # fmt: skip

_COUNTED = frozenset(LABELS.values())

_TIMES = tuple(f"gpu__time_duration.{rollup}" for rollup in ("sum", "avg", "max", "min"))


def impossible(name: str, value: float) -> str:
    """Return why a known metric cannot have this value; "" if it can."""
    if not math.isfinite(value):
        return "no counter holds that much"
    least = _LEAST.get(name, 0.0)
    share = _SHARES.fullmatch(name) is not None
    most = _SHARE_MOST if share else _MOST.get(name)
    if (share or name in _COUNTED or name.endswith(".sum")) and value < least:
        return f"it is at least {least:g}"
    if most is None or value <= most:
        return ""
    return f"it is at most {100 if share else most:g}"


def full_name(name: str, base: str) -> str:
    """Return the full name of a metric by its label, its full name or both, and its base unit."""
    full = LABELS.get((name, base)) or LABELS.get((name, ""))
    embedded = None if full else _FULL.search(name)
    return full or (embedded[0] if embedded and " " in name else name)


def scaled(number: float, unit: str) -> tuple[float, str]:
    """Return the number in the base unit: nanoseconds, bytes, hertz, instructions."""
    if unit in _LONG:
        return number * _LONG[unit], "ns"
    head, slash, tail = unit.partition("/")
    tail = {"second": "s", "nsecond": "ns", "usecond": "us"}.get(tail, tail)
    factor = 1.0
    if head not in _BASES and head[1:] in _BASES and head[0] in _PREFIXES:
        factor, head = _PREFIXES[head[0]], head[1:]
    if tail in {"ns", "us", "ms"}:
        factor, tail = factor * 1e9 / _LONG[tail], "s"
    return number * factor, f"{head.replace('Hz', 'hz')}{slash}{tail}"


@array_value
class NcuCode:
    """What a report holds on the code itself."""

    lines: tuple[SourceLine, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    executed: Mapping[str, float] = field(default_factory=dict)


def kernel_facts(
    name: str,
    counters: Mapping[str, Counter],
    *,
    texts: Mapping[str, str],
    place: tuple[str, int],
    findings: tuple[Finding, ...] = (),
    code: NcuCode | None = None,
) -> KernelFacts:
    """Return one launch as ncu measured it; a duration that is not a number is absent."""
    time = time_of(counters)
    major, minor = (
        _fact_value(counters, f"device__attribute_compute_capability_{part}") for part in ("major", "minor")
    )
    return KernelFacts(
        name=name,
        arch=texts.get("arch", "") or (f"sm_{int(major)}{int(minor or 0)}" if major else ""),
        device=texts.get("device__attribute_display_name", ""),
        source=place[0],
        index=place[1],
        launch=_launch(counters),
        resources=_resources(counters),
        counters=counters,
        duration=time.value if time is not None and 0 < time.value < math.inf else None,
        findings=findings,
        lines=code.lines if code else (),
        sources=code.sources if code else {},
        executed=code.executed if code else {},
    )


def time_of(counters: Mapping[str, Counter]) -> Counter | None:
    """Return the time of a launch: one device has one, so that sum, mean and extremes are alike."""
    return next((counters[name] for name in _TIMES if name in counters), None)


def _fact_value(counters: Mapping[str, Counter], name: str) -> float | None:
    counter = counters.get(name)
    return counter.value if counter is not None and math.isfinite(counter.value) else None


def _launch(counters: Mapping[str, Counter]) -> Launch | None:
    block = tuple(_fact_value(counters, f"launch__block_dim_{axis}") for axis in "xyz")
    size = _fact_value(counters, "launch__block_size")
    grid = tuple(int(_fact_value(counters, f"launch__grid_dim_{axis}") or 0) for axis in "xyz")
    if None in block and size is None:
        return None
    x, y, z = (int(b or 1) for b in block) if None not in block else (int(size or 0), 1, 1)
    return Launch(
        block=(x, y, z),
        grid=(grid[0], grid[1], grid[2]),
        shared_dynamic=int(_fact_value(counters, "launch__shared_mem_per_block_dynamic") or 0),
        source="ncu",
    )


def _resources(counters: Mapping[str, Counter]) -> Resources | None:
    registers = _fact_value(counters, "launch__registers_per_thread")
    if registers is None:
        return None
    static, dynamic = (_fact_value(counters, f"launch__shared_mem_per_block_{kind}") for kind in ("static", "dynamic"))
    return Resources(
        registers=int(registers),
        shared=int(static or 0),
        source="ncu",
        unstated=("shared",) if static is None or dynamic is None else (),
    )


PAGE = re.compile(r'^"?(?:#"?[,;]"?|Line No"?[,;]"?(?:Source"?[,;]"?)?)?Address"?[,;]"?Source"?[,;]', re.MULTILINE)
"""The header of a source page, in its forms: machine code, source, or both."""

_NAMES = frozenset(("Kernel Name", "Function Name"))

_SAMPLES = ("# Samples", "Warp Stall Sampling (All Samples)", "Warp Stall Sampling (All Cycles)")

_EXECUTED, _STALL = "Instructions Executed", "stall_"

_ISSUING = frozenset(("stall_selected",))

_NOT_ISSUED = ("(Not Issued)", "_not_issued")

_MOST_NAMES = 2.0**64

_OPCODE = re.compile(r"(?:@!?U?P\w+\s+)?([A-Z][\w.]*)")


@dataclass
class _Block:
    """The part of a page under one name of a kernel."""

    name: str
    file: str = ""
    header: Sequence[str] = ()
    code: list[tuple[int, SourceLine]] = field(default_factory=list)
    source: list[SourceLine] = field(default_factory=list)
    met: set[int] = field(default_factory=set)
    """Addresses of its instructions."""


def parse_source(text: str, place: str) -> Iterator[KernelFacts]:
    """Yield every kernel of the page: where it waits, and how often its instructions ran."""
    try:
        blocks = [block for block in _blocks(_rows(text, place), place) if block.code or block.source]
    except PerfgateError as error:
        error.place_at(error.place or place)
        raise
    if not blocks:
        raise PerfgateError("ncu-nothing", "the source page holds no instruction", place=place)
    for index, block in enumerate(blocks):
        start = min((address for address, _ in block.code), default=0)
        lines = tuple(_with_offset(line, address - start) for address, line in block.code) or tuple(block.source)
        yield KernelFacts(
            name=block.name or "not said",
            arch="",
            source=place,
            index=index,
            lines=lines,
            sources={block.file or "source": "\n".join(line.text for line in block.source)} if block.source else {},
            executed=_executed(lines) if block.code else {},
            notes={"page": "source"},
        )


def _rows(text: str, place: str) -> Iterator[tuple[int, list[str]]]:
    match = PAGE.search(text)
    header = match[0] if match else ""
    mark = ";" if header.count(";") > header.count(",") else ","
    lines = [line if not line.startswith("==") else "\n" for line in io.StringIO(text)]
    return PageLines(
        lines, mark, 1, lambda what, why: PerfgateError("ncu-report", what, why=why, place=place)
    ).records()


def _blocks(rows: Iterator[tuple[int, list[str]]], place: str) -> Iterator[_Block]:
    block, file = _Block(name=""), ""
    for line, row in rows:
        if len(row) > 1 and row[0] in _NAMES:
            yield block
            block = _Block(name=row[1], file=file)
        elif len(row) > 1 and row[0] == "File Path":
            file = block.file = row[1]
        elif "Address" in row and "Source" in row:
            block.header = row
        elif block.header and len(row) == len(block.header):
            _take(block, row, line)
        elif block.header and len(row) > 1:
            short = "it is cut short: " if len(row) < len(block.header) else ""
            what = f"{short}line {line} has {len(row)} cells, and the header has {len(block.header)}"
            raise PerfgateError("ncu-report", what, place=place)
    yield block


def _take(block: _Block, row: Sequence[str], line: int) -> None:
    """Add one row: an instruction if it has an address, a source line if it has a number."""
    header = list(block.header)
    at = header.index("Address")
    address = _address(row[at])
    number = next((row[header.index(name)] for name in ("Line No", "#") if name in header), "")
    if address is not None:
        if "Line No" not in header and address in block.met:  # inlined code is repeated beside its source
            what = f"{block.name}: the instruction at {row[at]} stands again in line {line}"
            raise PerfgateError("ncu-report", what, why="its samples would count twice")
        block.met.add(address)
        block.code.append((address, _line(header, row, row[at + 1], "")))
    elif number.isdigit():
        where = f"{block.file or 'source'}:{number}"
        block.source.append(_line(header, row, row[header.index("Source")], where))


def _address(cell: str) -> int | None:
    try:
        return int(cell, 16 if cell.startswith("0x") else 10)
    except ValueError:
        return None


def _line(header: Sequence[str], row: Sequence[str], text: str, place: str) -> SourceLine:
    """Return a source line; of several columns with one name, the first counts."""
    cells = dict(reversed(list(zip(header, row))))
    samples = next((_count(cells[name]) for name in _SAMPLES if name in cells), None)
    waits = {
        name.removeprefix(_STALL): _count(cell) or 0.0
        for name, cell in cells.items()
        if name.startswith(_STALL) and not name.endswith(_NOT_ISSUED) and name not in _ISSUING
    }
    leading = max(waits, key=lambda name: waits[name], default="")
    return SourceLine(
        place=place,
        text=text.strip() if not place else text.rstrip(),
        samples=samples,
        executed=_count(cells.get(_EXECUTED)),
        reason=leading if leading and waits[leading] else "",
    )


def _count(cell: str | None) -> float | None:
    """Return a count, or None if it is missing, negative or beyond the profiler's range."""
    number = parse_numeral(cell)
    if number is not None and not 0 <= number < _MOST_NAMES:
        raise PerfgateError("ncu-report", f"the source page has a count of {cell!r:.40}")
    return number


def _with_offset(line: SourceLine, offset: int) -> SourceLine:
    return SourceLine(
        place=line.place,
        text=line.text,
        samples=line.samples,
        executed=line.executed,
        reason=line.reason,
        offset=offset,
    )


def _executed(lines: Sequence[SourceLine]) -> dict[str, float]:
    """Return warp instructions by opcode."""
    counts: dict[str, float] = {}
    for line in lines:
        match = _OPCODE.match(line.text)
        if match and line.executed is not None:
            counts[match[1]] = counts.get(match[1], 0.0) + line.executed
    return counts
