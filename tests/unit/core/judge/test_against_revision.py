"""Tests of core/judge/against_revision."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest

from pytest_perfgate.core.judge.against_revision import (
    UNASKED,
    arm_limit,
    arms_of,
    limit_to_decide,
)
from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.policy import CI, LOCAL, parse_policy
from pytest_perfgate.core.render.block import render_block
from pytest_perfgate.model.measurement import Baseline
from pytest_perfgate.model.metric import Interval, Problem
from pytest_perfgate.model.plan import CaseKey, Decision, Effect, Limit, Mode, Outcome
from pytest_perfgate.model.verdict import EQUAL_TIMES, CaseReport, Paired, Verdict
from tests.unit.core.judge.bench import (
    CONTEXT,
    FLOORED,
    GEMM,
    GPU,
    HOST,
    KEY,
    KINDS,
    SHAPE,
    accepted,
    limit,
    measured,
    samples,
)
from tests.unit.core.judge.paired_builds import (
    NOT_SLOWER,
    OPEN,
    PAIRED_CONTEXT,
    SLOWER,
    arms,
    arms_between,
    decided,
    decided_verdict,
    judged_arms,
    paired,
    paired_verdict,
)


def on(text: str, *patterns: str) -> Limit:
    return limit(text, on=patterns)


@pytest.mark.parametrize(
    ("limits", "counts"),
    [
        ((), 0.03),
        ((limit("time <= 1ms"), limit("throughput >= 1/s")), UNASKED),
        ((limit("slowdown <= 1%"),), 0.01),
        ((limit("slowdown <= 10%"), limit("slowdown < 5%")), 0.05),
        ((limit("slowdown <= -20%"),), UNASKED),
        ((limit("slowdown <= 0%"), limit("slowdown <= 5%")), 0.0),
        ((on("slowdown <= 1%", "H200*"), limit("slowdown <= 8%")), 0.08),
        ((limit("slowdown(case=other) <= 1%"), limit("slowdown <= 8%")), 0.08),
        ((limit("slowdown(case=mine) <= 1%"), limit("slowdown <= 8%")), 0.01),
        ((limit("slowdown(stage=mine) <= 1%"), limit("slowdown <= 8%")), 0.08),
    ],
)
def test_the_tightest_that_is_meant_for_the_call(limits: tuple[Limit, ...], counts: float) -> None:
    assert arm_limit(limits, CaseKey(nodeid=KEY.nodeid, name="mine"), HOST) == pytest.approx(counts)


def test_what_is_meant_for_other_devices_is_not_asked() -> None:
    limits = (on("slowdown <= 1%", f"{GPU.key}*"), on("slowdown <= 8%", HOST.key))
    assert [arm_limit(limits, KEY, device) for device in (GPU, HOST)] == [0.01, 0.08]


def test_a_case_is_asked_about_the_limits_that_are_open() -> None:
    def verdict(text: str, outcome: Outcome) -> Verdict:
        return Verdict(limit=limit(text), outcome=outcome, effect=Effect.WARN)

    verdicts = [verdict("slowdown <= 9%", Outcome.SUSPECT), verdict("slowdown <= 2%", Outcome.PASSED)]
    assert limit_to_decide(CaseReport(key=KEY, verdicts=tuple(verdicts))) == 0.09
    verdicts.append(verdict("slowdown <= 4%", Outcome.REGRESSED))
    assert limit_to_decide(CaseReport(key=KEY, verdicts=tuple(verdicts))) == 0.04
    assert limit_to_decide(CaseReport(key=KEY, verdicts=())) == UNASKED
    lineless = CaseReport(key=KEY, verdicts=(verdict("slowdown <= 5%", Outcome.UNBASELINED),))
    assert limit_to_decide(lineless) == 0.05


@pytest.mark.parametrize(("shift", "outcome"), [(0.18, Outcome.PASSED), (0.22, Outcome.REGRESSED)])
def test_the_floor_of_two_arms_is_of_the_time_before(shift: float, outcome: Outcome) -> None:
    verdict = decided_verdict(10e3 * (1 + shift), paired=decided(Decision.SLOWER, shift), context=FLOORED)
    assert (verdict.outcome, verdict.raised) == (outcome, pytest.approx(0.2))
    assert decided_verdict(1e6, paired=decided(Decision.SLOWER, shift), context=FLOORED).raised is None


@pytest.mark.parametrize(("low", "outcome"), [(0.05, Outcome.ACCEPTED), (0.2, Outcome.UNDECIDED)])
def test_an_edit_is_beside_the_arms_only_within_both_ends(low: float, outcome: Outcome) -> None:
    line = accepted(1e6)
    edited = replace(line, time=1.1e6, why="a better reason", when="2026-07-01")
    context = replace(PAIRED_CONTEXT, edited=edited)
    report = judge(measured(1.4e6), [limit("slowdown <= 3%")], baseline=line, context=context,
                  paired=arms(0.25, low, 0.3, 10))  # fmt: skip
    assert report.verdicts[0].outcome is outcome


@pytest.mark.parametrize("revision", [True, False])
def test_a_shift_of_exactly_the_limit_is_confirmed(revision: bool) -> None:
    tried = arms_between(Decision.SLOWER, 0.5, 0.25, 0.75, revision=revision)
    assert judged_arms("slowdown <= 50%", paired=tried).outcome is Outcome.REGRESSED


def test_an_interval_that_ends_exactly_at_the_limit_is_not_below_it() -> None:
    assert (
        judged_arms("slowdown <= 50%", paired=arms_between(Decision.UNDECIDED, 0.25, 0.0, 0.5)).outcome
        is Outcome.UNDECIDED
    )


def test_an_edit_is_beside_the_arms_of_a_call_of_half_a_nanosecond_too() -> None:
    line = accepted(0.5)
    edited = replace(line, time=0.625, why="a better reason", when="2026-07-01")
    report = judge(
        measured(1.0), [limit("slowdown <= 3%")], baseline=line, context=replace(CONTEXT, edited=edited, floor_ns=0.0),
        paired=arms_between(Decision.SLOWER, 0.25, 0.24, 0.26, revision=False),
    )  # fmt: skip
    assert report.verdicts[0].outcome is Outcome.ACCEPTED


def test_an_edit_is_beside_the_arms_where_the_play_takes_it_exactly_to_their_interval() -> None:
    edited = accepted(1.5e6, why="a better reason", when="2026-07-01")
    for low, outcome in ((0.875, Outcome.ACCEPTED), (0.885, Outcome.REGRESSED)):
        tried = arms_between(Decision.SLOWER, 0.9, low, 1.0, revision=False)
        assert judged_arms("slowdown <= 25%", paired=tried, context=replace(CONTEXT, edited=edited)).outcome is outcome


PLAIN_CONTEXT = JudgeContext(kinds=KINDS)


def test_two_arms_replace_the_slowdown_and_nothing_else() -> None:
    arms = Paired(decision=Decision.NOT_SLOWER, differences=(0.0,) * 5, shift=0.0, base="a", revision=True)
    report = judge(
        measured(1e6, work=GEMM), [limit("slowdown <= 3%")], baseline=accepted(2e6), context=PLAIN_CONTEXT, paired=arms
    )
    names = [metric.name for metric in report.measurement.metrics.metrics]
    assert names.count("slowdown") == names.count("time") == names.count("tflops") == 1


def test_two_arms_confirm_what_the_baseline_suspected() -> None:
    verdict = paired_verdict(1.1e6, SLOWER)
    assert (verdict.outcome, verdict.effect) == (Outcome.REGRESSED, Effect.FAIL)
    assert re.fullmatch(r"slower .*a1b2c3d.* 10 rounds: \+8\.0 %", verdict.sentence)
    assert verdict.evidence == (("against the accepted time", "+10.0 % [+9.7, +10.3] of 3 processes"),)
    assert verdict.metric is not None
    assert (verdict.metric.value, verdict.metric.low, verdict.metric.high) == (0.08, 0.07, 0.09)
    assert (verdict.rounds, verdict.interval) == (10, verdict.metric.interval)
    apart = judge(measured(1e6, shape=(0.05, 1.5, 30.0)), [limit("slowdown <= 3%")], baseline=accepted(1e6),
                  context=PAIRED_CONTEXT, paired=SLOWER)  # fmt: skip
    assert apart.verdicts[0].evidence == (("against the accepted time", "+50.0 % [too wide to say] of 3 processes"),)
    assert paired_verdict(1.1e6, replace(SLOWER, stands_in="it is gone")).evidence[0] == ("base", "it is gone")


def test_what_rounds_leave_open_says_how_to_play_more_of_them() -> None:
    verdict = paired_verdict(1.1e6, replace(OPEN, wants_s=90.0))
    assert verdict.outcome is Outcome.UNDECIDED
    (step,) = verdict.next
    assert step.endswith("--perfgate-against a1b2c3d"), "up to thirty are played anyway"
    assert paired_verdict(1.1e6, replace(OPEN, base="")).next == ()


def test_what_is_shown_slower_is_looked_at_before_it_is_accepted() -> None:
    verdict = paired_verdict(1.1e6, SLOWER)
    assert [step.partition(" -")[0] for step in verdict.next[:1]] == ["git diff"]
    assert verdict.next[1].startswith("perfgate accept ")


def test_two_arms_that_share_a_file_of_the_change_clear_nothing() -> None:
    verdict = paired_verdict(1.1e6, replace(NOT_SLOWER, shared=("tuning.txt", "a.json", "b.json", "c.json")))
    assert (verdict.outcome, verdict.effect) == (Outcome.SUSPECT, Effect.WARN)
    assert "; tuning.txt, a.json, b.json and 1 more changed since a1b2c3d, and both builds read" in verdict.sentence
    assert not any("accept" in step for step in verdict.next), "nothing is shown"
    three = paired_verdict(1.1e6, replace(NOT_SLOWER, shared=("a.json", "b.json", "c.json"))).sentence
    assert "; a.json, b.json, c.json changed since" in three
    equal = paired_verdict(1.1e6, replace(NOT_SLOWER, shared=(EQUAL_TIMES,)))
    assert (equal.outcome, "changed since" in equal.sentence) == (Outcome.SUSPECT, False)
    assert f"; {EQUAL_TIMES}: the cause is that" in equal.sentence
    assert paired_verdict(1.1e6, replace(SLOWER, shared=("tuning.txt",))).outcome is Outcome.REGRESSED
    named = paired_verdict(1.1e6, replace(NOT_SLOWER, shared=("tuning.txt",), revision=True)).evidence
    assert ("builds", "tuning.txt changed since a1b2c3d, and both builds read the head's version") in named


def test_two_arms_that_agree_say_that_the_machine_moved() -> None:
    verdict = paired_verdict(1.1e6, NOT_SLOWER)
    assert (verdict.outcome, verdict.effect) == (Outcome.MOVED, Effect.WARN)
    assert verdict.sentence.endswith("what differs: driver 570.1 -> 580.2")
    assert verdict.evidence == (("moved", "driver 570.1 -> 580.2"),)
    fails = replace(PAIRED_CONTEXT, policy=parse_policy(["moved=fail"], ci=True))
    assert paired_verdict(1.1e6, NOT_SLOWER, context=fails).effect is Effect.FAIL


def test_a_test_that_loads_nothing_of_the_package_is_the_same_in_both_arms() -> None:
    bare = replace(NOT_SLOWER, revision=True, outside=True, moved=())
    verdict = paired_verdict(1.1e6, bare)
    assert verdict.outcome is Outcome.PASSED
    assert verdict.evidence == (
        ("builds", "it loads nothing of the package: base and head are the same, except for programs that it starts"),
    )
    slow = paired_verdict(1.1e6, replace(SLOWER, revision=True, outside=True, base_ns=1e6))
    assert (slow.outcome, slow.next) == (Outcome.REGRESSED, ("git diff --stat a1b2c3d",))
    assert slow.evidence == (
        ("then", "1 ms  a1b2c3d, the base"),
        (
            "builds",
            "it loads nothing of the package: the difference comes from a program that it starts, a file that it reads, or the machine",
        ),
    ), "two arms that differ are not the same"
    report = judge(measured(1.1e6), [limit("slowdown <= 3%")], baseline=None, context=PAIRED_CONTEXT,
                   paired=replace(SLOWER, revision=True, base_ns=1e6))  # fmt: skip
    assert "\n  then  1 ms  a1b2c3d, the base\n  why   slower in 10" in render_block(report)
    for now, expected in (
        (1.3e6, True),
        (1.12e6, True),
        (1.1e6, False),
        (1.06e6, False),
        (1.04e6, True),
        (1.0e6, True),
    ):
        evidence = dict(paired_verdict(now, replace(SLOWER, revision=True, base_ns=1e6)).evidence)
        assert ("busy" in evidence) is expected, (
            "the two times that are shown need not be as far apart as the verdict says"
        )
        without_bounds = replace(SLOWER, revision=True, base_ns=1e6, interval=None)
        assert "busy" not in dict(paired_verdict(now, without_bounds).evidence)
        assert not expected or evidence["busy"].startswith(f"{now / 1e4 - 100:+.1f} % from then to now")
    verdict = paired_verdict(1.1e6, replace(bare, edited=("tests/helper.py",)))
    assert (verdict.outcome, verdict.effect, verdict.evidence) == (Outcome.SUSPECT, Effect.WARN, ())
    assert "edits tests/helper.py, and both builds use the new version" in verdict.sentence


def test_a_slowdown_below_what_counts_is_not_confirmed() -> None:
    assert paired_verdict(1.1e6, replace(SLOWER, shift=0.02)).outcome is Outcome.UNDECIDED
    assert paired_verdict(1.1e6, OPEN).outcome is Outcome.UNDECIDED


@pytest.mark.parametrize("time", [0.7e6, 1.0e6, 1.1e6])
def test_two_builds_decide_whatever_the_accepted_time_says(time: float) -> None:
    """A slow accepted run hides a slowdown, a fast one makes one up."""
    assert paired_verdict(time, SLOWER).outcome is Outcome.REGRESSED
    assert paired_verdict(time, replace(NOT_SLOWER, moved=())).outcome is Outcome.PASSED
    assert paired_verdict(time, OPEN).outcome is Outcome.UNDECIDED
    assert paired_verdict(1.1e6, SLOWER, context=replace(PAIRED_CONTEXT, mode=Mode.QUICK)).outcome is Outcome.REGRESSED


FAR = replace(NOT_SLOWER, moved=(), base_ns=1e7)
"""Two builds that agree, of which the base took ten times the accepted time."""


@pytest.mark.parametrize("shape", [(1.0,), (0.7, 1.3), (0.85, 1.15), SHAPE])
@pytest.mark.parametrize("runs", [1, 3])
def test_a_time_far_above_its_limit_is_not_passed_by_two_builds_without_a_word(
    shape: tuple[float, ...], runs: int
) -> None:
    """Two processes cannot show that they are slower, one accepted run not how far runs scatter: ten times passed."""
    line = accepted(1e6, runs=runs, scatter=0.03 if runs > 1 else 0.0)

    def verdict_on(paired: Paired, line: Baseline = line, **fields):
        return paired_verdict(1e7, paired, baseline=line, shape=shape, **fields)

    assert verdict_on(FAR).outcome is Outcome.MOVED, "the accepted code is as slow here now"
    assert verdict_on(FAR).effect is Effect.WARN
    lacking = verdict_on(replace(FAR, base_ns=0.0))
    assert lacking.outcome in {Outcome.UNDECIDED, Outcome.MOVED}, "who moved is not known"
    open_ = verdict_on(FAR, replace(line, detects=20.0))
    assert (open_.outcome, open_.effect) == (Outcome.UNDECIDED, Effect.WARN)
    assert open_.next[0].endswith("--perfgate=full --perfgate-rounds=6")
    assert open_.next[1].startswith("perfgate accept")
    assert verdict_on(replace(FAR, shared=("tuning.txt",))).outcome is Outcome.SUSPECT, "a file that both builds share"


@pytest.mark.parametrize(
    ("detects", "time", "outcome"),
    [(0.0, 1.4e6, Outcome.MOVED), (0.5, 1.4e6, Outcome.PASSED), (0.5, 1.6e6, Outcome.MOVED),
     (20.0, 1.9e6, Outcome.PASSED), (20.0, 2.1e6, Outcome.UNDECIDED)],
)  # fmt: skip
def test_what_the_noise_of_the_accepted_run_explains_passes_up_to_twice_its_time(
    detects: float, time: float, outcome: Outcome
) -> None:
    """Cleared code stayed UNDECIDED on a busy machine, since earlier runs had happened to agree with each other."""
    line = accepted(1e6, runs=3, scatter=0.03, detects=detects)
    assert paired_verdict(time, replace(FAR, base_ns=time), baseline=line).outcome is outcome


def test_a_time_that_was_slow_for_a_moment_passes_and_says_what_the_base_took() -> None:
    verdict = paired_verdict(1e7, replace(FAR, base_ns=1.02e6), shape=(0.7, 1.3))
    assert verdict.outcome is Outcome.PASSED
    assert verdict.evidence[0] == ("passing", "base 1.02 ms in turns: the cause is gone")


@pytest.mark.parametrize("time", [1.1e6, 1.25e6])
def test_what_chance_explains_still_passes_by_two_builds(time: float) -> None:
    assert paired_verdict(time, replace(FAR, base_ns=time), shape=(0.9, 1.1)).outcome is Outcome.PASSED


def test_what_two_builds_clear_shows_their_figure_and_the_accepted_time_beside_it() -> None:
    verdict = paired_verdict(1.1e6, replace(NOT_SLOWER, moved=()))
    assert (verdict.outcome, verdict.effect, verdict.next) == (Outcome.PASSED, Effect.PASS, ())
    assert re.fullmatch(r"no slower .*a1b2c3d.* 10 rounds: \+0\.1 %", verdict.sentence)
    assert verdict.metric is not None
    assert verdict.metric.value == 0.001
    assert verdict.evidence == (("against the accepted time", "+10.0 % [+9.7, +10.3] of 3 processes"),)


def test_what_two_builds_show_faster_is_improved_and_what_they_do_not_show_is_not() -> None:
    faster = paired(Decision.NOT_SLOWER, -0.2, -0.21, -0.19)
    assert paired_verdict(0.8e6, faster).outcome is Outcome.PASSED
    shown = paired_verdict(0.8e6, replace(faster, faster=True))
    assert shown.outcome is Outcome.IMPROVED
    assert shown.sentence.endswith("a1b2c3d in 10 rounds: -20.0 %")
    assert shown.next == ("perfgate accept 'tests/bench.py::test_gemm[4096-bf16]' --improved",)
    odd = paired_verdict(1e3, replace(faster, faster=True, shift=-0.95, interval=Interval(low=-0.96, high=-0.94)))
    assert odd.sentence.endswith("ten times faster: is the work still done?")


def test_what_two_builds_leave_open_is_nothing_to_accept() -> None:
    for evidence, outcome in ((OPEN, Outcome.UNDECIDED), (replace(OPEN, unstable=True), Outcome.UNSTABLE)):
        verdict = paired_verdict(1.1e6, replace(evidence, wants_s=70.0))
        assert (verdict.outcome, [step for step in verdict.next if "accept" in step]) == (outcome, [])
    assert paired_verdict(1.1e6, replace(OPEN, wants_s=70.0)).sentence.endswith("; about 1 min 10 s more would decide")
    hardly = paired_verdict(1.1e6, replace(OPEN, wants_s=math.inf))
    assert hardly.sentence.endswith("; more rounds would hardly decide")
    assert [step.startswith("on a quieter machine: pytest ") for step in hardly.next] == [True]


@pytest.mark.parametrize("evidence", [replace(OPEN, unstable=True), replace(OPEN, wants_s=math.inf)])
@pytest.mark.parametrize(
    ("timer", "helpers", "offers"),
    [("host", (0.9,) * 3, True), ("host", (0.0, 0.0, 0.9), True), ("host", (0.0,) * 3, False), ("events", (0.9,) * 3, False)],
)  # fmt: skip
def test_a_call_with_threads_that_rounds_leave_open_may_be_decided_with_one(
    evidence: Paired, timer: str, helpers: tuple[float, ...], *, offers: bool
) -> None:
    """The threads of OpenMP wait for one another, so on busy cores a call scatters by many times its own time."""
    threaded = measured(1.1e6, processes=tuple(samples(1.1e6, helpers=some, timer=timer) for some in helpers))
    report = judge(threaded, [limit("slowdown <= 3%")], baseline=None, context=PAIRED_CONTEXT, paired=evidence)
    (step,) = report.verdicts[0].next
    assert step.startswith(f"{'with OMP_NUM_THREADS=1, or ' if offers else ''}on a quieter machine: pytest ")
    numba = replace(threaded, environment=replace(threaded.environment, packages=(("numba", "0.68.1"),)))
    report = judge(numba, [limit("slowdown <= 3%")], baseline=None, context=PAIRED_CONTEXT, paired=evidence)
    assert ("with OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1, or " in report.verdicts[0].next[0]) is offers


@pytest.mark.parametrize(("rounds", "outcome"), [(7, "PASSED"), (30, "PASSED"), (33, "UNDECIDED"), (40, "PASSED")])
def test_rounds_that_a_budget_ends_between_two_looks_clear_nothing(rounds: int, outcome: str) -> None:
    """The looks are fixed in advance: one more, wherever the budget ends, errs beyond what they share."""
    below = replace(OPEN, interval=Interval(low=-0.02, high=0.01), differences=(0.0,) * rounds)
    for evidence in (below, replace(below, revision=True)):
        assert paired_verdict(1e6, evidence).outcome is Outcome[outcome]


def test_rounds_for_a_mean_take_no_clearing_back() -> None:
    """The first look that decides is final, beside an accepted time and against a revision alike."""
    cleared = replace(OPEN, decision=Decision.NOT_SLOWER, interval=Interval(low=-0.02, high=0.04))
    for evidence in (cleared, replace(cleared, revision=True)):
        assert paired_verdict(1e6, evidence).outcome is Outcome.PASSED


def test_slow_processes_that_the_base_has_not_are_said() -> None:
    slow = replace(SLOWER, slow=(9, 0), differences=(0.0,) * 30)
    assert paired_verdict(1e6, slow).sentence.startswith(
        "more slow processes (9 of 30, 0 in the base) than base a1b2c3d"
    )
    assert paired_verdict(1e6, replace(slow, revision=True)).sentence.startswith(
        "more slow processes (9 of 30, 0 in the base)"
    )


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [(SLOWER, Outcome.REGRESSED), (NOT_SLOWER, Outcome.PASSED), (OPEN, Outcome.UNDECIDED)],
)
def test_a_case_without_a_line_is_decided_by_two_builds_and_the_missing_line_is_a_note(
    evidence: Paired, expected: Outcome
) -> None:
    verdict = paired_verdict(1e6, evidence, baseline=None, context=replace(PAIRED_CONTEXT, policy=CI))
    assert verdict.outcome is expected
    keeps = "perfgate accept --from RECORD 'tests/bench.py::test_gemm[4096-bf16]' adds one"
    assert ("no accepted time", f"base and head decided; {keeps}") in verdict.evidence


@pytest.mark.parametrize(
    ("runs", "scatter", "time", "outcome"),
    [
        (1, 0.0, 1e6, Outcome.UNDECIDED),
        (2, 0.001, 1e6, Outcome.UNDECIDED),
        (40, 0.001, 1e6, Outcome.PASSED),
        (40, 0.001, 1.02e6, Outcome.UNDECIDED),
        (40, 0.03, 1e6, Outcome.UNDECIDED),
    ],
)
def test_an_accepted_time_clears_what_it_sees_from_one_run_to_the_next(
    runs: int, scatter: float, time: float, outcome: Outcome
) -> None:
    line = accepted(1e6, runs=runs, scatter=scatter)
    verdict = paired_verdict(time, None, baseline=line, shape=(1.0, 1.0, 1.0))
    assert verdict.outcome is outcome
    ci = replace(PAIRED_CONTEXT, policy=CI, paired_available=False)
    assert paired_verdict(time, None, baseline=line, context=ci, shape=(1.0, 1.0, 1.0)).outcome is outcome
    quick = replace(ci, mode=Mode.QUICK)
    assert paired_verdict(time, None, baseline=line, context=quick, shape=(1.0, 1.0, 1.0)).outcome is outcome
    at_home = replace(quick, policy=LOCAL)
    assert paired_verdict(1e6, None, baseline=line, context=at_home, shape=(1.0, 1.0, 1.0)).outcome is Outcome.PASSED


def test_an_arm_that_loaded_the_other_s_files_is_no_verdict() -> None:
    wrong = replace(SLOWER, problems=(Problem(code="arm-mixed", what="the base build loaded the head's kernel.py"),))
    verdict = paired_verdict(1.1e6, wrong)
    assert (verdict.outcome, verdict.effect) == (Outcome.INVALID, Effect.FAIL)


@pytest.mark.parametrize(
    ("fields", "of_revision", "beside"),
    [
        ({}, False, True),
        ({"revision": True}, True, False),
        ({"shared": ("data.npz",)}, False, False),
        ({"edited": ("t.py",)}, False, False),
        ({"problems": (Problem(code="arm-foreign", what="it loaded the other's files"),)}, False, False),
        ({"revision": True, "shared": ("data.npz",)}, True, False),
    ],
)
def test_rounds_beside_an_accepted_time_count_where_the_builds_differ_in_all_that_was_edited(
    fields: dict[str, Any], *, of_revision: bool, beside: bool
) -> None:
    paired = Paired(decision=Decision.NOT_SLOWER, differences=(0.1,) * 7, shift=0.1, base="c0ffee", **fields)
    made = [arms_of(paired, revision=True), arms_of(paired, revision=False)]
    assert [one is not None for one in made] == [of_revision, beside]
    assert all(one is None or one.differences == (0.1,) * 7 for one in made)
    assert arms_of(None, revision=True) is None
