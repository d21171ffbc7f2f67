"""Members of a family, held against what the change under test accepts for them: as each is by itself."""

from __future__ import annotations

import math
from dataclasses import replace

from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.model.limit import Limit, Outcome
from pytest_perfgate.model.measurement import Measurement
from pytest_perfgate.model.metric import Metric, MetricSet
from pytest_perfgate.model.quantity import Dimension, Interval
from pytest_perfgate.model.verdict import CaseReport


def in_force(report: CaseReport, limit: Limit) -> CaseReport:
    """The case against the line that the change accepts with a reason, where what was measured agrees with that.

    One that is no slower than the limit allows, while the line of before holds, is not asked: nothing is accepted.
    """
    line, measurement = report.accepts, report.measurement
    if line is None or measurement is None:
        return report
    time, before = _plain(measurement, "time"), _plain(measurement, "slowdown")
    if time is None or before is None or (before.value <= limit.bound and not report.unheld):
        return report
    if abs(math.log(time.value / line.time)) > math.log1p(limit.bound):
        return report
    interval = Interval(low=time.low / line.time - 1, high=time.high / line.time - 1)
    value = time.value / line.time - 1
    slowdown = Metric(name="slowdown", value=value, dimension=Dimension.FRACTION, interval=interval)
    held = measurement.with_metrics(MetricSet(metrics=(slowdown,)))
    return replace(report, measurement=held, baseline=line, unheld="")


def _plain(measurement: Measurement, name: str) -> Metric | None:
    return next((metric for metric in measurement.metrics.find(name) if not metric.labels), None)


def accepted_by_change(
    outcome: Outcome, why: str, members: list[CaseReport], meant: list[CaseReport]
) -> tuple[Outcome, str]:
    """A mean that keeps its limit by what the change accepts is accepted, not passed, and says so."""
    count = sum(now is not then for now, then in zip(meant, members))
    if not count:
        return outcome, why
    said = f"{why}; {count} of {plural(len(members), 'case')} against what this change accepts"
    return (Outcome.ACCEPTED if outcome is Outcome.PASSED else outcome), said
