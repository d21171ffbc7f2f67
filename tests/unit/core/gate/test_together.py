from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.suite import moved_together
from pytest_perfgate.model.plan import Effect, Outcome
from pytest_perfgate.model.verdict import CaseReport
from tests.unit.core.gate.bench import KEY, accepted, measured, verdict


def report(outcome: Outcome, *, line: bool = True) -> CaseReport:

    said = replace(verdict(), outcome=outcome)
    return CaseReport(key=KEY, verdicts=(said,), measurement=measured(1e6), baseline=accepted(1e6) if line else None)


def test_a_case_moved_though_another_limit_of_it_is_kept() -> None:
    both = (replace(verdict(), outcome=Outcome.MOVED), verdict())
    assert len(list(moved_together([replace(report(Outcome.MOVED), verdicts=both)] * 3))) == 1


@pytest.mark.parametrize(
    ("moved", "passed", "bare", "told"),
    [(3, 3, 0, True), (3, 0, 9, True), (3, 4, 0, False), (2, 0, 0, False), (0, 4, 0, False)],
)
def test_many_that_moved_at_once_are_said_once(moved: int, passed: int, bare: int, *, told: bool) -> None:
    cases = [report(Outcome.MOVED)] * moved + [report(Outcome.PASSED)] * passed
    notes = list(moved_together([*cases, *[report(Outcome.PASSED, line=False)] * bare]))
    assert [(note.kind, note.effect) for note in notes] == ([("together", Effect.WARN)] if told else [])
    assert all(note.text.startswith(f"{moved} of {moved + passed} cases") for note in notes)
