"""What holds a window of a trace back: what the host did beside the device, and the class that follows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pytest_perfgate.core.analysis import intervals
from pytest_perfgate.core.analysis.classify import Bottleneck, Classification, Signals, classify
from pytest_perfgate.core.analysis.decisions import recommendations
from pytest_perfgate.core.analysis.kinds import BLOCKS, Kind
from pytest_perfgate.core.analysis.roofline import place
from pytest_perfgate.core.analysis.trace.operators import OperatorRow
from pytest_perfgate.core.analysis.trace.survey import Survey, timelines
from pytest_perfgate.core.render.words import quantity
from pytest_perfgate.model.device import Roof
from pytest_perfgate.model.metric import Finding, Labels, Metric, Severity
from pytest_perfgate.model.profiles import Category
from pytest_perfgate.model.values import Dimension, value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

_LAUNCHES = re.compile(r"launch", re.IGNORECASE)
_MODELLED = 0.5
"""The part of the operators' time whose work must be known before the roofs of a window are."""


@value
class HostCalls:
    """What the host did in a window, in nanoseconds, by union over its threads."""

    launch: int
    sync: int
    """How long the device was idle behind a blocking synchronisation."""


def host_calls(seen: Survey) -> HostCalls | None:
    """Launches and blocking synchronisations of a window; ``None`` where the trace has no call of the runtime."""
    trace = seen.trace
    runtime = np.flatnonzero(trace.category == Category.RUNTIME)
    if not len(runtime) or seen.on_host or not len(seen.rows):
        return None
    low, high = _edges(seen)
    launches = runtime[_named(seen, runtime, _LAUNCHES)]
    start, end = np.clip(trace.start[launches], low, high), np.clip(trace.end[launches], low, high)
    return HostCalls(launch=intervals.covered(start, end), sync=_idle_behind(seen, runtime, (low, high)))


def _edges(seen: Survey) -> tuple[int, int]:
    if seen.window is not None:
        return seen.window.pair
    return int(seen.start.min()), int(seen.end.max())


def _named(seen: Survey, rows: Ints, pattern: re.Pattern[str]) -> NDArray[np.bool_]:
    fitting = np.array([bool(pattern.search(name)) for name in seen.trace.names], dtype=bool)
    found: NDArray[np.bool_] = fitting[seen.trace.name[rows]]
    return found


def _idle_behind(seen: Survey, runtime: Ints, edges: tuple[int, int]) -> int:
    waits = runtime[_named(seen, runtime, BLOCKS)]
    busy = intervals.union(seen.start, seen.end)
    return intervals.idle_behind(busy, (seen.trace.start[waits], seen.trace.end[waits]), edges)


def window_signals(seen: Survey, rows: Sequence[OperatorRow] = (), roof: Roof | None = None) -> Signals | None:
    """What a window of one device says of its class; ``None`` where nothing ran on a device."""
    found = timelines(seen)
    if seen.on_host or len(found) != 1:
        return None
    (line,) = found.values()
    calls, total = host_calls(seen), max(line.total, 1)
    compute, memory = _roofs(rows, roof)
    return Signals(
        exposed=line.share(line.exposed_comm),
        idle=line.share(line.idle),
        launch_share=calls.launch / total if calls else None,
        sync=calls.sync / total if calls else None,
        kernel_ns=_train(seen),
        compute=compute,
        memory=memory,
    )


def _train(seen: Survey) -> float | None:
    kernels = np.flatnonzero(seen.kinds == Kind.COMPUTE)
    low, high = _edges(seen)
    return intervals.train(seen.start[kernels], seen.end[kernels], seen.settings.micro_ns, high - low)


def _roofs(rows: Sequence[OperatorRow], roof: Roof | None) -> tuple[float | None, float | None]:
    """How near the operators came to both roofs, by time; none where too little of their work is known."""
    everything = sum(row.total for row in rows)
    known = [row for row in rows if row.work is not None and row.total > 0]
    if roof is None or not everything or sum(row.total for row in known) < _MODELLED * everything:
        return None, None
    reached, spent = {"compute": 0.0, "memory": 0.0}, {"compute": 0.0, "memory": 0.0}
    for row in known:
        if row.work is None:
            continue
        placed = place(row.work, row.total / row.count, roof)
        for side in reached:
            fraction = getattr(placed, side)
            if fraction is not None:
                reached[side] += fraction * row.total
                spent[side] += row.total
    compute, memory = (reached[side] / spent[side] if spent[side] else None for side in ("compute", "memory"))
    return compute, memory


