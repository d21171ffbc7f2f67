"""Just enough ELF: which functions a cubin holds, where their words are, for which architecture."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.values import value

MAGIC, FATBIN = b"\x7fELF", b"\x50\xed\x55\xba"
CUDA_MACHINE = 190
_SYMBOLS, _FUNCTION = 2, 2
_TEXT, _INFO = ".text.", ".nv.info."
_SIZED = 4
"""The form of an attribute whose value follows it."""
_MOST_THREADS = (0x05, 0x10)
"""``.maxntid`` and ``.reqntid``."""


@value
class CubinFile:
    """The code sections of a cubin by function name, and a symbol of each."""

    words: Mapping[str, bytes]
    symbols: Mapping[str, int]
    """Symbol index by function; empty when stripped."""
    bounds: Mapping[str, int] = field(default_factory=dict)
    """The most threads a block that a kernel was compiled for, where its source says so."""


def is_cubin(head: bytes) -> bool:
    """Whether these first bytes are an ELF of the CUDA architecture."""
    return head[:4] == MAGIC and len(head) >= 20 and struct.unpack_from("<H", head, 18)[0] == CUDA_MACHINE


def parse_cubin(data: bytes, place: str) -> CubinFile:
    """The functions of a cubin."""
    if not is_cubin(data[:20]):
        raise PerfgateError("kernel-none", "an ELF file, but not of the CUDA architecture", place=place)
    try:
        sections = list(_sections(data))
        names = _names(data, sections)
        words = {
            name[len(_TEXT) :]: _slice(data, section)
            for name, section in zip(names, sections)
            if name.startswith(_TEXT)
        }
        symbols = dict(_functions(data, sections, names))
        bounds = dict(_bounds(data, sections, names))
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise PerfgateError("kernel-broken", f"its section table does not read: {error}", place=place) from error
    if not words:
        raise PerfgateError("kernel-none", "a cubin without a code section", place=place)
    return CubinFile(words=words, symbols=symbols, bounds=bounds)


_NEW_LAYOUT = 8
"""The ABI version from which the architecture has its own byte of the flags."""


def architecture(data: bytes) -> int:
    """90 for ``sm_90``."""
    (flags,) = struct.unpack_from("<I", data, 48)
    return int(flags >> 8 & 0xFF if data[8] >= _NEW_LAYOUT else flags & 0xFF)


Section = tuple[int, ...]
"""name, type, flags, address, offset, size, link, info, align, entry size."""


def _sections(data: bytes) -> Iterator[Section]:
    (offset,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    if offset + size * count > len(data):
        raise ValueError(f"it ends at byte {offset + size * count:,}, the file at {len(data):,}")
    for number in range(count):
        yield struct.unpack_from("<IIQQQQIIQQ", data, offset + number * size)


def _slice(data: bytes, section: Section) -> bytes:
    _, kind, _, _, offset, size, *_ = section
    if kind != 8 and offset + size > len(data):  # 8: takes no room in the file
        raise ValueError(f"a section ends at byte {offset + size}, the file at {len(data)}")
    return data[offset : offset + size]


def _names(data: bytes, sections: list[Section]) -> list[str]:
    (index,) = struct.unpack_from("<H", data, 62)
    table = _slice(data, sections[index])
    return [_text(table, section[0]) for section in sections]


def _text(table: bytes, offset: int) -> str:
    return table[offset : table.index(b"\0", offset)].decode("utf-8", "replace")


def _functions(data: bytes, sections: list[Section], names: list[str]) -> Iterator[tuple[str, int]]:
    for section in sections:
        if section[1] != _SYMBOLS:
            continue
        table = _slice(data, section)
        for number in range(len(table) // 24):
            _, info, _, home, _, _ = struct.unpack_from("<IBBHQQ", table, number * 24)
            if info & 0xF == _FUNCTION and home < len(names) and names[home].startswith(_TEXT):
                yield names[home][len(_TEXT) :], number


def _bounds(data: bytes, sections: list[Section], names: list[str]) -> Iterator[tuple[str, int]]:
    """``__launch_bounds__`` of each kernel: attribute records of one byte form, one byte name, two bytes size."""
    for name, section in zip(names, sections):
        if not name.startswith(_INFO):
            continue
        table, at = _slice(data, section), 0
        while at + 4 <= len(table):
            form, attribute, size = struct.unpack_from("<BBH", table, at)
            at += 4
            if form == _SIZED:
                if attribute in _MOST_THREADS and size >= 12:
                    x, y, z = struct.unpack_from("<III", table, at)
                    yield name[len(_INFO) :], x * y * z
                at += size


def read_head(path: Path, size: int = 64) -> bytes:
    with path.open("rb") as stream:
        return stream.read(size)
