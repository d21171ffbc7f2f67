"""Pictures of a run: samples now and before, rounds of two builds, history, rooflines of its cases."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from pytest_perfgate.core.analysis.roofline import place
from pytest_perfgate.core.render.charts import ruler, sparkline
from pytest_perfgate.core.render.drawing import (
    INK,
    MARK,
    NARROW,
    OTHER,
    PAPER,
    SOFT,
    Axis,
    Frame,
    Place,
    box,
    complete_drawing,
    distinct_ticks,
    dot,
    grid,
    line,
    margin,
    outlined_text,
    responsive,
    rule,
    text_width,
    words,
)
from pytest_perfgate.core.render.rooflines import Ceiling, Point, roofline
from pytest_perfgate.core.render.words import TIMES, FigureLevel, exact_change, plural, quantity, short_name, signed
from pytest_perfgate.model.device import Basis
from pytest_perfgate.model.metric import Bar, Picture
from pytest_perfgate.model.values import Dimension, value

if TYPE_CHECKING:
    from pytest_perfgate.core.stats.change_points import ChangePoint
    from pytest_perfgate.model.device import Roof
    from pytest_perfgate.model.measurement import Baseline, HistoryEntry, Measurement
    from pytest_perfgate.model.verdict import CaseReport

_BINS = 40

_PROCESSES = 24
"""The most processes of a case in a picture."""

_KEPT = 60
"""The most earlier runs in a picture of one case."""


def _time(nanoseconds: float, digits: int = 3) -> str:
    return quantity(nanoseconds, Dimension.TIME, digits) if nanoseconds else "0"


def _tight_axis(numbers: Sequence[float]) -> Axis:
    """Return an axis of times that spans these, with some room at both ends."""
    low, high = min(numbers), max(numbers)
    room = (high - low) * 0.06 or abs(high) * 0.05 or 1.0
    return distinct_ticks(Axis(low=max(0.0, low - room), high=high + room, label="time of a call"), _time, 3)


@value
class ReferenceLine:
    """A time that others are compared with: its name, and its scatter."""

    name: str
    time: float
    dash: str
    scatter: float = 0.0


def levels(baseline: Baseline | None) -> tuple[ReferenceLine, ...]:
    """Return the accepted time, and the anchor if it is another time."""
    if baseline is None or not 0 < baseline.time < math.inf:
        return ()
    accepted = ReferenceLine(name="accepted", time=baseline.time, dash="5 4", scatter=baseline.scatter)
    if not baseline.anchor or math.isclose(baseline.anchor, baseline.time, rel_tol=1e-6):
        return (accepted,)
    return accepted, ReferenceLine(name="anchor", time=baseline.anchor, dash="2 3")


def distribution_picture(case: CaseReport, entries: Sequence[HistoryEntry] = ()) -> Picture | None:
    """Draw each process as a row of samples below earlier runs, with the accepted time as a line."""
    processes = [p for p in case.measurement.processes if p.durations] if case.measurement else []
    usual = [_without_slowest(p.durations) for p in processes]
    if not processes or not all(usual):
        return None
    then = [s.time for s in entries[-_KEPT:] if 0 < s.time < math.inf]
    references = levels(case.baseline)
    drawn = [duration for durations in usual for duration in durations]
    axis = _tight_axis([*drawn, *then, *(reference.time for reference in references)])
    hidden = sum(len(p.durations) for p in processes) - sum(map(len, usual))
    alt = f"Samples of {short_name(case.key)}: {plural(len(processes), 'process', 'processes')}"
    alt += f" after {plural(len(then), 'run')}" if then else ""
    alt += "".join(f", {reference.name} {_time(reference.time)}" for reference in references)
    note = f"; the slowest {plural(hidden, 'sample')} beyond the right edge" if hidden else ""
    alt += f", the first {_PROCESSES} drawn" if len(usual) > _PROCESSES else ""
    usual = usual[:_PROCESSES]
    bars = [Bar(label=f"process {at}", text=_spark(shown, axis)) for at, shown in enumerate(usual, 1)]
    if then:
        bars.insert(0, Bar(label=_before(then), text=_spark(then, axis)))
    rows = (usual, then, references)
    return responsive("samples", lambda width: _samples(width, axis, rows, alt), alt + note, (), bars)


def _before(then: Sequence[float]) -> str:
    return f"{plural(len(then), 'run')} before"


def _spark(numbers: Sequence[float], axis: Axis) -> str:
    middle = sorted(numbers)[len(numbers) // 2]
    return f"{sparkline(_binned(numbers, axis))}  {_time(middle)}"


def _without_slowest(durations: Sequence[float]) -> list[float]:
    """Return samples without the slowest hundredth, and those beyond three times the third quartile."""
    finite = sorted(d for d in durations if math.isfinite(d))
    kept = finite[: max(1, math.ceil(len(finite) * 0.99))]
    return [d for d in kept if d <= 3 * kept[len(kept) * 3 // 4]]


def _binned(numbers: Sequence[float], axis: Axis) -> list[int]:
    counts = [0] * _BINS
    for number in numbers:
        counts[min(_BINS - 1, int(axis.place(number) * _BINS))] += 1
    return counts


Rows = tuple[Sequence[Sequence[float]], Sequence[float], Sequence[ReferenceLine]]
"""Samples by process, times of earlier runs, and the times that they are compared with."""


def _samples(width: int, axis: Axis, rows: Rows, alt: str) -> str:
    usual, then, references = rows
    left = 72.0 if width <= NARROW else 120.0
    room, top = width - left - 4.0, 6.0 + 17 * len(references)
    each = 36 if len(usual) <= 6 else 24
    bottom = top + each * (len(usual) + bool(then))
    marks = [*ruler(axis, (left, room), (top, bottom)), *_levels_across(references, axis, (left, room), (top, bottom))]
    y = top
    if then:
        label = "before" if width <= NARROW else _before(then)
        marks.append(words(left - 8, y + each - 10, label, anchor="end"))
        for time in then:
            x = left + axis.place(time) * room
            marks.append(rule((x, y + 6), (x, y + each - 4), colour=SOFT, wide=1.4))
        y += each
    for at, shown in enumerate(usual, 1):
        marks.append(words(left - 8, y + each - 10, f"process {at}", anchor="end"))
        marks += _strip(_binned(shown, axis), (left, y + each - 4), (room, each - 8))
        y += each
    marks.append(words(left + room / 2, bottom + 32, f"{axis.label}; higher is more often", anchor="middle"))
    return complete_drawing(width, bottom + 40, marks, alt)


def _strip(counts: Sequence[int], corner: Place, room: tuple[float, float]) -> Iterator[str]:
    most, wide = max(counts), room[0] / _BINS
    for at, count in enumerate(counts):
        if count:
            tall = room[1] * (0.2 + 0.8 * count / most)
            yield box(corner[0] + at * wide + 0.5, corner[1] - tall, wide - 1, tall, f"{count} samples")


def _levels_across(
    references: Sequence[ReferenceLine], axis: Axis, across: tuple[float, float], down: tuple[float, float]
) -> Iterator[str]:
    """Yield each level as a line through all rows, named, with a band of two scatters if that is known."""
    left, room = across
    for row, reference in enumerate(references):
        x = left + axis.place(reference.time) * room
        if reference.scatter:
            edges = [axis.place(reference.time * (1 + sigmas * reference.scatter)) for sigmas in (-2, 2)]
            low, high = (left + min(1.0, max(0.0, edge)) * room for edge in edges)
            yield (
                f'<rect x="{low:.1f}" y="{down[0]:.1f}" width="{max(high - low, 0.5):.1f}" '
                f'height="{down[1] - down[0]:.1f}" fill="{OTHER}" fill-opacity=".12"/>'
            )
        text = f"{reference.name} {_time(reference.time)}"
        y = down[0] - 5 - 17 * (len(references) - 1 - row)
        yield rule((x, y + 4), (x, down[1]), colour=OTHER, dash=reference.dash, wide=2)
        half = text_width(text) / 2
        yield outlined_text(min(max(x, half + 2), left + room - half), y, text)


def rounds_picture(case: CaseReport) -> Picture | None:
    """Draw how much slower the head was in each round of two builds."""
    both = case.arms or case.builds
    changes = [math.expm1(one) for one in both.differences if math.isfinite(one)] if both else []
    if not both or len(changes) < 2:
        return None
    bound = next((v.limit.bound for v in case.verdicts if v.limit.metric == "slowdown"), 0.0)
    limit = f"; dashed: the limit, {exact_change(bound)}" if bound else ""
    span = f"{signed(min(changes))} to {signed(max(changes))}{limit}"
    alt = f"Rounds of {short_name(case.key)} against {both.base[:12]}: {span}"
    low, high = min(0.0, bound, *changes), max(0.0, bound, *changes)
    room = 0.15 * max(0.002, high - low)

    def draw(width: int) -> str:
        frame = Frame(
            x=Axis(low=0.5, high=len(changes) + 0.5, label="round", whole=True),
            y=Axis(low=low - room, high=high + room, label="head against base" * (width > NARROW), text=exact_change),
            width=width, height=220, left=92 if width > NARROW else 70,
        )  # fmt: skip
        marks = [*grid(frame), rule(*(frame.at(x, bound) for x in (0.0, math.inf)), colour=OTHER, dash="5 4", wide=2)]
        marks += [_needle(frame, at, one) for at, one in enumerate(changes, 1)]
        sides = ((high, frame.top + 10, "slower"), (low, frame.height - frame.bottom - 6, "faster"))
        marks += [outlined_text(frame.left + 4, y, text, "start") for change, y, text in sides if change]
        return complete_drawing(width, frame.height, marks, alt)

    return responsive("rounds", draw, alt, (), [Bar(label="rounds", text=" ".join(map(signed, changes[:12])))])


def _needle(frame: Frame, at: int, change: float) -> str:
    foot, head = frame.at(at, 0.0), frame.at(at, change)
    return rule(foot, head, colour=SOFT, wide=1) + dot(frame, at, change, title=f"round {at}: {signed(change)}")


def history_picture(case: CaseReport, entries: Sequence[HistoryEntry]) -> Picture | None:
    """Draw the case's runs over time with its change points; accepted time and anchor are lines."""
    past = [s for s in entries if 0 < s.time < math.inf][-_KEPT:]
    if len(past) < 3:
        return None
    from pytest_perfgate.core.stats.change_points import change_points

    return timeline(f"History of {short_name(case.key)}", past, change_points([s.time for s in past]), case.baseline)


