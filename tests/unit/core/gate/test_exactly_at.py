"""At exactly a limit the house says one thing, and these tests say which."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.acceptance import Change, decide, noise
from pytest_perfgate.core.judge.accepted_line import Signature, drift, unexplained
from pytest_perfgate.core.judge.against_limit import judge_artifact
from pytest_perfgate.core.judge.against_revision import foreign_modules
from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Sitting
from pytest_perfgate.model.metric import Analysis, Metric, MetricSet, Problem, labels
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.values import Dimension, Interval
from pytest_perfgate.model.verdict import Decision, Paired
from tests import reports
from tests.unit.core.gate.bench import GPU, KEY, KINDS, accepted, limit, measured, samples
from tests.unit.core.gate.test_proof import ARM, OTHER

CONTEXT = JudgeContext(kinds=KINDS, gates=40)


def ruled(text: str, time: float = 2e6, *, paired: Paired | None = None, context=CONTEXT, **fields):
    given = measured(time, **fields)
    return judge(given, [limit(text)], baseline=accepted(1e6), context=context, paired=paired).verdicts[0]


def arms(decision: Decision, shift: float, low: float, high: float, *, revision: bool = True) -> Paired:
    return Paired(
        decision=decision, differences=(shift,) * 10, shift=shift, interval=Interval(low=low, high=high),
        base="a1b2c3d", revision=revision,
    )  # fmt: skip


# two arms


@pytest.mark.parametrize("revision", [True, False])
def test_a_shift_of_exactly_the_limit_is_convicted(revision: bool) -> None:
    tried = arms(Decision.SLOWER, 0.5, 0.25, 0.75, revision=revision)
    assert ruled("slowdown <= 50%", paired=tried).outcome is Outcome.REGRESSED


def test_an_interval_that_ends_exactly_at_the_limit_is_not_below_it() -> None:
    assert ruled("slowdown <= 50%", paired=arms(Decision.UNDECIDED, 0.25, 0.0, 0.5)).outcome is Outcome.UNDECIDED


def test_faster_by_exactly_what_counts_is_no_improvement() -> None:
    once = {"processes": (samples(0.5e6, spread=0.0),)}
    assert ruled("slowdown <= 100%", **once).outcome is Outcome.PASSED
    assert ruled("slowdown <= 99%", **once).outcome is Outcome.IMPROVED


def test_a_limit_that_unchanged_code_moves_by_exactly_is_not_finer_than_that() -> None:
    for own, finer in ((0.5, False), (0.51, True)):
        found = ruled("slowdown <= 50%", 1.4e6, shape=(0.7, 1.0, 1.3), context=replace(CONTEXT, own_shift=own))
        assert found.outcome is Outcome.UNDECIDED
        assert ("the limit is finer than that" in found.sentence) is finer


def test_an_edit_is_beside_the_arms_of_a_call_of_half_a_nanosecond_too() -> None:
    line = accepted(0.5)
    edited = replace(line, time=0.625, why="a better reason", when="2026-07-01")
    found = judge(
        measured(1.0), [limit("slowdown <= 3%")], baseline=line, context=replace(CONTEXT, edited=edited, floor_ns=0.0),
        paired=arms(Decision.SLOWER, 0.25, 0.24, 0.26, revision=False),
    )  # fmt: skip
    assert found.verdicts[0].outcome is Outcome.ACCEPTED


def test_an_edit_is_beside_the_arms_where_the_play_takes_it_exactly_to_their_interval() -> None:
    edited = accepted(1.5e6, why="a better reason", when="2026-07-01")
    for low, outcome in ((0.875, Outcome.ACCEPTED), (0.885, Outcome.REGRESSED)):
        tried = arms(Decision.SLOWER, 0.9, low, 1.0, revision=False)
        assert ruled("slowdown <= 25%", paired=tried, context=replace(CONTEXT, edited=edited)).outcome is outcome


def test_an_edit_to_exactly_what_is_measured_agrees_whatever_counts() -> None:
    context = replace(CONTEXT, edited=accepted(2e6, why="exact softmax"), floor_ns=0.0)
    still = {"processes": (samples(2e6, spread=0.0),) * 3}
    assert ruled("slowdown <= 0%", context=context, **still).outcome is Outcome.ACCEPTED


def test_all_of_a_peak_may_be_demanded_and_no_more() -> None:
    assert limit("mfu >= 100%").bound == 1.0
    with pytest.raises(PerfgateError, match="more than the whole of a physical peak"):
        limit("mfu >= 101%")


# one arm


def test_many_processes_that_scatter_on_one_level_are_no_groups() -> None:
    """Their interval is narrower than from the fastest to the slowest."""
    shape = tuple(1 + 0.02 * (n - 9.5) / 19 for n in range(20))
    report = judge(measured(1e6, shape=shape), [limit("time <= 1.005ms")], baseline=None, context=CONTEXT)
    assert report.verdicts[0].outcome is Outcome.PASSED


def test_with_processes_in_groups_either_group_may_be_the_truth() -> None:
    report = judge(
        measured(1e6, shape=(1.0,) * 10 + (1.5,) * 10), [limit("time <= 1.4ms")], baseline=None, context=CONTEXT
    )
    (time,) = report.measurement.metrics.find("time")
    assert (time.low, time.high) == (1e6, 1.5e6)
    assert report.verdicts[0].outcome is Outcome.UNSTABLE


def test_what_no_second_arm_was_asked_has_no_rounds() -> None:
    assert ruled("time <= 1s").rounds == ruled("slowdown <= 3%").rounds == 0


def test_a_figure_that_no_process_gave_names_no_test_to_profile() -> None:
    counted = MetricSet(metrics=(Metric(name="count", value=5.0, dimension=Dimension.COUNT),))
    timed = ruled("count <= 4", device=GPU, metrics=counted)
    read = ruled("count <= 4", processes=(), device=GPU, metrics=counted)
    assert (timed.outcome, timed.next) == (Outcome.BROKEN, (f"perfgate profile '{KEY}'",))
    assert (read.outcome, read.next) == (Outcome.BROKEN, ())


def test_of_several_figures_the_furthest_from_an_exact_limit_speaks() -> None:
    every = tuple(
        Metric(name="count", value=n, dimension=Dimension.COUNT, labels=labels(kernel=n)) for n in (4.0, 1.0, 8.0)
    )
    found = ruled("count == 5", metrics=MetricSet(metrics=every))
    assert (found.outcome, found.metric.value) == (Outcome.BROKEN, 1.0)


# accepting


def blind(*asked: tuple[float, float | None], spread: float = 0.25) -> float | None:
    report = reports.case("test_a", 1e6, spread=spread)
    one = report.verdicts[0]
    verdicts = [replace(one, limit=replace(one.limit, bound=bound), visible=seen) for bound, seen in asked]
    return decide(replace(report, verdicts=tuple(verdicts)), None, (), Signature()).blind


def test_the_tightest_limit_asks_what_a_sitting_saw() -> None:
    assert blind((0.25, None)) is None
    assert blind((0.24, None), (0.3, None)) == 0.25
    assert blind((0.3, None), (0.26, None)) is None
    assert blind((0.2, 0.4)) == 0.4
    assert blind((0.2, 0.1)) == 0.25
    assert blind((0.0, None)) is None


def test_each_sitting_more_takes_its_share_of_what_the_accepted_ones_did_not_see() -> None:
    before = reports.baseline("test_a", 1e6, sittings=3, blind=0.2)
    added = decide(reports.case("test_a", 1.001e6, 1e6), before, (), Signature(), add=True).after
    assert added.sittings == 4
    assert added.blind == pytest.approx(1.2 ** (3 / 4) - 1)


def test_a_line_as_blind_as_what_counts_still_keeps_its_limit() -> None:
    for blind, outcome in ((0.5, Outcome.PASSED), (0.51, Outcome.UNDECIDED)):
        report = judge(measured(1e6), [limit("slowdown <= 50%")], baseline=accepted(1e6, blind=blind), context=CONTEXT)
        assert report.verdicts[0].outcome is outcome


def timed(value: float, low: float, high: float) -> Metric:
    return Metric(name="time", value=value, dimension=Dimension.TIME, interval=Interval(low=low, high=high))


@pytest.mark.parametrize(
    ("scatter", "sittings", "half", "still"),
    [
        (0.005, 2, 0.0, 0.01),
        (0.03, 2, 0.0, 0.06),
        (0.0, 2, 0.0, 0.0001),
        (0.005, 1, 0.0, 0.03),
        (0.03, 1, 0.0, 0.06),
        (0.02, 5, 0.03, 0.05),
    ],
)
def test_no_movement_is_half_an_interval_and_two_deviations_between_sittings(
    scatter: float, sittings: int, half: float, still: float
) -> None:
    """Taken as independent of each other; one sitting alone is trusted to 3 %, and nothing to less than 0.01 %."""
    line = reports.baseline("test_a", 1e6, scatter=scatter, sittings=sittings)
    assert noise(line, timed(1e6, 1e6 * (1 - half), 1e6 * (1 + half))) == pytest.approx(still)


def test_a_time_that_lies_off_by_exactly_its_noise_has_not_moved() -> None:
    line = reports.baseline("test_a", 1e6, scatter=0.25, sittings=2)
    for time, change in ((1.5e6, Change.KEPT), (1.51e6, Change.SLOWER), (0.5e6, Change.KEPT), (0.49e6, Change.FASTER)):
        assert decide(reports.case("test_a", time, 1e6, spread=0.0), line, (), Signature()).change is change


# an anchor


def test_a_line_that_is_slower_by_exactly_its_noise_explains_nothing() -> None:
    before = accepted(1e6)
    assert not unexplained(replace(before, time=1.5e6), before, 0.5)
    assert unexplained(replace(before, time=1.6e6), before, 0.5)


def line(*times: float) -> list[Sitting]:
    return [Sitting(key=KEY, device="d", time=time, when="") for time in times]


def test_a_drift_of_exactly_what_an_anchor_allows_is_no_alarm() -> None:
    assert not drift(line(1500.0), 1000.0, 0.5).alarms
    assert drift(line(1501.0), 1000.0, 0.5).alarms
    steps = drift(line(1500.0, 2250.0), 1000.0, 0.5)
    assert steps.sentence == "slower than the anchor after 2 runs, no step of them beyond the limit"


def test_today_is_the_middle_of_three_sittings() -> None:
    assert drift(line(1.0, 1.0, 9.0, 2.0, 4.0), 1.0, 0.05).now == 4.0


# artifacts


def judged(text: str, *metrics: Metric, problems: int = 0):
    wrong = tuple(Problem(code="x", what=f"problem {at}") for at in range(problems))
    analysis = Analysis(kind="nsys", subject="x", metrics=MetricSet(metrics=metrics), views={}, problems=wrong)
    return judge_artifact(analysis, [limit(text)])[0]


@pytest.mark.parametrize(
    ("name", "value", "source", "outcome"),
    [
        ("mfu", 1.04, "trace", Outcome.PASSED),
        ("mfu", 1.05, "trace", Outcome.PASSED),
        ("mfu", 1.06, "trace", Outcome.INVALID),
        ("sol_datasheet", 1.06, "trace", Outcome.INVALID),
        ("sol_ceiling", 1.06, "trace", Outcome.PASSED),
        ("overlap", 1.06, "trace", Outcome.PASSED),
        ("mfu", 1.06, "time", Outcome.PASSED),
    ],
)
def test_a_trace_that_shows_more_than_a_peak_and_its_play_keeps_no_limit(
    name: str, value: float, source: str, outcome: Outcome
) -> None:
    found = judged(
        f"{name} >= 50%", Metric(name=name, value=value, dimension=Dimension.FRACTION, source=source, note="n")
    )
    assert found.outcome is outcome
    assert found.evidence == (("note", "n"),)
    assert ("more than the hardware can do" in found.sentence) is (outcome is Outcome.INVALID)


@pytest.mark.parametrize(
    ("value", "outcome"),
    [(1.05, Outcome.PASSED), (1.06, Outcome.UNDECIDED), (2.0, Outcome.UNDECIDED), (2.1, Outcome.INVALID)],
)
def test_a_measured_ceiling_is_doubted_beyond_its_play_and_the_work_beyond_twice(
    value: float, outcome: Outcome
) -> None:
    figure = MetricSet(metrics=(Metric(name="mfu_ceiling", value=value, dimension=Dimension.FRACTION),))
    assert ruled("mfu_ceiling >= 50%", processes=(), metrics=figure).outcome is outcome


@pytest.mark.parametrize(
    ("count", "said"), [(1, "problem 0"), (2, "problem 0 (and 1 more problem)"), (3, "problem 0 (and 2 more problems)")]
)
def test_problems_are_counted_in_english(count: int, said: str) -> None:
    assert judged("mfu >= 50%", problems=count).sentence == f"mfu >= 50%: {said}"


def test_of_two_strange_files_one_is_shown_and_one_counted() -> None:
    assert foreign_modules(ARM, [OTHER, OTHER]).what.endswith(": /home/pkg/a.py and 1 more")
