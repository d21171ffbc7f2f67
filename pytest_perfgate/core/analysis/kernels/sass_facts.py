"""Kernels of a disassembly: control flow, loops, changes."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from pytest_perfgate.core.analysis.kernels.sass_mix import ARITHMETIC, LOADS, TENSOR, mix, stall_cycles
from pytest_perfgate.core.analysis.kernels.sass_opcodes import (
    INSTRUCTION,
    branch_target,
    parse_listing,
    parse_log,
)
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.profiles import FROM_CODE, FROM_LOG, Disassembly, KernelCode, KernelFacts
from pytest_perfgate.model.values import value

_SYSTEM_SHARED_FROM = 90
"""From sm_90 on a cubin counts the driver's own kilobyte in a block's shared memory."""

_SYSTEM_SHARED = 1024

_LEFT_OUT = "left out"


def kernels(disassembly: Disassembly) -> tuple[KernelFacts, ...]:
    """Return every kernel of one file, without device functions that cannot be launched."""
    if disassembly.log:
        source = disassembly.source
        logged = parse_log(disassembly.log, source)
        return tuple(KernelFacts(name=name, arch=arch, source=source, resources=used) for name, arch, used in logged)
    try:
        listed = list(parse_listing(disassembly.listing, disassembly.words))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise PerfgateError(
            "kernel-tool-failed", f"the disassembler's listing cannot be read: {error}", place=disassembly.source
        ) from error
    return tuple(_facts(disassembly, name, arch, code) for name, arch, code in listed if name in disassembly.resources)


def _facts(disassembly: Disassembly, name: str, arch: str, code: KernelCode) -> KernelFacts:
    return KernelFacts(
        name=name,
        arch=arch,
        source=disassembly.source,
        code=code,
        resources=disassembly.resources[name],
        most_threads=disassembly.bounds.get(name),
        launch=disassembly.launches.get(name) or disassembly.launches.get(""),  # one without a name is the only one
        notes={_LEFT_OUT: ", ".join(disassembly.left_out)} if disassembly.left_out else {},
    )


def unread_note(kernels: Iterable[KernelFacts]) -> str:
    """Return for which architectures the library has code that is not read; "" if there is none."""
    names = ", ".join(dict.fromkeys(facts.notes[_LEFT_OUT] for facts in kernels if _LEFT_OUT in facts.notes))
    return f"without the code for {names}, which is not read" if names else ""


def static_shared(facts: KernelFacts) -> int:
    """Return the bytes of shared memory that the source requests, without the driver's own."""
    if facts.resources is None:
        return 0
    shared, number = facts.resources.shared, architecture(facts.arch)
    if facts.resources.source == FROM_CODE and number is not None and number >= _SYSTEM_SHARED_FROM:
        return max(0, shared - _SYSTEM_SHARED)
    return shared


def architecture(arch: str) -> int | None:
    """Return 90 for ``sm_90a``; None for another kind of name."""
    digits = re.match(r"sm_(\d+)", arch)
    return int(digits[1]) if digits else None


def spilled(facts: KernelFacts) -> int | None:
    """Return bytes of local memory a thread: the stack frame, if the code uses local memory at all."""
    # ``None`` if it does and no frame is stated, as for a recursive function, whose stack has any depth.
    frame = facts.resources.stack + facts.resources.local if facts.resources else 0
    own = ("STL", "LDL", "ST", "LD") if frame else ("STL", "LDL")  # ST and LD reach a stack too, as in code of -G
    touched = facts.code is None or any(o.partition(".")[0] in own for o in set(facts.code.opcodes))
    if facts.resources is None or not touched:
        return 0
    return frame if facts.resources.source == FROM_LOG else frame or None


def labels_of(facts: Iterable[KernelFacts]) -> dict[int, str]:
    """Return the shortest name of each kernel by ``id`` that no other one has: ``k``, ``k<79>``, the mangled one."""
    listed = list(facts)
    kernels = {(f.name, f.arch) for f in listed}
    names = {kernel: kernel[0] for kernel in kernels}
    for shorten in (_instance, short_name):
        short = {kernel: (shorten(kernel[0]), kernel[1]) for kernel in kernels}
        alone = Counter(short.values())
        names |= {kernel: name for kernel, (name, arch) in short.items() if alone[name, arch] == 1}
    return {id(f): names[f.name, f.arch] for f in listed}


def short_name(name: str) -> str:
    """Return the last part of a C++ name, mangled or not, without arguments: ``k`` for ``_Z1kILi79EEvPKf``."""
    if name.startswith("_Z"):
        return _mangled(name)[0] or name
    plain = re.sub(r"\(anonymous namespace\)", "", re.sub(r"^(void|auto) ", "", name))
    plain = re.split(r"[<(\[]", plain, maxsplit=1)[0]
    return plain.rpartition("::")[2].strip() or name


def _mangled(name: str) -> tuple[str, str]:
    """Return the last length-prefixed part before the template arguments, and the rest; ``L`` marks a static one."""
    at, last = 3 if name.startswith("_ZN") else 2, ""
    while (number := re.match(r"[KVrSL]?(\d+)", name[at:])) is not None:
        begin = at + number.end()
        at = begin + int(number[1])
        last = name[begin:at]
    return last, name[at:]


