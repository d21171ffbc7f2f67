"""One instruction stands for others only where its words say the same: found on libraries of NVIDIA."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from pytest_perfgate.adapters.readers.cubin_elf import _entry, _representatives
from pytest_perfgate.core.analysis.sass.facts import loops
from pytest_perfgate.model.profiles import KernelCode

SHUFFLE, LOAD, ADD = 0xF89, 0x381, 0x210


def shown(*words: tuple[int, int]) -> int:
    """How many of these instructions the disassembler is shown."""
    raw = b"".join(struct.pack("<QQ", low, high) for low, high in words)
    rows, stands_for = _representatives(np.frombuffer(raw, dtype="<u8").reshape(-1, 2))
    assert len(stands_for) == len(words)
    return len(rows)


@pytest.mark.parametrize(
    ("name", "first", "second", "count"),
    [
        ("SHFL.UP and SHFL.DOWN", (SHUFFLE | 1 << 58, 0), (SHUFFLE | 2 << 58, 0), 2),
        ("SHFL.UP by another lane", (SHUFFLE | 1 << 58, 0), (SHUFFLE | 1 << 58 | 3 << 53, 0), 1),
        ("LDG.E and LDG.E.LTC128B", (LOAD, 0), (LOAD, 1 << 4), 2),
        ("LDG.E and LDG.E.128", (LOAD, 4 << 8), (LOAD, 6 << 8), 2),
        ("IADD3 of another register", (ADD, 5), (ADD, 6), 1),
    ],
)
def test_what_another_word_stands_for(name: str, first: tuple[int, int], second: tuple[int, int], count: int) -> None:
    assert shown(first, second) == count, name


def test_an_indirect_branch_is_no_loop() -> None:
    """``BRXU`` adds a register to its offset: where it goes is in a table."""
    assert _entry(("", "BRXU", "UR4 -0x340"), 3) == {"opcode": "BRXU"}
    assert "distance" in _entry(("", "BRA.U", "`(0x40000010)"), 3)
    code = KernelCode(opcodes=("FFMA", "FFMA", "BRXU"), operands=("", "", "0x0"), predicates=("",) * 3)
    assert loops(code) == ()
