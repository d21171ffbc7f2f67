"""Sums by key over chunks, so that a file of any size needs the memory of one chunk."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

Sums = dict[tuple[int, ...], tuple[int, int, int, int]]
"""Key columns -> count, total, least, most."""
_BITS = (32, 7, 24)
"""Name, device and process fit one 63-bit key, from the right."""


def sums(parts: Iterable[list[Ints]]) -> Sums:
    """Count, total, least and most of the last column by the columns before it."""
    found: Sums = {}
    for *keys, amount in parts:
        for key, row in _chunk(keys, amount):
            old = found.get(key)
            found[key] = row if old is None else _joined(old, row)
    return found


def _joined(a: tuple[int, int, int, int], b: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    return (a[0] + b[0], a[1] + b[1], min(a[2], b[2]), max(a[3], b[3]))


def _chunk(keys: list[Ints], amount: Ints) -> Iterable[tuple[tuple[int, ...], tuple[int, int, int, int]]]:
    packed = _packed(keys)
    order = np.argsort(packed, kind="stable")
    packed, amount = packed[order], amount[order]
    first = np.flatnonzero(np.append(True, packed[1:] != packed[:-1]))
    counts = np.diff(np.append(first, len(packed)))
    columns = (counts, *(how.reduceat(amount, first) for how in (np.add, np.minimum, np.maximum)))
    rows = zip(*(column.tolist() for column in columns))
    named = zip(*(key[order][first].tolist() for key in keys))
    return zip(named, rows)


def _packed(keys: list[Ints]) -> Ints:
    packed = np.zeros(len(keys[0]), dtype=np.int64)
    shift = 0
    for key, bits in zip(reversed(keys), _BITS):
        packed |= (key & ((1 << bits) - 1)) << shift
        shift += bits
    return packed
