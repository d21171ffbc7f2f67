"""Small ``.ncu-rep`` files of our own: a chain of blocks, each with a header and the messages of its results."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

Field = tuple[int, "int | float | str | bytes"]
Kernel = tuple[str, Mapping[str, "int | float | str"]]


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


def message(*fields: Field) -> bytes:
    """A protobuf message: whole numbers, doubles, texts and messages by the type that Python has for them."""
    out = b""
    for number, content in fields:
        if isinstance(content, int):
            out += varint(number << 3) + varint(content)
        elif isinstance(content, float):
            out += varint(number << 3 | 1) + struct.pack("<d", content)
        else:
            raw = content.encode() if isinstance(content, str) else content
            out += varint(number << 3 | 2) + varint(len(raw)) + raw
    return out


def sized(raw: bytes) -> bytes:
    return struct.pack("<I", len(raw)) + raw


def block(*fields: Field, payload: bytes = b"") -> bytes:
    """One link of the chain: sources, results, session, names, how many bytes follow, process."""
    values = dict(fields)
    process = message((1, 7), (2, "127.0.0.1"), (3, "/bin/app"))
    header = message(
        (1, values.get(1, 0)), (2, values.get(2, 0)), (4, values.get(4, b"")), (5, len(payload)), (6, process)
    )  # fmt: skip
    return sized(header) + payload


def result(name: str, metrics: Mapping[str, int | float | str], names: Sequence[str], *, leave_out: int = 0) -> bytes:
    """What was measured of one launch; ``leave_out`` drops a field that every result must have."""
    kinds = {str: 1, float: 3, int: 5}
    corner, one = message((1, 0), (2, 0), (3, 0)), message((1, 1), (2, 1), (3, 1))
    fields: list[Field] = [
        *((number, 1) for number in (1, 2, 3, 4)),
        *((number, name) for number in (5, 6, 7)),
        (8, 1), (9, corner), (10, one), (11, one),
        *((13, message((1, names.index(key)), (2, message((kinds[type(v)], v))))) for key, v in metrics.items()),
        (14, 1741530241), (15, message((1, 1))), (16, 0), (22, 1), (23, 7),
    ]  # fmt: skip
    return message(*(field for field in fields if field[0] != leave_out))


def ncu_file(kernels: Sequence[Kernel], *, version: int | None = 7, leave_out: int = 0) -> bytes:
    """A report of these launches, each in a block of its own, as ncu writes them."""
    names = sorted({key for _, metrics in kernels for key in metrics})
    table = message(*((1, name) for name in names))
    out = b"NVR\0" + sized(message((1, version)) if version else b"") + block((4, table))
    for name, metrics in kernels:
        out += block((2, 1), payload=sized(result(name, metrics, names, leave_out=leave_out)))
    return out


def written(folder: Path, data: bytes, name: str = "own.ncu-rep") -> Path:
    (folder / name).write_bytes(data)
    return folder / name