def _roof(measurement: Measurement) -> Roof | None:
    rooflines = (measurement.device.roof(basis) for basis in (Basis.CLOCK, Basis.CEILING, Basis.DATASHEET))
    return next((roof for roof in rooflines if roof and roof.bandwidth and roof.compute), None)


def roofline_picture(cases: Sequence[CaseReport]) -> Picture | None:
    """Draw rates against intensity under the roof of the first device that has one."""
    measured = [(case, case.measurement) for case in cases if case.measurement and case.measurement.work]
    roof = next((_roof(m) for _, m in measured if _roof(m)), None)
    points = [(case, i, rate) for case, m in measured for i, rate in _placed(m, roof)] if roof else []
    if not roof or not roof.bandwidth or not points:
        return None
    alt = f"Roofline, {roof.basis.value}: {plural(len(points), 'case')}"
    marks = [
        Point(
            label=short_name(case.key),
            intensity=i,
            rate=rate,
            text=quantity(rate, Dimension.FLOPS, 3),
            bound="compute" if i * roof.bandwidth > max(peak for _, peak in roof.compute) else "memory",
            before=_accepted_point(case, i),
        )
        for case, i, rate in points
    ]
    alt += "; lines lead from the accepted times" if any(point.before for point in marks) else ""
    return roofline(alt, marks, Ceiling(peaks=roof.compute, bandwidth=roof.bandwidth))


