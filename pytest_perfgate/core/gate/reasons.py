"""Whether a line says why it was accepted."""

from __future__ import annotations

from pytest_perfgate.model.baseline import Baseline
from pytest_perfgate.model.limit import Outcome
from pytest_perfgate.model.metric import Metric
from pytest_perfgate.model.verdict import CaseReport


def reasoned(edited: Baseline, before: Baseline | None) -> bool:
    """A reason of its own: one that stands there from the acceptance before explains nothing new."""
    stale = before is not None and (edited.why, edited.when) == (before.why, before.when)
    return bool(edited.why.strip()) and not stale


def unexplained(line: Baseline, judged: Baseline | None, noise: float) -> bool:
    """Whether a line of the change under test is slower, or measured differently, and says no reason of its own."""
    if judged is None or judged.local or reasoned(line, judged):
        return False
    return line.time > judged.time * (1 + noise) or other_identity(line, judged)


def other_identity(line: Baseline, before: Baseline | None) -> bool:
    """Whether two lines were measured differently, as far as both say how."""
    if before is None or before.identity is None or line.identity is None:
        return False
    return line.identity != before.identity or line.limited != before.limited


def uncompared(report: CaseReport, before: Baseline, time: Metric, today: str) -> bool:
    """Whether the gate refused to compare with this line, such as for its versions: its own time says nothing then.

    One that was accepted from this very sitting, with a reason, is the answer to that.
    """
    refused = (v.baseline for v in report.verdicts if v.outcome is Outcome.UNBASELINED)
    judged = next((line for line in refused if line is not None), None)
    if judged is None or (judged.expires and judged.expires[:10] < today[:10]):
        return False
    return not reasoned(before, judged) or f"{time.value:.5g}" != f"{before.time:.5g}"
