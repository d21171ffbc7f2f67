"""Median intervals, Student intervals, stop rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from pytest_perfgate.model.measurement import Samples, Stop
from pytest_perfgate.model.metric import Interval

if TYPE_CHECKING:
    from pytest_perfgate.model.plan import Plan

CONFIDENCE = 0.95

NORMAL = 1.959963984540054
"""The normal quantile that goes with it."""

RANKED = 6
"""Samples whose range covers their median at 95 %."""

MANY = 1000
"""Samples from which on the normal approximation is as good."""


def median(ordered: Sequence[float]) -> float:
    """The middle of sorted numbers."""
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


class Logs(NamedTuple):
    """The logarithms of some numbers, as far as an interval asks: they scatter alike at every scale."""

    size: int
    mean: float
    deviation: float


def logs_of(numbers: Sequence[float]) -> Logs:
    """Sum up the logarithms of positive numbers."""
    logs = [math.log(number) for number in numbers]
    mean = math.fsum(logs) / len(logs)
    return Logs(len(logs), mean, deviation(logs, mean))


def of_processes(logs: Logs, centre: float) -> Interval:
    """Student's interval from the logarithms of two or more process medians, widened to hold their median."""
    half = t_quantile((1 + CONFIDENCE) / 2, logs.size - 1) * logs.deviation / math.sqrt(logs.size)
    low, high = math.exp(logs.mean - half), math.exp(logs.mean + half)
    return Interval(low=min(low, centre), high=max(high, centre), confidence=CONFIDENCE)


def deviation(numbers: Sequence[float], mean: float) -> float:
    """The standard deviation of a sample; zero for fewer than two."""
    if len(numbers) < 2:
        return 0.0
    return math.sqrt(math.fsum([(n - mean) ** 2 for n in numbers]) / (len(numbers) - 1))


def of_samples(ordered: Sequence[float]) -> Interval:
    """The interval of a median by order statistics, of one process: exact, whatever the distribution.

    Below six samples no rank covers 95 %, and Student's stands in; one alone says nothing of its error.
    """
    if 1 < len(ordered) < RANKED:
        return of_processes(logs_of(ordered), median(ordered))
    rank, confidence = median_rank(len(ordered))
    return Interval(low=ordered[rank], high=ordered[len(ordered) - 1 - rank], confidence=confidence)


@lru_cache(maxsize=4096)
def median_rank(count: int) -> tuple[int, float]:
    """How many samples to leave out on each side, and the confidence that is left.

    The widest rank whose coverage is still 95 %; below six samples even all of them cover less.
    """
    if count >= MANY:
        return int((count - NORMAL * math.sqrt(count)) / 2) - 1, CONFIDENCE
    total, rank = 2.0**count, 0
    below = 1 / total
    while 2 * (following := below + math.comb(count, rank + 1) / total) <= 1 - CONFIDENCE:
        below, rank = following, rank + 1
    return rank, max(0.0, 1 - 2 * below)


ALARM, POWER = 0.99, 0.84162
"""A slowdown is surely seen when it passes the 99 % point with a power of 80 %."""

ALONE = 1.25
"""How far a single sample is trusted: a quarter either way, so that it decides only what is plain."""


class Summary(NamedTuple):
    """The time of one run."""

    time: float
    """The median of the process medians, in nanoseconds."""
    interval: Interval
    medians: tuple[float, ...]
    scatter: float
    """Relative deviation between processes; within the one process where there is one."""
    spread: float
    """The median interquartile range within a process, in nanoseconds."""
    samples: int
    """The fewest samples that a process has."""
    batch: int
    overhead: float
    """Nanoseconds of an empty measurement per call."""
    resolution: float
    """What the timer can tell apart, per call."""
    visible: float
    """The smallest slowdown that this run could surely have told from its own noise."""


def summary(processes: Sequence[Samples], ordered: Sequence[Sequence[float]] = ()) -> Summary:
    """Sum up one run; the caller has made sure that every sample is a positive number.

    Who has sorted them already hands them over ``ordered``.
    """
    ordered = ordered or [sorted(process.durations) for process in processes]
    medians = tuple([median(samples) for samples in ordered])
    time, logs = median(sorted(medians)), logs_of(medians)
    interval = of_processes(logs, time) if logs.size > 1 else _of_one(processes[0], ordered[0])
    resolution = max([process.resolution / process.batch for process in processes])
    return Summary(
        time=time,
        interval=_no_finer(interval, time, resolution),
        medians=medians,
        scatter=logs.deviation,
        spread=median(sorted([interquartile_range(samples) for samples in ordered])),
        samples=min(map(len, ordered)),
        batch=min([process.batch for process in processes]),
        overhead=max([process.overhead / process.batch for process in processes]),
        resolution=resolution,
        visible=_visible(interval, logs) + resolution / time,
    )


