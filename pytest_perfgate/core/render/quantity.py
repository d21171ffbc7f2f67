"""Numbers as people write them: the one place that knows microseconds and percent."""

from __future__ import annotations

import math

from pytest_perfgate.model.quantity import Dimension

_DECIMAL = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_BINARY = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))
_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_SUFFIX = {
    Dimension.BANDWIDTH: "B/s",
    Dimension.FLOPS: "FLOPS",
    Dimension.WORK: "FLOP",
    Dimension.RATE: "/s",
    Dimension.CLOCK: "Hz",
    Dimension.POWER: "W",
}
ABSENT = "not collected"
_FAR = 100.0
_UNREAD = 1e21
"""From here on digits are no longer read."""
_TENFOLD = 10.0


def quantity(number: float | None, dimension: Dimension, digits: int = 4) -> str:
    """A number with the unit that makes it readable; ``None`` and NaN are not collected."""
    if number is None or math.isnan(number):
        return ABSENT
    if math.isinf(number):
        return "inf" if number > 0 else "-inf"
    if dimension is Dimension.FRACTION:
        return f"{significant(number * 100, digits)} %"
    if dimension is Dimension.RATIO:
        return f"{significant(number, digits)}x"
    if dimension is Dimension.COUNT:
        whole = float(number).is_integer() and abs(number) < _UNREAD
        return f"{number:,.0f}" if whole else significant(number, digits)
    if dimension is Dimension.TEMPERATURE:
        return f"{significant(number, digits)} °C"
    if dimension is Dimension.INTENSITY:
        return f"{significant(number, digits)} FLOP/B"
    return _scaled(number, dimension, digits)


def signed(number: float, digits: int = 2) -> str:
    """A relative change: ``+7.9 %``, ``+1,859 %``; past a hundred times it only says that it is past counting."""
    if number >= _FAR:
        return "over 10,000 %"
    places = digits - 1 if number < _TENFOLD else 0
    return f"{round(number * 100, places) + 0.0:+,.{places}f} %"


def sight(visible: float) -> str:
    """The smallest slowdown that could have been seen."""
    return signed(visible)


def significant(number: float, digits: int = 4) -> str:
    """Fixed notation with so many significant digits; an exponent only where nobody would count the zeros."""
    if number == 0:
        return "0"
    if abs(number) >= _UNREAD:
        return f"{number:.{digits - 1}e}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(number))))
    text = f"{number:,.{min(places, 9)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _scaled(number: float, dimension: Dimension, digits: int) -> str:
    if dimension is Dimension.TIME:
        steps: tuple[tuple[float, str], ...] = _TIMES
    elif dimension is Dimension.BYTES:
        steps = _BINARY
    elif dimension in _SUFFIX:
        steps = tuple((step, prefix + _SUFFIX[dimension]) for step, prefix in _DECIMAL)
    else:
        return significant(number, digits)
    step, unit = next((pair for pair in steps if abs(number) >= pair[0]), steps[-1])
    return f"{significant(number / step, digits)} {unit}"
