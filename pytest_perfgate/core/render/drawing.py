"""The parts of pictures: axes, marks, fills with different patterns, fitted text."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from html import escape

from pytest_perfgate.model.metric import Bar, Picture
from pytest_perfgate.model.privacy import Names, shareable
from pytest_perfgate.model.values import value

INK, SOFT, MARK, OTHER = "currentColor", "var(--soft,#5b6570)", "var(--mark,#2f6fb7)", "var(--mark2,#b3541e)"
PAPER = "var(--paper,#fff)"
_PAPER, _BLACK = "#fff", "#1b1f24"
_NAMED = re.compile(r"var\(--\w+,(#\w+)\)")

WIDE, NARROW = 760, 344  # pixels of a picture, on a page and on a phone

Place = tuple[float, float]  # pixels from the left and from the top

SIZE, _LETTER = 12, 0.61
"""The height of a letter in pixels, and the width of a usual one by its height, in the wider of a page's fonts."""
_MOST = 6  # digits of a tick

FILLS = {
    "compute": ("var(--f1,#a9c8ec)", ""),
    "exposed": ("var(--f2,#f6b48a)", "M-1,1 l2,-2 M0,6 l6,-6 M5,7 l2,-2"),
    "hidden": ("var(--f3,#bfe3c8)", "M3,2 v2"),
    "copies": ("var(--f4,#d9c8ec)", "M3,0 v6"),
    "other": ("var(--f5,#f2dd94)", "M0,3 h6"),
    "idle": ("var(--f6,#eef1f4)", ""),
    "worse": ("var(--f2,#f6b48a)", "M-1,1 l2,-2 M0,6 l6,-6 M5,7 l2,-2"),
    "better": ("var(--f3,#bfe3c8)", "M3,2 v2"),
}
"""Colour and pattern of each area; the pattern alone distinguishes them."""


def percent(share: float) -> str:
    """Return a tick of an axis of shares."""
    return f"{share * 100:.0f} %"


