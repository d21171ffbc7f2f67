"""A budget of the whole comparison on a clock that the test turns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_perfgate.app.compare_arms import Comparison
from pytest_perfgate.app.screening import Screening, ToDecide
from pytest_perfgate.core.judge.against_revision import arms_of
from pytest_perfgate.core.judge.rounds import Design, figure_finding
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.core.stats.costs import NeededRounds
from pytest_perfgate.model.plan import Decision
from tests.unit.app.scripted_pairs import PROOF, World, arm, cases, compared, staged


def scattered(by: dict[str, float], scatter: float):
    """Heads slower by so much, each round by a known deviation."""
    steps = (0.0, 1.0, -1.0, 0.5, -0.5)

    def time(side: str, nodeid: str, number: int) -> float:
        off = scatter * steps[number % 5] if side == "head" else 0.0
        return 1e6 * (1 + (by.get(nodeid[-1], 0.0) if side == "head" else 0.0) + off)

    return time


def test_a_budget_that_suffices_changes_nothing() -> None:
    world = World(time=scattered({"1": 0.06}, 0.002), start_s=1.0, test_s=1.0, within=0.2)
    _, results, lines = compared(world, budget_s=600)
    assert [results[name].decision for name in "012"] == [Decision.NOT_SLOWER, Decision.SLOWER, Decision.NOT_SLOWER]
    assert lines == ["3 of 3 cases decided in 7 to 11 rounds"]
    assert world.now == 7 * (2 + 3) + 4 * (2 + 1)


def test_what_reads_slower_is_decided_first_and_the_rest_says_what_it_wants() -> None:
    world = World(time=scattered({"1": 0.06}, 0.002), start_s=1.0, test_s=1.0, within=0.2)
    _, results, lines = compared(world, budget_s=43)
    assert world.now <= 43
    assert results["1"].decision is Decision.SLOWER
    open_ = [paired for paired in results.values() if paired.decision is Decision.UNDECIDED]
    assert open_
    assert all(paired.wants_s == (7 - paired.rounds) * (1 + 2) for paired in open_)
    assert lines[0].endswith(", for lack of budget")


def test_rounds_that_timed_nothing_in_both_builds_say_so() -> None:
    """It read ``0 of 0 cases decided``, as where the base runs its own version of a test, which makes no call."""
    world = World(
        time=scattered({}, 0.0), raises={("base", one.nodeid, own) for one in cases(2) for own in (True, False)}
    )
    _, results, lines = compared(world, 2)
    assert (results, lines) == ({}, ["no call was timed in both builds"])


CHANGE = (parse_limit("change(metric(loss)) <= 5%", kinds=by_name()),)


@pytest.mark.parametrize(
    ("base", "head", "time", "rounds", "decision"),
    [
        ((1.0,), (1.0,), False, 7, Decision.NOT_SLOWER),
        ((1.0,), (1.1,), False, 7, Decision.SLOWER),
        ((1.0, 1.01, 0.99), (1.0, 0.99), False, 7, Decision.NOT_SLOWER),
        ((1.0, 1.01, 0.99), (1.1, 1.11), False, 9, Decision.SLOWER),
        ((1.0, 1.01, 0.99), (1.1, 1.11), True, 9, Decision.SLOWER),
        ((1.0, 1.01, 0.99), (1.03, 1.06, 1.04, 1.05), False, 30, Decision.UNDECIDED),
    ],
)
def test_rounds_go_on_until_what_is_asked_is_decided(
    base: tuple[float, ...], head: tuple[float, ...], rounds: int, decision: Decision, *, time: bool
) -> None:
    sides = {"base": base, "head": head}
    world = World(
        time=scattered({"0": 0.0 if time else 0.03}, 0.002 if time else 0.1),  # the time is soon clear, or never
        loss=lambda side, number: sides[side][number % len(sides[side])],
    )
    _, results, lines = compared(world, 1, to_decide=ToDecide(time=time, changes=CHANGE))
    (pairs,) = results["0"].figures
    assert (len(pairs.base), figure_finding(pairs, CHANGE[0], 1).decision) == (rounds, decision)
    assert lines == [
        f"1 of 1 case decided in {rounds} rounds" if rounds < 30 else "0 of 1 case decided, 1 open after 30 rounds"
    ]


def test_of_two_that_read_slower_the_nearer_to_a_decision_comes_first() -> None:
    world = World(time=scattered({"0": 0.04, "2": 0.30}, 0.04), start_s=1.0, test_s=1.0, within=0.2)
    _, results, _ = compared(world, budget_s=46)
    assert results["2"].decision is Decision.SLOWER
    assert results["0"].decision is Decision.UNDECIDED
    assert world.now <= 46


def test_scatter_of_few_rounds_keeps_no_test_from_its_first_look() -> None:
    """By two or three noisy rounds a test seems to need hundreds: it was left out for one that seemed slower."""
    world = World(time=scattered({"0": 0.10}, 0.08), start_s=5.0, test_s=1.0, within=0.2)
    comparison, results, _ = compared(world, 4, budget_s=160)
    assert world.now <= 160
    first = comparison.design.looks[0]
    assert first * (10 + 4) <= 160, "rounds of all tests up to the first look fit"
    assert all(one.rounds >= first for one in results.values())


@pytest.mark.parametrize("budget_s", [45.0, 60.0, 72.0, 200.0])
def test_a_clear_slowdown_is_decided_before_the_budget_goes_to_a_case_that_takes_long(budget_s: float) -> None:
    """A round of the first test takes longer than all that the others need, and leaves it undecided."""
    world = World(time=scattered({"0": 0.03, "2": 0.44}, 0.02), start_s=1.5, test_s=0.3, long={"0": 26.0}, within=0.2)
    expected = {
        f"t.py::test_{at}": NeededRounds(rounds=7, seconds=26.0 if at == 0 else 0.3, suspected=at == 2)
        for at in range(4)
    }
    comparison, results, lines = compared(world, 4, among=4, budget_s=budget_s, expected=expected)
    assert world.now <= budget_s
    assert [results[name].decision for name in "123"] == [Decision.NOT_SLOWER, Decision.SLOWER, Decision.NOT_SLOWER]
    assert lines[0].startswith("3 of ")
    if budget_s < 40.5 + 29:
        assert "0" not in results
    else:  # what is left is its own
        assert (results["0"].decision, results["0"].rounds) == (Decision.UNDECIDED, int((budget_s - 40.5) // 29))
        assert results["0"].wants_s > 0
    assert comparison.design.cases == 4


def interrupted(rounds: int) -> dict[str, Decision]:
    """Return what is settled when somebody ends the comparison of a slow, a fast and a noisy test after some rounds."""
    times = {"0": scattered({}, 0.2), "1": scattered({"1": 0.06}, 0.002), "2": scattered({}, 0.002)}

    def time(side: str, nodeid: str, number: int) -> float:
        if number > rounds:
            raise KeyboardInterrupt
        return times[nodeid[-1]](side, nodeid, number)

    world = World(time=time, modules=PROOF)
    comparison = Comparison((arm("base", ""), arm("head", "")), cases(3), staged(world, [], []), Design())
    screening = Screening(comparison, lambda _: 0.03)
    with pytest.raises(KeyboardInterrupt):
        screening.decide()
    assert not world.open
    return {key.nodeid[-1]: paired.decision for key, paired in screening.settled(revision=False).items()}


def test_an_interrupt_keeps_the_decisions_that_were_made() -> None:
    assert interrupted(0) == interrupted(5) == {}
    assert interrupted(8) == {"2": Decision.NOT_SLOWER}
    assert interrupted(20) == {"1": Decision.SLOWER, "2": Decision.NOT_SLOWER}


def test_an_interrupt_keeps_no_half_of_a_test() -> None:
    """A call without a time, such as machine code, is not decided by rounds: its test is measured again."""
    comparison = Comparison(
        (arm("base", ""), arm("head", "")),
        cases(2),
        staged(World(modules=PROOF, time=scattered({}, 0.002)), [], []),
        Design(),
    )
    screening = Screening(comparison, lambda _: 0.03)
    screening.decide()
    assert {key.nodeid[-1] for key in screening.settled(revision=True)} == {"0", "1"}
    first = next(one for one in comparison.rounds if one.nodeid[-1] == "1")
    code = replace(first.head[0], key=replace(first.head[0].key, name="code"), samples=())
    comparison.rounds[comparison.rounds.index(first)] = replace(first, head=(*first.head, code))
    assert {key.nodeid[-1] for key in screening.settled(revision=True)} == {"0"}


SAME = {"base": (("/base/kern.py", "1"),), "head": (("/head/kern.py", "1"),)}


def ended_early(content: str, **world: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the results of two tests, the second of which reads 40 % slower, and what was said."""
    lines: list[str] = []
    scripted = World(time=scattered({"1": 0.4}, 0.002), **{"modules": SAME, **world})
    both, design = (arm("base", "x"), arm("head", content)), Design(clears_same=True)
    comparison = Comparison(both, cases(2), staged(scripted, lines, []), design)
    open_means: list[Any] = []
    screening = Screening(comparison, lambda _: 0.03, 2, in_open_means=lambda rounds: open_means.append(rounds) or ())
    screening.decide()
    results = {key.nodeid[-1]: paired for key, paired in screening.paired(revision=False).items()}
    for key, rounds in open_means[0].items():
        zero = results[key.nodeid[-1]].without_rounds
        assert (set(rounds) == {0.0}) is zero, "a mean counts the same code as no slower"
    return results, lines


