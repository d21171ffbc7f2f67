"""What ``nvdisasm -json`` printed, with the control words that it does not print."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from pytest_perfgate.model.kernel import KernelCode

INSTRUCTION = 16
"""Bytes, on every architecture from sm_70 on."""
_CONTROL_SHIFT, _CONTROL_MASK = np.uint64(41), np.uint64(0x1FFFFF)


def parse_listing(listing: bytes, words: Mapping[str, bytes]) -> Iterator[tuple[str, str, KernelCode]]:
    """(function, architecture, code) of everything in the listing, padding stripped."""
    header, functions = json.loads(listing)[:2]
    version = header.get("SM", {}).get("version", {})
    arch = f"sm_{version.get('major', '')}{version.get('minor', '')}"
    compiler = header.get(".note.nv.tkinfo", {}).get("tki_toolVersion", "")
    for function in functions:
        yield (
            function["function-name"],
            arch,
            _code(function, words.get(function["function-name"], b""), compiler, header.get("Producer", "")),
        )


def _code(function: Mapping[str, Any], words: bytes, compiler: str, disassembler: str) -> KernelCode:
    instructions = function["sass-instructions"]
    count = len(instructions) - _padding(instructions)
    kept = instructions[:count]
    start = int(function.get("start", 0))
    here = words[start : start + count * INSTRUCTION]
    return KernelCode(
        words=here if len(here) == count * INSTRUCTION else b"",
        opcodes=tuple(i["opcode"] for i in kept),
        operands=tuple(i.get("operands", "") for i in kept),
        predicates=tuple(i.get("predicate", "") for i in kept),
        controls=parse_controls(here, count),
        compiler=compiler,
        disassembler=disassembler,
    )


def parse_controls(words: bytes, count: int) -> tuple[int, ...]:
    """The scheduling bits of each instruction; nothing where the words are cut short or zeroed out."""
    if len(words) < count * INSTRUCTION or not words.strip(b"\0"):
        return ()
    pairs = np.frombuffer(words, dtype="<u8", count=2 * count)
    return tuple(((pairs[1::2] >> _CONTROL_SHIFT) & _CONTROL_MASK).tolist())


def _padding(instructions: list[Mapping[str, Any]]) -> int:
    """How many instructions at the end only fill: ``NOP`` after the ``BRA`` to itself."""
    end = len(instructions)
    while end and instructions[end - 1]["opcode"] == "NOP":
        end -= 1
    last = instructions[end - 1] if end else {}
    if last.get("opcode") == "BRA" and branch_target(last.get("operands", "")) == (end - 1) * INSTRUCTION:
        end -= 1
    return len(instructions) - end


def branch_target(operands: str) -> int | None:
    """The address a branch goes to, where it is written as one."""
    last = operands.rpartition(",")[2].strip().strip("`()")
    try:
        return int(last, 16) if last.startswith("0x") else None
    except ValueError:
        return None
