"""What was measured before the tests, and what a test then called, must be the same calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_perfgate.app.gate import Court
from pytest_perfgate.model.plan import Case, CaseKey
from pytest_perfgate.model.profiling import STATIC
from pytest_perfgate.model.verdict import CaseReport

_STRANGE = "called in the test, but not while it was measured: the call does not always happen"
_UNCALLED = "measured before the tests, but never called in the test itself: the call does not always happen"


def agreed(court: Court, case: Case, stored: tuple[CaseReport, ...], seen: Sequence[CaseKey]) -> tuple[CaseReport, ...]:
    """The stored verdicts of calls that happened in both, and NOT MEASURED for each that did not."""
    measured = {report.key for report in stored if report.measurement is not None}
    told = {report.key for report in stored}
    if not measured:
        return stored
    kept = (r if r.key in seen or r.key not in measured or _static(r) else _uncalled(court, case, r) for r in stored)
    return (*kept, *(court.unmeasured(case, key, _STRANGE) for key in seen if key not in told))


def _static(report: CaseReport) -> bool:
    """Machine code that the test handed over: no call of it belongs to it."""
    return report.measurement is not None and report.measurement.identity.timer == STATIC


def _uncalled(court: Court, case: Case, report: CaseReport) -> CaseReport:
    return replace(court.unmeasured(case, report.key, _UNCALLED), measurement=report.measurement)
