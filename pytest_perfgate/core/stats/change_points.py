"""Where a line of figures changes: the strongest splits that shuffling does not explain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf

import numpy as np

from pytest_perfgate.model.values import value

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

LEVEL = 0.05

PERMUTATIONS = 199

LEAST = 3
"""Sittings between two changes: fewer are noise."""


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
    """Where a line changes, in order: the best split of any segment is tried first, until one is no surprise.

    Positive numbers are taken by their logarithms, so that a change is a fraction; others say nothing of a time, and
    are passed over.
    """
    places = [at for at, number in enumerate(numbers) if 0 < number < inf]
    if len(places) < len(numbers):
        changes = change_points([numbers[at] for at in places], seed=seed, level=level, least=least)
        return tuple(replace(one, index=places[one.index]) for one in changes)
    line = np.log(np.asarray(numbers, dtype=float))
    random = np.random.default_rng(seed)
    cuts: list[tuple[int, float]] = []
    while True:
        edges = sorted([0, *(at for at, _ in cuts), len(line)])
        candidates = [(*_best(line[a:b], least), a) for a, b in pairwise(edges) if b - a >= 2 * least]
        if not candidates:
            break
        strength, at, start = max(candidates)
        p = _chance(line, edges, least, strength, random)
        if p > level:
            break
        cuts.append((start + at, p))
    return _described(numbers, sorted(cuts))


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


def _chance(line: Array, edges: list[int], least: int, strength: float, random: np.random.Generator) -> float:
    """How often a shuffle within segments splits as strongly."""
    pieces = [line[a:b] for a, b in pairwise(edges) if b - a >= 2 * least]
    hits = 0
    for _ in range(PERMUTATIONS):
        hits += max(_best(random.permutation(piece), least)[0] for piece in pieces) >= strength
    return (hits + 1) / (PERMUTATIONS + 1)


def _described(numbers: Sequence[float], cuts: list[tuple[int, float]]) -> tuple[ChangePoint, ...]:
    edges = [0, *(at for at, _ in cuts), len(numbers)] if cuts else []
    level = [float(np.median(np.asarray(numbers[a:b], dtype=float))) for a, b in pairwise(edges)]
    return tuple(ChangePoint(index=at, before=level[i], after=level[i + 1], p=p) for i, (at, p) in enumerate(cuts))
