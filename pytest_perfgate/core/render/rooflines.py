"""Pictures over two axes: rates under the roof of a device, and small trends for the page of a case."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

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
    complete_drawing,
    distinct_ticks,
    grid,
    line,
    outlined_text,
    responsive,
    rule,
    shortened,
    spread_out,
    text_width,
    words,
)
from pytest_perfgate.core.render.words import printable, quantity
from pytest_perfgate.model.measurement import short_commit
from pytest_perfgate.model.metric import Bar, Picture
from pytest_perfgate.model.values import Dimension, value

if TYPE_CHECKING:
    from pytest_perfgate.core.analysis.regressions import Trend


@value
class Point:
    """A rate at an intensity, and its place before a change."""

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


def roofline(alt: str, points: Sequence[Point], ceiling: Ceiling) -> Picture:
    """Draw numbered points under the roof with its balance point; a list below explains the numbers."""

    def draw(width: int) -> str:
        frame = _roof_frame(width, points, ceiling)
        marks = [*grid(frame), *_roofs(frame, ceiling), *_points(frame, points, _labels(frame, ceiling))]
        y = frame.height + 4.0
        for number, point in enumerate(points, 1):
            entry = f"{number}  {point.label}"
            end = width - text_width(point.text) - 10 if width > NARROW else width
            marks.append(words(4, y + 12, shortened(entry, end)))
            if width <= NARROW:
                y += 16
            marks.append(words(width - 2, y + 12, point.text, anchor="end", colour=SOFT))
            y += 18
        if ceiling.note:
            marks.append(words(4, y + 12, shortened(ceiling.note, width - 8), colour=SOFT))
            y += 18
        return complete_drawing(width, y + 6, marks, alt)

    top = max(rate for _, rate in ceiling.peaks)
    bars = [
        Bar(label=f"{number}  {point.label}", parts=(_share(point, top, ceiling.bandwidth),), text=point.text)
        for number, point in enumerate(points, 1)
    ]
    return responsive("roofline", draw, alt, ("of its roof",), bars)


def _share(point: Point, peak: float, bandwidth: float) -> float:
    return min(1.0, point.rate / min(peak, point.intensity * bandwidth))


def _roof_frame(width: int, points: Sequence[Point], ceiling: Ceiling) -> Frame:
    peak = max(rate for _, rate in ceiling.peaks)
    places = [(p.intensity, p.rate) for p in points] + [p.before for p in points if p.before]
    across = [x for x, _ in places] + [rate / ceiling.bandwidth for _, rate in ceiling.peaks]
    up = [y for _, y in places]
    return Frame(
        x=Axis(low=min(across) / 3, high=max(across) * 4, label="operations per byte", log=True, text=_plain),
        y=Axis(low=min(up, default=peak / 1e3) / 3, high=max(peak, *up, 0.0) * 2.2, log=True, text=_rate,
               label="operations per second" if width > NARROW else ""),
        width=width, height=380 if width > NARROW else 330, left=74 if width > NARROW else 58,
    )  # fmt: skip


def _rate(number: float) -> str:
    return quantity(number, Dimension.FLOPS, 2).removesuffix("FLOPS").strip()


def _plain(number: float) -> str:
    return f"{number:,.0f}" if number >= 1 else f"{number:g}"


def _roofs(frame: Frame, ceiling: Ceiling) -> Iterator[str]:
    """Yield the slope of the memory, a flat roof for each type, and the intensity at which both limit."""
    band = ceiling.bandwidth
    top = max(rate for _, rate in ceiling.peaks)
    yield line(frame, [(max(frame.x.low, frame.y.low / band), max(frame.y.low, frame.x.low * band)), (top / band, top)])
    for number, (_, rate) in enumerate(_by_rate(ceiling)):
        yield line(frame, [(rate / band, rate), (frame.x.high, rate)], dash="" if number == 0 else "7 4")
    x, y = frame.at(top / band, top)
    yield rule((x, y), frame.at(top / band, frame.y.low), dash="3 4")
    for label in _labels(frame, ceiling):
        yield outlined_text(label.x, label.y, label.text, label.anchor)


@value
class Label:
    """Text of the roof, which numbers must not cover."""

    text: str
    x: float
    y: float
    anchor: str

    def covers(self, place: Place, margin: float) -> bool:
        wide = text_width(self.text)
        left = self.x - (wide if self.anchor == "end" else 0.0)
        return left - margin < place[0] < left + wide + margin and self.y - 10 - margin < place[1] < self.y + 3 + margin


def _by_rate(ceiling: Ceiling) -> list[tuple[str, float]]:
    return sorted(ceiling.peaks, key=lambda pair: -pair[1])


def _labels(frame: Frame, ceiling: Ceiling) -> list[Label]:
    """Return the types at the right end of their roofs, and the balance point at the foot of its line."""
    from pytest_perfgate.core.analysis.work import typed_rate

    peaks = _by_rate(ceiling)
    places = [frame.at(frame.x.high, rate)[1] - 6 for _, rate in peaks]
    heights = spread_out(places, 15, frame.top + 9, frame.height - frame.bottom - 22)
    right = frame.width - frame.right - 4.0
    texts = (f"{dtype} {quantity(typed_rate(rate, dtype), Dimension.FLOPS, 3)}" for dtype, rate in peaks)
    balance = peaks[0][1] / ceiling.bandwidth
    x, floor = frame.at(balance, frame.y.low)
    side, anchor = (-5, "end") if x > frame.width * 0.6 else (5, "start")
    foot = Label(text=f"balance {_plain(balance)}", x=x + side, y=floor - 8, anchor=anchor)
    return [*(Label(text=text, x=right, y=y, anchor="end") for text, y in zip(texts, heights)), foot]


_NEAR = tuple(
    (distance * math.cos(turn * math.pi / 6), distance * math.sin(turn * math.pi / 6))
    for distance in (0, 20, 32, 46, 62, 80)
    for turn in (range(12) if distance else (0,))
)
"""Places for a number beside its point, the nearest first."""

_BADGE = 8.5


def _points(frame: Frame, points: Sequence[Point], labels: Sequence[Label]) -> Iterator[str]:
    """Yield a disc if compute limits, else a square, with its number; one without room gets a line to its number."""
    # Dots and lines are drawn first, so that none of them crosses a neighbour's number.
    occupied: list[Place] = []
    badges: list[str] = []
    for number, point in enumerate(points, 1):
        x, y = frame.at(point.intensity, point.rate)
        title = f"<title>{escape(f'{number} {point.label}: {point.text}')}</title>"
        if point.before:
            a, b = frame.at(*point.before)
            yield rule((a, b), (x, y), colour=OTHER, wide=2)
            yield f'<circle cx="{a:.1f}" cy="{b:.1f}" r="4.5" fill="{PAPER}" stroke="{OTHER}" stroke-width="2"/>'
        near = ((x + dx, y + dy) for dx, dy in _NEAR)
        free = (at for at in near if _open(frame, at, occupied) and not any(one.covers(at, _BADGE) for one in labels))
        place = next(free, None)
        if place != (x, y):
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{INK}">{title}</circle>'
            yield rule((x, y), place, wide=0.8) if place else ""
        if place:
            occupied.append(place)
            badges += [_badge(place, point.bound, title), words(place[0], place[1] + 4.2, str(number), anchor="middle")]
    yield from badges


def _badge(place: Place, bound: str, title: str) -> str:
    (x, y), size = place, _BADGE
    style = f'fill="{FILLS["compute"][0]}" stroke="{INK}" stroke-width="1.2"'
    if bound == "compute":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" {style}>{title}</circle>'
    corner = f'x="{x - size + 0.5:.1f}" y="{y - size + 0.5:.1f}"'
    return f'<rect {corner} width="{2 * size - 1:g}" height="{2 * size - 1:g}" {style}>{title}</rect>'


def _open(frame: Frame, place: Place, occupied: Sequence[Place]) -> bool:
    x, y = place
    inside = frame.left + 9 < x < frame.width - 9 and frame.top + 4 < y < frame.height - frame.bottom - 22
    return inside and all(math.hypot(x - a, y - b) > 2 * _BADGE + 1 for a, b in occupied)


_WIDE, _LEFT, _RIGHT, _TOP, _BOTTOM = 860, 14, 86, 34, 26

_HIGH, _LOWER = 250, 170
"""The height of a time's drawing, and of a figure's beside it."""

_DOTS = 25
"""The newest runs of a long series, which have dots of their own."""

_STEPS = 40
"""A series with more levels, such as a count that never repeats, is drawn without them."""

_FAR, _FEW = 1.5, 3
"""A run above this multiple of the highest level is drawn at the edge, or it would flatten the others, if not few."""

_LETTER = 6.6
"""The width of a letter in a drawing."""

_STILL = 0.03
"""A series that varies less is drawn flat, since noise in full height would look like changes."""

_POINTS, _SPARK_WIDE, _SPARK_HIGH = 50, 120, 24


@value
class _Frame:
    """Positions in the drawing of so many runs between two times."""

    count: int
    low: float
    high: float
    height: int

    @property
    def foot(self) -> int:
        return self.height - _BOTTOM

    def x(self, at: float) -> float:
        return _LEFT + (_WIDE - _LEFT - _RIGHT) * (at + 0.5) / self.count

    def y(self, time: float) -> float:
        share = (min(time, self.high) - self.low) / (self.high - self.low)
        return self.foot - (self.foot - _TOP) * share


def trend_svg(trend: Trend) -> str:
    """Draw the series of a case or a figure: each run, each level and step, the accepted value, the anchor."""
    frame, of, times = _frame(trend), trend.of, trend.levels
    run = f'<path class="run" d="{_path([(frame.x(at), frame.y(t)) for at, t in enumerate(times)])}"/>'
    parts = [*_grid(frame, trend), run, _dots(frame, trend), *_levels(frame, trend), *_lines(frame, trend)]
    name = printable(f"{trend.key} {of.title}".rstrip())
    alt = f"{name}: {len(times)} runs, {of.text(min(times))} to {of.text(max(times))}"
    return (
        f'<figure class="trend"><svg viewBox="0 0 {_WIDE} {frame.height}" role="img" aria-label="{escape(alt)}">'
        f"{''.join(parts)}</svg></figure>"
    )


def _frame(trend: Trend) -> _Frame:
    times = trend.levels
    known = [line.time for line in (trend.accepted, trend.anchor) if line is not None and line.time > 0]
    levels = [*known, *(c.after for c in trend.changes), *(c.before for c in trend.changes), median(times)]
    edge = max(levels) * _FAR if len(times) > _FEW else max(times)
    high, low = max(min(max(times), edge), *levels), min(*times, *levels)
    room = (high - low) * 0.08 or high * 0.05
    floor = min(low, trend.of.raised)  # the figure is 0
    height = _LOWER if trend.of.title else _HIGH
    return _Frame(count=len(times), low=max(floor, low - room), high=high + room, height=height)


def _path(points: Sequence[tuple[float, float]]) -> str:
    """Return a path through points, in relative whole units, which are half as long as positions."""
    whole = [(round(x), round(y)) for x, y in points]
    heights = [y for _, y in whole]
    flat = {at for at in range(1, len(whole) - 1) if heights[at - 1] == heights[at] == heights[at + 1]}
    corners = [place for at, place in enumerate(whole) if at not in flat]
    steps = [(x - before_x, y - before_y) for (before_x, before_y), (x, y) in pairwise(corners)]
    moves = " ".join(f"{right} {down}" if down < 0 else f"{right},{down}" for right, down in steps)
    x, y = corners[0]
    return f"M{x},{y}" + (f"l{moves}" if steps else "")


def _grid(frame: _Frame, trend: Trend) -> Iterator[str]:
    of, times = trend.of, [entry.time for entry in trend.entries]
    up = distinct_ticks(Axis(low=frame.low, high=frame.high, label="", zero=of.raised,
              whole=of.are_integers(times), binary=of.dimension is Dimension.BYTES), of.text, 4)  # fmt: skip
    for time in up.ticks(5):
        y = frame.y(time)
        yield f'<path class="grid" d="M{_LEFT},{y:.0f}H{_WIDE - _RIGHT}"/>'
        yield f'<text x="{_WIDE - _RIGHT + 6}" y="{y + 4:.0f}">{up.text(time)}</text>'
    last = len(trend.entries) - 1
    for day, at in {escape(trend.entries[at].when[:10]): at for at in (last, last // 2, 0)}.items():  # each day once
        anchor = "end" if at == last else "middle"
        anchor = "start" if at == 0 else anchor
        yield f'<text x="{frame.x(at):.0f}" y="{frame.height - 8}" text-anchor="{anchor}">{day}</text>'


def _dots(frame: _Frame, trend: Trend) -> str:
    """Return the newest runs as dots, with an arrowhead over each that lies above the drawing."""
    times = trend.levels
    first = max(0, len(times) - _DOTS) if len(times) > 2 * _DOTS else 0
    places = [(round(frame.x(at)), round(frame.y(time))) for at, time in enumerate(times)][first:]
    moves = (f"m{x - before_x},{y - before_y}h0" for (before_x, before_y), (x, y) in pairwise(places))
    beyond = ((frame.x(at), trend.of.text(time)) for at, time in enumerate(times) if time > frame.high)
    arrows = (f'<path class="beyond" d="M{x - 5:.0f},28h10l-5,-8z"><title>{text}</title></path>' for x, text in beyond)
    left, top = places[0]
    return f'<path class="dot" d="M{left},{top}h0{"".join(moves)}"/>{"".join(arrows)}'


def _levels(frame: _Frame, trend: Trend) -> Iterator[str]:
    if not 0 < len(trend.changes) <= _STEPS:
        return
    edges = [0, *(change.index for change in trend.changes), len(trend.entries)]
    level = [trend.changes[0].before, *(change.after for change in trend.changes)]
    for (a, b), time in zip(pairwise(edges), level):
        yield f'<path class="level" d="M{frame.x(a - 0.5):.0f},{frame.y(time):.0f}H{frame.x(b - 0.5):.0f}"/>'
    free = [0.0, 0.0]
    for change in trend.changes:
        x = frame.x(change.index - 0.5)
        yield f'<path class="step" d="M{x:.0f},{_TOP}V{frame.foot}"/>'
        at = short_commit(trend.entries[change.index].commit, 7) or trend.entries[change.index].when[:10]
        text = f"{trend.of.step(change.before, change.after)} at {at}"
        left = min(x + 4, _WIDE - _RIGHT - _LETTER * len(text))
        row = next((row for row, end in enumerate(free) if end <= left), None)
        if row is not None:  # otherwise the table of levels has it
            free[row] = left + _LETTER * (len(text) + 1)
            yield f'<text class="says" x="{left:.0f}" y="{12 + 13 * row}">{escape(text)}</text>'


def _lines(frame: _Frame, trend: Trend) -> Iterator[str]:
    """Yield the accepted value and the anchor; if they are equal, only one line."""
    lines = {line.time: name for name, line in (("anchor", trend.anchor), ("accepted", trend.accepted)) if line}
    for time, name in lines.items():
        y = frame.y(time)
        yield f'<path class="{name}" d="M{_LEFT},{y:.0f}H{_WIDE - _RIGHT}"/>'
        text = f"{name} {trend.of.text(time)}"
        at_right = any(-4 < y - frame.y(one) < 20 for one in trend.levels[-_DOTS:])  # by the newest runs, at the right
        place = f'x="{_LEFT + 4}"' if at_right else f'x="{_WIDE - _RIGHT - 4}" text-anchor="end"'
        yield f'<text {place} y="{y - 4:.0f}">{text}</text>'


def sparkline(numbers: Sequence[float]) -> str:
    """Return the newest of a series, as small as a word."""
    line = numbers[-_POINTS:]
    if len(line) < 2:
        return ""
    middle = (max(line) + min(line)) / 2
    reach = max(max(line) - middle, abs(middle) * _STILL) or 1.0
    wide, high = (_SPARK_WIDE - 2) / (len(line) - 1), _SPARK_HIGH / 2
    points = [(1 + at * wide, high - (number - middle) / reach * (high - 2)) for at, number in enumerate(line)]
    return f'<svg class="spark" viewBox="0 0 {_SPARK_WIDE} {_SPARK_HIGH}"><path d="{_path(points)}"/></svg>'


def label(name: str) -> str:
    """Return a long name that may be broken between its words."""
    text = escape(printable(name))
    return re.sub(r"(::|/|\[|(?<=[a-z\d])_(?=[a-z\d]))", r"\1<wbr>", text)


_COLUMNS = range(1, 16)

SITE_STYLE = (
    f"""
{", ".join(f".n{at} :is(td,th):nth-child({at})" for at in _COLUMNS)} {{ text-align:right; white-space:nowrap }}
{", ".join(f".s{at} td:nth-child({at})" for at in _COLUMNS)}, td.s {{ white-space:nowrap }}"""
    """
