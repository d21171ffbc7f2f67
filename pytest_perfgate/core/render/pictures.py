"""Pictures of a run: distributions, history, rooflines of its cases."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from pytest_perfgate.core.analysis.roofline import place
from pytest_perfgate.core.render.block import short_name
from pytest_perfgate.core.render.drawing import (
    FILLS,
    INK,
    NARROW,
    OTHER,
    PAPER,
    SOFT,
    Axis,
    Frame,
    Place,
    box,
    dot,
    fitted,
    grid,
    haloed,
    line,
    picture,
    responsive,
    rule,
    sheet,
    spread_out,
    text_width,
    words,
)
from pytest_perfgate.core.render.words import plural, quantity, signed
from pytest_perfgate.model.device import Basis, Roof
from pytest_perfgate.model.metric import Bar, Picture
from pytest_perfgate.model.values import Dimension, value

if TYPE_CHECKING:
    from pytest_perfgate.core.stats.change_points import ChangePoint
    from pytest_perfgate.model.measurement import Measurement, Sitting
    from pytest_perfgate.model.verdict import CaseReport

_BINS = 40


def _time(nanoseconds: float) -> str:
    return quantity(nanoseconds, Dimension.TIME, 3)


def _tight(numbers: Sequence[float], label: str) -> Axis:
    low, high = min(numbers), max(numbers)
    room = (high - low) * 0.06 or abs(high) * 0.05 or 1.0
    return Axis(low=max(0.0, low - room), high=high + room, label=label, text=_time)


def distribution_picture(case: CaseReport) -> Picture | None:
    """Each process as a row of its samples, with the accepted time as a line across."""
    processes = [p for p in case.measurement.processes if p.durations] if case.measurement else []
    usual = [_usual(p.durations) for p in processes]
    if not processes or not all(usual):
        return None
    then = case.baseline.time if case.baseline else None
    numbers = [n for shown in usual for n in shown] + ([then] if then else [])
    frame = Frame(
        x=_tight(numbers, "time of a call; one row a process, higher is more often"),
        y=Axis(low=0.5, high=len(processes) + 0.5, label="process", whole=True),
        height=110 + 34 * len(processes),
    )
    marks = [mark for row, shown in enumerate(usual, 1) for mark in _strip(frame, shown, row)]
    if then:
        marks += [line(frame, [(then, frame.y.low), (then, frame.y.high)], colour=OTHER, dash="5 4")]
        x, y = frame.at(then, frame.y.high)
        marks.append(words(x + 5, y + 12, "accepted", colour=OTHER))
    hidden = sum(len(p.durations) for p in processes) - sum(map(len, usual))
    text = f"; {hidden} slowest of all samples are beyond the right edge" if hidden else ""
    alt = f"Samples of {short_name(case.key)}: {plural(len(processes), 'process', 'processes')}" + (
        f", accepted {_time(then)}" if then else ""
    )
    return Picture(svg=picture(frame, marks, alt), alt=alt + text)


def _usual(durations: Sequence[float]) -> list[float]:
    """Samples without the slowest hundredth, which would squeeze the rest together."""
    finite = sorted(d for d in durations if math.isfinite(d))
    return finite[: max(1, math.ceil(len(finite) * 0.99))]


def _strip(frame: Frame, shown: Sequence[float], row: int) -> list[str]:
    low, high = frame.x.low, frame.x.high
    counts = [0] * _BINS
    for number in shown:
        counts[min(_BINS - 1, int((number - low) / (high - low) * _BINS))] += 1
    most = max(counts)
    marks = []
    for at, count in enumerate(counts):
        if count:
            x, bottom = frame.at(low + (high - low) * at / _BINS, row - 0.35)
            right, top = frame.at(low + (high - low) * (at + 1) / _BINS, row + 0.35)
            height = (bottom - top) * (0.25 + 0.75 * count / most)
            marks.append(box(x, bottom - height, right - x - 1, height, title=f"{count} samples"))
    return marks


def history_picture(case: CaseReport, sittings: Sequence[Sitting]) -> Picture | None:
    """The case's sittings over time, the accepted time as a line across."""
    sat = [s for s in sittings if 0 < s.time < math.inf]
    if len(sat) < 3:
        return None
    times = [s.time for s in sat]
    then = case.baseline.time if case.baseline else None
    frame = Frame(
        x=Axis(low=1.0, high=float(len(sat)), label="run, oldest first", whole=True),
        y=_tight([*times, *([then] if then else [])], "time"),
        height=220,
    )
    marks = [line(frame, list(enumerate(times, 1)))]
    marks += [
        dot(frame, at, s.time, title=f"{s.when} {s.commit[:7]} {_time(s.time)}", radius=3)
        for at, s in enumerate(sat, 1)
    ]
    if then:
        marks.append(line(frame, [(frame.x.low, then), (frame.x.high, then)], colour=OTHER, dash="5 4"))
        marks.append(words(frame.left + 5, frame.at(1, then)[1] - 5, "accepted", colour=OTHER))
    alt = f"History of {short_name(case.key)}: {plural(len(sat), 'run')} from {_time(times[0])} to {_time(times[-1])}"
    return Picture(svg=picture(frame, marks, alt), alt=alt)


