"""What a pair of events reads beside the work between them: not what an empty pair reads, and taken off each sample.

Before CUPTI is on in a process an empty pair reads 1.3 us, afterwards 13 us, while a copy of 256 MB reads 180.9 us both
times (H100). So the offset is that of a full pair: one, two, four and eight writes of twice the last cache, which
neither the power limit nor the cache can make faster or slower, lie on a line, and its intercept is the offset. Only
the offset is taken from it: the time of a call is never a slope, since more calls in a row warm the cache and heat.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, median
from weakref import WeakKeyDictionary

from pytest_perfgate.adapters.timers.bench import Bench
from pytest_perfgate.adapters.timers.event_pairs import RESOLUTION_NS, Empty, allocate, empty_pair, queued
from pytest_perfgate.model.capabilities import SupportsRelease
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Plan
from pytest_perfgate.model.ports import QueueRuntime

COUNTS = (1, 2, 4, 8)
"""Writes in one pair."""

ROUNDS = 8
"""Pairs of each length, in turns."""

MOST_NS = 20_000.0
"""No pair of events costs more; what seems to is a device that did something else meanwhile."""

DOUBTFUL = 0.01
"""A line that scatters by more than this part of one write says nothing of a microsecond."""

_known: WeakKeyDictionary[QueueRuntime, dict[str, Empty]] = WeakKeyDictionary()


def calibrated(bench: Bench) -> Empty:
    """The pair's offset on this device, found once in a process; where it cannot be, what an empty pair reads."""
    runtime = bench.runtime
    device = runtime.device()
    known = _known.setdefault(runtime, {})
    name = device.uuid or device.key
    if name not in known:
        known[name] = _measured(bench) if device.kind == "gpu" else empty_pair(runtime)
    return known[name]


def net(durations: Sequence[float], empty: Empty, calls: int = 1) -> tuple[float, ...]:
    """Times per call without their part of the offset."""
    return tuple(duration - empty.taken_off / calls for duration in durations)


def offset_note(empty: Empty) -> tuple[tuple[str, str], ...]:
    """What was taken off each pair, for the record."""
    if not empty.taken_off:
        return (("offset", f"none taken off; an empty pair reads {empty.overhead:.0f} ns"),)
    said = f"{empty.taken_off:.0f} ns taken off each pair, known to {empty.resolution:.0f} ns"
    return (("offset", f"{said}: 1, 2, 4 and 8 writes of twice the last cache lie on a line"),)


def _measured(bench: Bench) -> Empty:
    empty, runtime = empty_pair(bench.runtime), bench.runtime
    writes = Bench(call=runtime.flush, plan=Plan(), runtime=runtime, rules=bench.rules)
    try:
        writes.once()
        points = [(count, _reading(writes, count)) for _ in range(ROUNDS) for count in COUNTS]
    except PerfgateError as error:
        if error.code.name != "cache-size-unknown":
            raise
        return empty
    finally:
        if isinstance(runtime, SupportsRelease):
            runtime.release()
    offset, slope, doubt = fitted([(count, median(r for c, r in points if c == count)) for count in COUNTS])
    if not 0 <= offset <= MOST_NS or doubt > DOUBTFUL * slope:
        return empty
    return Empty(overhead=offset, resolution=max(RESOLUTION_NS, 2 * doubt), taken_off=offset)


def _reading(writes: Bench, count: int) -> float:
    """What a pair around so many writes reads, in a queue kept full."""
    durations, _ = queued(writes, allocate(writes.runtime, 3), count)
    return median(durations) * count


def fitted(points: Sequence[tuple[int, float]]) -> tuple[float, float, float]:
    """Intercept and slope of a line by least squares, and the intercept's standard error."""
    middle = fmean(count for count, _ in points)
    height = fmean(reading for _, reading in points)
    spread = sum((count - middle) ** 2 for count, _ in points)
    slope = sum((count - middle) * (reading - height) for count, reading in points) / spread
    offset = height - slope * middle
    left = sum((reading - offset - slope * count) ** 2 for count, reading in points)
    error = sqrt(left / (len(points) - 2) * (1 / len(points) + middle**2 / spread))
    return offset, slope, error
