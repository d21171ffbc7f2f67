"""Candidates for fusion, backward passes, replays, call stacks."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_perfgate.core.analysis.operators.layers import packed_ends
from pytest_perfgate.core.analysis.operators.pointwise import element_types
from pytest_perfgate.core.analysis.work import known_dtype
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Code, Column, Document, Paragraph, Section, Table
from pytest_perfgate.model.profiles import HOST, Category
from pytest_perfgate.model.values import regex, value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pytest_perfgate.core.analysis.operators import OperatorCall
    from pytest_perfgate.core.analysis.trace.operators import OperatorRow
    from pytest_perfgate.core.analysis.trace.survey import Survey

    Ints = NDArray[np.int64]

_INSTANCE = regex(r"_\d+$")

SHORT_NS = 50_000


@value
class Candidate:
    """A kind of module with many short kernels in each instance."""

    module: str
    instances: int
    kernels: float
    total: float
    """GPU nanoseconds of all instances."""
    mean_kernel: float
    saving: float
    """The time of all but what one fused kernel still computes: the longest kernel, or the products, of each."""


_MOST_FUSED = 32
"""The most kernels that one kernel could replace; more of them are a whole model."""


def fusion_candidates(survey: Survey) -> tuple[Candidate, ...]:
    """Return kinds of modules with three kernels or more in each instance, short on average."""
    trace = survey.trace
    kinds = _module_names(survey)
    counts, spent, stays = _launched(survey), subtree_times(survey), _fusion_floor(survey)
    candidates = []
    for module, names in kinds.items():
        rows = np.flatnonzero(
            np.isin(trace.name, names) & ((trace.category == Category.PYTHON) | (trace.category == Category.OPERATOR))
        )
        rows = rows[counts[rows] > 0]
        if not len(rows):
            continue
        kernels, total = float(counts[rows].sum()), float(spent[rows].sum())
        if 3 <= kernels / len(rows) <= _MOST_FUSED and total / kernels < SHORT_NS:
            candidates.append(
                Candidate(
                    module=module,
                    instances=len(rows),
                    kernels=kernels / len(rows),
                    total=total,
                    mean_kernel=total / kernels,
                    saving=total - float(stays[rows].sum()),
                )
            )
    return tuple(sorted(candidates, key=lambda c: -c.total))


def fusion_table(candidates: tuple[Candidate, ...]) -> Table:
    return Table(
        columns=Column.header(
            "module | instances: count | kernels each: count 3 | GPU time, all instances: time | "
            "mean kernel: time | saving, at most: time"
        ),
        rows=tuple((c.module, c.instances, c.kernels, c.total, c.mean_kernel, c.saving) for c in candidates),
        note="A module contains its submodules: their times are in it too. One fused kernel reads and writes what its "
        "parts pass on once, and still computes their products (GEMM, convolution, attention): the saving is all but "
        "these, or but the longest kernel, of each instance."
        if candidates
        else "No module launches three short kernels or more. Modules are in traces recorded with with_stack=True.",
    )


def _module_names(survey: Survey) -> dict[str, list[int]]:
    kinds: dict[str, list[int]] = defaultdict(list)
    for number, name in enumerate(survey.trace.names):
        if name.startswith("nn.Module: "):
            kinds[_INSTANCE.sub("", name.removeprefix("nn.Module: "))].append(number)
    return kinds


_PRODUCTS = ("GEMM", "CONV_fwd", "CONV_bwd", "SDPA_fwd", "SDPA_bwd", "MoE")


def _fusion_floor(survey: Survey) -> Ints:
    """Return the time below every host row that fusion keeps: all products, and no less than the longest GPU row."""
    from pytest_perfgate.core.analysis.operators import category_of

    names = survey.trace.names
    owners = np.unique(survey.owner[survey.owner >= 0])
    products = [row for row in owners.tolist() if category_of(names[survey.trace.name[row]]) in _PRODUCTS]
    return np.maximum(_longest(survey), subtree_times(survey, np.isin(survey.owner, products)))


def _longest(survey: Survey) -> Ints:
    """Return the longest GPU row launched below every host row."""
    longest, spent = np.zeros(len(survey.trace), np.int64), survey.end - survey.start
    for above, below in _callers(survey):
        np.maximum.at(longest, above, spent[below])
    return longest


def _launched(survey: Survey) -> Ints:
    """Count the GPU rows launched below every host row."""
    total = np.zeros(len(survey.trace), np.int64)
    for above, _ in _callers(survey):
        np.add.at(total, above, 1)
    return total


def _callers(survey: Survey) -> Iterator[tuple[Ints, Ints]]:
    """Yield the launches of the linked GPU rows, then their callers level by level, each beside its GPU row."""
    below = np.flatnonzero(survey.link.launch >= 0)
    above = survey.link.launch[below]
    while len(above):
        yield above, below
        above = survey.tree.parent[above]
        above, below = above[above >= 0], below[above >= 0]


ENGINE = "autograd::engine::evaluate_function"


@value
class OperatorPasses:
    """A forward operator's calls and GPU time, and those of its gradients."""

    name: str
    calls: int
    matched: int
    """The number of calls whose backward pass is in the trace."""
    forward: float
    backward: float


