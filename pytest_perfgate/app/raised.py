"""Calls that raised, with the test catching that: they have no measurement, and what they raised is why."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.verdict import CaseReport

Unmeasured = Callable[[CaseKey, str], CaseReport]


def with_raised(
    found: Sequence[CaseReport], raised: Sequence[tuple[CaseKey, str]], unmeasured: Unmeasured
) -> tuple[CaseReport, ...]:
    """The reports of a test, those of its calls that raised among them.

    That a region ended well another time measures neither: which entries did the work, nobody knows.
    """
    why = {key: f"its {said}, and the test caught that" for key, said in raised}
    measured = {report.key for report in found}
    told = [unmeasured(report.key, why[report.key]) if report.key in why else report for report in found]
    return (*told, *(unmeasured(key, said) for key, said in why.items() if key not in measured))
