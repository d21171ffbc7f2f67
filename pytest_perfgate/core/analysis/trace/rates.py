"""Rates of a window and of steps, and the impact of operators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pytest_perfgate.core.analysis import intervals
from pytest_perfgate.core.analysis.roofline import BEYOND, GIVEN, Placement, parse_items, place
from pytest_perfgate.core.analysis.trace.figures import distinct_labels, table_metrics
from pytest_perfgate.core.analysis.trace.operators import OperatorRow, rows_of_calls
from pytest_perfgate.core.analysis.trace.survey import Survey, call_times, stretches, trace_metric
from pytest_perfgate.core.render.words import quantity
from pytest_perfgate.model.device import Basis, Roof
from pytest_perfgate.model.metric import Absent, Column, Labels, Metric, MetricSet, Table
from pytest_perfgate.model.values import OF_ITEMS, Dimension, array_value, value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


_RATES = (("tflops", "flops", Dimension.FLOPS), ("bandwidth", "bytes", Dimension.BANDWIDTH))

_ROOFS = (("mfu", "compute"), ("sol", "roof"))

_SHEET = ("mfu_datasheet", "sol_datasheet")

NO_WORK = "no operator of this window has a work model"

MODEL = "--view roofline says why; a model is one function: pytest_perfgate_operators"


@array_value
class CallRates:
    """One entry for each argument set: a call's work, and its least time by the roofs; NaN is unknown."""

    flops: Floats
    bytes: Floats
    compute: Floats
    """Nanoseconds at the peak of its element type."""
    roof: Floats
    """Nanoseconds at the limiting roof."""


def utilisation(
    survey: Survey, rows: Sequence[OperatorRow], steps: Sequence[Survey], roof: Roof | None, scopes: Sequence[Labels]
) -> MetricSet:
    """Return ``mfu``, ``sol``, ``tflops`` and ``bandwidth`` of all operators, over all time, idle or unmodelled too."""
    if not rows:
        return MetricSet()
    calls = _calls(rows, roof)
    counts = np.array([row.count for row in rows], np.float64)
    spent = np.array([row.total for row in rows], np.float64)
    parts: list[tuple[Labels, Floats, Floats, float]] = [((), counts, spent, _span(survey))]
    parts += [(where, *shared, span) for where, shared, span in _parts(survey, rows, steps)]
    metrics = [
        trace_metric(name, value, dimension, tuple(sorted((*scope, *where))), note)
        for where, number, time, span in parts
        for name, value, dimension, note in _figures(calls, number, time, span, roof)
        for scope in scopes
    ]
    if any(metric.name in {"tflops", "bandwidth"} for metric in metrics):
        return MetricSet(metrics=tuple(metrics))
    names = ("tflops", "bandwidth", "intensity")
    return MetricSet(absent=tuple(Absent(name=n, labels=s, why=NO_WORK, fix=MODEL) for n in names for s in scopes))


def utilised(survey: Survey, rows: Sequence[OperatorRow], roof: Roof | None) -> str:
    """Return these rates of the whole window as a sentence; "" if no work is known."""
    texts = {m.name: rate_text(m) for m in utilisation(survey, rows, (), roof, ((),)).metrics}
    named = [f"{texts[name]} ({name})" for name in ("tflops", "bandwidth", *_SHEET) if name in texts]
    return f"Over the whole window, idle time included: {', '.join(named)}." if named else ""


def rate_text(metric: Metric) -> str:
    """Return the figure, with a note if it exceeds the hardware's peak."""
    text = quantity(metric.value, metric.dimension)
    wrong = metric.dimension is Dimension.FRACTION and metric.value > BEYOND
    return f"INVALID, {text} of the peak is more than the hardware can do" if wrong else text


def _calls(rows: Sequence[OperatorRow], roof: Roof | None) -> CallRates:
    # the fraction of a roof that one nanosecond would reach is the nanoseconds at that roof
    placements = [place(row.work, 1.0, roof or Roof(basis=Basis.DATASHEET)) if row.work else None for row in rows]
    return CallRates(
        flops=_column([row.work.flops if row.work else None for row in rows]),
        bytes=_column([row.work.bytes if row.work else None for row in rows]),
        compute=_column([_compute(row, at) for row, at in zip(rows, placements)]),
        roof=_column([at.claimed if at else None for at in placements]),
    )


