"""Rates against intensity under the roof of a device."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

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
    fitted,
    grid,
    haloed,
    line,
    responsive,
    rule,
    sheet,
    spread_out,
    text_width,
    words,
)
from pytest_perfgate.core.render.words import quantity
from pytest_perfgate.model.metric import Bar, Picture
from pytest_perfgate.model.values import Dimension, value


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
        marks = [*grid(frame), *_roofs(frame, ceiling), *_points(frame, points, _labels(frame, ceiling))]
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
        y=Axis(low=min(up, default=peak / 1e3) / 3, high=max(peak, *up, 0.0) * 2.2, log=True, text=_rate,
               label="operations per second" if width > NARROW else ""),
        width=width, height=380 if width > NARROW else 330, left=74 if width > NARROW else 58,
    )  # fmt: skip


def _rate(number: float) -> str:
    return quantity(number, Dimension.FLOPS, 2).removesuffix("FLOPS").strip()


def _plain(number: float) -> str:
    return f"{number:,.0f}" if number >= 1 else f"{number:g}"


def _roofs(frame: Frame, ceiling: Ceiling) -> Iterator[str]:
    """The slope of the memory, a flat roof a type, and the intensity at which both bind."""
    band = ceiling.bandwidth
    top = max(rate for _, rate in ceiling.peaks)
    yield line(frame, [(max(frame.x.low, frame.y.low / band), max(frame.y.low, frame.x.low * band)), (top / band, top)])
    for number, (_, rate) in enumerate(_by_rate(ceiling)):
        yield line(frame, [(rate / band, rate), (frame.x.high, rate)], dash="" if number == 0 else "7 4")
    x, y = frame.at(top / band, top)
    yield rule((x, y), frame.at(top / band, frame.y.low), dash="3 4")
    for label in _labels(frame, ceiling):
        yield haloed(label.x, label.y, label.text, label.anchor)


@value
class Label:
    """Words of the roof, where numbers may not stand."""

    text: str
    x: float
    y: float
    anchor: str

    def covers(self, place: Place, beside: float) -> bool:
        wide = text_width(self.text)
        left = self.x - (wide if self.anchor == "end" else 0.0)
        return left - beside < place[0] < left + wide + beside and self.y - 10 - beside < place[1] < self.y + 3 + beside


def _by_rate(ceiling: Ceiling) -> list[tuple[str, float]]:
    return sorted(ceiling.peaks, key=lambda pair: -pair[1])


def _labels(frame: Frame, ceiling: Ceiling) -> list[Label]:
    """The types at the right end of their roofs, and the balance at the foot of its line."""
    peaks = _by_rate(ceiling)
    places = [frame.at(frame.x.high, rate)[1] - 6 for _, rate in peaks]
    heights = spread_out(places, 15, frame.top + 9, frame.height - frame.bottom - 22)
    right = frame.width - frame.right - 4.0
    texts = (f"{dtype} {quantity(rate, Dimension.FLOPS, 3)}" for dtype, rate in peaks)
    balance = peaks[0][1] / ceiling.bandwidth
    x, floor = frame.at(balance, frame.y.low)
    turned = x > frame.width * 0.6
    foot = Label(
        text=f"balance {_plain(balance)}",
        x=x - 5 if turned else x + 5,
        y=floor - 8,
        anchor="end" if turned else "start",
    )
    return [*(Label(text=text, x=right, y=y, anchor="end") for text, y in zip(texts, heights)), foot]


_NEAR = tuple(
    (distance * math.cos(turn * math.pi / 6), distance * math.sin(turn * math.pi / 6))
    for distance in (0, 20, 32, 46, 62, 80)
    for turn in (range(12) if distance else (0,))
)
"""Where a number may stand beside its point, the nearest places first."""

_BADGE = 8.5


def _points(frame: Frame, points: Sequence[Point], labels: Sequence[Label]) -> Iterator[str]:
    """A disc where compute binds, else a square, with its number in it; one that has no room is led aside."""
    taken: list[Place] = []
    for number, point in enumerate(points, 1):
        x, y = frame.at(point.intensity, point.rate)
        title = f"<title>{escape(f'{number} {point.label}: {point.text}')}</title>"
        if point.before:
            a, b = frame.at(*point.before)
            yield rule((a, b), (x, y), colour=OTHER, wide=2)
            yield f'<circle cx="{a:.1f}" cy="{b:.1f}" r="4.5" fill="{PAPER}" stroke="{OTHER}" stroke-width="2"/>'
        near = ((x + dx, y + dy) for dx, dy in _NEAR)
        free = (at for at in near if _open(frame, at, taken) and not any(one.covers(at, _BADGE) for one in labels))
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
