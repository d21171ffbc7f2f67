"""A mean of slowdowns that rests on two arms: its rounds convict it, and no sitting is asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.family import family_notes, is_in_a_mean, open_together, slower_together, together
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.model.plan import CaseKey, Outcome
from pytest_perfgate.model.values import Interval
from pytest_perfgate.model.verdict import CaseReport, Decision, Paired
from tests.unit.core.gate.bench import CONTEXT, accepted, limit, measured

FAMILY = "t.py::test_f"
MEAN = limit("geomean(slowdown) <= 5%")


def member(number: int, differences: tuple[float, ...], shift: float, **fields) -> CaseReport:
    bounds = Interval(low=shift - 0.01, high=shift + 0.01)
    arms = Paired(
        decision=Decision.UNDECIDED, differences=differences, shift=shift, interval=bounds, base="c0ffee",
        revision=True, **fields,
    )  # fmt: skip
    key = CaseKey(nodeid=f"{FAMILY}[{number}]")
    return judge(measured(1e6, key=key), [MEAN], baseline=None, context=CONTEXT, paired=arms)


def said(*members: CaseReport, families: int = 1) -> str:
    asked = {FAMILY: [MEAN], **{f"t.py::test_{n}": [MEAN] for n in range(1, families)}}
    return next(note.text for note in family_notes(members, asked, CONTEXT) if FAMILY in note.text)


def steady(shift: float, rounds: int) -> tuple[float, ...]:
    return tuple(shift + 0.001 * (at % 3) for at in range(rounds))


def test_rounds_side_by_side_convict_what_chance_between_sittings_would_explain() -> None:
    assert said(member(1, steady(0.1, 10), 0.105), member(2, steady(0.12, 10), 0.127)).startswith("regressed: t.py")
    assert said(member(1, steady(0.1, 10), 0.105)).endswith("over 1 case; slower side by side")
    assert said(member(1, steady(0.02, 10), 0.02)).startswith("passed: ")
    assert said(member(1, steady(0.1, 10), 0.105, same=True)).startswith("moved: ")


def test_too_few_rounds_or_other_ones_convict_nothing_and_say_what_could() -> None:
    few = member(1, steady(0.1, 5), 0.105)
    assert said(few).endswith("; 5 rounds of all its cases confirm no mean, 7 could")
    mixed = said(few, member(2, steady(0.1, 10), 0.105))
    assert mixed.startswith("suspect: ")
    assert mixed.endswith("; 5 rounds of all its cases confirm no mean, 7 could")
    enough = said(member(1, steady(0.1, 10), 0.105), member(2, steady(0.1, 12), 0.105))
    assert enough.startswith("regressed: "), "the rounds that all of them had are enough"
    seven = member(1, (*steady(0.1, 6), -0.1), 0.105)
    assert said(seven).endswith("; 7 rounds do not confirm it"), "they could have"
    torn = member(1, (0.3, -0.1) * 5, 0.105)
    assert said(torn).startswith("undecided: ")
    assert said(torn).endswith("; 10 rounds do not confirm it")
    assert said(member(1, steady(0.1, 10), 0.105), families=20).startswith("suspect: ")
    assert said(member(1, steady(0.1, 11), 0.105), families=20).startswith("regressed: ")
    assert said(member(1, steady(0.1, 10), 0.105), families=20).endswith(
        "10 rounds of all its cases confirm no mean, 11 could"
    )


def test_what_the_change_accepts_is_not_what_the_arms_measured() -> None:
    one = replace(member(1, steady(0.1, 10), 0.105), accepts=replace(accepted(0.97e6), why="wider"))
    assert said(one).startswith("accepted: ")
    others = [member(number, steady(0.3, 10), 0.35) for number in (2, 3, 4)]
    assert "chance explains up to" in said(one, *others), "a mean of both kinds is no mean of rounds"


@pytest.mark.parametrize(("rounds", "among", "convicts"), [(6, 1, False), (7, 1, True), (7, 2, False), (8, 2, True)])
def test_a_mean_pays_for_the_others(rounds: int, among: int, convicts: bool) -> None:
    assert slower_together(steady(0.1, rounds), 0.05, among) is convicts
    assert not slower_together(steady(0.04, rounds), 0.05, among), "it does not count"
    assert not slower_together((), 0.05, among)


def test_a_round_speaks_for_all_cases_at_once() -> None:
    both = [member(1, (0.0, 0.2), 0.1), member(2, (0.2, 0.0), 0.1)]
    assert together(both) == pytest.approx((0.1, 0.1))
    assert together([*both, replace(both[0], arms=None)]) == ()
    assert open_together(both, 1)[0] is Outcome.SUSPECT


def test_a_case_is_judged_with_others_where_a_mean_runs_over_its_family() -> None:
    first, call = CaseKey(nodeid=f"{FAMILY}[1]"), CaseKey(nodeid=f"{FAMILY}[2]", name="fwd")
    for text, meant in (("slowdown", True), ("slowdown, family=test_f*", True), ("slowdown, family=test_g", False)):
        families = {FAMILY: [limit(f"geomean({text}) <= 5%")]}
        assert [is_in_a_mean(key, families) for key in (first, call)] == [meant] * 2
        assert not is_in_a_mean(CaseKey(nodeid="t.py::test_other"), families)
    both = [limit("geomean(slowdown, family=test_g) <= 5%"), MEAN]
    assert is_in_a_mean(first, {FAMILY: both}), "one of several is enough"
