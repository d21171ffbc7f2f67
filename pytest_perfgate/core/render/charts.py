"""Charts of a profile: stacked bars, histograms, steps, stairs with cliffs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from pytest_perfgate.core.render.drawing import (
    INK,
    NARROW,
    OTHER,
    PAPER,
    SOFT,
    Axis,
    Frame,
    area,
    complete_drawing,
    dot,
    grid,
    legend,
    line,
    margin,
    outlined_text,
    percent,
    responsive,
    rule,
    shortened,
    text_width,
    words,
)
from pytest_perfgate.core.render.words import plural, quantity
from pytest_perfgate.model.metric import Bar, Picture
from pytest_perfgate.model.values import Dimension, regex, value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

Key = Sequence[tuple[str, str]]
"""Fills with their meanings, in their order in a bar."""

TIME_KEY = (("compute", "computation"), ("exposed", "exposed communication"), ("copies", "exposed copies"),
            ("idle", "idle"))  # fmt: skip
"""Parts of a device's time that sum to it."""

MOST_ROWS = 24
"""The most bars of a picture; neighbouring rows are merged above that."""

_LINE, _STRIP, _BINS = 30, 24, 20


@value
class Row:
    """One bar: amounts in the order of the key, and text beside it."""

    label: str
    amounts: tuple[float, ...]
    text: str = ""
    spread: tuple[float, ...] = ()
    """The positions of single members from nothing to the whole bar: 0 to 1."""


def stacked(
    name: str, alt: str, rows: Sequence[Row], key: Key, tick: Callable[[float], str], note: str = ""
) -> Picture:
    """Return bars of stacked parts on one scale, each with the distribution of its members below it."""
    most = max((sum(row.amounts) for row in rows), default=0.0) or 1.0
    used = [(fill, text) for at, (fill, text) in enumerate(key) if any(row.amounts[at] > 0 for row in rows)]

    def draw(width: int) -> str:
        return _bars(width, rows, (key, used), (most, tick), note, alt)

    bars = [
        Bar(label=row.label, parts=tuple(amount / most for amount in row.amounts), text=_words_of(row)) for row in rows
    ]
    return responsive(name, draw, alt, [text for _, text in key], bars)


def _words_of(row: Row) -> str:
    return f"{row.text}  {sparkline(_counted(row.spread))}" if row.spread else row.text


def _bars(
    width: int,
    rows: Sequence[Row],
    keys: tuple[Key, Key],
    scale: tuple[float, Callable[[float], str]],
    note: str,
    alt: str,
) -> str:
    key, used = keys
    most, tick = scale
    narrow = width <= NARROW
    left = 0.0 if narrow else min(230.0, 12 + max((text_width(row.label) for row in rows), default=0.0))
    right = 2.0 if narrow else 12 + max((text_width(row.text) for row in rows), default=0.0)
    marks, y = legend(used, left, width - left)
    top, room = y + 4, width - left - right
    body: list[str] = []
    y = top
    for row in rows:
        if narrow:
            end = width - text_width(row.text) - 8
            body += [words(0, y + 12, shortened(row.label, end)), words(width, y + 12, row.text, anchor="end")]
            y += 17
        else:
            body += [words(left - 8, y + 16, shortened(row.label, left - 8), anchor="end")]
            body += [words(width, y + 16, row.text, anchor="end", colour=SOFT)]
        body += _row(row, key, (left, y, room / most))
        y += _LINE - 4
        if row.spread:
            body += _strip(row.spread, left, y, room * sum(row.amounts) / most)
            y += _STRIP
    ticks = Axis(low=0.0, high=most, label="", text=tick)
    marks += ruler(ticks, (left, room), (top, y))
    y += 20
    marks += body
    if note:
        marks.append(words(left, y + 12, shortened(note, width - left), colour=SOFT))
        y += 18
    return complete_drawing(width, y + 4, marks, alt)


def _row(row: Row, key: Key, place: tuple[float, float, float]) -> Iterator[str]:
    """Yield the parts of one bar, each with its share if it fits."""
    x, y, scale = place
    whole = sum(row.amounts) or 1.0
    for (fill, text), amount in zip(key, row.amounts):
        if amount <= 0:
            continue
        wide = amount * scale
        share = f"{amount / whole * 100:.0f} %"
        yield area(x, y, wide, _LINE - 8, fill, f"{row.label}: {text} {amount / whole * 100:.1f} %")
        if text_width(share) + 6 <= wide and len(row.amounts) > 1:
            yield outlined_text(x + wide / 2, y + 15.5, share)
        x += wide


