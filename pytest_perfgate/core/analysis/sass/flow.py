"""Which branches back close a loop: those to a place that every way to the branch leads through.

Compilers move what is rarely run behind the end of a kernel, and it branches back without repeating anything.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_perfgate.core.analysis.sass.listing import INSTRUCTION, branch_target
from pytest_perfgate.model.kernel import KernelCode

JUMPS = frozenset(("BRA", "JMP"))
_ENDS, _ANYWHERE = frozenset(("EXIT", "RET", "KILL")), frozenset(("BRX", "BRXU", "JMX", "JMXU"))
_ALWAYS = 7
"""The guard of an instruction that has none."""
Edges = list[list[int]]


def closing(code: KernelCode, branches: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Of the branches back (target, row), those that repeat; all of them where a table says where code goes on."""
    roots = {opcode: opcode.partition(".")[0] for opcode in set(code.opcodes)}
    if not branches or _ANYWHERE & set(roots.values()):
        return list(branches)
    rows = [row for row, opcode in enumerate(code.opcodes) if roots[opcode] in JUMPS or roots[opcode] in _ENDS]
    begins, edges = _blocks(code, rows, roots)
    above = _dominators(edges)
    home = {begin: block for block, begin in enumerate(begins)}
    last = {end - 1: block for block, end in enumerate([*begins[1:], len(code)])}
    return [(target, row) for target, row in branches if _leads_through(above, home[target], last[row])]


def _blocks(code: KernelCode, rows: Sequence[int], roots: dict[str, str]) -> tuple[list[int], Edges]:
    """Where stretches without a branch begin, and to which of them each goes on."""
    jumps = {row: _target(code, row) for row in rows if roots[code.opcodes[row]] in JUMPS}
    inside = (target for target in jumps.values() if target is not None)
    begins = sorted({0, *inside, *(row + 1 for row in rows if row + 1 < len(code))})
    number = {begin: block for block, begin in enumerate(begins)}
    ends, edges = frozenset(rows), []
    for end in (*begins[1:], len(code)):
        row = end - 1
        target = jumps.get(row)
        goes_on = end < len(code) and (row not in ends or _conditional(code, row, jump=row in jumps))
        edges.append(([number[target]] if target is not None else []) + ([number[end]] if goes_on else []))
    return begins, edges


def _target(code: KernelCode, row: int) -> int | None:
    address = branch_target(code.operands[row])
    target = address // INSTRUCTION if address is not None else None
    return target if target is not None and target < len(code) else None


def _conditional(code: KernelCode, row: int, *, jump: bool) -> bool:
    """By its guard, or by the condition that a jump has among its operands."""
    if jump and "," in code.operands[row]:
        return True
    return code.words[INSTRUCTION * row + 1] >> 4 != _ALWAYS if code.words else bool(code.predicates[row])


def _dominators(edges: Edges) -> list[int]:
    """For each stretch the nearest that every way to it leads through; -1 where no way leads to it."""
    order = _order(edges)
    rank = {block: place for place, block in enumerate(order)}
    before: Edges = [[] for _ in edges]
    for block in order:
        for following in edges[block]:
            before[following].append(block)
    above = [-1] * len(edges)
    above[0] = 0
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            found = -1
            for one in before[block]:
                if above[one] >= 0:
                    found = one if found < 0 else _common(above, rank, found, one)
            if above[block] != found:
                above[block], changed = found, True
    return above


def _common(above: list[int], rank: dict[int, int], one: int, other: int) -> int:
    while one != other:
        while rank[one] > rank[other]:
            one = above[one]
        while rank[other] > rank[one]:
            other = above[other]
    return one


def _order(edges: Edges) -> list[int]:
    """Stretches that can be reached, each before those that follow it but for branches back."""
    seen, done, stack = {0}, [], [(0, iter(edges[0]))]
    while stack:
        block, following = stack[-1]
        new = next((one for one in following if one not in seen), None)
        if new is None:
            done.append(block)
            stack.pop()
        else:
            seen.add(new)
            stack.append((new, iter(edges[new])))
    return done[::-1]


def _leads_through(above: list[int], gate: int, block: int) -> bool:
    if above[block] < 0:
        return False
    while block not in (gate, 0):
        block = above[block]
    return block == gate
