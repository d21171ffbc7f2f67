"""More processes in a first run, for calls that are too noisy to be accepted."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.app.first_run import MOST, FirstRun, too_noisy
from pytest_perfgate.app.measure import NoisyCall
from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Environment, Identity, Reference, Samples, Stop
from pytest_perfgate.model.plan import Case, CaseKey, Plan
from pytest_perfgate.model.ports import GateTools
from pytest_perfgate.model.protocol import Capture, CaseResult

HOST = Device(key="host", name="host", kind="host")
TOOLS = GateTools(kinds=by_name(), spawner=None, environment=Environment, with_measured_ceilings=lambda device: device)
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
        entry = FirstRun(rounds, self.judge, lambda: self.now, first=True)
        entry.play_more(self.cases, self.round, self.told.append, within_s, start_s)
        return [len(captures) for captures in self.captures.values()]


def test_processes_are_added_until_the_limit_is_seen_and_only_to_what_does_not_see_it() -> None:
    bench = Bench(case("narrow", "slowdown <= 3%"), case("wide", "slowdown <= 50%"))
    narrow, wide = bench.play_more()
    assert wide == 3
    assert 3 < narrow < MOST
    assert too_noisy(bench.results()["t.py::narrow"], bench.judge) == ()
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
        (("slowdown <= 1%",), {"accepted": {"t.py::one": SimpleNamespace(detects=0.01)}}),
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
    bench.accepted["t.py::one"] = SimpleNamespace(detects=2.0)
    assert 3 < bench.play_more()[0] < MOST
    busy = Bench(case("one", "slowdown <= 3%"), others=1.5)
    busy.accepted["t.py::one"] = SimpleNamespace(detects=2.0)
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
    assert too_noisy(bench.results()["t.py::one"], judge) == ()


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
    one = NoisyCall(key=CaseKey(nodeid="t.py::one"), half_width=half, requested=0.05, processes=10)
    assert one.advice_to_detect == remedy
    assert not one.machine_busy
    assert replace(one, busy=0.8).machine_busy


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
    entry = FirstRun(rounds, bench.judge, lambda: bench.now, first=first)
    entry.play_more(bench.cases, bench.round, bench.told.append, 30.0, 0.1)
    assert len(bench.captures["t.py::one"]) == processes
    assert bool(bench.told) is (processes > 3)


def test_a_miss_that_neighbours_may_explain_is_not_called_too_noisy() -> None:
    bench = SpeedupBench(case("one", "speedup(over=eager) >= 1.54x"), scatter=0.001, others=1.5)
    assert bench.play_more() == [MOST]
    assert bench.told == ["1 test too noisy for the limit so far: up to 7 more rounds, at most 30 s"]
