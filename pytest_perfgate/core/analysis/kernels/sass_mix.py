"""The instruction mix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, TypeVar

from pytest_perfgate.model.values import value

if TYPE_CHECKING:
    from pytest_perfgate.model.profiles import KernelCode

TENSOR = ("HMMA", "IMMA", "DMMA", "BMMA", "QMMA", "OMMA", "HGMMA", "IGMMA", "QGMMA", "BGMMA",
          "UTCHMMA", "UTCIMMA", "UTCQMMA", "UTCOMMA")  # fmt: skip

_WHOLE_TILE = ("HGMMA", "IGMMA", "QGMMA", "BGMMA", "UTC")
"""Instructions for a warp group or a block, whose counts are not comparable with HMMA."""

ARITHMETIC = ("FFMA", "FFMA2", "HFMA2", "DFMA", "FADD", "FADD2", "FMUL", "FMUL2", "HADD2", "HMUL2", "DADD", "DMUL")

_HALF = "HFMA2"

BULK, _BULK_STORE = ("UBLKCP", "UTMALDG"), "UBLKCP.G"

LOADS = ("LDG", "LDGSTS", *BULK)

LOCAL = ("LDL", "STL")

COUNTED = (
    *TENSOR, "FFMA", "FFMA2", "HFMA2", "DFMA", "LDG", "LDGSTS", "UBLKCP", "UTMALDG", "STG", "LDS", "STS", "LDSM",
    "BAR.SYNC", "SHFL", "MUFU", "LDL", "STL", "ATOMG", "RED",
)  # fmt: skip
"""Counted in every kernel, even as zero, so that a limit on them always has a figure."""

TENSOR_TOTAL = "MMA"
"""The name of all tensor-core instructions together."""

Cell = TypeVar("Cell")

_BITS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}

WIDE = 16


@value
class Mix:
    """Counts of one kernel, or of one of its loops."""

    instructions: int
    counts: Mapping[str, int] = field(default_factory=dict)
    """By opcode without modifiers, the names of ``COUNTED``, and ``MMA`` for all tensor cores."""
    widths: tuple[tuple[int, int], ...] = ()
    """(bytes a thread, global loads), widest first."""
    compute: str = ""
    """The most frequent compute instruction, tensor cores before anything else."""
    exact: Mapping[str, int] = field(default_factory=dict)
    """By opcode with all its modifiers."""
    constants: int = 0
    """Half-precision multiply-adds that only write a constant, which are not computation."""

    @property
    def computing(self) -> int:
        return self.counts.get(TENSOR_TOTAL, 0) or sum(self.counts.get(n, 0) for n in ARITHMETIC) - self.constants

    @property
    def computed(self) -> str:
        """Return the number of compute instructions with their opcode: ``64 HMMA``, or ``70, mostly FFMA``."""
        if not self.compute:
            return f"{self.computing:,}"
        alone = self.computing == _computing(self.counts, self.constants).get(self.compute, 0)
        return f"{self.computing:,} {self.compute}" if alone else f"{self.computing:,}, mostly {self.compute}"

    @property
    def types(self) -> tuple[str, ...]:
        """Return the element types that its compute instruction works on."""
        from pytest_perfgate.core.analysis.work import OF_INSTRUCTIONS

        names = [name for name in self.exact if name.startswith(f"{self.compute}.")]
        if self.compute == "HMMA" and names and all(name.endswith(".F16") for name in names):
            return ("fp16_acc16",)  # the sum is in half precision too, with a peak of its own
        return OF_INSTRUCTIONS.get(self.compute, ())

    @property
    def loads(self) -> int:
        return self.counts.get("LDG", 0) + self.counts.get("LDGSTS", 0) + self.bulk

    @property
    def bulk(self) -> int:
        """Count the bulk copies that load; those to global memory, ``UBLKCP.G.S``, store."""
        stored = sum(number for opcode, number in self.exact.items() if opcode.startswith(_BULK_STORE))
        return sum(self.counts.get(name, 0) for name in BULK) - stored

    @property
    def ratio(self) -> float | None:
        """Return compute instructions for each global load; ``None`` if ``no_ratio`` has a reason."""
        return None if self.no_ratio else self.computing / self.loads

    @property
    def no_ratio(self) -> str:
        """Return why compute instructions and loads of this mix are not comparable; "" if they are."""
        if self.bulk:
            return "bulk copies load whole tiles"
        if not self.loads:
            return "nothing is loaded"
        if not self.computing:
            return "no compute"
        return f"one {self.compute} multiplies a whole tile" if self.compute.startswith(_WHOLE_TILE) else ""

    @property
    def wide(self) -> float | None:
        """Return the share of global loads that move 16 bytes a thread or more."""
        total = sum(count for _, count in self.widths)
        return sum(count for width, count in self.widths if width >= WIDE) / total if total else None


def mix(code: KernelCode, rows: Sequence[int] | range | None = None) -> Mix:
    """Return the mix of the rows, by default of all."""
    chosen = range(len(code)) if rows is None else rows
    exact = Counter(at_rows(code.opcodes, chosen))
    constants = _constants(code, chosen, exact)
    counts: Counter[str] = Counter(dict.fromkeys(COUNTED, 0))
    widths: Counter[int] = Counter()
    for opcode, number in exact.items():
        root = opcode.partition(".")[0]
        counts[root] += number
        if opcode.startswith("BAR.SYNC"):
            counts["BAR.SYNC"] += number
        if root in {"LDG", "LDGSTS"}:
            widths[load_width(opcode)] += number
    counts[TENSOR_TOTAL] = sum(counts[name] for name in TENSOR)
    return Mix(
        instructions=len(chosen),
        counts=dict(counts),
        widths=tuple(sorted(widths.items(), reverse=True)),
        compute=_leading(_computing(counts, constants)),
        exact=dict(exact),
        constants=constants,
    )


def executed_mix(executed: Mapping[str, float]) -> Mix:
    """Return the mix that a profiler counted as executed, which has no widths of loads."""
    counts: Counter[str] = Counter()
    for opcode, number in executed.items():
        counts[opcode.partition(".")[0]] += int(number)
    counts[TENSOR_TOTAL] = sum(counts[name] for name in TENSOR)
    return Mix(
        instructions=int(sum(executed.values())),
        counts=dict(counts),
        compute=_leading(counts),
        exact={opcode: int(number) for opcode, number in executed.items()},
    )


def _leading(counts: Mapping[str, int]) -> str:
    """Return the most frequent compute instruction, tensor cores before anything else."""
    ranked = [name for name in (*TENSOR, *ARITHMETIC) if counts.get(name)]
    tensor = [name for name in ranked if name in TENSOR]
    return max(tensor or ranked, key=lambda name: counts[name], default="")


def _computing(counts: Mapping[str, int], constants: int) -> Mapping[str, int]:
    """Return the counts without the multiply-adds that only write a constant."""
    return {**counts, _HALF: counts.get(_HALF, 0) - constants}


def _constants(code: KernelCode, rows: Sequence[int] | range, exact: Mapping[str, int]) -> int:
    """Count half-precision multiply-adds of zeros, by which compilers write constants on a free pipe."""
    halves = frozenset(opcode for opcode in exact if opcode.partition(".")[0] == _HALF)
    if not halves:
        return 0
    written = zip(at_rows(code.opcodes, rows), at_rows(code.operands, rows))
    return sum(1 for opcode, operands in written if opcode in halves and "-RZ,RZ" in operands)


def at_rows(column: Sequence[Cell], rows: Sequence[int] | range) -> Sequence[Cell]:
    """Return the cells of these rows; a range is sliced, since kernels have tens of thousands of rows."""
    if isinstance(rows, range) and rows.step == 1:
        return column[rows.start : rows.stop]
    return [column[row] for row in rows]


def load_width(opcode: str) -> int:
    """Return the bytes that one thread moves."""
    return next((_BITS[part] for part in opcode.split(".")[1:] if part in _BITS), 4)


_BARRIER, _SHARED_STORES = "BAR.SYNC", frozenset(("STS", "STSM", "LDGSTS", "ATOMS", *BULK))


def barriers_a_stage(code: KernelCode, rows: range) -> float:
    """Return the barriers for each section that fills shared memory, independent of unrolling."""
    barriers, filled, stages = 0, False, 0
    opcodes = at_rows(code.opcodes, rows)
    first = next((row for row, opcode in enumerate(opcodes) if opcode.startswith(_BARRIER)), 0)
    for opcode in (*opcodes[first + 1 :], *opcodes[: first + 1]):
        if opcode.startswith(_BARRIER):
            barriers, stages, filled = barriers + 1, stages + filled, False
        else:
            filled = filled or opcode.partition(".")[0] in _SHARED_STORES
    return barriers / max(1, stages)


_STALL, _WAITS = 0xF, 0x3F << 11
"""The bits of a control word, on sm_75 to sm_120, for the stall count and the barriers that are waited for."""


def stall_cycles(code: KernelCode, rows: Sequence[int] | range) -> int | None:
    """Return the sum of the stall counts: useful for differences, not as a time."""
    return sum(map(_STALL.__and__, at_rows(code.controls, rows))) if code.controls else None


def usual_stall(code: KernelCode, family: str, rows: Sequence[int] | range) -> int | None:
    """Return the most frequent stall count of an opcode, the smallest in a tie."""
    shown = at_rows(code.opcodes, rows)
    names = frozenset(opcode for opcode in set(shown) if opcode.partition(".")[0] == family)
    if not names or not code.controls:
        return None
    counts = Counter(bits & _STALL for bits, opcode in zip(at_rows(code.controls, rows), shown) if opcode in names)
    return min(counts, key=lambda stall: (-counts[stall], stall))


def barrier_waits(code: KernelCode, rows: Sequence[int] | range) -> int | None:
    """Count instructions that wait for at least one scoreboard barrier."""
    return sum(1 for bits in at_rows(code.controls, rows) if bits & _WAITS) if code.controls else None


def counted(code: KernelCode, whole: Mix, rows: range) -> Iterator[tuple[str, int | None]]:
    """Yield the counted instructions, with the usual stall in these rows or else in the kernel."""
    for name in COUNTED:
        if whole.counts.get(name):
            root = name.partition(".")[0]
            here = usual_stall(code, root, rows)
            yield name, here if here is not None else usual_stall(code, root, range(len(code)))


_FREQUENT = 4
"""The most opcodes without a row of their own that are named."""


def others(whole: Mix, loop: Mix | None) -> Iterator[tuple[str, int, int | None, str, str]]:
    """Yield opcodes without a row of their own, so that the column adds up: addresses, conversions, branches."""
    rest = {name: _outside_of_rows(whole, name) for name in whole.counts}
    total = sum(rest.values())
    if total:
        ranked = sorted((n for n in rest if rest[n]), key=lambda n: (-rest[n], n))[:_FREQUENT]
        most = ", ".join(f"{rest[name]:,} {name}" for name in ranked)
        yield "others", total, sum(_outside_of_rows(loop, name) for name in loop.counts) if loop else None, "", most


def _outside_of_rows(mix: Mix, name: str) -> int:
    """Count an opcode's instructions outside of the table's rows; for ``BAR``, all but ``BAR.SYNC``."""
    if name in COUNTED or name == TENSOR_TOTAL:
        return 0
    return mix.counts[name] - sum(mix.counts.get(n, 0) for n in COUNTED if n.startswith(f"{name}."))
