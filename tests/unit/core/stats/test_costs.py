"""What a run costs, told before and while it goes on."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import pytest

from pytest_perfgate.core.judge.rounds import Design
from pytest_perfgate.core.stats.costs import (
    PAIR_TEST_S,
    PAIRED,
    SCREENING,
    STARTING,
    NeededRounds,
    PairCost,
    PairTimes,
    TimeLeft,
    affordable,
    allotted,
    bare_name,
    cost_line,
    cost_of,
    costs_digest,
    costs_of,
    divided,
    first_wants,
    known_wants,
    pair_cost,
    paired_costs,
    positions,
    seconds_of,
    starting_guess,
    waiting,
)
from pytest_perfgate.model.plan import Case, Outcome, Plan
from pytest_perfgate.model.protocol import CaseResult
from pytest_perfgate.model.verdict import PairedRound
from pytest_perfgate.plugin.child_arguments import paired_line
from pytest_perfgate.wiring.stores import read_costs, write_costs
from tests.reports import case as case_report

CASES = [Case(nodeid=f"t.py::test_{at}", limits=(), plan=Plan(warmup_ns=0.2e9, budget_ns=1e9)) for at in range(10)]


def test_costs_are_those_of_last_time_where_they_are_known() -> None:
    assert seconds_of(CASES, {}) == (3.0, pytest.approx(36.0))
    assert seconds_of(CASES, {case.nodeid: 0.1 for case in CASES}) == (3.0, pytest.approx(3.0))
    assert seconds_of([], {}) == (0, 0)
    assert seconds_of(CASES, {STARTING: 4.0}) == (12.0, pytest.approx(36.0))


def test_a_cost_is_no_bound_and_says_what_it_stands_on() -> None:
    assert cost_line(CASES, {}) == "10 tests, 3 rounds, about 39 s, a first guess"
    costs = {case.nodeid: 0.1 for case in CASES}
    assert cost_line(CASES, costs) == "10 tests, 3 rounds, about 6 s"
    assert cost_line(CASES, {**costs, STARTING: 5.0}) == "10 tests, 3 rounds, about 18 s"


@pytest.mark.parametrize(
    ("left_s", "part"), [(float("inf"), 1.0), (39.0, 1.0), (21.0, 0.5), (4.0, 0.1), (0.0, 0.1), (-5.0, 0.1)]
)
def test_a_budget_cuts_sampling_and_never_to_nothing(left_s: float, part: float) -> None:
    assert affordable(CASES, {}, left_s) == pytest.approx(part)


@pytest.mark.parametrize(("left_s", "part"), [(3.375, 1.0), (3.1875, 0.5), (3.0, 0.1), (2.0, 0.1)])
def test_the_start_of_processes_is_not_cut(left_s: float, part: float) -> None:
    """One case samples for three eighths of a second, and three processes start for a second each."""
    assert affordable(CASES[:1], {CASES[0].nodeid: 0.125}, left_s) == part


@pytest.mark.parametrize(
    ("took_s", "starting"), [(12.0, {STARTING: 2.0}), (6.0, {}), (5.0, {})], ids=["one by one", "exactly", "at once"]
)
def test_what_a_round_takes_beside_its_cases_is_remembered(took_s: float, starting: dict[str, float]) -> None:
    results = {case.nodeid: CaseResult(case=case, captures=((),), seconds=0.2) for case in CASES}
    costs = {case.nodeid: 0.2 for case in CASES}
    assert costs_of(results, took_s) == {**costs, **starting}
    lost = {**results, "t.py::test_0": CaseResult(case=CASES[0], outcome="crashed", seconds=9.0)}
    assert costs_of(lost, took_s) == {name: 0.2 for name in costs if name != "t.py::test_0"}, "a crash costs rounds"
    assert costs_of({}, took_s) == {}


def test_costs_are_kept_beside_those_of_other_cases(tmp_path: Path) -> None:
    path = tmp_path / ".perfgate" / "costs.json"
    write_costs(path, {"a": 1.0, STARTING: 2.0})
    write_costs(path, {"b": 1.0, STARTING: 3.0})
    assert read_costs(path) == {"a": 1.0, "b": 1.0, STARTING: 3.0}
    path.write_text('{"a": 1699996144.0, "b": -1.0, "c": NaN, "d": Infinity, "e": 2.5}')
    assert read_costs(path) == {"e": 2.5}
    for broken in ("", "[1]", '{"a": "x"}', '{"a": null}', "{", "[" * 10**6, f'{{"a": 1{"0" * 400}}}'):
        path.write_text(broken, encoding="utf-8")
        assert read_costs(path) == {}


class PlayedRun:
    """A run on a clock of its own: every child starts for so long, and every case takes what it takes."""

    def __init__(self, start_s: float, case_s: float, costs: dict[str, float], first_s: float = 0.0) -> None:
        """``first_s`` is what the first start takes in addition."""
        self.now = 100.0
        self.start_s, self.case_s, self.first_s = start_s, case_s, first_s
        self.left = TimeLeft(CASES, costs, lambda: self.now)
        self.estimates: list[tuple[int, bool, float, float]] = []
        """Round, whether it is learnt, the estimate, and when it was made."""

    def play(self) -> PlayedRun:
        for number in range(3):
            self.now += self.start_s + (0.0 if number else self.first_s)
            for case in CASES:
                self.now += self.case_s
                self.left.note(number, case.nodeid, self.case_s, last=False)
                self.estimates.append((number, self.left.learnt, self.left.left_s, self.now))
        return self


@pytest.mark.parametrize("costs", [{}, {STARTING: 1.0, **{case.nodeid: 0.1 for case in CASES}}], ids=["first", "wrong"])
def test_what_is_left_comes_true_from_the_second_round_on(costs: dict[str, float]) -> None:
    """Checks took three quarters of the time, and the start-up the rest: announced was a seventh."""
    run = PlayedRun(4.6, 2.5, costs).play()
    from_second = [(remaining, run.now - at) for number, _, remaining, at in run.estimates if number]
    assert all(remaining == pytest.approx(true, rel=0.3) for remaining, true in from_second)
    assert from_second[-1] == (0.0, 0.0)
    first = [learnt for number, learnt, _, _ in run.estimates if not number]
    assert first == ([True] * 10 if costs else [False] * 9 + [True])


def test_a_slow_first_start_is_no_measure_of_the_others() -> None:
    run = PlayedRun(2.0, 0.1, {}, first_s=6.0).play()
    assert all(remaining == pytest.approx(run.now - at) for number, _, remaining, at in run.estimates if number)


def test_devices_side_by_side_take_less_and_a_case_that_is_out_takes_nothing() -> None:
    now = [16.0]
    time_left = TimeLeft(CASES[:2], {}, lambda: now[0])
    now[0] = 16.5
    time_left.note(0, CASES[0].nodeid, 0.5, last=False)
    time_left.note(0, CASES[1].nodeid, 0.5, last=False)
    assert time_left.left_s == 1.0, "two seconds of two lanes"
    time_left.note(1, CASES[1].nodeid, 0.0, last=True)
    now[0] = 17.0
    assert time_left.left_s == 1.0, "two rounds of the other alone"
    assert TimeLeft([], {}, lambda: now[0]).left_s == 0.0


def test_a_comparison_is_announced_as_the_last_one_took() -> None:
    seconds = {CASES[0].nodeid: 5.0, CASES[1].nodeid: 7.0, CASES[2].nodeid: 0.0}
    costs = paired_costs(seconds, 11.0)
    assert costs == {PAIRED: 11.0, f"{PAIRED} {CASES[0].nodeid}": 5.0, f"{PAIRED} {CASES[1].nodeid}": 7.0}
    cost = pair_cost(list(seconds)[:2], costs)
    assert cost == PairCost(11.0, 6.0, learnt=True)
    line = "2 tests in two builds, 7 to 30 rounds, 2 min 41 s to 11 min 30 s"
    assert paired_line(2, Design(), math.inf, cost) == line
    assert pair_cost([], {STARTING: 4.6}) == PairCost(4.6, PairCost().test_s), "two start no faster than one"
    assert pair_cost(seconds, {}) == PairCost()
    assert paired_costs(dict.fromkeys(seconds, 0.0), 0.0) == {}, "no round was played"


def test_a_first_child_is_expected_to_start_as_long_as_this_process_took() -> None:
    guesses = [starting_guess(cpu_s)[STARTING] for cpu_s in (0.2, 4.6, 600.0)]
    assert guesses == [1.0, 4.6, 15.0], "threads of a library count their time several times"


SUITE = [f"tests/test_{file}.py::test_{test}[{n}]" for file in range(8) for test in range(10) for n in range(5)]


def loads(shards: dict[str, int], costs: dict[str, float], count: int) -> list[float]:
    return [sum(costs.get(name, 0.0) for name, at in shards.items() if at == index) for index in range(1, count + 1)]


@pytest.mark.parametrize("count", [1, 2, 3, 8, 40])
def test_every_test_has_one_shard_and_families_stay_whole(count: int) -> None:
    shards = divided(SUITE, count)
    assert set(shards) == set(SUITE)
    assert set(shards.values()) <= set(range(1, count + 1))
    homes: dict[str, set[int]] = {}
    for name, index in shards.items():
        homes.setdefault(bare_name(name), set()).add(index)
    assert all(len(home) == 1 for home in homes.values())


def test_a_family_that_no_shard_has_room_for_goes_to_the_one_with_least() -> None:
    """Both families prefer the third shard, and each has more tests than a shard's part."""
    families = ["t.py::test_a", "t.py::test_d"]
    shards = divided([f"{family}[{n}]" for family in families for n in range(5)], 3, bound=families)
    assert {shards[f"{family}[0]"] for family in families} == {1, 3}


