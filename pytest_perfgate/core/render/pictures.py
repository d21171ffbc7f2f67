"""Pictures of a case: its samples now and then, its history, its place under the roof."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_perfgate.core.analysis.roofline import place
from pytest_perfgate.core.render.block import short_name
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.core.render.quantity import quantity
from pytest_perfgate.core.render.svg import MARK, OTHER, Axis, Frame, box, dot, line, picture, words
from pytest_perfgate.model.baseline import Sitting
from pytest_perfgate.model.device import Basis, Roof
from pytest_perfgate.model.document import Picture
from pytest_perfgate.model.measurement import Measurement
from pytest_perfgate.model.quantity import Dimension
from pytest_perfgate.model.verdict import CaseReport

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
    held = sum(len(p.durations) for p in processes) - sum(map(len, usual))
    said = f"; {held} slowest of all samples lie to the right of the picture" if held else ""
    alt = f"Samples of {short_name(case.key)}: {plural(len(processes), 'process', 'processes')}" + (
        f", accepted {_time(then)}" if then else ""
    )
    return Picture(svg=picture(frame, marks, alt), alt=alt + said)


def _usual(durations: Sequence[float]) -> list[float]:
    """Samples without the slowest hundredth, which would squeeze the rest together."""
    kept = sorted(d for d in durations if math.isfinite(d))
    return kept[: max(1, math.ceil(len(kept) * 0.99))]


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
        x=Axis(low=1.0, high=float(len(sat)), label="sitting, oldest first", whole=True),
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
    alt = (
        f"History of {short_name(case.key)}: {plural(len(sat), 'sitting')} from {_time(times[0])} to {_time(times[-1])}"
    )
    return Picture(svg=picture(frame, marks, alt), alt=alt)


def _roof(measurement: Measurement) -> Roof | None:
    found = (measurement.device.roof(basis) for basis in (Basis.CLOCK, Basis.CEILING, Basis.DATASHEET))
    return next((roof for roof in found if roof and roof.bandwidth and roof.compute), None)


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
    found = place(measurement.work, time[0].value, roof)
    known = (
        found.intensity is not None and found.flops_rate is not None and found.intensity > 0 and found.flops_rate > 0
    )
    return [(found.intensity or 0.0, found.flops_rate or 0.0)] if known else []
