"""The ELF form of a cubin, attributes of kernels, and listings from samples."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.profiles import FROM_CODE, Resources
from pytest_perfgate.model.values import value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Words = NDArray[np.uint64]


MAGIC = b"\x7fELF"

CUDA_MACHINE = 190

_SYMBOLS, _NO_BYTES, _FUNCTION, _SHARED, _ENTRY, _UNLINKED = 2, 8, 2, 13, 0x10, 1

_MANY = 0xFFFF
"""The value of a count that does not fit its field; the first section holds the count."""

_TEXT, _INFO, _RELOCATIONS = ".text.", ".nv.info", {".rel": "<QQ", ".rela": "<QQq"}
_SIZES = (".nv.shared.", ".nv.local.", ".nv.constant0.")


@value
class CubinFile:
    """The code sections of a cubin by function name, and the symbol of each."""

    words: Mapping[str, bytes]
    symbols: Mapping[str, int]
    """Symbol index by function; empty when stripped."""
    bounds: Mapping[str, int] = field(default_factory=dict)
    """The most threads a block that a kernel was compiled for, if its source states it."""
    kernels: Mapping[str, Resources] = field(default_factory=dict)
    """Functions that can be launched, with their resources; the others are called by them."""


def is_cubin(head: bytes) -> bool:
    """Return whether these first bytes are an ELF of the CUDA architecture."""
    return head[:4] == MAGIC and len(head) >= 20 and struct.unpack_from("<H", head, 18)[0] == CUDA_MACHINE


def parse_cubin(data: bytes, place: str) -> CubinFile:
    if not is_cubin(data[:20]):
        raise PerfgateError("kernel-broken", "it does not begin as a cubin does", place=place)
    try:
        return _read(_Elf(data))
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise PerfgateError("kernel-broken", f"its section table cannot be read: {error}", place=place) from error


def check_not_cut(data: bytes, place: str) -> None:
    """Raise if an ELF file of the host is cut before the end of its sections, whose code would be missed."""
    if data[:6] != MAGIC + b"\x02\x01":  # NVIDIA's tools run on 64-bit, little-endian hosts
        return
    try:
        elf = _Elf(data)
        for section in elf.sections:
            elf.bytes_of(section)
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise PerfgateError("kernel-broken", f"its section table cannot be read: {error}", place=place) from error


_NEW_LAYOUT = 8
"""The ABI version from which the architecture has its own byte of the flags."""


def architecture(data: bytes) -> int:
    """Return the architecture, 90 for ``sm_90``."""
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
        return [table[at : table.index(b"\0", at)].decode("utf-8", "replace") for at, *_ in self.sections]


def _read(elf: _Elf) -> CubinFile:
    pairs = list(zip(elf.names, elf.sections))
    values = {s: n for name, section in pairs if name == _INFO for s, n in numbers(elf.bytes_of(section)).items()}
    symbols = list(_symbols(elf))
    headers = {name[len(_TEXT) :]: section[7] >> 24 for name, section in pairs if name.startswith(_TEXT)}
    sizes, unstated = _sizes(pairs), _left_to_linker(elf, pairs)
    infos = ((name[len(_INFO) + 1 :], section) for name, section in pairs if name.startswith(f"{_INFO}."))
    return CubinFile(
        words={name[len(_TEXT) :]: elf.bytes_of(section) for name, section in pairs if name.startswith(_TEXT)},
        symbols={name: index for index, name, _ in symbols},
        bounds={name: most for name, one in infos if (most := most_threads(elf.bytes_of(one))) is not None},
        kernels={
            name: replace(
                resources(values.get(at, {}), sizes.get(name, {}), headers[name]), unstated=unstated.get(name, ())
            )
            for at, name, launched in symbols
            if launched
        },
    )


def _sizes(pairs: list[tuple[str, Section]]) -> dict[str, dict[str, int]]:
    """Return the bytes of shared, local and constant memory by function."""
    sizes: dict[str, dict[str, int]] = {}
    for name, section in pairs:
        for kind in _SIZES:
            if name.startswith(kind):
                sizes.setdefault(name[len(kind) :], {})[kind] = section[5]
    return sizes


def _left_to_linker(elf: _Elf, pairs: list[tuple[str, Section]]) -> dict[str, tuple[str, ...]]:
    """Return what only the linker settles: some shared memory, and the registers and stack of callers."""
    if struct.unpack_from("<H", elf.data, 16)[0] != _UNLINKED:
        return {}
    tables = [elf.bytes_of(section) for section in elf.sections if section[1] == _SYMBOLS]
    symbols = [(i & 0xF, at, size) for table in tables for _, i, _, at, _, size in struct.iter_unpack("<IBBHQQ", table)]
    place_of, parts = {name: place for place, (name, _) in enumerate(pairs)}, dict[str, tuple[str, ...]]()
    for name, section in pairs:
        form, _, function = name.partition(_TEXT)
        if form not in _RELOCATIONS:
            continue
        uses = [symbols[row[1] >> 32] for row in struct.iter_unpack(_RELOCATIONS[form], elf.bytes_of(section))]
        own = place_of.get(f"{_SIZES[0]}{function}") if form == ".rel" else None  # Hopper's lacks the driver's part
        calls = any(kind == _FUNCTION for kind, _, _ in uses)
        shares = any(kind == _SHARED and size and place != own for kind, place, size in uses)  # extern: no size
        later = ("shared", "stack", "registers") if calls else ("shared",) if shares else ()
        parts[function] = max(parts.get(function, ()), later, key=len)  # it may have a section of each form
    return parts


def _symbols(elf: _Elf) -> Iterator[tuple[int, str, bool]]:
    """Yield (index, code section, whether it can be launched) of every function."""
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


_SIZED = 4
"""The format of an attribute that is followed by its size and value."""

_MOST_THREADS = (0x05, 0x10)
"""``.maxntid`` and ``.reqntid``."""

_REGISTERS, _FRAME, _STACK = 0x2F, 0x11, 0x12

_NO_SIZE = 0xFFFFFFFF
"""The size of a stack whose depth is unknown."""


def records(table: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (name, value) of each record; unknown ones are skipped by their size."""
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
    """Return the ``__launch_bounds__`` of a kernel, from its own records."""
    limits = (struct.unpack_from("<III", v) for name, v in records(table) if name in _MOST_THREADS and len(v) >= 12)
    return next((x * y * z for x, y, z in limits), None)


