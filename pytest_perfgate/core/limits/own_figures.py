"""Figures that a test takes itself: what it hands in, checked and in the units of the inside."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Reading
from pytest_perfgate.model.values import UNITS, Better, Dimension, dimension_of

if TYPE_CHECKING:
    from pytest_perfgate.model.plan import Limit

_NAME = re.compile(r"[A-Za-z_][\w.]*", re.ASCII)

_ITEMS = re.compile(r"([MGTP]?)[a-z][a-z_-]+/s", re.ASCII)
"""Items of the user's own: the unit ``tokens/s``; a k before them is a letter of theirs, as in ``kernels/s``."""

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


_OF_RATES = {Dimension.BANDWIDTH: "bandwidth", Dimension.FLOPS: "tflops", Dimension.RATE: "throughput"}

COUNTED = "count"
"""The unit of what is counted, for ``perfgate.record``."""


def recorded(numbers: Sequence[float], unit: str, name: str) -> Reading:
    """Numbers from elsewhere that are no times: a rate is that metric, of anything else the call's name names it."""
    if unit == COUNTED:
        factor, dimension = 1.0, Dimension.PLAIN
    else:
        factor, dimension = unit_of(unit)
    if dimension in _OF_RATES:
        values = tuple(number * factor for number in numbers)
        return Reading(name=_OF_RATES[dimension], values=values, dimension=dimension)
    if not name:
        fix = f"name the figure: record([...], {unit!r}, name='launches'), and limit it: launches <= 12"
        raise _wrong(f"record() was given numbers in {unit!r}, and nothing says what they are of", fix)
    return own_reading(name, numbers, unit="" if unit == COUNTED else unit)


def named_among(figures: Mapping[str, Any], limits: Iterable[Limit]) -> tuple[Reading, ...]:
    """The numbers that limits name, from the figures that a test reported itself."""
    named = sorted({limit.metric for limit in limits} & figures.keys())
    numbers = ((name, figures[name]) for name in named if isinstance(figures[name], (int, float)))
    return tuple(own_reading(name, number) for name, number in numbers if math.isfinite(number))


def unit_of(unit: str) -> tuple[float, Dimension]:
    """What a number of this unit is multiplied by inside, and what it measures; without a unit a plain number."""
    if not unit:
        return 1.0, Dimension.PLAIN
    dimension = dimension_of(unit) if isinstance(unit, str) else None
    if dimension is not None:
        return UNITS[dimension][unit], dimension
    if match := _ITEMS.fullmatch(str(unit)):
        return UNITS[Dimension.RATE][f"{match[1]}/s"], Dimension.RATE
    fix = "a unit of limits, such as ms, %, MB, GB/s or /s; of anything else leave unit= out and put it in the name"
    raise _wrong(f"limits know no unit {unit!r:.60}", fix)


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


def _wrong(what: str, fix: str) -> PerfgateError:
    return PerfgateError("call-wrong", what, fix=fix)
