"""Tests of core/judge/against_baseline."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from pytest_perfgate.core.judge.context import Unpaired
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.policy import CI, suspects
from pytest_perfgate.core.judge.suspects import DOCTOR, uncommitted
from pytest_perfgate.core.render.block import render_block
from pytest_perfgate.model.measurement import Identity, Stop
from pytest_perfgate.model.metric import Interval
from pytest_perfgate.model.plan import Effect, Mode, Outcome
from tests.unit.core.judge.bench import (
    CONTEXT,
    FLOORED,
    GPU,
    HOST,
    KEY,
    SHAPE,
    SLOWDOWN,
    accepted,
    judged_time,
    limit,
    measured,
    outcome_of,
    samples,
    ticking,
    verdict,
)
from tests.unit.core.judge.paired_builds import OPEN, SLOWER, decided_verdict, judged_arms, paired_verdict


def test_a_time_accepted_from_a_noisy_run_lets_nothing_pass_as_known() -> None:
    detects = accepted(1e6, detects=3.0)
    same = verdict(1e6, baseline=detects)
    assert (same.outcome, same.effect, same.visible) == (Outcome.UNDECIDED, Effect.WARN, 3.0)
    assert same.sentence == (
        "the accepted run was too noisy to detect less than 300 %: the accepted time may be off by as much"
    )
    assert same.next == (f"pytest '{KEY}' --perfgate-against a1b2c3d4e5",), (
        "accepting is no answer to what was not shown"
    )
    assert verdict(1.02e6, baseline=detects).next == same.next
    quick = verdict(1e6, baseline=detects, context=replace(CONTEXT, mode=Mode.QUICK))
    assert quick.next == (f"pytest '{KEY}' --perfgate=full",), "a full run builds both, and its block can be left out"
    one = verdict(1e6, baseline=detects, context=replace(CONTEXT, mode=Mode.QUICK), shape=(1.0,))
    assert one.next == quick.next
    assert verdict(1e6, baseline=detects, shape=(1.0, 1.0)).next == same.next, "more rounds cure no accepted run"
    nowhere = replace(detects, commit="")
    rounds, accept = verdict(1e6, baseline=nowhere, shape=(1.0, 1.0)).next
    assert rounds.endswith("--perfgate-rounds=3")
    assert accept.startswith("perfgate accept ")
    quick = verdict(1e6, baseline=nowhere, context=replace(CONTEXT, mode=Mode.QUICK), shape=(1.0, 1.0))
    assert quick.next[-1] == accept, "a full run would have no base to build either"
    context = replace(CONTEXT, edited=accepted(1e6, detects=0.02))
    done = verdict(1e6, baseline=detects, context=context)
    assert (done.outcome, done.next) == (Outcome.UNDECIDED, ()), "done already: nothing is left to do"
    assert done.sentence.endswith(": this change accepts 1 ms from a run that detects more; it judges the next change")
    as_noisy = replace(CONTEXT, edited=accepted(1e6, detects=3.0))
    assert verdict(1e6, baseline=detects, context=as_noisy).next == same.next
    assert outcome_of(0.3e6, baseline=detects) is Outcome.UNDECIDED, "three times faster may have been so before"
    assert outcome_of(0.2e6, baseline=detects) is Outcome.IMPROVED
    assert outcome_of(3.9e6, baseline=detects) is Outcome.SUSPECT
    assert outcome_of(4.2e6, baseline=detects) is Outcome.REGRESSED
    assert outcome_of(1e6, (limit("slowdown <= 400%"),), baseline=detects) is Outcome.PASSED
    hardly = verdict(0.95e6, baseline=accepted(1e6, detects=0.05), shape=(0.98, 1.0, 1.02))
    assert (hardly.outcome, hardly.next) == (Outcome.UNDECIDED, same.next), "as noisy itself, it is no better time"
    report = judge(measured(1e6), SLOWDOWN, baseline=detects, context=CONTEXT)
    assert '"TMA loads"  can detect 300 %\n' in render_block(report)
    narrow = [line for line in render_block(report, 60).splitlines() if "  next  " not in line]
    assert max(map(len, narrow)) <= 60, "then is folded as why is"


def test_a_run_that_saw_exactly_as_little_is_no_better_time() -> None:
    shape = (0.98, 1.0, 1.02)
    visible = verdict(0.95e6, shape=shape).visible
    assert visible > 0.03
    assert verdict(0.95e6, baseline=accepted(1e6, detects=visible), shape=shape).next == (
        f"pytest '{KEY}' --perfgate-against a1b2c3d4e5",
    )
    context = replace(CONTEXT, edited=accepted(2.1e6, why="x", detects=visible))
    result = verdict(2e6, context=context, shape=shape)
    assert (result.outcome, result.next) == (Outcome.UNDECIDED, (f"pytest '{KEY}' --perfgate-against a1b2c3d4e5",))


def test_an_edit_from_a_noisy_run_is_neither_accepted_nor_confirmed_within_it() -> None:
    context = replace(CONTEXT, edited=accepted(4e6, why="exact softmax", detects=1.5))
    result = verdict(2e6, context=context)
    assert (result.outcome, result.effect) == (Outcome.UNDECIDED, Effect.WARN)
    assert result.sentence.endswith('accepts 4 ms: "exact softmax", from a run too noisy to detect less than 150 %')
    assert result.next == (f"pytest '{KEY}' --perfgate-against a1b2c3d4e5",)
    no_better = verdict(
        2e6, context=replace(context, edited=accepted(2.2e6, why="x", detects=0.12)), shape=(0.8, 1, 1.2)
    )
    assert (no_better.outcome, no_better.next) == (Outcome.UNDECIDED, result.next)
    built = replace(context, paired_available=True)
    assert paired_verdict(2e6, OPEN, context=built).next == result.next
    (step,) = paired_verdict(2e6, SLOWER, context=built).next
    assert step.startswith("perfgate accept "), "two builds say nothing more"
    assert outcome_of(4e6, context=context) is Outcome.ACCEPTED
    assert outcome_of(11e6, context=context) is Outcome.REGRESSED
    assert outcome_of(2e6, context=replace(CONTEXT, edited=accepted(4e6, why="  ", detects=1.5))) is Outcome.REGRESSED


def test_more_processes_are_asked_for_than_there_were() -> None:
    shape = (0.97, 1.0, 1.0, 1.03)
    assert decided_verdict(1e6, shape=shape).next[0].endswith("--perfgate-rounds=14")
    assert decided_verdict(1e6, "time <= 1ms", shape=(1.0,)).next[0].endswith("--perfgate-rounds=6")


def test_faster_by_exactly_what_counts_is_no_improvement() -> None:
    once = {"processes": (samples(0.5e6, spread=0.0),)}
    assert judged_arms("slowdown <= 100%", **once).outcome is Outcome.PASSED
    assert judged_arms("slowdown <= 99%", **once).outcome is Outcome.IMPROVED


def test_a_limit_of_exactly_the_timers_resolution_is_not_finer_than_that() -> None:
    for tick, coarse in ((0.5, False), (0.51, True)):
        result = judged_arms("slowdown <= 50%", **ticking(1.4e6, (0.7, 1.0, 1.3), tick))
        assert result.outcome is Outcome.UNDECIDED
        assert ("more than the limit" in result.sentence) is coarse


def test_an_edit_to_exactly_what_is_measured_agrees_whatever_counts() -> None:
    context = replace(CONTEXT, edited=accepted(2e6, why="exact softmax"), floor_ns=0.0)
    still = {"processes": (samples(2e6, spread=0.0),) * 3}
    assert judged_arms("slowdown <= 0%", context=context, **still).outcome is Outcome.ACCEPTED


def test_the_same_time_passes_and_says_what_it_could_have_seen() -> None:
    result = verdict(1e6)
    assert (result.outcome, result.effect) == (Outcome.PASSED, Effect.PASS)
    assert result.visible == pytest.approx(0.03)
    assert result.baseline.commit == "a1b2c3d4e5"
    assert result.interval == result.metric.interval


def test_a_suspect_is_confirmed_only_beyond_chance() -> None:
    assert outcome_of(1.1e6) is Outcome.SUSPECT
    assert outcome_of(1.75e6) is Outcome.SUSPECT
    doubled = verdict(2e6)
    assert (doubled.outcome, doubled.effect) == (Outcome.REGRESSED, Effect.FAIL)
    assert "after one run chance explains up to 79.1 %" in doubled.sentence
    assert doubled.next == (f"perfgate accept '{KEY}' --anchor --reason \"...\"",)


def test_a_locked_gpu_confirms_what_a_cpu_cannot() -> None:
    assert outcome_of(1.1e6, device=GPU, clocks="lock", baseline=accepted(1e6, device=GPU, clocks="lock")) is (
        Outcome.REGRESSED
    )
    free = accepted(1e6, device=GPU, clocks="observe")
    assert outcome_of(1.1e6, device=GPU, clocks="observe", baseline=free) is Outcome.SUSPECT


def test_only_what_has_kernels_is_looked_into_by_a_profile() -> None:
    slow = verdict(2e6, device=GPU, clocks="lock", baseline=accepted(1e6, device=GPU, clocks="lock"))
    assert slow.next[0] == f"perfgate profile '{KEY}'"


def test_runs_of_the_baseline_or_of_the_history_sharpen() -> None:
    many = accepted(1e6, scatter=0.005, runs=30)
    assert outcome_of(1.2e6, baseline=many) is Outcome.REGRESSED
    assert "after 30 runs" in verdict(1.2e6, baseline=many).sentence
    history = replace(CONTEXT, scatter=0.005, runs=30)
    assert outcome_of(1.2e6, context=history) is Outcome.REGRESSED
    assert outcome_of(1.2e6, context=replace(history, runs=1)) is Outcome.SUSPECT


def test_a_noisy_doubling_is_still_missed_by_nobody() -> None:
    assert outcome_of(2.2e6, shape=(0.95, 1.0, 1.05)) is Outcome.REGRESSED


def test_a_point_beyond_chance_with_an_interval_down_to_nothing_is_suspect() -> None:
    assert outcome_of(2.0e6, shape=(0.5, 1.0, 1.6)) is Outcome.SUSPECT


def test_an_interval_across_the_limit_is_undecided_and_says_what_it_could_see() -> None:
    result = verdict(1e6, shape=(0.97, 1.0, 1.03))
    assert result.outcome is Outcome.UNDECIDED
    assert result.visible == pytest.approx(math.expm1((6.9646 + 0.8416) * 0.03 / math.sqrt(3)), rel=1e-2)
    assert f"the smallest slowdown it can detect is {result.visible * 100:.1f} %" in result.sentence
    assert result.next == (f"pytest '{KEY}' --perfgate=full --perfgate-rounds=20",)


def test_more_processes_are_no_answer_to_a_build_that_failed() -> None:
    context = replace(CONTEXT, unpaired=Unpaired(why="pip: exit 1", step="fix the build"))
    result = verdict(1e6, shape=(0.97, 1.0, 1.03), context=context)
    assert (result.outcome, result.next) == (Outcome.UNDECIDED, ("fix the build",))
    suspect = verdict(1.2e6, shape=(0.98, 1.0, 1.02), context=context)
    assert (suspect.outcome, suspect.next[0]) == (Outcome.SUSPECT, "fix the build")
    assert not any("--perfgate-rounds" in step for step in suspect.next)


def test_without_a_repository_no_revision_is_advised_but_what_helps_there() -> None:
    context = replace(CONTEXT, unpaired=Unpaired(why="there is no git repository here", unversioned=True))
    suspect = verdict(1.2e6, shape=(0.98, 1.0, 1.02), context=context)
    elsewhere = f"in a clone with its history: pytest '{KEY}' --perfgate-against a1b2c3d4e5"
    assert (suspect.outcome, suspect.next) == (Outcome.SUSPECT, (elsewhere,))
    assert suspect.evidence[-1] == ("no verdict by base and head", "there is no git repository here")
    spanning = verdict(1e6, shape=(0.97, 1.0, 1.03), context=context)
    assert (spanning.outcome, spanning.next) == (
        Outcome.UNDECIDED,
        (f"pytest '{KEY}' --perfgate=full --perfgate-rounds=20", elsewhere),
    )
    for shape, rounds in (((0.5, 1.0, 1.6), "=6"), ((0.5, 1.6), "=6"), ((0.5, 1.0, 1.0, 1.6), "=8")):
        loose = verdict(2e6, shape=shape, context=context)
        assert (loose.outcome, loose.next[0][-2:]) == (Outcome.SUSPECT, rounds), "its own interval leaves it open"
    detects = verdict(1e6, baseline=accepted(1e6, detects=3.0), context=context)
    assert (detects.outcome, detects.next[1]) == (Outcome.UNDECIDED, elsewhere)
    assert detects.next[0].startswith("perfgate accept "), "a quieter run is a better accepted time"
    passed = verdict(1e6, context=context)
    assert (passed.outcome, passed.next, passed.evidence) == (Outcome.PASSED, (), ())


@pytest.mark.parametrize("detects", [0.0, 3.0])
def test_without_git_it_comes_first_and_nothing_open_is_accepted(detects: float) -> None:
    why = "git is not installed here, or does not answer"
    context = replace(CONTEXT, unpaired=Unpaired(why=why, step="install git", unversioned=True))
    spanning = verdict(1e6, shape=(0.97, 1.0, 1.03), baseline=accepted(1e6, detects=detects), context=context)
    assert (spanning.outcome, spanning.next) == (
        Outcome.UNDECIDED, ("install git", f"pytest '{KEY}' --perfgate=full"),
    )  # fmt: skip


@pytest.mark.parametrize("commit", ["", "a1b2c3d4e5f6+dirty"])
def test_a_line_of_no_commit_is_decided_once_the_accepted_code_is_committed(commit: str) -> None:
    context = replace(CONTEXT, unpaired=Unpaired(why="this repository has no commit", unversioned=True))
    result = verdict(1.2e6, shape=(0.98, 1.0, 1.02), baseline=accepted(1e6, commit=commit), context=context)
    (step,) = result.next
    assert step.startswith("commit the accepted code (git init, git commit); ")
    assert step.endswith(f": pytest '{KEY}' --perfgate-against HEAD")


def test_a_quick_run_without_a_repository_advises_a_full_one() -> None:
    context = replace(CONTEXT, mode=Mode.QUICK, unpaired=Unpaired(why="no repository", unversioned=True))
    result = verdict(1.2e6, shape=(1.0,), context=context)
    assert (result.outcome, result.next) == (Outcome.SUSPECT, (f"pytest '{KEY}' --perfgate=full",))
    assert not result.evidence


def test_a_limit_finer_than_the_timer_is_undecided_and_says_so() -> None:
    result = verdict(**ticking(1.05e6, SHAPE, 0.08))
    assert result.outcome is Outcome.UNDECIDED
    assert "the timer's resolution is 8.0 % of this time" in result.sentence
    assert outcome_of(**ticking(1.14e6, SHAPE, 0.08)) is Outcome.SUSPECT
    assert outcome_of(**ticking(0.95e6, SHAPE, 0.08)) is Outcome.PASSED


def test_differences_below_the_floor_are_none() -> None:
    assert outcome_of(11e3, baseline=accepted(10e3), context=FLOORED) is Outcome.PASSED
    assert outcome_of(12.5e3, baseline=accepted(10e3), context=FLOORED) is Outcome.SUSPECT


def test_there_is_no_floor_unless_one_is_set() -> None:
    assert outcome_of(11e3, baseline=accepted(10e3)) is Outcome.SUSPECT
    assert verdict(10.4e3, baseline=accepted(10e3)).raised is None
    short = tuple(samples(4.6e3 * factor, timer="cupti", resolution=1.0) for factor in SHAPE)
    line = accepted(4.4e3, device=GPU)
    assert outcome_of(0, device=GPU, baseline=line, processes=short) is Outcome.SUSPECT, "4.5 % of 4.4 us"


def test_times_that_were_measured_elsewhere_have_no_floor() -> None:
    recorded = tuple(samples(11e3 * factor, stop=Stop.RECORDED) for factor in SHAPE)
    result = verdict(11e3, baseline=accepted(10e3), processes=recorded, context=FLOORED)
    assert (result.outcome, result.raised) == (Outcome.SUSPECT, None)
    tiny = tuple(samples(20.0, stop=Stop.RECORDED) for _ in SHAPE)
    assert verdict(20.0, baseline=accepted(20.0), processes=tiny, context=FLOORED).raised is None
    mixed = (*tiny[1:], samples(20.0))
    result = verdict(20.0, baseline=accepted(20.0), processes=mixed, context=FLOORED)
    assert result.raised == 0.5, "one was timed here"


def test_a_batch_divides_the_floor_so_that_short_calls_are_seen() -> None:
    short = tuple(samples(200.0, batch=1000) for _ in range(3))
    assert outcome_of(baseline=accepted(100.0), processes=short, context=FLOORED) is Outcome.REGRESSED


def test_the_floor_never_hides_a_doubled_time() -> None:
    assert outcome_of(200.0, baseline=accepted(100.0), context=FLOORED) is Outcome.REGRESSED
    assert outcome_of(149.0, baseline=accepted(100.0), context=FLOORED) is Outcome.PASSED


def test_what_is_less_than_a_tick_of_the_timer_is_undecided() -> None:
    coarse = tuple(samples(200.0, batch=1000, resolution=300e3) for _ in range(3))
    assert outcome_of(baseline=accepted(100.0), processes=coarse) is Outcome.UNDECIDED


def test_strict_and_closed_limits_differ_at_the_edge() -> None:
    fields = {"processes": (samples(1.5e6, spread=0.0),), "baseline": accepted(1e6)}
    assert outcome_of(limits=[limit("slowdown <= 50%")], **fields) is Outcome.PASSED
    assert outcome_of(limits=[limit("slowdown < 50%")], **fields) is Outcome.UNDECIDED


def test_faster_is_improved_and_ten_times_faster_asks_for_a_look() -> None:
    steady = accepted(1e6, runs=40, scatter=0.002)
    result = verdict(0.9e6, baseline=steady)
    assert (result.outcome, result.effect, result.sentence) == (Outcome.IMPROVED, Effect.WARN, "faster than accepted")
    assert outcome_of(0.98e6, baseline=steady) is Outcome.PASSED
    assert "is the work still done" in verdict(0.5e5).sentence
    assert outcome_of(baseline=steady, **ticking(0.9e6, SHAPE, 0.2)) is Outcome.PASSED


def test_what_runs_may_lie_off_is_no_improvement_and_one_process_shows_none() -> None:
    """Of 163 verdicts on unchanged code thirty said IMPROVED, by a line of one slow run."""
    result = verdict(0.85e6)
    assert (result.outcome, result.effect, result.next) == (Outcome.PASSED, Effect.PASS, ())
    assert result.sentence == "faster than accepted, but not confirmed"
    steady = accepted(1e6, runs=40, scatter=0.002)
    quick = verdict(0.5e6, baseline=steady, context=replace(CONTEXT, mode=Mode.QUICK))
    assert (quick.outcome, quick.sentence) == (Outcome.PASSED, "faster than accepted, but not confirmed")
    ten = verdict(0.05e6, context=replace(CONTEXT, mode=Mode.QUICK)).sentence
    assert ten == "faster than accepted, but not confirmed; ten times faster: is the work still done?"
    ci = verdict(0.85e6, context=replace(CONTEXT, policy=CI))
    assert ci.outcome is Outcome.UNDECIDED
    assert "1 run, " in ci.sentence
    assert "12.8 % off" in ci.sentence


def test_a_demanded_improvement_is_held_like_any_limit() -> None:
    demanded = [limit("slowdown <= -10%")]
    assert outcome_of(0.8e6, limits=demanded) is Outcome.PASSED
    assert outcome_of(1.0e6, limits=demanded) is Outcome.BROKEN
    assert outcome_of(0.9e6, limits=demanded) is Outcome.UNDECIDED
    assert verdict(1.0e6, limits=demanded).baseline == accepted(1e6)


def test_a_demanded_improvement_is_more_than_the_accepted_time_may_be_off_by() -> None:
    demanded, detects = [limit("slowdown <= -10%")], accepted(1e6, detects=0.2)
    result = verdict(0.8e6, limits=demanded, baseline=detects)
    assert result.outcome is Outcome.UNDECIDED
    assert result.sentence.startswith("the accepted run was too noisy to detect less than 20.0 %: the accepted time")
    assert result.next == (f"pytest '{KEY}' --perfgate-against a1b2c3d4e5",)
    assert (result.visible, result.baseline) == (0.2, detects)
    assert outcome_of(0.7e6, limits=demanded, baseline=detects) is Outcome.PASSED
    assert outcome_of(1.0e6, limits=demanded, baseline=detects) is Outcome.BROKEN


def test_no_floor_raises_a_demanded_improvement() -> None:
    demanded = [limit("slowdown <= -20%")]
    result = verdict(95.0, limits=demanded, baseline=accepted(100.0))
    assert (result.outcome, result.raised) == (Outcome.BROKEN, None)


def test_quick_mode_suspects_and_names_what_decides() -> None:
    result = verdict(2e6, context=replace(CONTEXT, mode=Mode.QUICK))
    assert (result.outcome, result.effect) == (Outcome.SUSPECT, Effect.WARN)
    assert result.next == (f"pytest '{KEY}' --perfgate=full",)


def test_where_two_arms_will_decide_nothing_else_confirms() -> None:
    result = verdict(2e6, context=replace(CONTEXT, paired_available=True))
    assert result.outcome is Outcome.SUSPECT
    assert "not confirmed" in result.sentence
    assert suspects([result]) == (result,)
    assert suspects([verdict(1e6)]) == ()


def test_without_a_baseline() -> None:
    local = verdict(baseline=None)
    assert (local.outcome, local.effect) == (Outcome.UNBASELINED, Effect.WARN)
    assert "stored under .perfgate/" in local.sentence
    assert local.next == (), "it judges the next run, whether anybody accepts it or not"
    ci = verdict(baseline=None, context=replace(CONTEXT, policy=CI))
    assert ci.effect is Effect.FAIL
    assert ci.next
    assert ci.sentence == "there is no baseline for this device"
    result = verdict(baseline=None, context=replace(CONTEXT, unbaselined="renamed from test_mm"))
    assert result.sentence.startswith("renamed from test_mm")


def test_a_first_time_detects_no_less_than_busy_neighbours_may_take() -> None:
    """The run's table and `perfgate accept` show one figure."""
    busy = measured(1e6, processes=tuple(samples(1e6, others=1.5) for _ in range(3)))
    (first,) = judge(busy, [limit("slowdown <= 3%")], baseline=None, context=CONTEXT).verdicts
    assert first.visible == 1.5