def _accepted_point(case: CaseReport, intensity: float) -> tuple[float, float] | None:
    """Return the point of the same work in the accepted time."""
    work = case.measurement.work if case.measurement else None
    then = case.baseline.time if case.baseline else 0.0
    return (intensity, work.flops / then * 1e9) if work and work.flops and 0 < then < math.inf else None


def _placed(measurement: Measurement, roof: Roof | None) -> list[tuple[float, float]]:
    time = measurement.metrics.find("time")
    if roof is None or measurement.work is None or not time or not 0 < time[0].value < math.inf:
        return []
    point = place(measurement.work, time[0].value, roof)
    known = all(one is not None and one > 0 for one in (point.intensity, point.flops_rate))
    return [(point.intensity or 0.0, point.flops_rate or 0.0)] if known else []


_LABELS, _FAILED = 4, frozenset({"regressed", "broken"})
"""Rows of text above the line of a history; outcomes whose runs are crossed."""


def timeline(
    name: str,
    entries: Sequence[HistoryEntry],
    changes: Sequence[ChangePoint],
    accepted: Baseline | None = None,
    of: FigureLevel = TIMES,
    titled: bool = False,
) -> Picture:
    """Draw a dot for each run, a step with its commit at each change, lines at accepted time and anchor."""
    times, references = [entry.time for entry in entries], levels(accepted)
    alt = f"{name} over {plural(len(times), 'run')}, {of.text(min(times))} to {of.text(max(times))}"
    whole, title = f"{alt}; {history_text(entries, changes, of)}", name if titled else ""

    def draw(width: int) -> str:
        return _history(width, title, (entries, changes, references, of), whole)

    spark = f"{sparkline([time - 0.9 * min(times) for time in times[-_KEPT:]])}  {of.text(times[-1])}"
    return responsive("history", draw, alt, (), [Bar(label="history", text=spark)])


