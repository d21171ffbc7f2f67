"""Drawings as SVG text: axes and marks that pictures share. Colours come from the page around them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from html import escape

from pytest_perfgate.model.values import value

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
    said = f"<title>{escape(title)}</title>" if title else ""
    return f'<circle cx="{px:.1f}" cy="{py:.1f}" r="{radius}" fill="{colour}">{said}</circle>'


def words(x: float, y: float, text: str, *, anchor: str = "start", colour: str = INK) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'


def box(x: float, y: float, width: float, height: float, *, colour: str = MARK, title: str = "") -> str:
    said = f"<title>{escape(title)}</title>" if title else ""
    wide = max(width, 0.4)
    return f'<rect x="{x:.2f}" y="{y:.2f}" width="{wide:.2f}" height="{height:.2f}" fill="{colour}">{said}</rect>'


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
