"""Where a line of figures changes: the strongest splits that shuffling does not explain."""

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
"""Finds the strongest change of a segment, with so many runs at least on each side: how strong, and where."""

LEVEL = 0.05

PERMUTATIONS = 199

LEAST = 3
"""Sittings between two changes: fewer are noise."""

LONG = 80
"""From so many on ranks are compared instead of distances: those of a line take the square of its length."""


@value
class ChangePoint:
    """From this run on the line runs elsewhere."""

    index: int
    before: float
    """Median of the segment that ends here."""
    after: float
    p: float

    @property
    def change(self) -> float:
        """As a fraction of what was before."""
        return self.after / self.before - 1

    @property
    def size(self) -> float:
        return abs(self.change)


def change_points(
    numbers: Sequence[float], *, seed: int = 0, level: float = LEVEL, least: int = LEAST
) -> tuple[ChangePoint, ...]:
    """Where a line changes, in order.

    Positive numbers are taken by their logarithms, so that a change is a fraction; others say nothing of a time, and
    are passed over.
    """
    places = [at for at, number in enumerate(numbers) if 0 < number < inf]
    if len(places) < len(numbers):
        changes = change_points([numbers[at] for at in places], seed=seed, level=level, least=least)
        return tuple(replace(one, index=places[one.index]) for one in changes)
    line = np.log(np.asarray(numbers, dtype=float))
    cuts = _long(line, seed, level, least) if len(line) >= LONG else _split(line, seed, level, least)
    return _described(numbers, sorted(cuts))


def _long(line: Array, seed: int, level: float, least: int) -> list[tuple[int, float]]:
    """By ranks, and in the newest part by distances as well: ranks do not see what only a few runs show."""
    cuts = _ranked(line, 0, level / 2, least)
    newest = max(len(line) - LONG, cuts[-1][0] if cuts else 0)
    return [*cuts, *((newest + at, p) for at, p in _split(line[newest:], seed, level / 2, least))]


def _split(line: Array, seed: int, level: float, least: int) -> list[tuple[int, float]]:
    """The best split of any segment is tried first, until one is no surprise."""
    random = np.random.default_rng(seed)
    cuts: list[tuple[int, float]] = []
    while new := _next(line, cuts, (least, level), random):
        cuts += new
    return cuts


def _next(
    line: Array, cuts: Sequence[tuple[int, float]], bounds: tuple[int, float], random: np.random.Generator
) -> list[tuple[int, float]]:
    """One split more; where none is a surprise, a part that is another one than what stands on both of its sides."""
    least, level = bounds
    edges = sorted([0, *(at for at, _ in cuts), len(line)])
    pieces = [(a, line[a:b]) for a, b in pairwise(edges) if b - a >= 2 * least]
    for best, enough in ((_best_split, level), (_best_part, level / 2)) if pieces else ():
        strength, places, start = max((*best(piece, least), a) for a, piece in pieces)
        p = _chance([piece for _, piece in pieces], best, strength, (least, enough), random)
        if places and p <= enough:
            return [(start + at, p) for at in places]
    return []


def _best_split(segment: Array, least: int) -> tuple[float, tuple[int, ...]]:
    strength, at = _best(segment, least)
    return strength, (at,)


def _best(segment: Array, least: int) -> tuple[float, int]:
    """The strongest split of a segment: its statistic and its place."""
    count, corner = len(segment), _corner(segment)
    m = np.arange(least, count - least + 1)
    strength = _strength(corner[m, m], corner[m, count], corner[count, count], m, count)
    at = int(np.argmax(strength))
    return float(strength[at]), int(m[at])


def _best_part(segment: Array, least: int) -> tuple[float, tuple[int, ...]]:
    """The part that differs most from all around it: its statistic, and where it begins and ends."""
    count, corner = len(segment), _corner(segment)
    starts, ends = _parts(count, least)
    if not len(starts):
        return -inf, ()
    inside = corner[ends, ends] - 2 * corner[starts, ends] + corner[starts, starts]
    rows = corner[ends, count] - corner[starts, count]
    strength = _strength(inside, rows, corner[count, count], ends - starts, count)
    at = int(np.argmax(strength))
    return float(strength[at]), (int(starts[at]), int(ends[at]))


_FINE = 100