@pytest.mark.parametrize("count", [2, 3, 8])
def test_without_costs_all_have_about_as_many(count: int) -> None:
    sizes = Counter(divided(SUITE, count).values())
    assert max(sizes.values()) <= 1.1 * len(SUITE) / count + 5
    assert len(sizes) == count


def test_the_order_of_the_tests_says_nothing() -> None:
    assert divided(SUITE[::-1], 8) == divided(SUITE, 8)


@pytest.mark.parametrize("count", [2, 4, 8])
def test_known_costs_are_spread_evenly(count: int) -> None:
    costs = {name: 0.2 + at % 17 + (30.0 if at % 50 == 0 else 0.0) for at, name in enumerate(SUITE)}
    taken = loads(divided(SUITE, count, costs), costs, count)
    assert max(taken) <= 1.1 * sum(taken) / count


def test_an_added_test_moves_none_whose_cost_is_known() -> None:
    costs = {name: 1.0 + at % 7 for at, name in enumerate(SUITE)}
    before = divided(SUITE, 8, costs)
    added = [f"tests/test_new.py::test_{at}" for at in range(20)]
    after = divided([*added, *SUITE], 8, costs)
    assert {name: after[name] for name in SUITE} == before
    assert divided(SUITE[40:], 8, costs) == {name: before[name] for name in SUITE[40:]}


