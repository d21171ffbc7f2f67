"""Columns of the CSV files of three generations of rocprof, read as facts of dispatches."""

from __future__ import annotations

import math
import re
from collections import Counter as TotalOf
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.profiles import Counter, KernelFacts, Launch, Resources

if TYPE_CHECKING:
    from pytest_perfgate.adapters.readers.fields import Row

    Form = Callable[[Iterable[Row], Path], Iterator[KernelFacts]]


def form_of(header: Iterable[str], path: Path) -> Form:
    """Return the reader of these columns; the error names missing ones."""
    columns = set(header)
    form = next((parse for needed, parse in FORMS if needed <= columns), None)
    if form is None:
        raise PerfgateError("rocprof-csv", _missing(columns) if columns else "the file has no rows", place=str(path))
    return form


def _missing(columns: set[str]) -> str:
    """Return the columns of the nearest known form that are missing here."""
    nearest = max((needed for needed, _ in FORMS), key=lambda needed: len(needed & columns))
    if len(nearest & columns) < len(nearest) / 2:
        return f"its columns start {', '.join(sorted(map(str, columns))[:5])}"
    return f"it has no column {', '.join(sorted(nearest - columns))}"


def _trace(rows: Iterable[Row], path: Path) -> Iterator[KernelFacts]:
    """Yield dispatches of rocprofv3's kernel trace, with times and shapes."""
    named = (*_PROCESS.findall(path.name), "")[0]
    for number, row in enumerate(rows):
        process = row.get("Guid") or row.get("Process_Id") or named
        yield KernelFacts(
            name=row["Kernel_Name"],
            arch=_AMD,
            source=str(path),
            index=number,
            launch=_launch(*[tuple([row.get(axis) for axis in axes]) for axes in _AXES]),
            resources=_resources(row),
            duration=_between(row.get("Start_Timestamp"), row.get("End_Timestamp")),
            notes={"dispatch": row.get("Dispatch_Id", ""), "process": process, "agent": _text(row, _AGENT)},
        )


_AMD = "gfx"  # no table but that of rocprof-compute's machine names the architecture
_AXES = tuple([f"{stem}_{axis}" for axis in "XYZ"] for stem in ("Workgroup_Size", "Grid_Size"))

_PROCESS = re.compile(r"^(\d+)_(?:kernel_trace|counter_collection)")  # in the name that rocprofv3 gives a file


def _counters(rows: Iterable[Row], path: Path) -> Iterator[KernelFacts]:
    """Yield dispatches of rocprofv3 and rocprof-compute by counters: one line each, summed within a dispatch."""
    dispatches = _by_dispatch(rows, path)
    _refuse_uneven(dispatches, path)
    for number, ((dispatch, name, process, agent), (first, lines)) in enumerate(dispatches.items()):
        values: dict[str, float] = {}
        for counter, cell in lines:
            if (count := number_of(cell)) is not None:
                values[counter] = values.get(counter, 0.0) + count
        yield KernelFacts(
            name=name,
            arch=_AMD,
            source=str(path),
            index=number,
            launch=_launch((first.get("Workgroup_Size"), "1", "1"), (first.get("Grid_Size"), "1", "1")),
            resources=_resources(first),
            counters={name: Counter(name=name, value=count) for name, count in values.items()},
            duration=_between(first.get("Start_Timestamp"), first.get("End_Timestamp")),
            notes={"dispatch": dispatch, "process": process, "agent": agent},
        )


def _by_dispatch(rows: Iterable[Row], path: Path) -> dict[Dispatch, tuple[Row, list[tuple[str, str]]]]:
    """Return the first row and the counters of each dispatch; refuse one that is repeated after other dispatches."""
    dispatches: dict[Dispatch, tuple[Row, list[tuple[str, str]]]] = {}
    before: set[str] = set()
    last, named = None, (*_PROCESS.findall(path.name), "")[0]
    for row in rows:
        process = row.get("Guid") or row.get("Process_Id") or named
        which = _text(row, _DISPATCH), row["Kernel_Name"], process, _text(row, _AGENT)
        _, lines = dispatches.setdefault(which, (row, []))
        if which != last:
            last, before = which, {counter for counter, _ in lines}
        if row["Counter_Name"] in before:
            what = f"{row['Counter_Name']} of dispatch {which[0]} appears again after other dispatches"
            raise PerfgateError("rocprof-csv", what, why=_TWICE, place=str(path))
        lines.append((row["Counter_Name"], row["Counter_Value"]))
    return dispatches


_TWICE = "a repeated row counts twice"
Dispatch = tuple[str, str, str, str]  # its number, kernel, process and agent

_DISPATCH, _AGENT = ("Dispatch_Id", "Dispatch_ID"), ("Agent_Id", "GPU_ID")


