"""Which operators the reference's unified table lists: the outermost with a model, else whoever launches."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_perfgate.core.analysis.trace.compat.models import sheet_of
from pytest_perfgate.core.analysis.trace.compat.nodes import Forest
from pytest_perfgate.model.trace import Category

Choice = tuple[int, str, list[int], bool]
"""Row, name, GPU rows, whether it has a model."""


def chosen(forest: Forest) -> Iterator[Choice]:
    """From the roots down; what launches beside its children is listed as an operator of its own."""
    roots = [
        row
        for row in sorted(forest.below)
        if forest.trace.category[row] == Category.OPERATOR and not _inside(forest, row)
    ]
    for root in roots:
        yield from _below(forest, root)


def _inside(forest: Forest, row: int) -> bool:
    above = int(forest.parents[row])
    return above >= 0 and int(forest.seen.tree.operator[above]) >= 0


def _below(forest: Forest, row: int) -> Iterator[Choice]:
    rows = [r for r in forest.below[row] if not forest.is_communication(r)]
    if not rows:
        return
    if sheet_of(forest.name(row)):
        yield row, forest.name(row), rows, True
        return
    direct = [r for r in forest.direct.get(row, ()) if not forest.is_communication(r)]
    children = forest.children.get(row, [])
    if direct and not children:
        yield row, forest.name(row), direct, False
        return
    for kernel in direct:
        yield row, f"{forest.name(row)}->{forest.name(kernel)} (Synthetic Op)", [kernel], False
    for child in children:
        yield from _below(forest, child)
