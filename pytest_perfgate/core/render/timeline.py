"""A case over time as a picture: its sittings, the levels between change points, what was accepted."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.core.render.quantity import quantity, signed
from pytest_perfgate.core.render.svg import OTHER, SOFT, Axis, Frame, dot, line, picture
from pytest_perfgate.core.stats.change_points import ChangePoint
from pytest_perfgate.model.baseline import Sitting
from pytest_perfgate.model.document import Picture
from pytest_perfgate.model.quantity import Dimension


def timeline(
    name: str, sittings: Sequence[Sitting], changes: Sequence[ChangePoint], accepted: float | None = None
) -> Picture:
    """One dot a sitting, a step at each change, a dashed line at the accepted time."""
    times = [sitting.time for sitting in sittings]
    known = [*times, *([accepted] if accepted else [])]
    room = 0.08 * (max(known) - min(known)) or 0.05 * max(known)
    frame = Frame(
        x=Axis(low=0, high=max(1, len(times) - 1), label="sittings, oldest first"),
        y=Axis(low=min(known) - room, high=max(known) + room, label="time of a call", text=_time),
    )
    marks = [
        dot(frame, at, s.time, title=f"{s.when[:16]} {s.commit[:10]} {_time(s.time)}") for at, s in enumerate(sittings)
    ]
    marks += [line(frame, points, colour=OTHER) for points in _levels(len(times), changes)]
    if accepted:
        marks.append(line(frame, [(0, accepted), (max(1, len(times) - 1), accepted)], colour=SOFT, dash="5 4"))
    return Picture(
        svg=picture(frame, marks, alt := f"{name} over {plural(len(times), 'sitting')}; {told(sittings, changes)}"),
        alt=alt,
    )


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