def test_code_that_is_the_same_in_the_base_is_cleared_after_one_round() -> None:
    results, lines = ended_early("x")
    assert [(one.decision, one.same, one.differences, one.further, one.p) for one in results.values()] == [
        (Decision.NOT_SLOWER, True, (), (), None)
    ] * 2
    assert [one.base_ns for one in results.values()] == [1e6, 1e6]
    assert lines == ["2 of 2 cases decided in 1 round"]


@pytest.mark.parametrize(
    ("content", "world"),
    [
        ("y", {}),
        ("x", {"modules": PROOF}),
    ],
    ids=["another content", "other modules"],
)
def test_code_that_may_differ_gets_all_its_rounds(content: str, world: dict[str, Any]) -> None:
    results, _ = ended_early(content, **world)
    assert [one.decision for one in results.values()] == [Decision.NOT_SLOWER, Decision.SLOWER]
    assert all(one.rounds >= 7 for one in results.values())


def test_a_build_that_loads_foreign_modules_clears_nothing() -> None:
    results, _ = ended_early("x", modules={**SAME, "head": (("/elsewhere/kern.py", "1"),)})
    assert [(one.decision, one.rounds, bool(one.problems)) for one in results.values()] == [
        (Decision.UNDECIDED, 1, True)
    ] * 2