def _of_one(process: Samples, ordered: Sequence[float]) -> Interval:
    """The interval of one process; timed once it may be off by anything, a figure from elsewhere stands."""
    if len(ordered) > 1 or process.stop is Stop.RECORDED:
        return of_samples(ordered)
    return Interval(low=ordered[0] / ALONE, high=ordered[0] * ALONE, confidence=0.0)


def _visible(interval: Interval, logs: Logs) -> float:
    """Of one process its own interval; of several, what their scatter leaves to see."""
    if logs.size < 2:
        return interval.high / interval.low - 1
    return math.expm1((t_quantile(ALARM, logs.size - 1) + POWER) * logs.deviation / math.sqrt(logs.size))


def interquartile_range(ordered: Sequence[float]) -> float:
    """The interquartile range of sorted samples."""
    last = len(ordered) - 1
    return ordered[(3 * last + 3) // 4] - ordered[last // 4]


def _no_finer(interval: Interval, time: float, resolution: float) -> Interval:
    """No median is known better than half a tick of the timer."""
    half = resolution / 2
    if not half:
        return interval
    low, high = min(interval.low, max(time - half, time / 2)), max(interval.high, time + half)
    return Interval(low=low, high=high, confidence=interval.confidence)


_TINY = 1e-300

_EPSILON = 1e-16


def t_tail(t: float, dof: float) -> float:
    """Probability that Student's t lies above ``t``."""
    half = 0.5 * _incomplete_beta(dof / (dof + t * t), dof / 2, 0.5)
    return half if t >= 0 else 1 - half


@lru_cache(maxsize=4096)
def t_quantile(confidence: float, dof: float) -> float:
    """The number that Student's t stays below with this probability; a half is zero."""
    if not 0 < confidence < 1:
        raise ValueError(f"a probability between 0 and 1, not {confidence}")
    if confidence < 0.5:
        return -t_quantile(1 - confidence, dof)
    tail = 1 - confidence
    low, high = 0.0, 1.0
    while t_tail(high, dof) > tail:
        low, high = high, high * 2
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        if middle in {low, high}:
            break
        low, high = (middle, high) if t_tail(middle, dof) > tail else (low, middle)
    return (low + high) / 2


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function, by its continued fraction."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1 - front * _fraction(1 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """Lentz's evaluation of the continued fraction (DLMF 8.17.22)."""
    c, d = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        before = value
        for term in (even, odd):
            d = 1 / _away(1 + term * d)
            c = _away(1 + term / c)
            value *= c * d
        if abs(value - before) <= _EPSILON * abs(value):
            break
    return value


def _away(number: float) -> float:
    """The number, kept off zero."""
    return number if abs(number) > _TINY else _TINY


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


def left_of(plan: Plan, spent_ns: float, samples: int) -> Plan | None:
    """The plan for what the first try left of its warm-up and budget; ``None`` where it is too little to sample.

    Too little is less than the samples asked for took the first time. A turn of two processes is a slice of a budget
    that whoever deals the turns keeps: it is taken whole once more, and paid for there.
    """
    if plan.in_turns:
        return plan
    whole = plan.warmup_ns + plan.budget_ns
    part = 1 - spent_ns / whole if whole > 0 else 0.0
    needed = max(plan.min_samples, plan.least_samples) * spent_ns / max(samples, 1)
    if part <= 0 or plan.budget_ns * part < needed:
        return None
    return replace(plan, warmup_ns=plan.warmup_ns * part, budget_ns=plan.budget_ns * part)


def exhausted(plan: Plan, spent_ns: float) -> tuple[str, str]:
    """Why there was no other try, as evidence."""
    whole = plan.warmup_ns + plan.budget_ns
    left = max(0.0, whole - spent_ns)
    least = max(plan.min_samples, plan.least_samples)
    return ("not taken again", f"{left / 1e9:.3g} s of {whole / 1e9:.3g} s were left: too little for {least} samples")


GAP = 3
"""Within-process interquartile ranges between two groups."""

LEAST_PER_MODE = 2
"""Processes on each side: one alone is an outlier."""


def split(medians: Sequence[float], spread: float, resolution: float = 0.0) -> tuple[float, float] | None:
    """The two edges of the widest gap that separates the process medians into groups."""
    if len(medians) < 2 * LEAST_PER_MODE:
        return None
    ordered = sorted(medians)
    places = range(LEAST_PER_MODE, len(ordered) - LEAST_PER_MODE + 1)
    gaps = [(ordered[at] - ordered[at - 1], ordered[at - 1], ordered[at]) for at in places]
    widest = max(gaps)
    return widest[1:] if widest[0] > max(GAP * spread, 2 * resolution) else None
