"""A fixed anchor: many small steps, each under the limit, add up against the line of the last release."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.model.baseline import Sitting
from pytest_perfgate.model.values import value

LIMIT = 0.05
"""How far a case may drift from its anchor, however small the steps."""
RECENT = 3
"""Sittings whose median stands for today: one alone may be a bad day."""


@value
class Drift:
    """How far a case has come from its anchor."""

    anchor: float
    now: float
    limit: float
    steps: int
    """Sittings since the anchor."""
    largest: float
    """The largest single step among them, as a fraction."""

    @property
    def change(self) -> float:
        return self.now / self.anchor - 1

    @property
    def alarms(self) -> bool:
        return self.change > self.limit

    @property
    def sentence(self) -> str:
        """What happened; empty while the anchor holds."""
        if not self.alarms:
            return ""
        small = "no step of them beyond the limit" if self.largest <= self.limit else "with a step beyond the limit"
        return f"slower than the anchor after {plural(self.steps, 'sitting')}, {small}"


def drift(sittings: Sequence[Sitting], anchor: float, limit: float, since: str = "") -> Drift | None:
    """The newest sittings against the anchor's time; ``None`` before there is one.

    ``since`` is the commit of the anchor: where the line has it, only what came after counts.
    """
    times = [sitting.time for sitting in _after(sittings, since)]
    if not times or anchor <= 0:
        return None
    steps = [now / then - 1 for then, now in zip([anchor, *times], times)]
    return Drift(anchor=anchor, now=median(times[-RECENT:]), limit=limit, steps=len(times), largest=max(steps))


def _after(sittings: Sequence[Sitting], commit: str) -> Sequence[Sitting]:
    at = next((at for at, sitting in enumerate(sittings) if commit and sitting.commit.startswith(commit)), None)
    return sittings if at is None else sittings[at + 1 :] or sittings[at:]
