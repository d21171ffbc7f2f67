"""Control words: who waits how long, and for what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pytest_perfgate.core.analysis.sass.mix import at_rows
from pytest_perfgate.model.kernel import Control, KernelCode

NO_BARRIER = 7
_STALL, _WAITS = 0xF, 0x3F << 11


def control(bits: int) -> Control:
    """The fields of 21 control bits, as they are on sm_75 to sm_120."""
    return Control(
        stall=bits & 0xF,
        yields=not bits >> 4 & 1,
        write_barrier=bits >> 5 & 7,
        read_barrier=bits >> 8 & 7,
        wait=bits >> 11 & 0x3F,
        reuse=bits >> 17 & 0xF,
    )


def stall_cycles(code: KernelCode, rows: Sequence[int] | range) -> int | None:
    """Sum of the stall counts: a signal for differences, not a time."""
    return sum(map(_STALL.__and__, at_rows(code.controls, rows))) if code.controls else None


def usual_stall(code: KernelCode, family: str, rows: Sequence[int] | range) -> int | None:
    """The most frequent stall count of one opcode, the smaller of equals."""
    shown = at_rows(code.opcodes, rows)
    names = frozenset(opcode for opcode in set(shown) if opcode.partition(".")[0] == family)
    if not names or not code.controls:
        return None
    seen = Counter(bits & _STALL for bits, opcode in zip(at_rows(code.controls, rows), shown) if opcode in names)
    return min(seen, key=lambda stall: (-seen[stall], stall))


def barrier_waits(code: KernelCode, rows: Sequence[int] | range) -> int | None:
    """Instructions that wait for at least one scoreboard barrier."""
    return sum(1 for bits in at_rows(code.controls, rows) if bits & _WAITS) if code.controls else None
