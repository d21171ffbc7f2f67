"""Large cubins, and many: the disassembler is shown one instruction of each encoding, and every branch, not all.

It takes some 20 µs an instruction and half a second to start. Which instruction a word is depends on its opcode and
modifier bits alone, so a word of each such pattern tells for all; branches are all shown, for their targets differ.
What comes out has the form of ``nvdisasm -json`` without operands, but for branches and constants, and with a third
part: the instructions, each told once, that the functions name by their places.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_perfgate.adapters.readers.elf import CubinFile, architecture
from pytest_perfgate.model.errors import PerfgateError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Words = NDArray[np.uint64]

Run = Callable[[list[str]], bytes]
_LINE = re.compile(r"/\*([0-9a-f]+)\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")
_COMPILER = re.compile(rb"Cuda compilation tools, release [\w.]+, V[\w.]+")
_OPCODE, _ROOT = np.uint64(0xFFF), np.uint64(0x1FF)
_MODIFIERS = np.uint64(0x1FFFFFFFF00)
"""Bits 72 to 104: what is neither a register nor scheduling."""
_BRANCHES = (0x147, 0x14A)
"""``BRA`` and ``JMP``. Where an indirect branch goes, ``BRX``, is in a table and not in the instruction."""
_SHUFFLE, _SHUFFLE_MODE = 0x189, np.uint64(3 << 58)
"""``SHFL`` keeps its mode beside the operands."""
_LOADS, _CACHES = (0x13B, 0x180, 0x181, 0x182, 0x183, 0x184, 0x1AE), np.uint64(0xFF)
"""Loads have no third register: where its number would be is how they are cached, ``LTC128B`` for one."""
_MULTIPLY_ADDS = (0x824, 0x8A4)
"""``IMAD`` and ``UIMAD`` by a constant: shown as ``IMAD.IADD`` and ``IMAD.SHL`` where they only add or shift."""
_NONE = 0xFF
"""The register that is always zero."""
_ARCH_SPECIFIC = 90
_INSTRUCTION = 16
_BASE = 0x40000000
"""Where the sample pretends to lie, so that branches back have targets above zero."""


def sampled_listings(files: Sequence[tuple[CubinFile, bytes]], room: Path, run: Run) -> list[bytes]:
    """A listing of each of these cubins of one architecture, from the instructions that stand for all others."""
    code = [b"".join(cubin.words[name] for name in sorted(cubin.words)) for cubin, _ in files]
    words = np.frombuffer(b"".join(code), dtype="<u8").reshape(-1, 2)
    shown, stands_for = _representatives(words)
    raw = room / "sample.bin"
    raw.write_bytes(words[shown].tobytes())
    arch = architecture(files[0][1])
    target = f"SM{arch}a" if arch >= _ARCH_SPECIFIC else f"SM{arch}"
    told = _parsed(run(["--binary", target, "--base-address", hex(_BASE), str(raw)]), len(shown))
    entries = [_entry(told[at], at) for at in range(len(shown))]
    ends = np.cumsum([len(one) // _INSTRUCTION for one in code])
    parts = np.split(stands_for, ends[:-1])
    return [_listing(arch, data, cubin, entries, place) for (cubin, data), place in zip(files, parts)]


def _listing(
    arch: int, data: bytes, cubin: CubinFile, entries: list[dict[str, Any]], place: NDArray[np.int64]
) -> bytes:
    """Of one file, with the entries that it needs."""
    used, here = np.unique(place, return_inverse=True)
    own = [entries[at] for at in used.tolist()]
    functions = _functions(cubin, own, here.reshape(-1))
    return json.dumps([_header(arch, data), functions, own]).encode()


def _representatives(words: Words) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(rows to show, for every row the place of the one that stands for it)."""
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
    """Modifiers that some opcodes keep outside the usual bits."""
    root = low & _ROOT
    modes = np.where(root == _SHUFFLE, low & _SHUFFLE_MODE, 0) >> np.uint64(58)
    caches = np.where(np.isin(root, _LOADS), high & _CACHES, 0)
    found: Words = _powers(low) | modes.astype(np.uint64) | caches.astype(np.uint64)
    return found


def _powers(low: Words) -> Words:
    """Which power of two an integer multiply-add takes as its constant, plus one: by it the disassembler names it."""
    constant = low >> np.uint64(32)
    alone = np.isin(low & _OPCODE, _MULTIPLY_ADDS) & (constant > 0) & (constant & (constant - np.uint64(1)) == 0)
    found: Words = np.where(alone, np.log2(np.maximum(constant, 1)) + 1, 0).astype(np.uint64)
    return found


def _parsed(text: bytes, count: int) -> list[tuple[str, str, str]]:
    """(predicate, opcode, operands) of each shown instruction."""
    found = [(int(a, 16), p, o, rest) for a, p, o, rest in _LINE.findall(text.decode("utf-8", "replace"))]
    if not found or [at - found[0][0] for at, *_ in found] != [_INSTRUCTION * n for n in range(count)]:
        raise PerfgateError("kernel-tool-failed", f"nvdisasm printed {len(found)} of {count} instructions")
    return [(p, o, rest) for _, p, o, rest in found]


def _entry(told: tuple[str, str, str], at: int) -> dict[str, Any]:
    """As in a listing; the target of a branch as a distance, since the sample has addresses of its own."""
    _, opcode, operands = told
    target = re.search(r"(?<![-\w])0x[0-9a-f]+$", operands.strip("`() "))
    if opcode.partition(".")[0] in {"BRA", "JMP"} and target:
        return {"opcode": opcode, "distance": int(target[0], 16) - _BASE - at * _INSTRUCTION}
    if opcode.startswith("HFMA2") and "-RZ" in operands:
        return {"opcode": opcode, "operands": operands.replace(" ", "")}
    return {"opcode": opcode}


def _functions(cubin: CubinFile, entries: list[dict[str, Any]], place: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Every function with the place of the entry that stands for each of its instructions."""
    functions, begin = [], 0
    ahead = np.array(["distance" in entry for entry in entries], dtype=bool)
    for name in sorted(cubin.words):
        here = place[begin : begin + len(cubin.words[name]) // _INSTRUCTION]
        for row in np.flatnonzero(ahead[here]).tolist():
            _aim(entries[here[row]], row)
        functions.append({"function-name": name, "start": 0, "places": here.tolist()})
        begin += len(here)
    return functions


def _aim(entry: dict[str, Any], row: int) -> None:
    """A branch stands for itself alone, so its target can be told where it stands."""
    entry["operands"] = f"0x{max(0, entry.pop('distance') + row * _INSTRUCTION):x}"


def _header(arch: int, data: bytes) -> dict[str, Any]:
    compiler = _COMPILER.search(data)
    return {
        "SM": {"version": {"major": arch // 10, "minor": arch % 10}},
        "Producer": "nvdisasm, one instruction of each encoding",
        ".note.nv.tkinfo": {"tki_toolVersion": compiler[0].decode() if compiler else ""},
    }
