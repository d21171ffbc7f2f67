"""Operators and kernels: counts, times, fractions of peak."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pytest_perfgate.core.analysis.operators import OperatorCall, category_of, parse_call, work_of
from pytest_perfgate.core.analysis.roofline import Placement, place
from pytest_perfgate.core.analysis.trace.ranks import Collective
from pytest_perfgate.core.analysis.trace.survey import OUTSIDE, Survey, call_times
from pytest_perfgate.core.analysis.trace.timeline import Spread, numbered, spread, statistics
from pytest_perfgate.core.render.words import ABSENT, quantity
from pytest_perfgate.model.metric import Column, Table
from pytest_perfgate.model.profiles import Category, Kind, Message, Queue
from pytest_perfgate.model.values import Dimension, Work, array_value, grouped, regex, value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pytest_perfgate.model.device import Roof

    Ints = NDArray[np.int64]


WORDS = {Kind.COMPUTE: "compute", Kind.COMMUNICATION: "communication", Kind.MEMCPY: "memcpy", Kind.MEMSET: "memset"}
_LINK = regex(r"^Memcpy (HtoD|DtoH|HtoH|PtoP)|CopyHostToDevice|CopyDeviceToHost")


@array_value
class OperatorRow(Spread):
    """One operator with one set of arguments; its times are those of its kernels on the device."""

    name: str
    call: OperatorCall
    category: str
    work: Work | None
    why: str
    """Why its work is unknown."""
    kernels: float
    """GPU rows of each call."""
    share: float
    """The share of all operators' time."""
    example: int
    """A row of the trace where it happened."""
    event: int
    """The number of that event in the file."""
    kernel: str
    """The name of its longest kernel."""

    def placement(self, roof: Roof | None) -> Placement | None:
        """Return its work in the time of a call, compared with a roof; None without a model or a roof."""
        return place(self.work, self.total / self.count, roof) if self.work and roof else None

    @property
    def arguments(self) -> str:
        """Shapes and types as one text, equal for calls that are comparable."""
        return self.first_arguments(None)

    def first_arguments(self, most: int | None) -> str:
        """Return the same of so many tensors: input and weight, where libraries differ in what follows."""
        call, tensors = self.call, self.call.tensors()[:most]
        return f"{call.shapes(most)} {'/'.join(dict.fromkeys(call.dtype(at) for at in tensors))}".strip()


def operators(survey: Survey) -> tuple[OperatorRow, ...]:
    """Return operators by arguments, the longest first."""
    if not len(survey.owner):
        return ()
    instances, instance, spent = call_times(survey)
    trace = survey.trace
    name = np.where(instances >= 0, trace.name[np.maximum(instances, 0)], -1)
    argument = np.where(instances >= 0, trace.argument[np.maximum(instances, 0)], -1)
    group, groups = numbered(name, argument)
    stats = statistics(spent, group, groups)
    launched = np.bincount(group[instance], minlength=groups)
    longest = _longest_kernels(survey, group[instance], groups)
    rows = []
    everything = float(stats.total.sum()) or 1.0
    for g in np.argsort(-stats.total, kind="stable").tolist():
        example = int(instances[stats.first[g]])
        kernel = trace.names[longest[g]]
        call = replace(_call(survey, example), kernel=kernel)
        work, why = _work(survey, call) if example >= 0 else (None, "no operator launched it")
        rows.append(
            OperatorRow(
                name=call.name,
                call=call,
                category=category_of(call.name, kernel),
                work=work,
                why=why,
                **spread(stats, g),
                kernels=float(launched[g] / stats.count[g]),
                share=float(stats.total[g]) / everything,
                example=example,
                event=int(trace.index[example]) if example >= 0 else -1,
                kernel=kernel,
            )
        )
    return tuple(sorted(rows, key=lambda row: (-row.total, row.name, str(row.call.dims), row.kernel)))


def _work(survey: Survey, call: OperatorCall) -> tuple[Work | None, str]:
    """Return the work of a call; a copy over the host's link has no roof of the device."""
    if _LINK.search(call.kernel):
        return None, "it copies between host and device: the link's peak is not in a trace"
    return work_of(call, survey.settings.models)