@pytest.mark.parametrize(
    ("baseline", "sentence"),
    [
        (accepted(1e6, device=GPU), "the baseline is of NVIDIA-H200-lock, and this device is host-epyc-2"),
        (accepted(0.0), "the accepted time is 0.0 ns"),
        (accepted(math.nan), "the accepted time is nan ns"),
        (accepted(math.inf), "the accepted time is inf ns"),
        (accepted(1e6, identity=Identity(device=HOST.key, cache="cold")), "cache cold -> warm"),
        (accepted(1e6, identity=Identity(device=HOST.key, calls="2")), "calls 2 -> 1"),
        (
            accepted(1e6, identity=Identity(device=HOST.key, threads="8", clocks="lock")),
            "clocks lock -> off, threads 8 -> none",
        ),
        (accepted(1e6, expires="2026-01-01"), "the acceptance expired on 2026-01-01"),
    ],
)
def test_a_baseline_that_cannot_be_compared(baseline, sentence: str) -> None:
    context = replace(CONTEXT, today="2026-05-02")
    result = verdict(2e6, baseline=baseline, context=context)
    assert result.outcome is Outcome.UNBASELINED
    assert sentence in result.sentence
    assert "kept under" not in result.sentence
    assert result.baseline is baseline


def test_an_acceptance_holds_through_its_last_day_and_an_imported_one_without_identity() -> None:
    context = replace(CONTEXT, today="2026-05-02")
    assert outcome_of(baseline=accepted(1e6, expires="2026-05-02"), context=context) is Outcome.PASSED
    assert outcome_of(baseline=accepted(1e6, expires="2026-05-01")) is Outcome.PASSED
    assert outcome_of(baseline=accepted(1e6, identity=None)) is Outcome.PASSED


