"""Counters of a profiler by their full names: which it could have collected no report lists."""

from __future__ import annotations

from pytest_perfgate.model.limit import Limit
from pytest_perfgate.model.metric import Absent, MetricSet

_OPEN = {"ncu": ("metric", "--metrics"), "rocprof": ("counter", "--pmc")}
"""Metrics that stand for any counter: the scope that names it, and the profiler's option that collects it."""


def not_in_the_report(limit: Limit, metrics: MetricSet) -> Absent | None:
    """Why a counter is not there, where its name alone is what no figure has: it is no wrong scope."""
    label, option = _OPEN.get(limit.metric, ("", ""))
    asked = dict(limit.labels).get(label)
    if asked is None or metrics.find(limit.metric, ((label, asked),)):
        return None
    return Absent(name=limit.metric, why=f"{asked} is not in the report", mend=f"collect it with {option} {asked}")
