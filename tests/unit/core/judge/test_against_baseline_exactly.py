"""Tests of core/judge/against_baseline: exactly at what counts, and rare company of lines, builds and edits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_perfgate.core.changes.marks import EnvironmentEdits
from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.policy import CI
from pytest_perfgate.model.metric import Figure
from pytest_perfgate.model.plan import Decision, Effect, Outcome
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.model.verdict import Paired
from tests.unit.core.judge.bench import CONTEXT, accepted, limit, measured, samples, verdict
from tests.unit.core.judge.paired_builds import PAIRED_CONTEXT, paired, paired_verdict

SLOWER, NOT_SLOWER, UNDECIDED = Decision.SLOWER, Decision.NOT_SLOWER, Decision.UNDECIDED


def test_a_line_of_figures_alone_has_no_time_to_compare_with() -> None:
    figures = (Figure(name="registers", value=64.0, dimension=Dimension.COUNT),)
    alone = verdict(1e6, baseline=accepted(0.0, figures=figures))
    assert alone.outcome is Outcome.UNBASELINED
    assert "no time is accepted" in alone.sentence


SAME_CODE = paired(NOT_SLOWER, 0.0, 0.0, 0.0, same=True, differences=())


@pytest.mark.parametrize(
    ("text", "evidence", "outcome"),
    [
        ("slowdown <= -10%", SAME_CODE, Outcome.UNBASELINED),
        ("slowdown <= -10%", paired(NOT_SLOWER, 0.0, -0.01, 0.01), Outcome.BROKEN),
        ("slowdown <= 0%", SAME_CODE, Outcome.PASSED),
    ],
)
def test_only_a_demanded_speed_up_needs_a_base_of_other_code(text: str, evidence: Paired, outcome: Outcome) -> None:
    """Without an accepted time and with a base that holds the same code, nothing can have become faster."""
    assert paired_verdict(1e6, evidence, text, baseline=None).outcome is outcome


@pytest.mark.parametrize(
    ("time", "decision", "shift", "outcome"),
    [
        (1.5e6, UNDECIDED, 0.5, Outcome.UNDECIDED),
        (1.5625e6, UNDECIDED, 0.5, Outcome.ACCEPTED),
        (1.5e6, SLOWER, 0.5, Outcome.ACCEPTED),
        (1e6, SLOWER, 0.5, Outcome.ACCEPTED),
    ],
)
def test_a_reason_is_heard_of_a_case_that_reads_slower(
    time: float, decision: Decision, shift: float, outcome: Outcome
) -> None:
    """By its time or by its builds, and exactly at the limit it does not read slower."""
    context = replace(PAIRED_CONTEXT, edited=accepted(1.5e6, why="exact rounding"))
    evidence = paired(decision, shift, 0.25, 0.75)
    assert paired_verdict(time, evidence, "slowdown <= 50%", context).outcome is outcome


@pytest.mark.parametrize(("low", "outcome"), [(1.5, Outcome.PASSED), (1.5625, Outcome.MOVED)])
def test_a_cleared_case_is_slower_than_accepted_if_all_of_its_interval_is(low: float, outcome: Outcome) -> None:
    evidence = paired(NOT_SLOWER, 0.0, -0.01, 0.01, moved=(("driver", "1", "2"),), base_ns=1e6)
    shape = (low, low, low)
    assert paired_verdict(1e6, evidence, "slowdown <= 50%", shape=shape).outcome is outcome


@pytest.mark.parametrize(
    ("low", "fields", "outcome"),
    [
        (0.5, {}, Outcome.PASSED),
        (2.0, {}, Outcome.MOVED),
        (0.5, {"shared": ("x.py",)}, Outcome.SUSPECT),
        (0.5, {"moved": (("driver", "1", "2"),)}, Outcome.PASSED),
    ],
)
def test_a_far_time_whose_interval_shows_nothing_leaves_the_case_to_the_builds(
    low: float, fields: dict[str, Any], outcome: Outcome
) -> None:
    evidence = paired(NOT_SLOWER, 0.0, -0.01, 0.01, base_ns=3e6, **fields)
    verdict = paired_verdict(1e6, evidence, shape=(low, 3.0, 5.5))
    assert verdict.outcome is outcome
    assert ("passing" in dict(verdict.evidence)) is False


@pytest.mark.parametrize(("others", "outcome"), [(0.0, Outcome.MOVED), (0.9, Outcome.PASSED)])
def test_neighbours_explain_a_slowdown_before_an_edited_environment_does(others: float, outcome: Outcome) -> None:
    edits = EnvironmentEdits(requirements=("-numpy==1", "+numpy==2"))
    context = replace(PAIRED_CONTEXT, environment_edits=edits)
    processes = tuple(samples(2e6, others=others, cpu=()) for _ in range(3))
    taken = measured(2e6, processes=processes)
    evidence = paired(NOT_SLOWER, 0.0, -0.01, 0.01, base_ns=1e6)
    report = judge(taken, [limit("slowdown <= 3%")], baseline=accepted(1e6), context=context, paired=evidence)
    assert report.verdicts[0].outcome is outcome


def test_an_edit_without_a_reason_stays_a_regression_of_code_that_builds_cleared() -> None:
    context = replace(PAIRED_CONTEXT, edited=accepted(3e6, why=""))
    evidence = paired(NOT_SLOWER, 0.0, -0.01, 0.01, base_ns=0.0)
    assert paired_verdict(3e6, evidence, context=context).outcome is Outcome.REGRESSED


@pytest.mark.parametrize(("count", "effect"), [(3, Effect.FAIL), (2, Effect.WARN)])
def test_what_an_edited_environment_moved_fails_in_ci_unless_too_few_processes_show_it(
    count: int, effect: Effect
) -> None:
    edits = EnvironmentEdits(requirements=("-numpy==1", "+numpy==2"))
    context = replace(PAIRED_CONTEXT, environment_edits=edits, policy=CI)
    evidence = paired(NOT_SLOWER, 0.0, -0.01, 0.01, base_ns=3e6)
    taken = measured(3e6, processes=tuple(samples(3e6) for _ in range(count)))
    report = judge(taken, [limit("slowdown <= 3%")], baseline=accepted(1e6), context=context, paired=evidence)
    assert (report.verdicts[0].outcome, report.verdicts[0].effect) == (Outcome.MOVED, effect)


GROUPED = (0.75, 0.75, 3.0, 3.0)


@pytest.mark.parametrize(
    ("shape", "context", "outcome"),
    [
        (GROUPED, replace(CONTEXT, paired_available=True), Outcome.UNSTABLE),
        (GROUPED, replace(CONTEXT, edited=accepted(2e6, why="")), Outcome.REGRESSED),
    ],
)
def test_groups_of_processes_leave_only_a_suspicion_open(
    shape: tuple[float, ...], context: JudgeContext, outcome: Outcome
) -> None:
    assert verdict(1e6, shape=shape, context=context).outcome is outcome
