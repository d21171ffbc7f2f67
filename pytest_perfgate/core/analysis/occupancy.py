"""Occupancy: how many blocks a multiprocessor holds, and what stops it from holding more."""

from __future__ import annotations

from pytest_perfgate.model.device import SmLimits
from pytest_perfgate.model.values import value

WARP = 32
ENOUGH_WARPS = 8
"""Fewer active warps a multiprocessor do not hide latency."""
MOST_THREADS = 1024
"""Of one block, on every architecture so far."""


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
    """Bytes a block as allocated: rounded up, with what the driver keeps."""
    registers: int
    """Registers a warp as allocated."""
    why_none: str = ""
    """Why such a block cannot start at all."""

    @property
    def enough(self) -> bool:
        return self.warps >= ENOUGH_WARPS


def occupancy(sm: SmLimits, *, threads: int, registers: int, shared: int, configured: int | None = None) -> Occupancy:
    """The exact figure; ``configured`` is the shared memory carved out, where a report says it."""
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
    blocks = 0 if why else min(limit for _, limit in limits)
    return Occupancy(
        blocks=blocks,
        warps=blocks * warps,
        fraction=blocks * warps / sm.warps,
        limits=limits,
        limiting=tuple(name for name, limit in limits if limit == min(n for _, n in limits)),
        threads=threads,
        shared=allocated,
        registers=per_warp,
        why_none=why or ("" if blocks else "not even one block fits"),
    )


def shared_allocated(sm: SmLimits, shared: int) -> int:
    """Bytes that a block takes of the multiprocessor's shared memory."""
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
    """A block that takes none is held back by the number of blocks alone."""
    return min((configured or sm.smem_bytes) // allocated, sm.blocks) if allocated else sm.blocks


def _impossible(sm: SmLimits, threads: int, registers: int, shared: int) -> str:
    if not 0 < threads <= MOST_THREADS:
        return f"a block of {threads} threads cannot start: 1 to {MOST_THREADS} can"
    if registers > 255:
        return f"{registers} registers a thread cannot be had: 255 can"
    if shared > sm.smem_block_bytes:
        return f"{shared} bytes of shared memory a block cannot be had: {sm.smem_block_bytes} can"
    return ""
