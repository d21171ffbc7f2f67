"""The plain numbers of events as arrays; what does not fit 64 bits is folded into them."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pytest_perfgate.adapters.readers.kineto_events import Arguments, Event

T = TypeVar("T")

COLUMNS = (
    "start",
    "end",
    "category",
    "name",
    "place",
    "correlation",
    "external",
    "sequence",
    "forward_thread",
    "size",
    "argument",
    "index",
)
"""The columns a trace is made of."""


class Interned(dict[T, int]):
    """Numbers its keys in the order of their first use."""

    def __missing__(self, key: T) -> int:
        number = self[key] = len(self)
        return number


def table_of(kept: Sequence[Event], args: Sequence[Arguments]) -> dict[str, NDArray[Any]]:
    """The numeric columns of one chunk."""
    table: dict[str, NDArray[Any]] = {
        name: np.fromiter(map(attrgetter(name), kept), np.float64, len(kept)) for name in ("ts", "dur")
    }
    for name in ("correlation", "external", "sequence", "forward_thread", "size"):
        found = list(map(attrgetter(name), args))
        if found.count(-1) == len(found):
            table[name] = np.full(len(found), -1, np.int64)
        else:
            table[name] = whole(list(map(_size, found)) if name == "size" else found)
    return table


def whole(numbers: list[int]) -> NDArray[np.int64]:
    """Integers as a column; identifiers past 2**63 keep their low bits."""
    try:
        return np.array(numbers, np.int64)
    except OverflowError:
        return np.array([n if -(2**63) <= n < 2**63 else n & (2**63 - 1) for n in numbers], np.int64)


def _size(given: Any) -> int:
    """Bytes of a copy; some writers quote them."""
    if isinstance(given, (int, float)):
        return int(given)
    return int(given) if isinstance(given, str) and given.isdigit() else -1
