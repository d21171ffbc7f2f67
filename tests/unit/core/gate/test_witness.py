"""The number of a process, and how far two processes that took turns are apart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.gate.witness import LEAST_TURNS, _witnessed, apart, computes, spread, time_of
from pytest_perfgate.model.samples import Samples, Stop


def samples(wall, cpu=(), *, timer: str = "host", turns=()) -> Samples:
    return Samples(durations=tuple(wall), cpu=tuple(cpu), timer=timer, stop=Stop.COUNT, turns=tuple(turns))


WALL = tuple(float(n) for n in (27, 1, 9, 30, 14, 3, 22, 5, 18, 11, 25, 7))
CPU = tuple(time / 2 for time in WALL)


def test_the_time_of_a_process_is_the_clock_s_that_speaks_for_it() -> None:
    assert time_of(samples(WALL, CPU), busy=False) == 1.0
    twenty = tuple(float(n) for n in range(1, 21))
    assert time_of(samples(twenty, twenty), busy=True) == 2.0
    assert time_of(samples(twenty[::-1][:11], twenty[::-1][:11]), busy=True) == 11.0
    assert time_of(samples(twenty[:10], twenty[:10]), busy=True) == 1.0
    assert time_of(samples(WALL, CPU, timer="events"), busy=True) == 12.5


def test_the_spread_is_of_quartiles() -> None:
    eleven = tuple(float(n) for n in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024))
    assert spread(samples(eleven, CPU), busy=False) == pytest.approx((256 - 4) / 32)
    nine = tuple(float(2**n) for n in range(9))
    assert spread(samples(WALL, nine), busy=True) == pytest.approx((64 - 4) / 16)
    twelve = tuple(float(2**n) for n in range(12))
    assert spread(samples(twelve), busy=False) == pytest.approx((512 - 4) / 48)


def test_turns_are_compared_one_by_one() -> None:
    base = samples((10.0, 12.0, 20.0, 21.0, 40.0, 44.0), turns=(2, 2, 2))
    head = samples((11.0, 13.0, 23.0, 22.0, 48.0, 90.0), turns=(2, 2, 2))
    assert apart(base, head, busy=False) == pytest.approx(1.1)
    for timer in ("events", "cupti"):
        middles = [12.0 / 11.0, 22.5 / 20.5, 69.0 / 42.0]
        on_device = [
            samples(s.durations, (time**2 for time in s.durations), timer=timer, turns=s.turns) for s in (base, head)
        ]
        assert apart(*on_device, busy=True) == pytest.approx(sorted(middles)[1])


@pytest.mark.parametrize(
    ("of_base", "of_head"),
    [
        ((), ()),
        ((2, 4), (2, 4)),
        ((2, 2, 2), (3, 3)),
        ((3, 2, 2), (3, 2, 2)),
        ((2, 2, 1), (2, 2, 1)),
        ((2, 2, 2, 0), (2, 2, 2, 0)),
        ((2, 2, 2), (2, 2, 1, 1)),
    ],
)
def test_without_enough_turns_whole_processes_are_compared(of_base, of_head) -> None:
    base = samples((10.0, 12.0, 20.0, 21.0, 40.0, 44.0), turns=of_base)
    head = samples((30.0, 13.0, 23.0, 22.0, 48.0, 90.0), turns=of_head)
    assert apart(base, head, busy=False) == pytest.approx(1.3)


def test_turns_of_one_sample_and_least_turns_are_enough() -> None:
    base = samples((10.0, 20.0, 30.0), turns=(1,) * LEAST_TURNS)
    head = samples((15.0, 22.0, 36.0), turns=(1,) * LEAST_TURNS)
    assert apart(base, head, busy=False) == pytest.approx(1.2)
    assert apart(
        samples((10.0, 0.5, 40.0), turns=(1,) * 3), samples((15.0, 0.55, 48.0), turns=(1,) * 3), busy=False
    ) == (pytest.approx(1.2))


def test_a_turn_that_took_no_time_is_left_out() -> None:
    base = samples((10.0, 0.0, 20.0, 30.0), (10.0, 0.0, 20.0, 30.0), turns=(1,) * 4)
    head = samples((15.0, 9.0, 22.0, 36.0), (15.0, 9.0, 22.0, 36.0), turns=(1,) * 4)
    assert apart(base, head, busy=True) == pytest.approx(1.2)
    nothing = samples((15.0, 22.0, 36.0, 9.0), (15.0, 22.0, 36.0, 0.0), turns=(1,) * 4)
    ours = samples((10.0, 20.0, 30.0, 9.0), (10.0, 20.0, 30.0, 9.0), turns=(1,) * 4)
    assert apart(ours, nothing, busy=True) == pytest.approx(1.2)


def test_a_call_computes_where_some_sample_loses_no_time() -> None:
    calm, waiting = samples((10.0, 20.0), (9.9, 10.0)), samples((10.0, 20.0), (5.0, 10.0))
    assert computes([calm, calm, waiting])
    assert not computes([calm, waiting, waiting])
    assert computes([samples((1.02,), (1.0,))])
    assert not computes([samples((10.0, 20.0), (10.0,))])
    assert not computes([samples((10.0, 20.0), (0.0, 0.0))])
    assert computes([samples((10.0, 0.5), (0.0, 0.5))])


@pytest.mark.parametrize(("blocked", "alone"), [(None, False), (0.0, True), (1.0, True), (1.1, False), (50.0, False)])
def test_a_call_that_computes_whenever_it_has_a_processor_is_known_on_a_busy_core(
    blocked: float | None, alone: bool
) -> None:
    """Every sample was torn: by the wall a call of two slices waits more often than one of one slice."""
    torn = replace(samples((90.0, 140.0), (50.0, 50.0)), blocked=blocked)
    assert computes([torn]) is alone
    assert not computes([replace(torn, cpu=())])


@pytest.mark.parametrize(("least", "alone"), [(0.0, False), (0.5, True), (1.0, True)])
def test_a_clock_that_reads_nothing_of_some_sample_is_no_witness(least: float, alone: bool) -> None:
    assert _witnessed(samples((50.0, 50.0), (50.0, least))) is alone
