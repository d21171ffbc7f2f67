"""Tests of core/stats/costs: what is left of a run and of a comparison, in figures and words, and who has which shard."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pytest_perfgate.core.stats.costs import (
    PAIRED,
    STARTING,
    NeededRounds,
    PairCost,
    PairTimes,
    TimeLeft,
    cost_line,
    costs_digest,
    costs_of,
    divided,
    first_wants,
    left_words,
    pair_cost,
    paired_costs,
    seconds_of,
    waiting,
)
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.measurement import Identity, Samples, Stop
from pytest_perfgate.model.plan import Case, CaseKey, Outcome, Plan
from pytest_perfgate.model.protocol import Capture, CaseResult
from pytest_perfgate.model.verdict import PairedRound
from tests.reports import case as case_report

PLAN = Plan(warmup_ns=0.5e9, budget_ns=1.5e9)
CASES = [Case(nodeid=f"t.py::test_{name}", limits=(), plan=PLAN) for name in "abcd"]
NAMES = [case.nodeid for case in CASES]


def with_rounds(*rounds: int) -> list[Case]:
    return [replace(case, plan=replace(PLAN, rounds=count)) for case, count in zip(CASES, rounds)]


@pytest.mark.parametrize(
    ("count", "part", "says"),
    [
        (0, 1.0, "4 tests, 5 rounds, about 33 s, a first guess"),
        (1, 1.0, "4 tests, 5 rounds, about 32 s, a first guess"),
        (2, 1.0, "4 tests, 5 rounds, about 30 s"),
        (0, 0.5, "4 tests, 5 rounds, about 19 s, a first guess; sampling cut to 50 % by the budget"),
    ],
)
def test_a_cost_is_a_guess_where_most_cases_are_new(count: int, part: float, says: str) -> None:
    """Rounds are those of the case with most, and each case has its own: 3 + 5 + 3 + 3 rounds of two seconds."""
    cases = with_rounds(3, 5, 3, 3)
    assert cost_line(cases, {name: 1.6 for name in NAMES[:count]}, part) == says
    assert seconds_of(cases, {}) == (5.0, 28.0)


def test_rounds_outside_of_cases_are_shared_by_all() -> None:
    cases = with_rounds(3, 5)
    results = {one.nodeid: CaseResult(case=one, captures=((),), seconds=1.0) for one in cases}
    assert costs_of(results, 18.0) == {NAMES[0]: 1.0, NAMES[1]: 1.0, STARTING: 2.0}
    assert costs_of(results, 8.0) == {NAMES[0]: 1.0, NAMES[1]: 1.0}, "all of it was sampling"
    short = {NAMES[0]: CaseResult(case=cases[0], captures=((),), seconds=0.25)}
    assert costs_of(short, 1.75) == {NAMES[0]: 0.25, STARTING: 0.3333}
    uneven = {NAMES[0]: CaseResult(case=cases[0], captures=((),), seconds=0.12345678)}
    assert costs_of(uneven, 0.0) == {NAMES[0]: 0.1235}
    idle = {NAMES[0]: CaseResult(case=cases[0], captures=((),), seconds=0.0)}
    assert costs_of(idle, 18.0) == {NAMES[0]: 0.0}, "a case that took no time says nothing"


@pytest.mark.parametrize(
    ("costs", "learnt"),
    [
        ({}, False),
        ({STARTING: 1.0}, False),
        (dict.fromkeys(NAMES, 1.0), False),
        ({STARTING: 1.0, **dict.fromkeys(NAMES[:3], 1.0)}, False),
        ({STARTING: 1.0, **dict.fromkeys(NAMES, 1.0)}, True),
    ],
)
def test_what_is_left_is_learnt_where_every_cost_is_known(costs: dict[str, float], *, learnt: bool) -> None:
    now = [0.0]
    time_left = TimeLeft(CASES, costs, lambda: now[0])
    assert time_left.learnt is learnt
    for name in NAMES:
        time_left.note(0, name, 1.0, last=False)
    assert time_left.learnt


def test_what_is_left_counts_starts_that_are_still_to_come() -> None:
    now = [10.0]
    time_left = TimeLeft(with_rounds(2, 3), {STARTING: 4.0, NAMES[0]: 1.0, NAMES[1]: 2.0}, lambda: now[0])
    assert time_left.left_s == pytest.approx(3 * 4 + 2 * 1 + 3 * 2)
    now[0] = 17.0  # a start of six seconds, and one of the case
    time_left.note(0, NAMES[0], 1.0, last=False)
    assert time_left.left_s == pytest.approx(2 * 6 + 1 + 3 * 2)
    now[0] = 19.0
    time_left.note(0, NAMES[1], 2.0, last=False)
    assert time_left.left_s == pytest.approx(2 * 6 + 1 + 2 * 2)
    now[0] = 22.0  # the second start took two
    time_left.note(1, NAMES[0], 1.0, last=True)
    assert time_left.left_s == pytest.approx(1 * 2 + 2 * 2)
    time_left.extend([NAMES[1]], 5)
    assert time_left.left_s == pytest.approx(3 * 2 + 4 * 2)
    now[0] = 28.0  # the third start took four: three on average after the first
    time_left.note(2, NAMES[1], 2.0, last=False)
    assert time_left.left_s == pytest.approx(2 * 3 + 3 * 2)


@pytest.mark.parametrize(
    ("cases", "least", "most", "left_s", "learnt", "says"),
    [
        (2, 7, 30, math.inf, False, "21 s to 1 min 30 s, a first guess"),
        (2, 7, 30, math.inf, True, "21 s to 1 min 30 s"),
        (2, 7, 30, 60.0, True, "21 s to 1 min 0 s"),
        (2, 7, 30, 12.0, True, "21 s or more"),
        (2, 7, 7, math.inf, True, "21 s"),
    ],
)
def test_a_comparison_takes_between_its_least_and_its_most_rounds(
    cases: int, least: int, most: int, left_s: float, learnt: bool, says: str
) -> None:
    assert PairCost(2.0, 0.5, learnt).between(cases, least, most, left_s) == says


def test_two_builds_start_as_fast_as_one_process_shows_until_it_is_known() -> None:
    assert pair_cost([], {STARTING: 9.0}).start_s == 9.0
    assert pair_cost([], {STARTING: 2.0}).start_s == 2.5
    assert pair_cost([], {STARTING: 0.4}).start_s == 0.8
    assert pair_cost([], {STARTING: 9.0, PAIRED: 3.0}) == PairCost(3.0, 0.25, learnt=True)
    assert pair_cost(["a", "b"], {f"{PAIRED} a": 1.0}).test_s == pytest.approx((1.0 + 0.25) / 2)


@pytest.mark.parametrize(
    ("tests", "start_s", "costs"),
    [
        ({"a": 1.23456, "b": 0.0}, 2.0, {f"{PAIRED} a": 1.2346, PAIRED: 2.0}),
        ({"a": 1.0}, 0.0, {f"{PAIRED} a": 1.0}),
        ({"a": 1.0}, 2.00004, {f"{PAIRED} a": 1.0, PAIRED: 2.0}),
        ({"a": 1.0}, 0.5, {f"{PAIRED} a": 1.0, PAIRED: 0.5}),
        ({"a": 0.5, "b": 0.0}, -1.0, {f"{PAIRED} a": 0.5}),
        ({"a": 0.0}, 2.0, {}),
    ],
)
def test_costs_of_a_comparison_are_what_was_measured(
    tests: dict[str, float], start_s: float, costs: dict[str, float]
) -> None:
    assert paired_costs(tests, start_s) == costs


DEVICE = Device(key="h", name="h", kind="host")


def played(number: int, name: str, seconds: float, share_s: float = 0.0, *, timed: bool = True) -> PairedRound:
    samples = (Samples(durations=(1e6,), timer="host", stop=Stop.COUNT),) if timed else ()
    head = Capture(key=CaseKey(nodeid=name), samples=samples, device=DEVICE, identity=Identity(device="h"))
    return PairedRound(nodeid=name, phase="round", number=number, head=(head,), seconds=seconds, share_s=share_s)


ROUNDS = [
    played(0, "a", 2.0, 6.0), played(0, "b", 3.0, 8.0), played(1, "a", 1.0, 2.0), played(1, "b", 5.0, 6.5),
    played(2, "a", 4.0, 4.5), played(2, "b", 4.0, 4.0),
]  # fmt: skip
"""Starts of 9, 2.5 and 0.5 seconds; a takes 1 to 4, b 3 to 5."""


@pytest.mark.parametrize(
    ("done", "rounds", "least", "most"),
    [
        (0, (0, 0), 1 + 3, 4 + 5),
        (1, (0, 0), 3, 5),
        (2, (0, 0), 0, 0),
        (2, (2, 10), 2 * (1 + 3 + 0.5), 10 * (4 + 5 + 2.5)),
        (0, (1, 1), 4 + 4 + 0.5, 9 + 9 + 2.5),
    ],
)
def test_a_comparison_has_left_what_its_quickest_and_slowest_rounds_took(
    done: int, rounds: tuple[int, int], least: float, most: float
) -> None:
    """The first start is not one of them: files are read from the disk in it."""
    times = PairTimes(ROUNDS)
    assert times.starts == [2.5, 0.5]
    assert times.left_s(["a", "b"], done, rounds) == (pytest.approx(least), pytest.approx(most))


def test_a_round_goes_on_test_by_test() -> None:
    now = [replace(one, number=3, share_s=0.0) for one in ROUNDS[-2:]]  # a round's own time is shared at its end
    times = PairTimes(ROUNDS, started_s=7.0)
    for one in now:
        times.add(one)
    whole = PairTimes([*ROUNDS, *now], started_s=7.0)
    assert (times.usual, times.costs) == (whole.usual, whole.costs)
    assert times.left_s(["a", "b"], 1, (2, 9)) == whole.left_s(["a", "b"], 1, (2, 9))


def test_only_tests_that_are_timed_have_rounds_for_sure() -> None:
    rounds = [played(number, "a", 1.0, 2.0, timed=False) for number in range(3)]
    assert PairTimes(rounds).left_s(["a"], 0, (5, 5)) == (1.0, 1.0 + 5 * (1.0 + 1.0))
    untimed, timed = rounds[0].head[0], played(0, "a", 1.0).head[0]
    for head, sure_s in (((), 0.0), ((untimed, timed), 5 * (1.0 + 1.0))):
        times = PairTimes([replace(one, head=head) for one in rounds])
        assert times.left_s(["a"], 0, (5, 5)) == (1.0 + sure_s, 1.0 + 5 * (1.0 + 1.0))


def test_a_test_that_no_round_has_played_yet_may_take_any_time() -> None:
    assert PairTimes(ROUNDS).left_s(["a", "c"], 0, (0, 0)) == (1.0, math.inf)
    assert PairTimes((), started_s=3.0).starts == [3.0]
    assert PairTimes(()).starts == [0.0]
    assert PairTimes(ROUNDS, started_s=7.0).starts == [2.5, 0.5, 7.0]


def test_the_usual_time_of_a_test_is_the_mean_of_its_rounds() -> None:
    assert PairTimes(ROUNDS).usual == {"a": pytest.approx(7 / 3), "b": 4.0}


@pytest.mark.parametrize(
    ("least", "most", "says"),
    [
        (12.0, 68.0, "at least 12 s, at most 1 min 8 s left"),
        (0.9, 68.0, "at most 1 min 8 s left"),
        (1.0, 68.0, "at least 1 s, at most 1 min 8 s left"),
        (0.5, math.inf, "at least under 1 s left"),
        (12.0, math.inf, "at least 12 s left"),
        (0.0, 0.2, "at most 1 s left"),
    ],
)
def test_what_is_left_is_said_between_two_bounds(least: float, most: float, says: str) -> None:
    assert left_words(least, most) == says


@pytest.mark.parametrize(
    ("costs", "bound", "shards"),
    [
        ({"a": 5.0, "b": 4.0, "c": 3.0, "d": 2.0}, (), {"a": 1, "b": 2, "c": 2, "d": 1}),
        ({"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0}, (), {"a": 1, "b": 2, "c": 1, "d": 2}),
        ({"b": 1.0, "a": 1.0}, (), {"b": 2, "a": 1}),
        ({"f[1]": 4.0, "f[2]": 4.0, "c": 1.0, "d": 1.0}, (), {"f[1]": 1, "f[2]": 2, "c": 1, "d": 2}),
        ({"f[1]": 4.0, "f[2]": 4.0, "c": 1.0, "d": 1.0}, ("f",), {"f[1]": 1, "f[2]": 1, "c": 2, "d": 2}),
        ({"f[1]": 1.0, "f[2]": 1.0, "c": 1.0, "d": 1.0}, (), {"f[1]": 1, "f[2]": 1, "c": 2, "d": 2}),
    ],
)
def test_the_longest_go_first_to_the_shard_with_least(
    costs: dict[str, float], bound: tuple[str, ...], shards: dict[str, int]
) -> None:
    """A family is divided if it alone takes more than its shard's part: half of the whole is not more."""
    assert divided(list(costs), 2, costs, bound) == shards


