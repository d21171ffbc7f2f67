"""Tests of core/judge/samples."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge, not_measured
from pytest_perfgate.core.judge.policy import CI
from pytest_perfgate.core.judge.samples import (
    LEAST_TURNS,
    _has_cpu_times,
    apart,
    computes,
    excused,
    of_level,
    pair_of,
    power_limited,
    problems_of,
    sound,
    spread,
    time_of,
    untimed,
    untrusted_samples,
)
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.measurement import Discard, Identity, Samples, Settled, Stop
from pytest_perfgate.model.metric import Metric, MetricSet, Problem
from pytest_perfgate.model.plan import CaseKey, Effect, Mode, Outcome, Plan
from pytest_perfgate.model.protocol import Capture
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.model.verdict import PowerLimited, Verdict
from tests.unit.core.judge.bench import (
    CONTEXT,
    GPU,
    HOST,
    KEY,
    KINDS,
    SHAPE,
    SLOWDOWN,
    accepted,
    limit,
    measured,
    outcome_of,
    samples,
    verdict,
)


def test_three_turns_are_evidence_and_two_are_not() -> None:
    def took(*times: float) -> Samples:
        return Samples(durations=times, timer="host", stop=Stop.COUNT, turns=(1,) * len(times))

    assert apart(took(10.0, 20.0, 30.0), took(15.0, 22.0, 36.0), busy=False) == pytest.approx(1.2)
    assert apart(took(10.0, 20.0), took(15.0, 24.0), busy=False) == pytest.approx(1.5)


@pytest.mark.parametrize(("wall", "alone"), [(1.019, True), (1.021, False)])
def test_a_call_that_computes_has_a_wall_time_within_two_percent(wall: float, alone: bool) -> None:
    assert computes([Samples(durations=(wall,), cpu=(1.0,), timer="host", stop=Stop.COUNT)]) is alone


def test_sittings_within_fifteen_percent_are_of_one_level() -> None:
    edge = math.exp(0.15)
    assert of_level(edge * 0.999, 1.0)
    assert of_level(1.001 / edge, 1.0)
    assert not of_level(edge * 1.001, 1.0)


def test_a_process_without_a_sample_excuses_nothing() -> None:
    assert excused([replace(samples(1e6), durations=())] * 3, 1e6, 0.1) == ""


PLAN = replace(Plan(), warmup_ns=200e6, budget_ns=800e6, min_samples=20)


def test_a_bad_sample_is_named_by_its_place() -> None:
    sick = replace(samples(1e5), durations=(1e5, 0.5, -3.0, 1e5))
    (problem,) = untrusted_samples(measured(0, processes=(samples(1e5), sick)))
    assert problem.what == "sample 3 of 4 in process 2 reads -3.0 ns"
    assert problem.retry
    endless = replace(samples(1e5), durations=(1e308,) * 4)
    (problem,) = untrusted_samples(measured(0, processes=(endless,)))
    assert problem.what.startswith("sample 1 of 4 in process 1 reads ")


def test_processes_in_groups_on_both_sides_are_unstable() -> None:
    shape = (1.0, 1.001, 1.2, 1.201)
    found = verdict(1e6, shape=shape, limits=[limit("time <= 1.1ms")])
    assert (found.outcome, found.effect) == (Outcome.UNSTABLE, Effect.WARN)
    assert outcome_of(1e6, shape=shape) is Outcome.UNSTABLE
    assert outcome_of(1e6, shape=shape, limits=[limit("time <= 2ms")]) is Outcome.PASSED
    assert outcome_of(1e6, shape=shape, limits=[limit("time <= 500us")]) is Outcome.BROKEN
    assert outcome_of(3e6, shape=shape) is Outcome.REGRESSED


def test_one_odd_process_is_no_group() -> None:
    assert outcome_of(1e6, shape=(1.0, 1.001, 1.001, 1.2), limits=[limit("time <= 1.1ms")]) is Outcome.UNDECIDED


@pytest.mark.parametrize("bad", [0.0, -5.0, math.nan, math.inf, -math.inf])
def test_timings_that_mean_nothing(bad: float) -> None:
    broken = replace(samples(1e6), durations=(1e6, 1e6, bad, 1e6))
    report = judge(
        measured(0, processes=(samples(1e6), broken)),
        [*SLOWDOWN, limit("time <= 1s")],
        baseline=accepted(1e6),
        context=CONTEXT,
    )
    for found in report.verdicts:
        assert (found.outcome, found.effect) == (Outcome.INVALID, Effect.FAIL)
        assert f"sample 3 of 4 in process 2 reads {bad} ns  [bad-timing]" in found.sentence
    assert report.problems[0].code == "bad-timing"


def test_a_femtosecond_and_thirty_years_are_times_and_nothing_beyond() -> None:
    assert sound([1e-6, 1e18])
    for ordered in ([9e-7, 1.0], [1.0, 1.1e18], [1.0, math.nan, 2.0], []):
        assert not sound(ordered)


def test_all_samples_discarded_is_no_table_of_nan() -> None:
    gone = replace(samples(1e6), durations=(), discarded=(Discard(reason="throttled", count=40),))
    found = verdict(processes=(gone,))
    assert found.outcome is Outcome.INVALID
    assert "every sample of process 1 was discarded: 40 x throttled" in found.sentence
    assert "process 1 is empty" in verdict(processes=(replace(gone, discarded=()),)).sentence


def test_what_an_instrument_saw_makes_every_limit_invalid_once() -> None:
    moved = Problem(code="clock-moved", what="the clock fell by 20 %", retry=False)
    both = tuple(samples(1e6, problems=(moved,)) for _ in range(3))
    other = Problem(code="foreign", what="process 77 used the device")
    found = verdict(processes=both, problems=(other,))
    assert found.sentence == "process 77 used the device  [foreign] (and 1 more)"
    assert [text for _, text in found.evidence] == [f"{p.what}  [{p.code}]" for p in (other, moved)]
    assert found.next == (f"pytest '{KEY}' --perfgate=full",)
    assert verdict(processes=both).next == ()


def recorded(*durations: float, timer: str = "record"):
    return replace(samples(1e6), durations=durations, timer=timer)


def test_times_that_were_handed_in_and_are_none_are_asked_for_and_not_measured_again() -> None:
    again = (f"pytest '{KEY}' --perfgate=full",)
    foreign = Problem(code="foreign", what="process 77 used the device", retry=False)
    wrong, right = recorded(1e6, 0.0), recorded(1e6, 1e6)
    for problems in ((), (foreign,)):
        (step,) = verdict(processes=(wrong, wrong), problems=problems).next
        assert "record()" in step
    assert verdict(processes=(recorded(1e6, 0.0, timer="host"),)).next == again
    assert verdict(processes=(wrong,), problems=(replace(foreign, retry=True),)).next == again
    assert verdict(processes=(right,), problems=(foreign,)).next == ()
    assert verdict(processes=(wrong, samples(1e6))).next == ()


def test_the_evidence_of_the_first_problem_is_told_and_of_several_processes_it_is_one() -> None:
    def throttled(looks: int) -> Problem:
        evidence = (("power cap", f"in {looks} of 20 looks"), ("not taken again", "0 s of 1.2 s were left"))
        return Problem(code="throttled", what="the device held its clocks down: power cap", evidence=evidence)

    found = verdict(processes=tuple(samples(1e6, problems=(throttled(looks),)) for looks in (3, 4, 5)))
    assert found.sentence == "the device held its clocks down: power cap  [throttled]"
    assert found.evidence[:2] == throttled(3).evidence
    assert len(found.evidence) == 3


def test_a_limit_of_other_devices_is_counted_as_not_applicable() -> None:
    found = verdict(2e6, limits=[limit("slowdown <= 3%", on=("H200*",))])
    assert (found.outcome, found.effect) == (Outcome.NOT_APPLICABLE, Effect.PASS)
    assert found.sentence == "meant for H200*, this is AMD EPYC 7763"


def test_a_replaced_limit_and_a_mean_over_a_family_are_not_this_case_s() -> None:
    replaced = replace(limit("time <= 1ns"), except_on=("AMD*",))
    report = judge(measured(1e6), [replaced, limit("geomean(slowdown) <= 1%")], baseline=None, context=CONTEXT)
    assert report.verdicts == ()
    assert report.effect is Effect.PASS


def test_a_named_call_answers_to_its_own() -> None:
    key = CaseKey(nodeid=KEY.nodeid, name="bwd")
    limits = [limit("time <= 1ns"), limit("time(case=bwd) <= 1s")]
    report = judge(measured(1e6, key=key), limits, baseline=None, context=CONTEXT)
    assert [v.outcome for v in report.verdicts] == [Outcome.PASSED]


def test_what_was_never_measured_says_why_for_each_limit() -> None:
    report = not_measured(KEY, [*SLOWDOWN, limit("mfu >= 5%")], "the fixture was never called", CONTEXT)
    assert [(v.outcome, v.sentence) for v in report.verdicts] == [
        (Outcome.NOT_MEASURED, "the fixture was never called")
    ] * 2
    assert report.measurement is None
    assert report.effect is Effect.WARN
    off = not_measured(KEY, SLOWDOWN, "the gate is off", replace(CONTEXT, policy=CI, mode=Mode.OFF))
    assert off.effect is Effect.FAIL
    assert off.verdicts[0].next == (f"pytest '{KEY}' --perfgate=full",)


@pytest.mark.parametrize(
    ("device", "sol", "wrong"),
    [
        (GPU, 1.0, False),
        (GPU, 1.01, True),
        (replace(GPU, roofs=GPU.roofs[1:]), 1.2, False),
        (replace(HOST, roofs=GPU.roofs), 1.2, False),
    ],
    ids=["all of it", "more", "its clock was not seen", "a host has no such peak"],
)
def test_only_more_than_the_peak_at_the_clock_that_ran_is_impossible(device, sol: float, wrong: bool) -> None:
    metrics = MetricSet(metrics=(Metric(name="sol", value=sol, dimension=Dimension.FRACTION),))
    found = problems_of(measured(1e6, device=device), metrics, timed=True)
    assert [p.code for p in found] == ["above-peak"] * wrong


def test_why_samples_are_no_times_is_said_of_one_process() -> None:
    one = samples(1e6)
    assert untimed(one) == ""
    assert untimed(replace(one, durations=(1e6, 0.0))) == "sample 2 of 2 reads 0.0 ns"
    assert untimed(replace(one, durations=())) == "there is no sample"
    gone = (Discard(reason="throttled", count=3),)
    assert untimed(replace(one, durations=(), discarded=gone)) == "every sample was discarded: 3 x throttled"
    lost = Problem(code="bad-timing", what="1 of 2 samples are no number")
    assert untimed(replace(one, problems=(lost,))) == lost.what
    assert untimed(replace(one, problems=(Problem(code="throttled", what="it was hot"),))) == ""


BASE = 1e6


def waiting_verdict(time: float = 2e6, *, shape: tuple[float, ...] = SHAPE, device=None, **fields) -> Verdict:
    """Of a call that was accepted at 1 ms; chance explains up to +23.6 %."""
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
    quiet, beside = samples(2e6), samples(2e6, others=1.0)
    context = JudgeContext(kinds=KINDS, gates=1)
    for processes, outcome in (((quiet,) * 3, Outcome.REGRESSED), ((quiet, quiet, beside), Outcome.SUSPECT)):
        found = judge(measured(0, processes=processes), [limit("slowdown <= 3%")], baseline=accepted(BASE),
                      context=context)  # fmt: skip
        assert found.verdicts[0].outcome is outcome


@pytest.mark.parametrize("shape", [(1.0,), (1.0, 1.0)])
def test_one_or_two_processes_confirm_nothing(shape: tuple[float, ...]) -> None:
    seen = waiting_verdict(9e6, shape=shape, unqueued=9e6)
    assert seen.outcome is Outcome.SUSPECT
    assert "cannot tell how far processes are apart: it takes 3" in seen.sentence
    assert any("--perfgate-rounds=3" in line for line in seen.next)


def test_a_suspect_says_what_the_machine_did_and_how_to_decide() -> None:
    queued = waiting_verdict(unqueued=1.1e6)
    assert "without waiting for a processor it is +10.0 %: the machine was busy" in queued.sentence
    assert any("--perfgate-against" in line for line in queued.next)
    for less in (0.9e6, BASE):
        assert "without waiting for a processor it is no slower" in waiting_verdict(unqueued=less).sentence
    said = "with 0.8 processors in use by others up to +122.5 %, and without waiting for a processor it is +100.0 %"
    assert said in waiting_verdict(others=0.8).sentence
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
    found = judge(measured(0, processes=processes), [limit("slowdown <= 3%")], baseline=accepted(1e6), context=context)
    assert found.verdicts[0].outcome is Outcome.REGRESSED


def test_a_suspect_beyond_chance_says_what_kept_it_from_being_confirmed() -> None:
    loose = measured(9.3e6, shape=(0.3, 1.7))
    report = judge(loose, [limit("slowdown <= 3%")], baseline=accepted(1e6), context=JudgeContext(kinds=KINDS))
    (found,) = report.verdicts
    assert found.outcome is Outcome.SUSPECT
    assert "and this is more; what keeps it from a confirmation is its own interval of 2 processes" in found.sentence
    assert "it begins at -" in found.sentence


def timed_samples(wall, cpu=(), *, timer: str = "host", turns=()) -> Samples:
    return Samples(durations=tuple(wall), cpu=tuple(cpu), timer=timer, stop=Stop.COUNT, turns=tuple(turns))


WALL = tuple(float(n) for n in (27, 1, 9, 30, 14, 3, 22, 5, 18, 11, 25, 7))
CPU = tuple(time / 2 for time in WALL)


def test_the_time_of_a_process_is_the_clock_s_that_speaks_for_it() -> None:
    assert time_of(timed_samples(WALL, CPU), busy=False) == 1.0
    twenty = tuple(float(n) for n in range(1, 21))
    assert time_of(timed_samples(twenty, twenty), busy=True) == 2.0
    assert time_of(timed_samples(twenty[::-1][:11], twenty[::-1][:11]), busy=True) == 11.0
    assert time_of(timed_samples(twenty[:10], twenty[:10]), busy=True) == 1.0
    assert time_of(timed_samples(WALL, CPU, timer="events"), busy=True) == 12.5


def test_the_spread_is_of_quartiles() -> None:
    eleven = tuple(float(n) for n in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024))
    assert spread(timed_samples(eleven, CPU), busy=False) == pytest.approx((256 - 4) / 32)
    nine = tuple(float(2**n) for n in range(9))
    assert spread(timed_samples(WALL, nine), busy=True) == pytest.approx((64 - 4) / 16)
    twelve = tuple(float(2**n) for n in range(12))
    assert spread(timed_samples(twelve), busy=False) == pytest.approx((512 - 4) / 48)


def test_turns_are_compared_one_by_one() -> None:
    base = timed_samples((10.0, 12.0, 20.0, 21.0, 40.0, 44.0), turns=(2, 2, 2))
    head = timed_samples((11.0, 13.0, 23.0, 22.0, 48.0, 90.0), turns=(2, 2, 2))
    assert apart(base, head, busy=False) == pytest.approx(1.1)
    for timer in ("events", "cupti"):
        middles = [12.0 / 11.0, 22.5 / 20.5, 69.0 / 42.0]
        on_device = [
            timed_samples(s.durations, (time**2 for time in s.durations), timer=timer, turns=s.turns)
            for s in (base, head)
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
    base = timed_samples((10.0, 12.0, 20.0, 21.0, 40.0, 44.0), turns=of_base)
    head = timed_samples((30.0, 13.0, 23.0, 22.0, 48.0, 90.0), turns=of_head)
    assert apart(base, head, busy=False) == pytest.approx(1.3)


def test_turns_of_one_sample_and_least_turns_are_enough() -> None:
    base = timed_samples((10.0, 20.0, 30.0), turns=(1,) * LEAST_TURNS)
    head = timed_samples((15.0, 22.0, 36.0), turns=(1,) * LEAST_TURNS)
    assert apart(base, head, busy=False) == pytest.approx(1.2)
    assert apart(
        timed_samples((10.0, 0.5, 40.0), turns=(1,) * 3), timed_samples((15.0, 0.55, 48.0), turns=(1,) * 3), busy=False
    ) == (pytest.approx(1.2))


def test_a_turn_that_took_no_time_is_left_out() -> None:
    base = timed_samples((10.0, 0.0, 20.0, 30.0), (10.0, 0.0, 20.0, 30.0), turns=(1,) * 4)
    head = timed_samples((15.0, 9.0, 22.0, 36.0), (15.0, 9.0, 22.0, 36.0), turns=(1,) * 4)
    assert apart(base, head, busy=True) == pytest.approx(1.2)
    nothing = timed_samples((15.0, 22.0, 36.0, 9.0), (15.0, 22.0, 36.0, 0.0), turns=(1,) * 4)
    ours = timed_samples((10.0, 20.0, 30.0, 9.0), (10.0, 20.0, 30.0, 9.0), turns=(1,) * 4)
    assert apart(ours, nothing, busy=True) == pytest.approx(1.2)


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