@value
class Axis:
    """A range of values along a side of a picture."""

    low: float
    high: float
    label: str
    log: bool = False
    text: Callable[[float], str] = "{:g}".format
    """Returns the text of a tick."""
    whole: bool = False
    """Whether values are counts, so that no tick lies between whole numbers."""
    binary: bool = False
    """Whether values are bytes, whose units are powers of 1,024."""
    zero: float = 0.0
    """The place of 0, for figures that are raised."""

    def place(self, number: float) -> float:
        low, high, number = (math.log10(max(v, 1e-300)) if self.log else v for v in (self.low, self.high, number))
        return (number - low) / (high - low) if high > low else 0.5

    def ticks(self, count: int = 6) -> list[float]:
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            jump = max(1, (last - first) // max(1, count))
            powers = [10.0**power for power in range(first, last + 1, jump)]
            inside = [power for power in powers if self.low <= power <= self.high]
            finer = [m * 10.0**power for power in range(first - 1, last + 1) for m in (1, 2, 5)]
            return inside if len(inside) > 2 else [tick for tick in finer if self.low <= tick <= self.high]
        low, high = self.low - self.zero, self.high - self.zero
        unit = 1024.0 ** math.floor(math.log(max(high, 1.0), 1024)) if self.binary else 1.0
        step = unit * nice_step((high - low) / max(1, count) / unit)
        step = max(1.0, step) if self.whole or self.binary else step
        first = math.ceil(low / step)
        return [self.zero + step * number for number in range(first, math.floor(high / step + 1e-9) + 1)]


@value
class Frame:
    """The place of a picture's axes in pixels, with room for labels."""

    x: Axis
    y: Axis
    width: int = 720
    height: int = 360
    left: int = 74
    bottom: int = 48
    top: int = 14
    right: int = 18

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the pixel of a point, kept inside the frame."""
        across = min(1.0, max(0.0, self.x.place(x)))
        up = min(1.0, max(0.0, self.y.place(y)))
        px = self.left + across * (self.width - self.left - self.right)
        return px, self.height - self.bottom - up * (self.height - self.bottom - self.top)


def picture(frame: Frame, marks: Sequence[str], alt: str) -> str:
    """Return a whole drawing: frame, ticks, then the marks."""
    return complete_drawing(frame.width, frame.height, [*grid(frame), *marks], alt)


def complete_drawing(width: float, height: float, marks: Sequence[str], alt: str) -> str:
    """Return a whole drawing of these marks, with the patterns that they use under unique names."""
    body = "".join(marks)
    own = f"p{zlib.crc32(f'{width}{alt}{body}'.encode()):08x}"
    patterns = "".join(_pattern(own, name) for name in FILLS if f"url(#{name})" in body)
    for name in FILLS:
        body = body.replace(f"url(#{name})", f"url(#{own}-{name})")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" aria-label="{escape(alt, quote=True)}" font-family="system-ui,sans-serif" '
        f'font-size="{SIZE}">{f"<defs>{patterns}</defs>" if patterns else ""}{body}</svg>'
    )


def responsive(
    name: str, draw: Callable[[int], str], alt: str, key: Sequence[str] = (), bars: Sequence[Bar] = ()
) -> Picture:
    """Return the picture for a page and a phone, and the bars that a terminal shows instead."""
    return Picture(svg=draw(WIDE), narrow=draw(NARROW), alt=alt, name=name, key=tuple(key), bars=tuple(bars))


def _pattern(own: str, name: str) -> str:
    colour, path = FILLS[name]
    lines = f'<path d="{path}" stroke="{INK}" stroke-opacity=".7" stroke-width="1.1"/>' if path else ""
    return (
        f'<pattern id="{own}-{name}" width="6" height="6" patternUnits="userSpaceOnUse" color="{INK}">'
        f'<rect width="6" height="6" fill="{colour}"/>{lines}</pattern>'
    )


def filled(name: str) -> str:
    """Return the fill of a mark: a plain colour, or the colour with its pattern."""
    colour, path = FILLS[name]
    return f"url(#{name})" if path else colour


def standalone(svg: str) -> str:
    """Return the drawing for a file of its own, with a paper background and plain colours."""
    # Outside of a page a viewer's background may be dark, and black lines would be invisible.
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


def words(x: float, y: float, text: str, *, anchor: str = "start", colour: str = INK, bold: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}"{weight}>{escape(text)}</text>'


def outlined_text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    """Return text over a pattern, with an edge in the paper's colour that keeps it readable."""
    plain = words(x, y, text, anchor=anchor)
    return plain.replace("<text ", f'<text paint-order="stroke" stroke="{PAPER}" stroke-width="3.5" ', 1)


def box(x: float, y: float, width: float, height: float, title: str) -> str:
    size = f'width="{max(width, 0.4):.2f}" height="{height:.2f}"'
    return f'<rect x="{x:.2f}" y="{y:.2f}" {size} fill="{MARK}"><title>{escape(title)}</title></rect>'


def area(x: float, y: float, width: float, height: float, name: str, title: str = "") -> str:
    """Return a box of one of the fills, with an outline that shows its shape even if the colour is faint."""
    text = f"<title>{escape(title)}</title>" if title else ""
    return (
        f'<rect x="{x:.2f}" y="{y:.2f}" width="{max(width, 0.4):.2f}" height="{height:.2f}" fill="{filled(name)}" '
        f'stroke="{SOFT}" stroke-width=".6">{text}</rect>'
    )


def rule(start: Place, end: Place, *, colour: str = SOFT, dash: str = "", wide: float = 1) -> str:
    """Return a straight line between two pixels."""
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    ends = f'x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{wide:g}"{dashes}/>'


def text_width(text: str) -> float:
    """Return the largest width of a text in pixels, estimated without its font."""
    return len(text) * SIZE * _LETTER


def shortened(text: str, pixels: float) -> str:
    """Return the text, or as much of it as fits; "" if fewer than four letters fit."""
    if text_width(text) <= pixels:
        return text
    letters = int(pixels / (SIZE * _LETTER)) - 1
    whole = shareable(text, Names())  # half a name would be unrecognisable
    if len(whole) <= letters + 1:
        return whole
    return f"{whole[:letters]}…" if letters >= 3 else ""


def legend(entries: Sequence[tuple[str, str]], left: float, width: float) -> tuple[list[str], float]:
    """Return a legend of fills in as many lines as needed, and where its last line ends."""
    marks, x, y = [], left, 2.0
    for name, text in entries:
        needs = 20 + text_width(text) + 14
        if x > left and x + needs > left + width:
            x, y = left, y + 19
        marks += [area(x, y, 14, 12, name), words(x + 20, y + 10.5, shortened(text, width - 20))]
        x += needs
    return marks, y + 19 if entries else 2.0


def spread_out(places: Sequence[float], least: float, low: float, high: float) -> list[float]:
    """Return the places moved apart so that labels of this height do not overlap."""
    order = sorted(range(len(places)), key=places.__getitem__)
    moved = list(places)
    floor = low
    for at in order:
        moved[at] = max(moved[at], floor)
        floor = moved[at] + least
    ceiling = high
    for at in reversed(order):
        moved[at] = min(moved[at], ceiling)
        ceiling = moved[at] - least
    return moved


def nice_step(rough: float) -> float:
    """Return the nearest 1, 2 or 5 times a power of ten."""
    if rough <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    return next((m * power for m in (1, 2, 5) if m * power >= rough * 0.999), 10 * power)


def distinct_ticks(axis: Axis, text: Callable[[float, int], str], digits: int) -> Axis:
    """Return the axis with ticks of at least so many digits, and of more where they would read alike."""
    ticks = axis.ticks()
    if len(ticks) > 1 and (top := max(abs(tick - axis.zero) for tick in ticks)):
        digits = max(digits, 1 + math.floor(math.log10(top)) - math.floor(math.log10(ticks[1] - ticks[0]) + 1e-9))
    return replace(axis, text=lambda tick: text(tick, min(digits, _MOST)))


def margin(axis: Axis, title: bool) -> int:
    """Return the pixels left of a frame for its longest tick, and for the axis's name if it has one."""
    return math.ceil(12 + (20 if title else 0) + max((text_width(axis.text(tick)) for tick in axis.ticks()), default=0))


def grid(frame: Frame) -> Iterator[str]:
    """Yield both axes with as many ticks as fit."""
    (x0, y0), (x1, y1) = frame.at(frame.x.low, frame.y.low), frame.at(frame.x.high, frame.y.high)
    yield f'<path d="M{x0:.1f},{y1:.1f} V{y0:.1f} H{x1:.1f}" fill="none" stroke="{SOFT}"/>'
    for tick, label_x in _separate_ticks(frame):
        px, _ = frame.at(tick, frame.y.low)
        yield f'<path d="M{px:.1f},{y0:.1f} v5" stroke="{SOFT}"/>'
        yield words(label_x, y0 + 18, frame.x.text(tick), anchor="middle", colour=SOFT)
    for tick in frame.y.ticks(max(2, min(6, int((y0 - y1) / 28)))):
        _, py = frame.at(frame.x.low, tick)
        yield f'<path d="M{x0:.1f},{py:.1f} H{x1:.1f}" stroke="{SOFT}" stroke-opacity=".25"/>'
        yield words(x0 - 8, py + 4, frame.y.text(tick), anchor="end", colour=SOFT)
    yield words((x0 + x1) / 2, frame.height - 8, frame.x.label, anchor="middle")
    if frame.y.label:
        turned = f"translate(14,{(y0 + y1) / 2:.1f}) rotate(-90)"
        yield f'<text transform="{turned}" text-anchor="middle" fill="{INK}">{escape(frame.y.label)}</text>'


def _separate_ticks(frame: Frame) -> list[tuple[float, float]]:
    """Return ticks whose labels do not overlap, each with the middle of its label inside the frame."""
    places: list[tuple[float, float]] = []
    for count in (6, 5, 4, 3, 2):
        ticks = frame.x.ticks(count)
        halves = [text_width(frame.x.text(tick)) / 2 for tick in ticks]
        across = [frame.at(tick, frame.y.low)[0] for tick in ticks]
        middles = [max(half, min(x, frame.width - 2 - half)) for x, half in zip(across, halves)]
        places = list(zip(ticks, middles))
        gaps = [b - a - p - q for a, b, p, q in zip(middles, middles[1:], halves, halves[1:])]
        if all(gap > 6 for gap in gaps):
            return places
    separate, end = list[tuple[float, float]](), -math.inf
    for (tick, middle), half in zip(places, halves):
        if middle - half > end + 6:
            separate.append((tick, middle))
            end = middle + half
    return separate
