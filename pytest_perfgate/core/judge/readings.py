"""Figures beside time: the user's own and those of a pass of their own, joined over processes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_perfgate.core.metric_kinds import by_name, own_kind
from pytest_perfgate.core.stats.summary import (
    CONFIDENCE,
    RANKED,
    deviation,
    logs_of,
    median,
    median_rank,
    of_processes,
    t_quantile,
)
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Reading
from pytest_perfgate.model.metric import Absent, Metric, MetricKind, MetricSet
from pytest_perfgate.model.values import UNITS, Better, Dimension, Interval, dimension_of

_NAME = re.compile(r"[A-Za-z_][\w.]*", re.ASCII)

_ITEMS = re.compile(r"([kMGTP]?)[a-z][a-z_-]*/s", re.ASCII)
"""Items of the user's own: the unit ``tokens/s``."""

_DIRECTIONS = {"lower": Better.LOWER, "higher": Better.HIGHER, "neither": Better.NEITHER}


def own_reading(name: str, values: Any, *, unit: str = "", better: str = "lower", exact: bool = False) -> Reading:
    """A figure of the user's own as ``perfgate.metric`` takes it; raises where no limit could be held against it."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _wrong(f"metric() was given the name {name!r:.60}", "letters, digits and _: metric('bytes_sent', 12)")
    if name in by_name():
        raise _wrong(f"{name} is a metric of perfgate's own", f"give yours another name, such as my_{name}")
    if better not in _DIRECTIONS:
        raise _wrong(f"better={better!r:.60} is no direction", f"better= is one of {', '.join(_DIRECTIONS)}")
    numbers = tuple(_number(one, name) for one in _several(values))
    if not numbers:
        raise _wrong(f"metric({name!r}) was given no value", "give it one, or a list of them")
    factor, dimension = unit_of(unit)
    return Reading(
        name=name,
        values=tuple(number * factor for number in numbers),
        dimension=dimension,
        better=_DIRECTIONS[better],
        exact=bool(exact),
    )


def unit_of(unit: str) -> tuple[float, Dimension]:
    """What a number of this unit is multiplied by inside, and what it measures; without a unit a plain number."""
    if not unit:
        return 1.0, Dimension.PLAIN
    dimension = dimension_of(unit)
    if dimension is not None:
        return UNITS[dimension][unit], dimension
    if match := _ITEMS.fullmatch(unit):
        return UNITS[Dimension.RATE][f"{match[1]}/s"], Dimension.RATE
    mend = "a unit of limits, such as ms, %, MB, GB/s or /s; of anything else leave unit= out and put it in the name"
    raise _wrong(f"limits know no unit {unit!r:.60}", mend)


def _several(values: Any) -> list[Any]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable) or getattr(values, "shape", None) == ():
        return [values]
    return list(values)


def _number(one: Any, name: str) -> float:
    try:
        number = float(one) if not isinstance(one, (str, bytes, bool)) else math.nan
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise _wrong(f"metric({name!r}) was given {one!r:.60}, which is not a finite number", "give it numbers alone")
    return number


def _wrong(what: str, mend: str) -> PerfgateError:
    return PerfgateError("call-wrong", what, mend=mend)


def own_kinds(readings: Iterable[Reading]) -> Mapping[str, MetricKind]:
    """What limits may name of figures that a test took itself."""
    own = (one for one in readings if one.better is not None)
    return {one.name: replace(own_kind(one.name), better=one.better or Better.NEITHER) for one in own}


def figures_of(processes: Sequence[Sequence[Reading]]) -> MetricSet:
    """The figures of one measurement from what each of its processes read."""
    if not any(processes):
        return MetricSet()
    names = dict.fromkeys((one.name, one.labels) for readings in processes for one in readings)
    joined = [_joined([_of(readings, *key) for readings in processes]) for key in names]
    return MetricSet(
        metrics=tuple(one for one in joined if isinstance(one, Metric)),
        absent=tuple(one for one in joined if isinstance(one, Absent)),
    )


def _of(readings: Sequence[Reading], name: str, labels: object) -> tuple[Reading, ...]:
    return tuple(one for one in readings if one.name == name and one.labels == labels)


def _joined(processes: Sequence[tuple[Reading, ...]]) -> Metric | Absent:
    """One figure: the middle of its processes, with what they leave open."""
    first = next(readings[0] for readings in processes if readings)
    values = [tuple(value for one in readings for value in one.values) for readings in processes]
    if not all(values):
        lost = sum(not one for one in values)
        return _differs(first, f"{lost} of {len(values)} processes did not read it")
    apart = {(one.dimension, one.better, one.exact) for readings in processes for one in readings}
    if len(apart) > 1:
        return _differs(first, "it was given with another unit=, better= or exact= another time")
    if first.exact and len(set().union(*values)) > 1:
        least, most = min(map(min, values)), max(map(max, values))
        return _differs(first, f"it is exact, and was {least:g} one time and {most:g} another")
    middles = [median(sorted(one)) for one in values]
    centre = median(sorted(middles))
    return Metric(
        name=first.name,
        value=centre,
        dimension=first.dimension,
        labels=first.labels,
        interval=None if first.exact else interval_of(values, middles, centre),
        note=first.note,
        better=first.better,
        exact=first.exact,
    )


def _differs(first: Reading, why: str) -> Absent:
    return Absent(name=first.name, labels=first.labels, why=why, code="rounds-differ")


def interval_of(values: Sequence[Sequence[float]], middles: Sequence[float], centre: float) -> Interval | None:
    """Between what the middle lies: by the processes, of one process by its values; nothing of a single value."""
    if len(middles) == 1:
        return _of_values(sorted(values[0]), centre)
    return of_processes(logs_of(middles), centre) if min(middles) > 0 else _student(middles, centre)


def _of_values(ordered: Sequence[float], centre: float) -> Interval | None:
    if len(ordered) < 2:
        return None
    if len(ordered) < RANKED:
        return _student(ordered, centre)
    rank, confidence = median_rank(len(ordered))
    return Interval(low=ordered[rank], high=ordered[len(ordered) - 1 - rank], confidence=confidence)


def _student(numbers: Sequence[float], centre: float) -> Interval:
    """Student's interval of numbers that may be zero or negative, widened to hold their middle."""
    mean = math.fsum(numbers) / len(numbers)
    half = t_quantile((1 + CONFIDENCE) / 2, len(numbers) - 1) * deviation(numbers, mean) / math.sqrt(len(numbers))
    return Interval(low=min(mean - half, centre), high=max(mean + half, centre), confidence=CONFIDENCE)
