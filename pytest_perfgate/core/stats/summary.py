"""Summaries of samples: intervals of the median, Student's intervals, and stopping rules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from pytest_perfgate.model.measurement import Samples, Stop
from pytest_perfgate.model.metric import Interval

if TYPE_CHECKING:
    from pytest_perfgate.model.plan import Plan

CONFIDENCE = 0.95

NORMAL = 1.959963984540054
"""The normal quantile of that confidence."""

RANKED = 6
"""The least samples whose range covers their median at 95 %."""

MANY = 1000
"""The samples from which the normal approximation is good enough."""


def median(ordered: Sequence[float]) -> float:
    """Return the middle of sorted numbers."""
    size = len(ordered)
    middle = size // 2
    return ordered[middle] if size % 2 else (ordered[middle - 1] + ordered[middle]) / 2


COARSE, LEVELS, LEAST_LEVELLED, ROUNDING_NS = 0.005, 16, 50, 2.0
"""A clock is coarse for a call if its steps exceed this part of the time: the middle half of so many samples then has
few values, which rounding may split."""


def middle(ordered: Sequence[float]) -> float:
    """Return the median of a process's sorted samples; with a coarse clock, the mean of their middle half."""
    # The clock of an H100 has steps of 32 ns. A call of 1.1 us reads 1,088 or 1,120 ns, about as often each, so that
    # medians of equal processes are 3 % apart by chance.
    size, centre = len(ordered), median(ordered)
    cut = size // 4
    if size < LEAST_LEVELLED or ordered[size - 1 - cut] - ordered[cut] < COARSE * centre:
        return centre
    half = ordered[cut : size - cut]
    levels = sorted(set(half))
    steps = [step for below, above in pairwise(levels) if (step := above - below) > ROUNDING_NS]
    coarse = len(levels) <= LEVELS and steps and min(steps) >= COARSE * centre
    return math.fsum(half) / len(half) if coarse else centre


class Logs(NamedTuple):
    """Statistics of logarithms, which scatter equally at every scale."""

    size: int
    mean: float
    deviation: float


def logs_of(numbers: Sequence[float]) -> Logs:
    """Summarise the logarithms of positive numbers."""
    logs = list(map(math.log, numbers))
    mean = math.fsum(logs) / len(logs)
    return Logs(len(logs), mean, deviation(logs, mean))


def of_processes(logs: Logs, centre: float) -> Interval:
    """Return Student's interval from the logarithms of process medians, widened to include their median."""
    half = t_quantile((1 + CONFIDENCE) / 2, logs.size - 1) * logs.deviation / math.sqrt(logs.size)
    low, high = math.exp(logs.mean - half), math.exp(logs.mean + half)
    return Interval(low=min(low, centre), high=max(high, centre), confidence=CONFIDENCE)


def deviation(numbers: Sequence[float], mean: float) -> float:
    """Return the standard deviation of a sample; zero for fewer than two."""
    if len(numbers) < 2:
        return 0.0
    return math.sqrt(math.fsum([(n - mean) ** 2 for n in numbers]) / (len(numbers) - 1))


def of_samples(ordered: Sequence[float]) -> Interval:
    """Return the interval of one process's median by order statistics: exact for any distribution."""
    # Below six samples no rank covers 95 %, so Student's is used; a single sample shows nothing of its error.
    if 1 < len(ordered) < RANKED:
        return of_processes(logs_of(ordered), median(ordered))
    rank, confidence = median_rank(len(ordered))
    return Interval(low=ordered[rank], high=ordered[len(ordered) - 1 - rank], confidence=confidence)


@lru_cache(maxsize=4096)
def median_rank(count: int) -> tuple[int, float]:
    """Return how many samples to leave out on each side, and the remaining confidence."""
    # It is the widest rank with a coverage of 95 %; below six samples even all of them cover less.
    if count >= MANY:
        return int((count - NORMAL * math.sqrt(count)) / 2) - 1, CONFIDENCE
    total, rank = 2.0**count, 0
    below = 1 / total
    while 2 * (following := below + math.comb(count, rank + 1) / total) <= 1 - CONFIDENCE:
        below, rank = following, rank + 1
    return rank, max(0.0, 1 - 2 * below)


ALARM, POWER = 0.99, 0.84162
"""Standard errors by which a slowdown passes the 99 % point with a power of 80 %."""

ALONE = 1.25
"""The assumed error of a single sample, a quarter either way, so that it only decides clear cases."""


class Summary(NamedTuple):
    """The time of one run."""

    time: float
    """The median of the process medians, in nanoseconds."""
    interval: Interval
    medians: tuple[float, ...]
    scatter: float
    """Relative deviation between processes, or within a single one."""
    spread: float
    """The median interquartile range within a process, in nanoseconds."""
    samples: int
    """The least number of samples of a process."""
    batch: int
    overhead: float
    """Nanoseconds of an empty measurement, per call."""
    resolution: float
    """The resolution of the timer, per call."""
    visible: float
    """The smallest slowdown that this run could detect."""


def summary(processes: Sequence[Samples], ordered: Sequence[Sequence[float]] = ()) -> Summary:
    """Summarise one run, whose samples must all be positive numbers."""
    # The caller may pass samples that are sorted already as ``ordered``.
    ordered = ordered or [sorted(process.durations) for process in processes]
    medians = tuple([middle(samples) for samples in ordered])
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
    """Return the interval of one process; a single own sample is very uncertain, a recorded figure is taken as is."""
    if len(ordered) > 1 or process.stop is Stop.RECORDED:
        return of_samples(ordered)
    return Interval(low=ordered[0] / ALONE, high=ordered[0] * ALONE, confidence=0.0)


