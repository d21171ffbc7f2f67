"""Which operators of a program without a GPU stand for kernels: those that do the work themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from pytest_perfgate.core.analysis.operators.table import CATEGORIES, model_of
from pytest_perfgate.core.analysis.trace.tree import Tree
from pytest_perfgate.model.trace import Category, Trace
from pytest_perfgate.model.work import Work

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

_ALLOCATES = ("empty", "empty_like", "empty_strided", "new_empty", "resize_", "set_")
_VIEWS = (
    "alias", "as_strided", "detach", "expand", "narrow", "permute", "_reshape_alias", "reshape", "resolve_conj",
    "resolve_neg", "result_type", "select", "slice", "squeeze", "t", "transpose", "unsqueeze", "_unsafe_view", "view",
)  # fmt: skip
_BESIDE = frozenset(f"aten::{name}" for name in (*_ALLOCATES, *_VIEWS))
"""Allocations and views: what they take is never what their caller is there for."""
_LIGHT = "elementwise"
"""A product copies its bias, a sum fills its result: such operators are the work of a caller that has more."""


def standing(trace: Trace, tree: Tree, models: Mapping[str, Callable[..., Work]]) -> Ints:
    """Operators beneath which nothing ranks as high, none of them within another; innermost ones are such."""
    rows = np.flatnonzero(trace.category == Category.OPERATOR)
    above = _callers(rows, tree)
    calling = above >= 0
    ranks = np.array([_rank(name, models) for name in trace.names] or [0], np.int64)[trace.name[rows]]
    beneath = _highest_beneath(ranks, above)
    innermost = np.ones(len(rows), bool)
    innermost[above[calling]] = False
    stands = innermost | (ranks > beneath)
    return rows[stands & ~_within(stands, above)]


def operators(trace: Trace) -> Ints:
    """All operators, for the time in which any of them runs."""
    found: Ints = np.flatnonzero(trace.category == Category.OPERATOR)
    return found


def _callers(rows: Ints, tree: Tree) -> Ints:
    """The place among these rows of the operator that called each; -1 where none did."""
    parents = tree.parent[rows]
    callers = np.where(parents >= 0, tree.operator[np.maximum(parents, 0)], -1)
    found: Ints = np.where(callers >= 0, np.searchsorted(rows, callers), -1)
    return found


def _rank(name: str, models: Mapping[str, Callable[..., Work]]) -> int:
    if name in _BESIDE:
        return -1
    if model_of(name, models) is None:
        return 0
    return 2 if name in models or CATEGORIES.get(name, _LIGHT) != _LIGHT else 1


def _highest_beneath(ranks: Ints, above: Ints) -> Ints:
    """The highest rank of what each operator calls, at any depth; lower than any rank where it calls nothing."""
    beneath = np.full(len(ranks), -2, np.int64)
    calling = np.flatnonzero(above >= 0)
    while True:
        seen = beneath.copy()
        np.maximum.at(seen, above[calling], np.maximum(ranks, beneath)[calling])
        if (seen == beneath).all():
            return beneath
        beneath = seen


def _within(stands: NDArray[np.bool_], above: Ints) -> NDArray[np.bool_]:
    """What a standing operator calls, at any depth."""
    inside = np.zeros(len(stands), bool)
    calling = np.flatnonzero(above >= 0)
    while True:
        seen = inside.copy()
        seen[calling] |= (stands | inside)[above[calling]]
        if (seen == inside).all():
            return inside
        inside = seen