def _counted(spread: Sequence[float]) -> list[int]:
    counts = [0] * _BINS
    for part in spread:
        counts[min(_BINS - 1, max(0, int(part * _BINS)))] += 1
    return counts


def _strip(spread: Sequence[float], left: float, y: float, room: float) -> Iterator[str]:
    """Yield the distribution of members as columns below their bar."""
    counts, wide = _counted(spread), room / _BINS
    most = max(counts)
    yield rule((left, y + _STRIP - 8), (left + room, y + _STRIP - 8))
    for at, count in enumerate(counts):
        if count:
            tall = 3 + (_STRIP - 12) * count / most
            text = f"{plural(count, 'kernel')} {at / _BINS * 100:.0f} % to {(at + 1) / _BINS * 100:.0f} % hidden"
            yield area(left + at * wide + 0.5, y + _STRIP - 8 - tall, max(wide - 1, 1), tall, "idle", text)


def ruler(axis: Axis, across: tuple[float, float], down: tuple[float, float]) -> Iterator[str]:
    """Yield ticks below all bars, with a faint line through them."""
    left, room = across
    last = -1e9
    for tick in axis.ticks(6 if room > 400 else 4):
        x, text = left + axis.place(tick) * room, axis.text(tick)
        yield f'<path d="M{x:.1f},{down[0] - 2:.1f} V{down[1]:.1f}" stroke="{SOFT}" stroke-opacity=".3"/>'
        half = text_width(text) / 2
        anchor = "end" if x + half > left + room else "middle"
        if x - 2 * half > last:
            yield words(x, down[1] + 14, text, anchor="start" if x < half else anchor, colour=SOFT)
            last = x + half


def merged(rows: Sequence[Row], most: int = MOST_ROWS) -> tuple[list[Row], int]:
    """Return at most that many rows, as means of neighbours, and how many form one."""
    if len(rows) <= most:
        return list(rows), 1
    size = math.ceil(len(rows) / most)
    return [_mean_row(rows[at : at + size]) for at in range(0, len(rows), size)], size


def _mean_row(rows: Sequence[Row]) -> Row:
    parts = zip(*(row.amounts for row in rows))
    return Row(
        label=f"{rows[0].label} – {rows[-1].label}" if len(rows) > 1 else rows[0].label,
        amounts=tuple(sum(part) / len(rows) for part in parts),
        text=quantity(sum(sum(row.amounts) for row in rows) / len(rows), Dimension.TIME, 3),
    )


def overlap_row(label: str, hidden: float, whole: float, parts: Sequence[float]) -> Row:
    """Return one bar of the hidden and the exposed part."""
    share = hidden / whole if whole else 0.0
    text = f"{share * 100:.0f} % of {quantity(whole, Dimension.TIME, 3)}"
    return Row(label=label, amounts=(share, 1 - share), text=text, spread=tuple(parts))


def overlap_bars(rows: Sequence[Row], of: str) -> Picture:
    """Return bars of the hidden parts, the most important first, with the distribution of the kernels."""
    more = len(rows) - MOST_ROWS
    note = f"{more} more are in the table" if more > 0 else ""
    key = (("hidden", "hidden by compute"), ("exposed", "exposed"))
    alt = f"Hidden communication per {of}; the columns below a bar count its kernels from 0 % to 100 % hidden"
    return stacked("overlap", alt, rows[:MOST_ROWS], key, percent, note)


_SPARKS = " ▁▂▃▄▅▆▇█"


def sparkline(numbers: Sequence[float]) -> str:
    """Return numbers as columns of one line's height; the smallest positive one is still visible."""
    most = max(numbers, default=0)
    if most <= 0:
        return " " * len(numbers)
    return "".join(_SPARKS[math.ceil(number / most * (len(_SPARKS) - 1)) if number > 0 else 0] for number in numbers)


_LEADING, _FEWEST = regex(r"^([ ▁-█]+)  (?=[^ ▁-█])"), 8


