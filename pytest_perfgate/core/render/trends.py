"""Drawings of a trend: small enough for a page a case of a large project, coloured by the page's style."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from pytest_perfgate.core.render.block import printable
from pytest_perfgate.core.render.words import quantity, signed
from pytest_perfgate.model.measurement import short_commit
from pytest_perfgate.model.values import Dimension, value

if TYPE_CHECKING:
    from pytest_perfgate.core.analysis.regressions import Trend

_WIDE, _HIGH, _LEFT, _RIGHT, _TOP, _BOTTOM = 860, 250, 72, 14, 34, 26

_DOTS = 50
"""The newest runs that have a dot of their own, with what it stands for; those before are one line."""

_FAR = 1.5
"""A run above this share of the highest level is drawn at the edge: it would press all others flat."""

_LETTER = 6.6
"""Width of a letter of the words in a drawing."""

_STILL = 0.03
"""A line that moves less is drawn as flat as it is: noise in full height looks like news."""

_POINTS, _SPARK_WIDE, _SPARK_HIGH = 50, 120, 24


@value
class _Frame:
    """Places in the drawing of so many runs between two times."""

    count: int
    low: float
    high: float

    def x(self, at: float) -> float:
        return _LEFT + (_WIDE - _LEFT - _RIGHT) * (at + 0.5) / self.count

    def y(self, time: float) -> float:
        share = (min(time, self.high) - self.low) / (self.high - self.low)
        return _HIGH - _BOTTOM - (_HIGH - _TOP - _BOTTOM) * share


def trend_svg(trend: Trend) -> str:
    """The line of a case: each run, each level with the step to it, what is accepted, the anchor."""
    frame = _frame(trend)
    times = [s.time for s in trend.sittings]
    parts = [
        *_grid(frame, trend),
        f'<path class="run" d="{_path([(frame.x(at), frame.y(t)) for at, t in enumerate(times)])}"/>',
    ]
    parts += _dots(frame, trend)
    parts += _levels(frame, trend)
    parts += _lines(frame, trend)
    name = printable(str(trend.key))
    alt = f"{name}: {len(times)} runs, {quantity(min(times), Dimension.TIME)} to {quantity(max(times), Dimension.TIME)}"
    return (
        f'<figure class="trend"><svg viewBox="0 0 {_WIDE} {_HIGH}" role="img" aria-label="{escape(alt)}">'
        f"{''.join(parts)}</svg></figure>"
    )


def _frame(trend: Trend) -> _Frame:
    times = [s.time for s in trend.sittings]
    known = [line.time for line in (trend.accepted, trend.anchor) if line is not None and line.time > 0]
    levels = [*known, *(c.after for c in trend.changes), *(c.before for c in trend.changes), median(times)]
    high, low = max(min(max(times), max(levels) * _FAR), *levels), min(*times, *levels)
    room = (high - low) * 0.08 or high * 0.05
    return _Frame(count=len(times), low=max(0.0, low - room), high=high + room)


def _path(points: Sequence[tuple[float, float]]) -> str:
    """A line through points, by steps of whole units: half of the length of places."""
    whole = [(round(x), round(y)) for x, y in points]
    moves = (f"{x - a} {y - b}" if y < b else f"{x - a},{y - b}" for (a, b), (x, y) in pairwise(whole))
    return f"M{whole[0][0]},{whole[0][1]}" + (f"l{' '.join(moves)}" if len(whole) > 1 else "")


def _grid(frame: _Frame, trend: Trend) -> Iterator[str]:
    for share in (0.0, 0.5, 1.0):
        time = frame.low + (frame.high - frame.low) * share
        y = frame.y(time)
        yield f'<path class="grid" d="M{_LEFT},{y:.0f}H{_WIDE - _RIGHT}"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.0f}" text-anchor="end">{quantity(time, Dimension.TIME, 3)}</text>'
    last = len(trend.sittings) - 1
    for at, anchor in {0: "start", last // 2: "middle", last: "end"}.items():
        day = escape(trend.sittings[at].when[:10])
        yield f'<text x="{frame.x(at):.0f}" y="{_HIGH - 8}" text-anchor="{anchor}">{day}</text>'


def _dots(frame: _Frame, trend: Trend) -> Iterator[str]:
    first = max(0, len(trend.sittings) - _DOTS)
    for at, s in enumerate(trend.sittings[first:], first):
        title = f"{s.when[:16]} {short_commit(s.commit, 7)} {quantity(s.time, Dimension.TIME)}"
        place = f'cx="{frame.x(at):.0f}" cy="{frame.y(s.time):.0f}"'
        yield f'<circle {place} r="3"><title>{escape(title)}</title></circle>'


def _levels(frame: _Frame, trend: Trend) -> Iterator[str]:
    if not trend.changes:
        return
    edges = [0, *(change.index for change in trend.changes), len(trend.sittings)]
    level = [trend.changes[0].before, *(change.after for change in trend.changes)]
    for (a, b), time in zip(pairwise(edges), level):
        yield f'<path class="level" d="M{frame.x(a - 0.5):.0f},{frame.y(time):.0f}H{frame.x(b - 0.5):.0f}"/>'
    free = [0.0, 0.0]
    for change in trend.changes:
        x = frame.x(change.index - 0.5)
        yield f'<path class="step" d="M{x:.0f},{_TOP}V{_HIGH - _BOTTOM}"/>'
        at = short_commit(trend.sittings[change.index].commit, 7) or trend.sittings[change.index].when[:10]
        text = f"{signed(change.change)} at {at}"
        left = min(x + 4, _WIDE - _RIGHT - _LETTER * len(text))
        row = next((row for row, end in enumerate(free) if end <= left), None)
        if row is not None:  # otherwise the table of levels has it
            free[row] = left + _LETTER * (len(text) + 1)
            yield f'<text class="says" x="{left:.0f}" y="{12 + 13 * row}">{escape(text)}</text>'


def _lines(frame: _Frame, trend: Trend) -> Iterator[str]:
    """Accepted and anchor; one that both mean is drawn once."""
    lines = {line.time: name for name, line in (("anchor", trend.anchor), ("accepted", trend.accepted)) if line}
    for time, name in lines.items():
        y = frame.y(time)
        yield f'<path class="{name}" d="M{_LEFT},{y:.0f}H{_WIDE - _RIGHT}"/>'
        text = f"{name} {quantity(time, Dimension.TIME)}"
        yield f'<text x="{_LEFT + 4}" y="{y - 4:.0f}">{text}</text>'


def sparkline(numbers: Sequence[float]) -> str:
    """The newest of a line of figures, as small as a word."""
    line = numbers[-_POINTS:]
    if len(line) < 2:
        return ""
    middle = (max(line) + min(line)) / 2
    reach = max(max(line) - middle, abs(middle) * _STILL) or 1.0
    wide, high = (_SPARK_WIDE - 2) / (len(line) - 1), _SPARK_HIGH / 2
    points = [(1 + at * wide, high - (number - middle) / reach * (high - 2)) for at, number in enumerate(line)]
    return f'<svg class="spark" viewBox="0 0 {_SPARK_WIDE} {_SPARK_HIGH}"><path d="{_path(points)}"/></svg>'


def label(name: str) -> str:
    """A long name that breaks, if it has to, between its words."""
    text = escape(printable(name))
    return re.sub(r"(::|/|\[|(?<=[a-z\d])_(?=[a-z\d]))", r"\1<wbr>", text)


SITE_STYLE = """
.trail { font-size:.95rem; margin:0 } th.n, td.n { text-align:right; white-space:nowrap } td.s { white-space:nowrap }
.slower { color:var(--bad) } .faster { color:var(--good) } p.good { color:var(--good); font-weight:600 }
.cards { display:flex; flex-wrap:wrap; gap:.8rem; margin:1rem 0 }
.cards > div { border:1px solid var(--line); border-radius:6px; padding:.6rem .9rem; min-width:9rem; max-width:22rem }
.cards dt { color:var(--soft); font-size:.85rem } .cards dd { margin:0; font-size:1.3rem; font-weight:600 }
.cards p { margin:.15rem 0 0; font-size:.88rem; color:var(--soft); overflow-wrap:anywhere }
figure.trend { border:1px solid var(--line); border-radius:6px; margin:1rem 0; overflow-x:auto }
figure.trend svg { display:block; width:100%; min-width:40rem; height:auto; font:12px system-ui, sans-serif }
svg text { fill:var(--soft); paint-order:stroke; stroke:var(--paper); stroke-width:4px } svg circle { fill:var(--mark) }
svg .run { fill:none; stroke:var(--mark); stroke-opacity:.45 }
svg .level { fill:none; stroke:var(--mark2); stroke-width:2 } svg .step { stroke:var(--soft); stroke-dasharray:2 4 }
svg .accepted { stroke:var(--good); stroke-dasharray:6 4 } svg .anchor { stroke:var(--warn); stroke-dasharray:2 3 }
svg .grid { stroke:var(--line) } svg .says { fill:var(--ink) }
svg.spark { width:7.5rem; height:1.5rem; display:block }
svg.spark path { fill:none; stroke:var(--mark); stroke-width:1.5 }
td { vertical-align:middle } td .outcome { font-size:.8em }
"""