Line = tuple[Sequence["HistoryEntry"], Sequence["ChangePoint"], Sequence[ReferenceLine], FigureLevel]
"""Runs, their change points, the levels that they are compared with, and the figure."""


def _history(width: int, title: str, shown: Line, alt: str) -> str:
    entries, changes, references, of = shown
    times = [entry.time for entry in entries]
    known = [*times, *(reference.time for reference in references)]
    room = 0.1 * (max(known) - min(known)) or 0.05 * max(known)
    low, name_of = max(min(known) - room, min(*known, of.raised)), "time" if width > NARROW and not of.title else ""
    up = distinct_ticks(Axis(low=low, high=max(known) + room, label=name_of, zero=of.raised,
              whole=of.are_integers(known), binary=of.dimension is Dimension.BYTES), of.text, 4)  # fmt: skip
    left = margin(up, title=width > NARROW)
    steps = _steps_placed(shown, (left, width - 18, len(times)))
    top = (34 if title else 14) + 16 * (1 + max((row for *_, row in steps), default=-1))
    days, failed = {one.when[:10] for one in entries}, any(one.outcome in _FAILED for one in entries)
    runs = f"runs{f' of {min(days)}' * (len(days) == 1)}, oldest first{'; crossed: failed' * failed}"
    frame = Frame(
        x=Axis(low=-0.5, high=len(times) - 0.5, label=runs, text=_days(entries, _TIME if len(days) < 2 else _DAY)),
        y=up, width=width, height=top + 270, top=top, left=left,
    )  # fmt: skip
    marks = [*([words(0, 14, _end_of(title, width))] if title else ()), *grid(frame)]
    for at, text, x, row in steps:
        across, foot = frame.at(at, frame.y.low)
        marks += [rule((across, top - 4 - 16 * row), (across, foot), dash="2 4"), words(x, top - 6 - 16 * row, text)]
    marks += [line(frame, points, colour=OTHER) for points in _levels(len(times), changes)]
    marks += [_entry(frame, at, one, of) for at, one in enumerate(entries)]
    return complete_drawing(width, frame.height, [*marks, *_reference_lines(frame, references, of)], alt)