def _roof(measurement: Measurement) -> Roof | None:
    rooflines = (measurement.device.roof(basis) for basis in (Basis.CLOCK, Basis.CEILING, Basis.DATASHEET))
    return next((roof for roof in rooflines if roof and roof.bandwidth and roof.compute), None)


def roofline_picture(cases: Sequence[CaseReport]) -> Picture | None:
    """Rates against intensity under the roof of the first device that has one."""
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
        )
        for case, i, rate in points
    ]
    return roofline("roofline", alt, marks, Ceiling(peaks=roof.compute, bandwidth=roof.bandwidth))


def _placed(measurement: Measurement, roof: Roof | None) -> list[tuple[float, float]]:
    time = measurement.metrics.find("time")
    if roof is None or measurement.work is None or not time or not 0 < time[0].value < math.inf:
        return []
    point = place(measurement.work, time[0].value, roof)
    known = (
        point.intensity is not None and point.flops_rate is not None and point.intensity > 0 and point.flops_rate > 0
    )
    return [(point.intensity or 0.0, point.flops_rate or 0.0)] if known else []


_WIDE, _ROWS, _TURNED = 90, 3, 0.75
"""Letters of a name that fit, rows of words at the top, and from where these stand on the left of their line."""


def timeline(
    name: str, sittings: Sequence[Sitting], changes: Sequence[ChangePoint], accepted: float | None = None
) -> Picture:
    """One dot a sitting, a step at each change with its commit, a dashed line at the accepted time."""
    times = [sitting.time for sitting in sittings]
    known = [*times, *([accepted] if accepted else [])]
    room = 0.08 * (max(known) - min(known)) or 0.05 * max(known)
    frame = Frame(
        x=Axis(low=-0.5, high=len(times) - 0.5, label="runs, oldest first", text=_days(sittings)),
        y=Axis(
            low=min(known) - room, high=max(known) + room * (1 + len(changes[:_ROWS])), label="time", text=_tick_time
        ),
        top=34,
        left=86,
    )
    marks = [words(frame.left, 18, name if len(name) <= _WIDE else f"…{name[-_WIDE:]}")]
    marks += [mark for row, change in enumerate(changes) for mark in _step(frame, change, sittings, row % _ROWS)]
    marks += [
        dot(frame, at, s.time, title=f"{s.when[:16]} {s.commit[:10]} {_tick_time(s.time)}")
        for at, s in enumerate(sittings)
    ]
    marks += [line(frame, points, colour=OTHER) for points in _levels(len(times), changes)]
    marks += _accepted(frame, accepted) if accepted else []
    alt = f"{name} over {plural(len(times), 'run')}, {_tick_time(min(times))} to {_tick_time(max(times))}"
    return Picture(svg=picture(frame, marks, f"{alt}; {sittings_text(sittings, changes)}"), alt=alt)


def _days(sittings: Sequence[Sitting]) -> Callable[[float], str]:
    """The day of a sitting below it; a tick between two sittings has none."""

    def day(at: float) -> str:
        whole = round(at)
        return sittings[whole].when[:10] if abs(at - whole) < 1e-6 and 0 <= whole < len(sittings) else ""

    return day


