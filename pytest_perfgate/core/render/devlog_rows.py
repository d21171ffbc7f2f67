"""Rows of a devlog entry: each figure in the unit of its title, with its change."""

from __future__ import annotations

from pytest_perfgate.core.analysis.results import Previous
from pytest_perfgate.core.render.words import ABSENT, quantity, signed, significant
from pytest_perfgate.model.measurement import Measurement
from pytest_perfgate.model.metric import Metric, MetricSet
from pytest_perfgate.model.values import Better, Dimension

ROWS: tuple[tuple[str, str, Dimension, Better], ...] = (
    ("Duration", "time", Dimension.TIME, Better.LOWER),
    ("Achieved TFLOPs/s", "tflops", Dimension.FLOPS, Better.HIGHER),
    ("Achieved GB/s", "bandwidth", Dimension.BANDWIDTH, Better.HIGHER),
    ("Occupancy", "occupancy", Dimension.FRACTION, Better.HIGHER),
    ("TC Util", "tc_util", Dimension.FRACTION, Better.HIGHER),
)

_UNITS = {"tflops": (1e12, "TFLOPS"), "bandwidth": (1e9, "GB/s")}
"""What the titles of these rows promise: their figures are in it, however small."""

HOST_ROWS = (
    ROWS[0],
    ("Achieved FLOP/s", *ROWS[1][1:]),
    ("Achieved B/s", *ROWS[2][1:]),
)
"""A host is slower by orders of magnitude, and has neither occupancy nor tensor cores."""


def devlog_row(row: tuple[str, str, Dimension, Better], measurement: Measurement, before: Previous | None) -> str:
    """Title, figure and change, as a row of Markdown."""
    title, name, dimension, better = row
    metrics = _of_longest(measurement.metrics, name)
    figure = _in_unit(title, name, metrics.value, dimension) if metrics else ABSENT
    if metrics is None or before is None:
        return f"| {title} | {figure} |  |"
    if before.metrics is not None:
        return f"| {title} | {figure} | {_change(metrics, _of_longest(before.metrics, name))} |"
    return f"| {title} | {figure} | {_against(metrics, better, measurement, before.time)} |"


def _in_unit(title: str, name: str, number: float, dimension: Dimension) -> str:
    """In the unit that the title names, where it names one."""
    if name not in _UNITS or title not in {row[0] for row in ROWS}:
        return quantity(number, dimension)
    step, unit = _UNITS[name]
    return f"{significant(number / step)} {unit}"


def _of_longest(metrics: MetricSet, name: str) -> Metric | None:
    """The metric of the call, or of the kernel that takes longest; of several without times none speaks for all."""
    matching = metrics.find(name)
    plain = next((m for m in matching if not m.labels), None)
    if plain or len(matching) < 2:
        return plain or (matching[0] if matching else None)
    times = {m.labels: m.value for m in metrics.find("duration")}
    known = [m for m in matching if m.labels in times]
    return max(known, key=lambda m: times[m.labels], default=None)


def _change(now: Metric, then: Metric | None) -> str:
    """The figure against the same figure; fractions differ by points."""
    if then is None:
        return ABSENT
    if now.dimension is Dimension.FRACTION:
        return f"{(now.value - then.value) * 100:+.1f} points"
    return signed(now.value / then.value - 1) if then.value else ""


def _against(found: Metric, better: Better, measurement: Measurement, then: float | None) -> str:
    """Where only a time is known, rates of the same work follow from it; nothing else does."""
    time = _of_longest(measurement.metrics, "time")
    if time is None or not then or found.dimension is Dimension.FRACTION:
        return ""
    return signed(time.value / then - 1 if better is Better.LOWER else then / time.value - 1)
