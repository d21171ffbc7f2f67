"""Tests of core/judge/accepting_figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.acceptance import Change, Proposal, decide, refuse_unneeded
from pytest_perfgate.core.judge.accepted_line import Signature
from pytest_perfgate.core.judge.accepting_figures import (
    accepted_figure,
    check_named,
    first_figures,
    with_figures,
    with_run,
)
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.render.block import acceptance_lines
from pytest_perfgate.core.render.exports import acceptance_json
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Baseline
from pytest_perfgate.model.metric import Figure, FigurePairs, Interval, Metric, MetricSet, Problem
from pytest_perfgate.model.plan import Decision, Outcome
from pytest_perfgate.model.values import Better, Dimension
from pytest_perfgate.model.verdict import CaseReport, Paired
from tests.unit.core.judge.bench import CONTEXT, accepted, limit, measured

TODAY = Signature(who="A. F.", when="2026-06-01", commit="c0ffee123456")

COUNT, PART, TIME, BYTES = Dimension.COUNT, Dimension.FRACTION, Dimension.TIME, Dimension.BYTES


def figure(name: str, value: float, dimension: Dimension = COUNT, **fields) -> Figure:
    return Figure(name=name, value=value, dimension=dimension, **fields)


def report(
    limits: tuple[str, ...], *metrics: Metric, before: Baseline | None = None, timed: bool = False
) -> CaseReport:
    measurement = measured(1e6, metrics=MetricSet(metrics=metrics), **({} if timed else {"shape": ()}))
    return judge(measurement, [limit(text) for text in limits], baseline=before, context=CONTEXT)


def decision(
    case_report: CaseReport, before: Baseline | None, *names: str, signature: Signature = TODAY, add: bool = False
) -> Proposal:
    made = refuse_unneeded(decide(case_report, before, (), signature, add=add), {})
    return with_figures(made, names, signature, add=add)


def registers(value: float) -> Metric:
    return Metric(name="registers", value=value, dimension=COUNT)


LIMIT = ("change(registers) <= 0",)


def test_the_first_line_holds_what_the_limits_name_and_no_time() -> None:
    case_report = report(LIMIT, registers(128), Metric(name="spills", value=0, dimension=Dimension.BYTES), timed=True)
    made = decision(case_report, None)
    assert made.change is Change.NEW
    assert made.after is not None
    assert (made.after.time, made.after.figures) == (0.0, (figure("registers", 128),))
    assert (made.after.commit, made.after.who, made.asks) == ("c0ffee123456", "A. F.", False)


def test_a_case_whose_limits_ask_for_both_has_both() -> None:
    case_report = report(("slowdown <= 3%", *LIMIT), registers(128), timed=True)
    made = decision(case_report, None)
    assert made.after is not None
    assert (made.after.time, made.after.figures) == (1e6, (figure("registers", 128),))


@pytest.mark.parametrize(
    ("then", "now", "change", "asks", "value"),
    [
        (128, 128, Change.KEPT, False, None),
        (128, 130, Change.WORSE, True, 130),
        (128, 120, Change.BETTER, False, 120),
    ],
)
def test_an_exact_figure_is_written_where_it_differs(
    then: int, now: int, change: Change, asks: bool, value: int | None
) -> None:
    before = accepted(0.0, figures=(figure("registers", then),))
    made = decision(report(LIMIT, registers(now), before=before), before)
    assert (made.change, made.asks) == (change, asks)
    assert (made.after.figures[0].value if made.after else None) == value


def test_an_exact_figure_that_keeps_its_limit_is_written_where_it_differs() -> None:
    before = accepted(0.0, figures=(figure("registers", 128),))
    made = decision(report(("change(registers) <= 5%",), registers(130), before=before), before)
    assert (made.change, made.asks) == (Change.WORSE, True)


def test_the_time_stays_where_a_figure_alone_got_worse() -> None:
    before = accepted(1e6, figures=(figure("registers", 128),))
    case_report = report(("slowdown <= 3%", *LIMIT), registers(130), before=before, timed=True)
    made = decision(case_report, before, signature=replace(TODAY, why="one more stage"))
    assert (made.change, made.asks) == (Change.WORSE, True)
    assert made.after is not None
    assert (made.after.time, made.after.why, made.after.commit) == (1e6, "one more stage", "c0ffee123456")
    lines = list(acceptance_lines([made]))
    assert "registers  128 -> 130  +1.6 %  worse" in lines[1]
    assert acceptance_json([made])[0]["figures"] == [
        {"metric": "registers", "before": 128, "after": 130, "unit": "count", "worse": True}
    ]


@pytest.mark.parametrize(("then", "worse"), [(None, False), (126, True), (130, False)])
def test_a_figure_is_worse_only_against_an_accepted_one(then: float | None, worse: bool) -> None:
    before = None if then is None else accepted(0.0, figures=(figure("registers", then),))
    (step,) = acceptance_json([decision(report(LIMIT, registers(128), before=before), before)])[0]["figures"]
    assert (step["before"], step["after"], step["worse"]) == (then, 128, worse)


def test_a_record_whose_worse_figure_was_accepted_is_accepted_once() -> None:
    duration = Metric(name="duration", value=412e3, dimension=TIME)
    before = accepted(0.0, figures=(figure("duration", 300e3, TIME),))
    case_report = report(("change(duration) <= 5%",), duration, before=before)
    first = decision(case_report, before, signature=replace(TODAY, why="one more stage"))
    assert (first.change, first.asks) == (Change.WORSE, True)
    again = decision(case_report, first.after)
    assert (again.change, again.asks) == (Change.KEPT, False)


def test_figures_that_nobody_measured_again_stay() -> None:
    before = accepted(1e6, figures=(figure("spills", 0, Dimension.BYTES),))
    case_report = report(("slowdown <= 3%", *LIMIT), registers(128), before=before, timed=True)
    made = decision(case_report, before)
    assert made.change is Change.ADDED
    assert made.after is not None
    assert [one.name for one in made.after.figures] == ["registers", "spills"]


def test_a_figure_that_is_gone_asks_for_a_reason_and_is_told() -> None:
    kernels = [(("kernel", name),) for name in ("a", "b")]
    before = accepted(0.0, figures=tuple(figure("registers", 32, labels=who) for who in kernels))
    case_report = report(LIMIT, replace(registers(32), labels=kernels[0]), before=before)
    made = decision(case_report, before)
    assert (made.change, made.asks) == (Change.WORSE, True)
    assert made.after is not None
    assert [one.labels for one in made.after.figures] == [kernels[0]]
    assert "registers(kernel=b)  32 -> gone" in "\n".join(acceptance_lines([made]))


def test_another_metric_is_accepted_by_its_name() -> None:
    before = accepted(1e6)
    case_report = report(("slowdown <= 3%",), registers(128), before=before, timed=True)
    assert decision(case_report, before).after is None
    made = decision(case_report, before, "registers")
    assert made.after is not None
    assert made.after.figures == (figure("registers", 128),)
    tail = replace(registers(5.0), name="time", labels=(("q", "99%"),), dimension=TIME)
    timed = report(("slowdown <= 3%",), tail, before=before, timed=True)
    check_named([timed], ["time(q=99%)"])
    with pytest.raises(PerfgateError) as error:
        check_named([timed], ["time"])
    with pytest.raises(PerfgateError) as error:
        check_named([case_report], ["registres"])
    assert error.value.code.name == "accept-selection"
    assert "registers" in error.value.fix


def test_a_measured_figure_keeps_five_digits_and_moves_beyond_its_noise() -> None:
    limits = ("change(duration) <= 50%",)
    now = Metric(name="duration", value=412.345678e3, dimension=TIME)
    first = decision(report(limits, now), None)
    assert first.after is not None
    assert first.after.figures[0].value == pytest.approx(412.35e3)
    line = replace(first.after, figures=(replace(first.after.figures[0], scatter=0.01, runs=3),))
    near = report(limits, replace(now, value=415e3), before=line)
    assert decision(near, line).after is None
    far = decision(report(limits, replace(now, value=430e3), before=line), line)
    assert (far.change, far.asks) == (Change.WORSE, True)
    more = decision(near, line, add=True)
    assert more.change is Change.ONE_MORE
    assert more.after is not None
    added = more.after.figures[0]
    assert added.runs == 4
    assert added.value == pytest.approx(413.01e3, rel=1e-4)


def test_what_a_first_run_keeps() -> None:
    assert first_figures(report(LIMIT, registers(7))) == (figure("registers", 7),)
    assert first_figures(report(("registers <= 9",), registers(7))) == ()


@pytest.mark.parametrize(
    ("before", "value", "mean", "scatter", "runs"),
    [
        (figure("a", 100.0, TIME), 104.0, 102.0, 0.04 / 2**0.5, 2),
        (figure("a", 100.0, TIME, scatter=0.01, runs=3), 104.0, 101.0, 0.021602469, 4),
        (figure("a", -100.0, COUNT, scatter=0.01, runs=3), -96.0, -99.0, 0.021602469, 4),
        (figure("a", 0.5, PART, scatter=0.01, runs=2), 0.56, 0.52, 0.035355339, 3),
        (figure("a", 0.0, COUNT), 3.0, 1.5, 0.0, 2),
        (figure("a", 0.0, PART), 0.04, 0.02, 0.04 / 2**0.5, 2),
    ],
)
def test_one_more_run_moves_the_mean_and_the_scatter(
    before: Figure, value: float, mean: float, scatter: float, runs: int
) -> None:
    """As a part of the accepted value, and of a percentage in points; a part of zero says nothing."""
    after = with_run(before, value)
    assert (after.value, after.scatter, after.runs) == (
        pytest.approx(mean), pytest.approx(scatter, rel=1e-6), runs,
    )  # fmt: skip


def memory(value: float, apart: float = 0.0, dimension: Dimension = COUNT, **fields) -> Metric:
    interval = Interval(low=value - apart, high=value + apart) if apart else None
    return Metric(name="memory", value=value, dimension=dimension, interval=interval, **fields)


def named_step(now: Metric, then: Figure, *, add: bool = False) -> Proposal:
    """Accept a figure by its name: no limit judges it. The time is of this run already."""
    before = replace(accepted(1e6, figures=(then,)), commit=TODAY.commit)
    return decision(report(("slowdown <= 3%",), now, before=before, timed=True), before, "memory", add=add)


@pytest.mark.parametrize(
    ("then", "within", "beyond"),
    [
        (figure("memory", 1000.0, scatter=0.01), memory(1019.0), memory(1021.0)),
        (figure("memory", 1000.0, scatter=0.01), memory(981.0), memory(979.0)),
        (figure("memory", 1000.0, scatter=0.01), memory(1024.0, 15.0), memory(1026.0, 15.0)),
        (figure("memory", 1000.0), memory(1014.0, 15.0), memory(1016.0, 15.0)),
        (figure("memory", -1000.0, scatter=0.01), memory(-1019.0), memory(-1021.0)),
        (figure("memory", 100_000.0), memory(100_010.0), memory(100_020.0)),
        (figure("memory", -100_000.0), memory(-100_010.0), memory(-100_020.0)),
        (figure("memory", 0.5, PART, scatter=0.01), memory(0.519, dimension=PART), memory(0.521, dimension=PART)),
        (figure("memory", 128.0), memory(128.0, exact=True), memory(128.001, exact=True)),
        (figure("memory", 128.0, Dimension.PLAIN), memory(128.0), memory(129.0)),
    ],
)
def test_a_named_figure_changes_beyond_two_standard_deviations_its_interval_and_rounding(
    then: Figure, within: Metric, beyond: Metric
) -> None:
    assert named_step(within, then).after is None
    changed = named_step(beyond, then)
    assert changed.after is not None
    assert [(step.before, step.after, step.asks, step.better) for step in changed.figures] == [
        (then, figure("memory", beyond.value, beyond.dimension), True, False)
    ]
    added = named_step(within, then, add=True)
    assert (added.after is not None) is not within.exact, (
        "one more run of an exact figure that is the same adds nothing"
    )


@pytest.mark.parametrize(
    ("better", "value", "change"),
    [
        (Better.LOWER, 900.0, Change.BETTER), (Better.LOWER, 1100.0, Change.WORSE),
        (Better.HIGHER, 900.0, Change.WORSE), (Better.HIGHER, 1100.0, Change.BETTER),
        (Better.NEITHER, 900.0, Change.WORSE), (Better.NEITHER, 1100.0, Change.WORSE),
        (None, 900.0, Change.WORSE),
    ],
)  # fmt: skip
def test_a_change_for_the_better_needs_no_reason(better: Better | None, value: float, change: Change) -> None:
    made = named_step(memory(value, better=better), figure("memory", 1000.0))
    assert (made.change, made.asks, made.figures[0].better) == (change, change is Change.WORSE, change is Change.BETTER)


def test_a_figure_of_another_unit_is_written_anew_with_a_reason() -> None:
    made = named_step(memory(1000.0, dimension=BYTES), figure("memory", 1000.0))
    assert (made.change, made.asks) == (Change.WORSE, True)
    assert made.figures[0].after == figure("memory", 1000.0, BYTES)


def durations(*values: float) -> tuple[Metric, ...]:
    return tuple(
        Metric(name="memory", value=value, dimension=COUNT, labels=(("kernel", name),), better=Better.LOWER)
        for name, value in zip("abc", values)
    )


@pytest.mark.parametrize(
    ("now", "add", "change"),
    [
        ((1100.0, 900.0, 1000.0), False, Change.WORSE),
        ((900.0, 1000.0, 1000.0), True, Change.BETTER),
        ((900.0, 900.0, 1000.0), False, Change.BETTER),
        ((1000.0, 1000.0, 1000.0), True, Change.ONE_MORE),
    ],
)
def test_the_worst_change_of_several_figures_names_the_decision(
    now: tuple[float, ...], change: Change, *, add: bool
) -> None:
    before = accepted(0.0, figures=tuple(figure("memory", 1000.0, labels=one.labels) for one in durations(*now)))
    case_report = report(("change(metric(memory)) <= 5%",), *durations(*now), before=before)
    made = with_figures(
        Proposal(report=case_report, before=before, after=None, change=Change.KEPT), ["memory"], TODAY, add=add
    )
    assert made.change is (Change.KEPT if not made.figures else change)


def test_a_new_figure_beside_one_more_run_is_added() -> None:
    one, other = durations(1000.0, 7.0)
    before = replace(accepted(1e6, figures=(figure("memory", 1000.0, labels=one.labels),)), commit=TODAY.commit)
    case_report = report(("slowdown <= 3%",), one, other, before=before, timed=True)
    assert decision(case_report, before, "memory", add=True).change is Change.ADDED


@pytest.mark.parametrize(
    ("limits", "runs", "value", "change"),
    [
        (("change(metric(memory)) <= 5%",), 1, 1030.0, Change.KEPT),
        (("change(metric(memory)) <= 5%",), 2, 1030.0, Change.WORSE),
        (("change(metric(memory)) <= 5%",), 2, 1000.0, Change.KEPT),
        (("change(metric(memory)) <= 5%",), 1, 1100.0, Change.WORSE),
        (("change(metric(memory)) <= 5%", "change(metric(memory)) >= -50%"), 1, 1100.0, Change.WORSE),
    ],
)
def test_a_figure_that_keeps_its_limit_changes_once_its_scatter_is_known(
    limits: tuple[str, ...], runs: int, value: float, change: Change
) -> None:
    before = accepted(0.0, figures=(figure("memory", 1000.0, runs=runs),))
    case_report = report(limits, memory(value), before=before)
    assert decision(case_report, before).change is change


def test_a_verdict_on_another_figure_of_the_same_value_says_nothing() -> None:
    """The loss keeps its limit, and its scatter is unknown; the memory beside it was as large and is REGRESSED."""
    loss = Metric(name="loss", value=1030.0, dimension=COUNT)
    before = accepted(0.0, figures=(figure("loss", 1000.0), figure("memory", 1000.0)))
    limits = ("change(metric(memory)) <= 5%", "change(metric(loss)) <= 5%")
    made = decision(report(limits, memory(1100.0), loss, before=before), before)
    assert made.after is not None
    assert {one.name: one.value for one in made.after.figures} == {"loss": 1000.0, "memory": 1100.0}


def test_a_verdict_against_another_accepted_value_says_nothing() -> None:
    """The record was judged against 1,000; since then 1,030 was accepted."""
    before = accepted(0.0, figures=(figure("memory", 1000.0),))
    case_report = report(("change(metric(memory)) <= 5%",), memory(1030.0), before=before)
    since = accepted(0.0, figures=(figure("memory", 1010.0),))
    assert decision(case_report, before).change is Change.KEPT
    assert decision(case_report, since).change is Change.WORSE


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        (Metric(name="memory", value=412_345.678, dimension=TIME), 412_350.0),
        (Metric(name="memory", value=412_345.0, dimension=TIME), 412_350.0),
        (Metric(name="calls", value=1_234_561, dimension=COUNT), 1_234_561),
        (Metric(name="calls", value=1_234_561.5, dimension=COUNT), 1_234_600.0),
        (Metric(name="calls", value=2.0**54 + 4, dimension=COUNT), 18_014_000_000_000_000.0),
        (Metric(name="memory", value=412_345.678, dimension=TIME, exact=True), 412_345.678),
        (Metric(name="registers", value=412_345.0, dimension=COUNT), 412_345.0),
        (Metric(name="peak_memory", value=412_345.678, dimension=TIME), 412_350.0),
    ],
)
def test_what_is_counted_keeps_every_digit(metric: Metric, value: float) -> None:
    assert accepted_figure(metric).value == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("change", [Change.UNTRUSTED, Change.PINNED])
def test_a_run_that_is_not_accepted_leaves_its_figures(change: Change) -> None:
    before = accepted(1e6, figures=(figure("memory", 1000.0),))
    case_report = report(("slowdown <= 3%",), memory(2000.0), before=before, timed=True)
    unaccepted = Proposal(report=case_report, before=before, after=None, change=change)
    assert with_figures(unaccepted, ["memory"], TODAY, add=False) is unaccepted
    unchanged = replace(unaccepted, change=Change.KEPT)
    assert with_figures(unchanged, ["memory"], TODAY, add=False).change is Change.WORSE
    broken = replace(
        unchanged, report=replace(case_report, problems=(Problem(code="clock-moved", what="it left its lock"),))
    )
    assert with_figures(broken, ["memory"], TODAY, add=False) is broken
    absent = replace(unchanged, report=replace(case_report, measurement=None))
    assert with_figures(absent, ["memory"], TODAY, add=False) is absent


@pytest.mark.parametrize(
    ("change", "figures", "expected"),
    [
        (Change.UNTIMED, (figure("spills", 0, BYTES),), (Change.KEPT, "as accepted")),
        (Change.UNTIMED, (), (Change.UNTIMED, "why")),
        (Change.KEPT, (figure("spills", 0, BYTES),), (Change.KEPT, "why")),
    ],
)
def test_a_line_of_figures_alone_is_kept_where_none_moved(
    change: Change, figures: tuple[Figure, ...], expected: tuple[Change, str]
) -> None:
    before = accepted(0.0, figures=figures)
    made = Proposal(
        report=report(("slowdown <= 3%",), before=before), before=before, after=None, change=change, why="why"
    )
    after = with_figures(made, (), TODAY, add=False)
    assert (after.change, after.why) == expected


def test_a_run_without_a_commit_keeps_the_commit_of_the_line() -> None:
    before = accepted(1e6, figures=(figure("memory", 1000.0),))
    case_report = report(("slowdown <= 3%",), memory(2000.0), before=before, timed=True)
    unsigned = decision(case_report, before, "memory", signature=replace(TODAY, commit=""))
    assert unsigned.after is not None
    assert unsigned.after.commit == "a1b2c3d4e5"


@pytest.mark.parametrize("name", ["slowdown", "slowdown(q=99%)", "time", "spills"])
def test_a_named_metric_must_be_a_figure_of_some_case(name: str) -> None:
    one, other = (report(("slowdown <= 3%",), *metrics, timed=True) for metrics in ((registers(7),), ()))
    assert one.measurement is not None
    slowdowns = MetricSet(metrics=(registers(7), replace(registers(7), name="slowdown")))
    one = replace(one, measurement=one.measurement.with_metrics(slowdowns))
    check_named([other, one], ["registers"])
    with pytest.raises(PerfgateError) as error:
        check_named([other, one], [name])
    assert error.value.code.name == "accept-selection"


def test_a_figure_that_moved_with_the_machine_is_accepted_with_a_reason() -> None:
    """Two builds found it no worse than the base; its line rests on one run, whose scatter is unknown."""
    before = accepted(1e6, figures=(figure("memory", 1e6, BYTES),))
    rounds = [1.1e6 + 1e3 * (at % 3) for at in range(12)]
    builds = Paired(
        decision=Decision.NOT_SLOWER, differences=(0.0,) * 12, shift=0.0, interval=Interval(low=-0.01, high=0.01),
        base="a1b2c3d",
        figures=(FigurePairs(name="memory", labels=(), dimension=BYTES, base=tuple(rounds), head=tuple(rounds)),),
    )  # fmt: skip
    now = Metric(name="memory", value=1.1e6, dimension=BYTES, interval=Interval(low=1.09e6, high=1.11e6))
    measurement = measured(1e6, metrics=MetricSet(metrics=(now,)))
    limits = [limit("change(metric(memory)) <= 5%")]
    case_report = judge(measurement, limits, baseline=before, context=CONTEXT, paired=builds)
    assert [verdict.outcome for verdict in case_report.verdicts] == [Outcome.MOVED]
    made = decision(case_report, before, signature=replace(TODAY, why="a new allocator"))
    assert (made.change, made.asks) == (Change.WORSE, True)
    assert made.after is not None
    assert [one.value for one in made.after.figures] == [pytest.approx(1.1e6, rel=1e-4)]


SAME = replace(TODAY, started="20260601T120000Z", why="again", same_code=True)


@pytest.mark.parametrize(
    ("value", "signature", "change", "figures"),
    [
        (1400.0, SAME, Change.ONE_MORE, (1200.0, 2)),
        (600.0, SAME, Change.ONE_MORE, (800.0, 2)),
        (1400.0, replace(SAME, why=""), Change.WORSE, (1400.0, 1)),
        (1400.0, replace(SAME, same_code=False, commit="other"), Change.WORSE, (1400.0, 1)),
        (1400.0, replace(SAME, untracked=("kernel.cu",)), Change.WORSE, (1400.0, 1)),
        (1000.0, SAME, Change.COUNTED, (1000.0, 1)),
        (1000.0, replace(SAME, commit="other"), Change.ONE_MORE, (1000.0, 2)),
    ],
)
def test_one_more_run_of_the_same_code_counts_a_figure_that_moved(
    value: float, signature: Signature, change: Change, figures: tuple[float, int]
) -> None:
    """Times of another tool's file scatter as those of a call; the run that made the line is not one more."""
    limits, now = ("change(metric(memory)) <= 5%",), memory(value)
    before = replace(accepted(0.0, figures=(figure("memory", 1000.0),)), commit=TODAY.commit, surroundings=None)
    once = decision(report(limits, now, before=before), before, signature=signature, add=True)
    line = once.after or before
    assert (once.change, *((f.value, f.runs) for f in line.figures)) == (change, figures)
    assert (line.counted == SAME.started) is (once.after is not None)
    twice = decision(report(limits, now, before=line), line, signature=signature, add=True)
    assert (twice.change, twice.after) == (Change.COUNTED, None)
