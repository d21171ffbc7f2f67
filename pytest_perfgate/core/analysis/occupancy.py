"""Occupancy, its cliffs, and limits of architectures."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_perfgate.model.device import SmLimits
from pytest_perfgate.model.values import value

WARP = 32

ENOUGH_WARPS = 8
"""The least active warps a multiprocessor that hide latency."""

MOST_REGISTERS = 255
"""The most registers of a thread, on every architecture so far."""

MOST_THREADS = 1024
"""The most threads of a block, on every architecture so far."""


@value
class Occupancy:
    """Blocks and warps at once on one multiprocessor, with the limit of each resource."""

    blocks: int
    warps: int
    fraction: float
    limits: tuple[tuple[str, int], ...]
    """(resource, blocks it would allow by itself)."""
    limiting: tuple[str, ...]
    threads: int
    shared: int
    """Bytes a block as allocated: rounded up, with the driver's reserve."""
    registers: int
    """Registers a warp as allocated."""
    why_none: str = ""
    """Why such a block cannot start at all."""

    @property
    def enough(self) -> bool:
        return self.warps >= ENOUGH_WARPS

    @property
    def note(self) -> str:
        """Return what limits the number of blocks, or why none starts."""
        return self.why_none or f"limited by {', '.join(self.limiting)}"


UNLINKED = "the linker settles it, and this object is not linked yet"
"""Why the shared memory and the stack of relocatable code are unknown."""


