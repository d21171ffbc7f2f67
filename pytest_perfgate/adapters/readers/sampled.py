"""Large cubins: the disassembler is shown one instruction of each encoding, and every branch, instead of all of them.

It takes some 20 µs an instruction and half a second to start. Which instruction a word is depends on its opcode and
modifier bits alone, so a word of each such pattern tells for all; branches are all shown, for their targets differ.
What comes out has the form of ``nvdisasm -json`` without operands, but for branches and constants.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
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
_BRANCHES = (0x147, 0x14A, 0x158)
_NONE = 0xFF
"""The register that is always zero."""
_ARCH_SPECIFIC = 90
_INSTRUCTION = 16
_BASE = 0x40000000
"""Where the sample pretends to lie, so that branches back have targets above zero."""


def sampled_listing(cubin: CubinFile, data: bytes, room: Path, run: Run) -> bytes:
    """A listing of the whole cubin from the instructions that stand for all others."""
    names = sorted(cubin.words)
    words = np.frombuffer(b"".join(cubin.words[name] for name in names), dtype="<u8").reshape(-1, 2)
    shown, stands_for = _representatives(words)
    raw = room / "sample.bin"
    raw.write_bytes(words[shown].tobytes())
    arch = architecture(data)
    target = f"SM{arch}a" if arch >= _ARCH_SPECIFIC else f"SM{arch}"
    told = _parsed(run(["--binary", target, "--base-address", hex(_BASE), str(raw)]), len(shown))
    entries = [_entry(told[at], at) for at in range(len(shown))]
    return json.dumps([_header(arch, data), _functions(cubin, names, entries, (shown, stands_for))]).encode()


def _representatives(words: Words) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(rows to show, for every row the place of the one that stands for it)."""
    low, high = words[:, 0], words[:, 1]
    zeros = [(low >> np.uint64(shift) & np.uint64(0xFF) == _NONE).astype(np.uint64) for shift in (24, 32)]
    pattern = (
        (low & _OPCODE) | (high & _MODIFIERS) << np.uint64(8) | zeros[0] << np.uint64(60) | zeros[1] << np.uint64(61)
    )
    _, first, place = np.unique(pattern, return_index=True, return_inverse=True)
    branches = np.flatnonzero(np.isin(low & _ROOT, _BRANCHES))
    place = place.reshape(-1).copy()
    place[branches] = len(first) + np.arange(len(branches))
    return np.concatenate([first, branches]).astype(np.int64), place.astype(np.int64)


def _parsed(text: bytes, count: int) -> list[tuple[str, str, str]]:
    """(predicate, opcode, operands) of each shown instruction."""
    found = [(int(a, 16), p, o, rest) for a, p, o, rest in _LINE.findall(text.decode("utf-8", "replace"))]
    if not found or [at - found[0][0] for at, *_ in found] != [_INSTRUCTION * n for n in range(count)]:
        raise PerfgateError("kernel-tool-failed", f"nvdisasm printed {len(found)} of {count} instructions")
    return [(p, o, rest) for _, p, o, rest in found]


def _entry(told: tuple[str, str, str], at: int) -> dict[str, Any]:
    """As in a listing; the target of a branch as a distance, since the sample has addresses of its own."""
    _, opcode, operands = told
    target = re.search(r"0x[0-9a-f]+$", operands.strip("`() "))
    if opcode.partition(".")[0] in {"BRA", "JMP", "BRXU"} and target:
        return {"opcode": opcode, "distance": int(target[0], 16) - _BASE - at * _INSTRUCTION}
    if opcode.startswith("HFMA2") and "-RZ" in operands:
        return {"opcode": opcode, "operands": operands.replace(" ", "")}
    return {"opcode": opcode}


def _functions(
    cubin: CubinFile,
    names: list[str],
    entries: list[dict[str, Any]],
    chosen: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> list[dict[str, Any]]:
    """Every function with the entry that stands for each of its instructions."""
    functions, begin = [], 0
    for name in names:
        count = len(cubin.words[name]) // _INSTRUCTION
        rows = [entries[at] for at in chosen[1][begin : begin + count].tolist()]
        functions.append(
            {"function-name": name, "start": 0, "sass-instructions": list(map(_placed, rows, range(count)))}
        )
        begin += count
    return functions


def _placed(entry: dict[str, Any], row: int) -> dict[str, Any]:
    if "distance" not in entry:
        return entry
    return {"opcode": entry["opcode"], "operands": f"0x{max(0, entry['distance'] + row * _INSTRUCTION):x}"}


def _header(arch: int, data: bytes) -> dict[str, Any]:
    compiler = _COMPILER.search(data)
    return {
        "SM": {"version": {"major": arch // 10, "minor": arch % 10}},
        "Producer": "nvdisasm, one instruction of each encoding",
        ".note.nv.tkinfo": {"tki_toolVersion": compiler[0].decode() if compiler else ""},
    }
