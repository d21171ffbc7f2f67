"""Tests of core/judge/accepting_figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.acceptance import Change, Decision, decide, unasked
from pytest_perfgate.core.judge.accepted_line import Signature
from pytest_perfgate.core.judge.accepting_figures import check_named, first_figures, with_figures
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.render.block import acceptance_json, acceptance_lines
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Baseline
from pytest_perfgate.model.metric import Figure, Metric, MetricSet
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.model.verdict import CaseReport
from tests.unit.core.judge.bench import CONTEXT, accepted, limit, measured

TODAY = Signature(who="A. F.", when="2026-06-01", commit="c0ffee123456")

COUNT, PART, TIME = Dimension.COUNT, Dimension.FRACTION, Dimension.TIME


def figure(name: str, value: float, dimension: Dimension = COUNT, **fields) -> Figure:
    return Figure(name=name, value=value, dimension=dimension, **fields)


def report(
    limits: tuple[str, ...], *metrics: Metric, before: Baseline | None = None, timed: bool = False
) -> CaseReport:
    measurement = measured(1e6, metrics=MetricSet(metrics=metrics), **({} if timed else {"shape": ()}))
    return judge(measurement, [limit(text) for text in limits], baseline=before, context=CONTEXT)


def decision(
    found: CaseReport, before: Baseline | None, *names: str, signature: Signature = TODAY, add: bool = False
) -> Decision:
    made = unasked(decide(found, before, (), signature, add=add), {})
    return with_figures(made, names, signature, add=add)


def registers(value: float) -> Metric:
    return Metric(name="registers", value=value, dimension=COUNT)


LIMIT = ("change(registers) <= 0",)


def test_the_first_line_holds_what_the_limits_name_and_no_time() -> None:
    found = report(LIMIT, registers(128), Metric(name="spills", value=0, dimension=Dimension.BYTES), timed=True)
    made = decision(found, None)
    assert made.change is Change.NEW
    assert made.after is not None
    assert (made.after.time, made.after.figures) == (0.0, (figure("registers", 128),))
    assert (made.after.commit, made.after.who, made.asks) == ("c0ffee123456", "A. F.", False)


def test_a_case_whose_limits_ask_for_both_has_both() -> None:
    found = report(("slowdown <= 3%", *LIMIT), registers(128), timed=True)
    made = decision(found, None)
    assert made.after is not None
    assert (made.after.time, made.after.figures) == (1e6, (figure("registers", 128),))


@pytest.mark.parametrize(
    ("then", "now", "change", "asks", "kept"),
    [
        (128, 128, Change.KEPT, False, None),
        (128, 130, Change.WORSE, True, 130),
        (128, 120, Change.BETTER, False, 120),
    ],
)
def test_an_exact_figure_is_written_where_it_differs(
    then: int, now: int, change: Change, asks: bool, kept: int | None
) -> None:
    before = accepted(0.0, figures=(figure("registers", then),))
    made = decision(report(LIMIT, registers(now), before=before), before)
    assert (made.change, made.asks) == (change, asks)
    assert (made.after.figures[0].value if made.after else None) == kept


def test_the_time_stays_where_a_figure_alone_got_worse() -> None:
    before = accepted(1e6, figures=(figure("registers", 128),))
    found = report(("slowdown <= 3%", *LIMIT), registers(130), before=before, timed=True)
    made = decision(found, before, signature=replace(TODAY, why="one more stage"))
    assert (made.change, made.asks) == (Change.WORSE, True)
    assert made.after is not None
    assert (made.after.time, made.after.why, made.after.commit) == (1e6, "one more stage", "c0ffee123456")
    lines = list(acceptance_lines([made]))
    assert "registers  128 -> 130  +1.6 %  worse" in lines[1]
    assert acceptance_json([made])[0]["figures"] == [
        {"metric": "registers", "before": 128, "after": 130, "unit": "count", "worse": True}
    ]


def test_a_record_whose_worse_figure_was_accepted_is_accepted_once() -> None:
    duration = Metric(name="duration", value=412e3, dimension=TIME)
    before = accepted(0.0, figures=(figure("duration", 300e3, TIME),))
    found = report(("change(duration) <= 5%",), duration, before=before)
    first = decision(found, before, signature=replace(TODAY, why="one more stage"))
    assert (first.change, first.asks) == (Change.WORSE, True)
    again = decision(found, first.after)
    assert (again.change, again.asks) == (Change.KEPT, False)


def test_figures_that_nobody_measured_again_stay() -> None:
    before = accepted(1e6, figures=(figure("spills", 0, Dimension.BYTES),))
    found = report(("slowdown <= 3%", *LIMIT), registers(128), before=before, timed=True)
    made = decision(found, before)
    assert made.change is Change.ADDED
    assert made.after is not None
    assert [one.name for one in made.after.figures] == ["registers", "spills"]


def test_a_figure_that_is_gone_asks_for_a_reason_and_is_told() -> None:
    kernels = [(("kernel", name),) for name in ("a", "b")]
    before = accepted(0.0, figures=tuple(figure("registers", 32, labels=who) for who in kernels))
    found = report(LIMIT, replace(registers(32), labels=kernels[0]), before=before)
    made = decision(found, before)
    assert (made.change, made.asks) == (Change.WORSE, True)
    assert made.after is not None
    assert [one.labels for one in made.after.figures] == [kernels[0]]
    assert "registers(kernel=b)  32 -> gone" in "\n".join(acceptance_lines([made]))


def test_another_metric_is_accepted_by_its_name() -> None:
    before = accepted(1e6)
    found = report(("slowdown <= 3%",), registers(128), before=before, timed=True)
    assert decision(found, before).after is None
    made = decision(found, before, "registers")
    assert made.after is not None
    assert made.after.figures == (figure("registers", 128),)
    tail = replace(registers(5.0), name="time", labels=(("q", "99%"),), dimension=TIME)
    timed = report(("slowdown <= 3%",), tail, before=before, timed=True)
    check_named([timed], ["time(q=99%)"])
    with pytest.raises(PerfgateError) as error:
        check_named([timed], ["time"])
    with pytest.raises(PerfgateError) as error:
        check_named([found], ["registres"])
    assert error.value.code.name == "accept-selection"
    assert "registers" in error.value.fix


def test_a_measured_figure_keeps_five_digits_and_moves_beyond_its_noise() -> None:
    limits = ("change(duration) <= 50%",)
    now = Metric(name="duration", value=412.345678e3, dimension=TIME)
    first = decision(report(limits, now), None)
    assert first.after is not None
    assert first.after.figures[0].value == pytest.approx(412.35e3)
    line = replace(first.after, figures=(replace(first.after.figures[0], scatter=0.01, sittings=3),))
    near = report(limits, replace(now, value=415e3), before=line)
    assert decision(near, line).after is None
    far = decision(report(limits, replace(now, value=430e3), before=line), line)
    assert (far.change, far.asks) == (Change.WORSE, True)
    more = decision(near, line, add=True)
    assert more.change is Change.SITTING
    assert more.after is not None
    added = more.after.figures[0]
    assert added.sittings == 4
    assert added.value == pytest.approx(413.01e3, rel=1e-4)


def test_what_a_first_run_keeps() -> None:
    assert first_figures(report(LIMIT, registers(7))) == (figure("registers", 7),)
    assert first_figures(report(("registers <= 9",), registers(7))) == ()