def numbers(table: bytes) -> dict[int, dict[int, int]]:
    """Return the values of the file's records, by record name and symbol."""
    numbers_of: dict[int, dict[int, int]] = {}
    for name, content in records(table):
        if len(content) == 8:
            symbol, number = struct.unpack("<II", content)
            numbers_of.setdefault(symbol, {})[name] = number
    return numbers_of


def resources(attributes: Mapping[int, int], sizes: Mapping[str, int], in_header: int) -> Resources:
    """Return a kernel's resources: from its records, its section sizes, and the header's registers in older files."""
    stack = attributes.get(_STACK, _NO_SIZE)
    if stack == _NO_SIZE:
        stack = attributes.get(_FRAME, 0)
    registers = attributes.get(_REGISTERS, in_header)
    if not registers:
        raise ValueError("it does not say how many registers a kernel takes")
    return Resources(
        registers=registers,
        shared=sizes.get(".nv.shared.", 0),
        stack=stack,
        local=sizes.get(".nv.local.", 0),
        source=FROM_CODE,
    )


Run = Callable[[list[str]], bytes]

_LINE = re.compile(r"/\*([0-9a-f]+)\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")

_COMPILER = re.compile(rb"Cuda compilation tools, release [\w.]+, V[\w.]+")

_OPCODE, _ROOT = np.uint64(0xFFF), np.uint64(0x1FF)

_MODIFIERS = np.uint64(0x1FFFFFFFF00)
"""Bits 72 to 104, which hold neither a register nor scheduling."""

_BRANCHES = (0x147, 0x14A)
"""``BRA`` and ``JMP``. An indirect branch, ``BRX``, has its targets in a table and not in the instruction."""

_SHUFFLE, _SHUFFLE_MODE = 0x189, np.uint64(3 << 58)
"""``SHFL`` keeps its mode beside the operands."""

_LOADS, _CACHES = (0x13B, 0x180, 0x181, 0x182, 0x183, 0x184, 0x1AE), np.uint64(0xFF)
"""Loads have no third register; its bits hold how they are cached, such as ``LTC128B``."""

_MULTIPLY_ADDS = (0x824, 0x8A4)
"""``IMAD`` and ``UIMAD`` by a constant, shown as ``IMAD.IADD`` and ``IMAD.SHL`` if they only add or shift."""

_NONE = 0xFF
"""The register that is always zero."""

_ARCH_SPECIFIC = 90

_INSTRUCTION = 16

_BASE = 0x40000000
"""The address assumed for the sample, so that branches backwards have targets above zero."""


