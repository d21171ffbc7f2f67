"""SVG drawings and the timeline."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING

from pytest_perfgate.core.analysis.roofline import place
from pytest_perfgate.core.render.block import short_name
from pytest_perfgate.core.render.words import plural, quantity, signed
from pytest_perfgate.model.device import Basis, Roof
from pytest_perfgate.model.measurement import Measurement, Sitting
from pytest_perfgate.model.metric import Picture
from pytest_perfgate.model.values import Dimension, value
from pytest_perfgate.model.verdict import CaseReport

if TYPE_CHECKING:
    from pytest_perfgate.core.stats.change_points import ChangePoint


INK, SOFT, MARK, OTHER = "currentColor", "var(--soft,#5b6570)", "var(--mark,#2f6fb7)", "var(--mark2,#c4622d)"

_PAPER, _BLACK = "#fff", "#1b1f24"

_NAMED = re.compile(r"var\(--\w+,(#\w+)\)")


@value
class Axis:
    """A range of values along a side of a picture."""

    low: float
    high: float
    label: str
    log: bool = False
    text: Callable[[float], str] = "{:g}".format
    """A tick as a person reads it."""
    whole: bool = False
    """Counts something: there is nothing between two ticks."""

    def place(self, number: float) -> float:
        """0-1 along the axis."""
        low, high, number = (math.log10(max(v, 1e-300)) if self.log else v for v in (self.low, self.high, number))
        return (number - low) / (high - low) if high > low else 0.5

    def ticks(self, count: int = 6) -> list[float]:
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            jump = max(1, (last - first) // count)
            powers = [10.0**power for power in range(first, last + 1, jump)]
            return [power for power in powers if self.low <= power <= self.high]
        step = nice_step((self.high - self.low) / max(1, count))
        step = max(1.0, step) if self.whole else step
        first = math.ceil(self.low / step)
        return [step * number for number in range(first, math.floor(self.high / step + 1e-9) + 1)]


@value
class Frame:
    """Where a picture puts its axes: pixel sizes with room for labels."""

    x: Axis
    y: Axis
    width: int = 720
    height: int = 360
    left: int = 74
    bottom: int = 48
    top: int = 14
    right: int = 18

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The pixel of a point, kept inside the frame."""
        across = min(1.0, max(0.0, self.x.place(x)))
        up = min(1.0, max(0.0, self.y.place(y)))
        px = self.left + across * (self.width - self.left - self.right)
        return px, self.height - self.bottom - up * (self.height - self.bottom - self.top)


def picture(frame: Frame, marks: Sequence[str], alt: str) -> str:
    """A whole drawing: frame, ticks, then the marks."""
    body = "".join([*_grid(frame), *marks])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {frame.width} {frame.height}" width="{frame.width}" '
        f'height="{frame.height}" role="img" aria-label="{escape(alt, quote=True)}" font-family="system-ui,sans-serif" '
        f'font-size="12">{body}</svg>'
    )


def alone(svg: str) -> str:
    """The drawing for a file of its own: on paper, in colours that a viewer without style sheets knows too.

    Without a page around it, ink would be black on whatever the viewer shows behind it, be that dark.
    """
    head, end, body = svg.partition(">")
    paper = f'<rect width="100%" height="100%" fill="{_PAPER}"/>'
    return f"{head}{end}{paper}{_NAMED.sub(lambda named: named[1], body).replace(INK, _BLACK)}"


def line(frame: Frame, points: Sequence[tuple[float, float]], *, colour: str = MARK, dash: str = "") -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (frame.at(*point) for point in points))
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>'


def dot(frame: Frame, x: float, y: float, *, title: str = "", colour: str = MARK, radius: float = 4) -> str:
    px, py = frame.at(x, y)
    text = f"<title>{escape(title)}</title>" if title else ""
    return f'<circle cx="{px:.1f}" cy="{py:.1f}" r="{radius}" fill="{colour}">{text}</circle>'


def words(x: float, y: float, text: str, *, anchor: str = "start", colour: str = INK) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'


def box(x: float, y: float, width: float, height: float, *, colour: str = MARK, title: str = "") -> str:
    text = f"<title>{escape(title)}</title>" if title else ""
    wide = max(width, 0.4)
    return f'<rect x="{x:.2f}" y="{y:.2f}" width="{wide:.2f}" height="{height:.2f}" fill="{colour}">{text}</rect>'


def nice_step(rough: float) -> float:
    """The nearest 1, 2 or 5 times a power of ten."""
    if rough <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    return next((m * power for m in (1, 2, 5) if m * power >= rough * 0.999), 10 * power)


def _grid(frame: Frame) -> list[str]:
    (x0, y0), (x1, y1) = frame.at(frame.x.low, frame.y.low), frame.at(frame.x.high, frame.y.high)
    parts = [f'<path d="M{x0:.1f},{y1:.1f} V{y0:.1f} H{x1:.1f}" fill="none" stroke="{SOFT}"/>']
    for tick in frame.x.ticks():
        px, _ = frame.at(tick, frame.y.low)
        parts.append(f'<path d="M{px:.1f},{y0:.1f} v5" stroke="{SOFT}"/>')
        parts.append(words(px, y0 + 18, frame.x.text(tick), anchor="middle", colour=SOFT))
    for tick in frame.y.ticks():
        _, py = frame.at(frame.x.low, tick)
        parts.append(f'<path d="M{x0:.1f},{py:.1f} H{x1:.1f}" stroke="{SOFT}" stroke-opacity=".25"/>')
        parts.append(words(x0 - 8, py + 4, frame.y.text(tick), anchor="end", colour=SOFT))
    parts.append(words((x0 + x1) / 2, frame.height - 8, frame.x.label, anchor="middle"))
    parts.append(
        f'<text transform="translate(14,{(y0 + y1) / 2:.1f}) rotate(-90)" text-anchor="middle" fill="{INK}">'
        f"{escape(frame.y.label)}</text>"
    )
    return parts


_BINS = 40

_COLOURS = (MARK, OTHER)


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
    peak = max(rate for _, rate in roof.compute)
    intensities = [i for _, i, _ in points] + [peak / roof.bandwidth]
    frame = Frame(
        x=Axis(low=min(intensities) / 4, high=max(intensities) * 4, label="FLOP per byte", log=True),
        y=Axis(
            low=min(rate for *_, rate in points) / 4, high=peak * 2, label="FLOP per second", log=True,
            text=lambda n: quantity(n, Dimension.FLOPS, 3).removesuffix("FLOPS").strip(),
        ),
    )  # fmt: skip
    marks = []
    for number, (dtype, rate) in enumerate(roof.compute):
        ridge = rate / roof.bandwidth
        corner = [(frame.x.low, frame.x.low * roof.bandwidth), (ridge, rate), (frame.x.high, rate)]
        marks.append(line(frame, corner, colour=_COLOURS[number % 2]))
        x, y = frame.at(frame.x.high, rate)
        marks.append(words(x - 4, y - 6, dtype, anchor="end", colour=_COLOURS[number % 2]))
    marks += [
        dot(frame, i, rate, title=f"{short_name(case.key)}: {quantity(rate, Dimension.FLOPS)}")
        for case, i, rate in points
    ]
    alt = f"Roofline, {roof.basis.value}: {plural(len(points), 'case')}"
    return Picture(svg=picture(frame, marks, alt), alt=alt)


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
