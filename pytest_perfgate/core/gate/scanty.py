"""Accepting what a quick or an interrupted run measured: fewer processes than a whole run asks for."""

from __future__ import annotations

from dataclasses import replace

from pytest_perfgate.core.gate.acceptance import MEASURED, Change, Decision
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.model.plan import Mode, Plan
from pytest_perfgate.model.verdict import RunReport


def scanty(decision: Decision, report: RunReport) -> Decision:
    """The decision with what its sitting lacks, and a line that says on how many processes it stands."""
    measurement = decision.report.measurement
    if decision.after is None or measurement is None:
        return decision
    count = len(measurement.processes)
    said = _lacking(report, count)
    if not said or decision.change not in MEASURED | {Change.SITTING}:
        return decision
    after = replace(decision.after, processes=count) if decision.change in MEASURED else decision.after
    return replace(decision, after=after, scanty=said)


def _lacking(report: RunReport, count: int) -> str:
    """Why a sitting is less than a whole one; empty where it is not."""
    if report.mode == Mode.QUICK.value:
        return "from a quick run: one process, that of the tests"
    counts = [len(case.measurement.processes) for case in report.cases if case.measurement is not None]
    if not report.complete and count < max(Plan().rounds, *counts):
        return f"from an interrupted run: {plural(count, 'process', 'processes')}"
    return ""
