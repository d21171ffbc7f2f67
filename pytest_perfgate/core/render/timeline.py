"""A case over time as a picture: its sittings, the levels between change points, what was accepted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.core.render.quantity import quantity, signed
from pytest_perfgate.core.render.svg import OTHER, SOFT, Axis, Frame, dot, line, picture, words
from pytest_perfgate.core.stats.change_points import ChangePoint
from pytest_perfgate.model.baseline import Sitting
from pytest_perfgate.model.document import Picture
from pytest_perfgate.model.quantity import Dimension

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
        x=Axis(low=-0.5, high=len(times) - 0.5, label="sittings, oldest first", text=_days(sittings)),
        y=Axis(low=min(known) - room, high=max(known) + room * (1 + len(changes[:_ROWS])), label="time", text=_time),
        top=34,
        left=86,
    )
    marks = [words(frame.left, 18, name if len(name) <= _WIDE else f"…{name[-_WIDE:]}")]
    marks += [mark for row, change in enumerate(changes) for mark in _step(frame, change, sittings, row % _ROWS)]
    marks += [
        dot(frame, at, s.time, title=f"{s.when[:16]} {s.commit[:10]} {_time(s.time)}") for at, s in enumerate(sittings)
    ]
    marks += [line(frame, points, colour=OTHER) for points in _levels(len(times), changes)]
    marks += _accepted(frame, accepted) if accepted else []
    alt = f"{name} over {plural(len(times), 'sitting')}, {_time(min(times))} to {_time(max(times))}"
    return Picture(svg=picture(frame, marks, f"{alt}; {told(sittings, changes)}"), alt=alt)


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
    left = x > _TURNED * frame.width
    text = f"{signed(change.change)} at {sittings[change.index].commit[:7] or sittings[change.index].when[:10]}"
    beside = words(x - 5 if left else x + 5, frame.top + 12 + 16 * row, text, anchor="end" if left else "start")
    return [line(frame, [(at, frame.y.low), (at, frame.y.high)], colour=SOFT, dash="2 4"), beside]


def _accepted(frame: Frame, time: float) -> list[str]:
    x, y = frame.at(frame.x.high, time)
    across = line(frame, [(frame.x.low, time), (frame.x.high, time)], colour=SOFT, dash="5 4")
    return [across, words(x - 4, y - 5, f"accepted {_time(time)}", anchor="end", colour=SOFT)]


def told(sittings: Sequence[Sitting], changes: Sequence[ChangePoint]) -> str:
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


def _time(number: float) -> str:
    return quantity(number, Dimension.TIME)
