"""Loops, found from branches that go back."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from pytest_perfgate.core.analysis.sass.listing import INSTRUCTION, branch_target
from pytest_perfgate.core.analysis.sass.mix import ARITHMETIC, LOADS, TENSOR
from pytest_perfgate.model.kernel import KernelCode
from pytest_perfgate.model.values import value

_WORK, _TENSOR, _BRANCHES = frozenset((*ARITHMETIC, *LOADS)), frozenset(TENSOR), frozenset(("BRA", "JMP"))


@value
class Loop:
    """A range of instructions that a branch repeats; ``last`` is the branch."""

    first: int
    last: int
    innermost: bool = True

    @property
    def rows(self) -> range:
        return range(self.first, self.last + 1)


def loops(code: KernelCode) -> tuple[Loop, ...]:
    """Every loop in the order of the code; branches back to one place are one loop."""
    ends: dict[int, int] = {}
    branches = _named(code, _BRANCHES)
    for row, opcode in enumerate(code.opcodes):
        if opcode in branches:
            target = branch_target(code.operands[row])
            if target is not None and target // INSTRUCTION < row:
                ends[target // INSTRUCTION] = row
    spans = sorted(ends.items())
    return tuple(Loop(first=a, last=b, innermost=not _holds_another(a, b, spans)) for a, b in spans)


def _named(code: KernelCode, roots: frozenset[str]) -> frozenset[str]:
    """The whole opcodes that this code has of these."""
    return frozenset(opcode for opcode in set(code.opcodes) if opcode.partition(".")[0] in roots)


def _holds_another(first: int, last: int, spans: list[tuple[int, int]]) -> bool:
    return any((a, b) != (first, last) and first <= a and b <= last for a, b in spans)


def main_loop(code: KernelCode) -> Loop | None:
    """The loop that carries the work: the smallest that holds more than half of what loops compute and load.

    An unrolled loop wins over its remainder, and a tile loop with tensor cores over a small loop inside it.
    """
    found = loops(code)
    work = _named(code, _TENSOR) or _named(code, _WORK)
    until = list(accumulate((opcode in work for opcode in code.opcodes), initial=0))

    def held(loop: Loop) -> int:
        return until[loop.last + 1] - until[loop.first]

    inside = sum(until[last + 1] - until[first] for first, last in _stretches(found))
    carrying = [loop for loop in found if 2 * held(loop) > inside]
    smallest = min(carrying, key=lambda loop: len(loop.rows), default=None)
    return smallest or max(found, key=lambda loop: len(loop.rows) if loop.innermost else 0, default=None)


def _stretches(found: tuple[Loop, ...]) -> Iterator[tuple[int, int]]:
    """What loops cover together, each row once; they come in the order of the code."""
    begin, end = 0, -1
    for loop in found:
        if loop.first > end:
            yield begin, end
            begin = loop.first
        end = max(end, loop.last)
    yield begin, end