def test_a_line_of_a_tree_that_was_never_committed_has_no_arm_to_decide() -> None:
    result = verdict(1.1e6, baseline=accepted(1e6, commit="a1b2c3d4e5f6+dirty"))
    assert result.outcome is Outcome.SUSPECT
    assert result.next == (f"pytest '{KEY}' --perfgate-against",)
    assert verdict(1.1e6).next[0] == f"pytest '{KEY}' --perfgate-against a1b2c3d4e5"
    nowhere = verdict(1.1e6, baseline=accepted(1e6, commit=""))
    assert nowhere.next == (DOCTOR,), "without git there is nothing beside it"
    assert uncommitted(accepted(1e6, commit="a1b2c3d4e5f6+dirty")).startswith(
        "it was accepted from a1b2c3d with changes"
    )
    assert uncommitted(accepted(1e6)) == uncommitted(None) == ""


def test_what_is_not_kept_is_not_said_to_be() -> None:
    """On a device whose baselines are committed only an acceptance writes one."""
    committed = replace(CONTEXT, unbaselined="none has been accepted for gpu yet")
    assert verdict(baseline=None, context=committed).sentence == "none has been accepted for gpu yet"
    assert "stored under .perfgate/" in verdict(baseline=None, context=CONTEXT).sentence


@pytest.mark.parametrize(("time", "sentence"), [(1e6 / 9.5, "faster than accepted"), (1e6 / 10.5, "ten times faster")])
def test_ten_times_faster_asks_whether_the_work_is_done(time: float, sentence: str) -> None:
    assert judged_time("slowdown <= 3%", time).sentence.startswith(sentence)