_ARGUMENT = re.compile(r"L(?P<type>[a-z])(?P<minus>n?)(?P<number>\d+)E|(?P<plain>[a-z])|(?P<length>\d+)")

_TYPES = {"a": "int8", "b": "bool", "d": "double", "f": "float", "h": "uint8", "i": "int", "j": "unsigned", "l": "long"}


def _instance(name: str) -> str:
    """Return ``k<79>`` for ``_Z1kILi79EEvPKf``; the name itself if an argument is no number and no plain type."""
    last, rest = _mangled(name) if name.startswith("_Z") else ("", "")
    if not last or not rest.startswith("I"):
        return name
    rest, arguments = rest[1:], list[str]()
    while not rest.startswith("E"):
        match = _ARGUMENT.match(rest)
        if match is None or (match["plain"] and match["plain"] not in _TYPES):
            return name
        end = match.end() + int(match["length"] or 0)  # a type of the user's own has its length in front
        number = f"{'-' if match['minus'] else ''}{match['number']}"
        number = str(number != "0").lower() if match["type"] == "b" else number
        plain = _TYPES[match["plain"]] if match["plain"] else rest[match.end() : end]
        arguments.append(number if match["type"] else plain)
        rest = rest[end:]
    return f"{last}<{', '.join(arguments)}>"


JUMPS = frozenset(("BRA", "JMP"))

_ENDS, _ANYWHERE = frozenset(("EXIT", "RET", "KILL")), frozenset(("BRX", "BRXU", "JMX", "JMXU"))

_ALWAYS = 7
"""The guard of an unconditional instruction."""

Edges = list[list[int]]


