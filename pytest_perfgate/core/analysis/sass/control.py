"""Control words: who waits how long, and for what."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_perfgate.model.kernel import Control, KernelCode

NO_BARRIER = 7


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
    return sum(code.controls[row] & 0xF for row in rows) if code.controls else None


def usual_stall(code: KernelCode, family: str, rows: Sequence[int] | range) -> int | None:
    """The most frequent stall count of one opcode, the smaller of equals."""
    seen = [code.controls[row] & 0xF for row in rows if code.opcodes[row].partition(".")[0] == family]
    return max(sorted(set(seen)), key=seen.count) if seen and code.controls else None


def barrier_waits(code: KernelCode, rows: Sequence[int] | range) -> int | None:
    """Instructions that wait for at least one scoreboard barrier."""
    return sum(1 for row in rows if code.controls[row] >> 11 & 0x3F) if code.controls else None