def recompute_share(survey: Survey) -> float | None:
    """Return the share of GPU time launched while checkpointing repeated a forward pass."""
    trace = survey.trace
    marked = np.array(["recompute_fn" in name for name in trace.names] or [False])
    if not marked.any() or not len(survey.rows):
        stacks = trace.frames or (trace.category == Category.PYTHON).any()
        return 0.0 if stacks and len(survey.rows) else None
    under = marked[trace.name] & (trace.category == Category.PYTHON)
    at, inside = np.maximum(survey.link.launch, 0), np.zeros(len(survey.rows), bool)
    open_rows = survey.link.launch >= 0
    while open_rows.any():
        inside |= open_rows & under[at]
        up = survey.tree.parent[at]
        open_rows &= up >= 0
        at = np.where(open_rows, up, 0)
    spent = survey.end - survey.start
    total = int(spent.sum())
    return float(spent[inside].sum() / total) if total else None


def _call(survey: Survey, row: int) -> OperatorCall:
    if row < 0:
        return OperatorCall(name=OUTSIDE)
    trace = survey.trace
    name, argument = trace.names[trace.name[row]], int(trace.argument[row])
    return parse_call(name, trace.arguments[argument]) if argument >= 0 else OperatorCall(name=name)


def _longest_kernels(survey: Survey, group: Ints, groups: int) -> list[int]:
    """Return the number of the kernel name in which each group spent the most time."""
    names = survey.trace.name[survey.rows].astype(np.int64)
    pair, pairs = numbered(group, names)
    stats = statistics((survey.end - survey.start).astype(np.float64), pair, pairs)
    best, most = [0] * groups, [-1.0] * groups
    for p, row in enumerate(stats.first.tolist()):
        g = int(group[row])
        if stats.total[p] > most[g]:
            most[g], best[g] = float(stats.total[p]), int(names[row])
    return best


@value
class KernelRow(Spread):
    name: str
    launcher: str
    stream: str
    device: int
    kind: str
    share: float
    first: int
    """The first of its rows in the survey."""


def kernels(survey: Survey) -> tuple[KernelRow, ...]:
    """Return kernels, copies and fills, the longest first."""
    if not len(survey.rows):
        return ()
    trace = survey.trace
    launcher, place, group, groups = kernel_groups(survey)
    stats = statistics((survey.end - survey.start).astype(np.float64), group, groups)
    everything = float(stats.total.sum()) or 1.0
    rows = []
    for g in np.argsort(-stats.total, kind="stable").tolist():
        at = int(stats.first[g])
        queue = Queue(device=-1, stream="host") if survey.on_host else trace.queues[int(place[at])]
        rows.append(
            KernelRow(
                name=trace.names[int(trace.name[survey.rows[at]])],
                launcher=trace.names[int(launcher[at])] if launcher[at] >= 0 else OUTSIDE,
                stream=str(queue.stream),
                device=queue.device,
                kind=WORDS[Kind(int(survey.kinds[at]))],
                **spread(stats, g),
                share=float(stats.total[g]) / everything,
                first=at,
            )
        )
    return tuple(sorted(rows, key=lambda row: (-row.total, row.name, row.launcher, row.device, row.stream)))


def kernel_groups(survey: Survey) -> tuple[Ints, Ints, Ints, int]:
    """Return launcher, place and group of every row of the GPU, and the number of groups."""
    trace, leaf = survey.trace, survey.link.leaf
    launcher = np.where(leaf >= 0, trace.name[np.maximum(leaf, 0)], -1).astype(np.int64)
    place = np.full(len(survey.rows), -1) if survey.on_host else trace.place[survey.rows].astype(np.int64)
    return launcher, place, *numbered(trace.name[survey.rows].astype(np.int64), launcher, place)


def sole_workers(survey: Survey, rows: Sequence[OperatorRow]) -> tuple[Ints, Ints]:
    """Return for every row of the GPU which of the operators it belongs to, and how many share that call's work."""
    # A memory set shares nothing where the call has other rows: its count is 0.
    owners, instance = np.unique(survey.owner, return_inverse=True)
    works = survey.kinds != Kind.MEMSET
    works |= np.bincount(instance, works)[instance] == 0  # memory sets are the work of a call that has nothing else
    sharing = np.where(works, np.bincount(instance, works)[instance], 0).astype(np.int64)
    return rows_of_calls(survey, owners, rows)[instance], sharing