def window_class(seen: Survey, rows: Sequence[OperatorRow] = (), roof: Roof | None = None) -> Classification | None:
    """The class of a window, with the numbers that it rests on."""
    signals = window_signals(seen, rows, roof)
    return classify(signals) if signals is not None else None


def window_findings(found: Classification | None) -> Iterator[Finding]:
    """The class as a sentence, and the advice that it triggers."""
    if found is None or found.bottleneck is Bottleneck.NOT_COLLECTED:
        return
    held = found.bottleneck in (Bottleneck.LAUNCH, Bottleneck.COMMUNICATION, Bottleneck.SYNCHRONISATION)
    yield Finding(
        title=f"The window is {found.short}",
        detail=f"{', '.join(found.evidence)}.",
        trigger=f"class={found.bottleneck.value}",
        severity=Severity.WARNING if held else Severity.NOTE,
    )
    if held:
        yield from recommendations({"class": found.bottleneck.value})


HALF = 0.5
"""The part of a trace under which its steps say little of it."""


def step_metrics_of_all(whole: Survey, steps: Sequence[Survey], scopes: Sequence[Labels]) -> Iterator[Metric]:
    """``window_coverage`` and ``step_to_step``: the part of a trace that its steps cover, how far apart they are."""
    windows = [part.window for part in steps if part.window is not None and part.window.step]
    if not windows or not len(whole.rows):
        return
    start, end = (np.array([getattr(one, side) for one in windows], np.int64) for side in ("start", "end"))
    low, high = min(int(whole.start.min()), int(start.min())), max(int(whole.end.max()), int(end.max()))
    for scope in scopes:
        covered = intervals.covered(start, end) / max(high - low, 1)
        yield _figure("window_coverage", covered, Dimension.FRACTION, scope)
        if len(windows) > 1:
            yield _figure("step_to_step", float(np.median(np.diff(np.sort(start)))), Dimension.TIME, scope)


def coverage_findings(whole: Survey, steps: Sequence[Survey]) -> Iterator[Finding]:
    """Steps that leave most of a trace out: what happens between them is in no figure of a step."""
    found = {metric.name: metric.value for metric in step_metrics_of_all(whole, steps, ((),))}
    covered = found.get("window_coverage", 1.0)
    if covered >= HALF:
        return
    lengths = [part.window.end - part.window.start for part in steps if part.window is not None]
    apart = quantity(found.get("step_to_step", 0.0), Dimension.TIME)
    yield Finding(
        title=f"The steps cover {covered:.0%} of the trace",
        detail=f"What happens between them, idle time above all, is in no figure of a step. A step is "
        f"{quantity(float(np.median(lengths)), Dimension.TIME)} long, and the next one starts {apart} after it.",
        trigger=f"window_coverage={covered:.3f}",
        advice="look at the whole trace too, or limit step_to_step and window_coverage",
        severity=Severity.WARNING,
    )


def _figure(name: str, number: float, dimension: Dimension, where: Labels) -> Metric:
    return Metric(name=name, value=float(number), dimension=dimension, labels=where, source="trace")


def host_metrics(parts: Sequence[tuple[Survey, Labels]]) -> Iterator[Metric]:
    """``sync_time``, ``sync_share`` and ``launch_share`` of windows, each under its labels."""
    for seen, where in parts:
        calls, found = host_calls(seen), timelines(seen)
        total = max((line.total for line in found.values()), default=0)
        if calls is None or not total:
            continue
        for name, number, dimension in (
            ("sync_time", calls.sync, Dimension.TIME),
            ("sync_share", calls.sync / total, Dimension.FRACTION),
            ("launch_share", calls.launch / total, Dimension.FRACTION),
        ):
            yield _figure(name, float(number), dimension, where)
