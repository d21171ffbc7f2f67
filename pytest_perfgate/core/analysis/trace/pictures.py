"""Pictures of a trace: streams, steps, roofline, call tree, kernels, and differences of two traces."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Protocol

import numpy as np

from pytest_perfgate.core.analysis import intervals
from pytest_perfgate.core.analysis.roofline import BEYOND
from pytest_perfgate.core.analysis.trace.operators import OperatorRow, short_name
from pytest_perfgate.core.analysis.trace.rates import utilisation
from pytest_perfgate.core.analysis.trace.survey import step_lines, timelines
from pytest_perfgate.core.render.charts import (
    TIME_KEY,
    Row,
    lengths_picture,
    merged,
    mfu_of_steps,
    overlap_bars,
    overlap_row,
    stacked,
)
from pytest_perfgate.core.render.lanes import LANE_KEY, Group, Lane, Node, icicle, timeline
from pytest_perfgate.core.render.rooflines import Ceiling, Point, roofline
from pytest_perfgate.core.render.words import plural, quantity
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.profiles import Category, Kind
from pytest_perfgate.model.values import Dimension

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pytest_perfgate.core.analysis.intervals import Spans
    from pytest_perfgate.core.analysis.trace.job import TraceJob
    from pytest_perfgate.core.analysis.trace.survey import Survey
    from pytest_perfgate.core.analysis.trace.timeline import Timeline
    from pytest_perfgate.model.device import Roof
    from pytest_perfgate.model.metric import Picture

    Ints = NDArray[np.int64]

RANKS = 8
"""The most ranks whose streams are drawn."""

_STREAMS, _POINTS = 10, 12

_DEPTH = 100
"""The most levels of a call tree that are drawn."""


class InspectedTrace(Protocol):
    """A trace in the form that an inspector provides."""

    @property
    def survey(self) -> Survey: ...
    @property
    def stretches(self) -> tuple[Survey, ...]: ...
    @property
    def rows(self) -> tuple[OperatorRow, ...]: ...
    @property
    def line(self) -> Timeline | None: ...
    @property
    def roof(self) -> Roof | None: ...


def of_trace(name: str, view: InspectedTrace) -> Picture:
    draw: dict[str, Callable[[], Picture]] = {
        "steps": lambda: _steps_picture(view),
        "timeline": lambda: streams_picture([("", view.survey)]),
        "mfu": lambda: utilisation_picture(view.survey, view.rows, view.stretches, view.roof),
        "overlap": lambda: overlap_picture(view.survey),
        "roofline": lambda: operators_picture(view.rows, view.roof),
        "tree": lambda: tree_picture(view.survey),
        "kernels": lambda: kernels_picture(view.survey),
    }
    return draw[name]()


def of_job(name: str, job: TraceJob, traces: Iterator[InspectedTrace]) -> Picture:
    """Draw one picture of several ranks; operators and kernels are those of the first."""
    if name == "timeline":
        some = zip(job.measured.ranks, islice(traces, RANKS))
        return streams_picture([(f"rank {rank.rank}", one.survey) for rank, one in some], len(job.ranks))
    if name != "ranks":
        return of_trace(name, next(traces))
    lines = [
        (f"rank {one.rank}" + (f", device {device}" if len(one.lines) > 1 else ""), line)
        for one in job.ranks
        for device, line in one.lines
    ]
    return times_picture(lines, "rank")


def of_pair(name: str, before: InspectedTrace, after: InspectedTrace) -> Picture:
    """Draw one picture of two traces."""
    if name == "roofline":
        return operators_picture(after.rows, after.roof, before.rows, before.roof)
    if name == "tree":
        return tree_picture(after.survey, before.survey)
    sides = (("reference", before), ("target", after))
    return times_picture([(side, view.line) for side, view in sides if view.line], "side")


def _steps_picture(view: InspectedTrace) -> Picture:
    """Draw how each step was spent, or without steps each device."""
    stepped, host = [*step_lines(view.stretches)], view.survey.on_host
    if len(stepped) > 1:
        return times_picture(stepped, "step", on_host=host)
    devices = [("host" if host else f"device {n}", line) for n, line in timelines(view.survey).items()]
    return times_picture(devices, "device", on_host=host)


def nothing_to_draw(why: str, fix: str = "") -> PerfgateError:
    """Return why a picture cannot be drawn of this file."""
    return PerfgateError("picture-none", why, fix=fix)


def times_picture(lines: Sequence[tuple[str, Timeline]], of: str, *, on_host: bool = False) -> Picture:
    """Draw how the time of each step, rank or device was spent."""
    if not lines:
        raise nothing_to_draw("the trace has no GPU activity", "profile with the activity CUDA")
    rows = [
        Row(
            label=name.replace("ProfilerStep#", "step "),
            amounts=(line.computation, line.exposed_comm, line.exposed_memcpy + line.exposed_memset, line.idle),
            text=quantity(line.total, Dimension.TIME, 3),
        )
        for name, line in lines
    ]
    shown, size = merged(rows)
    note = f"each bar is the mean of {size} {of}s" if size > 1 else ""
    busy = sum(line.busy for _, line in lines) / (sum(line.total for _, line in lines) or 1)
    shares = [line.share(line.busy) for _, line in lines] if of == "side" else [busy]  # two programs have no mean
    subject = "operators run" if on_host else "the GPU works"
    alt = f"Time per {of}, {plural(len(lines), of)}: {subject} {' and '.join(f'{s * 100:.0f} %' for s in shares)} of it"
    key = (("compute", "operators run"), *TIME_KEY[1:]) if on_host else TIME_KEY
    return stacked("steps", alt, shown, key, _time, note)


def _time(number: float) -> str:
    return quantity(number, Dimension.TIME, 3) if number else "0"


def streams_picture(survey: Sequence[tuple[str, Survey]], of: int = 1) -> Picture:
    """Draw every stream as a lane; exposed time is marked across the lanes of its device."""
    groups = [group for title, one in survey[:RANKS] for group in _devices(title, one)]
    if not groups:
        raise nothing_to_draw("the trace has no GPU activity", "profile with the activity CUDA")
    exposed = sum(intervals.length(group.marked) for group in groups if group.marked)
    share = exposed / sum(group.length for group in groups)
    exposure = f"communication is exposed {share * 100:.1f} % of the time" if exposed else "no communication is exposed"
    ranks = f" of {of} ranks" if of > 1 else ""
    if of > RANKS:
        ranks = f" of {RANKS}{ranks}"
    if all(one.on_host for _, one in survey[:RANKS]):
        return timeline("timeline", f"When operators run on the host{ranks}", groups, (("compute", "operators run"),))
    return timeline("timeline", f"A lane per stream{ranks}; {exposure}", groups, LANE_KEY)


def _devices(title: str, survey: Survey) -> Iterator[Group]:
    several = len(np.unique(survey.device)) > 1
    for device in np.unique(survey.device).tolist():
        here = survey.device == device
        edges = (int(survey.start[here].min()), int(survey.end[here].max()))
        low, high = survey.window.pair if survey.window else edges
        compute = _union(survey, here & (survey.kinds == Kind.COMPUTE))
        exposed = intervals.without(_union(survey, here & (survey.kinds == Kind.COMMUNICATION)), compute)
        name = ", ".join(filter(None, (title, f"device {device}" if several else "")))
        size = quantity(high - low, Dimension.TIME, 3)
        lanes = tuple(_lanes(survey, here, exposed))
        streams = len(np.unique(survey.trace.place[survey.rows[here]]))
        size += f", {len(lanes)} of {streams} streams" if len(lanes) < streams and not survey.on_host else ""
        yield Group(title=f"{name}: {size}" if name else size, start=low, end=high, lanes=lanes, marked=exposed)


def _union(survey: Survey, chosen: NDArray[np.bool_]) -> Spans:
    return intervals.union(survey.start[chosen], survey.end[chosen])


def _lanes(survey: Survey, here: NDArray[np.bool_], exposed: Spans) -> Iterator[Lane]:
    """Yield the busiest streams, in the order of their numbers."""
    places = survey.trace.place[survey.rows]
    spent = np.bincount(places[here], weights=(survey.end - survey.start)[here])
    busiest = sorted(np.argsort(-spent, kind="stable")[:_STREAMS].tolist())
    for at in busiest:
        on = here & (places == at)
        if not on.any():
            continue
        kinds = survey.kinds[on]
        talk = _union(survey, on & (survey.kinds == Kind.COMMUNICATION))
        copies = on & ((survey.kinds == Kind.MEMCPY) | (survey.kinds == Kind.MEMSET))
        spans = (
            ("compute", _union(survey, on & (survey.kinds == Kind.COMPUTE))),
            ("copies", _union(survey, copies)),
            ("hidden", intervals.without(talk, exposed)),
            ("exposed", intervals.crossed(talk, exposed)),
        )
        whole = bool((kinds == Kind.COMMUNICATION).all())
        name = f"stream {survey.trace.queues[at].stream if survey.trace.queues else 'host'}"
        yield Lane(label="host" if survey.on_host else f"{name}{', communication' if whole else ''}", spans=spans)


def utilisation_picture(
    survey: Survey, rows: Sequence[OperatorRow], steps: Sequence[Survey], roof: Roof | None
) -> Picture:
    """Draw the MFU of every step."""
    if roof is None:
        raise nothing_to_draw("the peak of the device is not known", "give --device or --peak")
    rates = [m for m in utilisation(survey, rows, steps, roof, ((),)).metrics if m.name == "mfu_datasheet"]
    figures = [(dict(m.labels)["step"], m.value) for m in rates if "step" in dict(m.labels)]
    if len(figures) < 2:
        raise nothing_to_draw(f"the trace has {plural(len(figures), 'step')} with known work, and a line needs two")
    if max(figure for _, figure in figures) > BEYOND:
        raise nothing_to_draw("the MFU of a step is more than the hardware can do", "check --peak, or --device")
    mean = sum(figure for _, figure in figures) / len(figures)
    alt = f"MFU over {len(figures)} steps, idle time included: {mean * 100:.1f} % on average"
    return mfu_of_steps(alt, figures)


def operators_picture(
    rows: Sequence[OperatorRow], roof: Roof | None, before: Sequence[OperatorRow] = (), old: Roof | None = None
) -> Picture:
    """Draw operators under the roof; of two traces each with its earlier place."""
    if roof is None or not roof.bandwidth or not roof.compute:
        raise nothing_to_draw("no roof is known", "give --device, or --peak and --bandwidth")
    past = {(row.name, row.arguments): row for row in before}
    every = list(_operator_points(rows, roof, past, old or roof))
    points = every[:_POINTS]
    if not points:
        raise nothing_to_draw("no operator has known work", "profile with record_shapes=True")
    used = {row.work.dtype for row in rows if row.work and row.work.flops}
    named = tuple((dtype, rate) for dtype, rate in roof.compute if dtype in used) or roof.compute[:1]
    balance = max(rate for _, rate in named) / roof.bandwidth
    moved = sum(point.before is not None for point in points)
    part = f"the longest {len(points)} of " if len(points) < len(every) else ""
    alt = f"Roofline of {part}{plural(len(every), 'operator')}, balance at {balance:,.0f} operations per byte"
    alt += f"; lines lead from where {moved} were before" if moved else ""
    return roofline(alt, points, Ceiling(peaks=named, bandwidth=roof.bandwidth, note=f"roof: {roof.note}"))


def _operator_points(
    rows: Sequence[OperatorRow], roof: Roof, past: Mapping[tuple[str, str], OperatorRow], old: Roof
) -> Iterator[Point]:
    for row in rows:
        at = row.placement(roof)
        if at is None or not at.intensity or not at.flops_rate:
            continue
        then = past.get((row.name, row.arguments))
        was = then.placement(old) if then else None
        before = (was.intensity, was.flops_rate) if was and was.intensity and was.flops_rate else None
        reached = "more than the hardware can do" if at.impossible else _reached(at.fraction, at.bound)
        text = f"{quantity(row.total, Dimension.TIME, 3)}{reached and f', {reached}'}"
        label = f"{row.name} {row.call.shapes()}"
        yield Point(label=label, intensity=at.intensity, rate=at.flops_rate, text=text, bound=at.bound, before=before)


def _reached(fraction: float | None, bound: str) -> str:
    roof = f"{bound} roof" if bound in {"compute", "memory"} else "roof"
    return f"{fraction * 100:.0f} % of its {roof}" if fraction is not None else ""


def kernels_picture(survey: Survey) -> Picture:
    """Draw how many kernels are short, and their share of the time."""
    kernels = survey.trace.category[survey.rows] == Category.KERNEL
    lengths = (survey.end - survey.start)[kernels]
    if not (lengths > 0).any():
        raise nothing_to_draw("the trace has no kernels", "profile with the activity CUDA")
    return lengths_picture(lengths)


_OF_TREE = (Category.OPERATOR, Category.ANNOTATION, Category.PYTHON)

_MODULE = "nn.Module: "

_AROUND = re.compile(r"^nn\.Module: |^autograd::engine::evaluate_function: |(?<=^ProfilerStep)#\d+$")
"""Matches prefixes of a name, and a step's number, since all steps are one place of the tree."""


