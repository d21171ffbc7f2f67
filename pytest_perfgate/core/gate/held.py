"""Whether a slowdown speaks for anything: one rule for a case by itself and for a mean over its family."""

from __future__ import annotations

from pytest_perfgate.core.gate.against_revision import not_compared
from pytest_perfgate.core.gate.comparable import incomparable
from pytest_perfgate.core.gate.context import Trial
from pytest_perfgate.core.gate.conviction import expired
from pytest_perfgate.core.gate.reasons import reasoned
from pytest_perfgate.model.baseline import Baseline
from pytest_perfgate.model.paired import Paired
from pytest_perfgate.model.verdict import Arms


def unheld(trial: Trial) -> str:
    """Why nothing is held against the line, or the arm; empty where something is, and where there is none."""
    if trial.paired is not None and trial.paired.revision:
        return not_compared(trial.paired) if trial.paired.edited else ""
    return unheld_line(trial) if trial.baseline is not None else ""


def unheld_line(trial: Trial) -> str:
    """Why the accepted time is none to hold anything against."""
    reason = incomparable(trial.baseline, trial.measurement, trial.context)
    if reason or trial.baseline is None:
        return reason
    return run_out(trial.baseline) if expired(trial.baseline, trial.context) else ""


def renewing(trial: Trial) -> Baseline | None:
    """The line with which the change under test accepts anew, with a reason, where this may be compared with both."""
    edited, before = trial.context.edited, trial.baseline
    if edited is None or expired(edited, trial.context) or not reasoned(edited, before):
        return None
    apart = any(incomparable(line, trial.measurement, trial.context) for line in (before, edited))
    return None if apart else edited


def accepting(trial: Trial) -> Baseline | None:
    """The same, where it takes the place of the line of before: that has run out, or is faster."""
    line, before = renewing(trial), trial.baseline
    if line is None or before is None or (trial.paired is not None and trial.paired.revision):
        return None
    return line if expired(before, trial.context) or line.time > before.time else None


def run_out(baseline: Baseline) -> str:
    """When the acceptance of a line ended, and what it was for."""
    why = f': "{baseline.why}"' if baseline.why else ""
    return f"the acceptance expired on {baseline.expires}{why}"


def arms_of(paired: Paired | None) -> Arms | None:
    """The arms that a slowdown rests on, where the user named a revision."""
    if paired is None or not paired.revision:
        return None
    return Arms(base=paired.base, same=paired.same, differences=paired.differences)
