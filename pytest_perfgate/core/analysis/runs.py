"""Runs as figures: every case's metrics under its name, and two runs against each other."""

from __future__ import annotations

from dataclasses import replace

from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.model.document import Column, Table
from pytest_perfgate.model.measurement import Measurement
from pytest_perfgate.model.metric import Absent, Metric, MetricSet, labels
from pytest_perfgate.model.problem import Problem
from pytest_perfgate.model.quantity import Dimension, Interval
from pytest_perfgate.model.verdict import RunReport

Pair = tuple[str, Metric, Metric]


def metrics_of_run(run: RunReport) -> MetricSet:
    """The metrics of all cases, each with the case as a scope."""
    measured = [(str(case.key), case.measurement) for case in run.cases if case.measurement]
    return MetricSet(
        metrics=tuple(_scoped(name, m) for name, measurement in measured for m in measurement.metrics.metrics),
        absent=tuple(
            Absent(name="time", labels=labels(case=str(c.key)), why="not measured")
            for c in run.cases
            if not c.measurement
        ),
    )


def _scoped(case: str, metric: Metric) -> Metric:
    return replace(metric, labels=tuple(sorted((*metric.labels, ("case", case)))))


def pairs(before: RunReport, after: RunReport) -> list[Pair]:
    """The times of cases that both runs measured alike: same device, same identity."""
    old = {str(c.key): c.measurement for c in before.cases if c.measurement}
    found = []
    for case in after.cases:
        then, now = old.get(str(case.key)), case.measurement
        if then and now and not then.identity.differences(now.identity):
            times = (_time(then), _time(now))
            if times[0] and times[1]:
                found.append((str(case.key), times[0], times[1]))
    return found


def _time(measurement: Measurement) -> Metric | None:
    found = measurement.metrics.find("time")
    return found[0] if found and found[0].value > 0 else None


def compared(before: RunReport, after: RunReport) -> MetricSet:
    """The slowdown of every case, with the widest interval that both times allow."""
    return MetricSet(
        metrics=tuple(
            Metric(
                name="slowdown",
                value=new.value / old.value - 1,
                dimension=Dimension.FRACTION,
                labels=labels(case=name),
                interval=Interval(low=new.low / old.high - 1, high=new.high / old.low - 1),
                note="two sittings: the machine may have moved between them",
            )
            for name, old, new in pairs(before, after)
        )
    )


def comparison_table(before: RunReport, after: RunReport) -> Table:
    found = sorted(pairs(before, after), key=_fastest)
    rows = tuple((name, old.value, new.value, new.value / old.value - 1) for name, old, new in found)
    columns = (
        Column(name="case"),
        Column(name="before", dimension=Dimension.TIME),
        Column(name="after", dimension=Dimension.TIME),
        Column(name="slowdown", dimension=Dimension.FRACTION, digits=3),
    )
    return Table(columns=columns, rows=rows)


def _fastest(pair: Pair) -> float:
    """What got faster most comes last."""
    return -pair[2].value / pair[1].value


def dropped(before: RunReport, after: RunReport) -> tuple[Problem, ...]:
    """Cases that the later run lacks, or measured in another way."""
    paired = {name for name, *_ in pairs(before, after)}
    gone = [str(c.key) for c in before.cases if c.measurement and str(c.key) not in paired]
    if not gone:
        return ()
    what = f"{plural(len(gone), 'case')} of the earlier run without a counterpart measured alike: {', '.join(gone[:5])}"
    return (Problem(code="benchmark-dropped", what=what, retry=False),)
