"""Two builds of a kernel: what the compiler changed."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_perfgate.core.analysis.sass.control import stall_cycles
from pytest_perfgate.core.analysis.sass.facts import spilled
from pytest_perfgate.core.analysis.sass.identity import identity
from pytest_perfgate.core.analysis.sass.loops import main_loop
from pytest_perfgate.core.analysis.sass.mix import mix
from pytest_perfgate.model.kernel import KernelFacts
from pytest_perfgate.model.values import value


@value
class Change:
    """One fact of a kernel before and after; ``None`` where a build does not have it."""

    what: str
    before: float | None
    after: float | None


def same_code(before: KernelFacts, after: KernelFacts) -> bool:
    """Whether the machine code is the same to the last control bit."""
    if before.code is None or after.code is None:
        return False
    return identity(before.code) == identity(after.code)


def changes(before: KernelFacts, after: KernelFacts) -> tuple[Change, ...]:
    """What differs, resources first, then instructions, the inner loop after the whole kernel."""
    here, there = dict(_facts(before)), dict(_facts(after))
    names = [*here, *(name for name in there if name not in here)]
    return tuple(
        Change(what=name, before=here.get(name), after=there.get(name))
        for name in names
        if here.get(name, 0) != there.get(name, 0)
    )


def _facts(facts: KernelFacts) -> Iterator[tuple[str, float]]:
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
    seen = mix(facts.code, rows)
    for name in sorted(seen.counts):
        if seen.counts[name]:
            yield f"{prefix}{name}", seen.counts[name]
    for width, count in seen.widths:
        yield f"{prefix}{width}-byte loads", count
    cycles = stall_cycles(facts.code, rows if rows is not None else range(len(facts.code)))
    if cycles is not None:
        yield f"{prefix}stall cycles", cycles
