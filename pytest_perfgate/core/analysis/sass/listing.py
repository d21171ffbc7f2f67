"""Nvdisasm output with control words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pytest_perfgate.model.profiles import KernelCode

Column = tuple[str, ...]

INSTRUCTION = 16
"""Bytes, on every architecture from sm_70 on."""

_CONTROL_SHIFT, _CONTROL_MASK = np.uint64(41), np.uint64(0x1FFFFF)


def parse_listing(listing: bytes, words: Mapping[str, bytes]) -> Iterator[tuple[str, str, KernelCode]]:
    """(function, architecture, code) of everything in the listing, padding stripped."""
    header, functions, *shared = json.loads(listing)
    version = header.get("SM", {}).get("version", {})
    arch = f"sm_{version.get('major', '')}{version.get('minor', '')}"
    tools = header.get(".note.nv.tkinfo", {}).get("tki_toolVersion", ""), header.get("Producer", "")
    kinds = _columns(shared[0]) if shared else ()
    for function in functions:
        name = function["function-name"]
        columns = tuple(_picked(kind, function["places"]) for kind in kinds) or _columns(function["sass-instructions"])
        here = words.get(name, b"")[int(function.get("start", 0)) :]
        yield name, arch, _code(columns, here, tools)


def _columns(instructions: Sequence[Mapping[str, Any]]) -> tuple[Column, ...]:
    """Opcodes, operands, predicates."""
    return (
        tuple(i["opcode"] for i in instructions),
        tuple(i.get("operands", "") for i in instructions),
        tuple(i.get("predicate", "") for i in instructions),
    )


def _picked(column: Column, places: Sequence[int]) -> Column:
    """A cell for each instruction of a listing that tells each kind of instruction once."""
    return tuple(map(column.__getitem__, places))


def _code(columns: tuple[Column, ...], words: bytes, tools: tuple[str, str]) -> KernelCode:
    opcodes, operands, predicates = columns
    count = _end(opcodes, operands)
    here = words[: count * INSTRUCTION]
    return KernelCode(
        words=here if len(here) == count * INSTRUCTION else b"",
        opcodes=opcodes[:count],
        operands=operands[:count],
        predicates=predicates[:count],
        controls=parse_controls(here, count),
        compiler=tools[0],
        disassembler=tools[1],
    )


def parse_controls(words: bytes, count: int) -> tuple[int, ...]:
    """The scheduling bits of each instruction; nothing where the words are cut short or zeroed out."""
    if len(words) < count * INSTRUCTION or not words.strip(b"\0"):
        return ()
    pairs = np.frombuffer(words, dtype="<u8", count=2 * count)
    return tuple(((pairs[1::2] >> _CONTROL_SHIFT) & _CONTROL_MASK).tolist())


def _end(opcodes: Column, operands: Column) -> int:
    """Where code ends and padding begins: ``NOP`` after the ``BRA`` to itself."""
    end = len(opcodes)
    while end and opcodes[end - 1] == "NOP":
        end -= 1
    idle = end and opcodes[end - 1] == "BRA" and branch_target(operands[end - 1]) == (end - 1) * INSTRUCTION
    return end - 1 if idle else end


def branch_target(operands: str) -> int | None:
    """The address a branch goes to, where it is written as one."""
    last = operands.rpartition(",")[2].strip().strip("`()")
    try:
        return int(last, 16) if last.startswith("0x") else None
    except ValueError:
        return None


def identity(code: KernelCode) -> str:
    """A hash of the machine code without its padding; of the listing where the code itself was not at hand."""
    text = code.words or repr((code.predicates, code.opcodes, code.operands)).encode()
    return hashlib.sha256(text).hexdigest()[:16]