def _step(frame: Frame, change: ChangePoint, sittings: Sequence[Sitting], row: int) -> list[str]:
    """A line where the level changed, and beside it by how much and at which commit."""
    at = change.index - 0.5
    x, _ = frame.at(at, frame.y.high)
    turned = x > _TURNED * frame.width
    text = f"{signed(change.change)} at {sittings[change.index].commit[:7] or sittings[change.index].when[:10]}"
    beside = words(x - 5 if turned else x + 5, frame.top + 12 + 16 * row, text, anchor="end" if turned else "start")
    return [line(frame, [(at, frame.y.low), (at, frame.y.high)], colour=SOFT, dash="2 4"), beside]


def _accepted(frame: Frame, time: float) -> list[str]:
    x, y = frame.at(frame.x.high, time)
    across = line(frame, [(frame.x.low, time), (frame.x.high, time)], colour=SOFT, dash="5 4")
    return [across, words(x - 4, y - 5, f"accepted {_tick_time(time)}", anchor="end", colour=SOFT)]


def sittings_text(sittings: Sequence[Sitting], changes: Sequence[ChangePoint]) -> str:
    """The change points in one sentence."""
    if not changes:
        return "no change point"
    parts = [f"{signed(c.change)} at {sittings[c.index].commit[:10] or sittings[c.index].when[:16]}" for c in changes]
    return f"{len(changes)} change point{'s' * (len(changes) > 1)}: {', '.join(parts)}"


def _levels(count: int, changes: Sequence[ChangePoint]) -> list[list[tuple[float, float]]]:
    if not changes:
        return []
    edges = [0, *(c.index for c in changes), count]
    level = [changes[0].before, *(c.after for c in changes)]
    return [[(a, time), (max(a, b - 1), time)] for a, b, time in zip(edges, edges[1:], level)]


def _tick_time(number: float) -> str:
    return quantity(number, Dimension.TIME)


@value
class Point:
    """A rate at an intensity, and where it was before a change."""

    label: str
    intensity: float
    rate: float
    text: str
    bound: str = ""
    before: tuple[float, float] | None = None


@value
class Ceiling:
    """Peaks by type under one bandwidth, in operations and bytes a second."""

    peaks: tuple[tuple[str, float], ...]
    bandwidth: float
    note: str = ""


def roofline(name: str, alt: str, points: Sequence[Point], ceiling: Ceiling) -> Picture:
    """Numbered points under the roof with its balance point, and the numbers told below."""

    def draw(width: int) -> str:
        frame = _roof_frame(width, points, ceiling)
        marks = [*grid(frame), *_roofs(frame, ceiling), *_points(frame, points)]
        y = frame.height + 4.0
        for number, point in enumerate(points, 1):
            entry = f"{number}  {point.label}"
            end = width - text_width(point.text) - 10 if width > NARROW else width
            marks.append(words(4, y + 12, fitted(entry, end)))
            if width <= NARROW:
                y += 16
            marks.append(words(width - 2, y + 12, point.text, anchor="end", colour=SOFT))
            y += 18
        if ceiling.note:
            marks.append(words(4, y + 12, fitted(ceiling.note, width - 8), colour=SOFT))
            y += 18
        return sheet(width, y + 6, marks, alt)

    top = max(rate for _, rate in ceiling.peaks)
    bars = [
        Bar(label=f"{number}  {point.label}", parts=(_share(point, top, ceiling.bandwidth),), text=point.text)
        for number, point in enumerate(points, 1)
    ]
    return responsive(name, draw, alt, ("of its roof",), bars)


def _share(point: Point, peak: float, bandwidth: float) -> float:
    return min(1.0, point.rate / min(peak, point.intensity * bandwidth))


def _roof_frame(width: int, points: Sequence[Point], ceiling: Ceiling) -> Frame:
    peak = max(rate for _, rate in ceiling.peaks)
    places = [(p.intensity, p.rate) for p in points] + [p.before for p in points if p.before]
    across = [x for x, _ in places] + [rate / ceiling.bandwidth for _, rate in ceiling.peaks]
    up = [y for _, y in places]
    return Frame(
        x=Axis(low=min(across) / 3, high=max(across) * 4, label="operations per byte", log=True, text=_plain),
        y=Axis(low=min(up, default=peak / 1e3) / 3, high=max(peak, *up, 0.0) * 2.2, label="operations per second",
               log=True,                text=lambda n: quantity(n, Dimension.FLOPS, 2).removesuffix("FLOPS").strip()),
        width=width, height=380 if width > NARROW else 330, left=74 if width > NARROW else 58,
    )  # fmt: skip


