"""Tests of core/judge/samples."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.judge import judge, not_measured
from pytest_perfgate.core.judge.policy import CI
from pytest_perfgate.core.judge.samples import (
    all_possible,
    computes,
    excused,
    head_ratio,
    of_level,
    problems_of,
    untimed,
)
from pytest_perfgate.model.device import Basis
from pytest_perfgate.model.errors import codes
from pytest_perfgate.model.measurement import Discard, Reference, Samples, Stop
from pytest_perfgate.model.metric import Metric, MetricSet, Problem
from pytest_perfgate.model.plan import CaseKey, Effect, Mode, Outcome
from pytest_perfgate.model.values import Dimension, Work
from tests.unit.core.judge.bench import (
    CONTEXT,
    GPU,
    HOST,
    KEY,
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

    assert head_ratio(took(10.0, 20.0, 30.0), took(15.0, 22.0, 36.0), by_cpu=False) == pytest.approx(1.2)
    assert head_ratio(took(10.0, 20.0), took(15.0, 24.0), by_cpu=False) == pytest.approx(1.5)


@pytest.mark.parametrize(("wall", "alone"), [(1.019, True), (1.021, False)])
def test_a_call_that_computes_has_a_wall_time_within_two_percent(wall: float, alone: bool) -> None:
    assert computes([Samples(durations=(wall,), cpu=(1.0,), timer="host", stop=Stop.COUNT)]) is alone


def test_runs_within_fifteen_percent_are_of_one_level() -> None:
    edge = math.exp(0.15)
    assert of_level(edge * 0.999, 1.0)
    assert of_level(1.001 / edge, 1.0)
    assert not of_level(edge * 1.001, 1.0)


def test_a_process_without_a_sample_excuses_nothing() -> None:
    assert excused([replace(samples(1e6), durations=())] * 3, 1e6, 0.1) == ""


def test_a_bad_sample_is_named_by_its_place() -> None:
    sick = replace(samples(1e5), durations=(1e5, 0.5, -3.0, 1e5))
    (problem,) = problems_of(measured(0, processes=(samples(1e5), sick)), MetricSet(), timed=False)
    assert "sample 3 of 4 in process 2 " in problem.what
    assert "-3.0 ns" in problem.what
    assert problem.retry
    endless = replace(samples(1e5), durations=(1e308,) * 4)
    (problem,) = problems_of(measured(0, processes=(endless,)), MetricSet(), timed=False)
    assert problem.what.startswith("sample 1 of 4 in process 1 reads ")


def test_processes_in_groups_on_both_sides_are_unstable() -> None:
    shape = (1.0, 1.001, 1.2, 1.201)
    result = verdict(1e6, shape=shape, limits=[limit("time <= 1.1ms")])
    assert (result.outcome, result.effect) == (Outcome.UNSTABLE, Effect.WARN)
    assert outcome_of(1e6, shape=shape) is Outcome.UNSTABLE
    assert outcome_of(1e6, shape=shape, limits=[limit("time <= 2ms")]) is Outcome.PASSED
    assert outcome_of(1e6, shape=shape, limits=[limit("time <= 500us")]) is Outcome.BROKEN
    assert outcome_of(3e6, shape=shape) is Outcome.REGRESSED
    ratio = (Reference(over="eager", ours=tuple(1e6 * by for by in shape), theirs=(1.3e6,) * 4),)
    speedup = verdict(1e6, shape=shape, limits=[limit("speedup(over=eager) >= 1.2x")], references=ratio)
    assert speedup.outcome is Outcome.UNDECIDED, "groups of the call's own time say nothing of its ratio"


def test_one_odd_process_is_no_group() -> None:
    assert outcome_of(1e6, shape=(1.0, 1.001, 1.001, 1.2), limits=[limit("time <= 1.1ms")]) is Outcome.UNDECIDED


@pytest.mark.parametrize(("helpers", "alone"), [(None, True), (0.04, True), (0.05, False)])
def test_a_call_that_others_work_for_does_not_compute_alone(helpers: float | None, alone: bool) -> None:
    """Its thread's own time leaves out theirs, however little it waited for a processor."""
    process = Samples(durations=(2.0,), cpu=(1.0,), timer="host", stop=Stop.COUNT, blocked=0.0, helpers=helpers)
    assert computes([process]) is alone


@pytest.mark.parametrize("bad", [0.0, -5.0, math.nan, math.inf, -math.inf])
def test_timings_that_mean_nothing(bad: float) -> None:
    broken = replace(samples(1e6), durations=(1e6, 1e6, bad, 1e6))
    report = judge(
        measured(0, processes=(samples(1e6), broken)),
        [*SLOWDOWN, limit("time <= 1s")],
        baseline=accepted(1e6),
        context=CONTEXT,
    )
    for result in report.verdicts:
        assert (result.outcome, result.effect) == (Outcome.INVALID, Effect.FAIL)
        assert f"sample 3 of 4 in process 2 reads {bad} ns  [bad-timing]" in result.sentence
    assert report.problems[0].code == "bad-timing"


