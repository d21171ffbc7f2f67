"""TraceLens' tables of a trace, with its arithmetic and omissions; see docs/tracelens-differences.md."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_perfgate.core.analysis.tracelens.models import PeerWork, category, figures, sheet_of
from pytest_perfgate.core.analysis.tracelens.nodes import (
    PARTS,
    Forest,
    Row,
    aggregates,
    chosen,
    first_kernel,
    kernel_summary,
    measure,
    merged,
    minus,
    recorded,
    truncated_summary,
    with_shares,
)
from pytest_perfgate.model.metric import (
    Block,
    Cell,
    Column,
    Document,
    Labels,
    Metric,
    MetricSet,
    Section,
    Table,
    labels,
)
from pytest_perfgate.model.profiles import Category, Kind
from pytest_perfgate.model.values import Dimension, grouped

if TYPE_CHECKING:
    from pytest_perfgate.core.analysis.trace.survey import Survey

SHEETS = (
    "GEMM", "CONV_fwd", "CONV_bwd", "SDPA_fwd", "Normalization", "UnaryElementwise", "BinaryElementwise", "Reduce_fwd",
)  # fmt: skip

_ELSEWHERE = re.compile(
    r"(?:flash_attn(?:_3)?|aiter|vllm|_vllm_fa2_C|_C(?:_cache_ops)?|_moe_C|trtllm|bitsandbytes|tex_ts|primus\w*|DaoAILab"
    r"|sglang|sgl_kernel)::|(?:ConvBias\w*_\w*|_\w+_(?:yfwd|xgrad|wgrad)_mm|aten::(?:replication_pad|upsample_nearest)\dd"
    r"|aten::_\w*attention_backward|aten::_efficient_attention_forward)\Z|(?:EvoformerAttention|LigerSiLUMulFunction"
    r"|MoE(?:Dispatch|Combine)|FusedRoPEFunc|CrossEntropyFunction|MambaSplitConv1dScanCombinedFn|TokenPermuteMaskMap"
    r"|Fused?AttnFunc|FlashAttnFunc)(?:Backward)?\Z"
)
"""Operators that only the reference has models or categories for: of libraries, and a few of PyTorch."""

_OMITTED = (
    "Not written here: the histograms of short kernels, collectives, Reduce_bwd, the sheets of libraries' operators."
)

_REFUSED = "TraceLens refuses this trace: it counts kernels and copies that a flow arrow leads to: none here."
_NO_ROW = "TraceLens has no row for this trace in this table."


ReferenceTables = Mapping[str, list[Row]]
"""The reference's tables by the names of their files."""


def reference_tables(survey: Survey) -> dict[str, list[Row]]:
    """Return every table that the reference writes for such a trace, by the name of its file."""
    forest = Forest(survey)
    timeline = _timeline(forest)
    tables: dict[str, list[Row]] = {"gpu_timeline": timeline, "kernel_summary": _kernels(forest, timeline)}
    launchers = _launchers(forest)
    if launchers:
        tables["ops_summary"] = _by_name(launchers)
        tables["ops_summary_by_category"] = _by_category(launchers)
        tables["ops_unique_args"] = _by_arguments(launchers)
        tables["unified_perf_summary"] = _unified(forest)
        tables |= {sheet: rows for sheet in SHEETS if (rows := _sheet(forest, sheet))}
    return tables


def _timeline(forest: Forest) -> list[Row]:
    spans: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for row in forest.gpu.tolist():
        kind = forest.kinds[row]
        kind = Kind.COMPUTE if kind == Kind.MEMSET else kind
        spans[kind].append((forest.stamp[row], forest.stamp[row] + forest.length[row]))
    union = {kind: merged(spans[kind]) for kind in (Kind.COMPUTE, Kind.COMMUNICATION, Kind.MEMCPY)}
    every = merged([span for part in spans.values() for span in part])
    if not every:
        return []
    exposed = minus(union[Kind.COMMUNICATION], union[Kind.COMPUTE])
    copies = minus(minus(union[Kind.MEMCPY], union[Kind.COMPUTE]), union[Kind.COMMUNICATION])
    total, busy = every[-1][1] - every[0][0], measure(every)
    parts = (
        ("computation_time", measure(union[Kind.COMPUTE])),
        ("exposed_comm_time", measure(exposed)),
        ("exposed_memcpy_time", measure(copies)),
        ("busy_time", busy),
        ("idle_time", total - busy),
        ("total_time", total),
        ("total_comm_time", measure(union[Kind.COMMUNICATION])),
        ("total_memcpy_time", measure(union[Kind.MEMCPY])),
    )
    return [{"type": name, "time ms": part / 1e3, "percent": _percent(part, total)} for name, part in parts]


def _percent(part: float, whole: float) -> float | None:
    """Return a percentage; unknown of linked GPU rows that take no time at all."""
    return 100 * part / whole if whole else None


