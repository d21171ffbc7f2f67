"""What a test's JUnit entry and its report carry: metrics in the units of the inside, and the outcome."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from pytest_perfgate.core.gate.shift import BESIDE
from pytest_perfgate.core.render.guard import shown
from pytest_perfgate.model.quantity import Dimension
from pytest_perfgate.model.verdict import CaseReport

SEEN = "perfgate_seen"
"""The attribute of a worker's report that names the calls its test made."""

_UNITS = {
    Dimension.TIME: "_ns",
    Dimension.BYTES: "_bytes",
    Dimension.BANDWIDTH: "_bytes_per_s",
    Dimension.FLOPS: "_flop_per_s",
    Dimension.RATE: "_per_s",
    Dimension.CLOCK: "_hz",
}


def properties(reports: Iterable[CaseReport]) -> Iterator[tuple[str, object]]:
    """(name, value) pairs, such as ``perfgate.time_ns``; a named call stands before its metric."""
    for report in reports:
        stem = f"perfgate.{report.key.name}." if report.key.name else "perfgate."
        yield f"{stem}outcome", report.worst.value if report.verdicts else "without a limit"
        yield from shown(partial(_figures, report, stem), partial(_unshown, stem))


def _unshown(stem: str, why: str) -> list[tuple[str, object]]:
    return [(f"{stem}unshown", why)]


def _figures(report: CaseReport, stem: str) -> list[tuple[str, object]]:
    """The figures of the measurement; what two arms convicted by stands in the place of what the screening saw."""
    metrics = report.measurement.metrics.metrics if report.measurement else ()
    by_arms = {v.metric.name: v.metric for v in report.verdicts if v.metric and v.metric.source.startswith(BESIDE)}
    plain = (by_arms.get(metric.name, metric) for metric in metrics if not metric.labels)
    return [(f"{stem}{one.name}{_UNITS.get(one.dimension, '')}", f"{one.value:.6g}") for one in plain]
