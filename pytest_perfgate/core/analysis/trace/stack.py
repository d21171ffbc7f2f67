"""One operation in its place: what called it, what it called, which kernels that cost."""

from __future__ import annotations

from collections import defaultdict
from fnmatch import fnmatchcase

import numpy as np

from pytest_perfgate.core.analysis.trace.survey import Survey
from pytest_perfgate.model.document import Code, Document, Paragraph, Section
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.trace import HOST

DEPTH = 12
WIDTH = 200


def find_operation(seen: Survey, wanted: str) -> int:
    """The row that an event number, a name or a pattern means: the longest on the GPU of those that fit."""
    trace = seen.trace
    if wanted.isdigit() and int(wanted) < len(trace):
        return int(wanted)
    names = [i for i, name in enumerate(trace.names) if name == wanted or fnmatchcase(name, wanted)]
    names = names or [i for i, name in enumerate(trace.names) if wanted.lower() in name.lower()]
    rows = np.flatnonzero(np.isin(trace.name, names) & np.isin(trace.category, HOST))
    if not len(rows):
        raise PerfgateError("trace-no-operation", f"nothing in the trace is called {wanted!r}", place=trace.path)
    spent = subtree_times(seen)[rows]
    return int(rows[int(np.argmax(spent))])


def subtree_times(seen: Survey) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Kernel nanoseconds below every host row, summed."""
    total = np.zeros(len(seen.trace), np.int64)
    linked = seen.link.launch >= 0
    at, spent = seen.link.launch[linked].copy(), (seen.end - seen.start)[linked].copy()
    while len(at):
        np.add.at(total, at, spent)
        up = seen.tree.parent[at]
        kept = up >= 0
        at, spent = up[kept], spent[kept]
    return total


def stack_document(seen: Survey, wanted: str) -> Document:
    """Parents and subtree of one operation."""
    row = find_operation(seen, wanted)
    trace, parents = seen.trace, []
    above = int(seen.tree.parent[row])
    while above >= 0:
        parents.append(trace.names[trace.name[above]])
        above = int(seen.tree.parent[above])
    chain = "\n".join(f"{'  ' * depth}{name}" for depth, name in enumerate(reversed(parents))) or "(a root)"
    return Document(
        title=f"{trace.names[trace.name[row]]}, event {row}",
        subtitle=f"window: {seen.label}",
        blocks=(
            Section(title="Called by", blocks=(Code(text=chain),)),
            Section(
                title="Subtree, with GPU time summed over all kernels below",
                blocks=(Code(text="\n".join(subtree(seen, row))),),
            ),
            Paragraph(text="Consecutive short kernels of one module are candidates for fusion: see --view fusion."),
        ),
    )


def subtree(seen: Survey, row: int, depth: int = DEPTH) -> list[str]:
    """The subtree as lines; kernels stand under their launch."""
    children = _children(seen)
    kernels: dict[int, list[int]] = defaultdict(list)
    for at, launch in enumerate(seen.link.launch.tolist()):
        kernels[launch].append(at)
    times = subtree_times(seen)
    lines: list[str] = []
    todo = [(row, 0)]
    while todo and len(lines) < WIDTH:
        here, level = todo.pop()
        name = seen.trace.names[seen.trace.name[here]]
        lines.append(f"{'  ' * level}{name}  {_micro(int(times[here]))}")
        for at in kernels.get(here, ()):
            kernel = seen.trace.names[seen.trace.name[seen.rows[at]]]
            lines.append(f"{'  ' * (level + 1)}-> {kernel[:100]}  {_micro(int(seen.end[at] - seen.start[at]))}")
        below = [c for c in children.get(here, ()) if times[c] > 0]
        todo += [(child, level + 1) for child in reversed(below)] if level < depth else []
    return [*lines, "..."] if todo else lines


def _children(seen: Survey) -> dict[int, list[int]]:
    below: dict[int, list[int]] = defaultdict(list)
    rows = np.flatnonzero(seen.tree.parent >= 0)
    for child in rows[np.argsort(seen.trace.start[rows], kind="stable")].tolist():
        below[int(seen.tree.parent[child])].append(child)
    return below


def _micro(ns: int) -> str:
    return f"{ns:,} ns" if ns else "no GPU time"
