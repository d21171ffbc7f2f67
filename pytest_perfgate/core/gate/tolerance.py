"""The smallest slowdown that counts for a test: asked for, seen in its own noise, or too small to time."""

from __future__ import annotations

from pytest_perfgate.core.gate.context import JudgeContext
from pytest_perfgate.core.stats.summary import Summary
from pytest_perfgate.model.limit import Limit
from pytest_perfgate.model.values import value


@value
class Tolerance:
    """All as fractions of the accepted time."""

    asked: float
    """The limit, or the absolute floor where that is larger."""
    own: float
    """The 99th percentile of the case's own A/A shift."""

    @property
    def counts(self) -> float:
        """τ: what is smaller is no slowdown."""
        return max(self.asked, self.own)


def tolerance(limit: Limit, context: JudgeContext, seen: Summary, then: float) -> Tolerance:
    """τ of one limit. The floor is of what the timer was shown: a batch of calls divides it."""
    floor = max(context.floor_ns / seen.batch, seen.resolution)
    return Tolerance(asked=max(limit.bound, floor / then), own=context.own_shift)