def tree_picture(survey: Survey, before: Survey | None = None) -> Picture:
    """Draw GPU time by launching calls, merged by name; of two traces, what became slower."""
    now = _calls(survey)
    if not now:
        raise nothing_to_draw("no GPU work is linked to what launched it", "profile with the activities CPU and CUDA")
    root = _node("all", now, _calls(before) if before else None)
    whole = quantity(root.amount, Dimension.TIME, 3)
    alt = f"{'Host time by what called it' if survey.on_host else 'GPU time by what launched it'}: {whole}"
    alt += f", before {quantity(root.before, Dimension.TIME, 3)}" if root.before is not None else ""
    return icicle(alt, root)


Paths = Mapping[tuple[str, ...], float]


def _node(name: str, now: Paths, then: Paths | None, depth: int = 0) -> Node:
    """Return the paths below one as a tree."""
    inner, past = _inner(now, depth), _inner(then or {}, depth)
    return Node(
        name=name,
        amount=sum(now.values()),
        before=None if then is None else sum(then.values()),
        children=tuple(
            _node(child, inner.get(child, {}), None if then is None else past.get(child, {}), depth + 1)
            for child in ({**inner, **past} if depth < _DEPTH else ())
        ),
    )


def _inner(paths: Paths, depth: int) -> dict[str, dict[tuple[str, ...], float]]:
    """Group paths by their name at a depth, without those that end there."""
    inner: dict[str, dict[tuple[str, ...], float]] = {}
    for path, time in paths.items():
        if len(path) > depth:
            inner.setdefault(path[depth], {})[path] = time
    return inner


