"""Sittings that lie on one level: the same code on the same machine, as far as machines scatter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import takewhile

from pytest_perfgate.core.stats.successive import scatter_of_neighbours
from pytest_perfgate.model.baseline import Sitting

_LEVEL = 0.15
"""Nearly four standard deviations between sittings on the noisiest kind of machine."""


def scatter_of(sittings: Sequence[Sitting], time: float) -> tuple[float, int]:
    """(relative scatter between sittings at the accepted level, how many); another level says nothing here."""
    times = [sitting.time for sitting in _of_level(sittings, time)]
    return scatter_of_neighbours(times), len(times)


def _of_level(sittings: Sequence[Sitting], time: float) -> list[Sitting]:
    """The newest sittings, back to the first that lies further off than any machine scatters."""
    return list(takewhile(lambda s: of_level(s.time, time), reversed(sittings)))


def of_level(measured: float, time: float) -> bool:
    """Whether a time lies no further from another than machines scatter between sittings."""
    return 0 < measured < math.inf and abs(math.log(measured / time)) <= _LEVEL