.trail { font-size:.95rem; margin:0 }
.slower { color:var(--bad) } .faster { color:var(--good) } p.good { color:var(--good); font-weight:600 }
.cards { display:flex; flex-wrap:wrap; gap:.8rem; margin:1rem 0 }
.cards > div { border:1px solid var(--line); border-radius:6px; padding:.6rem .9rem; min-width:9rem; max-width:22rem }
.cards dt { color:var(--soft); font-size:.85rem } .cards dd { margin:0; font-size:1.3rem; font-weight:600 }
.cards p { margin:.15rem 0 0; font-size:.88rem; color:var(--soft); overflow-wrap:anywhere }
figure.trend { border:1px solid var(--line); border-radius:6px; margin:1rem 0; overflow-x:auto; direction:rtl }
figure.trend svg { direction:ltr }
figure.trend svg { display:block; width:100%; min-width:40rem; height:auto; font:12px system-ui, sans-serif }
svg text { fill:var(--soft); paint-order:stroke; stroke:var(--paper); stroke-width:4px }
svg .dot { fill:none; stroke:var(--mark); stroke-width:6; stroke-linecap:round }
svg .run { fill:none; stroke:var(--mark); stroke-opacity:.45 } svg .beyond { fill:var(--mark) }
svg .level { fill:none; stroke:var(--mark2); stroke-width:2 } svg .step { stroke:var(--soft); stroke-dasharray:2 4 }
svg .accepted { stroke:var(--good); stroke-dasharray:6 4 } svg .anchor { stroke:var(--warn); stroke-dasharray:2 3 }
svg .grid { stroke:var(--line) } svg .says { fill:var(--ink) }
svg.spark { width:7.5rem; height:1.5rem; display:block }
svg.spark path { fill:none; stroke:var(--mark); stroke-width:1.5 }
td { vertical-align:middle } td .outcome { font-size:.8em } td:first-child:not(.s1 *, .n1 *) { min-width:12rem }
"""
)