def rows_of_calls(survey: Survey, owners: Ints, rows: Sequence[OperatorRow]) -> Ints:
    """Return for every call which of the operators it belongs to, by name and arguments."""
    trace, examples = survey.trace, np.array([row.example for row in rows], np.int64)
    wide = len(trace.arguments) + 1
    calls, codes = (
        np.where(at >= 0, trace.name[np.maximum(at, 0)].astype(np.int64) * wide + trace.argument[at] + 1, -1)
        for at in (owners, examples)
    )
    order = np.argsort(codes)
    return order[np.searchsorted(codes, calls, sorter=order)]


def hardware_table(**roofs: Roof | None) -> Table:
    """Return one column for each device: name and source, bandwidth, and peak of each element type."""
    dtypes = dict.fromkeys(dtype for roof in roofs.values() if roof for dtype, _ in roof.compute)
    notes = {name: (roof.note if roof else "not known").partition("; ") for name, roof in roofs.items()}
    rows = [("peaks", *(source for source, _, _ in notes.values()))]
    rows.append(("memory bandwidth", *(_shown(roof.bandwidth if roof else None) for roof in roofs.values())))
    rows += [(dtype, *(_peak(roof, dtype) for roof in roofs.values())) for dtype in dtypes]
    note = "; ".join(f"{name}: {rest}" for name, (_, _, rest) in notes.items() if rest)
    return Table(columns=(Column(name="hardware"), *(Column(name=name) for name in roofs)), rows=tuple(rows), note=note)


def _shown(bandwidth: float | None) -> str:
    return quantity(bandwidth, Dimension.BANDWIDTH) if bandwidth else ABSENT


def _peak(roof: Roof | None, dtype: str) -> str:
    from pytest_perfgate.core.analysis.work import typed_rate

    rates = dict(roof.compute) if roof else {}
    return quantity(typed_rate(rates[dtype], dtype), Dimension.FLOPS) if dtype in rates else ABSENT


_LIBRARIES = (
    ("flash attention", r"flash_(?:fwd|bwd|attn)|pytorch_flash|fmha_"),
    ("cuDNN", r"cudnn"),
    (
        "cuBLAS",
        r"cublas|_xmma_gemm_|s\d+gemm_(?:relu_)?(?:bf|fp?)16|(?:volta|turing|ampere)_h\d+gemm_|[sd]gemm_|gemv2|gemmk1",
    ),
    ("CUTLASS", r"cutlass"),
    ("Tensile (hipBLASLt, rocBLAS)", r"^Cijk_"),
    ("MIOpen", r"MIOpen|^miopen|igemm_|batched_transpose"),
    ("Composable Kernel", r"\bck::|ck_tile"),
    ("Triton", r"^triton_|_kernel_\d+d\d+"),
    ("NCCL", r"(?i:nccl|rccl)"),
    ("PyTorch", r"at::native|at_cuda_detail|cub::"),
)

_SHORT = 72

_AROUND = regex(r"^void |\(anonymous namespace\)::|at::native::|\([^()]*\)$")

_TILES = (
    regex(r"tilesize(\d+x\d+x\d+)"),
    regex(r"_MT(\d+x\d+x\d+)"),
    regex(r"_(\d{2,3}x\d{2,3}_\d{2,3}x\d+)_"),
    regex(r"_(\d{2,3}x\d{2,3}(?:x\d+)?)_"),
)


def library(name: str) -> str:
    """Return the library of a kernel; "" if its name does not show it."""
    return next((word for word, pattern in _LIBRARIES if re.search(pattern, name)), "")


def tile(name: str) -> str:
    """Return the tile of a product kernel; "" if its name does not show it."""
    for pattern in _TILES:
        if match := pattern.search(name):
            return match.group(1)
    return ""


def short_name(name: str) -> str:
    """Return a kernel's name without common parts, parameters and its end."""
    plain = _AROUND.sub("", name)
    return plain if len(plain) <= _SHORT else f"{plain[: _SHORT - 1]}\N{HORIZONTAL ELLIPSIS}"


