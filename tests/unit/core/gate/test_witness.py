"""The number of a process, and how far two processes that took turns are apart."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pytest_perfgate.core.gate.witness import (
    LEAST_TURNS,
    _witnessed,
    apart,
    computes,
    pair_of,
    power_limited,
    spread,
    time_of,
)
from pytest_perfgate.model.children import Capture
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.measurement import Identity
from pytest_perfgate.model.paired import PowerLimited
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.samples import Samples, Settled, Stop


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


def rounds_of(*turns: tuple[Settled | None, Settled | None], times: tuple[float, float] = (10.0, 10.0)):
    """Rounds with a long turn a side, and short ones that say something else."""
    device, key = Device(key="gpu", name="x", kind="gpu"), CaseKey(nodeid="t.py::t")

    def capture(time: float, long: Settled | None) -> Capture:
        taken = replace(samples((time,) * 6, timer="events", turns=(2, 2, 2)), settled=long, capped=0.9)
        return Capture(key=key, samples=(taken,), device=device, identity=Identity(device="gpu"))

    return [(capture(times[0], base), capture(times[1], head)) for base, head in turns]


def long(time: float, hz: float, watts: float | None = 700.0) -> Settled:
    return Settled(time=time, watts=watts, clock_hz=hz)


def test_long_turns_decide_where_the_sides_differ_in_clock_or_watts_in_every_round() -> None:
    lower = [(long(10.0, 1.7e9), long(10.4, 1.64e9))] * 5
    assert pair_of(rounds_of(*lower)).differences == pytest.approx([math.log(1.04)] * 5)
    hungrier = [(long(10.0, 1.7e9, 600.0), long(10.4, 1.7e9, 650.0))] * 5
    assert pair_of(rounds_of(*hungrier)).head == (10.4,) * 5
    for alike in (
        [(long(10.0, 1.7e9), long(10.4, 1.7e9))] * 5,
        [*lower[:4], (long(10.0, 1.64e9), long(10.4, 1.7e9))],
        [*lower[:4], (long(10.0, 1.7e9), None)],
        [(long(10.0, 1.7e9), long(10.4, 1.7e9 * (1 - 0.004)))] * 5,
    ):
        assert pair_of(rounds_of(*alike)).differences == pytest.approx([0.0] * 5)


def test_what_both_sides_drew_is_told_where_the_power_limit_held_them() -> None:
    found = power_limited(rounds_of(*[(long(10.0, 1.7e9), long(10.4, 1.64e9))] * 5))
    assert found == PowerLimited(clocks_hz=(1.7e9, 1.64e9), watts=(700.0, 700.0), decides=True)
    assert power_limited(rounds_of((None, None))) == PowerLimited()
    (free,) = rounds_of((None, None))
    calm = [tuple(replace(c, samples=(replace(c.samples[0], capped=0.0),)) for c in free)]
    assert power_limited(calm) is None
