"""A disassembly as kernels: code, resources, launch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pytest_perfgate.core.analysis.sass.listing import parse_listing
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.kernel import FROM_CODE, Disassembly, KernelCode, KernelFacts, Launch

_SYSTEM_SHARED_FROM = 90
"""From sm_90 on a cubin counts the driver's own kilobyte among a block's shared memory."""
_SYSTEM_SHARED = 1024


def kernels(disassembly: Disassembly) -> tuple[KernelFacts, ...]:
    """Every kernel of one file; device functions that are no kernel are left out."""
    try:
        found = [
            f for part in (disassembly.listing, *disassembly.parts) for f in parse_listing(part, disassembly.words)
        ]
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise PerfgateError(
            "kernel-tool-failed", f"the disassembler's listing does not read: {error}", place=disassembly.source
        ) from error
    return tuple(_facts(disassembly, name, arch, code) for name, arch, code in found if name in disassembly.resources)


def _facts(disassembly: Disassembly, name: str, arch: str, code: KernelCode) -> KernelFacts:
    return KernelFacts(
        name=name,
        arch=arch,
        source=disassembly.source,
        code=code,
        resources=disassembly.resources[name],
        most_threads=disassembly.bounds.get(name),
        launch=_launch(name, disassembly.launches),
    )


def _launch(name: str, launches: Mapping[str, Launch]) -> Launch | None:
    """The launch of that name; one without a name is the file's only one."""
    return launches.get(name) or launches.get("")


def static_shared(facts: KernelFacts) -> int:
    """Bytes of shared memory that the source asks for: what the driver keeps for itself is not among them."""
    if facts.resources is None:
        return 0
    shared = facts.resources.shared
    number = architecture(facts.arch)
    if facts.resources.source == FROM_CODE and number is not None and number >= _SYSTEM_SHARED_FROM:
        return max(0, shared - _SYSTEM_SHARED)
    return shared


def architecture(arch: str) -> int | None:
    """90 for ``sm_90a``."""
    digits = re.match(r"sm_(\d+)", arch)
    return int(digits[1]) if digits else None


def spilled(facts: KernelFacts) -> int | None:
    """Bytes of local memory a thread: the stack frame, where the code writes or reads local memory at all.

    ``None`` where it does and no frame is told: a function that calls itself has one of any depth.
    """
    touched = facts.code is None or any(o.startswith(("STL", "LDL")) for o in set(facts.code.opcodes))
    if facts.resources is None or not touched:
        return 0
    return facts.resources.stack + facts.resources.local or None


def labels_of(facts: Iterable[KernelFacts]) -> dict[int, str]:
    """A short name for each kernel by ``id``; the whole mangled name where short ones collide."""
    listed = list(facts)
    short = {id(f): short_name(f.name) for f in listed}
    homes: dict[tuple[str, str], set[str]] = {}
    for f in listed:
        homes.setdefault((short[id(f)], f.arch), set()).add(f.name)
    return {id(f): short[id(f)] if len(homes[short[id(f)], f.arch]) == 1 else f.name for f in listed}


def short_name(name: str) -> str:
    """The last part of a mangled or written-out C++ name, without arguments: ``k`` for ``_Z1kILi79EEvPKf``."""
    if name.startswith("_Z"):
        return _mangled(name) or name
    plain = re.sub(r"\(anonymous namespace\)", "", re.sub(r"^(void|auto) ", "", name))
    plain = re.split(r"[<(\[]", plain, maxsplit=1)[0]
    return plain.rpartition("::")[2].strip() or name


def _mangled(name: str) -> str:
    """The last of the length-prefixed parts before the template arguments."""
    at, last = 3 if name.startswith("_ZN") else 2, ""
    while (number := re.match(r"[KVrS]?(\d+)", name[at:])) is not None:
        begin = at + number.end()
        at = begin + int(number[1])
        last = name[begin:at]
    return last
