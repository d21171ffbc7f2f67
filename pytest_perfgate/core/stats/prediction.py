"""What one more sitting of unchanged code could read: the interval that convicts without a second arm."""

from __future__ import annotations

import enum
import math
from typing import NamedTuple

from pytest_perfgate.core.stats.student import t_quantile

PRIOR_DOF = 4
ALARM = 0.01
"""The chance that a clean suite of all gates alarms at all."""


class Prior(float, enum.Enum):
    """Relative scatter between sittings that a class of device is known for."""

    GPU_LOCKED = 0.005
    GPU_FREE = 0.015
    CPU = 0.04


def prior(kind: str, clocks: str) -> Prior:
    """The class of a device by its kind and by what was done to its clocks."""
    if kind != "gpu":
        return Prior.CPU
    return Prior.GPU_LOCKED if clocks == "lock" else Prior.GPU_FREE


class Prediction(NamedTuple):
    """How far one new sitting may lie from the accepted value without anything having changed."""

    scatter: float
    """Between sittings, shrunk towards the prior."""
    dof: int
    sittings: int
    gates: int

    @property
    def reach(self) -> float:
        """The largest slowdown that chance explains, as a fraction."""
        return math.expm1(self.log_reach)

    @property
    def log_reach(self) -> float:
        return self.log_within(ALARM / self.gates)

    def log_within(self, level: float) -> float:
        """How far above the accepted value a new sitting lies with this chance, as a logarithm."""
        return t_quantile(1 - level, self.dof) * self.scatter * math.sqrt(1 + 1 / self.sittings)


def predict(
    expected: float, *, scatter: float = 0.0, sittings: int = 1, gates: int = 1, freedom: int | None = None
) -> Prediction:
    """The prediction for one new sitting from the prior's scatter and that of the accepted sittings.

    ``freedom`` is what the scatter rests on, where that is not one less than the sittings.
    """
    seen = max(sittings, 1) - 1 if freedom is None else freedom
    dof = PRIOR_DOF + seen
    pooled = math.sqrt((PRIOR_DOF * expected**2 + seen * scatter**2) / dof)
    return Prediction(scatter=pooled, dof=dof, sittings=max(sittings, 1), gates=max(gates, 1))
