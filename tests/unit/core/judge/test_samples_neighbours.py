"""Tests of core/judge/samples: neighbours on the processor, and turns."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.samples import (
    LEAST_TURNS,
    _has_cpu_times,
    computes,
    head_ratio,
    pair_of,
    power_limited,
    spread,
    time_of,
)
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.measurement import Identity, Samples, Settled, Stop
from pytest_perfgate.model.plan import CaseKey, Outcome
from pytest_perfgate.model.protocol import Capture
from pytest_perfgate.model.verdict import PowerLimited, Verdict
from tests.unit.core.judge.bench import (
    GPU,
    KINDS,
    SHAPE,
    accepted,
    limit,
    measured,
    samples,
)

BASE = 1e6


def waiting_verdict(time: float = 2e6, *, shape: tuple[float, ...] = SHAPE, device=None, **fields) -> Verdict:
    """Of a call that was accepted at 1 ms; chance explains up to 23.6 %."""
    processes = tuple(samples(time * factor, **fields) for factor in shape)
    of = {"device": device} if device else {}
    measurement = measured(time, processes=processes, **of)
    context = JudgeContext(kinds=KINDS, gates=1)
    return judge(measurement, [limit("slowdown <= 3%")], baseline=accepted(BASE, **of), context=context).verdicts[0]


@pytest.mark.parametrize(
    ("unqueued", "others", "outcome"),
    [
        (2.0, 0.0, Outcome.REGRESSED),
        (1.3, 0.0, Outcome.REGRESSED),
        (1.3, 0.04, Outcome.REGRESSED),
        (1.27, 0.05, Outcome.REGRESSED),
        (1.27, 0.06, Outcome.SUSPECT),
        (1.2, 0.0, Outcome.SUSPECT),
        (0.0, 0.0, Outcome.SUSPECT),
        (9.0, 0.5, Outcome.REGRESSED),
        (1.8, 0.5, Outcome.SUSPECT),
        (2.0, 1.0, Outcome.SUSPECT),
        (2.0, None, Outcome.SUSPECT),
        (None, 0.0, Outcome.SUSPECT),
    ],
    ids=["its own", "less, but its own", "a clock tick of others", "just a few", "more than a few", "it queued", "it only queued", "means and outliers",
         "it queued beside others", "a neighbour", "perhaps a neighbour", "nobody looked"],
)  # fmt: skip
def test_what_a_call_queued_or_shared_is_not_its_own(unqueued: float | None, others: float, outcome: Outcome) -> None:
    own = None if unqueued is None else unqueued * BASE
    assert waiting_verdict(unqueued=own, others=others).outcome is outcome


@pytest.mark.parametrize(("slower", "outcome"), [(3.6, Outcome.SUSPECT), (3.8, Outcome.REGRESSED)])
def test_however_many_the_neighbours_four_times_slower_is_seen(slower: float, outcome: Outcome) -> None:
    assert waiting_verdict(slower * BASE, unqueued=slower * BASE, others=60.0).outcome is outcome


def test_neighbours_that_nobody_counted_are_taken_for_one() -> None:
    for slower, outcome in ((2.4, Outcome.SUSPECT), (2.6, Outcome.REGRESSED)):
        assert waiting_verdict(slower * BASE, unqueued=slower * BASE, others=None).outcome is outcome


def test_of_several_processes_the_one_with_the_most_neighbours_counts() -> None:
    quiet, busy = samples(2e6), samples(2e6, others=1.0)
    context = JudgeContext(kinds=KINDS, gates=1)
    for processes, outcome in (((quiet,) * 3, Outcome.REGRESSED), ((quiet, quiet, busy), Outcome.SUSPECT)):
        report = judge(measured(0, processes=processes), [limit("slowdown <= 3%")], baseline=accepted(BASE),
                      context=context)  # fmt: skip
        assert report.verdicts[0].outcome is outcome


@pytest.mark.parametrize("shape", [(1.0,), (1.0, 1.0)])
def test_one_or_two_processes_confirm_nothing(shape: tuple[float, ...]) -> None:
    verdict = waiting_verdict(9e6, shape=shape, unqueued=9e6)
    assert verdict.outcome is Outcome.SUSPECT
    assert "cannot show how far processes differ: it takes 3" in verdict.sentence
    assert any("--perfgate-rounds=3" in line for line in verdict.next)


def test_a_suspect_says_what_the_machine_did_and_how_to_decide() -> None:
    queued = waiting_verdict(unqueued=1.1e6)
    assert "without the wait for a processor it is +10.0 %: the machine was busy" in queued.sentence
    assert any("--perfgate-against" in line for line in queued.next)
    for less in (0.9e6, BASE):
        assert "without the wait for a processor it is no slower" in waiting_verdict(unqueued=less).sentence
    sentence = "with 0.8 processors in use by others up to 122 %, and without the wait for a processor it is +100.0 %"
    assert sentence in waiting_verdict(others=0.8).sentence
    assert "it is unknown how long the calls waited for a processor" in waiting_verdict(unqueued=None).sentence


@pytest.mark.parametrize(("stretch", "outcome"), [(1.01, Outcome.REGRESSED), (1.5, Outcome.SUSPECT)])
def test_a_region_that_only_computes_is_known_by_its_processor_time(stretch: float, outcome: Outcome) -> None:
    cpu = tuple(wall / stretch for wall in samples(2e6).durations)
    assert waiting_verdict(timer="region", unqueued=None, others=0.0, cpu=cpu).outcome is outcome


def test_a_devices_own_time_knows_no_waiting_for_cores() -> None:
    assert waiting_verdict(timer="events", device=GPU, unqueued=None, others=9.0).outcome is Outcome.REGRESSED


def test_one_process_by_another_clock_is_no_time_of_the_host() -> None:
    host = samples(2e6, unqueued=None)
    processes = (host, host, replace(host, timer="events"))
    context = JudgeContext(kinds=KINDS, gates=1)
    report = judge(measured(0, processes=processes), [limit("slowdown <= 3%")], baseline=accepted(1e6), context=context)
    assert report.verdicts[0].outcome is Outcome.REGRESSED


def test_a_suspect_beyond_chance_says_what_kept_it_from_being_confirmed() -> None:
    loose = measured(9.3e6, shape=(0.3, 1.7))
    report = judge(loose, [limit("slowdown <= 3%")], baseline=accepted(1e6), context=JudgeContext(kinds=KINDS))
    (verdict,) = report.verdicts
    assert verdict.outcome is Outcome.SUSPECT
    assert "its own interval of 2 processes" in verdict.sentence
    assert "it begins at -" in verdict.sentence


def timed_samples(wall, cpu=(), *, timer: str = "host", turns=()) -> Samples:
    return Samples(durations=tuple(wall), cpu=tuple(cpu), timer=timer, stop=Stop.COUNT, turns=tuple(turns))


WALL = tuple(float(n) for n in (27, 1, 9, 30, 14, 3, 22, 5, 18, 11, 25, 7))
CPU = tuple(time / 2 for time in WALL)


def test_the_time_of_a_process_is_the_clock_s_that_speaks_for_it() -> None:
    assert time_of(timed_samples(WALL, CPU), by_cpu=False) == 1.0
    twenty = tuple(float(n) for n in range(1, 21))
    assert time_of(timed_samples(twenty, twenty), by_cpu=True) == 2.0
    assert time_of(timed_samples(twenty[::-1][:11], twenty[::-1][:11]), by_cpu=True) == 11.0
    assert time_of(timed_samples(twenty[:10], twenty[:10]), by_cpu=True) == 1.0
    assert time_of(timed_samples(WALL, CPU, timer="events"), by_cpu=True) == 12.5


def test_the_spread_is_of_quartiles() -> None:
    eleven = tuple(float(n) for n in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024))
    assert spread(timed_samples(eleven, CPU), by_cpu=False) == pytest.approx((256 - 4) / 32)
    nine = tuple(float(2**n) for n in range(9))
    assert spread(timed_samples(WALL, nine), by_cpu=True) == pytest.approx((64 - 4) / 16)
    twelve = tuple(float(2**n) for n in range(12))
    assert spread(timed_samples(twelve), by_cpu=False) == pytest.approx((512 - 4) / 48)


def test_turns_are_compared_one_by_one() -> None:
    base = timed_samples((10.0, 12.0, 20.0, 21.0, 40.0, 44.0), turns=(2, 2, 2))
    head = timed_samples((11.0, 13.0, 23.0, 22.0, 48.0, 90.0), turns=(2, 2, 2))
    assert head_ratio(base, head, by_cpu=False) == pytest.approx(1.1)
    for timer in ("events", "cupti"):
        middles = [12.0 / 11.0, 22.5 / 20.5, 69.0 / 42.0]
        on_device = [
            timed_samples(s.durations, (time**2 for time in s.durations), timer=timer, turns=s.turns)
            for s in (base, head)
        ]
        assert head_ratio(*on_device, by_cpu=True) == pytest.approx(sorted(middles)[1])


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
    base = timed_samples((10.0, 12.0, 20.0, 21.0, 40.0, 44.0), turns=of_base)
    head = timed_samples((30.0, 13.0, 23.0, 22.0, 48.0, 90.0), turns=of_head)
    assert head_ratio(base, head, by_cpu=False) == pytest.approx(1.3)


def test_turns_of_one_sample_and_least_turns_are_enough() -> None:
    base = timed_samples((10.0, 20.0, 30.0), turns=(1,) * LEAST_TURNS)
    head = timed_samples((15.0, 22.0, 36.0), turns=(1,) * LEAST_TURNS)
    assert head_ratio(base, head, by_cpu=False) == pytest.approx(1.2)
    assert head_ratio(
        timed_samples((10.0, 0.5, 40.0), turns=(1,) * 3),
        timed_samples((15.0, 0.55, 48.0), turns=(1,) * 3),
        by_cpu=False,
    ) == (pytest.approx(1.2))


def test_a_turn_that_took_no_time_is_left_out() -> None:
    base = timed_samples((10.0, 0.0, 20.0, 30.0), (10.0, 0.0, 20.0, 30.0), turns=(1,) * 4)
    head = timed_samples((15.0, 9.0, 22.0, 36.0), (15.0, 9.0, 22.0, 36.0), turns=(1,) * 4)
    assert head_ratio(base, head, by_cpu=True) == pytest.approx(1.2)
    nothing = timed_samples((15.0, 22.0, 36.0, 9.0), (15.0, 22.0, 36.0, 0.0), turns=(1,) * 4)
    ours = timed_samples((10.0, 20.0, 30.0, 9.0), (10.0, 20.0, 30.0, 9.0), turns=(1,) * 4)
    assert head_ratio(ours, nothing, by_cpu=True) == pytest.approx(1.2)


def test_a_call_computes_where_some_sample_loses_no_time() -> None:
    calm, waiting = timed_samples((10.0, 20.0), (9.9, 10.0)), timed_samples((10.0, 20.0), (5.0, 10.0))
    assert computes([calm, calm, waiting])
    assert not computes([calm, waiting, waiting])
    assert computes([timed_samples((1.02,), (1.0,))])
    assert not computes([timed_samples((10.0, 20.0), (10.0,))])
    assert not computes([timed_samples((10.0, 20.0), (0.0, 0.0))])
    assert computes([timed_samples((10.0, 0.5), (0.0, 0.5))])


@pytest.mark.parametrize(("blocked", "alone"), [(None, False), (0.0, True), (1.0, True), (1.1, False), (50.0, False)])
def test_a_call_that_computes_whenever_it_has_a_processor_is_known_on_a_busy_core(
    blocked: float | None, alone: bool
) -> None:
    """Every sample was torn: by the wall a call of two slices waits more often than one of one slice."""
    torn = replace(timed_samples((90.0, 140.0), (50.0, 50.0)), blocked=blocked)
    assert computes([torn]) is alone
    assert not computes([replace(torn, cpu=())])


@pytest.mark.parametrize(("least", "alone"), [(0.0, False), (0.5, True), (1.0, True)])
def test_a_clock_that_reads_nothing_of_some_sample_is_no_evidence(least: float, alone: bool) -> None:
    assert _has_cpu_times(timed_samples((50.0, 50.0), (50.0, least))) is alone


def rounds_of(*turns: tuple[Settled | None, Settled | None], times: tuple[float, float] = (10.0, 10.0)):
    """Rounds with a long turn a side, and short ones that say something else."""
    device, key = Device(key="gpu", name="x", kind="gpu"), CaseKey(nodeid="t.py::t")

    def capture(time: float, long: Settled | None) -> Capture:
        taken = replace(timed_samples((time,) * 6, timer="events", turns=(2, 2, 2)), settled=long, capped=0.9)
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
        [*lower[:4], (None, long(10.4, 1.64e9))],
        [(long(10.0, 1.7e9), long(10.4, 1.7e9 * (1 - 0.004)))] * 5,
    ):
        assert pair_of(rounds_of(*alike)).differences == pytest.approx([0.0] * 5)


def test_what_both_sides_drew_is_told_where_the_power_limit_held_them() -> None:
    limited = power_limited(rounds_of(*[(long(10.0, 1.7e9), long(10.4, 1.64e9))] * 5))
    assert limited == PowerLimited(clocks_hz=(1.7e9, 1.64e9), watts=(700.0, 700.0), decides=True)
    assert power_limited(rounds_of((None, None))) == PowerLimited()
    half = power_limited(
        rounds_of((long(10.0, 1.7e9, None), long(10.4, 1.64e9)), (long(10.0, 1.7e9), long(10.4, 1.64e9)))
    )
    assert half == PowerLimited(clocks_hz=(1.7e9, 1.64e9), watts=None, decides=True)
    (free,) = rounds_of((None, None))
    calm = [tuple(replace(c, samples=(replace(c.samples[0], capped=0.0),)) for c in free)]
    assert power_limited(calm) is None


def test_a_call_that_is_slower_every_second_time_is_slower() -> None:
    base = timed_samples((10.0,) * 12, (10.0,) * 12, turns=(4,) * 3)
    every_second = (10.0, 13.0) * 6
    head = timed_samples(every_second, every_second, turns=(4,) * 3)
    assert head_ratio(base, head, by_cpu=True) == pytest.approx(1.15)
    mostly = (10.0, 13.0, 13.0, 13.0) * 3
    assert head_ratio(base, timed_samples(mostly, mostly, turns=(4,) * 3), by_cpu=True) == pytest.approx(1.3)


@pytest.mark.parametrize(("timer", "ratio"), [("host", 1.0), ("region", 1.0), ("events", 1.3)])
def test_of_wall_times_that_others_lengthen_the_least_counts_and_of_a_device_the_median(
    timer: str, ratio: float
) -> None:
    base = timed_samples((10.0,) * 12, turns=(4,) * 3, timer=timer)
    head = timed_samples((10.0, 13.0, 13.0, 13.0) * 3, turns=(4,) * 3, timer=timer)
    assert head_ratio(base, head, by_cpu=False) == pytest.approx(ratio)
