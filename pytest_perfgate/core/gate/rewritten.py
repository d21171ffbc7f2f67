"""Whether a call wrote its output: what was put there beforehand must be gone."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]

PATTERNS = (0xBE, 0x3F)
"""Bytes that make a plain number near one of every float format, negative and positive: poison that slows no kernel.

A call that adds to it, or keeps what is positive, leaves neither the poison nor what it left before.
"""
CHANCE = {1: 0.1, 2: 0.004}
"""The share of elements of so many bytes that may hold a pattern by chance, where each call writes other values."""
RARE = 1e-5


def poison(size: int, turn: int) -> Bytes:
    """So many bytes of a pattern; turns alternate."""
    import numpy as np

    return np.full(size, PATTERNS[turn % len(PATTERNS)], dtype=np.uint8)


def untouched(before: Bytes, after: Bytes, itemsize: int, turn: int) -> float:
    """The share of elements that still hold the poison, and did not hold it by themselves.

    Small elements hold it by chance, now and then, where a call writes other values each time.
    """
    if before.size != after.size or not after.size:
        return 0.0
    import numpy as np

    pattern = PATTERNS[turn % len(PATTERNS)]
    was, now = ((data.reshape(-1, itemsize) == pattern).all(axis=1) for data in (before, after))
    share = float(np.mean(now & ~was))
    return share if share > CHANCE.get(itemsize, RARE) else 0.0


def digest(data: Bytes) -> bytes:
    """A fingerprint of an array's bytes."""
    return hashlib.blake2b(data.data, digest_size=16).digest()
