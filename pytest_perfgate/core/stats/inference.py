"""Tests and intervals: signed rank, Hodges-Lehmann, binomial, prediction, scatter of neighbours; plain figures."""

from __future__ import annotations

import enum
import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_perfgate.core.stats.summary import median, split, t_quantile
from pytest_perfgate.model.metric import Interval

if TYPE_CHECKING:
    import numpy as np

EXACT_UP_TO = 200
"""Differences up to which the null distribution is counted out; beyond, its normal limit is as good."""


def signed_rank(differences: Sequence[float]) -> float:
    """One-sided p of "above zero": exact with ties and zeros, since ranks are kept at their doubled middles.

    Zeros take part in the ranking and count for neither side (Pratt), so that one more pair that shows no
    difference never makes a shift more certain.
    """
    ranks = doubled_ranks(differences)
    moving = [rank for rank, d in zip(ranks, differences) if d != 0]
    above = sum(rank for rank, d in zip(ranks, differences) if d > 0)
    if not moving:
        return 1.0
    if len(moving) > EXACT_UP_TO:
        return _normal_tail(above, moving)
    return float(_tail(tuple(sorted(moving)))[above])


def pairs_needed(alpha: float) -> int:
    """Pairs below which the exact test can never reject at this level."""
    return max(1, math.ceil(-math.log2(alpha) - 1e-12))


def doubled_ranks(differences: Sequence[float]) -> list[int]:
    """Twice the rank of each absolute difference; those that tie share their middle."""
    order = sorted(abs(d) for d in differences)
    return [bisect_left(order, abs(d)) + bisect_right(order, abs(d)) + 1 for d in differences]