def passes(survey: Survey) -> tuple[OperatorPasses, ...]:
    """Return forward operators with a sequence number, those with the longest passes first."""
    trace = survey.trace
    numbered = np.flatnonzero((trace.sequence >= 0) & (trace.category == Category.OPERATOR))
    engine = np.array([name.startswith(ENGINE) for name in trace.names] or [False])
    behind = {int(trace.sequence[r]): r for r in numbered[engine[trace.name[numbered]]].tolist()}
    times = subtree_times(survey)
    totals: dict[str, list[float]] = defaultdict(lambda: [0, 0, 0.0, 0.0])
    for row, numbers in _outermost(survey, numbered[~engine[trace.name[numbered]]]).items():
        entry, gradients = totals[trace.names[trace.name[row]]], [behind[n] for n in numbers if n in behind]
        entry[0] += 1
        entry[1] += bool(gradients)
        entry[2] += float(times[row])
        entry[3] += float(times[gradients].sum())
    listed = (
        OperatorPasses(name=name, calls=int(calls), matched=int(matched), forward=forward, backward=backward)
        for name, (calls, matched, forward, backward) in totals.items()
        if matched and (forward or backward)
    )
    return tuple(sorted(listed, key=lambda p: -(p.forward + p.backward)))


def _outermost(survey: Survey, rows: Ints) -> dict[int, list[int]]:
    """Return the outermost forward operators, each with the numbers that it and those inside it used."""
    # Of operators with one number the last outermost one used it: one without a gradient has that of the next.
    trace = survey.trace
    holders: dict[tuple[int, int], int] = {}
    for row in rows[np.lexsort((-trace.end[rows], trace.start[rows]))].tolist():
        key = (int(trace.place[row]), int(trace.sequence[row]))
        holder = holders.get(key)
        inside = holder is not None and trace.end[row] <= trace.end[holder]
        if not inside and not _in_backward(survey, row):
            holders[key] = row
    users, outer = set(holders.values()), defaultdict[int, list[int]](list)
    for (_, number), row in holders.items():
        outer[[row, *(above for above in _above(survey, row) if above in users)][-1]].append(number)
    return outer


def _in_backward(survey: Survey, row: int) -> bool:
    return any(survey.trace.names[survey.trace.name[above]].startswith(ENGINE) for above in _above(survey, row))


def _above(survey: Survey, row: int) -> Iterator[int]:
    """Yield the callers of a row, the nearest first."""
    while (row := int(survey.tree.parent[row])) >= 0:
        yield row


def passes_table(operators_with_passes: tuple[OperatorPasses, ...]) -> Table:
    return Table(
        columns=Column.header(
            "forward operator | calls: count | with a backward pass: count | forward GPU time: time | "
            "backward GPU time: time | backward / forward: ratio"
        ),
        rows=tuple(
            (p.name, p.calls, p.matched, p.forward, p.backward, p.backward / p.forward if p.forward else None)
            for p in operators_with_passes
        ),
        note="Matched by sequence number; an operator holds what runs inside it, and the gradients of that."
        if operators_with_passes
        else "No operator has a backward pass.",
    )


SCHEMA = 1

_AS_WIDE = {"1 bytes": "uint8", "2 bytes": "bf16", "4 bytes": "fp32", "8 bytes": "int64", "16 bytes": "complex128"}

_INTEGER = regex(r"^-?\d+$")

_FLOAT = regex(r"^-?(?:\d+\.\d*|\.\d+|\d+)(?:e[+-]?\d+)?$|^-?(?:inf|nan)$")

_LIST = regex(r"^\[[^\[\]]*\]$")


def replay_ir(rows: Sequence[OperatorRow], source: str) -> dict[str, Any]:
    """Return several operations in the intermediate form: names, shapes, dtypes, strides, scalars."""
    return {"schema": SCHEMA, "source": source, "operations": [_operation(row) for row in rows]}


def render_ir(form: dict[str, Any]) -> str:
    return json.dumps(form, indent=2, sort_keys=True) + "\n"


def _operation(row: OperatorRow) -> dict[str, Any]:
    return {
        "name": row.call.name,
        "inputs": inputs(row.call),
        "calls": row.count,
        "mean_us": row.mean / 1e3,
        "kernel": row.kernel,
        "flops": row.work.flops if row.work else None,
        "bytes": row.work.bytes if row.work else None,
    }


def inputs(call: OperatorCall) -> list[dict[str, Any]]:
    """Return arguments by position with their kinds; contents only if an operator cannot run on random ones."""
    entries = [_input(call, at) for at in range(len(call.types))]
    for at, values in packed_ends(call).items():
        entries[at]["values"] = list(values)
    return entries


def _input(call: OperatorCall, at: int) -> dict[str, Any]:
    if call.tensor(at):
        strides = call.strides[at] if at < len(call.strides) else ()
        return {
            "kind": "tensor",
            "dtype": known_dtype(call.type(at)),
            "recorded": call.type(at),
            "shape": list(call.shape(at)),
            "strides": list(strides),
        }
    if call.type(at) == "TensorList":
        return _list(call, at)
    scalar = parse_scalar(call.text(at))
    return {"kind": "none"} if scalar is None else {"kind": "scalar", "value": scalar}


