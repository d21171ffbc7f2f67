"""Lines of the change under test that would let the next change be slower."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_perfgate.app.gate import Court
from pytest_perfgate.core.gate.loosened import loosened
from pytest_perfgate.core.gate.policy import effect
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.model.limit import Effect, Outcome
from pytest_perfgate.model.plan import Mode
from pytest_perfgate.model.verdict import CaseReport, SuiteNote


def loosened_lines(court: Court, reports: Sequence[CaseReport]) -> Iterable[SuiteNote]:
    """One note for all of them: what is measured is faster than such a line, and that is IMPROVED after the merge."""
    if court.context.mode is not Mode.FULL:
        return
    done = effect(Outcome.IMPROVED, court.context.policy, court.context.mode)
    names = [f"{report.key}: {said}" for report in reports if (said := _loosened(court, report))]
    if names and done is not Effect.PASS:
        text = f"{plural(len(names), 'line')} of this change accepted as slower than measured: accept what is measured"
        yield SuiteNote(kind="loosened", effect=done, text=text, names=tuple(names))


def _loosened(court: Court, report: CaseReport) -> str:
    if report.measurement is None or report.problems:
        return ""
    then, edited = court.accepted.judging(report.measurement)
    return loosened(then, edited, report.measurement) if then is not None and edited is not None else ""
