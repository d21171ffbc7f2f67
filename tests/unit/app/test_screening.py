"""A budget of the whole comparison on a clock that the test turns."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.app.compare_arms import Comparison
from pytest_perfgate.app.measure import Blurred
from pytest_perfgate.app.screening import MOST, FirstSitting, Screening, ToDecide, blurred
from pytest_perfgate.core.judge.against_revision import arms_of
from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.rounds import Design, figure_finding
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.core.stats.costs import Want
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Environment, Identity, Reference, Samples, Stop
from pytest_perfgate.model.plan import Case, CaseKey, Decision, Plan
from pytest_perfgate.model.ports import GateTools
from pytest_perfgate.model.protocol import Capture, CaseResult
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
    assert f"{len(open_)} of them beyond the budget" in lines[0]


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
        f"1 of 1 case decided in {rounds} rounds" if rounds < 30 else "0 of 1 case decided, 1 open after 30"
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
        f"t.py::test_{at}": Want(rounds=7, seconds=26.0 if at == 0 else 0.3, suspected=at == 2) for at in range(4)
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
        ("x", {"modules": {**SAME, "head": (("/elsewhere/kern.py", "1"),)}}),
    ],
    ids=["another content", "other modules", "foreign modules"],
)
def test_code_that_may_differ_gets_all_its_rounds(content: str, world: dict[str, Any]) -> None:
    results, _ = ended_early(content, **world)
    assert [one.decision for one in results.values()] == [Decision.NOT_SLOWER, Decision.SLOWER]
    assert all(one.rounds >= 7 for one in results.values())


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
    late = Want(rounds=7, seconds=30.0, suspected=False)
    expected = {
        "t.py::test_0": late,
        **{f"t.py::test_{at}": Want(rounds=7, seconds=1.0, suspected=False) for at in (1, 2)},
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


def test_a_budget_that_is_long_enough_holds_nothing_back() -> None:
    expected = {f"t.py::test_{at}": Want(rounds=7, seconds=1.0 + 25 * (at == 0), suspected=False) for at in range(3)}
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
    assert lines == ["0 of 1 case decided, 1 open after 20, 1 of them beyond the budget"]


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


HOST = Device(key="host", name="host", kind="host")
TOOLS = GateTools(kinds=by_name(), spawner=None, environment=Environment, roofed=lambda device: device)
TIMES = (100.0, 104.0, 97.0, 102.0, 99.0, 101.0, 98.0, 103.0, 100.0, 100.5)
"""What the processes of a case take, one after the other."""


def case(name: str, *limits: str) -> Case:
    parsed = tuple(parse_limit(text, kinds=by_name()) for text in limits)
    return Case(nodeid=f"t.py::{name}", limits=parsed, plan=Plan())


def process(key: CaseKey, time: float, others: float) -> tuple[Capture, ...]:
    durations = tuple(time * (1 + 0.0001 * at) for at in range(20))
    samples = Samples(durations=durations, timer="host", stop=Stop.SETTLED, others=others)
    return (Capture(key=key, samples=(samples,), device=HOST, identity=Identity(device="host")),)


class Bench:
    """A machine on which the time goes by with each process."""

    def __init__(self, *cases: Case, wide: float = 1.0, others: float = 0.0, round_s: float = 0.5) -> None:
        self.cases, self.wide, self.others, self.round_s = cases, wide, others, round_s
        self.captures: dict[str, list[tuple[Capture, ...]]] = {one.nodeid: [] for one in cases}
        self.played: list[tuple[int, list[str]]] = []
        self.told: list[str] = []
        self.accepted: dict[str, Any] = {}
        self.outcome, self.now = "passed", 0.0
        for number in range(3):
            self.round(cases, number)
        self.now = 0.0

    def round(self, some: Any, number: int) -> None:
        assert all(number < one.plan.rounds for one in some), "a round that no plan has is not played"
        self.played.append((number, [one.nodeid for one in some]))
        for one in some:
            time = 100.0 + (TIMES[number] - 100.0) * self.wide
            self.captures[one.nodeid].append(process(CaseKey(nodeid=one.nodeid), time, self.others))
            self.now += self.round_s

    def results(self) -> dict[str, CaseResult]:
        return {
            one.nodeid: CaseResult(
                case=one, captures=tuple(self.captures[one.nodeid]), outcome=self.outcome, seconds=self.round_s
            )
            for one in self.cases
        }

    @property
    def judge(self) -> Any:
        def judging(measurement: Any) -> tuple[Any, Any]:
            return (self.accepted.get(measurement.key.nodeid)), None

        return SimpleNamespace(
            tools=TOOLS, limits=lambda one, _m: one.limits, accepted=SimpleNamespace(judging=judging)
        )

    def play_more(self, within_s: float = 30.0, start_s: float = 0.1) -> list[int]:
        """How many processes each case came to."""
        rounds: Any = self
        sitting = FirstSitting(rounds, self.judge, lambda: self.now)
        sitting.play_more(self.cases, self.round, self.told.append, within_s, start_s)
        return [len(captures) for captures in self.captures.values()]


def test_processes_are_added_until_the_limit_is_seen_and_only_to_what_does_not_see_it() -> None:
    bench = Bench(case("narrow", "slowdown <= 3%"), case("wide", "slowdown <= 50%"))
    narrow, wide = bench.play_more()
    assert wide == 3
    assert 3 < narrow < MOST
    assert blurred(bench.results()["t.py::narrow"], bench.judge) == ()
    assert bench.told == ["1 test too noisy for the limit so far: up to 7 more rounds, at most 30 s"]


def test_ten_processes_are_the_most_and_what_is_still_missing_is_said_with_what_would_bring_it() -> None:
    bench = Bench(case("hard", "slowdown <= 1%"))
    assert bench.play_more() == [MOST]
    assert len(bench.told) == 2
    assert bench.told[1].startswith("hard can detect ")
    assert "after 10 processes, and its limit needs 1.0 %; next: --perfgate-rounds=" in bench.told[1]
    assert bench.told[1].endswith(", or a quieter machine")


def test_the_time_for_it_bounds_it_and_is_said_before() -> None:
    bench = Bench(case("hard", "slowdown <= 1%"), round_s=2.0)
    (count,) = bench.play_more(within_s=7.0)
    assert (count, bench.now) == (6, 6.0)
    assert bench.told[0].endswith("up to 7 more rounds, at most 7 s")
    short = Bench(case("hard", "slowdown <= 1%"), round_s=2.0)
    assert short.play_more(within_s=1.0) == [3]
    assert len(short.told) == 1, "nothing is announced that is not done"
    assert "after 3 processes" in short.told[0]


def test_what_is_nearest_to_its_limit_goes_first_where_not_all_fit() -> None:
    bench = Bench(case("far", "slowdown <= 0.5%"), case("near", "slowdown <= 3%"), round_s=2.0)
    far, near = bench.play_more(within_s=4.0)
    assert near > far == 3
    assert bench.played[3] == (3, ["t.py::near"])


@pytest.mark.parametrize(
    ("limits", "change"),
    [
        (("slowdown <= 1%",), {"accepted": {"t.py::one": SimpleNamespace(blind=0.01)}}),
        (("slowdown <= 1%",), {"outcome": "failed"}),
        (("time <= 1 s",), {}),
        ((), {}),
    ],
    ids=["it has a line", "its test failed", "no limit asks for a line", "no limit"],
)
def test_what_will_not_be_accepted_and_judged_by_has_no_more_processes(limits: tuple[str, ...], change: Any) -> None:
    bench = Bench(case("one", *limits))
    for name, setting in change.items():
        setattr(bench, name, setting)
    assert bench.play_more() == [3]
    assert bench.told == []


def test_a_line_that_cannot_see_its_limit_is_to_be_accepted_anew_and_has_more_processes_for_it() -> None:
    """That of a quick run, or beside neighbours, stayed blind: each full run had three processes, and saw no better."""
    bench = Bench(case("one", "slowdown <= 3%"))
    bench.accepted["t.py::one"] = SimpleNamespace(blind=2.0)
    assert 3 < bench.play_more()[0] < MOST
    busy = Bench(case("one", "slowdown <= 3%"), others=1.5)
    busy.accepted["t.py::one"] = SimpleNamespace(blind=2.0)
    assert (busy.play_more(), busy.told) == ([3], [])


def test_beside_busy_neighbours_more_processes_help_nothing_and_that_is_said() -> None:
    """They may agree with each other and all be slow: the line is marked so, and judges like one that cannot see."""
    bench = Bench(case("one", "slowdown <= 3%"), case("two", "slowdown <= 3%"), others=1.5)
    assert bench.play_more() == [3, 3]
    (text,) = bench.told
    assert text.startswith("2 new times may be too slow: other programs used 1.5 processors meanwhile")
    assert text.endswith("before you accept")


def test_a_limit_that_does_not_read_is_left_to_the_judge() -> None:
    bench = Bench(case("one", "slowdown <= 1%"))

    def limits(*_given: Any) -> Any:
        raise PerfgateError("call-wrong", "no")

    judge = bench.judge
    judge.limits = limits
    assert blurred(bench.results()["t.py::one"], judge) == ()


def test_of_many_that_stay_short_some_are_named() -> None:
    bench = Bench(*(case(f"c{at}", "slowdown <= 1%") for at in range(8)), round_s=0.01)
    bench.play_more()
    assert len(bench.told) == 1 + 5 + 1
    assert bench.told[-1] == "and 3 more, which `perfgate accept` names"


@pytest.mark.parametrize(
    ("half", "remedy"),
    [(0.06, "--perfgate-rounds=15, or a quieter machine"), (0.5, "a quieter machine")],
)
def test_the_remedy_is_as_many_processes_as_it_takes_where_those_are_few(half: float, remedy: str) -> None:
    one = Blurred(key=CaseKey(nodeid="t.py::one"), half=half, asks=0.05, processes=10)
    assert one.remedy == remedy
    assert not one.machine_busy
    assert replace(one, beside=0.8).machine_busy


class SpeedupBench(Bench):
    """A call beside an eager of half as much again, whose ratio scatters by so much."""

    def __init__(self, *cases: Case, scatter: float, ratio: float = 1.5, others: float = 0.0) -> None:
        self.scatter, self.ratio = scatter, ratio
        super().__init__(*cases, wide=0.0, others=others)

    def results(self) -> dict[str, CaseResult]:
        steps = (0.0, 1.0, -1.0, 0.4, -0.4, 0.8, -0.8, 0.2, -0.2, 0.0)
        references = [
            Reference(over="eager", ours=(1.0,), theirs=(self.ratio * (1 + self.scatter * s),)) for s in steps
        ]
        return {
            nodeid: replace(
                result,
                captures=tuple(
                    tuple(replace(one, references=(reference,)) for one in taken)
                    for taken, reference in zip(result.captures, references, strict=False)
                ),
            )
            for nodeid, result in super().results().items()
        }

    @property
    def judge(self) -> Any:
        context = JudgeContext(gates=40)
        inner = super().judge
        inner.judged = lambda one, measurement: judge(measurement, one.limits, baseline=None, context=context)
        return inner


@pytest.mark.parametrize(
    ("text", "scatter", "processes"),
    [
        ("speedup(over=eager) >= 1.4x", 0.002, 3),
        ("speedup(over=eager) >= 1.4x", 0.04, 4),
        ("speedup(over=eager) >= 1.6x", 0.002, 3),
        ("speedup(over=eager) >= 1.5x", 0.02, MOST),
        ("change(speedup(over=eager)) >= -5%", 0.002, 3),
        ("change(speedup(over=eager)) >= -5%", 0.02, 5),
        ("change(speedup(over=eager)) >= -1%", 0.05, MOST),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_an_open_speed_up_has_more_processes_whatever_decides_times(
    text: str, scatter: float, processes: int, first: bool
) -> None:
    bench = SpeedupBench(case("one", text), scatter=scatter)
    rounds: Any = bench
    sitting = FirstSitting(rounds, bench.judge, lambda: bench.now, first=first)
    sitting.play_more(bench.cases, bench.round, bench.told.append, 30.0, 0.1)
    assert len(bench.captures["t.py::one"]) == processes
    assert bool(bench.told) is (processes > 3)


def test_a_miss_that_neighbours_may_explain_is_not_called_too_noisy() -> None:
    bench = SpeedupBench(case("one", "speedup(over=eager) >= 1.54x"), scatter=0.001, others=1.5)
    assert bench.play_more() == [MOST]
    assert bench.told == ["1 test too noisy for the limit so far: up to 7 more rounds, at most 30 s"]


def test_each_build_takes_turns_with_its_own_references_one_build_after_the_other() -> None:
    world = World(time=scattered({}, 0.002))
    compared(world, 1)
    assert {references for _, references in world.finished} == {True}
    rounds = [world.finished[at : at + 2] for at in range(0, len(world.finished), 2)]
    assert [[side for side, _ in one] for one in rounds[:2]] == [["base", "head"], ["head", "base"]]
