"""Tests and intervals: signed rank, Hodges-Lehmann, binomial, prediction, scatter of neighbours; simple statistics."""

from __future__ import annotations

import enum
import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_perfgate.core.stats.summary import group_gap, median, t_quantile
from pytest_perfgate.model.metric import Interval

if TYPE_CHECKING:
    import numpy as np

EXACT_UP_TO = 200
"""The number of differences up to which the null distribution is exact; beyond, its normal limit is used."""


def signed_rank(differences: Sequence[float]) -> float:
    """Return the one-sided p of "above zero", exact with ties and zeros, since mean ranks are kept doubled."""
    # Zeros are ranked and count for neither side (Pratt), so that another pair without a difference never makes a shift
    # more certain.
    ranks = doubled_ranks(differences)
    moving = [rank for rank, d in zip(ranks, differences) if d != 0]
    above = sum(rank for rank, d in zip(ranks, differences) if d > 0)
    if not moving:
        return 1.0
    if len(moving) > EXACT_UP_TO:
        return _normal_tail(above, moving)
    return float(_tail_of_ranks(tuple(sorted(moving)))[above])


def pairs_needed(alpha: float) -> int:
    """Return the pairs below which the exact test can never reject at this level."""
    return max(1, math.ceil(-math.log2(alpha) - 1e-12))


def doubled_ranks(differences: Sequence[float]) -> list[int]:
    """Return twice the rank of each absolute difference; ties share their mean."""
    order = sorted(abs(d) for d in differences)
    return [bisect_left(order, abs(d)) + bisect_right(order, abs(d)) + 1 for d in differences]


