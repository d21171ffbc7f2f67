"""Ten small CPU kernels of different kinds; each does ``units`` equal portions of work, so a slowdown is real work."""

from __future__ import annotations

import hashlib
import json
import re
import struct
import zlib
from collections.abc import Callable

import numpy as np

Kernel = Callable[[int], object]
UNITS = 200
"""Portions of a call of the unchanged arm: 206 of them are 3 % more work."""


def _arithmetic(units: int) -> object:
    total = 0
    for _ in range(units):
        for number in range(20):
            total += number * number
    return total


def _attributes(units: int) -> object:
    class Point:
        def __init__(self, x: int) -> None:
            self.x = x

        def twice(self) -> int:
            return self.x * 2

    points = [Point(x) for x in range(8)]
    total = 0
    for _ in range(units):
        for point in points:
            total += point.twice()
    return total


def _dictionary() -> Kernel:
    names = [f"name-{number}" for number in range(16)]

    def run(units: int) -> object:
        counts: dict[str, int] = {}
        for _ in range(units):
            for name in names:
                counts[name] = counts.get(name, 0) + 1
        return counts

    return run


def _repeated(portion: Callable[[], object]) -> Kernel:
    def run(units: int) -> object:
        for _ in range(units):
            portion()
        return None

    return run


def kernels() -> dict[str, Kernel]:
    """The kernels by name, with their inputs made."""
    random = np.random.default_rng(1)
    small, square = random.random(2048), random.random((24, 24))
    numbers, record = random.random(48).tolist(), {"id": 7, "tags": ["a", "b"], "size": 1.5}
    text, blob = "the quick brown fox 42 jumps over 17 lazy dogs " * 2, random.bytes(1024)
    pattern = re.compile(r"(\w+) (\d+)")
    return {
        "arithmetic": _arithmetic,
        "attributes": _attributes,
        "dictionary": _dictionary(),
        "sorting": _repeated(lambda: sorted(numbers)),
        "json": _repeated(lambda: json.dumps(record)),
        "regex": _repeated(lambda: pattern.findall(text)),
        "hashing": _repeated(lambda: hashlib.sha256(blob).digest()),
        "checksum": _repeated(lambda: zlib.crc32(struct.pack("<16d", *numbers[:16]), 3)),
        "array-add": _repeated(lambda: small + 1.0),
        "matrix": _repeated(lambda: square @ square),
    }
