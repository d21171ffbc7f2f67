"""Tests of core/judge/against_figure."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.stats.inference import predict, prior
from pytest_perfgate.model.metric import Figure, Metric, MetricSet
from pytest_perfgate.model.plan import Choice, Effect, Mode, Outcome, Policy
from pytest_perfgate.model.values import Better, Dimension
from tests.unit.core.judge.bench import CONTEXT, SHAPE, accepted, limit, measured
from tests.unit.core.judge.figures import BYTES, PART, TIME, figure, judged, metric

HOST_SCATTER = prior("host", "off")

STAGE = (("stage", "stage2"),)


@pytest.mark.parametrize(("now", "outcome"), [(0.7, Outcome.SUSPECT), (0.01, Outcome.REGRESSED)])
def test_a_fall_is_beyond_chance_however_far_a_rise_may_go_by_chance(now: float, outcome: Outcome) -> None:
    line = figure("bandwidth", 1e12, Dimension.BANDWIDTH, scatter=0.5, runs=4)
    verdict = judged("change(bandwidth) >= -5%", metric("bandwidth", now * 1e12, Dimension.BANDWIDTH), line)
    assert verdict.outcome is outcome
    assert 0.3 < verdict.visible < 1


@pytest.mark.parametrize(
    ("text", "then", "now", "outcome"),
    [
        ("change(registers) <= 0", 128, 128, Outcome.PASSED),
        ("change(registers) <= 0", 128, 129, Outcome.REGRESSED),
        ("change(registers) <= 0", 128, 120, Outcome.IMPROVED),
        ("change(registers) <= 2", 128, 130, Outcome.PASSED),
        ("change(registers) <= 2", 128, 131, Outcome.REGRESSED),
        ("change(registers) <= 1%", 100, 101, Outcome.PASSED),
        ("change(registers) <= 1%", 100, 102, Outcome.REGRESSED),
        ("change(registers) < 1%", 100, 101, Outcome.REGRESSED),
        ("change(registers) <= 50%", 0, 0, Outcome.PASSED),
        ("change(registers) <= 50%", 0, 1, Outcome.REGRESSED),
        ("change(registers) == 0", 128, 120, Outcome.REGRESSED),
        ("change(registers) <= -5%", 100, 95, Outcome.IMPROVED),
        ("change(registers) <= -5%", 100, 96, Outcome.REGRESSED),
    ],
)
def test_a_count_is_compared_exactly(text: str, then: float, now: float, outcome: Outcome) -> None:
    verdict = judged(text, metric("registers", now), figure("registers", then))
    assert verdict.outcome is outcome
    assert (verdict.figure.value, verdict.metric.value) == (then, now)


@pytest.mark.parametrize(
    ("text", "now", "outcome"),
    [
        ("change(count) >= -2", 38, Outcome.PASSED), ("change(count) >= -2", 37, Outcome.REGRESSED),
        ("change(count) < 2", 41, Outcome.PASSED), ("change(count) < 2", 42, Outcome.REGRESSED),
        ("change(count) > -2", 39, Outcome.PASSED), ("change(count) > -2", 38, Outcome.REGRESSED),
        ("change(count) == 2", 42, Outcome.PASSED), ("change(count) == 2", 41, Outcome.REGRESSED),
    ],
)  # fmt: skip
def test_a_bound_itself_is_kept_by_all_but_less_and_more(text: str, now: float, outcome: Outcome) -> None:
    assert judged(text, metric("count", now), figure("count", 40)).outcome is outcome


@pytest.mark.parametrize(
    ("then", "now", "outcome"),
    [
        (0.831, 0.811, Outcome.PASSED), (0.831, 0.8109, Outcome.REGRESSED),
        (0.831, 0.85, Outcome.PASSED), (0.831, 0.852, Outcome.IMPROVED),
    ],
)  # fmt: skip
def test_a_percentage_changes_by_points(then: float, now: float, outcome: Outcome) -> None:
    verdict = judged(
        "change(overlap(stage=stage2)) >= -2pp",
        metric("overlap", now, PART, labels=STAGE),
        figure("overlap", then, PART, labels=STAGE),
    )
    assert verdict.outcome is outcome


@pytest.mark.parametrize(
    ("now", "scatter", "runs", "half", "outcome"),
    [
        (104.0, 0.0, 1, 0.0, Outcome.PASSED),
        (110.0, 0.0, 1, 0.0, Outcome.REGRESSED),
        (110.0, 0.03, 4, 0.0, Outcome.SUSPECT),
        (150.0, 0.03, 4, 0.0, Outcome.REGRESSED),
        (110.0, 0.001, 4, 8.0, Outcome.SUSPECT),
        (104.0, 0.0, 1, 3.0, Outcome.UNDECIDED),
        (90.0, 0.03, 4, 0.0, Outcome.PASSED),
    ],
)
def test_a_measured_figure_regresses_beyond_the_scatter_of_its_runs(
    now: float, scatter: float, runs: int, half: float, outcome: Outcome
) -> None:
    then = figure("duration", 100.0, TIME, scatter=scatter, runs=runs)
    assert judged("change(duration) <= 5%", metric("duration", now, TIME, half=half), then).outcome is outcome


@pytest.mark.parametrize(
    ("text", "name", "then", "now", "dimension", "outcome"),
    [
        ("change(overlap) >= 0", "overlap", 0.83123, 0.831226, PART, Outcome.PASSED),
        ("change(overlap) >= 0", "overlap", 0.83123, 0.8311, PART, Outcome.REGRESSED),
        ("change(duration) <= 0", "duration", 100.0, 100.005, TIME, Outcome.PASSED),
        ("change(duration) <= 0", "duration", 100.0, 100.02, TIME, Outcome.REGRESSED),
        ("change(duration) < 5%", "duration", 100.0, 105.0, TIME, Outcome.PASSED),
        ("change(bandwidth) > -5%", "bandwidth", 1e12, 0.95e12, Dimension.BANDWIDTH, Outcome.PASSED),
        ("change(peak_memory) <= 5MB", "peak_memory", 100e6, 105.005e6, BYTES, Outcome.PASSED),
        ("change(peak_memory) <= 5MB", "peak_memory", 100e6, 105.02e6, BYTES, Outcome.REGRESSED),
    ],
)
def test_the_digits_of_a_line_are_no_change(
    text: str, name: str, then: float, now: float, dimension: Dimension, outcome: Outcome
) -> None:
    """83.123456 % was accepted, and its line has five digits of that: one part in ten thousand is rounding."""
    assert judged(text, metric(name, now, dimension), figure(name, then, dimension)).outcome is outcome


@pytest.mark.parametrize(
    ("then", "now", "outcome"),
    [
        (100_000, 100_001, Outcome.REGRESSED),
        (99_999, 100_000, Outcome.REGRESSED),
        (100_000, 100_000.5, Outcome.PASSED),
        (99_999.5, 100_000, Outcome.PASSED),
    ],
)
def test_a_whole_count_has_all_of_its_digits_and_a_mean_of_counts_five(
    then: float, now: float, outcome: Outcome
) -> None:
    counts = metric("loss", now), figure("loss", then)
    assert judged("change(metric(loss)) <= 0", *counts).outcome is outcome


def test_the_scatter_of_a_line_explains_no_change_of_what_unchanged_code_repeats() -> None:
    line = {"scatter": 0.03, "runs": 4}
    exact = judged("change(count) <= 0", metric("count", 102), figure("count", 100, **line))
    varies = judged("change(metric(loss)) <= 0", metric("loss", 102), figure("loss", 100, **line))
    assert (exact.outcome, varies.outcome) == (Outcome.REGRESSED, Outcome.SUSPECT)


@pytest.mark.parametrize(
    ("value", "half", "outcome"),
    [(100.0, 0.0, Outcome.PASSED), (101.0, 1.0, Outcome.SUSPECT), (99.0, 1.0, Outcome.SUSPECT), (100.0, 1.0, Outcome.UNDECIDED)],
)  # fmt: skip
def test_an_interval_is_never_equal(value: float, half: float, outcome: Outcome) -> None:
    """Not where it begins or ends at the accepted value either."""
    now = metric("loss", value, Dimension.PLAIN, half=half)
    assert judged("change(metric(loss)) == 0", now, figure("loss", 100.0, Dimension.PLAIN)).outcome is outcome


def test_an_own_figure_may_be_counted() -> None:
    now, then = metric("loss", 100.00001, Dimension.PLAIN), figure("loss", 100.0, Dimension.PLAIN)
    outcomes = [judged("change(metric(loss)) <= 0", one, then).outcome for one in (now, replace(now, exact=True))]
    assert outcomes == [Outcome.PASSED, Outcome.REGRESSED]


def test_without_an_accepted_value_there_is_nothing_to_hold() -> None:
    ci = replace(CONTEXT, policy=Policy(ci=True, missing=Choice.FAIL))
    without_line = judged("change(registers) <= 0", metric("registers", 1), context=ci)
    without_figure = judged("change(registers) <= 0", metric("registers", 1), figure("spills", 0, BYTES), context=ci)
    for verdict in (without_line, without_figure):
        assert (verdict.outcome, verdict.effect) == (Outcome.UNBASELINED, Effect.FAIL)
    expired = judged("change(registers) <= 0", metric("registers", 1), figure("registers", 1), expires="2026-01-01",
                     context=replace(CONTEXT, today="2026-02-01"))  # fmt: skip
    assert expired.outcome is Outcome.UNBASELINED


@pytest.mark.parametrize(
    ("text", "better", "outcome"),
    [
        ("change(metric(loss)) >= 5%", Better.LOWER, Outcome.INVALID),
        ("change(metric(loss)) <= -5%", Better.HIGHER, Outcome.INVALID),
        ("change(metric(loss)) <= 5%", Better.LOWER, Outcome.UNBASELINED),
        ("change(metric(loss)) >= -5%", Better.HIGHER, Outcome.UNBASELINED),
        ("change(metric(loss)) >= 5%", Better.NEITHER, Outcome.UNBASELINED),
    ],
)
def test_the_wrong_direction_of_an_own_figure_is_told_before_anything_is_accepted(text: str, better, outcome) -> None:
    now = replace(metric("loss", 1.0, Dimension.PLAIN), better=better)
    verdict = judged(text, now)
    assert verdict.outcome is outcome
    word = {Better.LOWER: "less loss is better", Better.HIGHER: "more loss is better"}.get(better, "")
    assert (word in verdict.sentence) is (outcome is Outcome.INVALID or not word)


def test_another_dimension_is_none_that_compares() -> None:
    assert judged("change(registers) <= 0", metric("registers", 1), figure("registers", 1, BYTES)).outcome is (
        Outcome.INVALID
    )
    plain = metric("registers", 1, Dimension.PLAIN)
    assert judged("change(registers) <= 0", plain, figure("registers", 1)).outcome is Outcome.PASSED


def test_a_line_without_a_time_judges_no_slowdown() -> None:
    before = accepted(0.0, figures=(figure("registers", 128),))
    measurement = measured(1e6, metrics=MetricSet(metrics=(metric("registers", 128),)))
    limits = [limit("slowdown <= 3%"), limit("change(registers) <= 0")]
    outcomes = [v.outcome for v in judge(measurement, limits, baseline=before, context=CONTEXT).verdicts]
    assert outcomes == [Outcome.UNBASELINED, Outcome.PASSED]


@pytest.mark.parametrize(
    ("text", "now", "then", "shape", "expected", "unit"),
    [
        ("change(duration) <= 5%", metric("duration", 110, TIME, half=8), figure("duration", 100, TIME), (), 4 / 110, 1),
        ("change(duration) <= 5%", metric("duration", 106, TIME), figure("duration", 100, TIME), SHAPE, HOST_SCATTER, 1),
        ("change(duration) <= 5%", metric("duration", 110, TIME, half=12), figure("duration", 100, TIME), SHAPE, 6 / 110, 1),
        ("change(peak_memory) <= 5MB", metric("peak_memory", 110e6, BYTES, half=8e6), figure("peak_memory", 1e8, BYTES), (), 4 / 110, 1e8),
        ("change(peak_memory) <= 5MB", metric("peak_memory", 110e6, BYTES, half=8e6), figure("peak_memory", 1e8, BYTES), SHAPE, 4 / 110, 1e8),
        ("change(overlap) >= -2pp", metric("overlap", 0.5, PART, half=0.1), figure("overlap", 0.6, PART), (), 0.05, 1),
        ("change(peak_memory) <= 5%", metric("peak_memory", 106e6, BYTES), figure("peak_memory", 1e8, BYTES), SHAPE, 0, 1),
        ("change(peak_memory) <= 5%", metric("peak_memory", 106e6, BYTES), figure("peak_memory", 1e8, BYTES, scatter=0.01, runs=3),
         SHAPE, 0, 1),
        ("change(peak_memory) <= 5%", metric("peak_memory", 0.0, BYTES, half=1.0), figure("peak_memory", 1e8, BYTES), (), 0.5, 1),
        ("change(duration) <= -5%", metric("duration", 100, TIME), figure("duration", 100, TIME, scatter=0.03, runs=4), (), 0, 1),
    ],
    ids=["time", "time of processes", "the larger of both", "bytes", "bytes of processes", "points", "no scatter", "runs",
         "a figure of zero", "no change is no fall"],
)  # fmt: skip
def test_what_chance_explains_is_told_in_the_unit_of_the_limit(
    text: str, now: Metric, then: Figure, shape: tuple[float, ...], expected: float, unit: float
) -> None:
    measurement = measured(1e6, shape=shape, metrics=MetricSet(metrics=(now,)))
    before = accepted(0.0, figures=(then,))
    (verdict,) = judge(measurement, [limit(text)], baseline=before, context=CONTEXT).verdicts
    chance = predict(expected, scatter=then.scatter, runs=then.runs, gates=CONTEXT.gates).log_reach * unit
    assert (verdict.visible or 0.0) == pytest.approx(chance if expected or then.scatter else 0.0)
    assert verdict.outcome is (Outcome.REGRESSED if verdict.visible is None else verdict.outcome)


@pytest.mark.parametrize(
    ("text", "now", "then", "says"),
    [
        ("change(metric(loss)) <= 5%", metric("loss", 1.0, TIME), figure("loss", 1, BYTES), "accepted as 1 B"),
        ("change(metric(loss)) <= 5%", metric("loss", 0.5, PART), figure("loss", 0.4, PART), "in points, such as 2pp"),
        (
            "change(metric(loss)) <= 5MB",
            metric("loss", 2e6, TIME),
            figure("loss", 1e6, TIME),
            "and the limit on its change",
        ),
        ("change(metric(loss)) <= 5MB", metric("loss", 2e6, BYTES), figure("loss", 1e6, BYTES), ""),
        ("change(metric(loss)) <= 2pp", metric("loss", 0.41, PART), figure("loss", 0.4, PART), ""),
        ("change(metric(loss)) <= 0", metric("loss", 5, TIME), figure("loss", 5, TIME), ""),
        ("change(metric(loss)) <= 5%", metric("loss", 1.0, TIME), figure("loss", 1, TIME), ""),
    ],
)
def test_a_limit_that_does_not_fit_an_own_figure_is_invalid(text: str, now: Metric, then: Figure, says: str) -> None:
    verdict = judged(text, replace(now, better=Better.LOWER), then)
    assert (verdict.outcome is Outcome.INVALID) is bool(says), verdict.sentence
    assert says in verdict.sentence


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_a_figure_that_is_no_number_compares_with_nothing(value: float) -> None:
    assert (
        judged("change(registers) <= 0", metric("registers", value), figure("registers", 1)).outcome is Outcome.INVALID
    )


@pytest.mark.parametrize(
    ("records", "unbaselined", "local", "stored"),
    [(True, "", None, True), (True, "", True, True), (True, "", False, False), (False, "", None, False),
     (True, "another device", None, False)],
)  # fmt: skip
def test_a_first_local_figure_needs_no_command(
    records: bool, unbaselined: str, local: bool | None, stored: bool
) -> None:
    policy = Policy(missing=Choice.RECORD if records else Choice.WARN)
    context = replace(CONTEXT, policy=policy, unbaselined=unbaselined)
    line = {} if local is None else {"local": local}
    figures = () if local is None else (figure("spills", 0),)
    verdict = judged("change(registers) <= 0", metric("registers", 1), *figures, context=context, **line)
    assert verdict.outcome is Outcome.UNBASELINED
    assert ("judges the next local run" in verdict.sentence, verdict.next == ()) == (stored, stored)


@pytest.mark.parametrize(
    ("limit_text", "worst"),
    [("change(registers) <= 0", "b"), ("change(registers) >= 0", "a"), ("change(registers) == 0", "a")],
)
def test_the_figure_that_moved_most_the_wrong_way_is_shown(limit_text: str, worst: str) -> None:
    values = {"c": (40, 41), "a": (40, 33), "b": (40, 44), "d": (40, 38), "e": (40, 40)}
    kernels = {name: (("kernel", name),) for name in values}
    now = tuple(metric("count", value, labels=kernels[name]) for name, (_, value) in values.items())
    then = tuple(figure("count", value, labels=kernels[name]) for name, (value, _) in values.items())
    verdict = judged(limit_text.replace("registers", "count"), now, *then)
    assert verdict.outcome is Outcome.REGRESSED
    assert dict(verdict.metric.labels)["kernel"] == worst


@pytest.mark.parametrize(
    ("full", "shape", "available", "outcome"),
    [(True, SHAPE, True, Outcome.SUSPECT), (False, SHAPE, True, Outcome.REGRESSED), (True, (), True, Outcome.REGRESSED),
     (True, SHAPE, False, Outcome.REGRESSED)],
)  # fmt: skip
def test_two_builds_confirm_a_figure_that_is_not_exact(full: bool, shape, available: bool, outcome: Outcome) -> None:
    now = metric("peak_memory", 130e6, BYTES)
    measurement = measured(1e6, shape=shape, metrics=MetricSet(metrics=(now,)))
    before = accepted(0.0, figures=(figure("peak_memory", 1e8, BYTES),))
    context = replace(CONTEXT, mode=Mode.FULL if full else Mode.QUICK, paired_available=available)
    (verdict,) = judge(measurement, [limit("change(peak_memory) <= 5%")], baseline=before, context=context).verdicts
    assert (verdict.outcome, verdict.visible) == (outcome, None)
    assert ("compare with the accepted commit" in verdict.sentence) is (outcome is Outcome.SUSPECT)


def test_what_chance_explains_is_shown_before_two_builds_confirm() -> None:
    measurement = measured(1e6, metrics=MetricSet(metrics=(metric("duration", 130, TIME),)))
    before = accepted(0.0, figures=(figure("duration", 100, TIME),))
    context = replace(CONTEXT, mode=Mode.FULL, paired_available=True)
    (verdict,) = judge(measurement, [limit("change(duration) <= 5%")], baseline=before, context=context).verdicts
    chance = predict(HOST_SCATTER, scatter=0.0, runs=1, gates=CONTEXT.gates).log_reach
    assert (verdict.outcome, verdict.visible) == (Outcome.SUSPECT, pytest.approx(chance))


@pytest.mark.parametrize(
    ("mode", "builds", "outcome"),
    [
        (Mode.FULL, True, Outcome.SUSPECT),
        (Mode.FULL, False, Outcome.REGRESSED),
        (Mode.QUICK, True, Outcome.REGRESSED),
    ],
)
def test_two_builds_say_whether_the_code_raised_a_counted_figure(mode: Mode, outcome: Outcome, *, builds: bool) -> None:
    """The count is certain, and its cause is not: another compiler raises it as well."""
    measurement = measured(1e6, metrics=MetricSet(metrics=(metric("registers", 130),)))
    before = accepted(0.0, figures=(figure("registers", 128),))
    context = replace(CONTEXT, mode=mode, paired_available=builds)
    (verdict,) = judge(measurement, [limit("change(registers) <= 0")], baseline=before, context=context).verdicts
    assert verdict.outcome is outcome


def test_a_counted_figure_of_machine_code_alone_needs_no_second_build() -> None:
    measurement = measured(1e6, metrics=MetricSet(metrics=(metric("registers", 130),)), shape=())
    before = accepted(0.0, figures=(figure("registers", 128),))
    context = replace(CONTEXT, mode=Mode.FULL, paired_available=True)
    (verdict,) = judge(measurement, [limit("change(registers) <= 0")], baseline=before, context=context).verdicts
    assert verdict.outcome is Outcome.REGRESSED


@pytest.mark.parametrize(
    ("text", "now", "then", "says"),
    [
        (
            "change(registers) <= 0",
            metric("registers", 130),
            figure("registers", 128),
            "worse than accepted: 128 -> 130",
        ),
        ("change(count) == 0", metric("count", 130), figure("count", 128), "other than accepted: 128 -> 130"),
        ("change(registers) <= 50%", metric("registers", 1), figure("registers", 0), "the accepted value is 0"),
        ("change(registers) <= 2", metric("registers", 3), figure("registers", 0), "0 -> 3, +3"),
        ("change(registers) <= 50%", metric("registers", 3), figure("registers", 1), "1 -> 3, +200.0 %"),
    ],
)
def test_the_sentence_of_a_broken_limit_names_both_values(text: str, now: Metric, then: Figure, says: str) -> None:
    verdict = judged(text, now, then)
    assert verdict.outcome is Outcome.REGRESSED
    assert says in verdict.sentence
    assert ("the accepted value is 0" in verdict.sentence) is ("is 0" in says)


@pytest.mark.parametrize(("shape", "again"), [(SHAPE, True), ((), False)])
def test_a_figure_within_chance_is_measured_again_where_a_test_measured_it(shape, *, again: bool) -> None:
    now, then = metric("duration", 110, TIME), figure("duration", 100, TIME, scatter=0.03, runs=4)
    measurement = measured(1e6, shape=shape, metrics=MetricSet(metrics=(now,)))
    before = accepted(0.0, figures=(then,))
    (verdict,) = judge(measurement, [limit("change(duration) <= 5%")], baseline=before, context=CONTEXT).verdicts
    assert verdict.outcome is Outcome.SUSPECT
    assert [text.endswith("--perfgate=full") for text in verdict.next] == [True] * again


@pytest.mark.parametrize(
    ("better", "value", "outcome"),
    [
        (Better.HIGHER, 2.0, Outcome.IMPROVED), (Better.HIGHER, 1.0, Outcome.PASSED),
        (Better.LOWER, 0.5, Outcome.IMPROVED), (Better.NEITHER, 1.04, Outcome.PASSED),
    ],
)  # fmt: skip
def test_an_own_figure_improves_in_its_own_direction(better: Better, value: float, outcome: Outcome) -> None:
    text = "change(metric(loss)) >= -5%" if better is Better.HIGHER else "change(metric(loss)) <= 5%"
    now = replace(metric("loss", value, Dimension.PLAIN), better=better)
    assert judged(text, now, figure("loss", 1.0, Dimension.PLAIN)).outcome is outcome


@pytest.mark.parametrize(
    ("now", "scatter", "outcome"), [(90.0, 0.0, Outcome.IMPROVED), (90.0, 0.03, Outcome.PASSED), (30.0, 0.03, Outcome.IMPROVED)]
)  # fmt: skip
def test_a_figure_improves_beyond_the_chance_of_its_runs(now: float, scatter: float, outcome: Outcome) -> None:
    then = figure("duration", 100.0, TIME, scatter=scatter, runs=4)
    verdict = judged("change(duration) <= 5%", metric("duration", now, TIME), then)
    assert verdict.outcome is outcome
    assert ("--improved" in "".join(verdict.next)) is (outcome is Outcome.IMPROVED)


def test_a_figure_of_zero_has_a_scatter_too() -> None:
    now = metric("peak_memory", 0.0, BYTES, half=1.0)
    assert judged("change(peak_memory) <= 5%", now, figure("peak_memory", 1e8, BYTES)).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("now", "then", "outcome"),
    [(50_004, 50_000, Outcome.REGRESSED), (50_000, 50_000, Outcome.PASSED), (50_000.4, 50_000, Outcome.PASSED)],
)
def test_a_count_that_rises_at_all_breaks_a_limit_of_zero(now: float, then: float, outcome: Outcome) -> None:
    """Its line has all of its digits; one that is no whole number has five."""
    measurement = measured(1e6, metrics=MetricSet(metrics=(metric("calls", now),)), shape=())
    before = accepted(0.0, figures=(figure("calls", then),))
    (verdict,) = judge(measurement, [limit("change(metric(calls)) <= 0")], baseline=before, context=CONTEXT).verdicts
    assert verdict.outcome is outcome
