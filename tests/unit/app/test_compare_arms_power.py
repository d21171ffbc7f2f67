"""Two builds on a card at its power limit: short turns share one clock, long ones show what each build draws."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import pytest

from pytest_perfgate.app.compare_arms import ROUND, Comparison, captures_of
from pytest_perfgate.app.lockstep import Stage
from pytest_perfgate.app.screening import Screening
from pytest_perfgate.core.judge.rounds import Design
from pytest_perfgate.core.judge.samples import pair_of
from pytest_perfgate.model.plan import Decision
from pytest_perfgate.model.protocol import ChildJob
from pytest_perfgate.model.verdict import Paired
from tests.unit.app.power_card import Build, Card, PoweredWorld
from tests.unit.app.scripted_pairs import arm, cases, spec


def compared(base: Build, head: Build, card: Card | None = None) -> tuple[Paired, Comparison, PoweredWorld]:
    world = PoweredWorld(card or Card(), base, head)
    stage = Stage(spawner=world, spec=spec, job=ChildJob(cases=()), timeout_s=1, say=lambda text: None,
                  keep=lambda rounds: None, clock=lambda: 0.0)  # fmt: skip
    comparison = Comparison((arm("base"), arm("head")), cases(1), stage, Design())
    screening = Screening(comparison, lambda key: 0.03)
    screening.decide()
    (paired,) = screening.paired(revision=True).values()
    return paired, comparison, world


def test_a_build_that_only_draws_more_power_is_found() -> None:
    paired, comparison, _ = compared(Build(), Build(watts=880.0))
    assert paired.decision is Decision.SLOWER
    assert 0.03 < paired.shift < 0.06
    assert paired.limited is not None
    assert paired.limited.decides
    then, now = paired.limited.clocks_hz
    assert now < 0.98 * then
    assert paired.limited.watts == pytest.approx((700.0, 700.0), rel=0.02)
    (rounds,) = captures_of(comparison.rounds, ROUND).values()
    short = [tuple(replace(side, samples=(replace(side.samples[-1], settled=None),)) for side in both)
             for both in rounds]  # fmt: skip
    assert abs(median(pair_of(short).differences)) < 0.01, "short turns share one clock and hide it"


def test_the_same_build_is_not_slower_at_the_power_limit() -> None:
    paired, _, _ = compared(Build(), Build())
    assert paired.decision is Decision.NOT_SLOWER
    assert paired.limited is not None
    assert abs(paired.shift) < 0.01


def test_more_cycles_at_the_same_power_are_found_too() -> None:
    paired, _, _ = compared(Build(), Build(cycles=1.05 * 350_000))
    assert paired.decision is Decision.SLOWER
    assert paired.shift == pytest.approx(0.05, abs=0.015)


def test_a_card_below_its_limit_takes_no_long_turns() -> None:
    paired, _, world = compared(Build(watts=300.0), Build(watts=330.0))
    assert (paired.decision, paired.limited) == (Decision.NOT_SLOWER, None)
    assert not [plan for plan in world.plans if plan.settle_ns]


def test_heat_is_a_fault_whatever_the_power_limit_does() -> None:
    _, comparison, _ = compared(Build(), Build(), Card(ambient=70.0, heat=110.0))
    problems = {
        p.code for one in comparison.rounds for c in (*one.base, *one.head) for s in c.samples for p in s.problems
    }
    assert problems == {"throttled"}