def test_without_costs_an_added_test_moves_few() -> None:
    before = divided(SUITE, 8)
    moved = []
    for at in range(20):
        after = divided([*SUITE, f"tests/test_new.py::test_{at}"], 8)
        moved.append(sum(after[name] != before[name] for name in SUITE))
    assert sum(moved) / len(moved) <= 0.05 * len(SUITE)


def test_a_family_longer_than_a_shard_is_divided_unless_a_limit_speaks_of_it() -> None:
    one = [f"t.py::test_gemm[{n}]" for n in range(40)]
    sizes = Counter(divided(one, 4).values())
    assert len(sizes) == 4
    assert set(divided(one, 4, bound=["t.py::test_gemm"]).values()) == {
        divided(one, 4, bound=["t.py::test_gemm"])[one[0]]
    }


def test_the_digest_of_costs_tells_them_apart() -> None:
    assert costs_digest({}) == ""
    assert costs_digest({"a": 1.0, "b": 2.0}) == costs_digest({"b": 2.0, "a": 1.0}) != costs_digest({"a": 1.0})


def test_positions_in_the_universe() -> None:
    assert positions(["a", "b", "c"], {"c", "a", "z"}) == (0, 2)


def want(rounds: int, seconds: float = 1.0, *, suspected: bool = True) -> NeededRounds:
    return NeededRounds(rounds=rounds, seconds=seconds, suspected=suspected)


def test_suspects_come_first_and_of_them_the_cheapest_to_decide() -> None:
    wants = {"wild": want(100), "calm": want(10), "open": want(2, suspected=False)}
    plan = allotted(wants, left_s=30, start_s=1)
    assert plan.rounds == {"calm": 10, "open": 2}
    assert set(plan.unreached) == {"wild"}
    assert plan.cost == 10 * 1 + 10 + 2
    assert allotted(wants, math.inf, 1).unreached == {}
    assert allotted(wants, 0, 1).rounds == {}


