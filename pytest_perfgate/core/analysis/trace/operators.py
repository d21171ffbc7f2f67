"""Operators of a trace: how often, how long on the GPU, and how near to what the device allows."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pytest_perfgate.core.analysis.operators.call import Call, parse_call
from pytest_perfgate.core.analysis.operators.table import category_of, work_of
from pytest_perfgate.core.analysis.trace.grouped import Spread, busy, numbered, spread, statistics
from pytest_perfgate.core.analysis.trace.survey import Survey
from pytest_perfgate.model.trace import Category
from pytest_perfgate.model.values import array_value
from pytest_perfgate.model.work import Work

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

_LINK = re.compile(r"^Memcpy (HtoD|DtoH|HtoH|PtoP)|CopyHostToDevice|CopyDeviceToHost")
OUTSIDE = "(launched outside any operator)"


@array_value
class OperatorRow(Spread):
    """One operator with one set of arguments; its times are those that its kernels kept the device busy."""

    name: str
    call: Call
    category: str
    work: Work | None
    why: str
    """Why there is no work."""
    kernels: float
    """GPU rows a call."""
    share: float
    """Of all operators' time."""
    example: int
    """A row of the trace where it happened."""
    kernel: str
    """Its longest kernel's name."""


def operators(seen: Survey, by_leaf: bool = False) -> tuple[OperatorRow, ...]:
    """Operators by arguments, the longest first; ``by_leaf`` accounts to the launcher itself."""
    owner = seen.link.leaf if by_leaf else seen.owner
    if not len(owner):
        return ()
    known = np.where(owner >= 0, owner, -1)
    instances, instance = np.unique(known, return_inverse=True)
    spent = busy(seen.start, seen.end, instance, len(instances)).astype(np.float64)
    trace = seen.trace
    name = np.where(instances >= 0, trace.name[np.maximum(instances, 0)], -1)
    argument = np.where(instances >= 0, trace.argument[np.maximum(instances, 0)], -1)
    group, groups = numbered(name, argument)
    stats = statistics(spent, group, groups)
    launched = np.bincount(group[instance], minlength=groups)
    longest = _longest_kernels(seen, group[instance], groups)
    rows = []
    everything = float(stats.total.sum()) or 1.0
    for g in np.argsort(-stats.total, kind="stable").tolist():
        example = int(instances[stats.first[g]])
        kernel = trace.names[longest[g]]
        call = replace(_call(seen, example), kernel=kernel)
        work, why = _work(seen, call) if example >= 0 else (None, "no operator launched it")
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
                kernel=kernel,
            )
        )
    return tuple(rows)


def _work(seen: Survey, call: Call) -> tuple[Work | None, str]:
    """The work of a call; a copy over the host's link is held against no roof of the device."""
    if _LINK.search(call.kernel):
        return None, "it copies between host and device: the link's peak is not in a trace"
    return work_of(call, seen.settings.models)


def recompute_share(seen: Survey) -> float | None:
    """The share of GPU time launched while checkpointing ran a forward pass again."""
    trace = seen.trace
    marked = np.array(["recompute_fn" in name for name in trace.names] or [False])
    if not marked.any() or not len(seen.rows):
        return 0.0 if (trace.category == Category.PYTHON).any() and len(seen.rows) else None
    under = marked[trace.name] & (trace.category == Category.PYTHON)
    at, inside = np.maximum(seen.link.launch, 0), np.zeros(len(seen.rows), bool)
    open_rows = seen.link.launch >= 0
    while open_rows.any():
        inside |= open_rows & under[at]
        up = seen.tree.parent[at]
        open_rows &= up >= 0
        at = np.where(open_rows, up, 0)
    spent = seen.end - seen.start
    total = int(spent.sum())
    return float(spent[inside].sum() / total) if total else None


def _call(seen: Survey, row: int) -> Call:
    if row < 0:
        return Call(name=OUTSIDE)
    trace = seen.trace
    name, argument = trace.names[trace.name[row]], int(trace.argument[row])
    return parse_call(name, trace.arguments[argument]) if argument >= 0 else Call(name=name)


def _longest_kernels(seen: Survey, group: Ints, groups: int) -> list[int]:
    """The name, by number, of the kernel that each group spent most in."""
    names = seen.trace.name[seen.rows].astype(np.int64)
    pair, pairs = numbered(group, names)
    stats = statistics((seen.end - seen.start).astype(np.float64), pair, pairs)
    best = [0] * groups
    most = [-1.0] * groups
    for p in range(pairs):
        row = int(stats.first[p])
        g = int(group[row])
        if stats.total[p] > most[g]:
            most[g], best[g] = float(stats.total[p]), int(names[row])
    return best