def test_a_figure_gets_its_rounds_although_the_code_is_the_same() -> None:
    world = World(time=scattered({}, 0.1), modules=SAME, loss=lambda side, number: 1 + 0.01 * (number % 3))
    both, design = (arm("base", "x"), arm("head", "x")), Design(clears_same=True)
    comparison = Comparison(both, cases(1), staged(world, [], []), design)
    screening = Screening(comparison, lambda _: 0.03, 1, lambda _: ToDecide(changes=CHANGE))
    screening.decide()
    (paired,) = screening.paired(revision=False).values()
    assert (paired.without_rounds, len(paired.figures[0].base)) == (True, 7)


def test_what_the_budget_never_reached_says_what_it_would_take() -> None:
    world = World(time=scattered({}, 0.002), start_s=1.0, test_s=1.0, long={"0": 30.0}, within=0.2)
    late = NeededRounds(rounds=7, seconds=30.0, suspected=False)
    expected = {
        "t.py::test_0": late,
        **{f"t.py::test_{at}": NeededRounds(rounds=7, seconds=1.0, suspected=False) for at in (1, 2)},
    }
    lines: list[str] = []
    stage = staged(world, lines, [], 35.0)
    world.modules = PROOF
    comparison = Comparison((arm("base"), arm("head")), cases(3), stage, Design())
    decided = Screening(comparison, lambda key: 0.03, 3, expected=expected)
    decided.decide()
    assert decided.late.waiting() | comparison.troubles() == {
        "t.py::test_0": "the budget ended before its first round; about 3 min 44 s more may decide"
    }
    assert lines == ["2 of 2 cases decided in 7 rounds"]


@pytest.mark.parametrize(("budget_s", "played"), [(0.0, [30, 30, 7]), (70.0, [17, 12, 7])])
def test_cases_of_an_open_mean_go_on_to_the_last_round_and_keep_their_own_decision(
    budget_s: float, played: list[int]
) -> None:
    world = World(time=scattered({}, 0.002), start_s=1.0, test_s=1.0, within=0.2, modules=PROOF)
    comparison = Comparison((arm("base"), arm("head")), cases(3), staged(world, [], [], budget_s), Design())
    counts: list[set[int]] = []

    def in_open_means(differences):
        counts.append({len(rounds) for rounds in differences.values()})
        return [key for key in differences if key.nodeid != "t.py::test_2"]

    screening = Screening(comparison, lambda key: 0.03, in_open_means=in_open_means)
    screening.decide()
    results = {key.nodeid[-1]: paired for key, paired in screening.paired(revision=True).items()}
    assert counts == [{7}], "asked once, when every case is decided"
    assert {one.rounds for one in results.values()} == {7}
    assert [7 + len(results[name].further) for name in "012"] == played
    assert {len(arms_of(results["0"], revision=True).differences)} == {played[0]}


