"""Just enough ELF: which kernels a cubin holds, where their words are, what they take, for which architecture."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path

from pytest_perfgate.adapters.readers.attributes import most_threads, numbers, resources
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.kernel import Resources
from pytest_perfgate.model.values import value

MAGIC = b"\x7fELF"
CUDA_MACHINE = 190
_SYMBOLS, _NO_BYTES, _FUNCTION, _ENTRY = 2, 8, 2, 0x10
_MANY = 0xFFFF
"""The index that says: there are too many sections for this field, the first of them holds the number."""
_TEXT, _INFO = ".text.", ".nv.info"
_SIZES = (".nv.shared.", ".nv.local.", ".nv.constant0.")


@value
class CubinFile:
    """The code sections of a cubin by function name, and a symbol of each."""

    words: Mapping[str, bytes]
    symbols: Mapping[str, int]
    """Symbol index by function; empty when stripped."""
    bounds: Mapping[str, int] = field(default_factory=dict)
    """The most threads a block that a kernel was compiled for, where its source says so."""
    kernels: Mapping[str, Resources] = field(default_factory=dict)
    """Functions that can be launched, with what they take; the others are called by these."""


def is_cubin(head: bytes) -> bool:
    """Whether these first bytes are an ELF of the CUDA architecture."""
    return head[:4] == MAGIC and len(head) >= 20 and struct.unpack_from("<H", head, 18)[0] == CUDA_MACHINE


def parse_cubin(data: bytes, place: str) -> CubinFile:
    """The functions of a cubin."""
    if not is_cubin(data[:20]):
        raise PerfgateError("kernel-broken", "it does not begin as a cubin does", place=place)
    try:
        return _read(_Elf(data))
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise PerfgateError("kernel-broken", f"its section table does not read: {error}", place=place) from error


def check_whole(data: bytes, place: str) -> None:
    """Raise where an ELF file of the host ends before its sections do: what they hold would be passed over."""
    if data[:6] != MAGIC + b"\x02\x01":  # the hosts of NVIDIA's tools have 64 bits, little end first
        return
    try:
        elf = _Elf(data)
        for section in elf.sections:
            elf.bytes_of(section)
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise PerfgateError("kernel-broken", f"its section table does not read: {error}", place=place) from error


_NEW_LAYOUT = 8
"""The ABI version from which the architecture has its own byte of the flags."""


def architecture(data: bytes) -> int:
    """90 for ``sm_90``."""
    (flags,) = struct.unpack_from("<I", data, 48)
    return int(flags >> 8 & 0xFF if data[8] >= _NEW_LAYOUT else flags & 0xFF)


Section = tuple[int, ...]
"""name, type, flags, address, offset, size, link, info, align, entry size."""


class _Elf:
    """The sections of a file, with their names."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.sections = list(self._sections())
        self.names = self._names()

    def bytes_of(self, section: Section) -> bytes:
        _, kind, _, _, offset, size, *_ = section
        if kind == _NO_BYTES:
            return b""
        if offset + size > len(self.data):
            raise ValueError(f"a section ends at byte {offset + size:,}, the file at {len(self.data):,}")
        return self.data[offset : offset + size]

    def _sections(self) -> Iterator[Section]:
        (offset,) = struct.unpack_from("<Q", self.data, 40)
        size, count = struct.unpack_from("<HH", self.data, 58)
        if offset and not count:
            count = struct.unpack_from("<Q", self.data, offset + 32)[0]
        if offset + size * count > len(self.data):
            raise ValueError(f"it ends at byte {offset + size * count:,}, the file at {len(self.data):,}")
        for number in range(count):
            yield struct.unpack_from("<IIQQQQIIQQ", self.data, offset + number * size)

    def _names(self) -> list[str]:
        (index,) = struct.unpack_from("<H", self.data, 62)
        if not self.sections:
            return []
        table = self.bytes_of(self.sections[self.sections[0][6] if index == _MANY else index])
        return [_text(table, section[0]) for section in self.sections]


def _text(table: bytes, offset: int) -> str:
    return table[offset : table.index(b"\0", offset)].decode("utf-8", "replace")


def _read(elf: _Elf) -> CubinFile:
    pairs = list(zip(elf.names, elf.sections))
    told: dict[int, dict[int, int]] = {}
    for name, section in pairs:
        if name == _INFO:
            told.update(numbers(elf.bytes_of(section)))
    symbols = list(_symbols(elf))
    headers = {name[len(_TEXT) :]: section[7] >> 24 for name, section in pairs if name.startswith(_TEXT)}
    sizes = _sizes(pairs)
    bounds = (
        (name[len(_INFO) + 1 :], most_threads(elf.bytes_of(section)))
        for name, section in pairs
        if name.startswith(f"{_INFO}.")
    )
    return CubinFile(
        words={name[len(_TEXT) :]: elf.bytes_of(section) for name, section in pairs if name.startswith(_TEXT)},
        symbols={name: index for index, name, _ in symbols},
        bounds={name: most for name, most in bounds if most is not None},
        kernels={
            name: resources(told.get(index, {}), sizes.get(name, {}), headers[name])
            for index, name, launched in symbols
            if launched
        },
    )


def _sizes(pairs: list[tuple[str, Section]]) -> dict[str, dict[str, int]]:
    """Bytes of shared, local and constant memory by function."""
    found: dict[str, dict[str, int]] = {}
    for name, section in pairs:
        for kind in _SIZES:
            if name.startswith(kind):
                found.setdefault(name[len(kind) :], {})[kind] = section[5]
    return found


def _symbols(elf: _Elf) -> Iterator[tuple[int, str, bool]]:
    """(index, code section, whether it can be launched) of every function."""
    for section in elf.sections:
        if section[1] != _SYMBOLS:
            continue
        table = elf.bytes_of(section)
        for number in range(len(table) // 24):
            _, info, other, home, _, _ = struct.unpack_from("<IBBHQQ", table, number * 24)
            if info & 0xF == _FUNCTION and home < len(elf.names) and elf.names[home].startswith(_TEXT):
                yield number, elf.names[home][len(_TEXT) :], bool(other & _ENTRY)


def read_head(path: Path, size: int = 64) -> bytes:
    with path.open("rb") as stream:
        return stream.read(size)
