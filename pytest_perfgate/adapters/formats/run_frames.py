"""A run as a pandas frame: one row a verdict."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_perfgate.model.verdict import CaseReport, RunReport

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

COLUMNS = (
    "case", "test", "device", "limit", "outcome", "effect", "metric", "value", "low", "high", "time_ns", "accepted_ns",
    "processes", "commit",
)  # fmt: skip


def run_frame(source: RunReport | Path | str, read: Callable[[str], RunReport]) -> pd.DataFrame:
    """One row a verdict, numbers as they are inside: nanoseconds, fractions."""
    import pandas as pd

    report = source if isinstance(source, RunReport) else read(str(source))
    rows = [row for case in report.cases for row in _rows(case, report.environment.commit)]
    table: pd.DataFrame = pd.DataFrame(rows, columns=list(COLUMNS))
    return table


def _rows(case: CaseReport, commit: str) -> Iterator[dict[str, Any]]:
    measurement = case.measurement
    times = measurement.metrics.find("time") if measurement else ()
    shared = {
        "case": str(case.key),
        "test": case.key.test,
        "device": measurement.device.key if measurement else None,
        "time_ns": times[0].value if times else None,
        "accepted_ns": case.baseline.time if case.baseline else None,
        "processes": len(measurement.processes) if measurement else 0,
        "commit": commit,
    }
    for verdict in case.verdicts:
        metric = verdict.metric
        yield {
            **shared,
            "limit": verdict.limit.text,
            "outcome": verdict.outcome.value,
            "effect": case.effect_of(verdict).value,
            "metric": metric.name if metric else None,
            "value": metric.value if metric else None,
            "low": metric.low if metric else None,
            "high": metric.high if metric else None,
        }