def occupancy(
    sm: SmLimits,
    *,
    threads: int,
    registers: int,
    shared: int,
    configured: int | None = None,
    most: int | None = None,
) -> Occupancy:
    """Return the exact occupancy; ``configured`` is the shared memory carved out, ``most`` the compiled threads."""
    warps = -(-threads // WARP)
    per_warp = rounded_up(registers * WARP, sm.register_unit)
    allocated = shared_allocated(sm, shared)
    limits = (
        ("registers", _by_registers(sm, per_warp, warps)),
        ("shared memory", _by_shared(sm, allocated, configured)),
        ("warps", sm.warps // warps if warps else 0),
        ("blocks", sm.blocks),
    )
    why = _impossible(sm, threads, registers, shared)
    if not why and most and threads > most:
        why = f"a block of {threads} threads cannot start: compiled for {most} threads at the most (__launch_bounds__)"
    blocks = 0 if why else min(limit for _, limit in limits)
    return Occupancy(
        blocks=blocks,
        warps=blocks * warps,
        fraction=blocks * warps / sm.warps,
        limits=limits,
        limiting=("the block itself",)
        if why
        else tuple(n for n, limit in limits if limit == min(dict(limits).values())),
        threads=threads,
        shared=allocated,
        registers=per_warp,
        why_none=why or ("" if blocks else "not even one block fits"),
    )


def shared_allocated(sm: SmLimits, shared: int) -> int:
    """Return the bytes that a block takes of the multiprocessor's shared memory."""
    return rounded_up(shared, sm.smem_unit) + sm.smem_reserved


def rounded_up(amount: int, unit: int) -> int:
    return -(-amount // unit) * unit if unit else amount


def _by_registers(sm: SmLimits, per_warp: int, warps: int) -> int:
    if not per_warp or not warps:
        return sm.blocks
    fitting = sm.registers // per_warp
    fitting -= fitting % (sm.warp_granularity or 1)
    return fitting // warps


def _by_shared(sm: SmLimits, allocated: int, configured: int | None) -> int:
    """Return the blocks that shared memory allows; without any use of it, only their number limits them."""
    return min((configured or sm.smem_bytes) // allocated, sm.blocks) if allocated else sm.blocks


def _impossible(sm: SmLimits, threads: int, registers: int, shared: int) -> str:
    if not 0 < threads <= MOST_THREADS:
        return f"a block of {threads} threads cannot start: 1 to {MOST_THREADS} can"
    if registers > MOST_REGISTERS:
        return f"a thread cannot have {registers} registers: {MOST_REGISTERS} at the most"
    if shared > sm.smem_block_bytes:
        most = f"{sm.smem_block_bytes / 1024:.4g} KiB at the most"
        return f"a block cannot have {shared / 1024:.4g} KiB of shared memory: {most}"
    return ""


@value
class Cliff:
    """The position of a block before the drop from two blocks a multiprocessor to one."""

    edge: int
    """The largest block of which two fit."""
    shared: int
    """The shared memory that the block requests."""
    crossed: bool
    moot: str
    """The resource that allows only one block whatever the shared memory; "" if none does."""
    next_edge: int
    """The largest block of which as many fit as now."""
    blocks: int
    doubled_blocks: int
    """Blocks with twice the shared memory: double buffering."""
    alone: int = 0
    """Blocks that fit by shared memory alone, at its largest configuration."""

    @property
    def doubling_crosses(self) -> bool:
        return not self.crossed and not self.moot and self.doubled_blocks < 2 <= self.blocks


def edge(sm: SmLimits, blocks: int = 2) -> int:
    """Return the largest shared memory a block with which so many fit by shared memory alone."""
    size = sm.smem_bytes // blocks - sm.smem_reserved
    return max(0, min(size - size % (sm.smem_unit or 1), sm.smem_block_bytes))


def cliff(sm: SmLimits, *, threads: int, registers: int, shared: int) -> Cliff:
    """Return the distance to the next drop, and whether double buffering would cross it."""

    def at(size: int) -> Occupancy:
        return occupancy(sm, threads=threads, registers=registers, shared=size)

    here = at(shared)
    blocks = dict(here.limits)["shared memory"]
    other = next((name for name, limit in here.limits if name != "shared memory" and limit <= 1), "")
    return Cliff(
        edge=edge(sm),
        shared=shared,
        crossed=shared > edge(sm),
        moot=other,
        next_edge=edge(sm, max(1, blocks)),
        blocks=here.blocks,
        doubled_blocks=at(2 * shared).blocks,
        alone=blocks,
    )


def register_edge(sm: SmLimits, *, threads: int, registers: int, shared: int) -> int | None:
    """Return the most registers a thread with as many blocks as now; ``None`` if more never cost a block."""
    now = occupancy(sm, threads=threads, registers=registers, shared=shared).blocks
    fitting = (
        n
        for n in range(registers, MOST_REGISTERS)
        if occupancy(sm, threads=threads, registers=n + 1, shared=shared).blocks < now
    )
    return next(fitting, None)


_FEWEST = 24
"""The least useful cap on registers."""


def register_cap(sm: SmLimits, *, threads: int, registers: int, shared: int) -> int | None:
    """Return the most registers a thread with which one more block fits; ``None`` if no cap allows one."""
    now = occupancy(sm, threads=threads, registers=registers, shared=shared).blocks
    fitting = (
        n
        for n in range(registers - 1, _FEWEST - 1, -1)
        if occupancy(sm, threads=threads, registers=n, shared=shared).blocks > now
    )
    return next(fitting, None)


_KIB = 1024

_REGISTERS, _REGISTER_UNIT = 65536, 256

_DRIVERS_OWN = 1024
"""The driver's bytes of each block from sm_80 on, where the allocation unit is smaller too."""


def _before_80(shared: int, of_a_block: int, warps: int, blocks: int) -> SmLimits:
    return SmLimits(
        smem_bytes=shared * _KIB,
        smem_block_bytes=of_a_block * _KIB,
        registers=_REGISTERS,
        warps=warps,
        blocks=blocks,
        register_unit=_REGISTER_UNIT,
        warp_granularity=4,
        smem_unit=256,
        smem_reserved=0,
    )


def _from_80(shared: int, warps: int, blocks: int) -> SmLimits:
    return SmLimits(
        smem_bytes=shared * _KIB,
        smem_block_bytes=shared * _KIB - _DRIVERS_OWN,
        registers=_REGISTERS,
        warps=warps,
        blocks=blocks,
        register_unit=_REGISTER_UNIT,
        warp_granularity=4,
        smem_unit=128,
        smem_reserved=_DRIVERS_OWN,
    )


_AMPERE, _ADA, _BLACKWELL = _from_80(100, 48, 16), _from_80(100, 48, 24), _from_80(228, 64, 32)

_THOR = _from_80(228, 48, 24)

LIMITS: Mapping[str, SmLimits] = {
    "sm_50": _before_80(64, 48, 64, 32),
    "sm_52": _before_80(96, 48, 64, 32),
    "sm_61": _before_80(96, 48, 64, 32),
    "sm_70": _before_80(96, 96, 64, 32),
    "sm_72": _before_80(96, 96, 64, 32),
    "sm_75": _before_80(64, 64, 32, 16),
    "sm_80": _from_80(164, 64, 32),
    "sm_86": _AMPERE,
    "sm_87": _from_80(164, 48, 16),
    "sm_88": _AMPERE,
    "sm_89": _ADA,
    "sm_90": _from_80(228, 64, 32),
    "sm_100": _BLACKWELL,
    "sm_101": _THOR,
    "sm_103": _BLACKWELL,
    "sm_110": _THOR,
    "sm_120": _ADA,
    "sm_121": _ADA,
}
"""``sm_101`` is CUDA 12's name of ``sm_110``."""
