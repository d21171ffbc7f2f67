from __future__ import annotations

import math
import random

import pytest

from pytest_perfgate.core.stats.inference import freedom, predict, scatter_of_neighbours


def test_by_hand() -> None:
    assert scatter_of_neighbours([]) == scatter_of_neighbours([3.0]) == scatter_of_neighbours([3.0] * 9) == 0.0
    assert scatter_of_neighbours([1.0, math.e]) == pytest.approx(math.sqrt(1 / 2))
    assert scatter_of_neighbours([1.0, math.e, 1.0, 1.0]) == pytest.approx(math.sqrt(2 / 6))
    assert [freedom(n) for n in (0, 1, 2, 3, 4, 10, 20)] == [0, 0, 1, 1, 2, 6, 13]


def test_it_is_the_standard_deviation_where_nothing_moves() -> None:
    dice = random.Random(3)
    assert scatter_of_neighbours([math.exp(dice.gauss(0, 0.04)) for _ in range(4000)]) == pytest.approx(0.04, rel=0.05)


@pytest.mark.parametrize(
    "levels",
    [[0.007 * at for at in range(20)], [0.0] * 10 + [0.12] * 10, [0.03 * (at // 4) for at in range(20)]],
    ids=["a drift", "one step", "small steps"],
)
def test_what_the_code_does_hardly_widens_the_gate(levels: list[float]) -> None:
    dice = random.Random(5)
    noise = [dice.gauss(0, 0.02) for _ in levels]
    times = [[math.exp(level + error) for level, error in zip(some, noise)] for some in ([0.0] * 20, levels)]
    still, moved = (predict(0.04, scatter=scatter_of_neighbours(t), sittings=20, gates=40, freedom=13) for t in times)
    assert moved.reach < still.reach + 0.04  # by the standard deviation of all of them it is up to 0.14 more