def _calls(survey: Survey) -> Paths:
    """Return GPU time by the names from the root to the kernel, without the interpreter's own frames."""
    trace = survey.trace
    linked = np.flatnonzero(survey.link.launch >= 0)
    if not len(linked):
        return {}
    names, of_name = np.unique([_AROUND.sub("", name) for name in trace.names], return_inverse=True)
    modules = np.array([name.startswith(_MODULE) for name in trace.names])
    shown = np.isin(trace.category, _OF_TREE) & ((trace.category != Category.PYTHON) | modules[trace.name])
    place = np.full(len(trace) + 1, -1, np.int64)
    paths: list[tuple[str, ...]] = []
    for rows in _levels(survey, survey.link.launch[linked]):
        above = place[survey.tree.parent[rows]]
        keys = np.where(shown[rows], (above + 1) * len(names) + of_name[trace.name[rows]], -1)
        fresh, at = np.unique(keys[shown[rows]], return_inverse=True)
        place[rows] = above
        place[rows[shown[rows]]] = len(paths) + at
        for key in fresh.tolist():
            before, name = divmod(key, len(names))
            paths.append((*(paths[before - 1] if before else ()), str(names[name])))
    ends = (place[survey.link.launch[linked]] + 1) * len(trace.names) + trace.name[survey.rows[linked]]
    fresh, at = np.unique(ends, return_inverse=True)
    spent = np.bincount(at, weights=(survey.end - survey.start)[linked])
    times: dict[tuple[str, ...], float] = defaultdict(float)
    for key, time in zip(fresh.tolist(), spent.tolist()):
        before, kernel = divmod(key, len(trace.names))
        leaf = () if survey.on_host else (short_name(trace.names[kernel]),)
        times[(paths[before - 1] if before else ()) + leaf] += time
    return times


