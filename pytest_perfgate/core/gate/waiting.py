"""What is slower than chance explains, but was not shown to be the code's doing: it convicts nobody."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_perfgate.core.gate.witness import computes, is_host
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.core.render.quantity import sight, signed
from pytest_perfgate.core.stats.interval import median
from pytest_perfgate.model.samples import Samples

LEAST = 3
"""Fresh processes, below which nobody knows how far two of them are apart."""
UNKNOWN = 1.0
"""Neighbours, where the system does not tell how many there were."""
MOST = 2.0
"""Neighbours that one call can feel: half a core's other thread, and the memory that all share."""
FEW = 0.05
"""Processors in use by others, up to which they are not worth a word."""


def excused(processes: Sequence[Samples], time: float, reach: float) -> str:
    """What keeps a sitting that is slower than ``reach`` from a conviction; empty where nothing does.

    Times of a device, or measured elsewhere, know no neighbours. On the host, what a call queued for a processor is
    not its own, and what is left may be slower by as much as its neighbours took of what they share.
    """
    if not all(is_host(one) and one.durations for one in processes):
        return ""
    if len(processes) < LEAST:
        count = plural(len(processes), "process", "processes")
        return f"{count} cannot tell how far processes are apart: it takes {LEAST}"
    own = [_own(one) for one in processes]
    known = [number for number in own if number is not None]
    if len(known) < len(own):
        return "nobody can tell how long the calls waited for a processor; a quieter machine would"
    shift = median(sorted(known)) / time - 1
    neighbours = min(max(UNKNOWN if one.others is None else one.others for one in processes), MOST)
    shared = (1 + reach) * (1 + (neighbours if neighbours > FEW else 0.0)) - 1
    if shift > shared:
        return ""
    left = f"without waiting for a processor it is {signed(shift) if shift > 0 else 'no slower'}"
    if shift <= reach:
        return f"{left}: the machine was busy"
    return f"with {neighbours:.1f} processors in use by others up to {sight(shared)}, and {left}"


def _own(samples: Samples) -> float | None:
    """A call's time without queueing: never more than its usual time."""
    if samples.unqueued is not None:
        return min(samples.unqueued, median(sorted(samples.durations)))
    return median(sorted(samples.cpu)) if computes([samples]) else None