def test_a_femtosecond_and_thirty_years_are_times_and_nothing_beyond() -> None:
    assert all_possible([1e-6, 1e18])
    for ordered in ([9e-7, 1.0], [1.0, 1.1e18], [1.0, math.nan, 2.0], []):
        assert not all_possible(ordered)


def test_all_samples_discarded_is_no_table_of_nan() -> None:
    empty = replace(samples(1e6), durations=(), discarded=(Discard(reason="throttled", count=40),))
    result = verdict(processes=(empty,))
    assert result.outcome is Outcome.INVALID
    assert "every sample of process 1 was discarded: 40 x throttled" in result.sentence
    assert "process 1 is empty" in verdict(processes=(replace(empty, discarded=()),)).sentence


def test_what_an_instrument_saw_makes_every_limit_invalid_once() -> None:
    moved = Problem(code="clock-moved", what="the clock fell by 20 %", retry=False)
    both = tuple(samples(1e6, problems=(moved,)) for _ in range(3))
    other = Problem(code="foreign", what="process 77 used the device")
    result = verdict(processes=both, problems=(other,))
    assert result.sentence.endswith("[foreign] (and 1 more)")
    assert [text for _, text in result.evidence] == [f"{p.what}  [{p.code}]" for p in (other, moved)]
    assert result.next == (f"pytest '{KEY}' --perfgate=full",)
    assert verdict(processes=both).next == (codes()["clock-moved"].fix,)


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
    assert verdict(processes=(wrong, samples(1e6))).next == (codes()["bad-timing"].fix,)


def test_the_evidence_of_the_first_problem_is_told_and_of_several_processes_it_is_one() -> None:
    def throttled(looks: int) -> Problem:
        evidence = (("power cap", f"in {looks} of 20 looks"), ("not taken again", "0 s of 1.2 s were left"))
        return Problem(code="throttled", what="the device lowered its clocks: power cap", evidence=evidence)

    result = verdict(processes=tuple(samples(1e6, problems=(throttled(looks),)) for looks in (3, 4, 5)))
    assert result.sentence.endswith("power cap  [throttled]")
    assert result.evidence[:2] == throttled(3).evidence
    assert len(result.evidence) == 3


def test_a_limit_of_other_devices_is_counted_as_not_applicable() -> None:
    result = verdict(2e6, limits=[limit("slowdown <= 3%", on=("H200*",))])
    assert (result.outcome, result.effect) == (Outcome.NOT_APPLICABLE, Effect.PASS)
    assert result.sentence == "for H200* only; this is AMD EPYC 7763"


def test_a_replaced_limit_and_a_mean_over_a_family_are_not_this_case_s() -> None:
    replaced = replace(limit("time <= 1ns"), except_on=("AMD*",))
    report = judge(measured(1e6), [replaced, limit("geomean(slowdown) <= 1%")], baseline=None, context=CONTEXT)
    assert report.verdicts == ()
    assert report.effect is Effect.PASS
    elsewhere = replace(replaced, except_on=("H200*",))
    report = judge(measured(1e6), [elsewhere], baseline=None, context=CONTEXT)
    assert [v.outcome for v in report.verdicts] == [Outcome.BROKEN]


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
    problems = problems_of(measured(1e6, device=device), metrics, timed=True)
    assert [p.code for p in problems] == ["above-peak"] * wrong


def test_a_rate_of_no_type_above_every_peak_is_impossible_too() -> None:
    clock = GPU.roof(Basis.CLOCK)
    for rate, dtype, wrong in ((2.0, "", True), (0.9, "", False), (2.0, "bf16", False)):
        highest = max(peak for _, peak in clock.compute)
        metrics = MetricSet(metrics=(Metric(name="tflops", value=rate * highest, dimension=Dimension.FLOPS),))
        one = replace(measured(1e6, device=GPU), work=Work(flops=1e12, dtype=dtype))
        assert [p.code for p in problems_of(one, metrics, timed=True)] == ["above-peak"] * wrong


def test_why_samples_are_no_times_is_said_of_one_process() -> None:
    one = samples(1e6)
    assert untimed(one) == ""
    assert untimed(replace(one, durations=(1e6, 0.0))) == "sample 2 of 2 reads 0.0 ns"
    assert untimed(replace(one, durations=())) == "there is no sample"
    discards = (Discard(reason="throttled", count=3),)
    assert untimed(replace(one, durations=(), discarded=discards)) == "every sample was discarded: 3 x throttled"
    lost = Problem(code="bad-timing", what="1 of 2 samples are not numbers")
    assert untimed(replace(one, problems=(lost,))) == lost.what
    assert untimed(replace(one, problems=(Problem(code="throttled", what="it was hot"),))) == ""
