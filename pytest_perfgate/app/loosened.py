"""Lines of the change under test that would let the next change be slower."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_perfgate.app.gate import Court
from pytest_perfgate.core.gate.loosened import loosened
from pytest_perfgate.core.gate.policy import effect
from pytest_perfgate.core.gate.widened import widened
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.model.baseline import Baseline
from pytest_perfgate.model.limit import Effect, Outcome
from pytest_perfgate.model.plan import Mode
from pytest_perfgate.model.verdict import CaseReport, SuiteNote


def loosened_lines(court: Court, reports: Sequence[CaseReport]) -> Iterable[SuiteNote]:
    """A note for lines that are slower than what is measured, and one for those that hold less in another way."""
    if court.context.mode is not Mode.FULL:
        return
    done = effect(Outcome.IMPROVED, court.context.policy, court.context.mode)
    edits = [(report, *found) for report in reports if (found := _edit(court, report)) is not None]
    slower = [f"{r.key}: {said}" for r, then, now in edits if (said := loosened(then, now, r.measurement))]
    weaker = [f"{r.key}: {', '.join(parts)}" for r, then, now in edits if (parts := widened(then, now))]
    if slower and done is not Effect.PASS:
        text = f"{plural(len(slower), 'line')} of this change accepted as slower than measured: accept what is measured"
        yield SuiteNote(kind="loosened", effect=done, text=text, names=tuple(slower))
    if weaker and done is not Effect.PASS:
        text = f"{plural(len(weaker), 'line')} of this change would hold less than before, and no reason says why"
        yield SuiteNote(kind="widened", effect=done, text=text, names=tuple(weaker))


def _edit(court: Court, report: CaseReport) -> tuple[Baseline, Baseline] | None:
    """The line that judges and what the change makes of it, where it edits it."""
    if report.measurement is None or report.problems:
        return None
    then, edited = court.accepted.judging(report.measurement)
    return (then, edited) if then is not None and edited is not None else None