def _kernels(forest: Forest, timeline: Sequence[Row]) -> list[Row]:
    trace, groups = forest.trace, defaultdict(list)
    for at in forest.gpu.tolist():
        if forest.category[at] != Category.KERNEL:
            continue
        owner = int(forest.survey.tree.operator[forest.launch[at]])
        name = forest.name(owner) if owner >= 0 else ""
        kind = category(name, forest.name(at)) if owner >= 0 else "runtime"
        groups[kind, name, forest.name(at), trace.queues[int(trace.place[at])].stream].append(forest.length[at])
    everything = sum(sum(g) for g in groups.values())
    total = next((float(r["time ms"]) * 1e3 for r in timeline if r["type"] == "total_time"), 0.0)  # type: ignore[arg-type]
    rows: list[Row] = []
    for (kind, name, kernel, stream), spent in groups.items():
        row: Row = {"Parent op category": kind}
        row |= {"Parent cpu_op": name} if name else {}
        row |= {"Kernel name": kernel, "Kernel stream": stream}
        row |= {"Kernel duration (µs)_sum": float(sum(spent)), "Kernel duration (µs)_count": len(spent)}
        row |= aggregates("Kernel duration (µs)", spent, ("mean", "min", "max"))
        row["Percent of kernels time (%)"] = _percent(sum(spent), everything)
        row["Percent of total time (%)"] = _percent(sum(spent), total)
        rows.append(row)
    return sorted(rows, key=lambda row: -float(row["Kernel duration (µs)_sum"]))  # type: ignore[arg-type]


def _launchers(forest: Forest) -> list[Row]:
    rows = []
    for at in forest.launchers():
        direct = [r for r in forest.direct[at] if not forest.is_communication(r)]
        process, label, thread = forest.thread(at)
        row: Row = {"name": forest.name(at), "op category": category(forest.name(at), forest.name(direct[0]))}
        row |= {"process_name": process, "process_label": label, "thread_name": thread, **_arguments(forest, at)}
        row |= {"UID": int(forest.trace.index[at]), "direct": forest.busy(direct)}
        row |= {"subtree": forest.busy(forest.below[at]), "kernels": details(forest, direct)}
        rows.append(row)
    return rows


def details(forest: Forest, rows: Sequence[int]) -> list[tuple[str, object, float]]:
    """Return (name, stream, microseconds) of GPU rows."""
    trace = forest.trace
    number = int if forest.whole else float
    return [(forest.name(r), trace.queues[int(trace.place[r])].stream, number(forest.length[r])) for r in rows]


def _arguments(forest: Forest, at: int) -> Row:
    return dict(zip(_GIVEN, forest.recorded_arguments(*forest.signature(at))))


def _by_name(launchers: Sequence[Row]) -> list[Row]:
    rows: list[Row] = []
    for name, group in sorted(grouped(launchers, lambda row: row["name"]).items()):
        direct, subtree = sum(_floats(group, "direct")), sum(_floats(group, "subtree"))
        row: Row = {"name": name, "total_direct_kernel_time_sum": direct, "total_subtree_kernel_time_sum": subtree}
        row |= {"total_direct_kernel_time_ms": direct / 1e3, "total_subtree_kernel_time_ms": subtree / 1e3}
        row |= {"Count": len(group), "Categories": str(sorted({str(r["op category"]) for r in group}))}
        rows.append(row)
    return with_shares(rows, "total_direct_kernel_time_sum")


def _by_category(launchers: Sequence[Row]) -> list[Row]:
    rows: list[Row] = [
        {"op category": name, "Count": len(group), "total_direct_kernel_time_ms": sum(_floats(group, "direct")) / 1e3}
        for name, group in grouped(launchers, lambda row: row["op category"]).items()
    ]
    return with_shares(rows, "total_direct_kernel_time_ms")


_SAME = ("name", "op category", "process_name", "process_label", "thread_name")

_GIVEN = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")


def _variant(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in (*_SAME, *_GIVEN))


def _by_arguments(launchers: Sequence[Row]) -> list[Row]:
    rows: list[Row] = []
    for group in grouped(launchers, _variant).values():
        row: Row = {name: group[0][name] for name in (*_SAME, *_GIVEN)}
        row["operation_count"] = len(group)
        for part in (*PARTS, "sum"):
            for column in ("direct", "subtree"):
                row |= aggregates(f"total_{column}_kernel_time", _floats(group, column), (part,))
        row["ex_UID"] = group[0]["UID"]
        row |= _summaries(group)
        rows.append(row)
    return with_shares(rows, "total_direct_kernel_time_sum")


def _summaries(group: Sequence[Row]) -> Row:
    lists: Any = [row["kernels"] for row in group]
    return {"kernel_details_summary": kernel_summary(lists), "trunc_kernel_details": truncated_summary(lists)}