@lru_cache(maxsize=128)
def _parts(count: int, least: int) -> tuple[Places, Places]:
    """(first, end) of every part with room on both sides; of a long line those on a grid of some hundred places."""
    step = max(1, count // _FINE)
    starts, ends = np.triu_indices(count // step + 1, k=1)
    starts, ends = starts * step, ends * step
    inner = (starts >= least) & (count - ends >= least) & (ends - starts >= least)
    return starts[inner], ends[inner]


def _near(count: int, least: int, part: tuple[int, int]) -> tuple[Places, Places]:
    """Every part whose ends are as near to those of this one as the grid is wide."""
    reach = np.arange(-(count // _FINE), count // _FINE + 1)
    starts, ends = (axis.ravel() for axis in np.meshgrid(part[0] + reach, part[1] + reach))
    inner = (starts >= least) & (count - ends >= least) & (ends - starts >= least)
    return starts[inner], ends[inner]


def _corner(segment: Array) -> Array:
    """Sums of the distances between the first of each and the first of each."""
    corner = np.zeros((len(segment) + 1, len(segment) + 1))
    corner[1:, 1:] = np.abs(segment[:, None] - segment[None, :]).cumsum(axis=0).cumsum(axis=1)
    return corner


def _strength(inside: Array, rows: Array, whole: float, m: Places, count: int) -> Array:
    """The energy between a part and the rest: of the distances inside, from it to all, and of all."""
    n = count - m
    across = rows - inside
    outside = whole - inside - 2 * across
    energy = 2 * across / (m * n) - inside / (m * np.maximum(m - 1, 1)) - outside / (n * np.maximum(n - 1, 1))
    strength: Array = m * n / count * energy
    return strength


def _chance(
    pieces: Sequence[Array], best: Search, strength: float, bounds: tuple[int, float], random: np.random.Generator
) -> float:
    """How often a shuffle within segments splits as strongly; counted until that is past the level."""
    least, level = bounds
    hits = 0
    for _ in range(PERMUTATIONS):
        hits += max(best(random.permutation(piece), least)[0] for piece in pieces) >= strength
        if (hits + 1) / (PERMUTATIONS + 1) > level:
            break
    return (hits + 1) / (PERMUTATIONS + 1)


_SHUFFLES = 499

_GRID = 1.1


def _ranked(line: Array, start: int, level: float, least: int) -> list[tuple[int, float]]:
    """The changes of a long line: where the ranks of two parts differ most, and then in each part alone."""
    if len(line) < 2 * least:
        return []
    ranks, grid = _ranks(line), _on_grid(len(line))
    for split, enough in ((_rank_split, level), (_rank_part, level / 2)):
        strength, places = split(ranks, least)
        p = (int(np.sum(_shuffled(grid, least, split) >= strength)) + 1) / (_SHUFFLES + 1)
        if places and p <= enough:
            edges = [0, *places, len(line)]
            parts = [_ranked(line[a:b], start + a, level, least) for a, b in pairwise(edges)]
            return sorted([*((start + at, p) for at in places), *(cut for part in parts for cut in part)])
    return []


def _ranks(line: Array) -> Array:
    """From 1 on; what is equal shares the middle of its ranks."""
    _, places, counts = np.unique(line, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    middle: Array = (last - (counts - 1) / 2)[places]
    return middle


def _rank_split(ranks: Array, least: int) -> tuple[float, tuple[int, ...]]:
    """The split at which the sum of the first ranks is farthest from what chance gives, in its deviations."""
    m = np.arange(least, len(ranks) - least + 1)
    strength = _deviations(np.cumsum(ranks)[m - 1], m, len(ranks))
    at = int(np.argmax(strength))
    return float(strength[at]), (int(m[at]),)


def _rank_part(ranks: Array, least: int) -> tuple[float, tuple[int, ...]]:
    """The part whose sum of ranks is farthest from what chance gives, with room on both sides."""
    parts = _parts(len(ranks), least)
    if not len(parts[0]):
        return -inf, ()
    sums = np.concatenate(([0.0], np.cumsum(ranks)))
    strength, part = _farthest(sums, parts)
    return strength, _farthest(sums, _near(len(ranks), least, part))[1]


def _farthest(sums: Array, parts: tuple[Places, Places]) -> tuple[float, tuple[int, int]]:
    starts, ends = parts
    strength = _deviations(sums[ends] - sums[starts], ends - starts, len(sums) - 1)
    at = int(np.argmax(strength))
    return float(strength[at]), (int(starts[at]), int(ends[at]))


def _deviations(sums: Array, m: Places, count: int) -> Array:
    """How far sums of so many ranks of all are from their middle, by what chance makes of it."""
    apart: Array = np.abs(sums - m * (count + 1) / 2) / np.sqrt(m * (count - m) * (count + 1) / 12)
    return apart


@lru_cache(maxsize=256)
def _shuffled(count: int, least: int, split: Search) -> Array:
    """How strong the best split of so many ranks is when chance put them in order: the same for every line."""
    random = np.random.default_rng(count)
    order = np.arange(1.0, count + 1)
    return np.array([split(random.permutation(order), least)[0] for _ in range(_SHUFFLES)])


def _on_grid(count: int) -> int:
    """The next of few lengths; chance splits a longer line a little more strongly, so that this errs towards none."""
    return ceil(_GRID ** ceil(log(count, _GRID) - 1e-9))


def _described(numbers: Sequence[float], cuts: list[tuple[int, float]]) -> tuple[ChangePoint, ...]:
    edges = [0, *(at for at, _ in cuts), len(numbers)] if cuts else []
    level = [float(np.median(np.asarray(numbers[a:b], dtype=float))) for a, b in pairwise(edges)]
    return tuple(ChangePoint(index=at, before=level[i], after=level[i + 1], p=p) for i, (at, p) in enumerate(cuts))
