"""The rules of peers, as we read them, on processes that ran one side after the other."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import factorial
from statistics import NormalDist

import numpy as np
from mann_whitney import mann_whitney
from suites import TESTS, Suite

from pytest_perfgate.core.stats.summary import t_quantile

Array = np.ndarray


@dataclass
class Ruling:
    """Per test: alarmed, undecided; and processes a side over the suite."""

    alarm: Array
    undecided: Array
    processes: float


def ruled(alarm: Array, processes: float, undecided: Array | None = None) -> Ruling:
    return Ruling(alarm, np.zeros(TESTS, bool) if undecided is None else undecided, processes)


def both(suite: Suite, table: str, count: int) -> tuple[Array, Array]:
    """``count`` processes of the base, then as many of the head: as two runs of a benchmark tool are."""
    when = (np.arange(count) + np.arange(TESTS)[:, None] / TESTS) / count / 2
    at = np.arange(count)
    return suite.times(table, False, at, when), suite.times(table, True, at + count, when + 0.5)


def benchmark_mean(suite: Suite) -> Ruling:
    """pytest-benchmark --benchmark-compare-fail=mean:5%."""
    base, head = both(suite, "mean", 1)
    return ruled((head / base)[:, 0] > 1.05, 1)


def benchmark_min(suite: Suite) -> Ruling:
    """pytest-benchmark --benchmark-compare-fail=min:5%."""
    base, head = both(suite, "min", 1)
    return ruled((head / base)[:, 0] > 1.05, 1)


def asv(suite: Suite) -> Ruling:
    """Two processes a side, pooled: medians apart by the factor 1.1 and a rank-sum p below 0.002."""
    base, head = (s.reshape(TESTS, -1) for s in both(suite, "samples", 2))
    apart = np.median(head, axis=1) > 1.1 * np.median(base, axis=1)
    return ruled(np.array([a and mann_whitney(h, b) < 0.001 for a, h, b in zip(apart, head, base)]), 2)


def pooled(suite: Suite) -> Ruling:
    """Mann-Whitney p < 0.05 on the 50 samples of one process a side."""
    base, head = (s.reshape(TESTS, -1) for s in both(suite, "samples", 1))
    return ruled(np.array([mann_whitney(h, b) < 0.05 for h, b in zip(head, base)]), 1)


def welch(suite: Suite, count: int = 5) -> Ruling:
    """The lower end of Welch's 90 % interval of five process medians a side lies above 5 %."""
    base, head = (np.log(s) for s in both(suite, "median", count))
    parts = base.var(1, ddof=1) / count, head.var(1, ddof=1) / count
    whole = parts[0] + parts[1]
    free = whole**2 / ((parts[0] ** 2 + parts[1] ** 2) / (count - 1))
    reach = np.array([t_quantile(0.95, round(f, 1)) for f in free]) * np.sqrt(whole)
    shift = head.mean(1) - base.mean(1)
    bound = np.log(1.05)
    return ruled(shift - reach > bound, count, (shift - reach <= bound) & (shift + reach > bound))


PAIRS = 6
_DRAWS = [Counter(draw) for draw in combinations_with_replacement(range(PAIRS), PAIRS)]
_ORDER = np.array([sorted(draw.elements()) for draw in _DRAWS])
_WEIGHT = np.array([factorial(PAIRS) / np.prod([factorial(n) for n in draw.values()]) for draw in _DRAWS])
_CHANCE = _WEIGHT / _WEIGHT.sum()


def benchmatrix(suite: Suite) -> Ruling:
    """benchmatrix 1.2: six adjacent pairs of whole processes, AB/BA; BCa interval of the ratio of medians at
    95 % with Bonferroni over the suite; regressed when all of it is beyond 5 %. Resamples are enumerated."""
    turn = np.arange(PAIRS)
    first = (turn + np.arange(TESTS)[:, None] / TESTS) / PAIRS
    base = suite.times("median", False, 2 * turn + turn % 2, first)
    head = suite.times("median", True, 2 * turn + 1 - turn % 2, first + 0.5 / PAIRS / TESTS)
    verdicts = [_bca(b, h) for b, h in zip(base, head)]
    alarm = np.array([low > 0.05 for low, _ in verdicts])
    open_ = np.array([low <= 0.05 and (high > 0.05 or low < -0.05) for low, high in verdicts])
    return ruled(alarm, PAIRS, open_)


def _bca(base: Array, head: Array) -> tuple[float, float]:
    normal, alpha = NormalDist(), 0.05 / TESTS
    drawn = np.median(head[_ORDER], axis=1) / np.median(base[_ORDER], axis=1) - 1
    change = np.median(head) / np.median(base) - 1
    below = float(_CHANCE[drawn < change].sum() + _CHANCE[drawn == change].sum() / 2)
    order = np.argsort(drawn)
    mass = np.cumsum(_CHANCE[order])
    jackknife = np.array([np.median(np.delete(head, i)) / np.median(np.delete(base, i)) for i in range(PAIRS)])
    off = jackknife.mean() - jackknife
    bend = float((off**3).sum() / (6 * max((off**2).sum(), 1e-30) ** 1.5))
    shift = normal.inv_cdf(min(max(below, 1e-6), 1 - 1e-6))
    ends = []
    for tail in (alpha / 2, 1 - alpha / 2):
        z = shift + normal.inv_cdf(tail)
        ends.append(normal.cdf(shift + z / (1 - bend * z)))
    low, high = (float(drawn[order][min(int(np.searchsorted(mass, e)), len(mass) - 1)]) for e in ends)
    return low, high
