"""Members of a family, held against what the change under test accepts for them: as each is by itself."""

from __future__ import annotations

import math
from dataclasses import replace

from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.model.limit import Limit, Outcome
from pytest_perfgate.model.metric import Metric, MetricSet
from pytest_perfgate.model.quantity import Dimension, Interval
from pytest_perfgate.model.verdict import CaseReport


def in_force(report: CaseReport, limit: Limit) -> CaseReport:
    """The case against the line that the change accepts with a reason, where what was measured agrees with that."""
    line, measurement = report.accepts, report.measurement
    found = measurement.metrics.find("time") if measurement is not None else ()
    time = next((metric for metric in found if not metric.labels), None)
    if line is None or measurement is None or time is None or report.problems or limit.bound < 0:
        return report
    if abs(math.log(time.value / line.time)) > math.log1p(limit.bound):
        return report
    interval = Interval(low=time.low / line.time - 1, high=time.high / line.time - 1)
    value = time.value / line.time - 1
    slowdown = Metric(name="slowdown", value=value, dimension=Dimension.FRACTION, interval=interval)
    seen = measurement.metrics
    others = tuple(metric for metric in seen.metrics if metric.name != "slowdown" or metric.labels)
    held = measurement.with_metrics(MetricSet(metrics=(*others, slowdown), absent=seen.absent))
    return replace(report, measurement=held, baseline=line, unheld="")


def accepted_by_change(
    outcome: Outcome, why: str, members: list[CaseReport], meant: list[CaseReport]
) -> tuple[Outcome, str]:
    """A mean that keeps its limit by what the change accepts is accepted, not passed, and says so."""
    count = sum(now is not then for now, then in zip(meant, members))
    if not count:
        return outcome, why
    said = f"{why}; {count} of {plural(len(members), 'case')} against what this change accepts"
    return (Outcome.ACCEPTED if outcome is Outcome.PASSED else outcome), said
