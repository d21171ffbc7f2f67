"""Whether a line says why it was accepted."""

from __future__ import annotations

from pytest_perfgate.model.baseline import Baseline


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
    return line.identity != before.identity