def closing(code: KernelCode, branches: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the backward branches (target, row) that close loops; all of them if a table holds jump targets."""
    roots = {opcode: opcode.partition(".")[0] for opcode in set(code.opcodes)}
    if not branches or _ANYWHERE & set(roots.values()):
        return list(branches)
    rows = [row for row, opcode in enumerate(code.opcodes) if roots[opcode] in JUMPS or roots[opcode] in _ENDS]
    begins, edges = _blocks(code, rows, roots)
    above = _dominators(edges)
    starting = {begin: block for block, begin in enumerate(begins)}
    ending = {end - 1: block for block, end in enumerate([*begins[1:], len(code)])}
    return [(target, row) for target, row in branches if _leads_through(above, starting[target], ending[row])]


def _blocks(code: KernelCode, rows: Sequence[int], roots: dict[str, str]) -> tuple[list[int], Edges]:
    """Return where stretches without a branch begin, and the successors of each."""
    jumps = {row: _target(code, row) for row in rows if roots[code.opcodes[row]] in JUMPS}
    inside = (target for target in jumps.values() if target is not None)
    begins = sorted({0, *inside, *(row + 1 for row in rows if row + 1 < len(code))})
    starting = {begin: block for block, begin in enumerate(begins)}
    ends, edges = frozenset(rows), []
    for end in (*begins[1:], len(code)):
        row = end - 1
        target = jumps.get(row)
        goes_on = end < len(code) and (row not in ends or _conditional(code, row, jump=row in jumps))
        edges.append(([starting[target]] if target is not None else []) + ([starting[end]] if goes_on else []))
    return begins, edges


def _target(code: KernelCode, row: int) -> int | None:
    address = branch_target(code.operands[row])
    target = address // INSTRUCTION if address is not None else None
    return target if target is not None and target < len(code) else None


def _conditional(code: KernelCode, row: int, *, jump: bool) -> bool:
    """Return whether a branch is conditional, by its guard or by a condition among a jump's operands."""
    if jump and "," in code.operands[row]:
        return True
    return code.words[INSTRUCTION * row + 1] >> 4 != _ALWAYS if code.words else bool(code.predicates[row])


def _dominators(edges: Edges) -> list[int]:
    """Return the nearest dominator of each stretch; -1 if it is unreachable."""
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
            dominator = -1
            for one in before[block]:
                if above[one] >= 0:
                    dominator = one if dominator < 0 else _common(above, rank, dominator, one)
            if above[block] != dominator:
                above[block], changed = dominator, True
    return above


def _common(above: list[int], rank: dict[int, int], one: int, other: int) -> int:
    while one != other:
        while rank[one] > rank[other]:
            one = above[one]
        while rank[other] > rank[one]:
            other = above[other]
    return one


def _order(edges: Edges) -> list[int]:
    """Return reachable stretches, each before its successors except for backward branches."""
    visited, done, stack = {0}, [], [(0, iter(edges[0]))]
    while stack:
        block, following = stack[-1]
        new = next((one for one in following if one not in visited), None)
        if new is None:
            done.append(block)
            stack.pop()
        else:
            visited.add(new)
            stack.append((new, iter(edges[new])))
    return done[::-1]


def _leads_through(above: list[int], gate: int, block: int) -> bool:
    if above[block] < 0:
        return False
    while block not in (gate, 0):
        block = above[block]
    return block == gate


_WORK, _TENSOR = frozenset((*ARITHMETIC, *LOADS)), frozenset(TENSOR)


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
    """Return every loop in the order of the code; branches to one place form one loop."""
    spans = sorted(dict(closing(code, list(_backward_branches(code)))).items())
    innermost, earliest = [], len(code)
    for _, last in reversed(spans):  # a loop that starts later and ends no later is inside
        innermost.append(last < earliest)
        earliest = min(earliest, last)
    return tuple(Loop(first=a, last=b, innermost=inner) for (a, b), inner in zip(spans, reversed(innermost)))


def _backward_branches(code: KernelCode) -> Iterator[tuple[int, int]]:
    """Yield (target, row) of every backward branch."""
    branches = _named(code, JUMPS)
    for row, opcode in enumerate(code.opcodes):
        if opcode in branches:
            target = branch_target(code.operands[row])
            if target is not None and target // INSTRUCTION < row:
                yield target // INSTRUCTION, row


def _named(code: KernelCode, roots: frozenset[str]) -> frozenset[str]:
    """Return the full opcodes of this code that have these roots."""
    return frozenset(opcode for opcode in set(code.opcodes) if opcode.partition(".")[0] in roots)


def main_loop(code: KernelCode) -> Loop | None:
    """Return the main loop: the smallest with more than half of the compute and load instructions of loops."""
    # An unrolled loop wins over its remainder, and a tile loop with tensor cores over a small loop inside it.
    candidates = loops(code)
    work = _named(code, _TENSOR) or _named(code, _WORK)
    until = list(accumulate((opcode in work for opcode in code.opcodes), initial=0))

    def extent(loop: Loop) -> int:
        return until[loop.last + 1] - until[loop.first]

    inside = sum(until[last + 1] - until[first] for first, last in _stretches(candidates))
    carrying = [loop for loop in candidates if 2 * extent(loop) > inside]
    smallest = min(carrying, key=lambda loop: len(loop.rows), default=None)
    return smallest or max(candidates, key=lambda loop: len(loop.rows) if loop.innermost else 0, default=None)


def _stretches(loops_of_kernel: tuple[Loop, ...]) -> Iterator[tuple[int, int]]:
    """Yield the ranges that loops cover, each row once; loops come in the order of the code."""
    begin, end = 0, -1
    for loop in loops_of_kernel:
        if loop.first > end:
            yield begin, end
            begin = loop.first
        end = max(end, loop.last)
    yield begin, end


@value
class FactChange:
    """One fact of a kernel before and after; ``None`` if a build lacks it."""

    what: str
    before: float | None
    after: float | None


def same_code(before: KernelFacts, after: KernelFacts) -> bool:
    """Return whether the machine code is equal to the last control bit."""
    if before.code is None or after.code is None:
        return False
    return identity(before.code) == identity(after.code)


def identity(code: KernelCode) -> str:
    """Return a hash of the machine code without padding, or of the listing if there is no code."""
    text = code.words or repr((code.predicates, code.opcodes, code.operands)).encode()
    return hashlib.sha256(text).hexdigest()[:16]


def changes(before: KernelFacts, after: KernelFacts) -> tuple[FactChange, ...]:
    """Return what differs: resources first, then instructions, the inner loop after the whole kernel."""
    here, there = dict(_changed_facts(before)), dict(_changed_facts(after))
    names = [*here, *(name for name in there if name not in here)]
    return tuple(
        FactChange(what=name, before=_fact(here, name), after=_fact(there, name))
        for name in names
        if here.get(name, 0) != there.get(name, 0)
    )


_NEVER_ZERO = ("registers", "shared memory", "stack", "spills", "stall cycles")


def _fact(facts: Mapping[str, float], name: str) -> float | None:
    """Return a fact; of code that is known, an instruction that does not occur counts as zero."""
    what = name.removeprefix("loop: ")
    counted = ("instructions" if what == name else "loop: instructions") in facts
    return facts.get(name, 0 if counted and what not in _NEVER_ZERO else None)


def _changed_facts(facts: KernelFacts) -> Iterator[tuple[str, float]]:
    if facts.resources:
        yield "registers", facts.resources.registers
        yield "shared memory", facts.resources.shared
        yield "stack", facts.resources.stack
        if (bytes_spilled := spilled(facts)) is not None:
            yield "spills", bytes_spilled
    if facts.code is None:
        return
    yield "instructions", len(facts.code)
    yield from _counted(facts, None, "")
    loop = main_loop(facts.code)
    if loop is not None:
        yield "loop: instructions", len(loop.rows)
        yield from _counted(facts, loop.rows, "loop: ")


def _counted(facts: KernelFacts, rows: range | None, prefix: str) -> Iterator[tuple[str, float]]:
    assert facts.code is not None
    counts = mix(facts.code, rows)
    for name in sorted(counts.counts):
        if counts.counts[name]:
            yield f"{prefix}{name}", counts.counts[name]
    for width, count in counts.widths:
        yield f"{prefix}{width}-byte loads", count
    cycles = stall_cycles(facts.code, rows if rows is not None else range(len(facts.code)))
    if cycles is not None:
        yield f"{prefix}stall cycles", cycles