def selection_table(rows: Sequence[OperatorRow]) -> Table:
    """Return operators that use different kernels for different shapes."""
    listed = []
    for name, group in grouped(rows, lambda row: row.name).items():
        if len({row.kernel for row in group}) < 2:
            continue
        listed += [
            (name, row.call.shapes(), library(row.kernel), tile(row.kernel), row.kernel, row.count, row.total)
            for row in group
        ]
    return Table(
        columns=Column.header("operator | shapes | library | tile | longest kernel | calls: count | GPU time: time"),
        rows=tuple(listed),
        note="Library and tile are read from the kernel's name; empty where the name does not say."
        if listed
        else "No operator uses different kernels for different shapes.",
    )


_WORD = regex(r"(?:nccl|rccl)(?:Dev)?Kernel_?([A-Za-z]+)", re.IGNORECASE)

_CLIMB = 8
"""The most callers of a launch that are searched for the record of its collective."""


def collectives(survey: Survey, rank: int) -> tuple[Collective, ...]:
    """Return the communication kernels of a rank, or the collectives that its host marked, by their starts."""
    rows = np.flatnonzero(survey.kinds == Kind.COMMUNICATION).tolist()
    messages = _marked(survey) if survey.on_host else {int(survey.rows[at]): _message(survey, at) for at in rows}
    counted: dict[tuple[str, str], int] = {}
    result = []
    for row in sorted(messages, key=lambda row: int(survey.trace.start[row])):
        message, kind = messages[row], word(survey.trace.names[survey.trace.name[row]])
        group = message.group if message else ""
        ordinal = counted[kind, group] = counted.get((kind, group), -1) + 1
        result.append(
            Collective(
                kind=kind,
                group=group,
                ordinal=ordinal,
                rank=rank,
                start=int(survey.trace.start[row]) + survey.trace.base_ns,
                length=int(survey.trace.end[row] - survey.trace.start[row]),
                size=message.size if message else None,
                sent=message.sent if message else None,
                ranks=message.ranks if message else None,
                operation=message.collective if message else "",
            )
        )
    return tuple(result)


def word(name: str) -> str:
    """Return the kind of a communication kernel, without algorithm, protocol and dtype."""
    match = _WORD.search(name)
    if match:
        return match.group(1)
    return name.partition("<")[0].partition("(")[0].rpartition(":")[2] or name


def _marked(survey: Survey) -> dict[int, Message | None]:
    """Return the collectives of a program without a GPU, by the rows that Gloo, MPI or UCC marked."""
    trace, marked = survey.trace, [name.startswith(("gloo:", "mpi:", "ucc:")) for name in survey.trace.names]
    low, high = survey.window.pair if survey.window else (-1, np.iinfo(np.int64).max)
    rows = np.flatnonzero(np.array(marked)[trace.name] & (trace.start < high) & (trace.end > low)).tolist()
    return {row: _annotated(trace.names[trace.name[row]], _call(survey, row), trace.world) for row in rows}


def _message(survey: Survey, at: int) -> Message | None:
    """Return what was recorded on the kernel or a caller of its launch, or else what an annotation tells."""
    trace, row, above, annotated = survey.trace, int(survey.rows[at]), int(survey.link.launch[at]), None
    if row in trace.messages:
        return trace.messages[row]
    for _ in range(_CLIMB):
        if above < 0:
            break
        if above in trace.messages:
            return trace.messages[above]
        name = trace.names[trace.name[above]]
        if not annotated and name.startswith("nccl:") and trace.argument[above] >= 0:
            annotated = _annotated(name, parse_call("", trace.arguments[int(trace.argument[above])]), trace.world)
        above = int(survey.tree.parent[above])
    return annotated


def _annotated(name: str, call: OperatorCall, world: int | None) -> Message:
    """Return a collective by its inputs; its group is not recorded, and taken as all ranks."""
    return Message(collective=name, ranks=world, sent=_sent(call) or None)


def _sent(call: OperatorCall) -> float:
    """Return the bytes of a collective's tensors; 0 if a shape is not numeric."""
    try:
        return sum(call.size(i) for i in call.tensors())
    except ValueError:
        return 0.0
