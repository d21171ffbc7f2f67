"""Where a line of figures changes: the strongest splits that shuffling does not explain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from math import ceil, inf, log

import numpy as np

from pytest_perfgate.model.values import value

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

LEVEL = 0.05

PERMUTATIONS = 199

LEAST = 3
"""Sittings between two changes: fewer are noise."""

LONG = 80
"""From so many on ranks are compared instead of distances: those of a line take the square of its length."""


@value
class ChangePoint:
    """From this sitting on the line runs elsewhere."""

    index: int
    before: float
    """Median of the segment that ends here."""
    after: float
    p: float

    @property
    def change(self) -> float:
        """As a fraction of what was before."""
        return self.after / self.before - 1


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
    """By ranks, and in the newest part by distances as well: ranks do not see what only a few sittings show."""
    cuts = _ranked(line, 0, level / 2, least)
    newest = max(len(line) - LONG, cuts[-1][0] if cuts else 0)
    return [*cuts, *((newest + at, p) for at, p in _split(line[newest:], seed, level / 2, least))]


def _split(line: Array, seed: int, level: float, least: int) -> list[tuple[int, float]]:
    """The best split of any segment is tried first, until one is no surprise."""
    random = np.random.default_rng(seed)
    cuts: list[tuple[int, float]] = []
    while True:
        edges = sorted([0, *(at for at, _ in cuts), len(line)])
        candidates = [(*_best(line[a:b], least), a) for a, b in pairwise(edges) if b - a >= 2 * least]
        if not candidates:
            break
        strength, at, start = max(candidates)
        p = _chance(line, edges, (least, level), strength, random)
        if p > level:
            break
        cuts.append((start + at, p))
    return cuts


def _best(segment: Array, least: int) -> tuple[float, int]:
    """The strongest split of a segment: its statistic and its place."""
    count = len(segment)
    apart = np.abs(segment[:, None] - segment[None, :])
    corner = np.zeros((count + 1, count + 1))
    corner[1:, 1:] = apart.cumsum(axis=0).cumsum(axis=1)
    m = np.arange(least, count - least + 1)
    n = count - m
    before, whole = corner[m, m], corner[count, count]
    across = corner[m, count] - before
    right = whole - before - 2 * across
    energy = 2 * across / (m * n) - before / (m * np.maximum(m - 1, 1)) - right / (n * np.maximum(n - 1, 1))
    strength = m * n / (m + n) * energy
    at = int(np.argmax(strength))
    return float(strength[at]), int(m[at])


def _chance(
    line: Array, edges: list[int], bounds: tuple[int, float], strength: float, random: np.random.Generator
) -> float:
    """How often a shuffle within segments splits as strongly; counted until that is past the level."""
    least, level = bounds
    pieces = [line[a:b] for a, b in pairwise(edges) if b - a >= 2 * least]
    hits = 0
    for _ in range(PERMUTATIONS):
        hits += max(_best(random.permutation(piece), least)[0] for piece in pieces) >= strength
        if (hits + 1) / (PERMUTATIONS + 1) > level:
            break
    return (hits + 1) / (PERMUTATIONS + 1)


_SHUFFLES = 999

_GRID = 1.1


def _ranked(line: Array, start: int, level: float, least: int) -> list[tuple[int, float]]:
    """The changes of a long line: where the ranks before and after differ most, and then in each part alone."""
    if len(line) < 2 * least:
        return []
    strength, at = _rank_split(_ranks(line), least)
    chances = _shuffled(_on_grid(len(line)), least)
    p = (int(np.sum(chances >= strength)) + 1) / (_SHUFFLES + 1)
    if p > level:
        return []
    parts = (_ranked(line[:at], start, level, least), _ranked(line[at:], start + at, level, least))
    return [*parts[0], (start + at, p), *parts[1]]


def _ranks(line: Array) -> Array:
    """From 1 on; what is equal shares the middle of its ranks."""
    _, places, counts = np.unique(line, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    middle: Array = (last - (counts - 1) / 2)[places]
    return middle


def _rank_split(ranks: Array, least: int) -> tuple[float, int]:
    """The split at which the sum of the first ranks is farthest from what chance gives, in its deviations."""
    count = len(ranks)
    m = np.arange(least, count - least + 1)
    apart = np.abs(np.cumsum(ranks)[m - 1] - m * (count + 1) / 2)
    strength = apart / np.sqrt(m * (count - m) * (count + 1) / 12)
    at = int(np.argmax(strength))
    return float(strength[at]), int(m[at])


@lru_cache(maxsize=256)
def _shuffled(count: int, least: int) -> Array:
    """How strong the best split of so many ranks is when chance put them in order: the same for every line."""
    random = np.random.default_rng(count)
    order = np.tile(np.arange(1.0, count + 1), (_SHUFFLES, 1))
    return np.array([_rank_split(one, least)[0] for one in random.permuted(order, axis=1)])


def _on_grid(count: int) -> int:
    """The next of few lengths; chance splits a longer line a little more strongly, so that this errs towards none."""
    return ceil(_GRID ** ceil(log(count, _GRID) - 1e-9))


def _described(numbers: Sequence[float], cuts: list[tuple[int, float]]) -> tuple[ChangePoint, ...]:
    edges = [0, *(at for at, _ in cuts), len(numbers)] if cuts else []
    level = [float(np.median(np.asarray(numbers[a:b], dtype=float))) for a, b in pairwise(edges)]
    return tuple(ChangePoint(index=at, before=level[i], after=level[i + 1], p=p) for i, (at, p) in enumerate(cuts))