def _visible(interval: Interval, logs: Logs) -> float:
    """Return the detectable slowdown: of one process by its interval, of several by their scatter."""
    if logs.size < 2:
        return interval.high / interval.low - 1
    return math.expm1((t_quantile(ALARM, logs.size - 1) + POWER) * logs.deviation / math.sqrt(logs.size))


def interquartile_range(ordered: Sequence[float]) -> float:
    """Return the interquartile range of sorted samples."""
    last = len(ordered) - 1
    return ordered[(3 * last + 3) // 4] - ordered[last // 4]


def _no_finer(interval: Interval, time: float, resolution: float) -> Interval:
    """Return an interval no narrower than half a tick of the timer."""
    half = resolution / 2
    if not half:
        return interval
    low, high = min(interval.low, max(time - half, time / 2)), max(interval.high, time + half)
    return Interval(low=low, high=high, confidence=interval.confidence)


_TINY = 1e-300

_EPSILON = 1e-16


def t_tail(t: float, dof: float) -> float:
    """Return the probability that Student's t is above ``t``."""
    half = 0.5 * _incomplete_beta(dof / (dof + t * t), dof / 2, 0.5)
    return half if t >= 0 else 1 - half


@lru_cache(maxsize=4096)
def t_quantile(confidence: float, dof: float) -> float:
    """Return the number that Student's t stays below with this probability; 0 for a half."""
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
    """Return the regularised incomplete beta function, by its continued fraction."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1 - front * _fraction(1 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """Return Lentz's evaluation of the continued fraction (DLMF 8.17.22)."""
    c, d = 1.0, 1 / _nonzero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 500):
        even_term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd_term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        before = value
        for term in (even_term, odd_term):
            d = 1 / _nonzero(1 + term * d)
            c = _nonzero(1 + term / c)
            value *= c * d
        if abs(value - before) <= _EPSILON * abs(value):
            break
    return value


def _nonzero(number: float) -> float:
    """Return the number, or a tiny one instead of zero."""
    return number if abs(number) > _TINY else _TINY


STEP = 8
"""Samples between two checks, so that the rule costs less than the call."""

WINDOW = 64
"""Samples over which the noise must be stable."""

SETTLED = 0.05


class Stopping:
    """Stop with enough samples and either little spread or stable noise; else by the budget (NVBench's rule).

    One object serves one process at a time, and starts anew with other samples.
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
        """Return why to stop now, or ``None``."""
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
        """Add new samples; sums are of differences from the first one, which keeps them exact enough."""
        if count < self._seen or durations[self._seen - 1] != self._last:
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
        """Return standard deviation over mean of all samples so far."""
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
    """Warm by count and time, or by five successive batch medians that agree."""

    calls = 3
    agreeing = 5
    within = 0.01

    def __call__(self, medians: Sequence[float], calls: int, spent_ns: float, plan: Plan) -> bool:
        """Return whether the call is warm, given the batch medians so far, the calls made and the time spent."""
        if calls >= self.calls and spent_ns >= plan.warmup_ns:
            return True
        recent = medians[-self.agreeing :]
        return len(recent) == self.agreeing and max(recent) <= min(recent) * (1 + self.within)


def left_of(plan: Plan, spent_ns: float, samples: int) -> Plan | None:
    """Return the plan for the rest of warm-up and budget; ``None`` if that is too little to sample."""
    # It is too little if it is less than the wanted samples took the first time. A turn of two processes is a part of a
    # larger budget, so it is repeated as a whole and accounted for there.
    if plan.in_turns:
        return plan
    whole = plan.warmup_ns + plan.budget_ns
    part = 1 - spent_ns / whole if whole > 0 else 0.0
    needed = max(plan.min_samples, plan.least_samples) * spent_ns / max(samples, 1)
    if part <= 0 or plan.budget_ns * part < needed:
        return None
    return replace(plan, warmup_ns=plan.warmup_ns * part, budget_ns=plan.budget_ns * part)


def exhausted(plan: Plan, spent_ns: float) -> tuple[str, str]:
    """Return why there was no other try, as evidence."""
    whole = plan.warmup_ns + plan.budget_ns
    rest = max(0.0, whole - spent_ns)
    least = max(plan.min_samples, plan.least_samples)
    return "not taken again", f"{rest / 1e9:.3g} s of {whole / 1e9:.3g} s were left: too little for {least} samples"


GAP = 3
"""Within-process interquartile ranges of a gap between two groups."""

LEAST_PER_GROUP = 2
"""The least processes of a group; a single one is an outlier."""


def group_gap(medians: Sequence[float], spread: float, resolution: float = 0.0) -> tuple[float, float] | None:
    """Return the edges of the widest gap that separates the process medians into groups, or None."""
    if len(medians) < 2 * LEAST_PER_GROUP:
        return None
    ordered = sorted(medians)
    places = range(LEAST_PER_GROUP, len(ordered) - LEAST_PER_GROUP + 1)
    gaps = [(ordered[at] - ordered[at - 1], ordered[at - 1], ordered[at]) for at in places]
    widest = max(gaps)
    return widest[1:] if widest[0] > max(GAP * spread, 2 * resolution) else None