def with_shorter_sparkline(text: str, by: int) -> str:
    """Return a text whose leading sparkline is so much shorter: columns that join keep the highest."""
    line = _LEADING.match(text)
    left = len(line[1]) - by if line else 0
    if not line or by <= 0 or left < _FEWEST:
        return text
    edges = [at * len(line[1]) // left for at in range(left + 1)]
    return "".join(map(max, (line[1][a:b] for a, b in pairwise(edges)))) + text[len(line[1]) :]


@value
class Bins:
    """Shares of the members and of their time between edges that grow by a factor."""

    edges: tuple[float, ...]
    members: tuple[float, ...]
    time: tuple[float, ...]


SHORT_NS = 10_000
"""The longest short kernel: starting it takes about as long as it runs."""


def lengths_picture(lengths: Ints) -> Picture:
    """Draw how many kernels are short, and their share of the time."""
    import numpy as np

    lasting = lengths[lengths > 0].astype(np.float64)
    edges = _edges(float(lasting.min()), float(lasting.max()))
    counts, _ = np.histogram(lasting, edges)
    times, _ = np.histogram(lasting, edges, weights=lasting)
    short = lasting <= SHORT_NS
    parts = f"{short.mean() * 100:.0f} % of them, {lasting[short].sum() / lasting.sum() * 100:.0f} % of their time"
    alt = f"Lengths of {plural(len(lasting), 'kernel')}: up to 10 µs are {parts}"
    members, time = (tuple((column / column.sum()).tolist()) for column in (counts, times))
    return histogram(
        "kernels", alt, Bins(edges=tuple(edges), members=members, time=time), SHORT_NS, "length of a kernel"
    )


def _edges(low: float, high: float) -> list[float]:
    """Return 1, 2, 5, 10 ... around the lengths, including the limit of short ones."""
    ladder = [m * 10.0**power for power in range(2, 20) for m in (1, 2, 5)]
    first = max([0, *(at for at, edge in enumerate(ladder) if edge <= min(low, SHORT_NS / 2))])
    last = min(at for at, edge in enumerate(ladder) if edge > max(high, 2 * SHORT_NS))
    return [*([] if ladder[first] <= low else [low]), *ladder[first : last + 1]]


def histogram(name: str, alt: str, bins: Bins, short: float, label: str) -> Picture:
    """Draw two columns for each bin, their number and their time; those up to ``short`` are highlighted."""
    high = max((*bins.members, *bins.time), default=0.0) * 1.12 or 1.0
    names = (
        ("exposed", "share of kernels, short ones"),
        ("compute", "share of kernels"),
        ("other", "share of their time"),
    )

    def draw(width: int) -> str:
        narrow = width <= NARROW
        head, top = legend(names, 4, width - 8)
        frame = Frame(
            x=Axis(low=bins.edges[0], high=bins.edges[-1], label=label, log=True, text=_time),
            y=Axis(low=0.0, high=high, label="" if narrow else "share", text=percent),
            width=width, height=round(top) + (230 if narrow else 270), top=round(top) + 10, left=48 if narrow else 74,
        )  # fmt: skip
        marks = [*head, *grid(frame)]
        for low, up, members, time in zip(bins.edges, bins.edges[1:], bins.members, bins.time):
            x, y0 = frame.at(low, 0)
            wide = (frame.at(up, 0)[0] - x) / 2
            fill = "exposed" if up <= short * 1.0001 else "compute"
            for at, (share, kind) in enumerate(((members, fill), (time, "other"))):
                if share > 0:
                    tall = y0 - frame.at(low, share)[1]
                    title = f"{_time(low)} to {_time(up)}: {share * 100:.1f} %"
                    marks.append(area(x + at * wide + 0.5, y0 - tall, wide - 1, tall, kind, title))
        x, y = frame.at(short, high)
        marks += [rule((x, y), frame.at(short, 0), dash="4 3"), outlined_text(x + 4, y + 11, _time(short), "start")]
        return complete_drawing(width, frame.height, marks, alt)

    key = ["kernels", "their time"]
    bars = [
        Bar(
            label=f"{_time(low)} to {_time(up)}",
            parts=(members,),
            text=f"{members * 100:.1f} % of kernels, {time * 100:.1f} % of time",
        )
        for low, up, members, time in zip(bins.edges, bins.edges[1:], bins.members, bins.time)
        if members > 0
    ]
    return responsive(name, draw, alt, key[:1], bars)


def _time(nanoseconds: float) -> str:
    return quantity(nanoseconds, Dimension.TIME, 2)


@value
class Panel:
    """A figure that falls in steps, and the current position."""

    label: str
    stairs: tuple[tuple[float, float], ...]
    """The figure from each of these positions on."""
    here: tuple[float, float] | None
    cliff: float | None
    """The last position before the next fall."""
    text: Callable[[float], str] = "{:g}".format


def occupancy_stairs(alt: str, panels: Sequence[Panel], bars: Sequence[Bar] = ()) -> Picture:
    """Draw the warps against each resource, panels side by side, on a phone one below the other."""
    high = max((level for panel in panels for _, level in panel.stairs), default=1.0) * 1.18

    def draw(width: int) -> str:
        across = 1 if width <= NARROW else min(3, len(panels))
        wide, tall = width // across, 216
        marks = []
        for number, panel in enumerate(panels):
            x, y = (number % across) * wide, (number // across) * tall
            body = "".join(_panel(panel, wide, tall, high, "" if number % across else "warps"))
            marks.append(f'<g transform="translate({x},{y})">{body}</g>')
        return complete_drawing(width, math.ceil(len(panels) / across) * tall, marks, alt)

    return responsive("occupancy", draw, alt, (), bars)


def _panel(panel: Panel, width: int, tall: int, high: float, label: str) -> Iterator[str]:
    last = panel.stairs[-1][0]
    frame = Frame(
        x=Axis(low=panel.stairs[0][0], high=last, label=panel.label, text=panel.text),
        y=Axis(low=0.0, high=high, label=label),
        width=width, height=tall, left=56 if label else 36, right=16, top=20,
    )  # fmt: skip
    yield from grid(frame)
    points = []
    for (x, level), (until, _) in zip(panel.stairs, (*panel.stairs[1:], (last, 0.0))):
        points += [(x, level), (until, level)]
    yield line(frame, points)
    if panel.cliff is not None:
        x, y = frame.at(panel.cliff, high)
        yield rule((x, y), frame.at(panel.cliff, 0), colour=OTHER, dash="4 3", wide=1.6)
        turned = x > width * 0.6
        text = f"falls past {panel.text(panel.cliff)}"
        yield outlined_text(x - 4 if turned else x + 4, y + 11, text, "end" if turned else "start")
    if panel.here is not None:
        x, y = frame.at(*panel.here)
        yield rule((x, y - 7), (x, frame.top), colour=SOFT)
        yield f'<path d="M{x:.1f},{y - 7:.1f} l7,7 l-7,7 l-7,-7 z" fill="{PAPER}" stroke="{INK}" stroke-width="2"/>'
        text = f"here: {panel.text(panel.here[0])}"
        half = text_width(text) / 2
        yield words(min(max(x, half), width - half), frame.top - 5, text, anchor="middle")  # above every line


def mfu_of_steps(alt: str, steps: Sequence[tuple[str, float]]) -> Picture:
    """Draw the MFU of each step as a line, and its mean."""
    figures, label = [figure for _, figure in steps], "MFU, data sheet"
    mean, high = sum(figures) / len(figures), max(figures) * 1.2 or 1.0

    def text(number: float) -> str:
        return quantity(number, Dimension.FRACTION, 3)

    def step(at: float) -> str:
        whole = round(at)
        return steps[whole][0] if abs(at - whole) < 1e-6 and 0 <= whole < len(steps) else ""

    def draw(width: int) -> str:
        up = Axis(low=0.0, high=high, label=label if width > NARROW else "", text=text)
        frame = Frame(
            x=Axis(low=-0.5, high=len(steps) - 0.5, label="step", text=step, whole=True),
            y=up, width=width, height=240, left=margin(up, title=width > NARROW),
        )  # fmt: skip
        x, y = frame.at(frame.x.high, mean)
        marks = [*grid(frame), rule((frame.left, y), (x, y), dash="5 4"), line(frame, list(enumerate(figures)))]
        marks += [dot(frame, at, one, title=f"step {steps[at][0]}: {text(one)}") for at, one in enumerate(figures)]
        marks.append(outlined_text(frame.left + 6, frame.top + 10, f"mean {text(mean)} (dashed)", "start"))
        return complete_drawing(width, frame.height, marks, alt)

    spark = f"{sparkline(figures[-60:])}  {text(min(figures))} to {text(max(figures))}"
    return responsive("mfu", draw, alt, (), [Bar(label=label, text=spark)])
