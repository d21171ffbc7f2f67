"""When to stop warming up, and when to stop sampling."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_perfgate.model.plan import Plan
from pytest_perfgate.model.samples import Stop

STEP = 8
"""Samples between two looks: the rule must cost less than the call it watches."""
WINDOW = 64
"""Samples over which the noise has to hold still."""
SETTLED = 0.05


class Stopping:
    """Enough samples, and either little spread or noise that has settled; else the budget (NVBench's rule).

    One object serves one process at a time and starts anew when it is shown other samples.
    """

    def __init__(self, least_ns: float = 0.0) -> None:
        self.least_ns = least_ns
        self._restart()

    def _restart(self) -> None:
        self._seen = 0
        self._look = 0
        self._first = self._last = 0.0
        self._sum = self._squares = 0.0
        self._noise: list[float] = []

    def __call__(self, durations: Sequence[float], spent_ns: float, plan: Plan) -> Stop | None:
        """Why to stop now, or ``None``."""
        count = len(durations)
        if count >= plan.max_samples:
            return Stop.COUNT
        if spent_ns >= plan.budget_ns and count >= max(1, plan.least_samples):
            return Stop.BUDGET
        if self._seen <= count < self._look and durations[0] == self._first:
            return None
        if not count:
            return None
        self._take(durations, count)
        if count < plan.min_samples or spent_ns < self.least_ns:
            return None
        return self._verdict(plan)

    def _take(self, durations: Sequence[float], count: int) -> None:
        """Add what is new; sums are of differences from the first sample, which keeps them exact enough."""
        if count < self._seen or (self._seen and durations[self._seen - 1] != self._last):
            self._restart()
        if not self._seen:
            self._first = durations[0]
        for at in range(self._seen, count):
            off = durations[at] - self._first
            self._sum += off
            self._squares += off * off
        self._seen, self._last, self._look = count, durations[count - 1], count + STEP
        self._noise.append(self._spread())

    def _spread(self) -> float:
        """Standard deviation over mean, of all samples so far."""
        count = self._seen
        mean = self._first + self._sum / count
        if count < 2 or mean <= 0:
            return math.inf
        variance = max(0.0, (self._squares - self._sum * self._sum / count) / (count - 1))
        return math.sqrt(variance) / mean

    def _verdict(self, plan: Plan) -> Stop | None:
        if self._noise[-1] < plan.spread:
            return Stop.PRECISE
        recent = self._noise[-(WINDOW // STEP) :]
        if self._seen >= WINDOW and len(recent) == WINDOW // STEP and max(recent) - min(recent) < SETTLED * recent[-1]:
            return Stop.SETTLED
        return None


class WarmUp:
    """Warm by count and by time, or by five batch medians in a row that agree."""

    calls = 3
    agreeing = 5
    within = 0.01

    def __call__(self, medians: Sequence[float], calls: int, spent_ns: float, plan: Plan) -> bool:
        """Whether the call is warm, given the batch medians so far, the calls made and the time spent."""
        if calls >= self.calls and spent_ns >= plan.warmup_ns:
            return True
        recent = medians[-self.agreeing :]
        return len(recent) == self.agreeing and max(recent) <= min(recent) * (1 + self.within)