def test_a_doubled_time_is_seen_however_short_the_call() -> None:
    baseline = accepted(10.0)
    for time, outcome in ((14.0, Outcome.PASSED), (20.0, Outcome.REGRESSED)):
        report = judge(measured(time), [limit("slowdown <= 3%")], baseline=baseline, context=replace(FLOORED, gates=1))
        assert report.verdicts[0].outcome is outcome


def test_two_microseconds_are_nothing_by_themselves() -> None:
    for time, outcome in ((11.8e3, Outcome.PASSED), (12.2e3, Outcome.SUSPECT)):
        report = judge(measured(time), [limit("slowdown <= 3%")], baseline=accepted(10e3), context=FLOORED)
        assert report.verdicts[0].outcome is outcome


GROUPS = (1.0, 1.001, 1.2, 1.201)


def test_processes_in_groups_calm_a_suspicion_only_where_some_are_no_slower() -> None:
    both = verdict(1.15e6, shape=(0.85, 0.851, 1.0, 1.15, 1.151))
    assert both.outcome is Outcome.UNSTABLE
    assert outcome_of(1.2e6, shape=GROUPS) is Outcome.SUSPECT, "each of them is slower than the limit"
    arms = replace(SLOWER, interval=Interval(low=0.05, high=0.3), shift=0.15)
    assert outcome_of(1.15e6, shape=(0.85, 0.851, 1.0, 1.15, 1.151), paired=arms) is Outcome.REGRESSED


def test_the_advised_processes_decide_in_most_suites() -> None:
    """Processes scatter by 3 % about the accepted time, and the limit is 3 %: six decided in half of the suites."""
    dice = Random(1)

    def run(count: int):
        return verdict(processes=tuple(samples(1e6 * math.exp(dice.gauss(0, 0.03)), spread=0.1) for _ in range(count)))

    outcomes: Counter[Outcome] = Counter()
    while outcomes.total() < 200:
        first = run(3)
        if first.outcome is Outcome.UNDECIDED:
            outcomes[run(int(first.next[0].rpartition("=")[2])).outcome] += 1
    assert outcomes[Outcome.PASSED] >= 150, outcomes
