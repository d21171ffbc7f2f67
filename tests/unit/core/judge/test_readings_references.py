"""Tests of core/judge/readings: a call beside its reference."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from pytest_perfgate.core.judge.against_limit import disturbed_by_others
from pytest_perfgate.core.judge.readings import is_reference, moved_sides, over_processes, reach_in_turns, reference_of
from pytest_perfgate.model.measurement import Reference, Samples, Settled, Stop
from pytest_perfgate.model.metric import Figure, Interval, Metric, Problem
from pytest_perfgate.model.plan import CaseKey, Outcome
from pytest_perfgate.model.values import Dimension
from tests.unit.core.judge.bench import CONTEXT, KEY, accepted, limit, measured, samples, verdict


def turns(*least: float, timer: str = "host", cpu: float = 0.0, **fields) -> Samples:
    """A process of so many turns, each of two samples; without processor times it is held apart by the wall."""
    durations = tuple(time for one in least for time in (one * 1.1, one))
    return Samples(
        **{
            "durations": durations,
            "cpu": tuple(time * cpu for time in durations) if cpu else (),
            "timer": timer,
            "stop": Stop.COUNT,
            "turns": (2,) * len(least),
        }
        | fields
    )


def timed(*processes: tuple[float, float], over: str = "eager") -> tuple[Reference, ...]:
    """(ours, theirs) of each process."""
    ours, theirs = zip(*processes)
    return (Reference(over=over, ours=ours, theirs=theirs),)


def judged(text: str, *references: Reference, **fields):
    return verdict(1e6, (limit(text),), references=references, **fields)


def test_a_drift_that_both_share_leaves_the_ratio_alone() -> None:
    ours = turns(*(1e6 * (1 + n / 10) for n in range(10)))
    theirs = turns(*(1.5e6 * (1 + n / 10) for n in range(10)))
    one = reference_of("eager", ours, theirs)
    assert (one.ours, one.theirs) == ((1e6,), (1.5e6,))
    assert one.within[0] == pytest.approx((1.5, 1.5))


def test_calls_that_compute_are_held_apart_by_their_processor_time() -> None:
    ours, theirs = turns(1e6, 1e6, 1e6, cpu=0.99), turns(2e6, 2e6, 2e6, cpu=0.99)
    assert reference_of("eager", ours, theirs).ours == (pytest.approx(0.99e6),)


def test_at_the_power_limit_the_long_turns_decide() -> None:
    ours = turns(1e6, 1e6, 1e6, timer="events", settled=Settled(time=1.1e6, watts=700.0, clock_hz=1.4e9))
    theirs = turns(1e6, 1e6, 1e6, timer="events", settled=Settled(time=1.0e6, watts=690.0, clock_hz=1.6e9))
    assert reference_of("eager", ours, theirs) == Reference(over="eager", ours=(1.1e6,), theirs=(1.0e6,))


def test_long_turns_at_the_same_clock_and_power_leave_the_short_ones() -> None:
    alike = [Settled(time=time, watts=700.0, clock_hz=1.4e9) for time in (1.1e6, 1.0e6)]
    ours, theirs = (turns(1e6, 1e6, 1e6, timer="events", settled=one) for one in alike)
    assert reference_of("eager", ours, theirs).ours == (pytest.approx(1.05e6),)


NOISE = Problem(code="clock-unsteady", what="the clock fell")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"timer": "events"}, "reference-unlike"),
        ({"durations": (), "cpu": (), "turns": ()}, "bad-timing"),
        ({"problems": (NOISE,)}, "clock-unsteady"),
    ],
)
def test_what_cannot_be_compared_is_invalid_and_no_figure(change: dict[str, object], code: str) -> None:
    one = reference_of("eager", turns(1e6, 1e6, 1e6), replace(turns(1e6, 1e6, 1e6), **change))
    assert (one.ours, one.theirs, one.problems[0].code) == ((), (), code)
    assert one.problems[0].retry is not (code == "reference-unlike"), "another timer is not a matter of luck"
    result = judged("speedup(over=eager) >= 1.2x", one)
    assert result.outcome is Outcome.INVALID
    assert code in result.sentence


@pytest.mark.parametrize(
    ("bound", "outcome"),
    [("1.2x", Outcome.PASSED), ("1.3x", Outcome.UNDECIDED), ("1.4x", Outcome.BROKEN)],
)
def test_the_whole_interval_over_the_processes_decides(bound: str, outcome: Outcome) -> None:
    result = judged(f"speedup(over=eager) >= {bound}", *timed((1.0, 1.29), (1.0, 1.30), (2.0, 2.62)))
    assert result.outcome is outcome
    assert result.metric is not None
    assert result.metric.value == pytest.approx(1.30)
    assert (result.metric.low, result.metric.high) == pytest.approx((1.2754, 1.3251), rel=1e-3)


def test_one_process_is_known_by_its_turns() -> None:
    one = reference_of("eager", turns(*[1e6] * 10), turns(*(1e6 * (1.2 + n / 100) for n in range(10))))
    result = judged("speedup(over=eager) >= 1.1x", one)
    assert result.outcome is Outcome.PASSED
    assert result.metric is not None
    assert (result.metric.low, result.metric.high) == pytest.approx((1.21, 1.28))


def test_a_file_is_held_against_the_time_of_the_call_itself() -> None:
    of_file = Reference(over="file:cublas.json", theirs=(1.5e6,), origin="gemm in cublas.json")
    result = judged("speedup(over='file:cublas.json') >= 1.4x", of_file)
    assert result.outcome is Outcome.PASSED
    assert result.metric is not None
    assert (result.metric.low, result.metric.value, result.metric.high) == pytest.approx(
        (1.49628, 1.5, 1.50373), rel=1e-5
    )


def test_the_reference_itself_is_not_asked() -> None:
    result = judged("speedup(over=eager) >= 1.2x", key=CaseKey(nodeid=KEY.nodeid, name="eager"))
    assert result.outcome is Outcome.NOT_APPLICABLE


@pytest.mark.parametrize("references", [(), timed((1.0, 1.5)), (Reference(over="eager", problems=(NOISE,)),)])
def test_a_name_that_no_call_has_is_not_measured(references: tuple[Reference, ...]) -> None:
    result = judged("speedup(over=eagr) >= 1.2x", *references)
    assert result.outcome is Outcome.NOT_MEASURED
    assert result.next or "eager" in result.sentence


def test_processes_are_joined_by_the_name_of_the_reference() -> None:
    parts = [*timed((1.0, 2.0)), *timed((5.0, 5.0), over="triton"), *timed((1.1, 2.1))]
    assert over_processes(parts) == (
        Reference(over="eager", ours=(1.0, 1.1), theirs=(2.0, 2.1)),
        Reference(over="triton", ours=(5.0,), theirs=(5.0,)),
    )


def test_both_sides_are_told() -> None:
    result = judged("speedup(over=eager) >= 2x", *timed((1e6, 1.5e6), (1e6, 1.5e6)))
    assert ("in turns", "1 ms, eager 1.5 ms") in result.evidence
    assert measured(1e6, references=timed((1.0, 2.0))).references


def line(ratio: float):
    figure = Figure(name="speedup", value=ratio, dimension=Dimension.RATIO, labels=(("over", "eager"),))
    return accepted(1e6, figures=(figure,))


def moved(text: str, ours: float, theirs: float):
    """A call that took 1 ms beside an eager of 1.5 ms when it was accepted."""
    references = timed(*((ours * (1 + n / 1000), theirs * (1 + n / 1000)) for n in range(3)))
    return verdict(ours, (limit(text),), baseline=line(1.5), references=references)


@pytest.mark.parametrize(
    ("ours", "theirs", "outcome", "who"),
    [
        (1e6, 1.5e6, Outcome.PASSED, ""),
        (1.001e6, 1.495e6, Outcome.PASSED, ""),
        (1e6, 1.2e6, Outcome.REGRESSED, "eager -20.0 % (1.5 ms -> 1.2 ms): eager moved"),
        (1.2e6, 1.5e6, Outcome.REGRESSED, "this call +20.0 % (1 ms -> 1.2 ms)"),
        (1.1e6, 1.35e6, Outcome.REGRESSED, "both moved"),
        (1e6, 2e6, Outcome.MOVED, "eager +33.3 %"),
        (0.7e6, 1.5e6, Outcome.IMPROVED, "this call moved"),
        (0.85e6, 1.8e6, Outcome.IMPROVED, "both moved"),
    ],
)
def test_which_of_the_two_moved_is_told(ours: float, theirs: float, outcome: Outcome, who: str) -> None:
    result = moved("change(speedup(over=eager)) >= -5%", ours, theirs)
    assert result.outcome is outcome
    texts = [text for label, text in result.evidence if label == "since accepted"]
    assert bool(texts) is bool(who)
    assert all(who in text for text in texts)


def test_an_absolute_limit_tells_it_too() -> None:
    result = moved("speedup(over=eager) >= 1.4x", 1e6, 1.2e6)
    assert result.outcome is Outcome.BROKEN
    assert result.evidence[-1][1].endswith("eager moved")


def reach(
    half: float, processes: int, bound: float = -0.05, gates: int = 40, others: float = 0.0, **accepted_as
) -> float:
    interval = Interval(low=1.5 * math.exp(-half), high=1.5 * math.exp(half))
    metric = Metric(name="speedup", value=1.5, dimension=Dimension.RATIO, interval=interval)
    taken = (turns(1e6, others=others),) * processes
    return reach_in_turns(metric, replace(line(1.5).figures[0], **accepted_as), bound, taken, gates)


@pytest.mark.parametrize(
    ("half", "processes", "bound", "gates", "others", "accepted_as", "expected"),
    [
        (0.02, 3, -0.05, 40, 0.0, {}, 0.0545469),
        (0.02, 10, -0.05, 40, 0.0, {}, 0.0767742),
        (0.02, 10, -0.2, 40, 0.0, {}, 0.0907134),
        (0.02, 10, 0.0, 1, 0.0, {}, 0.0513302),
        (0.02, 12, -0.01, 1, 1.5, {}, 0.1222861),
        (0.02, 2, -0.05, 1, 0.0, {}, 0.0162526),
        (0.02, 10, -0.05, 40, 0.0, {"scatter": 0.05, "runs": 4}, 0.2414600),
    ],
)
def test_what_chance_explains_in_figures(
    half: float, processes: int, bound: float, gates: int, others: float, accepted_as, expected: float
) -> None:
    """Of Student's interval, at least 0.3 % between runs (3 % beside busy programs), of one of three processes before.

    Computed by SciPy and by hand.
    """
    assert reach(half, processes, bound, gates, others, **accepted_as) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("ours", "theirs", "alone"),
    [
        (1.1, 1.03, "this call"), (1.1, 1.06, ""), (1.03, 1.1, "eager"), (1.06, 1.1, ""),
        (0.9, 0.97, "this call"), (0.97, 0.9, "eager"), (0.9, 1.1, ""), (1.0, 1.2, "eager"), (0.8, 1.0, "this call"),
    ],
)  # fmt: skip
def test_a_side_that_changed_twice_as_much_is_named_alone(ours: float, theirs: float, alone: str) -> None:
    """It took 1 ms beside an eager of 1.5 ms, and both since changed by these factors."""
    metric = Metric(name="speedup", value=1.5 * theirs / ours, dimension=Dimension.RATIO, labels=(("over", "eager"),))
    sides = moved_sides(metric, 1.5, 1e6, ours * 1e6)
    assert sides is not None
    assert (sides.alone, sides.text.endswith(f"{alone or 'both'} moved")) == (alone, True)


@pytest.mark.parametrize(
    ("name", "value", "ratio", "then", "now"),
    [
        ("speedup", 1.5, 1.5, 1e6, 2e6), ("speedup", 1.514, 1.5, 1e6, 1e6), ("mfu", 3.0, 1.5, 1e6, 1e6),
        ("speedup", 0.0, 1.5, 1e6, 1e6), ("speedup", 3.0, 0.0, 1e6, 1e6), ("speedup", 3.0, 1.5, 0.0, 1e6),
        ("speedup", 3.0, 1.5, 1e6, 0.0),
    ],
)  # fmt: skip
def test_a_speed_up_that_is_as_accepted_or_not_positive_names_no_side(
    name: str, value: float, ratio: float, then: float, now: float
) -> None:
    metric = Metric(name=name, value=value, dimension=Dimension.RATIO, labels=(("over", "eager"),))
    assert moved_sides(metric, ratio, then, now) is None


def test_of_one_file_a_case_has_one_time() -> None:
    files = [Reference(over="file:a.json", theirs=(time,), origin="a.json") for time in (1.5e6, 1.6e6)]
    assert over_processes(files) == (files[0],)


@pytest.mark.parametrize("sides", [(True, False), (False, True), (False, False)])
def test_long_turns_decide_where_both_sides_have_them(sides: tuple[bool, bool]) -> None:
    settled = Settled(time=9e6, watts=700.0, clock_hz=1.4e9)
    ours, theirs = (turns(1e6, 1e6, 1e6, timer="events", settled=settled if one else None) for one in sides)
    assert reference_of("eager", ours, theirs).ours == (1.05e6,)


@pytest.mark.parametrize(("count", "expected"), [(1, False), (2, False), (3, True)])
def test_three_turns_have_an_interval(count: int, *, expected: bool) -> None:
    assert bool(reference_of("eager", turns(*[1e6] * count), turns(*[1.5e6] * count)).within) is expected


def test_what_chance_explains_shrinks_with_what_the_processes_tell() -> None:
    of_ten, of_three = 0.00715, 0.0248  # half the interval of processes that scatter by 1 %
    assert reach(of_ten, 10) < reach(of_three, 3)
    assert reach(0.005, 10) < reach(0.01, 10) < reach(0.02, 10)
    assert reach(0.01, 10, gates=1) < reach(0.01, 10, gates=40)
    assert reach(0.01, 10, bound=-0.01) < reach(0.01, 10)
    assert 0.01 < reach(0.0, 10) < 0.03, "two runs are never quite the same"
    assert reach(0.0, 10, others=1.5) > 0.15, "neighbours slow two different calls by different amounts"


@pytest.mark.parametrize(("others", "ratio", "outcome"), [
    (0.0, 1.4, Outcome.BROKEN), (1.5, 1.4, Outcome.UNDECIDED), (1.5, 0.9, Outcome.BROKEN), (1.5, 1.6, Outcome.PASSED),
])  # fmt: skip
def test_neighbours_are_no_reason_to_break_a_limit_that_is_near(others: float, ratio: float, outcome: Outcome) -> None:
    (reference,) = timed(*((1e6, 1e6 * (ratio + n / 1000)) for n in range(3)))
    processes = (turns(1e6, others=others, unqueued=1e6),) * 3
    assert judged("speedup(over=eager) >= 1.5x", reference, processes=processes).outcome is outcome


def test_a_speed_up_of_one_process_is_compared_by_its_limit_alone() -> None:
    result = verdict(
        1e6, (limit("change(speedup(over=eager)) >= -5%"),), baseline=line(1.5), references=timed((1e6, 1.2e6)), shape=(1.0,)
    )  # fmt: skip
    assert result.outcome is Outcome.REGRESSED


@pytest.mark.parametrize(
    ("text", "call", "references", "is_one"),
    [
        ("speedup(over=eager) >= 1x", "eager", (), True),
        ("speedup(over=eager) >= 1x", "ours", (), False),
        ("speedup(over=eager) >= 1x", "old", ("eager", "old"), True),
        ("speedup(case=old, over=eager) >= 1x", "old", ("eager", "old"), False),
        ("speedup(case=eager, over=eager) >= 1x", "eager", (), True),
        ("time(case=eager) <= 1s", "eager", ("eager",), False),
    ],
)
def test_a_reference_is_compared_with_none_but_where_it_is_named(
    text: str, call: str, references: tuple[str, ...], *, is_one: bool
) -> None:
    assert is_reference(limit(text), CaseKey(nodeid="t.py::t", name=call), references) is is_one


@pytest.mark.parametrize(
    ("text", "others", "count", "outcome", "sentence"),
    [
        ("speedup(over=eager) >= 1.5x", 1.5, 3, Outcome.UNDECIDED, "busy programs may explain the miss"),
        ("speedup(over=eager) >= 1.5x", 0.0, 3, Outcome.BROKEN, ""),
        ("speedup(over=eager) >= 1.5x", 1.5, 2, Outcome.UNDECIDED, "busy programs may explain the miss"),
        ("speedup(over=eager) >= 1.48x", 1.5, 3, Outcome.UNDECIDED, "the interval spans the limit"),
        ("speedup(over=eager) >= 3x", 1.5, 3, Outcome.BROKEN, ""),
        ("speedup(over=eager) <= 1.6x", 1.5, 3, Outcome.PASSED, "the whole interval keeps the limit"),
        ("time <= 999us", 1.5, 3, Outcome.BROKEN, ""),
    ],
)
def test_busy_neighbours_leave_open_a_speed_up_that_is_near_its_limit(
    text: str, others: float, count: int, outcome: Outcome, sentence: str
) -> None:
    busy = tuple(samples(1e6 * by, others=others) for by in (0.9999, 1.0, 1.0001)[:count])
    ratios = ((1e6, 1.4799e6), (1e6, 1.48e6), (1e6, 1.4801e6))
    result = judged(text, *timed(*ratios[:count]), processes=busy)
    assert (result.outcome, result.sentence.partition(":")[0]) == (
        outcome,
        sentence or result.sentence.partition(":")[0],
    )


def test_one_process_or_no_bound_cannot_be_explained_by_neighbours() -> None:
    busy = tuple(samples(1e6, others=1.5) for _ in range(3))
    turns_of = timed((1e6, 1.4e6), (1e6, 1.48e6), (1e6, 1.56e6))
    metric = judged("speedup(over=eager) >= 1x", *turns_of, processes=busy).metric
    assert metric is not None
    trial = SimpleNamespace(measurement=measured(1e6, processes=busy), context=CONTEXT)
    assert disturbed_by_others(metric, 1.5, trial)
    assert not disturbed_by_others(metric, 0.0, trial)
    assert disturbed_by_others(replace(metric, value=0.99), 1.0, trial)
    trial.measurement = measured(1e6, processes=busy[:1])
    assert not disturbed_by_others(metric, 1.5, trial)