def test_a_decided_case_of_an_open_mean_does_not_count_as_open() -> None:
    """Of two tests that the budget does not reach, one is decided and stays in the rounds for its mean alone."""
    wild, calm = scattered({}, 0.5), scattered({}, 0.002)
    world = World(time=lambda side, nodeid, number: (wild if nodeid[-1] == "0" else calm)(side, nodeid, number),
                  start_s=1.0, test_s=1.0, within=0.2, modules=PROOF)  # fmt: skip
    lines: list[str] = []
    comparison = Comparison((arm("base"), arm("head")), cases(2), staged(world, lines, [], 70.0), Design())
    Screening(comparison, lambda key: 0.03, in_open_means=list).decide()
    assert lines == ["1 of 2 cases decided in 7 rounds, 1 open after 21 rounds, for lack of budget"]


def test_a_budget_that_is_long_enough_holds_nothing_back() -> None:
    expected = {
        f"t.py::test_{at}": NeededRounds(rounds=7, seconds=1.0 + 25 * (at == 0), suspected=False) for at in range(3)
    }
    world = World(time=scattered({}, 0.002), start_s=1.0, test_s=1.0, long={"0": 26.0}, within=0.2)
    compared(world, among=3, budget_s=1000.0, expected=expected)
    assert world.now == 7 * (2 + 26 + 2), "each round has all three"


def test_a_wild_case_has_more_rounds_than_a_calm_one_until_it_is_decided() -> None:
    world = World(time=scattered({"0": 0.005}, 0.03), start_s=1.0, test_s=1.0, within=0.2)
    calm = World(time=scattered({}, 0.002), start_s=1.0, test_s=1.0, within=0.2)
    _, wild, _ = compared(world, budget_s=600)
    _, tame, _ = compared(calm, budget_s=600)
    assert wild["0"].rounds > tame["0"].rounds == 7
    assert wild["0"].decision is tame["0"].decision is Decision.NOT_SLOWER


def test_what_seems_to_want_more_than_the_budget_has_all_of_it_before_it_is_left_open() -> None:
    """One in groups, or wild at first, had three rounds and was left with nine of its ten minutes unspent."""
    world = World(time=scattered({}, 0.5), start_s=1.0, test_s=1.0, within=0.2)
    _, results, lines = compared(world, count=1, budget_s=60)
    assert (results["0"].decision, results["0"].rounds) == (Decision.UNDECIDED, 20)
    assert world.now == 60
    assert lines == ["0 of 1 case decided, 1 open after 20 rounds, for lack of budget"]


def test_a_budget_too_small_for_a_look_clears_nobody() -> None:
    world = World(time=scattered({}, 0.001), start_s=1.0, test_s=1.0, within=0.2)
    _, results, lines = compared(world, budget_s=14)
    assert world.now <= 14
    assert {paired.decision for paired in results.values()} == {Decision.UNDECIDED}
    assert all(paired.wants_s > 0 for paired in results.values())
    assert lines[0].startswith("0 of 3 cases decided, 3 open after ")


def test_part_of_a_suite_is_decided_where_a_budget_does_not_reach_all() -> None:
    world = World(time=scattered({}, 0.001), start_s=1.0, test_s=1.0, within=0.2)
    _, results, _ = compared(world, budget_s=30)
    assert world.now <= 30
    assert {paired.decision for paired in results.values()} == {Decision.UNDECIDED, Decision.NOT_SLOWER}


def test_each_build_takes_turns_with_its_own_references_one_build_after_the_other() -> None:
    world = World(time=scattered({}, 0.002))
    compared(world, 1)
    assert {references for _, references in world.finished} == {True}
    rounds = [world.finished[at : at + 2] for at in range(0, len(world.finished), 2)]
    assert [[side for side, _ in one] for one in rounds[:2]] == [["base", "head"], ["head", "base"]]
