"""Tests of core/judge/samples: the power and clock of two builds, and levels of times."""

from __future__ import annotations

import math

import pytest

from pytest_perfgate.core.judge.samples import differs_in_power, of_level, power_facts
from pytest_perfgate.model.measurement import Settled
from pytest_perfgate.model.plan import Decision
from pytest_perfgate.model.verdict import PowerLimited
from tests.unit.core.judge.paired_builds import decided

SIDE = tuple[float | None, float | None]


def turns(*rounds: tuple[SIDE, SIDE]) -> list[tuple[Settled, Settled]]:
    """Watts and megahertz of base and head in each round."""
    return [
        (
            Settled(time=1e6, watts=base[0], clock_hz=base[1] and base[1] * 1e6),
            Settled(time=1e6, watts=head[0], clock_hz=head[1] and head[1] * 1e6),
        )
        for base, head in rounds
    ]


@pytest.mark.parametrize(
    ("rounds", "differs"),
    [
        ([((690, 1700), (690, 1691))] * 3, True),
        ([((690, 1700), (690, 1692))] * 3, False),
        ([((690, 1700), (690, 1709))] * 3, True),
        ([((690, 1700), (670, 1700))] * 3, True),
        ([((690, 1700), (677, 1700))] * 3, False),
        ([((690, 1700), (690, 1600))] * 2 + [((690, 1700), (690, 1701))], False),
        ([((690, 1700), (690, 1600))] * 2 + [((690, 1700), (690, 1700))], False),
        ([((690, 1700), (690, 1800))] * 2 + [((690, 1700), (690, 1700))], False),
        ([((690, 1700), (690, 1600))] * 2 + [((690, 1700), (690, None))], False),
        ([((690, 1700), (690, 1600))] * 2 + [((690, None), (690, 1600))], False),
        ([((690, None), (650, None))] * 3, True),
        ([((None, None), (None, None))] * 3, False),
        ([], False),
    ],
)
def test_builds_differ_in_power_where_every_round_does(rounds: list[tuple[SIDE, SIDE]], *, differs: bool) -> None:
    """By half a percent of the clock, or by two of the power, always in the same direction."""
    assert differs_in_power(turns(*rounds)) is differs


@pytest.mark.parametrize(
    ("limited", "texts"),
    [
        (None, []),
        (PowerLimited(), ["clocks are not known"]),
        (PowerLimited(clocks_hz=(1.7e9, 1.6e9)), ["1700 MHz then, 1600 MHz now"]),
        (PowerLimited(clocks_hz=(1.7e9, 1.6e9), watts=(690.0, 700.0)), ["1700 MHz then, 1600 MHz now, 690 W then, 700 W now"]),
    ],
)  # fmt: skip
def test_builds_at_the_power_limit_name_what_is_known_of_it(limited: PowerLimited | None, texts: list[str]) -> None:
    facts = power_facts(decided(Decision.SLOWER, 0.1, limited=limited))
    assert list(facts) == [("power", f"at the device's limit: {text}") for text in texts]


@pytest.mark.parametrize(
    ("measured", "time", "same"),
    [
        (1e6, 1e6, True), (1.16e6, 1e6, True), (1.17e6, 1e6, False), (0.87e6, 1e6, True), (0.85e6, 1e6, False), (0.0, 1e6, False), (math.inf, 1e6, False),
        (1e6, 0.0, False), (-1e6, 1e6, False),
    ],
)  # fmt: skip
def test_times_of_one_level_differ_by_less_than_machines_scatter(measured: float, time: float, *, same: bool) -> None:
    assert of_level(measured, time) is same
