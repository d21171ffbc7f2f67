"""One case that cannot be written costs no other its place in the record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.faults import SHOWING, fault_sentence
from pytest_perfgate.model.problem import Problem
from pytest_perfgate.model.verdict import CaseReport, RunReport

T = TypeVar("T")


def writable(report: RunReport, render: Callable[[RunReport], T]) -> T:
    """What ``render`` makes of a run; where it stumbles, of the run with what is left of the cases that trip it."""
    try:
        return render(report)
    except PerfgateError:
        raise
    except Exception:  # noqa: BLE001 - a plugin's metrics may hold anything
        return render(replace(report, cases=tuple(_sound(report, case, render) for case in report.cases)))


def _sound(report: RunReport, case: CaseReport, render: Callable[[RunReport], T]) -> CaseReport:
    """The case; of one that cannot be written, what it came to and why there is no more of it."""
    try:
        render(replace(report, cases=(case,)))
    except Exception as fault:  # noqa: BLE001 - as above
        why = fault_sentence(fault, "wrote this", SHOWING)
        bare = tuple(verdict.without_figures(why) for verdict in case.verdicts)
        problem = Problem(code=SHOWING, what=why, retry=False)
        return CaseReport(key=case.key, verdicts=bare, problems=(problem,), excuse=case.excuse)
    return case
