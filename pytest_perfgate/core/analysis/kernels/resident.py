"""Warps at once on one multiprocessor: what resources allow, what so few blocks can fill, what was active."""

from __future__ import annotations

import math
from collections.abc import Mapping

from pytest_perfgate.core.analysis.occupancy import ENOUGH_WARPS, WARP, Occupancy
from pytest_perfgate.model.device import SmLimits

_ROUNDED = 0.05
"""How far reports round ``waves``; a block more or less follows from it."""


def resident(held: Occupancy, numbers: Mapping[str, float]) -> int:
    """Warps that can be there: those of the blocks that a multiprocessor holds, or that there are for it."""
    waves = numbers.get("waves", math.inf)
    if waves >= 1:
        return held.warps
    blocks = max(1, math.ceil(waves * held.blocks - _ROUNDED))
    return min(held.warps, blocks * -(-held.threads // WARP))


def theoretical_warps(held: Occupancy, sm: SmLimits, numbers: Mapping[str, float]) -> str:
    """The sentence on latency: called sufficient only where neither the grid nor what was active says otherwise."""
    return f"Theoretical warps/SM: {held.warps} of {sm.warps} ({_judged(held, sm, numbers)})"


def _judged(held: Occupancy, sm: SmLimits, numbers: Mapping[str, float]) -> str:
    achieved, waves = numbers.get("occupancy"), numbers.get("waves")
    active = achieved * sm.warps if achieved is not None else None
    if not held.enough:
        return f"insufficient: fewer than {ENOUGH_WARPS} to hide latency"
    if active is not None and active < ENOUGH_WARPS:
        return f"{active:.1f} were active: fewer than {ENOUGH_WARPS} to hide latency"
    if active is None and waves is not None and waves < 1:
        few = f", fewer than {ENOUGH_WARPS} to hide latency" if resident(held, numbers) < ENOUGH_WARPS else ""
        return f"{waves:.2g} waves of blocks: at most {resident(held, numbers)} are there{few}"
    return "sufficient to hide latency"
