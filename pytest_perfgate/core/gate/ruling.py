"""A verdict in the making: what is said, and the effect that the policy gives it."""

from __future__ import annotations

from typing import NamedTuple

from pytest_perfgate.core.gate.context import JudgeContext, Trial
from pytest_perfgate.core.gate.policy import effect
from pytest_perfgate.model.limit import Effect, Limit, Outcome
from pytest_perfgate.model.metric import Metric
from pytest_perfgate.model.verdict import Verdict


class Ruling(NamedTuple):
    """An outcome with its reason; becomes a verdict beside its limit."""

    outcome: Outcome
    sentence: str
    next: tuple[str, ...] = ()
    evidence: tuple[tuple[str, str], ...] = ()
    metric: Metric | None = None
    visible: float | None = None
    rounds: int = 0
    against: bool = False
    """Whether the baseline was asked."""
    raised: float | None = None
    """What the absolute floor raised the limit to."""
    fails: bool = False
    """Fails whatever the policy says."""


def verdict(limit: Limit, ruling: Ruling, context: JudgeContext, trial: Trial | None = None) -> Verdict:
    """The ruling as a verdict, its effect taken from the policy."""
    done = Effect.FAIL if ruling.fails else effect(ruling.outcome, context.policy, context.mode)
    return Verdict(
        limit=limit,
        outcome=ruling.outcome,
        effect=done,
        metric=ruling.metric,
        baseline=trial.baseline if trial and ruling.against else None,
        visible=_visible(ruling, trial),
        sentence=ruling.sentence,
        next=ruling.next,
        evidence=ruling.evidence,
        rounds=ruling.rounds,
        raised=ruling.raised,
        interval=ruling.metric.interval if ruling.metric else None,
    )


def _visible(ruling: Ruling, trial: Trial | None) -> float | None:
    """What could have been seen: the ruling's own figure, else that of the sitting."""
    if ruling.visible is not None:
        return ruling.visible
    return trial.seen.visible if trial and trial.seen else None