def _refuse_uneven(dispatches: Mapping[Dispatch, tuple[Row, Sequence[tuple[str, str]]]], path: Path) -> None:
    """Refuse counters whose instances are not equally many in each dispatch of an agent, as after a repeated row."""
    times: dict[tuple[str, str], dict[int, str]] = {}
    for (dispatch, _, _, agent), (_, lines) in dispatches.items():
        for name, count in TotalOf(counter for counter, _ in lines).items():
            times.setdefault((agent, name), {}).setdefault(count, dispatch)
    for (_, name), counts in times.items():
        if len(counts) > 1:
            text = " and ".join(f"{count} times for dispatch {dispatch}" for count, dispatch in sorted(counts.items()))
            raise PerfgateError("rocprof-csv", f"{name} stands {text}", why=_TWICE, place=str(path))


def _results(rows: Iterable[Row], path: Path) -> Iterator[KernelFacts]:
    """Yield dispatches of the first rocprof: one line each, with counters in columns."""
    for number, row in enumerate(rows):
        yield KernelFacts(
            name=_bare(row["KernelName"]),
            arch=_AMD,
            source=str(path),
            index=number,
            launch=_launch((row["wgr"], "1", "1"), (row["grd"], "1", "1")),
            resources=_resources(row),
            counters=_columns(row),
            duration=_between(row.get("BeginNs"), row.get("EndNs")) or number_of(row.get("DurationNs")),
            notes={"dispatch": row.get("Index", "")},
        )


def _compute(rows: Iterable[Row], path: Path) -> Iterator[KernelFacts]:
    """Yield dispatches of rocprof-compute with merged passes, and of rocprofv2: one line each."""
    for number, row in enumerate(rows):
        size, items = _text(row, ("Workgroup_Size", "WGR")), _text(row, ("Grid_Size", "GRD"))
        yield KernelFacts(
            name=_bare(row["Kernel_Name"]),
            arch=_AMD,
            source=str(path),
            index=number,
            launch=_launch((size, "1", "1"), (items, "1", "1")),
            resources=_resources(row),
            counters=_columns(row),
            duration=_between(row.get("Start_Timestamp"), row.get("End_Timestamp")),
            notes={"dispatch": row.get("Dispatch_ID", "")},
        )


_API = re.compile(
    r"(?:__)?hip[A-Z_]\w*|hsa_\w+|roctx\w*|Copy(?:Host|Device)To\w+|KERNEL_DISPATCH|MEMORY_(?:COPY|ALLOCATION)\w*|"
    r"SCRATCH_MEMORY|(?:HIP|HSA|MARKER|RCCL|OMPT|ROC[A-Z]+)(?:_[A-Z]+)+"
)
"""Names in other statistics of this form: API calls, copies, whole domains. A kernel may be in capitals too."""

_CALLS = ("Calls", "TotalDurationNs", "Percentage", "MinNs", "MaxNs", "StdDev")


def _statistics(rows: Iterable[Row], path: Path) -> Iterator[KernelFacts]:
    """Yield kernels of rocprof --stats, the first and the third: one line for all dispatches of each."""
    kernels = [row for row in rows if not _API.fullmatch(row["Name"])]
    if not kernels:
        what, why = "these are statistics of calls or copies, not of kernels", "no kernel has a time here"
        fix = "name results.stats.csv or *_kernel_stats.csv"
        raise PerfgateError("rocprof-csv", what, why=why, place=str(path), fix=fix)
    for row in kernels:
        yield _means(row["Name"], row.get("AverageNs"), {name: number_of(row.get(name)) for name in _CALLS}, path)


def _top_kernels(rows: Iterable[Row], path: Path) -> Iterator[KernelFacts]:
    """Yield the longest kernels of rocprof-compute: one line for all dispatches of each."""
    for row in rows:
        yield _means(row["Kernel_Name"], row["Mean(ns)"], {"Calls": number_of(row["Count"])}, path)


def _means(name: str, mean: str | None, numbers: Mapping[str, float | None], path: Path) -> KernelFacts:
    calls, total = numbers["Calls"], numbers.get("TotalDurationNs")
    divided = total / calls if total and calls else None
    return KernelFacts(
        name=_bare(name),
        arch=_AMD,
        source=str(path),
        counters={name: Counter(name=name, value=number) for name, number in numbers.items() if number is not None},
        duration=(divided if mean is None else number_of(mean)) or None,
        notes={"duration": f"mean of {calls:,.0f} dispatches" if calls is not None else ""},
    )


@lru_cache(1 << 12)
def _bare(name: str) -> str:
    """Return a kernel's name without the mark of its descriptor."""
    return re.sub(r"( \(\.kd\)| \[clone \.kd\]|\.kd)+$", "", name)


