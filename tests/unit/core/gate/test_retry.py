from __future__ import annotations

from dataclasses import replace

from pytest_perfgate.core.stats.summary import exhausted, left_of
from pytest_perfgate.model.plan import Plan

PLAN = replace(Plan(), warmup_ns=200e6, budget_ns=800e6, min_samples=20)


def test_what_is_left_is_cut_alike() -> None:
    left = left_of(PLAN, 500e6, 2000)
    assert left is not None
    assert (left.warmup_ns, left.budget_ns) == (100e6, 400e6)
    assert replace(left, warmup_ns=PLAN.warmup_ns, budget_ns=PLAN.budget_ns) == PLAN


def test_there_must_be_room_for_the_samples_that_are_asked_for() -> None:
    assert left_of(PLAN, 440e6, 20) is not None
    assert left_of(PLAN, 450e6, 20) is None
    assert left_of(replace(PLAN, least_samples=200), 450e6, 200) is None
    assert left_of(PLAN, 450e6, 200) is not None


def test_one_long_sample_is_as_long_as_all_that_are_asked_for() -> None:
    assert left_of(PLAN, 30e6, 1) is not None
    assert left_of(PLAN, 45e6, 1) is None


def test_exactly_enough_is_enough() -> None:
    assert left_of(PLAN, 500e6, 25) is not None
    assert left_of(PLAN, 500e6, 24) is None


def test_nothing_is_left_of_a_budget_that_is_spent_or_that_there_never_was() -> None:
    assert left_of(PLAN, 1000e6, 2000) is None
    assert left_of(PLAN, 2500e6, 2000) is None
    assert left_of(replace(PLAN, warmup_ns=0.0, budget_ns=0.0), 0.0, 0) is None
    assert exhausted(PLAN, 2500e6)[1] == "0 s of 1 s were left: too little for 20 samples"


def test_a_slice_of_a_budget_is_whole_again() -> None:
    turn = replace(PLAN, witness=True, min_samples=2000, warmup_ns=0.0)
    assert left_of(turn, 5e9, 1) == turn
