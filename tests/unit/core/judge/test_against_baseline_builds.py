"""Tests of core/judge/against_baseline: an accepted time where two builds were measured in turns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_perfgate.core.changes.marks import EnvironmentEdits
from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.render.words import IN_TURNS
from pytest_perfgate.model.measurement import Baseline
from pytest_perfgate.model.plan import Decision, Outcome
from pytest_perfgate.model.verdict import EQUAL_TIMES, Paired, Verdict
from tests.unit.core.judge.bench import accepted
from tests.unit.core.judge.paired_builds import PAIRED_CONTEXT, paired, paired_verdict

SLOWER, NOT_SLOWER, UNDECIDED = Decision.SLOWER, Decision.NOT_SLOWER, Decision.UNDECIDED
EDITS = replace(PAIRED_CONTEXT, environment_edits=EnvironmentEdits(requirements=("-numpy==1", "+numpy==2")))
STEADY = accepted(1e6, scatter=0.005, runs=30)
"""A line of many runs, of which the next may be 2 % off."""


def by_builds(
    time: float,
    decision: Decision = NOT_SLOWER,
    shift: float = 0.0,
    ends: tuple[float, float] = (-0.01, 0.01),
    *,
    line: Baseline | None = None,
    context: JudgeContext = PAIRED_CONTEXT,
    rounds: int = 10,
    **fields: Any,
) -> Verdict:
    """The verdict on a time against 1 ms, whose base took 1 ms in the turns as well unless told otherwise."""
    evidence = paired(decision, shift, *ends, **{"base_ns": 1e6, "differences": (shift,) * rounds} | fields)
    return paired_verdict(time, evidence, context=context, baseline=line or accepted(1e6))


@pytest.mark.parametrize(
    ("time", "decision", "ends", "rounds", "outcome"),
    [
        (1e6, NOT_SLOWER, (-0.01, 0.01), 10, Outcome.PASSED),
        (1e6, UNDECIDED, (-0.01, 0.01), 10, Outcome.PASSED),
        (1e6, UNDECIDED, (-0.01, 0.01), 6, Outcome.UNDECIDED),
        (1e6, UNDECIDED, (-0.01, 0.01), 31, Outcome.UNDECIDED),
        (1e6, UNDECIDED, (-0.01, 0.0299), 10, Outcome.PASSED),
        (1e6, UNDECIDED, (-0.01, 0.03), 10, Outcome.UNDECIDED),
        (1.1e6, UNDECIDED, (-0.01, 0.05), 10, Outcome.UNDECIDED),
    ],
)
def test_two_builds_decide_whatever_the_accepted_time(
    time: float, decision: Decision, ends: tuple[float, float], rounds: int, outcome: Outcome
) -> None:
    verdict = by_builds(time, decision, ends=ends, rounds=rounds)
    assert (verdict.outcome, verdict.baseline) == (outcome, accepted(1e6))


@pytest.mark.parametrize("time", [0.9e6, 1e6, 1.1e6])
def test_slower_in_turns_is_a_regression_whatever_the_first_processes_took(time: float) -> None:
    assert by_builds(time, SLOWER, 0.08, (0.07, 0.09)).outcome is Outcome.REGRESSED


@pytest.mark.parametrize(
    ("line", "outcome", "says"),
    [
        ({"why": "exact sums"}, Outcome.ACCEPTED, ': +8.0 %; this change accepts 1 ms: "exact sums"'),
        ({"why": "", "detects": 0.5}, Outcome.REGRESSED, "has no reason in a commit"),
        ({"why": "exact sums", "time": 1.2e6}, Outcome.REGRESSED, "has another time, 1.2 ms"),
        ({"why": "exact sums", "time": 1.2e6, "detects": 0.5}, Outcome.ACCEPTED, "accepts 1.2 ms"),
        ({"why": "exact sums", "runs": 1}, Outcome.REGRESSED, "slower than base"),
    ],
    ids=["agrees", "no reason", "another time", "noisy", "of before"],
)
def test_a_slower_change_is_accepted_by_the_first_line_that_it_brings(
    line: dict[str, Any], outcome: Outcome, says: str
) -> None:
    """The command that REGRESSED named wrote such a line, and the next run named it again."""
    first = replace(accepted(1e6, runs=0), **line)
    verdict = by_builds(1e6, SLOWER, 0.08, (0.07, 0.09), line=first)
    assert verdict.outcome is outcome
    assert says in verdict.sentence
    assert (verdict.next == ()) is (outcome is Outcome.ACCEPTED)
    assert by_builds(1e6, line=first).outcome is Outcome.PASSED, "base and head decide"


def test_the_line_of_a_new_test_accepts_a_slower_time_by_its_reason() -> None:
    new = replace(PAIRED_CONTEXT, new_line=True)
    for why, outcome in (("exact sums", Outcome.ACCEPTED), ("", Outcome.REGRESSED)):
        line = replace(accepted(1e6, runs=3), why=why)
        assert by_builds(1e6, SLOWER, 0.08, (0.07, 0.09), line=line, context=new).outcome is outcome
    local = by_builds(1e6, SLOWER, 0.08, (0.07, 0.09), line=replace(line, local=True), context=new)
    assert "in a commit" not in local.sentence, "a line of this machine is never committed"


def test_equal_times_of_both_builds_clear_no_line_of_the_change() -> None:
    """A test read the times of a file outside of the tree, ten times slower, and the change accepted them."""
    first, equal = replace(accepted(1e6), runs=0), {"shared": (EQUAL_TIMES,)}
    verdict = by_builds(1e6, line=first, **equal)
    assert verdict.outcome is Outcome.SUSPECT
    assert verdict.sentence == f"the accepted time came with this change, and {EQUAL_TIMES}"
    assert by_builds(1e6, line=accepted(1e6), **equal).outcome is Outcome.PASSED
    assert by_builds(1e6, line=first, shared=("data.npz",)).outcome is Outcome.PASSED


def test_rounds_without_an_interval_clear_nothing() -> None:
    assert by_builds(1e6, UNDECIDED, interval=None).outcome is Outcome.UNDECIDED


@pytest.mark.parametrize(
    ("shift", "faster", "context", "outcome", "says"),
    [
        (-0.5, True, PAIRED_CONTEXT, Outcome.IMPROVED, "faster than base a1b2c3d in 10 rounds: -50.0 %"),
        (-0.5, False, PAIRED_CONTEXT, Outcome.PASSED, "no slower than base"),
        (-0.89, True, PAIRED_CONTEXT, Outcome.IMPROVED, "rounds: -89.0 %"),
        (-0.91, True, PAIRED_CONTEXT, Outcome.IMPROVED, "ten times faster: is the work still done?"),
        (-0.5, True, replace(PAIRED_CONTEXT, edited=accepted(0.5e6, why="x")), Outcome.PASSED, "no slower than base"),
        (-0.5, True, replace(PAIRED_CONTEXT, edited=accepted(0.9e6, why="x")), Outcome.IMPROVED, "faster than base"),
        (-0.5, True, replace(PAIRED_CONTEXT, edited=accepted(1e6, why="x")), Outcome.IMPROVED, "faster than base"),
    ],
)
def test_a_speed_up_of_two_builds_is_announced_unless_the_change_accepts_it(
    shift: float, faster: bool, context: JudgeContext, outcome: Outcome, says: str
) -> None:
    verdict = by_builds(
        1e6 * (1 + shift), shift=shift, ends=(shift - 0.01, shift + 0.01), faster=faster, context=context
    )
    assert verdict.outcome is outcome
    assert says in verdict.sentence
    assert ("ten times" in verdict.sentence) is (shift < -0.9)
    assert ("--improved" in "".join(verdict.next)) is (outcome is Outcome.IMPROVED)


def test_a_speed_up_whose_time_is_above_its_line_is_accepted_with_a_reason() -> None:
    verdict = by_builds(1.05e6, shift=-0.5, ends=(-0.51, -0.49), faster=True, context=PAIRED_CONTEXT)
    assert verdict.outcome is Outcome.IMPROVED
    assert [step.endswith('--reason "..."') for step in verdict.next] == [True]


def test_an_edit_from_a_noisy_run_that_two_builds_found_slower_is_accepted_again_and_not_compared_again() -> None:
    context = replace(PAIRED_CONTEXT, edited=accepted(6e6, why="exact", detects=2.5))
    slower = by_builds(2e6, SLOWER, 1.0, (0.9, 1.1), context=context)
    assert (slower.outcome, "too noisy" in slower.sentence) == (Outcome.UNDECIDED, True)
    assert [step.split("'")[0] for step in slower.next] == ["perfgate accept "]


MOVED_DRIVER = {"moved": (("driver", "570.1", "580.2"),)}


@pytest.mark.parametrize(
    ("time", "line", "context", "fields", "outcome"),
    [
        (1.2e6, STEADY, PAIRED_CONTEXT, {}, Outcome.MOVED),
        (1.2e6, accepted(1e6), PAIRED_CONTEXT, {}, Outcome.PASSED),
        (1.2e6, accepted(1e6), replace(PAIRED_CONTEXT, runs=2, scatter=0.005), {}, Outcome.MOVED),
        (1.02e6, STEADY, PAIRED_CONTEXT, {}, Outcome.PASSED),
        (1.2e6, replace(STEADY, detects=0.5), PAIRED_CONTEXT, {}, Outcome.PASSED),
        (1.2e6, replace(STEADY, detects=0.19), PAIRED_CONTEXT, {}, Outcome.MOVED),
        (1.2e6, accepted(1e6), PAIRED_CONTEXT, MOVED_DRIVER, Outcome.MOVED),
        (1.02e6, accepted(1e6), PAIRED_CONTEXT, MOVED_DRIVER, Outcome.PASSED),
        (1.2e6, accepted(1e6), PAIRED_CONTEXT, {"shared": ("x.py",)}, Outcome.SUSPECT),
        (1.02e6, accepted(1e6), PAIRED_CONTEXT, {"shared": ("x.py",)}, Outcome.PASSED),
        (2e6, accepted(1e6), EDITS, {}, Outcome.MOVED),
        (1.2e6, accepted(1e6), EDITS, {}, Outcome.PASSED),
    ],
)
def test_cleared_code_that_is_slower_than_accepted_has_a_cause_outside(
    time: float, line: Baseline, context: JudgeContext, fields: dict[str, Any], outcome: Outcome
) -> None:
    """Beyond the scatter of several runs, or with something that moved, or that the change edits around the code."""
    assert by_builds(time, line=line, context=context, **fields).outcome is outcome


@pytest.mark.parametrize(
    ("line", "fields", "outcome", "says"),
    [
        (accepted(1e6), {}, Outcome.PASSED, "no slower than base"),
        (accepted(1e6), {"base_ns": 1.1e6}, Outcome.PASSED, "no slower than base"),
        (accepted(1e6), {"base_ns": 3e6}, Outcome.MOVED, "what differs: unknown"),
        (accepted(1e6), {"base_ns": 0.0}, Outcome.UNDECIDED, "no time of the base is known: it is open"),
        (accepted(1e6), {"base_ns": 0.0, "same": True}, Outcome.MOVED, "what differs: unknown"),
        (accepted(1e6, detects=1.0), {"base_ns": 1.9e6}, Outcome.UNDECIDED, "the accepted run may be 100 % off"),
        (accepted(1e6, detects=0.8), {"base_ns": 1.9e6}, Outcome.MOVED, "what differs: unknown"),
        (accepted(1e6), {"base_ns": 3e6, "shared": ("x.py",)}, Outcome.SUSPECT, "x.py changed since"),
        (accepted(1e6), {"base_ns": 0.0, "shared": ("x.py",)}, Outcome.SUSPECT, "x.py changed since"),
    ],
)
def test_a_time_three_times_the_accepted_one_is_explained_or_stays_open(
    line: Baseline, fields: dict[str, Any], outcome: Outcome, says: str
) -> None:
    """The base was built from the accepted code: where it is as fast as accepted, the machine was slow for a while."""
    verdict = by_builds(3e6, line=line, **fields)
    assert verdict.outcome is outcome
    assert says in verdict.sentence
    assert (("passing", "base 1 ms in turns: the cause is gone") in verdict.evidence) is (fields == {})


@pytest.mark.parametrize(
    ("shape", "edits", "outcome"),
    [
        ((0.1, 1.0, 1.0), (), Outcome.PASSED),
        ((0.13, 1.0, 1.0), (), Outcome.PASSED),
        ((0.14, 1.0, 1.0), (), Outcome.UNDECIDED),
        ((0.1, 1.0, 1.0), ("ci.yml",), Outcome.UNDECIDED),
        ((0.11, *[1.0] * 7), (), Outcome.UNDECIDED),
        ((0.11, 0.11, *[1.0] * 9), (), Outcome.PASSED),
    ],
)
def test_processes_of_which_one_is_as_fast_as_accepted_show_no_slowdown_by_themselves(
    shape: tuple[float, ...], edits: tuple[str, ...], outcome: Outcome
) -> None:
    """Nine times as slow, with an interval down to nothing; what the change edits of its job may be the cause."""
    context = replace(PAIRED_CONTEXT, environment_edits=EnvironmentEdits(files=edits))
    evidence = paired(NOT_SLOWER, 0.001, -0.01, 0.01)
    assert paired_verdict(9e6, evidence, context=context, shape=shape).outcome is outcome


@pytest.mark.parametrize(
    ("text", "outcome"), [("slowdown <= 250%", Outcome.PASSED), ("slowdown <= 150%", Outcome.MOVED)]
)
def test_within_its_limit_a_time_of_cleared_code_needs_no_explanation(text: str, outcome: Outcome) -> None:
    evidence = paired(NOT_SLOWER, 0.0, -0.01, 0.01, base_ns=3e6, differences=(0.0,) * 10)
    assert paired_verdict(3e6, evidence, text, context=PAIRED_CONTEXT, baseline=accepted(1e6)).outcome is outcome


@pytest.mark.parametrize(("time", "far"), [(1.2e6, False), (1.9e6, True)])
def test_a_passing_cause_is_told_of_a_time_beyond_chance(time: float, *, far: bool) -> None:
    assert ("passing" in dict(by_builds(time).evidence)) is far


def test_the_commit_that_stands_in_for_the_base_is_told() -> None:
    assert ("base", "the parent of it") in by_builds(1e6, stands_in="the parent of it").evidence


@pytest.mark.parametrize(("rounds", "more"), [(29, ""), (30, " --perfgate-rounds=60"), (31, " --perfgate-rounds=62")])
def test_more_rounds_than_usual_are_advised_where_the_usual_ones_were_played(rounds: int, more: str) -> None:
    verdict = by_builds(1e6, UNDECIDED, ends=(-0.01, 0.05), rounds=rounds)
    assert verdict.next[0].endswith(f"--perfgate-against a1b2c3d{more}")


@pytest.mark.parametrize(("visible", "expected"), [(0.02, 0.02), (None, 0.03)])
def test_an_open_case_can_detect_what_its_rounds_can_or_its_limit(visible: float | None, expected: float) -> None:
    assert by_builds(1e6, UNDECIDED, ends=(-0.01, 0.05), visible=visible).visible == expected


@pytest.mark.parametrize(
    ("evidence", "text", "outcome", "noted"),
    [
        (paired(NOT_SLOWER, 0.0, -0.01, 0.01), "slowdown <= 3%", Outcome.PASSED, True),
        (paired(SLOWER, 0.08, 0.07, 0.09), "slowdown <= 3%", Outcome.REGRESSED, True),
        (None, "slowdown <= 3%", Outcome.UNBASELINED, False),
        (None, "slowdown <= -3%", Outcome.UNBASELINED, False),
    ],
)
def test_without_an_accepted_time_two_builds_decide_and_say_so(
    evidence: Paired | None, text: str, outcome: Outcome, *, noted: bool
) -> None:
    verdict = paired_verdict(1e6, evidence, text, baseline=None)
    assert verdict.outcome is outcome
    assert ("no accepted time" in dict(verdict.evidence)) is noted


@pytest.mark.parametrize("line", [None, accepted(1e6, detects=0.9)])
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"base_ns": 5e6}, "5 ms in both builds, 1 ms in this run"),
        ({"base_ns": 3e6}, None),
        ({"base_ns": 5e6, "shift": -0.5}, None),
        ({"base_ns": 5e6, "same": True}, None),
    ],
)
def test_builds_that_take_several_times_as_long_as_the_run_are_told(
    line: Baseline | None, fields: dict[str, float], expected: str | None
) -> None:
    """A build without the compiled part may run a fallback, and compares that with itself."""
    evidence = replace(paired(NOT_SLOWER, 0.0, -0.01, 0.01), **fields)
    verdict = paired_verdict(1e6, evidence, baseline=line)
    assert dict(verdict.evidence).get(IN_TURNS) == expected


def test_builds_that_take_longer_by_the_cost_of_the_clock_are_not_told() -> None:
    verdict = paired_verdict(100.0, replace(paired(NOT_SLOWER, 0.0, -0.01, 0.01), base_ns=470.0), baseline=None)
    assert IN_TURNS not in dict(verdict.evidence)