@pytest.mark.parametrize(
    ("wants", "left_s", "late"),
    [
        ({"long": want(7, 26.0), "short": want(7)}, 100, {"long"}),
        ({"long": want(7, 26.0), "short": want(7)}, 420, set()),
        ({"long": want(7, 26.0)}, 100, set()),
        ({"long": want(7, 26.0), "short": want(7, suspected=False)}, 100, set()),
        ({"long": want(7, 26.0, suspected=False), "short": want(7, suspected=False)}, 100, {"long"}),
        ({"long": want(7, 3.0), "short": want(7), "other": want(7)}, 10, set()),
        ({"long": want(7, 3.0), "short": want(7)}, 10, set()),
        ({"long": want(7, 9.0), "longer": want(7, 30.0), "short": want(7)}, 10, {"long", "longer"}),
    ],
    ids=[
        "too short for both",
        "enough for both twice",
        "alone",
        "slower itself",
        "none slower",
        "no longer than a round",
        "as long as a round",
        "one after the other",
    ],
)
def test_what_makes_rounds_twice_as_long_waits_for_what_is_cheaper(
    wants: dict[str, NeededRounds], left_s: float, late: set[str]
) -> None:
    assert waiting(wants, left_s, start_s=2) == late


def test_before_its_first_round_a_test_wants_what_the_last_comparison_took_or_its_time_tells() -> None:
    measured = [("long", 1e9), ("short", 1e3), ("known", 1e9), ("long", 5e8)]
    reports = [
        case_report(name, time, outcome=Outcome.SUSPECT if name == "short" else Outcome.PASSED)
        for name, time in measured
    ]
    at = "tests/test_k.py::"
    assert first_wants(reports, {f"{PAIRED} {at}known": 2.5}, 7) == {
        f"{at}long": want(7, 26 * 1.5, suspected=False),
        f"{at}short": want(7, 0.25),
        f"{at}known": want(7, 2.5, suspected=False),
    }


def test_rounds_are_started_once_for_all_in_them() -> None:
    together = cost_of([want(10), want(8)], start_s=2)
    assert together == 10 * 2 + 18
    assert together < cost_of([want(10)], 2) + cost_of([want(8)], 2)
    assert cost_of([], 2) == 0


def test_nothing_to_measure_is_cut_by_no_budget() -> None:
    assert affordable([], {}, 0.0) == 1.0


def test_what_fits_exactly_is_given_and_suspects_first_even_where_they_cost_more() -> None:
    suspect, other = (
        NeededRounds(rounds=10, seconds=1.0, suspected=True),
        NeededRounds(rounds=2, seconds=1.0, suspected=False),
    )
    plan = allotted({"open": other, "suspect": suspect}, left_s=21, start_s=1)
    assert (plan.rounds, set(plan.unreached)) == ({"suspect": 10}, {"open"})
    assert not allotted({"open": other, "suspect": suspect}, left_s=22, start_s=1).unreached, "they share their starts"


def test_accepted_times_leave_three_fifths_of_a_budget_to_the_builds() -> None:
    assert pytest.approx(2 / 5) == SCREENING


def test_before_its_first_round_a_test_wants_what_earlier_comparisons_took() -> None:
    names = [case.nodeid for case in CASES[:2]]
    wants = known_wants(names, {PAIRED: 3.0, f"{PAIRED} {names[0]}": 14.0}, 9)
    assert [(wants[name].rounds, wants[name].seconds) for name in names] == [(9, 14.0), (9, PAIR_TEST_S)]
    assert not any(want.suspected for want in wants.values())


def test_the_first_round_of_two_builds_is_no_measure_of_later_starts() -> None:
    rounds = [
        PairedRound(nodeid=name, phase="round", number=number, seconds=2.0, share_s=2.0 + (9.0 if not number else 1.5))
        for number in range(3)
        for name in "ab"
    ]
    assert PairTimes(rounds).costs == {PAIRED: 3.0, f"{PAIRED} a": 2.0, f"{PAIRED} b": 2.0}
    assert PairTimes(rounds[:2]).costs[PAIRED] == 18.0, "there is no other"
    assert PairTimes(()).costs == {}