def _compute(row: OperatorRow, at: Placement | None) -> float | None:
    """Return the nanoseconds at the compute roof; 0 for an operator that only moves bytes."""
    if row.work and row.work.flops == 0:
        return 0.0
    return at.compute if at else None


def _column(values: Sequence[float | None]) -> Floats:
    return np.array([np.nan if one is None else one for one in values], np.float64)


def _figures(
    calls: CallRates, counts: Floats, spent: Floats, span: float, roof: Roof | None
) -> Iterator[tuple[str, float, Dimension, str]]:
    """Yield names, numbers, dimensions and notes of one stretch of one or more devices."""
    everything = float(spent.sum())
    if span <= 0 or everything <= 0:
        return
    for name, field, dimension in _RATES:
        known, total = _total(getattr(calls, field), counts)
        if known.any():
            yield name, total / span * 1e9, dimension, _note(spent, known)
    both = ~np.isnan(calls.flops) & ~np.isnan(calls.bytes)
    moved = float((calls.bytes * counts)[both].sum())
    if moved:
        yield "intensity", float((calls.flops * counts)[both].sum()) / moved, Dimension.INTENSITY, _only(spent, both)
    for name, field in _ROOFS if roof else ():
        known, ideal = _total(getattr(calls, field), counts)
        if known.any() and roof:
            note = f"{roof.note}; {_note(spent, known)}"
            yield f"{name}_datasheet", ideal / span, Dimension.FRACTION, note
            if roof.note.startswith(GIVEN):
                yield name, ideal / span, Dimension.FRACTION, note


def _total(column: Floats, counts: Floats) -> tuple[NDArray[np.bool_], float]:
    known = ~np.isnan(column) & (counts > 0)
    return known, float((column * counts)[known].sum())


def _note(spent: Floats, known: NDArray[np.bool_]) -> str:
    """Return what the figure covers, and how much work is unknown."""
    part = float(spent[known].sum() / spent.sum())
    rest = "" if part > 0.9995 else "; the rest counts as no work"
    return f"over the whole window, idle time included; {part * 100:.1f} % of operators' time has known work{rest}"


def known_part(rows: Sequence[OperatorRow]) -> str:
    """Return how much of operators' time has known work; "" if all of it."""
    total = sum(row.total for row in rows)
    part = sum(row.total for row in rows if row.work is not None) / total if total else 1.0
    return "" if part > 0.9995 else f"{part * 100:.1f} % of operators' time; the rest counts as no work"


def _only(spent: Floats, known: NDArray[np.bool_]) -> str:
    part = float(spent[known].sum() / spent.sum())
    return f"of operators with known work, {part * 100:.1f} % of operators' time"


def _parts(
    survey: Survey, rows: Sequence[OperatorRow], steps: Sequence[Survey]
) -> Iterator[tuple[Labels, tuple[Floats, Floats], float]]:
    """Yield steps, and devices if there are several, with calls and GPU time, and the time of the devices."""
    devices, parts = intervals.distinct(survey.device), stretches(survey, steps)
    whole = _CallTotals(survey, rows) if parts else None
    for part, where in parts:
        if whole and len(part.rows):
            yield where, whole.shared(part), _span(part, 1 if dict(where).get("gpu") else len(devices))


def _span(survey: Survey, devices: int = 1) -> float:
    """Return nanoseconds from first start to last end, or of the window, times the number of devices."""
    device_numbers = intervals.distinct(survey.device)
    if survey.window is not None:
        return float((survey.window.end - survey.window.start) * max(devices, len(device_numbers)))
    ends = [(survey.device == device) for device in device_numbers]
    return float(sum(int(survey.end[here].max()) - int(survey.start[here].min()) for here in ends))


