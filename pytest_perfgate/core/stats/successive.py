"""Scatter from one number to the next: levels that the code went through are no noise of the machine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

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