def _floats(group: Sequence[Row], column: str) -> list[float]:
    return [float(row[column]) for row in group]  # type: ignore[arg-type]


def _measured(forest: Forest, at: int, below: Sequence[int], work: PeerWork | None) -> Row:
    spent = forest.busy(below)
    row: Row = {"Kernel Time (µs)": spent, "kernels": details(forest, below), "UID": int(forest.trace.index[at])}
    row |= {"duration_us": float(forest.length[at])}
    if work is not None:
        moved = work.moved
        row |= {"GFLOPS": work.flops / 1e9, "Compute Spec": work.spec}
        row |= {"Data Moved (MB)": moved / 2**20 if moved is not None else None}
        row["FLOPS/Byte"] = work.flops / moved if moved else None
        row["TB/s"] = moved / 1e12 / (spent / 1e6) if spent and moved is not None else None
        row["TFLOPS/s"] = work.flops / 1e12 / (spent / 1e6) if spent else None
    return row


def _worked(forest: Forest, at: int) -> PeerWork | None:
    """Return the work of a call, shared by all with the same arguments and kernels."""
    kernels = tuple(forest.name(row) for row in forest.below.get(at, ()))
    key = (*forest.signature(at), kernels)
    if key not in forest.worked:
        try:
            forest.worked[key] = figures(forest.call(at), kernels)
        except (ValueError, IndexError, TypeError, ArithmeticError):
            forest.worked[key] = None
    return forest.worked[key]


def _sheet(forest: Forest, sheet: str) -> list[Row]:
    measured_rows: list[Row] = []
    wanted = [number for number, name in enumerate(forest.trace.names) if sheet_of(name) == sheet]
    trace = forest.trace
    for at in np.flatnonzero((trace.category == Category.OPERATOR) & np.isin(trace.name, wanted)).tolist():
        work = _worked(forest, at)
        if work is None:
            continue
        row = _measured(forest, at, forest.below.get(at, []), work)
        process, label, thread = forest.thread(at)
        call = forest.call(at)
        recorded = call if int(forest.trace.argument[at]) >= 0 else None
        row |= {"name": forest.name(at), "parameters": work.parameters, "arguments": recorded}
        row |= {"process_name": process, "process_label": label, "thread_name": thread}
        measured_rows.append(row)
    groups = grouped(measured_rows, lambda row: (row["name"], str(row["parameters"])))
    rows = [_sheet_row(group) for group in groups.values()]
    return sorted(rows, key=lambda row: (-float(row["Kernel Time (µs)_sum"]), row["UID_first"]))  # type: ignore[arg-type]


def _sheet_row(group: Sequence[Row]) -> Row:
    first = group[0]
    parameters: Any = first["parameters"]
    row: Row = {"name": first["name"]}
    row |= {f"param: {name}": value if isinstance(value, (int, float)) else _text(value) for name, value in parameters}
    row |= {f"{name}_first": first[name] for name in ("GFLOPS", "Data Moved (MB)", "FLOPS/Byte")}
    for name in ("TB/s", "TFLOPS/s"):
        known = [float(r[name]) for r in group if r[name] is not None]  # type: ignore[arg-type]
        row |= aggregates(name, known) if known else {f"{name}_{part}": None for part in PARTS}
    row |= {f"{name}_first": first[name] for name in ("process_name", "process_label", "thread_name")}
    lists: Any = [r["kernels"] for r in group]
    row |= {"Compute Spec": first["Compute Spec"], "kernel_details__summarize_kernel_stats": kernel_summary(lists)}
    row["trunc_kernel_details"] = truncated_summary(lists) if any(lists) else None
    call: Any = first["arguments"]
    parts = recorded(call) if call is not None else (None,) * len(_GIVEN)
    row |= {f"{name}_first": _text(_unfrozen(part)) for name, part in zip(_GIVEN, parts)}
    row |= aggregates("Kernel Time (µs)", _floats(group, "Kernel Time (µs)"), (*PARTS, "sum"))
    return {**row, "name_count": len(group), "UID_first": first["UID"]}


def _text(cell: Any) -> str | None:
    return None if cell is None else str(cell)


def _unfrozen(cell: Any) -> Any:
    return [_unfrozen(item) for item in cell] if isinstance(cell, tuple) else cell


