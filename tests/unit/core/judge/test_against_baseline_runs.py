"""Tests of core/judge/against_baseline: what an accepted time of one or many runs can clear by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.context import JudgeContext, Unpaired
from pytest_perfgate.core.judge.policy import CI
from pytest_perfgate.model.measurement import Baseline, Environment, Identity
from pytest_perfgate.model.plan import Mode, Outcome
from tests.unit.core.judge.bench import CONTEXT, HOST, accepted, limit, ticking, verdict

IN_CI = replace(CONTEXT, policy=CI)
TWO_BUILDS = replace(CONTEXT, paired_available=True)
STEADY = accepted(1e6, scatter=0.005, runs=30)
"""Runs that scatter by 0.5 %: the next one may be 2.6 % off, once in twenty."""


@pytest.mark.parametrize(
    ("context", "line", "outcome", "says"),
    [
        (CONTEXT, accepted(1e6), Outcome.PASSED, "keeps the limit"),
        (IN_CI, accepted(1e6), Outcome.UNDECIDED, "rests on 1 run, and the next run may be 12.8 % off: it clears"),
        (IN_CI, accepted(1e6, commit="0123456789+dirty"), Outcome.UNDECIDED, "rests on 1 run"),
        (TWO_BUILDS, accepted(1e6), Outcome.UNDECIDED, "rests on 1 run, and the next run may be 12.8 % off: two builds"),
        (replace(TWO_BUILDS, mode=Mode.QUICK), accepted(1e6), Outcome.PASSED, "keeps the limit"),
        (IN_CI, replace(STEADY, runs=2), Outcome.UNDECIDED, "rests on 2 runs, and the next run may be 9.2 % off"),
        (replace(IN_CI, runs=5, scatter=0.005), accepted(1e6), Outcome.UNDECIDED, "rests on 5 runs"),
        (IN_CI, STEADY, Outcome.PASSED, "keeps the limit"),
        (IN_CI, replace(STEADY, runs=0), Outcome.UNDECIDED, "came with this change: it clears nothing by itself"),
        (replace(TWO_BUILDS, runs=30, scatter=0.005), replace(STEADY, runs=0), Outcome.UNDECIDED, "change: two builds"),
        (replace(TWO_BUILDS, new_line=True), STEADY, Outcome.UNDECIDED, "came with this change: two builds decide"),
        (replace(TWO_BUILDS, new_line=True), replace(STEADY, local=True), Outcome.PASSED, "keeps the limit"),
        (replace(IN_CI, new_line=True), STEADY, Outcome.PASSED, "keeps the limit"),
        (IN_CI, replace(STEADY, scatter=0.02), Outcome.UNDECIDED, "rests on 30 runs, and the next run may be 4.1 % off"),
        (IN_CI, replace(STEADY, detects=0.029), Outcome.PASSED, "keeps the limit"),
        (IN_CI, replace(STEADY, detects=0.031), Outcome.UNDECIDED, "too noisy to detect less than 3.1 %"),
    ],
)  # fmt: skip
def test_in_ci_a_time_clears_what_its_runs_can_detect(
    context: JudgeContext, line: Baseline, outcome: Outcome, says: str
) -> None:
    result = verdict(1e6, baseline=line, context=context)
    assert result.outcome is outcome
    assert says in result.sentence
    assert (result.baseline, bool(result.next)) == (line, outcome is Outcome.UNDECIDED)


@pytest.mark.parametrize(
    ("time", "scatter", "outcome"),
    [
        (1.003e6, 0.005, Outcome.PASSED),
        (1.005e6, 0.005, Outcome.UNDECIDED),
        (0.98e6, 0.005, Outcome.PASSED),
        (0.98e6, 0.02, Outcome.UNDECIDED),
    ],
)
def test_the_next_run_and_this_time_fit_below_the_limit_together(time: float, scatter: float, outcome: Outcome) -> None:
    """A faster time does not make up for runs that scatter by more than the limit."""
    assert verdict(time, baseline=replace(STEADY, scatter=scatter), context=IN_CI).outcome is outcome


@pytest.mark.parametrize(
    ("scatter", "bound", "detects"), [(0.02, "3%", 0.040996), (0.005, "2%", 0.0256005), (0.02, "4%", 0.040996)]
)
def test_what_an_open_time_can_detect_is_the_larger_of_its_processes_and_its_runs(
    scatter: float, bound: str, detects: float
) -> None:
    line = replace(STEADY, scatter=scatter)
    result = verdict(1e6, [limit(f"slowdown <= {bound}")], baseline=line, context=IN_CI)
    assert result.outcome is Outcome.UNDECIDED
    assert result.visible == pytest.approx(detects, rel=1e-2)


def test_a_limit_wider_than_what_runs_detect_is_what_is_told() -> None:
    result = verdict(1.01e6, baseline=STEADY, context=IN_CI)
    assert (result.outcome, result.visible) == (Outcome.UNDECIDED, 0.03)


@pytest.mark.parametrize(
    ("time", "edited", "outcome"),
    [
        (0.5e6, accepted(0.5e6, why="x"), Outcome.PASSED),
        (0.5e6, accepted(0.9e6, why="x"), Outcome.IMPROVED),
        (0.5e6, accepted(0.5e6, why="x", expires="2026-01-01"), Outcome.IMPROVED),
        (0.5e6, accepted(0.5e6, why="x", identity=Identity(device=HOST.key, calls="2")), Outcome.IMPROVED),
        (0.5e6, accepted(1e6, why="x"), Outcome.IMPROVED),
        (0.5e6, None, Outcome.IMPROVED),
    ],
)
def test_a_speed_up_that_the_change_accepts_while_it_holds_is_not_announced(
    time: float, edited: Baseline | None, outcome: Outcome
) -> None:
    context = replace(CONTEXT, edited=edited, today="2026-02-01")
    result = verdict(time, baseline=STEADY, context=context)
    assert result.outcome is outcome
    assert ("this change accepts 500 µs" in result.sentence) is (outcome is Outcome.PASSED)


@pytest.mark.parametrize(
    ("detects", "tick", "unversioned", "step", "coarse"),
    [
        (0.0, 0.0, False, "--perfgate-rounds", False),
        (0.2, 0.0, False, "--perfgate-against", False),
        (0.2, 0.0, True, "perfgate accept", False),
        (0.0, 0.08, False, "--perfgate-rounds", True),
    ],
)
def test_an_interval_across_the_limit_names_what_else_is_too_coarse(
    detects: float, tick: float, step: str, *, unversioned: bool, coarse: bool
) -> None:
    """A time that nothing decided is accepted only where its accepted code cannot be built."""
    unpaired = Unpaired(why="there is no git repository here", unversioned=True) if unversioned else None
    line, processes = accepted(1e6, detects=detects), ticking(1e6, (0.9, 1.0, 1.1), tick)
    result = verdict(baseline=line, context=replace(CONTEXT, unpaired=unpaired), **processes)
    assert result.outcome is Outcome.UNDECIDED
    assert any(step in one for one in result.next)
    assert unversioned or not any("perfgate accept" in one for one in result.next)
    assert ("the timer's resolution is 8.0 % of this time, which is more than the limit" in result.sentence) is coarse


def test_versions_that_changed_since_are_told_unless_facts_are_off() -> None:
    line = accepted(1e6, surroundings=Environment(facts=(("device driver", "570.1"),)))
    newer = replace(HOST, facts=(("driver", "580.2"),))
    evidence = dict(verdict(1e6, baseline=line, device=newer).evidence)
    assert "570.1 -> 580.2" in evidence["since accepted"]
    assert "since accepted" not in dict(
        verdict(1e6, baseline=line, device=newer, context=replace(CONTEXT, facts="off")).evidence
    )
    assert "since accepted" not in dict(verdict(1e6, baseline=accepted(1e6), device=newer).evidence)