_FIELDS = frozenset(
    (
        "Index", "KernelName", "gpu-id", "queue-id", "queue-index", "pid", "tid", "grd", "wgr", "lds", "scr",
        "arch_vgpr", "accum_vgpr", "vgpr", "sgpr", "fbar", "wave_size", "sig", "obj", "DispatchNs", "BeginNs",
        "EndNs", "CompleteNs", "DurationNs",
        "Dispatch_ID", "GPU_ID", "Grid_Size", "Workgroup_Size", "LDS_Per_Workgroup", "Scratch_Per_Workitem",
        "Arch_VGPR", "Accum_VGPR", "SGPR", "Wave_Size", "Kernel_Name", "Kernel_ID", "Correlation_ID", "Queue_ID", "PID",
        "TID", "Start_Timestamp", "End_Timestamp", "Queue_Index", "GRD", "WGR", "LDS", "SCR", "ACCUM_VGPR", "SIG",
        "OBJ",
    )
)  # fmt: skip
"""Columns of rocprof 1 and 2 and of rocprof-compute that are not counters."""

_REPEATED = ("Wave_Size_", "Correlation_ID_", "XCC_Index")

FORMS: tuple[tuple[set[str], Form], ...] = (
    ({"Kernel_Name", "Counter_Name", "Counter_Value", "Dispatch_Id"}, _counters),
    ({"Kernel_Name", "Counter_Name", "Counter_Value", "Dispatch_ID"}, _counters),
    ({"Kernel_Name", "Start_Timestamp", "End_Timestamp", "Workgroup_Size_X"}, _trace),
    ({"KernelName", "grd", "wgr"}, _results),
    ({"Kernel_Name", "Arch_VGPR"}, _compute),
    *(({"Kernel_Name", "Start_Timestamp", "End_Timestamp", mark}, _trace) for mark in ("Kernel_Id", "Kind")),
    ({"Kernel_Name", "Count", "Mean(ns)"}, _top_kernels),
    ({"Name", "Calls", "TotalDurationNs"}, _statistics),
)

IDENTITY: dict[Form, tuple[str, ...]] = {
    _trace: ("Dispatch_Id", "Guid", "Process_Id", "Agent_Id"),
    _results: ("Index",),
    _compute: ("Dispatch_ID", "GPU_ID", "PID"),
    _top_kernels: ("Kernel_Name",),
    _statistics: ("Name",),
}
"""Columns that together are unique to a dispatch or a row of statistics; counters repeat theirs."""


def _columns(row: Row) -> dict[str, Counter]:
    numbers = {name: number_of(cell) for name, cell in row.items() if _is_counter(name)}
    return {name: Counter(name=name, value=number) for name, number in numbers.items() if number is not None}


@cache
def _is_counter(column: str) -> bool:
    return bool(column) and column not in _FIELDS and not column.startswith(_REPEATED)


@lru_cache(1 << 12)
def _launch(block: tuple[str | None, ...], items: tuple[str | None, ...]) -> Launch | None:
    """Return a launch by its cells; AMD counts the grid in work items, which are divided by the work group."""
    (x, y, z), counts = ([int(number_of(cell) or 0) for cell in cells] for cells in (block, items))
    if not x:
        return None
    grid = [-(-count // size) if size else 0 for count, size in zip(counts, (x, y, z))]
    return Launch(block=(x, y, z), grid=(grid[0], grid[1], grid[2]), source="rocprof")


def _text(row: Row, columns: Sequence[str]) -> str:
    """Return the cell under the first of several column names that versions used."""
    return next((row[name] for name in columns if name in row), "")


_REGISTERS = ("VGPR_Count", "Vgpr_Count", "Arch_VGPR", "arch_vgpr", "vgpr")
_SHARED = ("Group_Segment_Size", "LDS_Block_Size", "Lds_Block_Size", "LDS_Per_Workgroup", "LDS", "lds")
_SCRATCH = ("Private_Segment_Size", "Scratch_Size", "Scratch_Per_Workitem", "SCR", "scr")


def _resources(row: Row) -> Resources | None:
    return _sizes(_text(row, _REGISTERS), _text(row, _SHARED), _text(row, _SCRATCH))


@lru_cache(1 << 12)
def _sizes(*cells: str) -> Resources | None:
    registers, shared, stack = map(number_of, cells)
    if registers is None:
        return None
    return Resources(
        registers=int(registers),
        shared=int(shared or 0),
        stack=int(stack or 0),
        source="rocprof",
        unstated=tuple(name for name, number in (("shared", shared), ("stack", stack)) if number is None),
    )


def _between(start: str | None, end: str | None) -> float | None:
    try:
        first, last = (int((cell or "").removesuffix(".0")) for cell in (start, end))
    except ValueError:
        return None
    return float(last - first) if 0 < first < last < 1 << 64 else None  # without a trace rocprofv2 writes 0


@lru_cache(1 << 12)
def number_of(cell: str | None) -> float | None:
    """Return a cell as a finite number, or None; most cells of a dispatch are those of the one before."""
    try:
        number = float(cell or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None