def _unified(forest: Forest) -> list[Row]:
    rows: list[Row] = []
    synthetic = forest.trace.events
    for at, name, below, named in chosen(forest):
        call = forest.call(at)
        modelled = named and (sheet_of(name) != "triton" or bool(call.dims and call.concrete and call.types))
        work = _worked(forest, at) if modelled else None
        row = _measured(forest, at, below, work)
        process, label, thread = forest.thread(at)
        row |= {"name": name, "op category": category(name, first_kernel(forest, at))}
        row |= {"process_name": process, "process_label": label, "thread_name": thread, **_arguments(forest, at)}
        row |= {"has_perf_model": modelled, "worked": work is not None, "parameters": work.parameters if work else ()}
        if name != forest.name(at):
            row["UID"], synthetic = synthetic, synthetic + 1
        rows.append(row)
    return with_shares([_unified_row(group) for group in grouped(rows, _variant).values()], "Kernel Time (µs)_sum")


def _unified_row(group: Sequence[Row]) -> Row:
    first = group[0]
    row: Row = {name: first[name] for name in (*_SAME, *_GIVEN)}
    spent = _floats(group, "duration_us")
    row |= {"ex_UID": first["UID"], "operation_count": len(group), "total_duration_us": sum(spent)}
    durations = aggregates("duration_us", spent)
    row |= {"mean_duration_us": durations["duration_us_mean"], "std_duration_us": durations["duration_us_std"]}
    row |= {name: first.get(name) for name in ("GFLOPS", "Data Moved (MB)", "FLOPS/Byte", "Compute Spec")}
    for name in ("TB/s", "TFLOPS/s"):
        known = [float(r[name]) for r in group if r.get(name) is not None]  # type: ignore[arg-type]
        row |= aggregates(name, known) if known else {f"{name}_{part}": None for part in PARTS}
    row |= aggregates("Kernel Time (µs)", _floats(group, "Kernel Time (µs)"), (*PARTS, "sum"))
    row |= {f"duration_us_{part}": durations[f"duration_us_{part}"] for part in ("median", "min", "max")}
    row |= _summaries(group)
    parameters: Any = first["parameters"]
    return {
        **row,
        "perf_params": str(dict(parameters)) if parameters else None,
        "has_perf_model": first["has_perf_model"],
    }


def reference_document(tables: ReferenceTables, subject: str) -> Document:
    """Return every table of the reference for this trace, in its units and with its omissions."""
    blocks: tuple[Block, ...] = tuple(
        Section(title=name, blocks=(as_table(rows, name),)) for name, rows in tables.items() if rows
    )
    head = ["window: whole trace.", _OMITTED]
    if not blocks:
        head = [_REFUSED if "gpu_timeline" in tables else _NO_ROW]
    about = " ".join([*head, *_unclaimed(tables)])
    return Document(title=f"{subject} as TraceLens counts it", subtitle=about, blocks=blocks)


def _unclaimed(tables: ReferenceTables) -> Iterator[str]:
    """Yield operators of the trace that have a figure or a category only in the reference."""
    names = [str(row["name"]) for row in tables.get("ops_summary", ())]
    others = [name for name in names if _ELSEWHERE.match(name) and not sheet_of(name)]
    if others:
        more = f" and {len(others) - 5} more" if len(others) > 5 else ""
        yield f"TraceLens has figures or categories of its own for {', '.join(others[:5])}{more}: those cells differ."


def as_table(rows: list[Row], title: str) -> Table:
    """Return rows of named cells as a table; a numeric column has plain numbers."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = tuple(Column(name=name, dimension=_dimension([row.get(name) for row in rows])) for name in names)
    return Table(
        columns=columns, rows=tuple(tuple(_cell(row.get(name)) for name in names) for row in rows), title=title
    )


def _dimension(cells: list[object]) -> Dimension:
    known = [cell for cell in cells if cell is not None]
    numbers = all(isinstance(cell, (int, float)) and not isinstance(cell, bool) for cell in known)
    return Dimension.PLAIN if known and numbers else Dimension.TEXT


def _cell(cell: object) -> Cell:
    if cell is None or (isinstance(cell, (int, float)) and not isinstance(cell, bool)):
        return cell
    return str(cell)


_NAMES = {
    "exposed_comm_time": "exposed_comm",
    "exposed_memcpy_time": "exposed_memcpy",
    "total_comm_time": "communication_time",
    "total_memcpy_time": "memcpy_time",
}


def reference_metrics(tables: ReferenceTables) -> MetricSet:
    """Return the reference's timeline and operator times as metrics, in our units."""
    metrics = [
        _metric(_NAMES.get(str(row["type"]), str(row["type"])), float(str(row["time ms"])) * 1e6, ())
        for row in tables["gpu_timeline"]
    ]
    metrics += [
        _metric("op_time", float(str(row["total_direct_kernel_time_sum"])) * 1e3, labels(op=row["name"]))
        for row in tables.get("ops_summary", [])
    ]
    return MetricSet(metrics=tuple(metrics))


def _metric(name: str, number: float, where: Labels) -> Metric:
    return Metric(
        name=name, value=number, dimension=Dimension.TIME, labels=where, source="trace", note="as TraceLens counts it"
    )
