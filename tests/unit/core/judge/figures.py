"""Figures to judge, with their accepted values."""

from __future__ import annotations

from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.model.metric import Figure, Interval, Metric, MetricSet
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.model.verdict import Verdict
from tests.unit.core.judge.bench import CONTEXT, accepted, limit, measured

COUNT, PART, BYTES, TIME = Dimension.COUNT, Dimension.FRACTION, Dimension.BYTES, Dimension.TIME


def figure(name: str, value: float, dimension: Dimension = COUNT, **fields) -> Figure:
    return Figure(**{"name": name, "value": value, "dimension": dimension} | fields)


def metric(name: str, value: float, dimension: Dimension = COUNT, *, half: float = 0.0, labels=()) -> Metric:
    around = Interval(low=value - half, high=value + half) if half else None
    return Metric(name=name, value=value, dimension=dimension, labels=labels, interval=around)


def judged(text: str, now: Metric | tuple[Metric, ...], *figures: Figure, context=CONTEXT, **line) -> Verdict:
    metrics = now if isinstance(now, tuple) else (now,)
    measurement = measured(1e6, shape=(), metrics=MetricSet(metrics=metrics))
    before = accepted(0.0, figures=figures, **line) if figures or line else None
    (verdict,) = judge(measurement, [limit(text)], baseline=before, context=context).verdicts
    return verdict
