"""The blocks that an ``.ncu-rep`` is a chain of: the way to tell a file that was cut short."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from pytest_perfgate.model.errors import PerfgateError

MAGIC = b"NVR\0"
_VERSION = 7
"""Of the container; another one is not judged here."""
_RESULTS, _PAYLOAD = 2, 5
"""The fields of a block's header that say how many results it holds, and how many bytes follow it."""


def check_whole(data: bytes, place: str) -> int:
    """How many results its blocks announce, where their form is known.

    Raises where the chain of blocks does not end with the file: the library would read the part in silence.
    """
    results = 0
    try:
        (size,) = struct.unpack_from("<I", data, len(MAGIC))
        at = len(MAGIC) + 4 + size
        head = dict(_fields(data[len(MAGIC) + 4 : at])) if at <= len(data) else {1: _VERSION}
        if head and head.get(1) != _VERSION:
            return 0
        while at < len(data):
            (size,) = struct.unpack_from("<I", data, at)
            header = dict(_fields(data[at + 4 : at + 4 + size]))
            at += 4 + size + header.get(_PAYLOAD, 0)
            results += header.get(_RESULTS, 0)
    except (struct.error, IndexError) as error:
        raise PerfgateError(
            "ncu-report", f"the report of {len(data):,} bytes ends inside a block", place=place
        ) from error
    if at != len(data):
        raise PerfgateError(
            "ncu-report", f"the report is cut short: {len(data):,} bytes of {at:,} at the least", place=place
        )
    return results


def _fields(message: bytes) -> Iterator[tuple[int, int]]:
    """(number, value) of the whole numbers of a protobuf message; texts are skipped."""
    at = 0
    while at < len(message):
        key, at = _number(message, at)
        kind = key & 7
        if kind == 0:
            number, at = _number(message, at)
            yield key >> 3, number
        elif kind == 2:
            length, at = _number(message, at)
            at += length
        else:
            at += 8 if kind == 1 else 4


def _number(message: bytes, at: int) -> tuple[int, int]:
    total = shift = 0
    while True:
        byte = message[at]
        at += 1
        total |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return total, at
