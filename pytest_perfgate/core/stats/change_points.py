"""Change points of a series: the strongest splits that shuffling does not explain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from math import ceil, inf, log

import numpy as np

from pytest_perfgate.model.values import value

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Places = np.ndarray[tuple[int, ...], np.dtype[np.intp]]

Search = Callable[[Array, int], tuple[float, tuple[int, ...]]]
"""Finds the strongest change of a segment with at least so many runs on each side: its strength and place."""

LEVEL = 0.05

PERMUTATIONS = 199

_ORDERS = PERMUTATIONS + 1
"""The shuffled orders, and the one that is tested."""

LEAST = 3
"""The least runs between two changes; fewer are noise."""

LONG = 80
"""The length from which ranks are compared instead of distances, whose number grows with its square."""


@value
class ChangePoint:
    """A run from which the series has another level."""

    index: int
    before: float
    """The median of the segment that ends here."""
    after: float
    p: float

    @property
    def change(self) -> float:
        """The change as a fraction of the earlier level."""
        return self.after / self.before - 1

    @property
    def size(self) -> float:
        return abs(self.change)


def change_points(
    numbers: Sequence[float], *, seed: int = 0, level: float = LEVEL, least: int = LEAST
) -> tuple[ChangePoint, ...]:
    """Return where a series changes, in order."""
    # Positive numbers are compared by logarithm, so that a change is a fraction; others cannot be times and are
    # skipped.
    places = [at for at, number in enumerate(numbers) if 0 < number < inf]
    if len(places) < len(numbers):
        changes = change_points([numbers[at] for at in places], seed=seed, level=level, least=least)
        return tuple(replace(change, index=places[change.index]) for change in changes)
    line = np.log(np.asarray(numbers, dtype=float))
    cuts = _of_long_series(line, seed, level, least) if len(line) >= LONG else _split(line, seed, level, least)
    return _described(numbers, sorted(cuts))


def _of_long_series(line: Array, seed: int, level: float, least: int) -> list[tuple[int, float]]:
    """Split a long series by ranks, and its newest part also by distances, which detect changes in a few runs."""
    cuts = _ranked(line, 0, level / 2, least)
    newest = max([len(line) - LONG, *(at for at, _ in cuts)])
    return [*cuts, *((newest + at, p) for at, p in _split(line[newest:], seed, level / 2, least))]


def _split(line: Array, seed: int, level: float, least: int) -> list[tuple[int, float]]:
    """Repeat the best split of any segment until one is not significant."""
    random = np.random.default_rng(seed)
    cuts: list[tuple[int, float]] = []
    while new := _next(line, cuts, (least, level), random):
        cuts += new
    return cuts


def _next(
    line: Array, cuts: Sequence[tuple[int, float]], bounds: tuple[int, float], random: np.random.Generator
) -> list[tuple[int, float]]:
    """Return one more split; if none is significant, a part that differs from both of its sides."""
    least, level = bounds
    edges = sorted([0, *(at for at, _ in cuts), len(line)])
    pieces = [(a, line[a:b]) for a, b in pairwise(edges) if b - a >= 2 * least]
    for best, enough in ((_best_split, level), (_best_part, level / 2)) if pieces else ():
        strength, places, start = max((*best(piece, least), a) for a, piece in pieces)
        p = _chance([piece for _, piece in pieces], best, strength, (least, enough), random)
        if p <= enough:
            return [(start + at, p) for at in places]
    return []


def _best_split(segment: Array, least: int) -> tuple[float, tuple[int, ...]]:
    """Return the statistic and place of a segment's strongest split."""
    count, corner = len(segment), _corner(segment)
    m = np.arange(least, count - least + 1)
    strength = _energy_statistic(corner[m, m], corner[m, count], corner[count, count], m, count)
    at = int(np.argmax(strength))
    return float(strength[at]), (int(m[at]),)


def _best_part(segment: Array, least: int) -> tuple[float, tuple[int, ...]]:
    """Return the statistic of the part that differs most from the rest, and its begin and end."""
    count, corner = len(segment), _corner(segment)
    starts, ends = _parts(count, least)
    if not len(starts):
        return -inf, ()
    inside = corner[ends, ends] - 2 * corner[starts, ends] + corner[starts, starts]
    rows = corner[ends, count] - corner[starts, count]
    strength = _energy_statistic(inside, rows, corner[count, count], ends - starts, count)
    at = int(np.argmax(strength))
    return float(strength[at]), (int(starts[at]), int(ends[at]))


_FINE = 100


