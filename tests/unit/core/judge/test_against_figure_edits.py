"""Tests of core/judge/against_figure: edited lines, figures that are gone, unchanged ones, intervals around a limit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.against_figure import selected_figures
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.readings import reach_in_turns
from pytest_perfgate.model.measurement import Baseline, Reference
from pytest_perfgate.model.metric import Absent, Figure, Metric, MetricSet
from pytest_perfgate.model.plan import Effect, Mode, Outcome
from pytest_perfgate.model.values import Dimension
from tests.unit.core.judge.bench import CONTEXT, accepted, limit, measured
from tests.unit.core.judge.figures import BYTES, PART, TIME, figure, judged, metric


def test_each_figure_that_a_scope_selects_is_held_against_its_own() -> None:
    def one(kernel: str, value: float) -> tuple[Metric, Figure]:
        labels = (("kernel", kernel),)
        return metric("registers", value, labels=labels), figure("registers", value, labels=labels)

    (a, then_a), (b, then_b) = one("a", 32), one("b", 64)
    unchanged = judged("change(registers) <= 0", (a, b), then_a, then_b)
    worse = judged("change(registers) <= 0", (a, replace(b, value=65)), then_a, then_b)
    new = judged("change(registers) <= 0", (a, b), then_a)
    missing = judged("change(registers) <= 0", (a,), then_a, then_b)
    assert [v.outcome for v in (unchanged, worse, new, missing)] == [
        Outcome.PASSED, Outcome.REGRESSED, Outcome.UNBASELINED, Outcome.NOT_MEASURED,
    ]  # fmt: skip
    assert worse.figure == then_b
    assert missing.effect is Effect.FAIL, "a figure that went takes no judgement away"


def edited(before: Baseline, value: float, **fields) -> Baseline:
    return replace(before, figures=(figure("registers", value),), **fields)


@pytest.mark.parametrize(
    ("value", "why", "outcome"),
    [
        (130, "one more stage", Outcome.ACCEPTED),
        (130, "TMA loads", Outcome.REGRESSED),
        (129, "one more stage", Outcome.REGRESSED),
        (128, "one more stage", Outcome.REGRESSED),
        (128, "TMA loads", Outcome.REGRESSED),
    ],
)
def test_an_edit_of_the_line_with_a_reason_that_agrees_is_accepted(value: int, why: str, outcome: Outcome) -> None:
    before = accepted(0.0, figures=(figure("registers", 128),))
    context = replace(CONTEXT, edited=edited(before, value, why=why))
    measurement = measured(1e6, shape=(), metrics=MetricSet(metrics=(metric("registers", 130),)))
    (verdict,) = judge(measurement, [limit("change(registers) <= 0")], baseline=before, context=context).verdicts
    assert verdict.outcome is outcome
    assert ("without a reason" in verdict.sentence) is ((value, why) == (130, "TMA loads"))


def test_a_figure_that_the_change_adds_judges_at_once() -> None:
    before = accepted(1e6)
    context = replace(CONTEXT, edited=edited(before, 128))
    measurement = measured(1e6, metrics=MetricSet(metrics=(metric("registers", 130),)))
    report = judge(measurement, [limit("change(registers) <= 0")], baseline=before, context=context)
    assert report.verdicts[0].outcome is Outcome.REGRESSED


@pytest.mark.parametrize(
    ("mode", "value", "outcome"),
    [
        (Mode.FULL, None, Outcome.IMPROVED), (Mode.OFF, None, Outcome.PASSED),
        (Mode.FULL, 128, Outcome.IMPROVED), (Mode.FULL, 120, Outcome.PASSED),
    ],
)  # fmt: skip
def test_an_improvement_that_the_change_accepts_is_not_announced(
    mode: Mode, value: int | None, outcome: Outcome
) -> None:
    before = accepted(0.0, figures=(figure("registers", 128),))
    line = edited(before, value) if value is not None else None
    context = replace(CONTEXT, mode=mode, edited=line)
    measurement = measured(1e6, shape=(), metrics=MetricSet(metrics=(metric("registers", 120),)))
    (verdict,) = judge(measurement, [limit("change(registers) <= 0")], baseline=before, context=context).verdicts
    assert verdict.outcome is outcome


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({"why": "one more stage"}, Outcome.ACCEPTED),
        ({"why": "one more stage", "expires": "2026-01-01"}, Outcome.REGRESSED),
        ({"why": "one more stage", "device": "another"}, Outcome.REGRESSED),
        ({"why": "one more stage", "figures": ()}, Outcome.REGRESSED),
        ({"why": "one more stage", "figures": (figure("spills", 0, BYTES),)}, Outcome.REGRESSED),
    ],
)
def test_an_edit_accepts_while_it_holds_and_compares(fields: dict[str, object], outcome: Outcome) -> None:
    before = accepted(0.0, figures=(figure("registers", 128),))
    line = replace(edited(before, 130), **fields)
    if "device" in fields:
        line = replace(line, identity=replace(line.identity, device="another"))
    context = replace(CONTEXT, edited=line, today="2026-02-01")
    measurement = measured(1e6, shape=(), metrics=MetricSet(metrics=(metric("registers", 130),)))
    (verdict,) = judge(measurement, [limit("change(registers) <= 0")], baseline=before, context=context).verdicts
    assert verdict.outcome is outcome


@pytest.mark.parametrize(("now", "outcome"), [(105.105e6, Outcome.ACCEPTED), (105.12e6, Outcome.REGRESSED)])
def test_an_edit_of_a_measured_figure_agrees_within_its_digits(now: float, outcome: Outcome) -> None:
    before = accepted(0.0, figures=(figure("peak_memory", 100e6, BYTES),))
    line = replace(before, why="one more buffer", figures=(figure("peak_memory", 100.1e6, BYTES),))
    measurement = measured(1e6, shape=(), metrics=MetricSet(metrics=(metric("peak_memory", now, BYTES),)))
    bound, context = [limit("change(peak_memory) <= 5MB")], replace(CONTEXT, edited=line)
    assert judge(measurement, bound, baseline=before, context=context).verdicts[0].outcome is outcome


def test_verdicts_show_the_line_that_they_were_held_against() -> None:
    line = (figure("registers", 128), figure("spills", 0, BYTES))
    kernels = [(("kernel", name),) for name in "ab"]
    both = tuple(figure("registers", 32, labels=labels) for labels in kernels)
    worse, same, new, none, lost = (
        judged("change(registers) <= 0", metric("registers", 130), *line),
        judged("change(registers) <= 0", metric("registers", 128), *line),
        judged("change(registers) <= 0", metric("registers", 130), figure("spills", 0, BYTES)),
        judged("change(registers) <= 0", metric("registers", 130)),
        judged("change(registers) <= 0", metric("registers", 32, labels=kernels[0]), *both),
    )
    assert [one.baseline is not None for one in (worse, same, new, none, lost)] == [True, False, True, False, True]
    assert lost.sentence == "registers(kernel=b) was accepted as 32, and is missing now"
    assert (same.rounds, same.raised, same.next, same.evidence, same.effect) == (0, None, (), (), Effect.PASS)


@pytest.mark.parametrize(
    ("text", "then", "outcome"),
    [
        ("change(registers) <= 0", figure("registers", 32, labels=(("kernel", "b"),)), Outcome.NOT_MEASURED),
        ("change(registers(kernel=a)) <= 0", figure("registers", 32, labels=(("kernel", "b"),)), Outcome.PASSED),
        ("change(registers) <= 0", figure("spills", 32, labels=(("kernel", "b"),)), Outcome.PASSED),
        ("change(registers) <= 0", figure("registers", 32, labels=(("stage", "b"),)), Outcome.PASSED),
        ("change(registers) <= 0", figure("registers", 32), Outcome.PASSED),
    ],
)
def test_only_figures_of_the_limit_with_such_a_scope_can_be_gone(text: str, then: Figure, outcome: Outcome) -> None:
    labels = (("kernel", "a"),)
    verdict = judged(text, metric("registers", 32, labels=labels), figure("registers", 32, labels=labels), then)
    assert verdict.outcome is outcome


def test_a_figure_of_another_name_is_not_one_that_is_gone() -> None:
    kernels = [(("kernel", name),) for name in "abc"]
    both = [metric("registers", 32, labels=own) for own in kernels[:2]]
    then = [figure("registers", 32, labels=own) for own in kernels[:2]]
    verdict = judged("change(registers) <= 0", tuple(both), *then, figure("spills", 0, BYTES, labels=kernels[2]))
    assert verdict.outcome is Outcome.PASSED


@pytest.mark.parametrize(("code", "outcome"), [("kernel-tool", Outcome.INVALID), ("", Outcome.NOT_MEASURED)])
def test_a_figure_of_the_limit_that_was_not_read_leaves_it_open(code: str, outcome: Outcome) -> None:
    labels = [(("kernel", name),) for name in "ab"]
    metrics = MetricSet(
        metrics=(metric("registers", 32, labels=labels[0]),),
        absent=(Absent(name="registers", labels=labels[1], why="its cubin is broken", code=code),),
    )
    before = accepted(0.0, figures=tuple(figure("registers", 32, labels=own) for own in labels))
    measurement = measured(1e6, shape=(), metrics=metrics)
    (verdict,) = judge(measurement, [limit("change(registers) <= 0")], baseline=before, context=CONTEXT).verdicts
    assert (verdict.outcome, verdict.sentence) == (outcome, "registers: its cubin is broken")


@pytest.mark.parametrize(
    ("text", "then", "now", "half", "outcome"),
    [
        ("change(overlap) >= -50pp", 0.9, 0.39, 0.02, Outcome.SUSPECT),  # the interval spans the bound
        ("change(overlap) >= -50pp", 0.9, 0.35, 0.02, Outcome.REGRESSED),
    ],
)
def test_a_figure_is_worse_if_its_whole_interval_is(
    text: str, then: float, now: float, half: float, outcome: Outcome
) -> None:
    before = figure("overlap", then, PART)
    assert judged(text, metric("overlap", now, PART, half=half), before).outcome is outcome


@pytest.mark.parametrize(
    ("text", "then", "now", "from_zero"),
    [
        ("change(registers) <= 50%", 0, 2, True),
        ("change(registers) <= 50%", 1, 2, False),
        ("change(registers) <= -10%", 0, 0, False),
        ("change(registers) <= 1", 0, 2, False),
    ],
)
def test_a_relative_limit_on_what_was_zero_says_that_any_rise_breaks_it(
    text: str, then: int, now: int, *, from_zero: bool
) -> None:
    verdict = judged(text, metric("registers", now), figure("registers", then))
    assert ("the accepted value is 0" in verdict.sentence) is from_zero


def test_an_accepted_figure_in_another_scope_alone_is_gone_too() -> None:
    here, gone = (("kernel", "a"),), (("kernel", "b"),)
    verdict = judged(
        "change(registers) <= 0", metric("registers", 32, labels=here), figure("registers", 32, labels=gone)
    )
    assert (verdict.outcome, verdict.figure) == (Outcome.NOT_MEASURED, figure("registers", 32, labels=gone))


@pytest.mark.parametrize(
    ("text", "value"),
    [("change(registers) <= -5%", 100), ("change(registers) == 2", 100), ("change(registers) <= -50%", 0)],
)
def test_an_unchanged_figure_keeps_no_limit_that_demands_a_change(text: str, value: int) -> None:
    verdict = judged(text, metric("registers", value), figure("registers", value))
    assert verdict.outcome not in {Outcome.PASSED, Outcome.IMPROVED}
    assert "the accepted value is 0" not in verdict.sentence, "nothing rose"


def test_an_unchanged_figure_needs_no_chance() -> None:
    verdict = judged(
        "change(duration) <= 5%", metric("duration", 100, TIME), figure("duration", 100, TIME, scatter=0.03)
    )
    assert (verdict.outcome, verdict.visible) == (Outcome.PASSED, None)


@pytest.mark.parametrize(("half", "outcome"), [(1.0, Outcome.REGRESSED), (4.0, Outcome.SUSPECT)])
def test_a_figure_beyond_chance_regresses_only_if_its_whole_interval_misses_the_limit(
    half: float, outcome: Outcome
) -> None:
    """The interval of 152 begins at 151 or at 148, and chance explains far less than 50 %."""
    verdict = judged("change(duration) <= 50%", metric("duration", 152, TIME, half=half), figure("duration", 100, TIME))
    assert verdict.outcome is outcome


@pytest.mark.parametrize(("half", "outcome"), [(8.0, Outcome.ACCEPTED), (1.0, Outcome.SUSPECT)])
def test_an_edit_agrees_with_a_figure_unless_its_whole_interval_misses_the_limit(half: float, outcome: Outcome) -> None:
    """The limit allows 105 of an accepted 100, and the interval of 108 begins at 100 or at 107."""
    before = accepted(0.0, figures=(figure("duration", 50, TIME, scatter=0.5, runs=4),))
    line = replace(before, why="exact softmax", figures=(figure("duration", 100, TIME),))
    context = replace(CONTEXT, edited=line)
    measurement = measured(1e6, shape=(), metrics=MetricSet(metrics=(metric("duration", 108, TIME, half=half),)))
    (verdict,) = judge(measurement, [limit("change(duration) <= 5%")], baseline=before, context=context).verdicts
    assert verdict.outcome is outcome


def test_two_processes_show_how_far_a_speed_up_scatters() -> None:
    references = (Reference(over="eager", ours=(1.0, 1.0), theirs=(1.5, 1.6)),)
    measurement = measured(1e6, shape=(1.0, 1.0), references=references)
    then = figure("speedup", 1.55, Dimension.RATIO, labels=(("over", "eager"),))
    bound, before = limit("change(speedup(over=eager)) >= -5%"), accepted(0.0, figures=(then,))
    (verdict,) = judge(measurement, [bound], baseline=before, context=CONTEXT).verdicts
    chance = reach_in_turns(verdict.metric, then, bound.bound, measurement.processes, CONTEXT.gates)
    assert verdict.visible == pytest.approx(chance)


@pytest.mark.parametrize(
    ("text", "names"),
    [("speedup(over=eager) >= 1.2x", ["speedup"]), ("change(registers) <= 0", ["registers"]), ("registers <= 64", [])],
)
def test_a_speed_up_and_the_figures_of_changes_have_accepted_values(text: str, names: list[str]) -> None:
    ratio = metric("speedup", 1.5, Dimension.RATIO, labels=(("over", "eager"),))
    measurement = measured(1e6, metrics=MetricSet(metrics=(ratio, metric("registers", 32))))
    assert [one.name for one in selected_figures(limit(text), measurement)] == names
