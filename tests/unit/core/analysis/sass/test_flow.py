"""A branch back is a loop where every way to it leads through its target."""

from __future__ import annotations

import struct

import pytest

from pytest_perfgate.core.analysis.sass.facts import Loop, loops, main_loop
from pytest_perfgate.core.analysis.sass.mix import mix
from pytest_perfgate.model.profiles import KernelCode

Line = tuple[str, str, str]
"""Guard, opcode, operands; a number alone is a row to branch to."""


def coded(*lines: Line, words: bool = False) -> KernelCode:
    guards, opcodes, operands = zip(*lines)
    told = [_operands(text) for text in operands]
    raw = b"".join(struct.pack("<QQ", (0 if guard else 7) << 12, 0) for guard in guards)
    return KernelCode(
        opcodes=opcodes,
        operands=tuple(told),
        predicates=("",) * len(lines) if words else guards,
        words=raw if words else b"",
    )


def _operands(text: str) -> str:
    head, _, last = text.rpartition(",")
    return f"{head}{',' if head else ''}0x{16 * int(last):x}" if last.isdigit() else text


LOOP = (("", "MOV", "R1"), ("", "LDG.E", "R2"), ("", "FFMA", "R3"), ("@P0", "BRA", "1"), ("", "EXIT", ""))
MOVED = (
    ("", "LDG.E", "R1"), ("", "BRA.DIV", "UR4,5"), ("", "FFMA", "R3"), ("", "STG.E", "R3"), ("", "EXIT", ""),
    ("", "WARPSYNC.COLLECTIVE", "R3"), ("", "SHFL.DOWN", "R4"), ("", "BRA", "2"),
)  # fmt: skip
"""What runs where lanes have parted stands behind the end, and branches back."""
INSIDE = (
    ("", "MOV", "R1"), ("", "LDG.E", "R2"), ("", "BRA.DIV", "UR4,7"), ("", "FFMA", "R3"), ("", "FFMA", "R3"),
    ("@!P1", "BRA", "1"), ("", "EXIT", ""), ("", "SHFL.DOWN", "R4"), ("", "BRA", "3"),
)  # fmt: skip
NESTED = (
    ("", "MOV", "R1"), ("", "LDG.E", "R2"), ("", "FFMA", "R3"), ("", "BRA", "P6,2"), ("@P1", "BRA", "1"), ("", "EXIT", ""),
)  # fmt: skip
UNREACHED = (("", "EXIT", ""), ("", "FFMA", "R1"), ("", "BRA", "1"))
BY_TABLE = (("", "BRX", "R4 -0x40"), ("", "FFMA", "R1"), ("@P0", "BRA", "1"), ("", "EXIT", ""))


@pytest.mark.parametrize("words", [False, True], ids=["by its guard", "by its word"])
@pytest.mark.parametrize(
    ("lines", "spans"),
    [
        (LOOP, [(1, 3)]),
        (MOVED, []),
        (INSIDE, [(1, 5)]),
        (NESTED, [(1, 4), (2, 3)]),
        (UNREACHED, []),
        (BY_TABLE, [(1, 2)]),
        ((("", "EXIT", ""),), []),
    ],
    ids=["a loop", "moved behind", "moved out of a loop", "nested", "never reached", "by a table", "none"],
)
def test_loops_are_what_repeats(lines: tuple[Line, ...], spans: list[tuple[int, int]], *, words: bool) -> None:
    assert [(loop.first, loop.last) for loop in loops(coded(*lines, words=words))] == spans


def test_what_was_moved_out_of_the_main_loop_does_not_stretch_it() -> None:
    code = coded(*INSIDE)
    assert main_loop(code) == Loop(first=1, last=5)
    assert mix(code, main_loop(code).rows).counts["SHFL"] == 0