def test_shards_by_names_stay_what_they_are() -> None:
    """Another division would measure every case on another machine. Twenty tests, and one in two shards."""
    names = [f"t.py::test_{at}" for at in range(20)]
    shards = divided(names, 3)
    assert [shards[name] for name in names] == BY_NAMES
    assert divided(["t.py::test_0"], 2, {"t.py::other": 1.0}) == {"t.py::test_0": NEW}
    assert costs_digest({"t.py::test_0": 1.5, STARTING: 2.0}) == DIGEST


BY_NAMES = [2, 2, 2, 2, 1, 3, 2, 3, 3, 1, 1, 1, 3, 2, 1, 3, 3, 2, 3, 2]
NEW, DIGEST = 2, "bc99a9d8f6"


def test_the_worst_of_several_calls_makes_a_test_suspected() -> None:
    slow, fast = case_report("a", 1e3, outcome=Outcome.REGRESSED), case_report("a", 1e3)
    for order in ((slow, fast), (fast, slow)):
        (want,) = first_wants(order, {}, 7).values()
        assert want == NeededRounds(rounds=7, seconds=0.5, suspected=True)
    mixed = replace(slow, verdicts=(*fast.verdicts, *slow.verdicts))
    assert first_wants([mixed], {}, 7)[slow.key.nodeid].suspected
    (unmeasured,) = first_wants([replace(fast, measurement=None)], {}, 7).values()
    assert unmeasured.seconds == 0.25


@pytest.mark.parametrize(("left_s", "late"), [(46.0, set()), (45.9, {"long"})])
def test_nothing_waits_where_twice_the_sum_fits(left_s: float, late: set[str]) -> None:
    wants = {
        "long": NeededRounds(rounds=3, seconds=6.0, suspected=False),
        "short": NeededRounds(rounds=3, seconds=1.0, suspected=False),
    }
    assert 2 * (3 * 2 / 3 + 3 * 6 + 3 * 1) == 46
    assert waiting(wants, left_s, start_s=2 / 3) == late