def _list(call: OperatorCall, at: int) -> dict[str, Any]:
    """Return a list of tensors, with the kernel's element type, or one as wide if only the width is known."""
    sorts = element_types(call.kernel)
    before = sum(call.type(earlier) == "TensorList" for earlier in range(at))
    sort = sorts[min(before, len(sorts) - 1)] if sorts else ""
    return {
        "kind": "tensors",
        "dtype": _AS_WIDE.get(sort) or known_dtype(sort),
        "shapes": [list(shape) for shape in call.dims[at]],
        "strides": [list(steps) for steps in call.strides[at]] if at < len(call.strides) else [],
    }


def parse_scalar(text: str) -> Any:
    """Return a recorded scalar or list of scalars; other text stays text, and an empty one is absent."""
    text = text.strip()
    if not text or text == "None":
        return None
    if text in {"True", "False"}:
        return text == "True"
    if _INTEGER.match(text):
        return int(text)
    if _FLOAT.match(text):
        return float(text)
    if _LIST.match(text):
        return [parse_scalar(part) for part in text[1:-1].split(",") if part.strip()]
    return text


DEPTH = 12

WIDTH = 200


def find_operation(survey: Survey, wanted: str) -> int:
    """Return the row of an event number, a name or a pattern: the one with the most GPU time."""
    trace = survey.trace
    if wanted.isdecimal() and len(numbered := np.flatnonzero(trace.index == int(wanted))):
        return int(numbered[0])
    names = [i for i, name in enumerate(trace.names) if name == wanted or fnmatchcase(name, wanted)]
    names = names or [i for i, name in enumerate(trace.names) if wanted.lower() in name.lower()]
    rows = np.flatnonzero(np.isin(trace.name, names) & np.isin(trace.category, HOST))
    if not len(rows):
        raise PerfgateError("trace-no-operation", f"nothing in the trace is called {wanted!r}", place=trace.path)
    spent = subtree_times(survey)[rows]
    return int(rows[int(np.argmax(spent))])


def subtree_times(survey: Survey, counted: NDArray[np.bool_] | bool = True) -> Ints:
    """Return the nanoseconds below every host row, of the GPU rows that count."""
    total, spent = np.zeros(len(survey.trace), np.int64), (survey.end - survey.start) * counted
    for above, below in _callers(survey):
        np.add.at(total, above, spent[below])
    return total


def stack_document(survey: Survey, wanted: str) -> Document:
    """Return parents and subtree of one operation."""
    row = find_operation(survey, wanted)
    trace, parents = survey.trace, [survey.trace.names[survey.trace.name[above]] for above in _above(survey, row)]
    times = "host time" if survey.on_host else "GPU time summed over all kernels below"
    chain = "\n".join(f"{'  ' * depth}{name}" for depth, name in enumerate(reversed(parents))) or "(a root)"
    return Document(
        title=f"{trace.names[trace.name[row]]}, event {trace.index[row]}",
        subtitle=f"window: {survey.label}",
        blocks=(
            Section(title="Called by", blocks=(Code(text=chain),)),
            Section(title=f"Subtree, with {times}", blocks=(Code(text="\n".join(subtree(survey, row))),)),
            Paragraph(text="Consecutive short kernels of one module are candidates for fusion: see --view fusion."),
        ),
    )


def subtree(survey: Survey, row: int) -> list[str]:
    """Return the subtree as lines, with kernels below their launch."""
    children = _children(survey)
    kernels: dict[int, list[int]] = defaultdict(list)
    for at, launch in enumerate(() if survey.on_host else survey.link.launch.tolist()):
        kernels[launch].append(at)
    times = subtree_times(survey)
    lines: list[str] = []
    todo = [(row, 0)]
    while todo and len(lines) < WIDTH:
        here, level = todo.pop()
        name = survey.trace.names[survey.trace.name[here]]
        lines.append(f"{'  ' * level}{name}  {_micro(int(times[here]))}")
        for at in kernels.get(here, ()):
            kernel = survey.trace.names[survey.trace.name[survey.rows[at]]]
            lines.append(f"{'  ' * (level + 1)}-> {kernel[:100]}  {_micro(int(survey.end[at] - survey.start[at]))}")
        below = [c for c in children.get(here, ()) if times[c] > 0]
        todo += [(child, level + 1) for child in reversed(below)] if level < DEPTH else []
    return [*lines, "..."] if todo else lines


def _children(survey: Survey) -> dict[int, list[int]]:
    below: dict[int, list[int]] = defaultdict(list)
    rows = np.flatnonzero(survey.tree.parent >= 0)
    for child in rows[np.argsort(survey.trace.start[rows], kind="stable")].tolist():
        below[int(survey.tree.parent[child])].append(child)
    return below


def _micro(ns: int) -> str:
    return f"{ns:,} ns" if ns else "no GPU time"
