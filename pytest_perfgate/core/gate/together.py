"""Many cases that moved at once: one cause, said once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_perfgate.model.limit import Effect, Outcome
from pytest_perfgate.model.verdict import CaseReport, SuiteNote

_FEW = 3
"""Fewer may each have a cause of its own."""


def moved_together(reports: Sequence[CaseReport]) -> Iterator[SuiteNote]:
    """Half of what has a baseline, or more: before each is accepted as it is now, the machine is to be looked at."""
    held = [report for report in reports if report.measurement is not None and report.baseline is not None]
    moved = [report for report in held if any(v.outcome is Outcome.MOVED for v in report.verdicts)]
    if len(moved) >= _FEW and 2 * len(moved) >= len(held):
        text = (
            f"{len(moved)} of {len(held)} cases with a baseline moved, so it is the machine rather than each of them: "
            "perfgate doctor; measure again where it is quiet before any of them is accepted"
        )
        yield SuiteNote(kind="together", effect=Effect.WARN, text=text)