def _end_of(name: str, width: int) -> str:
    """Return the end of a name that is too long, since its beginning is a folder."""
    letters = int(width / text_width("n")) - 1
    return name if len(name) <= letters else f"…{name[-letters:]}"


def _entry(frame: Frame, at: int, entry: HistoryEntry, of: FigureLevel) -> str:
    """Return a dot, or a ring with a cross for a run that missed its limits."""
    title = f"{entry.when[:16]} {entry.commit[:10]} {of.text(entry.time)} {entry.outcome}".rstrip()
    if entry.outcome not in _FAILED:
        return dot(frame, at, entry.time, title=title, colour=MARK, radius=3.5)
    x, y = frame.at(at, entry.time)
    cross = f'<path d="M{x - 3:.1f},{y - 3:.1f} l6,6 m0,-6 l-6,6" stroke="{INK}" stroke-width="1.4"/>'
    ring = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="{PAPER}" stroke="{INK}"/>'
    return f"{ring}{cross}{dot(frame, at, entry.time, title=title, radius=1.5)}"


def _reference_lines(frame: Frame, references: Sequence[ReferenceLine], of: FigureLevel) -> Iterator[str]:
    """Yield lines across; the accepted time is named at their right end, the anchor at the left."""
    for row, reference in enumerate(references):
        start, end = frame.at(frame.x.low, reference.time), frame.at(frame.x.high, reference.time)
        yield rule(start, end, colour=OTHER, dash=reference.dash, wide=1.6)
        text = f"{reference.name} {of.text(reference.time)}"
        y = start[1] - 5 if start[1] > frame.top + 16 else start[1] + 15
        yield outlined_text(end[0] - 4 if row == 0 else start[0] + 6, y, text, "end" if row == 0 else "start")


def _steps_placed(shown: Line, across: tuple[float, float, int]) -> list[tuple[float, str, float, int]]:
    """Return each change with its text, the text's start and a row with room; without room it is left out."""
    (entries, changes, _, of), (left, right, count) = shown, across
    ends, steps = [0.0] * _LABELS, []
    for change in changes:
        at = change.index - 0.5
        line_x = left + (at + 0.5) / count * (right - left)
        first = entries[change.index]
        text = f"{of.step(change.before, change.after)} at {first.commit[:7] or first.when[:10]}"
        x = min(line_x + 4, right - text_width(text))
        row = next((row for row, end in enumerate(ends) if x > end), None)
        if row is None:
            steps.append((at, "", line_x, 0))
            continue
        ends[row] = x + text_width(text) + 6
        steps.append((at, text, x, row))
    return steps


_DAY, _TIME = slice(10), slice(11, 16)


def _days(entries: Sequence[HistoryEntry], part: slice) -> Callable[[float], str]:
    """Return a function for the day below a run, or another part of its time; "" for a tick between two runs."""
    texts = {float(at): entry.when[part] for at, entry in enumerate(entries)}
    return lambda at: texts.get(round(at, 6), "")


def history_text(entries: Sequence[HistoryEntry], changes: Sequence[ChangePoint], of: FigureLevel = TIMES) -> str:
    """Return the change points in one sentence."""
    if not changes:
        return "no change point; a step counts from its third run on"
    parts = [
        f"{of.step(c.before, c.after)} at {entries[c.index].commit[:10] or entries[c.index].when[:16]}" for c in changes
    ]
    return f"{plural(len(changes), 'change point')}: {', '.join(parts)}"


def _levels(count: int, changes: Sequence[ChangePoint]) -> list[list[tuple[float, float]]]:
    if not changes:
        return []
    edges = [0, *(c.index for c in changes), count]
    level = [changes[0].before, *(c.after for c in changes)]
    return [[(a, time), (max(a, b - 1), time)] for a, b, time in zip(edges, edges[1:], level)]