def _levels(survey: Survey, launches: Ints) -> Iterator[Ints]:
    """Yield the rows above these and they themselves, from the roots down."""
    alive = np.zeros(len(survey.trace), bool)
    at = np.unique(launches)
    while len(at):
        alive[at] = True
        at = survey.tree.parent[at]
        at = np.unique(at[at >= 0])
        at = at[~alive[at]]
    rows = np.flatnonzero(alive)
    depth, up = np.zeros(len(rows), np.int64), survey.tree.parent[rows]
    while (up >= 0).any():
        depth += up >= 0
        up = np.where(up >= 0, survey.tree.parent[np.maximum(up, 0)], -1)
    for level in range(int(depth.max(initial=-1)) + 1):
        yield rows[depth == level]


def overlap_picture(survey: Survey) -> Picture:
    """Draw the hidden part of each kind of communication, with the distribution of its kernels."""
    talk = survey.kinds == Kind.COMMUNICATION
    if not talk.any():
        raise nothing_to_draw("the trace has no communication")
    names = survey.trace.name[survey.rows]
    rows = []
    for name in np.unique(names[talk]).tolist():
        chosen = talk & (names == name)
        hidden, whole = 0, 0
        parts: list[float] = []
        for device in np.unique(survey.device[chosen]).tolist():
            on_device = chosen & (survey.device == device)
            cover = _union(survey, (survey.kinds == Kind.COMPUTE) & (survey.device == device))
            union = _union(survey, on_device)
            whole += intervals.length(union)
            hidden += intervals.shared(union, cover)
            lengths = np.maximum(survey.end[on_device] - survey.start[on_device], 1)
            parts += (intervals.covered_by(survey.start[on_device], survey.end[on_device], cover) / lengths).tolist()
        label = short_name(survey.trace.names[name])
        rows.append((whole, overlap_row(label, hidden, whole, parts)))
    rows.sort(key=lambda pair: -pair[0])
    return overlap_bars([row for _, row in rows], "kind of communication")
