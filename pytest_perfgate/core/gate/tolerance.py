"""The smallest slowdown that counts for a test: asked for, seen in its own noise, or too small to time."""

from __future__ import annotations

from typing import NamedTuple

from pytest_perfgate.core.gate.context import Trial
from pytest_perfgate.core.stats.summary import Summary
from pytest_perfgate.model.limit import Limit
from pytest_perfgate.model.samples import Stop

FLOOR_AT_MOST = 0.5
"""The absolute floor never hides more than this: a doubled time is seen however short the call."""


class Tolerance(NamedTuple):
    """All as fractions of the accepted time."""

    asked: float
    """The limit, or the absolute floor where that is larger."""
    own: float
    """What unchanged code moves by here: its own A/A shift, or a tick of the timer."""
    raised: float | None = None
    """What the floor raised the limit to, where it did."""
    blind: float = 0.0
    """What the accepted sitting could not see: the accepted time may be off by as much."""

    @property
    def counts(self) -> float:
        """τ: what is smaller is no slowdown."""
        return max(self.asked, self.own)


def tolerance(limit: Limit, trial: Trial, seen: Summary, then: float) -> Tolerance:
    """τ of one limit. The floor is of what the timer was shown: a batch of calls divides it.

    No floor raises a demanded improvement: it excuses a slowdown that is too short to time, and that is none.
    """
    floor = min(_floor(trial) / seen.batch / then, FLOOR_AT_MOST) if limit.bound >= 0 else limit.bound
    return Tolerance(
        asked=max(limit.bound, floor),
        own=max(trial.context.own_shift, seen.resolution / then),
        raised=floor if floor > limit.bound else None,
    )


def _floor(trial: Trial) -> float:
    """Times that were measured elsewhere were shown to no timer of ours: nobody knows what that could not tell."""
    elsewhere = all(process.stop is Stop.RECORDED for process in trial.measurement.processes)
    return 0.0 if elsewhere else trial.context.floor_ns
