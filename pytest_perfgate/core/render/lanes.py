"""Timelines of streams, and call trees as icicles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pytest_perfgate.core.analysis import intervals
from pytest_perfgate.core.render.charts import Key, sparkline
from pytest_perfgate.core.render.drawing import (
    NARROW,
    SOFT,
    Axis,
    area,
    complete_drawing,
    filled,
    legend,
    outlined_text,
    responsive,
    rule,
    shortened,
    text_width,
    words,
)
from pytest_perfgate.core.render.words import quantity, signed
from pytest_perfgate.model.metric import Bar, Picture
from pytest_perfgate.model.values import Dimension, array_value, value

if TYPE_CHECKING:
    from pytest_perfgate.core.analysis.intervals import Spans

LANE_KEY = (
    ("compute", "computation"),
    ("hidden", "communication, hidden"),
    ("exposed", "communication, exposed (marked at the foot)"),
    ("copies", "copies and fills"),
)
"""The kinds of spans of streams."""

_TALL, _GAP, _LABEL = 20, 6, 196

_NAMED = 3.0
"""The least pixels of a span with a text on hover."""

_COLUMNS = 60
"""The columns of a sparkline."""


@array_value
class Lane:
    """One line of a timeline: spans of each fill, and texts on spans that are long enough."""

    label: str
    spans: tuple[tuple[str, Spans], ...]
    words: tuple[tuple[int, int, str], ...] = ()


@array_value
class Group:
    """Lanes on one scale, of a rank or a device, and what is marked across all of them."""

    title: str
    start: int
    end: int
    lanes: tuple[Lane, ...]
    marked: Spans | None = None

    @property
    def length(self) -> int:
        return max(self.end - self.start, 1)


def timeline(name: str, alt: str, groups: Sequence[Group], key: Key) -> Picture:
    """Draw lanes one below the other, all groups on one scale, each from the start of its own window."""
    fills = {fill for group in groups for lane in group.lanes for fill, spans in lane.spans if len(spans[0])}
    used = [(fill, text) for fill, text in key if fill in fills]

    def draw(width: int) -> str:
        narrow = width <= NARROW
        left = 0.0 if narrow else float(_LABEL)
        marks, y = legend(used, left, width - left)
        y += 14
        longest = max(group.length for group in groups)
        for group in groups:
            marks.append(words(0, y, shortened(group.title, width), bold=True))
            room = (width - left - 2.0) * group.length / longest
            group_marks, y = _group(group, (left, max(room, 40.0)), y, narrow=narrow)
            marks += group_marks
        return complete_drawing(width, y, marks, alt)

    return responsive(name, draw, alt, (), [bar for group in groups for bar in _sparks(group, several=len(groups) > 1)])


def _sparks(group: Group, *, several: bool) -> Iterator[Bar]:
    """Yield how busy each lane is over the window, and what is marked in a line of its own."""
    edges = np.linspace(group.start, group.end, _COLUMNS + 1).astype(np.int64)

    def spark(spans: Spans) -> str:
        parts = intervals.covered_by(edges[:-1], edges[1:], spans) / np.maximum(np.diff(edges), 1)
        return sparkline([*parts.tolist(), 1.0])[:-1]

    if several:
        yield Bar(label=group.title)
    for lane in group.lanes:
        starts = np.concatenate([spans[0] for _, spans in lane.spans])
        ends = np.concatenate([spans[1] for _, spans in lane.spans])
        union = intervals.union(starts, ends)
        yield Bar(label=lane.label, text=f"{spark(union)}  {intervals.length(union) / group.length * 100:.0f} % busy")
    if group.marked is not None and len(group.marked[0]):
        share = intervals.length(group.marked) / group.length
        yield Bar(label="exposed communication", text=f"{spark(group.marked)}  {share * 100:.0f} %")


def _group(group: Group, across: tuple[float, float], top: float, *, narrow: bool) -> tuple[list[str], float]:
    left, room = across
    scale = room / group.length
    each = _TALL + _GAP + (16 if narrow else 0)
    first = top + 24
    bottom = first + len(group.lanes) * each
    marks = list(_times(group, across, (first - 6, bottom)))
    if group.marked is not None:
        marks += _bands(group, group.marked, (left, scale), (first - 4, bottom - _GAP + 2))
    for number, lane in enumerate(group.lanes):
        y = first + number * each
        if narrow:
            marks.append(words(0, y + 11, shortened(lane.label, room)))
            y += 16
        else:
            marks.append(words(left - 8, y + 14, shortened(lane.label, left - 12), anchor="end"))
        marks.append(rule((left, y + _TALL), (left + room, y + _TALL)))
        for fill, spans in lane.spans:
            marks += _spans(group, spans, fill, (left, y, scale))
        marks += _words(group, lane, (left, y, scale))
    return marks, bottom + 20


def _times(group: Group, across: tuple[float, float], down: tuple[float, float]) -> Iterator[str]:
    left, room = across
    axis = Axis(
        low=0.0, high=float(group.length), label="", text=lambda at: quantity(at, Dimension.TIME, 3) if at else "0"
    )
    last = -1e9
    for tick in axis.ticks(8 if room > 400 else 5):
        x, text = left + axis.place(tick) * room, axis.text(tick)
        half = text_width(text) / 2
        anchor = "end" if x + half > left + room else "middle"
        anchor = "start" if tick == 0 else anchor
        yield f'<path d="M{x:.1f},{down[0]:.1f} V{down[1]:.1f}" stroke="{SOFT}" stroke-opacity=".3"/>'
        if x - 2 * half > last:
            yield words(x, down[0] - 4, text, anchor=anchor, colour=SOFT)
            last = x + half


def _bands(group: Group, marked: Spans, across: tuple[float, float], down: tuple[float, float]) -> Iterator[str]:
    """Yield marked spans through all lanes: a faint column, and a bar at its foot that needs no colour."""
    left, scale = across
    for start, end in visible(marked, 1 / scale):
        x, wide = left + (start - group.start) * scale, max((end - start) * scale, 0.8)
        yield (
            f'<rect x="{x:.2f}" y="{down[0]:.1f}" width="{wide:.2f}" height="{down[1] - down[0]:.1f}" '
            f'fill="var(--f2,#f6b48a)" fill-opacity=".28"/>'
        )
        yield f'<rect x="{x:.2f}" y="{down[1]:.1f}" width="{wide:.2f}" height="4" fill="currentColor"/>'


def _spans(group: Group, spans: Spans, fill: str, place: tuple[float, float, float]) -> Iterator[str]:
    """Yield wide spans as labelled boxes, and all others as one path."""
    left, y, scale = place
    small = []
    for start, end in visible(spans, 1 / scale):
        x, wide = left + (start - group.start) * scale, max((end - start) * scale, 0.6)
        if wide >= _NAMED:
            since = quantity(start - group.start, Dimension.TIME, 4)
            title = f"{fill}, {quantity(end - start, Dimension.TIME, 3)} from {since}"
            yield area(x, y, wide, _TALL, fill, title)
        else:
            small.append(f"M{x:.1f},{y:.1f}h{wide:.1f}v{_TALL}h-{wide:.1f}z")
    if small:
        yield f'<path d="{"".join(small)}" fill="{filled(fill)}" stroke="{SOFT}" stroke-width=".5"/>'


def visible(spans: Spans, pixel: float) -> list[tuple[int, int]]:
    """Merge spans closer than a pixel, so that a picture has a bounded size."""
    starts, ends = spans
    if not len(starts):
        return []
    separate = np.append(True, starts[1:] - ends[:-1] > pixel / 2)
    last = np.append(separate[1:], True)
    return list(zip(starts[separate].tolist(), ends[last].tolist()))


def _words(group: Group, lane: Lane, place: tuple[float, float, float]) -> Iterator[str]:
    left, y, scale = place
    last = -1e9
    for start, end, text in lane.words:
        middle = left + ((start + end) / 2 - group.start) * scale
        half = text_width(text) / 2
        if 2 * half + 4 <= (end - start) * scale and middle - half > last:
            yield outlined_text(middle, y + 14, text)
            last = middle + half


@value
class Node:
    """A place in a call tree: the time of it and all below, now and before a change."""

    name: str
    amount: float
    children: tuple[Node, ...] = ()
    before: float | None = None

    @property
    def width(self) -> float:
        """The width in the drawing, the longer time of both sides."""
        return max(self.amount, self.before or 0.0, sum(child.width for child in self.children))


_ROW, _DEEPEST, _LEAST, _TOGETHER = 24, 12, 2.0, "small ones together"


def icicle(alt: str, root: Node) -> Picture:
    """Draw the root on top and its calls below, by time; for two trees, coloured by what got slower or faster."""
    compared = root.before is not None
    key = [("worse", "slower: +"), ("better", "faster: −"), ("idle", "alike")] if compared else []

    def draw(width: int) -> str:
        for shown in (key, [*key, ("other", _TOGETHER)]):
            marks, top = legend(shown, 0, width)
            top += 6 if shown else 0
            nodes = list(_node(root, (1.0, top, (width - 2.0) / (root.width or 1.0)), 0, compared=compared))
            if not any(_TOGETHER in mark for _, mark in nodes):
                break
        deep = max((depth for depth, _ in nodes), default=0)
        marks += [mark for _, mark in nodes]
        return complete_drawing(width, top + (deep + 1) * _ROW + 4, marks, alt)

    return responsive("tree", draw, alt, ("share of the whole",), list(_branches(root, root.width or 1.0, 0)))


def _node(node: Node, place: tuple[float, float, float], depth: int, *, compared: bool) -> Iterator[tuple[int, str]]:
    x, y, scale = place
    wide = node.width * scale
    fill = _side(node) if compared else ("compute", "idle")[depth % 2]
    label_text = f"{node.name}: {_figure_text(node)}"
    yield depth, area(x, y, wide, _ROW - 2, fill, label_text)
    label = shortened(label_text if text_width(label_text) <= wide - 8 else node.name, wide - 8)
    if label:
        yield depth, outlined_text(x + 4, y + 15, label, "start")
    if depth + 1 >= _DEEPEST:
        return
    small = 0.0
    for child in sorted(node.children, key=lambda call: -call.width):
        if child.width * scale < _LEAST:
            small += child.width
            continue
        yield from _node(child, (x, y + _ROW, scale), depth + 1, compared=compared)
        x += child.width * scale
    if small * scale >= _LEAST:
        rest = sum(child.width * scale < _LEAST for child in node.children)
        yield depth + 1, area(x, y + _ROW, small * scale, _ROW - 2, "other", f"{rest} {_TOGETHER}")


def _side(node: Node) -> str:
    before = node.before or 0.0
    if abs(node.amount - before) <= 0.02 * max(node.amount, before):
        return "idle"
    return "worse" if node.amount > before else "better"


def _figure_text(node: Node) -> str:
    now = quantity(node.amount, Dimension.TIME, 3)
    if node.before is None:
        return now
    if not node.before or not node.amount:
        return f"{now}, new" if node.amount else f"gone, was {quantity(node.before, Dimension.TIME, 3)}"
    return f"{now}, {signed(node.amount / node.before - 1)}"


_BRANCHES, _SEEN = (6, 3, 2, 1), 0.02
"""The most branches of each depth in a terminal, and the least part of the whole for a line."""


def _branches(node: Node, whole: float, depth: int) -> Iterator[Bar]:
    """Yield the widest branches with what is in them, for a terminal."""
    yield Bar(label="  " * depth + node.name, parts=(node.width / whole,), text=_figure_text(node))
    if depth >= len(_BRANCHES):
        return
    widest = sorted(node.children, key=lambda one: -one.width)
    listed = [child for child in widest[: _BRANCHES[depth]] if child.width >= _SEEN * whole]
    for child in listed:
        yield from _branches(child, whole, depth + 1)
    rest = widest[len(listed) :]
    width = sum(child.width for child in rest)
    if listed and width >= _SEEN * whole:
        amount = quantity(sum(child.amount for child in rest), Dimension.TIME, 3)
        yield Bar(label=f"{'  ' * (depth + 1)}{len(rest)} more", parts=(width / whole,), text=amount)