@lru_cache(maxsize=128)
def _parts(count: int, least: int) -> tuple[Places, Places]:
    """Return (first, end) of every part with room on both sides; for a long series, those on a coarse grid."""
    step = max(1, count // _FINE)
    grid = np.arange(count)[::step]
    starts, ends = (grid[at] for at in np.triu_indices(len(grid)))
    inner = (starts >= least) & (count - ends >= least) & (ends - starts >= least)
    return starts[inner], ends[inner]


def _neighbours(count: int, least: int, part: tuple[int, int]) -> tuple[Places, Places]:
    """Return every part whose ends are within a grid step of those of this one."""
    reach = np.arange(-(count // _FINE), count // _FINE + 1)
    starts, ends = (axis.ravel() for axis in np.meshgrid(part[0] + reach, part[1] + reach))
    inner = (starts >= least) & (count - ends >= least) & (ends - starts >= least)
    return starts[inner], ends[inner]


def _corner(segment: Array) -> Array:
    """Return the cumulative sums of distances from the corner of the matrix."""
    corner = np.zeros((len(segment) + 1, len(segment) + 1))
    corner[1:, 1:] = np.abs(segment[:, None] - segment[None, :]).cumsum(axis=0).cumsum(axis=1)
    return corner


def _energy_statistic(inside: Array, rows: Array, whole: float, m: Places, count: int) -> Array:
    """Return the energy statistic of a part: from distances inside it, from it to all, and of all."""
    n = count - m
    across = rows - inside
    outside = whole - inside - 2 * across
    energy = 2 * across / (m * n) - inside / (m * np.maximum(m - 1, 1)) - outside / (n * np.maximum(n - 1, 1))
    strength: Array = m * n / count * energy
    return strength


def _chance(
    pieces: Sequence[Array], best: Search, strength: float, bounds: tuple[int, float], random: np.random.Generator
) -> float:
    """Return how often shuffling within segments splits as strongly, counted until that exceeds the level."""
    least, level = bounds
    hits = 1
    for _ in range(PERMUTATIONS):
        hits += max(best(random.permutation(piece), least)[0] for piece in pieces) >= strength
        if hits / _ORDERS > level:
            break
    return hits / _ORDERS


_SHUFFLES = 499

_GRID = 1.1


def _ranked(line: Array, start: int, level: float, least: int) -> list[tuple[int, float]]:
    """Return the changes of a long series: where ranks differ most, then in each part alone."""
    if len(line) < 2 * least:
        return []
    ranks, grid = _ranks(line), _on_grid(len(line))
    for split, enough in ((_rank_split, level), (_rank_part, level / 2)):
        strength, places = split(ranks, least)
        p = (int(np.sum(_shuffled(grid, least, split) >= strength)) + 1) / (_SHUFFLES + 1)
        if p <= enough:
            starts = [start, *(start + at for at in places)]
            parts = [_ranked(part, a, level, least) for part, a in zip(np.split(line, places), starts)]
            return sorted([*((start + at, p) for at in places), *(cut for part in parts for cut in part)])
    return []


def _ranks(line: Array) -> Array:
    """Return ranks from 1 on; equal values share their mean rank."""
    _, places, counts = np.unique(line, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    middle: Array = (last - (counts - 1) / 2)[places]
    return middle


def _rank_split(ranks: Array, least: int) -> tuple[float, tuple[int, ...]]:
    """Return the split at which the sum of the first ranks differs most from chance, in standard deviations."""
    m = np.arange(least, len(ranks) - least + 1)
    strength = _deviations(np.cumsum(ranks)[m - 1], m, len(ranks))
    at = int(np.argmax(strength))
    return float(strength[at]), (int(m[at]),)


def _rank_part(ranks: Array, least: int) -> tuple[float, tuple[int, ...]]:
    """Return the part whose sum of ranks differs most from chance, with room on both sides."""
    starts, ends = _parts(len(ranks), least)
    if not len(starts):
        return -inf, ()
    sums = np.cumsum(ranks)
    strength, part = _farthest(sums, (starts, ends))
    return strength, _farthest(sums, _neighbours(len(ranks), least, part))[1]


def _farthest(sums: Array, parts: tuple[Places, Places]) -> tuple[float, tuple[int, int]]:
    starts, ends = parts
    strength = _deviations(sums[ends - 1] - sums[starts - 1], ends - starts, len(sums))
    at = int(np.argmax(strength))
    return float(strength[at]), (int(starts[at]), int(ends[at]))


def _deviations(sums: Array, m: Places, count: int) -> Array:
    """Return how far sums of so many ranks are from their mean, in standard deviations."""
    deviations: Array = np.abs(sums - m * (count + 1) / 2) / np.sqrt(m * (count - m) * (count + 1) / 12)
    return deviations


@lru_cache(maxsize=256)
def _shuffled(count: int, least: int, split: Search) -> Array:
    """Return the strength of the best split of randomly ordered ranks, the same for every series."""
    random = np.random.default_rng(count)
    order = np.arange(1.0, count + 1)
    return np.array([split(random.permutation(order), least)[0] for _ in range(_SHUFFLES)])


def _on_grid(count: int) -> int:
    """Return the next of a few lengths; chance splits a longer series more strongly, so this errs on the safe side."""
    return ceil(_GRID ** ceil(log(count, _GRID)))


def _described(numbers: Sequence[float], cuts: list[tuple[int, float]]) -> tuple[ChangePoint, ...]:
    edges = [0, *(at for at, _ in cuts), len(numbers)] if cuts else []
    level = [float(np.median(np.asarray(numbers[a:b], dtype=float))) for a, b in pairwise(edges)]
    return tuple(ChangePoint(index=at, before=level[i], after=level[i + 1], p=p) for i, (at, p) in enumerate(cuts))