@lru_cache(maxsize=512)
def _tail_of_ranks(ranks: tuple[int, ...]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the probability that the ranks above zero sum to at least each number."""
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
    """Return which Walsh average from either end bounds the interval, and its coverage; 0 if none suffices."""
    # A tiny excess over the level is accepted, since a level is a rounded number.
    below = [1 - chance for chance in _tail_of_ranks(tuple(range(1, count + 1))).tolist()]
    rank = bisect_right(below, alpha / 2 + 1e-15, lo=1) - 1
    return rank, 1 - 2 * below[max(rank, 1)]


CONFIDENCE = 0.95


def hodges_lehmann(differences: Sequence[float]) -> float:
    """Return the shift of paired differences, robust against errors in almost a third of them."""
    return median(walsh_averages(differences))


def walsh_averages(differences: Sequence[float]) -> list[float]:
    """Return the sorted averages of all pairs of differences, each also with itself."""
    import numpy as np

    averages = np.add.outer(differences, differences)[np.tri(len(differences), dtype=bool)] / 2
    averages.sort()
    return list(map(float, averages))


def shift_and_interval(differences: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, Interval]:
    """Return the Hodges-Lehmann shift with its exact interval."""
    # Below six pairs even all averages cover less than 95 %: the interval then states its coverage.
    averages = walsh_averages(differences)
    rank, covered = walsh_rank(len(differences), round(1 - confidence, 12))
    at = max(rank - 1, 0)
    return median(averages), Interval(low=averages[at], high=averages[len(averages) - 1 - at], confidence=covered)


def scatter_of(differences: Sequence[float]) -> float:
    """Return the scatter that explains the error of the Hodges-Lehmann shift, to which a few far rounds add little."""
    # The standard deviation would tell of hundreds of rounds where one in seven is far off and twenty decide.
    if len(differences) < 2:
        return 0.0
    interval = shift_and_interval(differences, _SIGMA)[1]
    sigmas = statistics.NormalDist().inv_cdf((1 + interval.confidence) / 2)
    return (interval.high - interval.low) / (2 * sigmas) * math.sqrt(len(differences))


_SIGMA = 0.683  # what one standard deviation either way covers


def clopper_pearson(hits: int, count: int, confidence: float = CONFIDENCE) -> Interval:
    """Return the exact two-sided interval of a rate, where the binomial tails reach the level."""
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
    """Return the probability of so many hits or fewer."""
    if rate <= 0 or rate >= 1:
        return float(rate <= 0 or hits >= count)
    return min(1.0, math.fsum(_binomial(hits, count, rate)))


def _binomial(most: int, count: int, rate: float) -> Iterator[float]:
    """Yield the probability of each number of hits from 0 to ``most``."""
    up, down, whole = math.log(rate), math.log1p(-rate), math.lgamma(count + 1)
    for k in range(most + 1):
        yield math.exp(whole - math.lgamma(k + 1) - math.lgamma(count - k + 1) + k * up + (count - k) * down)


def fisher(hits: int, others: int, count: int) -> float:
    """Return Fisher's exact test of two groups of ``count``: the chance of so many of all hits or more in the first."""
    both = hits + others
    ways = sum(math.comb(count, k) * math.comb(count, both - k) for k in range(hits, min(both, count) + 1))
    return ways / math.comb(2 * count, both)


def far(differences: Sequence[float]) -> tuple[tuple[int, int], float] | None:
    """Return how many are far above and far below zero, if a gap separates them, and the chance of so many above."""
    # The gap is found without regard to signs, which are equally likely if differences are symmetric.
    sizes = [abs(d) for d in differences]
    edges = group_gap(sizes, median(sorted(sizes)))
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
"""The chance that all gates of a clean suite together give any alarm."""


class Prior(float, enum.Enum):
    """The known relative scatter between runs of a class of devices."""

    GPU_LOCKED = 0.005
    GPU_FREE = 0.015
    CPU = 0.04


def prior(kind: str, clocks: str) -> Prior:
    """Return the class of a device by its kind and its clock policy."""
    if kind != "gpu":
        return Prior.CPU
    return Prior.GPU_LOCKED if clocks == "lock" else Prior.GPU_FREE


class Prediction(NamedTuple):
    """How far one new run may differ from the accepted value by chance."""

    scatter: float
    """Scatter between runs, shrunk towards the prior."""
    dof: int
    runs: int
    gates: int

    @property
    def reach(self) -> float:
        """The largest slowdown that chance explains, as a fraction."""
        return math.expm1(self.log_reach)

    @property
    def log_reach(self) -> float:
        return self.log_within(ALARM / self.gates)

    def log_within(self, level: float) -> float:
        """Return how far above the accepted value a new run is with this chance, as a logarithm."""
        return t_quantile(1 - level, self.dof) * self.scatter * math.sqrt(1 + 1 / self.runs)


def predict(
    expected: float, *, scatter: float = 0.0, runs: int = 1, gates: int = 1, freedom: int | None = None
) -> Prediction:
    """Return the prediction for one new run from the prior's scatter and that of the accepted runs."""
    # ``freedom`` is the degrees of freedom of the scatter, if that is not one less than the runs.
    degrees = max(runs, 1) - 1 if freedom is None else freedom
    dof = PRIOR_DOF + degrees
    pooled = math.sqrt((PRIOR_DOF * expected**2 + degrees * scatter**2) / dof)
    return Prediction(scatter=pooled, dof=dof, runs=max(runs, 1), gates=max(gates, 1))


_KEPT = 2 / 3
"""The information of neighbours on the scatter, relative to all pairs at a constant level."""


def scatter_of_neighbours(times: Sequence[float]) -> float:
    """Return the standard deviation of logarithms from differences of neighbours; zero for fewer than two."""
    # A change of level affects one difference only, and a slow drift hardly any. (J. von Neumann, 1941.)
    steps = [math.log(after / before) for before, after in pairwise(times)]
    return math.sqrt(math.fsum([step * step for step in steps]) / (2 * len(steps))) if steps else 0.0


def degrees_of_freedom(count: int) -> int:
    """Return the degrees of freedom of such a scatter."""
    return max(0, round(_KEPT * (count - 1)))


class Ranks(NamedTuple):
    """Positions in sorted samples, from 0: of a quantile, and of its interval."""

    low: int
    middle: int
    high: int


EDGE = 0.95
"""The confidence of each end of a quantile's interval."""


def calls_needed(share: float) -> int:
    """Return the samples below which the quantile has no upper end, or below a half no lower one: 299 for 99 %."""
    return math.ceil(math.log(1 - EDGE) / math.log(max(share, 1 - share)) - 1e-9)


@lru_cache(maxsize=256)
def quantile_ranks(count: int, share: float) -> Ranks:
    """Return order statistics that bound a quantile, each end with this confidence, for any distribution."""
    # With fewer samples than ``calls_needed`` an end is the extreme, with less confidence.
    masses = list(_binomial(count, count, share))
    low, below = -1, 0.0
    while below + masses[low + 1] <= 1 - EDGE:
        below += masses[low + 1]
        low += 1
    high, above = count, 0.0
    while above + masses[high] <= 1 - EDGE:
        above += masses[high]
        high -= 1
    return Ranks(max(0, low), max(0, math.ceil(share * count - 1e-9) - 1), min(count - 1, high))


FIGURES = (
    "min", "max", "mean", "stddev", "rounds", "median", "iqr", "q1", "q3", "iqr_outliers", "stddev_outliers",
    "outliers", "ld15iqr", "hd15iqr", "ops", "total",
)  # fmt: skip

FENCE = 1.5
"""The distance of Tukey's fence from a quartile, in interquartile ranges."""


class SampleStatistics:
    """The statistics of one benchmark's samples; there must be at least one."""

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
        """Return the sample at a position from zero, interpolated; outside, the nearest one."""
        place = min(max(place, 0.0), self.rounds - 1.0)
        below = math.floor(place)
        share = place - below
        return self.sorted_data[below] * (1 - share) + self.sorted_data[math.ceil(place)] * share

    def _outside(self, low: float, high: float) -> int:
        return sum(not low <= sample <= high for sample in self.data)