@lru_cache(maxsize=512)
def _tail(ranks: tuple[int, ...]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Probability that the ranks that fall above zero sum to at least each number."""
    import numpy as np

    chance = np.zeros(sum(ranks) + 1)
    chance[0] = 1.0
    reach = 0
    for rank in ranks:
        chance[rank : reach + rank + 1] += chance[: reach + 1].copy()
        chance *= 0.5
        reach += rank
    return np.minimum(np.cumsum(chance[::-1])[::-1], 1.0)


def _normal_tail(above: int, ranks: Sequence[int]) -> float:
    mean = math.fsum(ranks) / 2
    deviation = math.sqrt(math.fsum(r * r for r in ranks) / 4)
    return 0.5 * math.erfc((above - 1 - mean) / deviation / math.sqrt(2))


@lru_cache(maxsize=512)
def walsh_rank(count: int, alpha: float) -> tuple[int, float]:
    """Which Walsh average from either end bounds the interval, and what it covers; 0 where the last ones do not reach.

    A hair above the level is on it: a level is a rounded number, the probabilities are not.
    """
    below = [1 - chance for chance in _tail(tuple(range(1, count + 1))).tolist()]
    rank = bisect_right(below, alpha / 2 + 1e-15, lo=1) - 1
    return rank, 1 - 2 * below[max(rank, 1)]


CONFIDENCE = 0.95


def hodges_lehmann(differences: Sequence[float]) -> float:
    """The shift of paired differences; robust against close to a third of them being wrong."""
    return median(walsh_averages(differences))


def walsh_averages(differences: Sequence[float]) -> list[float]:
    """The averages of all pairs of differences, each with itself too, sorted."""
    import numpy as np

    averages = np.add.outer(differences, differences)[np.tri(len(differences), dtype=bool)] / 2
    averages.sort()
    return list(map(float, averages))


def shift_interval(differences: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """The exact interval of the shift."""
    return shift_and_interval(differences, confidence)[1]


def shift_and_interval(differences: Sequence[float], confidence: float) -> tuple[float, Interval]:
    """The shift by Hodges and Lehmann with its exact interval.

    Below six pairs even all of the averages cover less than 95 %: the interval then states what it covers.
    """
    averages = walsh_averages(differences)
    rank, covered = walsh_rank(len(differences), round(1 - confidence, 12))
    at = max(rank - 1, 0)
    return median(averages), Interval(low=averages[at], high=averages[len(averages) - 1 - at], confidence=covered)


def clopper_pearson(hits: int, count: int, confidence: float = CONFIDENCE) -> Interval:
    """The exact two-sided interval of a rate, found where the binomial tails meet the level."""
    if not 0 <= hits <= count or count < 1:
        raise ValueError(f"{hits} hits of {count}")
    tail = (1 - confidence) / 2
    if 2 * hits > count:  # the sums are over the rarer kind
        other = clopper_pearson(count - hits, count, confidence)
        return Interval(low=1 - other.high, high=1 - other.low, confidence=confidence)
    low = 0.0 if hits == 0 else _crossing(lambda rate: 1 - tail - at_most(hits - 1, count, rate))
    high = _crossing(lambda rate: tail - at_most(hits, count, rate))
    return Interval(low=low, high=high, confidence=confidence)


def at_most(hits: int, count: int, rate: float) -> float:
    """Probability of so many hits or fewer."""
    if rate <= 0 or rate >= 1:
        return float(rate <= 0 or hits >= count)
    up, down = math.log(rate), math.log1p(-rate)
    whole = math.lgamma(count + 1)
    terms = (
        whole - math.lgamma(k + 1) - math.lgamma(count - k + 1) + k * up + (count - k) * down for k in range(hits + 1)
    )
    return min(1.0, math.fsum(math.exp(term) for term in terms))


def fisher(hits: int, others: int, count: int) -> float:
    """Fisher's exact test of two groups of ``count``: the chance of so many of all hits, or more, in the first."""
    both = hits + others
    ways = sum(math.comb(count, k) * math.comb(count, both - k) for k in range(hits, min(both, count) + 1))
    return ways / math.comb(2 * count, both)


def far(differences: Sequence[float]) -> tuple[tuple[int, int], float] | None:
    """How many lie far above and far below zero, if a gap parts them from the rest, and the chance of so many above.

    The gap is drawn without a look at the signs, which are fair coins of what is symmetric.
    """
    sizes = [abs(d) for d in differences]
    edges = split(sizes, median(sorted(sizes)))
    if edges is None:
        return None
    above, below = sum(d >= edges[1] for d in differences), sum(-d >= edges[1] for d in differences)
    ways = sum(math.comb(above + below, k) for k in range(above, above + below + 1))
    return (above, below), ways / 2 ** (above + below)


def _crossing(rising: Callable[[float], float]) -> float:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return (low + high) / 2


PRIOR_DOF = 4

ALARM = 0.01
"""The chance that a clean suite of all gates alarms at all."""


class Prior(float, enum.Enum):
    """Relative scatter between runs that a class of device is known for."""

    GPU_LOCKED = 0.005
    GPU_FREE = 0.015
    CPU = 0.04


def prior(kind: str, clocks: str) -> Prior:
    """The class of a device by its kind and by what was done to its clocks."""
    if kind != "gpu":
        return Prior.CPU
    return Prior.GPU_LOCKED if clocks == "lock" else Prior.GPU_FREE


class Prediction(NamedTuple):
    """How far one new run may lie from the accepted value without anything having changed."""

    scatter: float
    """Between runs, shrunk towards the prior."""
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
        """How far above the accepted value a new run lies with this chance, as a logarithm."""
        return t_quantile(1 - level, self.dof) * self.scatter * math.sqrt(1 + 1 / self.sittings)


def predict(
    expected: float, *, scatter: float = 0.0, sittings: int = 1, gates: int = 1, freedom: int | None = None
) -> Prediction:
    """The prediction for one new run from the prior's scatter and that of the accepted runs.

    ``freedom`` is what the scatter rests on, where that is not one less than the runs.
    """
    degrees = max(sittings, 1) - 1 if freedom is None else freedom
    dof = PRIOR_DOF + degrees
    pooled = math.sqrt((PRIOR_DOF * expected**2 + degrees * scatter**2) / dof)
    return Prediction(scatter=pooled, dof=dof, sittings=max(sittings, 1), gates=max(gates, 1))


_KEPT = 2 / 3
"""What neighbours know of the scatter, beside what all pairs would know if nothing had moved."""


def scatter_of_neighbours(times: Sequence[float]) -> float:
    """The standard deviation of logarithms, from differences of neighbours; zero for fewer than two.

    A level that moves once adds to one difference alone, and a slow drift to none that counts. (J. von Neumann, 1941.)
    """
    steps = [math.log(after / before) for before, after in pairwise(times)]
    return math.sqrt(math.fsum([step * step for step in steps]) / (2 * len(steps))) if steps else 0.0


def freedom(count: int) -> int:
    """Degrees of freedom of such a scatter."""
    return max(0, round(_KEPT * (count - 1)))


class Ranks(NamedTuple):
    """Places in sorted samples, from 0: of a quantile, and between what it lies."""

    low: int
    middle: int
    high: int


EDGE = 0.95
"""The certainty of each end of a quantile's interval."""


def calls_needed(share: float) -> int:
    """Samples below which the quantile has no upper end, or below a half no lower one: 299 for 99 %."""
    return math.ceil(math.log(1 - EDGE) / math.log(max(share, 1 - share)) - 1e-9)


@lru_cache(maxsize=256)
def quantile_ranks(count: int, share: float) -> Ranks:
    """Order statistics between which a quantile lies, each end with this certainty, whatever the distribution.

    Of fewer samples than ``calls_needed`` an end is the extreme, and less sure.
    """
    up, down, whole = math.log(share), math.log1p(-share), math.lgamma(count + 1)
    masses = [
        math.exp(whole - math.lgamma(k + 1) - math.lgamma(count - k + 1) + k * up + (count - k) * down)
        for k in range(count + 1)
    ]
    low, below = -1, 0.0
    while low + 1 < count and below + masses[low + 1] <= 1 - EDGE:
        below += masses[low + 1]
        low += 1
    high, above = count, 0.0
    while high > 0 and above + masses[high] <= 1 - EDGE:
        above += masses[high]
        high -= 1
    return Ranks(max(0, low), max(0, math.ceil(share * count - 1e-9) - 1), min(count - 1, high))


FIGURES = (
    "min", "max", "mean", "stddev", "rounds", "median", "iqr", "q1", "q3", "iqr_outliers", "stddev_outliers",
    "outliers", "ld15iqr", "hd15iqr", "ops", "total",
)  # fmt: skip

FENCE = 1.5
"""Interquartile ranges from a quartile to Tukey's fence."""


class Figures:
    """What the samples of one benchmark come to; of none at all there is nothing to say."""

    def __init__(self, data: Sequence[float]) -> None:
        if not data:
            raise ValueError("figures need at least one sample")
        self.data = list(data)

    def __bool__(self) -> bool:
        return True

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in FIGURES}

    @cached_property
    def sorted_data(self) -> list[float]:
        return sorted(self.data)

    @property
    def min(self) -> float:
        return self.sorted_data[0]

    @property
    def max(self) -> float:
        return self.sorted_data[-1]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.data)

    @property
    def stddev(self) -> float:
        return statistics.stdev(self.data) if len(self.data) > 1 else 0.0

    @property
    def rounds(self) -> int:
        return len(self.data)

    @property
    def median(self) -> float:
        return statistics.median(self.data)

    @property
    def total(self) -> float:
        return math.fsum(self.data)

    @property
    def ops(self) -> float:
        return self.rounds / self.total if self.total else 0.0

    @property
    def q1(self) -> float:
        return self._at((self.rounds - 2) / 4)

    @property
    def q3(self) -> float:
        return self._at((3 * self.rounds - 2) / 4)

    @property
    def iqr(self) -> float:
        return self.q3 - self.q1

    @property
    def ld15iqr(self) -> float:
        """The lowest sample inside of Tukey's fence."""
        return next(sample for sample in self.sorted_data if sample >= self.q1 - FENCE * self.iqr)

    @property
    def hd15iqr(self) -> float:
        """The highest sample inside of Tukey's fence."""
        return next(sample for sample in reversed(self.sorted_data) if sample <= self.q3 + FENCE * self.iqr)

    @property
    def stddev_outliers(self) -> int:
        return self._outside(self.mean - self.stddev, self.mean + self.stddev)

    @property
    def iqr_outliers(self) -> int:
        return self._outside(self.q1 - FENCE * self.iqr, self.q3 + FENCE * self.iqr)

    @property
    def outliers(self) -> str:
        return f"{self.stddev_outliers};{self.iqr_outliers}"

    def _at(self, place: float) -> float:
        """The sample at a place between two, from zero; outside of them the nearest."""
        place = min(max(place, 0.0), self.rounds - 1.0)
        below = math.floor(place)
        share = place - below
        return self.sorted_data[below] * (1 - share) + self.sorted_data[math.ceil(place)] * share

    def _outside(self, low: float, high: float) -> int:
        return sum(not low <= sample <= high for sample in self.data)
