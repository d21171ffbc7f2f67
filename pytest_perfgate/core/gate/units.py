"""The units a person may write after a number, by the dimension they measure."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_perfgate.model.quantity import TIME_UNITS, Dimension

_DECIMAL = (("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("P", 1e15))
_BINARY = (("Ki", 2.0**10), ("Mi", 2.0**20), ("Gi", 2.0**30), ("Ti", 2.0**40))


def _prefixed(*stems: str) -> dict[str, float]:
    return {prefix + stem: factor for stem in stems for prefix, factor in _DECIMAL}


def _bytes(tail: str) -> dict[str, float]:
    plain = _prefixed(f"B{tail}") | {f"KB{tail}": 1e3}
    return plain | {f"{prefix}B{tail}": factor for prefix, factor in _BINARY}


UNITS: Mapping[Dimension, Mapping[str, float]] = {
    Dimension.TIME: TIME_UNITS,
    Dimension.FRACTION: {"%": 0.01},
    Dimension.RATIO: {"x": 1.0, "×": 1.0},
    Dimension.BYTES: _bytes(""),
    Dimension.BANDWIDTH: _bytes("/s"),
    Dimension.FLOPS: _prefixed("FLOPS", "FLOP/s", "OPS", "OP/s"),
    Dimension.WORK: _prefixed("FLOP", "OP"),
    Dimension.RATE: _prefixed("/s"),
    Dimension.INTENSITY: {"FLOP/B": 1.0},
    Dimension.CLOCK: _prefixed("Hz"),
    Dimension.TEMPERATURE: {"°C": 1.0, "C": 1.0},
    Dimension.POWER: {"mW": 1e-3} | _prefixed("W"),
    Dimension.COUNT: {},
    Dimension.PLAIN: {},
}
"""Unit to factor; a time is in nanoseconds, a fraction between 0 and 1, the rest per second."""

UNITLESS = frozenset({Dimension.COUNT, Dimension.PLAIN, Dimension.RATIO, Dimension.INTENSITY})
"""Dimensions whose bare number means only one thing."""

USUAL: Mapping[Dimension, tuple[str, ...]] = {
    Dimension.TIME: ("ns", "us", "ms", "s"),
    Dimension.FRACTION: ("%",),
    Dimension.RATIO: ("x",),
    Dimension.BYTES: ("B", "KiB", "MB", "GB"),
    Dimension.BANDWIDTH: ("GB/s", "TB/s"),
    Dimension.FLOPS: ("GFLOPS", "TFLOPS"),
    Dimension.WORK: ("GFLOP", "TFLOP"),
    Dimension.RATE: ("/s", "k/s", "M/s"),
    Dimension.INTENSITY: ("FLOP/B",),
    Dimension.CLOCK: ("MHz", "GHz"),
    Dimension.TEMPERATURE: ("°C",),
    Dimension.POWER: ("W",),
    Dimension.COUNT: (),
    Dimension.PLAIN: (),
}
"""What an error proposes."""

KNOWN: tuple[str, ...] = tuple(dict.fromkeys(unit for table in UNITS.values() for unit in table))


def dimension_of(unit: str) -> Dimension | None:
    """What a unit measures; no unit measures two things."""
    return next((dimension for dimension, table in UNITS.items() if unit in table), None)


_NOUNS = {
    Dimension.BYTES: "a number of bytes",
    Dimension.FLOPS: "a rate of operations",
    Dimension.WORK: "a number of operations",
    Dimension.INTENSITY: "an intensity",
    Dimension.PLAIN: "a plain number",
}


def noun(dimension: Dimension) -> str:
    """What a dimension is called in a sentence."""
    return _NOUNS.get(dimension, f"a {dimension.value}")
