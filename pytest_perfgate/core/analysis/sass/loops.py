"""Loops, found from branches that go back."""

from __future__ import annotations

from pytest_perfgate.core.analysis.sass.listing import INSTRUCTION, branch_target
from pytest_perfgate.core.analysis.sass.mix import ARITHMETIC, LOADS, TENSOR
from pytest_perfgate.model.kernel import KernelCode
from pytest_perfgate.model.values import value

_WORK = frozenset((*ARITHMETIC, *LOADS))


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
    for row, opcode in enumerate(code.opcodes):
        if opcode.partition(".")[0] in {"BRA", "JMP", "BRXU"}:
            target = branch_target(code.operands[row])
            if target is not None and target // INSTRUCTION < row:
                ends[target // INSTRUCTION] = row
    spans = sorted(ends.items())
    return tuple(Loop(first=a, last=b, innermost=not _holds_another(a, b, spans)) for a, b in spans)


def _holds_another(first: int, last: int, spans: list[tuple[int, int]]) -> bool:
    return any((a, b) != (first, last) and first <= a and b <= last for a, b in spans)


def main_loop(code: KernelCode) -> Loop | None:
    """The loop that carries the work: the smallest that holds more than half of what loops compute and load.

    An unrolled loop wins over its remainder, and a tile loop with tensor cores over a small loop inside it.
    """
    found = loops(code)
    tensor = frozenset(row for row, opcode in enumerate(code.opcodes) if opcode.partition(".")[0] in TENSOR)
    work = tensor or frozenset(row for row, opcode in enumerate(code.opcodes) if opcode.partition(".")[0] in _WORK)
    inside = {row for loop in found for row in loop.rows if row in work}
    carrying = [loop for loop in found if 2 * len(inside.intersection(loop.rows)) > len(inside)]
    smallest = min(carrying, key=lambda loop: len(loop.rows), default=None)
    return smallest or max(found, key=lambda loop: len(loop.rows) if loop.innermost else 0, default=None)
