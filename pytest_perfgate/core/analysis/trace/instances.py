"""One collective of a job, as every rank that took part recorded it."""

from __future__ import annotations

from pytest_perfgate.core.analysis.trace.collectives import Collective
from pytest_perfgate.model.values import value


@value
class Instance:
    """One collective seen by all ranks that recorded it."""

    kind: str
    group: str
    ordinal: int
    parts: tuple[Collective, ...]

    @property
    def latency(self) -> int:
        """The shortest duration: that of the rank which arrived last and waited for nobody."""
        return min(part.length for part in self.parts)

    @property
    def skew(self) -> int:
        return max(part.length for part in self.parts) - self.latency

    @property
    def size(self) -> float | None:
        return max((part.size for part in self.parts if part.size is not None), default=None)