class _CallTotals:
    """The total time of every call, to compute the share of it in a part."""

    def __init__(self, survey: Survey, rows: Sequence[OperatorRow]) -> None:
        self._rows = len(rows)
        self._owners, _, self._full = call_times(survey)
        self._row = rows_of_calls(survey, self._owners, rows)

    def shared(self, part: Survey) -> tuple[Floats, Floats]:
        """Return calls and GPU time of each argument set; a call across the edge counts by its share of time."""
        owners, _, spent = call_times(part)
        at = np.searchsorted(self._owners, owners)
        share = np.divide(spent, self._full[at], out=np.zeros_like(spent), where=self._full[at] > 0)
        row = self._row[at]
        calls: Floats = np.bincount(row, weights=share, minlength=self._rows).astype(np.float64)
        return calls, np.bincount(row, weights=spent, minlength=self._rows).astype(np.float64)


def throughput(whole: Survey, steps: Sequence[Survey], items: str) -> tuple[float, str] | None:
    """Return items a second and their name, by the time from step to step; steps without stated items."""
    count, unit = parse_items(items, "trace-option")
    windows = [part.window for part in steps if part.window is not None and part.window.step]
    starts = np.sort(np.array([window.start for window in windows], np.int64))
    if len(starts) > 1:
        period = intervals.middle(np.diff(starts))
    elif len(starts):
        period = float(windows[0].end - windows[0].start)
    else:
        period = float(whole.end.max() - whole.start.min()) if len(whole.rows) and count is not None else 0.0
    if period <= 0:
        return None
    return (count if count is not None else 1.0) / period * 1e9, unit if count is not None else "steps"


def throughput_metrics(whole: Survey, steps: Sequence[Survey], items: str, scopes: Sequence[Labels]) -> MetricSet:
    """Return ``throughput`` of a trace with steps, or of stated items over a trace without."""
    rate = throughput(whole, steps, items)
    if rate is None:
        fix = "state what it works on: --set items='64 samples'"
        return MetricSet(absent=(Absent(name="throughput", why="the trace marks no steps", fix=fix),))
    note = f"{OF_ITEMS}{rate[1]}/s; {'by the time from step to step' if steps else 'over the whole trace'}"
    return MetricSet(
        metrics=tuple(trace_metric("throughput", rate[0], Dimension.RATE, scope, note) for scope in scopes)
    )


def impact_metrics(
    rows: Sequence[OperatorRow], top: int, roof: Roof | None, total: float, scopes: Sequence[Labels]
) -> MetricSet:
    """Return the gain of the top operators at each share of their roof."""
    named = list(zip(rows[:top], distinct_labels(rows)))
    impacts = [(one, where) for row, where in named if (one := impact(row, roof, total)) is not None]
    where = [tuple(sorted((*w, ("target", f"{t:.0%}")))) for one, w in impacts for t, _, _ in one.gains]
    table = impact_table([one for one, _ in impacts])
    known = ("GPU time", "of the roof")
    return MetricSet(metrics=tuple(table_metrics("impact", table, where, scopes, 10**6, known)))


TARGETS = (0.2, 0.5, 0.8)


@value
class Impact:
    """One operator at its present fraction of the roof, and the gain at each target above it."""

    row: OperatorRow
    fraction: float
    gains: tuple[tuple[float, float, float], ...]
    """(target, time then, end-to-end gain)."""


def impact(row: OperatorRow, roof: Roof | None, total_ns: float) -> Impact | None:
    """Return an operator's gains over a window of ``total_ns``; ``None`` without a model or a roof."""
    at = row.placement(roof)
    fraction = at.fraction if at else None
    if total_ns <= 0 or fraction is None or fraction <= 0:
        return None
    times = [(target, row.total * fraction / target) for target in TARGETS if target > fraction]
    gains = tuple((target, then, (row.total - then) / total_ns) for target, then in times)
    return Impact(row=row, fraction=fraction, gains=gains)


def impact_table(impacts: Sequence[Impact]) -> Table:
    """Return one row for each target of each operator."""
    rows = tuple(
        (i.row.name, i.row.call.shapes(), i.row.total, i.fraction, f"{target * 100:.0f} %", then, gain)
        for i in impacts
        for target, then, gain in i.gains
    )
    return Table(
        columns=Column.header(
            "operator | shapes | GPU time: time | of the roof: fraction | if it reached | time then: time | "
            "end-to-end gain, at most: fraction"
        ),
        rows=rows,
        note="A gain assumes that the saved time lies on the critical path.",
    )
