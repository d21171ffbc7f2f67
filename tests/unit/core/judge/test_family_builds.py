"""Means of families that the rounds of two builds decide."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.family import (
    family_notes,
    is_in_a_mean,
    mean_logarithms,
    open_in_family,
    open_in_rounds,
    open_means,
    slower_in_family,
)
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.model.metric import Interval
from pytest_perfgate.model.plan import CaseKey, Decision, Mode, Outcome
from pytest_perfgate.model.verdict import Arms, CaseReport, Paired
from tests.unit.core.judge.bench import CONTEXT, accepted, limit, measured
from tests.unit.core.judge.suites import FAMILY as MATRIX_FAMILY
from tests.unit.core.judge.suites import PLAIN_CONTEXT

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


def said(*members: CaseReport, families: int = 1, share: float = 1.0) -> str:
    limits = {FAMILY: [MEAN], **{f"t.py::test_{n}": [MEAN] for n in range(1, families)}}
    notes = family_notes(members, limits, replace(CONTEXT, share=share))
    return next(note.text for note in notes if FAMILY in note.text)


def steady(shift: float, rounds: int) -> tuple[float, ...]:
    return tuple(shift + 0.001 * (at % 3) for at in range(rounds))


def test_rounds_side_by_side_confirm_what_chance_between_runs_would_explain() -> None:
    assert said(member(1, steady(0.1, 10), 0.105), member(2, steady(0.12, 10), 0.127)).startswith("regressed: t.py")
    assert said(member(1, steady(0.1, 10), 0.105)).endswith("; slower side by side")
    assert said(member(1, steady(0.02, 10), 0.02)).startswith("passed: ")
    assert said(member(1, steady(0.1, 10), 0.105, same=True)).startswith("moved: ")


def test_too_few_rounds_or_other_ones_confirm_nothing_and_say_what_could() -> None:
    few = member(1, steady(0.1, 5), 0.105)
    assert said(few).endswith("; 8 rounds of all its cases could confirm it, and there were 5")
    mixed = said(few, member(2, steady(0.1, 10), 0.105))
    assert mixed.startswith("suspect: ")
    assert mixed.endswith("; 8 rounds of all its cases could confirm it, and there were 5")
    enough = said(member(1, steady(0.1, 10), 0.105), member(2, steady(0.1, 12), 0.105))
    assert enough.startswith("regressed: "), "the rounds that all of them had are enough"
    eight = member(1, (*steady(0.1, 7), 0.0), 0.105)
    assert said(eight).endswith("; 8 rounds do not confirm it"), "they could have"
    torn = member(1, (0.3, -0.1) * 5, 0.105)
    assert said(torn).startswith("undecided: ")
    assert said(torn).endswith(", which spans the limit")
    assert said(member(1, steady(0.1, 11), 0.105), families=20).startswith("suspect: ")
    assert said(member(1, steady(0.1, 12), 0.105), families=20).startswith("regressed: ")
    assert said(member(1, steady(0.1, 11), 0.105), families=20).endswith(
        "12 rounds of all its cases could confirm it, and there were 11"
    )
    for rounds, outcome in ((10, "suspect: "), (11, "regressed: ")):
        one = member(1, steady(0.1, rounds), 0.105)
        assert said(one, share=0.125).startswith(outcome), "eight shards alarm as rarely as one run"


def test_what_the_change_accepts_is_not_what_the_arms_measured() -> None:
    one = replace(member(1, steady(0.1, 10), 0.105), accepts=replace(accepted(0.97e6), why="wider"))
    assert said(one).startswith("accepted: ")
    others = [member(number, steady(0.3, 10), 0.35) for number in (2, 3, 4)]
    assert said(one, *others).startswith("undecided: "), "a mean of both kinds is no mean of rounds"


@pytest.mark.parametrize(
    ("context", "shift", "line", "outcome", "says"),
    [
        (CONTEXT, 0.1, {"why": "wider"}, "accepted: ", "; this change accepts the times of 1 case"),
        (CONTEXT, 0.02, {"why": "wider"}, "passed: ", "; in two builds +2.1 %"),
        (CONTEXT, 0.1, {"why": ""}, "regressed: ", "; slower side by side"),
        (CONTEXT, 0.1, {"why": "wider", "time": 2e6}, "regressed: ", "; slower side by side"),
        (CONTEXT, 0.1, {"why": "wider", "runs": 1}, "passed: ", "over 1 case"),
        (replace(CONTEXT, mode=Mode.QUICK), 0.1, {"why": "wider"}, "passed: ", "over 1 case"),
    ],
    ids=["slower", "no slower", "no reason", "another time", "of before", "a quick look"],
)
def test_two_builds_decide_a_mean_where_the_change_brings_the_first_lines(
    context: JudgeContext, shift: float, line: dict[str, Any], outcome: str, says: str
) -> None:
    """Kernels three times as slow kept the limit of their mean against times that the change itself accepted."""
    first = replace(accepted(1e6, runs=0), **line)
    report = judge(measured(1e6, key=CaseKey(nodeid=f"{FAMILY}[1]")), [MEAN], baseline=first, context=context)
    assert family_text(report, context).startswith("passed: " if "over 1 case" in says else "undecided: ")
    text = family_text(replace(report, builds=Arms(base="c0ffee", differences=steady(shift, 10))), context)
    assert text.startswith(outcome)
    assert says in text


@pytest.mark.parametrize(("reasons", "outcome"), [(("wider", "wider"), "accepted: "), (("wider", ""), "regressed: ")])
def test_each_first_line_of_a_slower_mean_needs_its_reason(reasons: tuple[str, str], outcome: str) -> None:
    arms, reports = Arms(base="c0ffee", differences=steady(0.1, 10)), []
    for number, why in enumerate(reasons):
        line, measurement = (
            replace(accepted(1e6, runs=0), why=why),
            measured(1e6, key=CaseKey(nodeid=f"{FAMILY}[{number}]")),
        )
        reports.append(replace(judge(measurement, [MEAN], baseline=line, context=CONTEXT), builds=arms))
    (note,) = family_notes(reports, {FAMILY: [MEAN]}, CONTEXT)
    assert note.text.startswith(outcome)


def family_text(report: CaseReport, context: JudgeContext) -> str:
    return next(note.text for note in family_notes([report], {FAMILY: [MEAN]}, context))


@pytest.mark.parametrize(("rounds", "among", "confirms"), [(7, 1, False), (8, 1, True), (8, 2, False), (9, 2, True)])
def test_a_mean_pays_for_the_others(rounds: int, among: int, confirms: bool) -> None:
    assert slower_in_family(steady(0.1, rounds), 0.05, among) is confirms
    assert not slower_in_family(steady(0.04, rounds), 0.05, among), "it does not count"
    assert not slower_in_family((), 0.05, among)


def test_a_round_speaks_for_all_cases_at_once() -> None:
    both = [member(1, (0.0, 0.2), 0.1), member(2, (0.2, 0.0), 0.1)]
    assert mean_logarithms(both) == pytest.approx((0.1, 0.1))
    assert mean_logarithms([*both, replace(both[0], arms=None)]) == ()
    assert open_in_family(both, 1)[0] is Outcome.SUSPECT


def test_a_case_is_judged_with_others_where_a_mean_runs_over_its_family() -> None:
    first, call = CaseKey(nodeid=f"{FAMILY}[1]"), CaseKey(nodeid=f"{FAMILY}[2]", name="fwd")
    for text, expected in (("slowdown", True), ("slowdown, family=test_f*", True), ("slowdown, family=test_g", False)):
        families = {FAMILY: [limit(f"geomean({text}) <= 5%")]}
        assert [is_in_a_mean(key, families) for key in (first, call)] == [expected] * 2
        assert not is_in_a_mean(CaseKey(nodeid="t.py::test_other"), families)
    both = [limit("geomean(slowdown, family=test_g) <= 5%"), MEAN]
    assert is_in_a_mean(first, {FAMILY: both}), "one of several is enough"


def report(time: float | None, param: str = "1", **fields) -> CaseReport:
    key = CaseKey(nodeid=f"{MATRIX_FAMILY}[{param}]")
    if time is None:
        return CaseReport(key=key, verdicts=())
    line = accepted(1e6, key=key, **fields)
    return judge(measured(time, key=key, shape=(1.0, 1.0, 1.0)), [], baseline=line, context=PLAIN_CONTEXT)


def note(text: str, *times: float | None):
    members = [report(time, str(at)) for at, time in enumerate(times)]
    (result,) = family_notes(members, {MATRIX_FAMILY: [limit(text)]}, PLAIN_CONTEXT)
    return result


def beside(number: int, time: float, rounds: tuple[float, ...] | None, *, detects: float = 0.5, **fields) -> CaseReport:
    """A case with an accepted time of 1 ms that detects little, and the rounds of two builds beside it."""
    key = CaseKey(nodeid=f"{FAMILY}[{number}]")
    line = accepted(1e6, key=key, detects=detects) if detects else None
    case = judge(measured(time, key=key), [MEAN], baseline=line, context=CONTEXT)
    builds = Arms(base="c0ffee", differences=rounds, **fields) if rounds is not None else None
    return replace(case, builds=builds)


@pytest.mark.parametrize(
    ("members", "outcome"),
    [
        ([beside(1, 1e6, None), beside(2, 1e6, None)], "undecided"),
        ([beside(1, 1e6, steady(0.0, 9)), beside(2, 1e6, steady(0.01, 9))], "passed"),
        ([beside(1, 1.2e6, steady(0.0, 9)), beside(2, 1.2e6, steady(0.01, 9))], "passed"),
        ([beside(1, 1e6, steady(0.1, 9)), beside(2, 1e6, steady(0.1, 9))], "regressed"),
        ([beside(1, 1e6, steady(0.1, 9), same=True), beside(2, 1e6, steady(0.1, 9))], "moved"),
        ([beside(1, 1e6, steady(0.1, 6)), beside(2, 1e6, steady(0.1, 9))], "undecided"),
        ([beside(1, 1e6, steady(0.0, 6)), beside(2, 1e6, steady(0.0, 9))], "passed"),
        ([beside(1, 1e6, (), same=True), beside(2, 1e6, (), same=True)], "passed"),
        ([beside(1, 1e6, ()), beside(2, 1e6, ())], "undecided"),
        ([beside(1, 1e6, (0.0,) * 8 + (math.inf,)), beside(2, 1e6, (math.nan,) * 9)], "undecided"),
        ([beside(1, 1e6, (-0.2, 0.2) * 5), beside(2, 1e6, (0.2, -0.2) * 5)], "passed"),
        ([beside(1, 1e6, (-0.2, 0.2) * 5), beside(2, 1e6, (-0.2, 0.2) * 5)], "undecided"),
        ([beside(1, 1e6, steady(0.0, 9), detects=0.0), beside(2, 1e6, steady(0.01, 9), detects=0.0)], "passed"),
        ([beside(1, 1e6, steady(0.1, 9), detects=0.0), beside(2, 1e6, steady(0.1, 9), detects=0.0)], "regressed"),
        ([beside(1, 1e6, None, detects=0.0), beside(2, 1e6, steady(0.1, 9), detects=0.0)], "not measured"),
        ([beside(1, 1e6, (0.0,) * 8 + (math.inf,)), beside(2, 1e6, steady(0.0, 9))], "passed"),
        ([beside(1, 1e6, (-0.2, 0.2) * 3 + (0.0,)), beside(2, 1e6, (0.2, -0.2) * 3 + (0.0,))], "passed"),
    ],
)
def test_two_builds_decide_a_mean_that_the_accepted_times_leave_open(members: list[CaseReport], outcome: str) -> None:
    """A round shares what the machine does to all of its cases, so their mean is taken round by round."""
    assert said(*members).startswith(f"{outcome}: ")
    shown = said(*members)
    measured_beside = outcome in {"passed", "regressed", "moved"}
    assert ("in two builds" in shown) is measured_beside or outcome == "undecided"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("geomean(slowdown) <= 0", ("regressed: ", "slower side by side")),
        ("geomean(slowdown) <= -5%", ("broken: ", "the whole interval misses the limit")),
    ],
)
def test_a_demanded_speed_up_is_not_confirmed_by_rounds(text: str, words: tuple[str, str]) -> None:
    (note,) = family_notes([member(1, steady(0.1, 10), 0.105)], {FAMILY: [limit(text)]}, CONTEXT)
    assert (note.text.startswith(words[0]), note.text.endswith(words[1])) == (True, True)


@pytest.mark.parametrize(
    ("rounds", "time", "detects", "outcome", "words"),
    [
        (10, 3e6, 0.01, "regressed: ", "chance explains up to"),
        (2, 1.1e6, 0.5, "suspect: ", "a whole run may be off by"),
        (0, 1.1e6, 0.5, "not measured: ", "slowdown of 1 of 2 cases was not measured"),
    ],
)
def test_a_mean_of_which_some_cases_have_rounds_is_judged_by_accepted_times_too(
    rounds: int, time: float, detects: float, outcome: str, words: str
) -> None:
    shown = said(member(1, steady(0.1, rounds), 0.105), beside(2, time, None, detects=detects))
    assert shown.startswith(outcome)
    assert words in shown


def test_a_mean_that_the_accepted_times_decide_asks_no_builds() -> None:
    noisy = [beside(1, 1e6, steady(0.1, 9)), beside(2, 1e6, steady(0.1, 9))]
    clear = [beside(1, 1e6, steady(0.1, 9), detects=0.01), beside(2, 1e6, steady(0.1, 9), detects=0.01)]
    families = {FAMILY: [MEAN]}
    assert open_means([replace(one, builds=None) for one in noisy], families, CONTEXT) == {one.key for one in noisy}
    assert open_means(clear, families, CONTEXT) == set()
    assert said(*clear).startswith("passed: ")
    of_times = {FAMILY: [limit("geomean(time) <= 1ns")]}
    assert open_means(noisy, of_times, CONTEXT) == set()


@pytest.mark.parametrize(
    ("text", "open_"),
    [
        ("geomean(slowdown) <= 5%", True),
        ("geomean(slowdown) <= 0", True),
        ("geomean(slowdown) <= -5%", False),
        ("geomean(slowdown) <= -0.01%", False),
        ("geomean(time) <= 1ms", False),
    ],
)
def test_only_means_of_slowdowns_are_measured_in_two_builds(text: str, *, open_: bool) -> None:
    """A demanded speed-up and a mean of times are judged by the accepted times alone."""
    members = [beside(number, 1e6, None) for number in (1, 2)]
    assert bool(open_means(members, {FAMILY: [limit(text)]}, CONTEXT)) is open_


def test_the_note_says_what_two_builds_leave_open() -> None:
    wide = beside(1, 1e6, (-0.2, 0.2) * 5)
    assert said(wide, wide).endswith("in two builds +0.0 % [-18.1, +22.1], which spans the limit")
    few = [beside(1, 1e6, steady(0.1, 7)), beside(2, 1e6, None)]
    assert "in two builds" in said(*few)
    assert said(*few).startswith("undecided: ")


def test_eight_rounds_of_each_case_are_enough() -> None:
    for rounds, outcome in ((7, "suspect"), (8, "regressed")):
        assert said(*[beside(number, 1e6, steady(0.1, rounds)) for number in (1, 2)]).startswith(f"{outcome}: ")


@pytest.mark.parametrize(
    ("rounds", "open_"),
    [(steady(0.0, 8), False), (steady(0.1, 8), False), ((-0.2, 0.2) * 5, True), (steady(0.1, 7), True), ((), False)],
)
def test_a_mean_that_rounds_leave_open_gets_more(rounds: tuple[float, ...], *, open_: bool) -> None:
    keys = {CaseKey(nodeid=f"{FAMILY}[{number}]") for number in (1, 2)}
    others = {CaseKey(nodeid="t.py::test_other"): (measured(1e6), (-0.2, 0.2) * 5)}
    played = {**dict.fromkeys(keys, (measured(1e6), rounds)), **others}
    assert open_in_rounds({FAMILY: [MEAN]}, CONTEXT, played) == (keys if open_ else set())


def test_cases_that_are_slow_in_the_same_rounds_tell_less_than_their_own_intervals() -> None:
    """The noise of a round is that of all its cases, so their mean is not narrower than one of them."""
    together_slow = tuple(0.03 + 0.08 * (-1) ** at for at in range(10))
    alike = [member(number, together_slow, 0.03) for number in range(16)]
    assert said(*alike).startswith("undecided: ")
    assert said(*alike).endswith("spans the limit")
    alone = [
        member(number, tuple(0.03 + 0.08 * (-1) ** (at + number) for at in range(10)), 0.03) for number in range(16)
    ]
    assert said(*alone).startswith("passed: ")


def test_a_mean_of_another_device_gets_no_more_rounds() -> None:
    keys = {CaseKey(nodeid=f"{FAMILY}[{number}]") for number in (1, 2)}
    played = dict.fromkeys(keys, (measured(1e6), (-0.2, 0.2) * 5))
    assert open_in_rounds({FAMILY: [replace(MEAN, on=("H100*",))]}, CONTEXT, played) == set()
    assert open_in_rounds({FAMILY: [replace(MEAN, on=("H100*", measured(1e6).device.key))]}, CONTEXT, played) == keys