def sampled_listings(files: Sequence[tuple[CubinFile, bytes]], room: Path, run: Run) -> list[bytes]:
    """Return a listing of each of these cubins of one architecture, from representative instructions."""
    code = [b"".join(cubin.words[name] for name in sorted(cubin.words)) for cubin, _ in files]
    words = np.frombuffer(b"".join(code), dtype="<u8").reshape(-1, 2)
    shown, stands_for = _representatives(words)
    raw = room / "sample.bin"
    raw.write_bytes(words[shown].tobytes())
    arch = architecture(files[0][1])
    target = f"SM{arch}a" if arch >= _ARCH_SPECIFIC else f"SM{arch}"
    rows = _parsed(run(["--binary", target, "--base-address", hex(_BASE), str(raw)]), len(shown))
    entries = [_entry(rows[at], at) for at in range(len(shown))]
    ends = np.cumsum([len(one) // _INSTRUCTION for one in code])
    parts = np.split(stands_for, ends[:-1])
    return [_listing(arch, data, cubin, entries, place) for (cubin, data), place in zip(files, parts)]


def _listing(
    arch: int, data: bytes, cubin: CubinFile, entries: list[dict[str, Any]], place: NDArray[np.int64]
) -> bytes:
    used, here = np.unique(place, return_inverse=True)
    own = [entries[at] for at in used.tolist()]
    functions = _functions(cubin, own, here.reshape(-1))
    return json.dumps([_header(arch, data), functions, own]).encode()


def _representatives(words: Words) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (representative rows, the position of the representative of every row)."""
    low, high = words[:, 0], words[:, 1]
    operands = (low >> np.uint64(24), low >> np.uint64(32), high)
    zeros = [
        (operand & np.uint64(0xFF) == _NONE).astype(np.uint64) << np.uint64(60 + n)
        for n, operand in enumerate(operands)
    ]
    pattern = (low & _OPCODE) | (high & _MODIFIERS) << np.uint64(8) | zeros[0] | zeros[1] | zeros[2]
    pattern |= _elsewhere(low, high) << np.uint64(50)
    _, first, place = np.unique(pattern, return_index=True, return_inverse=True)
    branches = np.flatnonzero(np.isin(low & _ROOT, _BRANCHES))
    place = place.reshape(-1).copy()
    place[branches] = len(first) + np.arange(len(branches))
    return np.concatenate([first, branches]).astype(np.int64), place.astype(np.int64)


def _elsewhere(low: Words, high: Words) -> Words:
    """Return the modifiers that some opcodes hold outside the usual bits."""
    root = low & _ROOT
    modes = np.where(root == _SHUFFLE, low & _SHUFFLE_MODE, 0) >> np.uint64(58)
    caches = np.where(np.isin(root, _LOADS), high & _CACHES, 0)
    words: Words = _powers(low) | modes.astype(np.uint64) | caches.astype(np.uint64)
    return words


def _powers(low: Words) -> Words:
    """Return the power of two in an integer multiply-add, plus one, since the disassembler names it by that."""
    constant = low >> np.uint64(32)
    alone = np.isin(low & _OPCODE, _MULTIPLY_ADDS) & (constant > 0) & (constant & (constant - np.uint64(1)) == 0)
    powers: Words = np.where(alone, np.log2(np.maximum(constant, 1)) + 1, 0).astype(np.uint64)
    return powers


def _parsed(text: bytes, count: int) -> list[tuple[str, str, str]]:
    """Return (predicate, opcode, operands) of each printed instruction."""
    printed = _LINE.findall(text.decode("utf-8", "replace"))
    addresses = [int(address, 16) for address, *_ in printed]
    if not addresses or addresses != [addresses[0] + _INSTRUCTION * n for n in range(count)]:
        raise PerfgateError("kernel-tool-failed", f"nvdisasm printed {len(printed)} of {count} instructions")
    return [(predicate, opcode, operands) for _, predicate, opcode, operands in printed]


def _entry(fields: tuple[str, str, str], at: int) -> dict[str, Any]:
    """Return a listing's entry; a branch target as a distance, because the sample has other addresses."""
    _, opcode, operands = fields
    target = re.search(r"(?<![-\w])0x[0-9a-f]+$", operands.strip("`() "))
    if opcode.partition(".")[0] in {"BRA", "JMP"} and target:
        condition = operands.partition(",")[0] + "," if "," in operands else ""
        return {"opcode": opcode, "operands": condition, "distance": int(target[0], 16) - _BASE - at * _INSTRUCTION}
    if opcode.startswith("HFMA2") and "-RZ" in operands:
        return {"opcode": opcode, "operands": operands.replace(" ", "")}
    return {"opcode": opcode}


def _functions(cubin: CubinFile, entries: list[dict[str, Any]], place: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Return every function with the position of each instruction's representative entry."""
    functions, begin = [], 0
    ahead = np.array(["distance" in entry for entry in entries], dtype=bool)
    for name in sorted(cubin.words):
        positions = place[begin : begin + len(cubin.words[name]) // _INSTRUCTION]
        for row in np.flatnonzero(ahead[positions]).tolist():
            entry = entries[positions[row]]  # each branch is its own representative, so its address is known
            entry["operands"] += f"0x{max(0, entry.pop('distance') + row * _INSTRUCTION):x}"
        functions.append({"function-name": name, "start": 0, "places": positions.tolist()})
        begin += len(positions)
    return functions


def _header(arch: int, data: bytes) -> dict[str, Any]:
    compiler = _COMPILER.search(data)
    return {
        "SM": {"version": {"major": arch // 10, "minor": arch % 10}},
        "Producer": "nvdisasm, one instruction of each encoding",
        ".note.nv.tkinfo": {"tki_toolVersion": compiler[0].decode() if compiler else ""},
    }


AMD_MACHINE = 224

MACHINES = {
    3: "x86", 62: "x86-64", 183: "AArch64", 243: "RISC-V", 21: "PowerPC", 22: "S390", 40: "Arm", 224: "AMD's GPUs",
}  # fmt: skip


def elf_machine(head: bytes) -> int | None:
    """Return the machine number of an ELF file, or None."""
    if head[:4] != b"\x7fELF" or len(head) < 20:
        return None
    return int(struct.unpack_from("<H" if head[5] == 1 else ">H", head, 18)[0])