def _plain(number: float) -> str:
    return f"{number:,.0f}" if number >= 1 else f"{number:g}"


def _roofs(frame: Frame, ceiling: Ceiling) -> Iterator[str]:
    """The slope of the memory, a flat roof a type, and the intensity at which both bind."""
    band = ceiling.bandwidth
    top = max(rate for _, rate in ceiling.peaks)
    yield line(frame, [(max(frame.x.low, frame.y.low / band), max(frame.y.low, frame.x.low * band)), (top / band, top)])
    peaks = sorted(ceiling.peaks, key=lambda pair: -pair[1])
    places = [frame.at(frame.x.high, rate)[1] - 6 for _, rate in peaks]
    labels = spread_out(places, 15, frame.top + 9, frame.height - frame.bottom - 22)
    for number, ((dtype, rate), y) in enumerate(zip(peaks, labels)):
        yield line(frame, [(rate / band, rate), (frame.x.high, rate)], dash="" if number == 0 else "7 4")
        yield haloed(frame.width - frame.right - 4, y, f"{dtype} {quantity(rate, Dimension.FLOPS, 3)}", "end")
    x, y = frame.at(top / band, top)
    _, floor = frame.at(top / band, frame.y.low)
    text = f"balance {_plain(top / band)}"
    turned = x > frame.width * 0.6
    yield rule((x, y), (x, floor), dash="3 4")
    yield haloed(x - 5 if turned else x + 5, floor - 8, text, "end" if turned else "start")


_NEAR = tuple(
    (distance * math.cos(turn * math.pi / 6), distance * math.sin(turn * math.pi / 6))
    for distance in (0, 20, 32, 46, 62, 80)
    for turn in (range(12) if distance else (0,))
)
"""Where a number may stand beside its point, the nearest places first."""

_BADGE = 8.5


def _points(frame: Frame, points: Sequence[Point]) -> Iterator[str]:
    """A disc where compute binds, else a square, with its number in it; one that has no room is led aside."""
    taken: list[Place] = []
    for number, point in enumerate(points, 1):
        x, y = frame.at(point.intensity, point.rate)
        title = f"<title>{escape(f'{number} {point.label}: {point.text}')}</title>"
        if point.before:
            a, b = frame.at(*point.before)
            yield rule((a, b), (x, y), colour=OTHER, wide=2)
            yield f'<circle cx="{a:.1f}" cy="{b:.1f}" r="4.5" fill="{PAPER}" stroke="{OTHER}" stroke-width="2"/>'
        free = ((x + dx, y + dy) for dx, dy in _NEAR if _open(frame, (x + dx, y + dy), taken))
        place = next(free, None)
        if place != (x, y):
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{INK}">{title}</circle>'
            yield rule((x, y), place, wide=0.8) if place else ""
        if place:
            taken.append(place)
            yield _badge(place, point.bound, title)
            yield words(place[0], place[1] + 4.2, str(number), anchor="middle")


def _badge(place: Place, bound: str, title: str) -> str:
    (x, y), size = place, _BADGE
    style = f'fill="{FILLS["compute"][0]}" stroke="{INK}" stroke-width="1.2"'
    if bound == "compute":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" {style}>{title}</circle>'
    corner = f'x="{x - size + 0.5:.1f}" y="{y - size + 0.5:.1f}"'
    return f'<rect {corner} width="{2 * size - 1:g}" height="{2 * size - 1:g}" {style}>{title}</rect>'


def _open(frame: Frame, place: Place, taken: Sequence[Place]) -> bool:
    x, y = place
    inside = frame.left + 9 < x < frame.width - 9 and frame.top + 4 < y < frame.height - frame.bottom - 22
    return inside and all(math.hypot(x - a, y - b) > 2 * _BADGE + 1 for a, b in taken)
