"""The shared-memory cliff: the size of a block above which a multiprocessor holds one block, and no longer two."""

from __future__ import annotations

from pytest_perfgate.core.analysis.occupancy import Occupancy, occupancy
from pytest_perfgate.model.device import SmLimits
from pytest_perfgate.model.values import value


@value
class Cliff:
    """Where a block stands before the drop from two blocks a multiprocessor to one."""

    edge: int
    """The largest block of which two fit."""
    shared: int
    """What the block asks for."""
    crossed: bool
    moot: str
    """The resource that allows one block only whatever the shared memory; empty when none does."""
    next_edge: int
    """The largest block of which as many fit as now."""
    distance: int
    """Bytes from here to that edge."""
    blocks: int
    doubled_blocks: int
    """Blocks with twice the shared memory: double buffering."""
    alone: int = 0
    """Blocks that fit by shared memory alone, with as much of it as can be configured."""

    @property
    def doubling_crosses(self) -> bool:
        return not self.crossed and not self.moot and self.doubled_blocks < 2 <= self.blocks


def edge(sm: SmLimits, blocks: int = 2) -> int:
    """The largest shared memory a block with which so many fit by shared memory alone."""
    size = sm.smem_bytes // blocks - sm.smem_reserved
    return max(0, min(size - size % (sm.smem_unit or 1), sm.smem_block_bytes))


def cliff(sm: SmLimits, *, threads: int, registers: int, shared: int) -> Cliff:
    """Distance to the next drop, and whether double buffering would fall."""

    def at(size: int) -> Occupancy:
        return occupancy(sm, threads=threads, registers=registers, shared=size)

    here = at(shared)
    blocks = dict(here.limits)["shared memory"]
    following = edge(sm, max(1, min(blocks, sm.blocks)))
    other = next((name for name, limit in here.limits if name != "shared memory" and limit <= 1), "")
    return Cliff(
        edge=edge(sm),
        shared=shared,
        crossed=shared > edge(sm),
        moot=other,
        next_edge=following,
        distance=following - shared,
        blocks=here.blocks,
        doubled_blocks=at(2 * shared).blocks,
        alone=blocks,
    )
