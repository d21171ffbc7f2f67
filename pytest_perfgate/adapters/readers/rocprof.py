"""AMD kernels: traces and counters of rocprofv3, results of rocprof v1, tables of rocprof-compute."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.kernel import Counter, KernelFacts, Launch, Resources

Row = dict[str, str]


def read_rocprof(paths: Sequence[Path]) -> tuple[KernelFacts, ...]:
    """Every dispatch of these files; a kernel trace and its counters beside each other become one."""
    return _joined([facts for path in paths for facts in _read(Path(path))])


def _read(path: Path) -> Iterator[KernelFacts]:
    csv.field_size_limit(1 << 24)
    try:
        rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig", errors="replace"))))
    except csv.Error as error:
        raise PerfgateError("rocprof-csv", f"the CSV does not read: {error}", place=str(path)) from error
    columns = set(rows[0]) if rows else set()
    form = next((parse for needed, parse in _FORMS if needed <= columns), None)
    if form is None:
        raise PerfgateError("rocprof-csv", _lacking(columns) if rows else "the file has no rows", place=str(path))
    short = next((number for number, row in enumerate(rows, 1) if None in row.values()), None)
    if short is not None:
        what = f"it is cut short: row {short} of {len(rows)} ends before its last column"
        raise PerfgateError("rocprof-csv", what, why="what can still be read may be half of it", place=str(path))
    machine = _machine(path)
    for number, facts in enumerate(form(rows, path)):
        yield replace(facts, index=number, arch=machine.get("gpu_arch", "gfx"), device=machine.get("gpu_model", ""))


def _lacking(columns: set[str]) -> str:
    """What the nearest known form has and these columns have not."""
    nearest = max((needed for needed, _ in _FORMS), key=lambda needed: len(needed & columns))
    if len(nearest & columns) < len(nearest) / 2:
        return f"its columns start {', '.join(sorted(map(str, columns))[:5])}"
    return f"it has no column {', '.join(sorted(nearest - columns))}"


def _trace(rows: Sequence[Row], path: Path) -> Iterator[KernelFacts]:
    """Of rocprofv3: the kernel trace: times and shapes."""
    for row in rows:
        block, grid = (_axes(row, stem) for stem in ("Workgroup_Size", "Grid_Size"))
        yield KernelFacts(
            name=row["Kernel_Name"],
            arch="",
            source=str(path),
            launch=_launch(block, grid),
            resources=_resources(
                row, "VGPR_Count", "Group_Segment_Size LDS_Block_Size", "Private_Segment_Size Scratch_Size"
            ),
            duration=_between(row.get("Start_Timestamp"), row.get("End_Timestamp")),
            notes={"dispatch": row.get("Dispatch_Id", "")},
        )


def _counters(rows: Sequence[Row], path: Path) -> Iterator[KernelFacts]:
    """Of rocprofv3: the counters: a line each, summed over what one dispatch repeats."""
    dispatches: dict[tuple[str, str, str | None, str | None], list[Row]] = {}
    for row in rows:
        which = (row["Dispatch_Id"], row["Kernel_Name"], row.get("Process_Id"), row.get("Agent_Id"))
        dispatches.setdefault(which, []).append(row)
    for (dispatch, *_), lines in dispatches.items():
        values: dict[str, float] = {}
        for line in lines:
            number = _number(line.get("Counter_Value"))
            if number is not None:
                values[line["Counter_Name"]] = values.get(line["Counter_Name"], 0.0) + number
        first = lines[0]
        size = int(_number(first.get("Workgroup_Size")) or 0)
        yield KernelFacts(
            name=first["Kernel_Name"],
            arch="",
            source=str(path),
            launch=_launch((size, 1, 1), (int(_number(first.get("Grid_Size")) or 0), 1, 1)),
            resources=_resources(first, "VGPR_Count", "LDS_Block_Size", "Scratch_Size"),
            counters={name: Counter(name=name, value=number) for name, number in values.items()},
            duration=_between(first.get("Start_Timestamp"), first.get("End_Timestamp")),
            notes={"dispatch": dispatch},
        )


def _results(rows: Sequence[Row], path: Path) -> Iterator[KernelFacts]:
    """The first rocprof: a line a dispatch, counters in columns of their own."""
    for row in rows:
        yield KernelFacts(
            name=row["KernelName"].removesuffix(".kd").removesuffix(" [clone .kd]"),
            arch="",
            source=str(path),
            launch=_launch((int(_number(row.get("wgr")) or 0), 1, 1), (int(_number(row.get("grd")) or 0), 1, 1)),
            resources=_resources(row, "arch_vgpr vgpr", "lds", "scr"),
            counters=_columns(row, _V1),
            duration=_between(row.get("BeginNs"), row.get("EndNs")) or _number(row.get("DurationNs")),
            notes={"dispatch": row.get("Index", "")},
        )


def _compute(rows: Sequence[Row], path: Path) -> Iterator[KernelFacts]:
    """Of rocprof-compute: a line a dispatch, its passes merged."""
    for row in rows:
        size = int(_number(row.get("Workgroup_Size")) or 0)
        yield KernelFacts(
            name=row["Kernel_Name"].removesuffix(" (.kd)").removesuffix(".kd"),
            arch="",
            source=str(path),
            launch=_launch((size, 1, 1), (int(_number(row.get("Grid_Size")) or 0), 1, 1)),
            resources=_resources(row, "Arch_VGPR", "LDS_Per_Workgroup", "Scratch_Per_Workitem"),
            counters=_columns(row, _OMNIPERF),
            duration=_between(row.get("Start_Timestamp"), row.get("End_Timestamp")),
            notes={"dispatch": row.get("Dispatch_ID", "")},
        )


_V1 = frozenset(
    (
        "Index",
        "KernelName",
        "gpu-id",
        "queue-id",
        "queue-index",
        "pid",
        "tid",
        "grd",
        "wgr",
        "lds",
        "scr",
        "arch_vgpr",
        "accum_vgpr",
        "vgpr",
        "sgpr",
        "fbar",
        "wave_size",
        "sig",
        "obj",
        "DispatchNs",
        "BeginNs",
        "EndNs",
        "CompleteNs",
        "DurationNs",
    )
)
_OMNIPERF = frozenset(
    (
        "Dispatch_ID",
        "GPU_ID",
        "Grid_Size",
        "Workgroup_Size",
        "LDS_Per_Workgroup",
        "Scratch_Per_Workitem",
        "Arch_VGPR",
        "Accum_VGPR",
        "SGPR",
        "Wave_Size",
        "Kernel_Name",
        "Correlation_ID",
        "Queue_ID",
        "PID",
        "TID",
        "Start_Timestamp",
        "End_Timestamp",
    )
)
_REPEATED = ("Wave_Size_", "Correlation_ID_", "XCC_Index")
_FORMS: tuple[tuple[set[str], Callable[[Sequence[Row], Path], Iterator[KernelFacts]]], ...] = (
    ({"Kernel_Name", "Counter_Name", "Counter_Value", "Dispatch_Id"}, _counters),
    ({"Kernel_Name", "Start_Timestamp", "End_Timestamp", "Workgroup_Size_X"}, _trace),
    ({"KernelName", "grd", "wgr"}, _results),
    ({"Kernel_Name", "Arch_VGPR"}, _compute),
)


def _columns(row: Row, known: frozenset[str]) -> dict[str, Counter]:
    told = ((name, _number(cell)) for name, cell in row.items() if name and name not in known)
    return {
        name: Counter(name=name, value=number)
        for name, number in told
        if number is not None and not name.startswith(_REPEATED)
    }


def _machine(path: Path) -> Row:
    """What rocprof-compute wrote of the machine beside its counters."""
    beside = path.with_name(path.name.replace("pmc_perf", "sysinfo"))
    if beside == path or not beside.is_file():
        return {}
    rows = list(csv.DictReader(io.StringIO(beside.read_text(encoding="utf-8-sig", errors="replace"))))
    return rows[0] if rows else {}


def _launch(block: tuple[int, int, int], items: tuple[int, int, int]) -> Launch | None:
    """AMD counts the grid in work items; blocks are what is left after the work group."""
    if not block[0]:
        return None
    x, y, z = (-(-count // size) if size else 0 for count, size in zip(items, block))
    return Launch(block=block, grid=(x, y, z), source="rocprof")


def _axes(row: Row, stem: str) -> tuple[int, int, int]:
    x, y, z = (int(_number(row.get(f"{stem}_{axis}")) or 0) for axis in "XYZ")
    return x, y, z


def _first(row: Row, columns: str) -> float | None:
    """Of several names that versions gave a column, separated by spaces."""
    numbers = (_number(row.get(name)) for name in columns.split())
    return next((number for number in numbers if number is not None), None)


def _resources(row: Row, registers: str, shared: str, scratch: str) -> Resources | None:
    seen = _first(row, registers)
    if seen is None:
        return None
    told = {"shared": _first(row, shared), "stack": _first(row, scratch)}
    return Resources(
        registers=int(seen),
        shared=int(told["shared"] or 0),
        stack=int(told["stack"] or 0),
        source="rocprof",
        unsaid=tuple(name for name, number in told.items() if number is None),
    )


def _between(start: str | None, end: str | None) -> float | None:
    try:
        spent = int((end or "").removesuffix(".0")) - int((start or "").removesuffix(".0"))
    except ValueError:
        return None
    return float(spent) if spent > 0 else None


def _number(cell: str | None) -> float | None:
    try:
        number = float(cell or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _joined(every: Sequence[KernelFacts]) -> tuple[KernelFacts, ...]:
    """Counters get the times that a trace of the same dispatch and kernel has."""
    times = {_dispatch(f): f for f in every if f.duration is not None and not f.counters}
    merged = [replace(f, duration=times[_dispatch(f)].duration) if _lacks(f, times) else f for f in every]
    used = {_dispatch(f) for f in every if _lacks(f, times)}
    return tuple(f for f in merged if f.counters or _dispatch(f) not in used)


def _lacks(facts: KernelFacts, times: dict[tuple[str, str], KernelFacts]) -> bool:
    return bool(facts.counters) and facts.duration is None and _dispatch(facts) in times


def _dispatch(facts: KernelFacts) -> tuple[str, str]:
    return facts.name, facts.notes.get("dispatch", "")
