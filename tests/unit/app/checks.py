"""Notes of one check of a change, as the tests ask for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_perfgate.app.changed_project import CHANGES
from pytest_perfgate.app.changed_tests import JudgedChange, change_notes
from pytest_perfgate.model.plan import Case
from pytest_perfgate.model.verdict import CaseReport, SuiteNote


def notes_on(
    kind: str,
    gate_judge: Any,
    reports: Sequence[CaseReport] = (),
    *,
    cases: Mapping[str, Case] | None = None,
    suite: Any = None,
) -> list[SuiteNote]:
    """Notes of the one check with this name."""
    (check,) = (check for check in CHANGES if check.kind == kind)
    return list(
        change_notes(check, JudgedChange(gate_judge=gate_judge, cases=cases or {}, reports=reports, suite=suite))
    )
