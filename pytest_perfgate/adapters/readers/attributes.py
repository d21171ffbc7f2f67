"""Attribute records of a cubin: what its kernels take of a multiprocessor, and the block they were compiled for."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

from pytest_perfgate.model.kernel import FROM_CODE, Resources

_SIZED = 4
"""The form of an attribute whose value follows it."""
_MOST_THREADS = (0x05, 0x10)
"""``.maxntid`` and ``.reqntid``."""
_REGISTERS, _FRAME, _STACK = 0x2F, 0x11, 0x12
_NO_SIZE = 0xFFFFFFFF
"""Of a stack that nobody can know the depth of."""


def records(table: bytes) -> Iterator[tuple[int, bytes]]:
    """(name, value) of each record; one that is not known here is stepped over, for it says its size."""
    at = 0
    while at + 4 <= len(table):
        form, name, size = struct.unpack_from("<BBH", table, at)
        at += 4
        if form != _SIZED:
            continue
        if at + size > len(table):
            raise ValueError(f"an attribute of {size} bytes runs over the end of its section")
        yield name, table[at : at + size]
        at += size


def most_threads(table: bytes) -> int | None:
    """``__launch_bounds__`` of a kernel, from the records of its own."""
    found = (struct.unpack_from("<III", v) for name, v in records(table) if name in _MOST_THREADS and len(v) >= 12)
    return next((x * y * z for x, y, z in found), None)


def numbers(table: bytes) -> dict[int, dict[int, int]]:
    """What the records of the whole file say of each symbol, by the name of the record."""
    said: dict[int, dict[int, int]] = {}
    for name, content in records(table):
        if len(content) == 8:
            symbol, number = struct.unpack("<II", content)
            said.setdefault(symbol, {})[name] = number
    return said


def resources(said: Mapping[int, int], sizes: Mapping[str, int], in_header: int) -> Resources:
    """Of one kernel: its records, the sizes of its sections, and the registers that older files keep in a header."""
    stack = said.get(_STACK, _NO_SIZE)
    if stack == _NO_SIZE:
        stack = said.get(_FRAME, 0)
    registers = said.get(_REGISTERS, in_header)
    if not registers:
        raise ValueError("it does not say how many registers a kernel takes")
    return Resources(
        registers=registers,
        shared=sizes.get(".nv.shared.", 0),
        stack=stack,
        local=sizes.get(".nv.local.", 0),
        constant=sizes.get(".nv.constant0.", 0),
        source=FROM_CODE,
    )
