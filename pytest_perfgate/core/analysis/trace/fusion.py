"""Modules whose instances launch many short kernels: what fusing them could save."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np

from pytest_perfgate.core.analysis.trace.stack import subtree_times
from pytest_perfgate.core.analysis.trace.survey import Survey
from pytest_perfgate.model.document import Column, Table
from pytest_perfgate.model.quantity import Dimension
from pytest_perfgate.model.trace import Category
from pytest_perfgate.model.values import value

_INSTANCE = re.compile(r"_\d+$")
SHORT_NS = 50_000


@value
class Candidate:
    """A kind of module with many short kernels an instance."""

    module: str
    instances: int
    kernels: float
    total: float
    """GPU nanoseconds of all instances."""
    mean_kernel: float


def fusion_candidates(seen: Survey, least: int = 3) -> tuple[Candidate, ...]:
    """Modules and annotations whose instances launch at least so many kernels, short on average."""
    trace = seen.trace
    kinds = _module_names(seen)
    counts, spent = _launched(seen), subtree_times(seen)
    found = []
    for module, names in kinds.items():
        rows = np.flatnonzero(
            np.isin(trace.name, names) & ((trace.category == Category.PYTHON) | (trace.category == Category.OPERATOR))
        )
        rows = rows[counts[rows] > 0]
        if not len(rows):
            continue
        kernels, total = float(counts[rows].sum()), float(spent[rows].sum())
        if kernels / len(rows) >= least and total / kernels < SHORT_NS:
            found.append(
                Candidate(
                    module=module,
                    instances=len(rows),
                    kernels=kernels / len(rows),
                    total=total,
                    mean_kernel=total / kernels,
                )
            )
    return tuple(sorted(found, key=lambda c: -c.total))


def fusion_table(candidates: tuple[Candidate, ...]) -> Table:
    """One line a kind of module."""
    return Table(
        columns=(
            Column(name="module"),
            Column(name="instances", dimension=Dimension.COUNT),
            Column(name="kernels each", dimension=Dimension.COUNT, digits=3),
            Column(name="GPU time, all instances", dimension=Dimension.TIME),
            Column(name="mean kernel", dimension=Dimension.TIME),
        ),
        rows=tuple((c.module, c.instances, c.kernels, c.total, c.mean_kernel) for c in candidates),
        note="A module contains its submodules: their times are in it too. Fusing saves at most what is read and "
        "written between the kernels, and their launches.",
    )


def _module_names(seen: Survey) -> dict[str, list[int]]:
    kinds: dict[str, list[int]] = defaultdict(list)
    for number, name in enumerate(seen.trace.names):
        if name.startswith("nn.Module: "):
            kinds[_INSTANCE.sub("", name.removeprefix("nn.Module: "))].append(number)
    return kinds


def _launched(seen: Survey) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """GPU rows launched below every host row."""
    total = np.zeros(len(seen.trace), np.int64)
    at = seen.link.launch[seen.link.launch >= 0]
    while len(at):
        np.add.at(total, at, 1)
        at = seen.tree.parent[at]
        at = at[at >= 0]
    return total
