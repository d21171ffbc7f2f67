"""Tests of core/judge/accepted_line: its figures over time, and the day of its anchor."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.accepted_line import Signature, _days, anchored, drift, figure_levels
from pytest_perfgate.core.render.words import FigureLevel
from pytest_perfgate.model.measurement import Baseline, HistoryEntry, Identity
from pytest_perfgate.model.metric import Metric
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.values import Better, Dimension
from tests.unit.core.judge.bench import HOST, accepted
from tests.unit.core.judge.figures import figure

KEY = CaseKey(nodeid="t.py::test_a")


def entry(day: int, **values: float) -> HistoryEntry:
    metrics = tuple(Metric(name=name, value=value, dimension=Dimension.COUNT) for name, value in values.items())
    return HistoryEntry(key=KEY, device="host-x", time=1e6, when=f"2030-01-{day:02}", metrics=metrics)


RUNS = [entry(1, registers=128), entry(2), entry(3, registers=64, spills=0)]


def test_a_figure_is_of_the_runs_that_have_it() -> None:
    line = accepted(1e6, scatter=0.1, anchor=2e6, figures=(figure("registers", 128), figure("lost", 1)))
    ((own, numbers, baseline, level),) = figure_levels(RUNS, line)
    assert (own, numbers) == ([RUNS[0], RUNS[2]], [128, 64])
    assert (baseline.time, baseline.anchor, baseline.scatter) == (128, 0.0, 0.0)
    assert level == FigureLevel(title="registers", dimension=Dimension.COUNT, exact=True)


@pytest.mark.parametrize(
    ("value", "numbers", "raised"),
    [
        (128, (64, 128), 0.0),
        (128, (0, 128), 1.0),
        (0, (64, 128), 1.0),
        (128, (-3, 128), 4.0),
        (1, (1, 1), 0.0),
        (2, (0.5, 2), 0.0),
    ],
)
def test_numbers_that_are_not_positive_are_raised_to_one(
    value: float, numbers: tuple[float, ...], raised: float
) -> None:
    runs = [entry(at + 1, registers=number) for at, number in enumerate(numbers)]
    ((_, levels, baseline, level),) = figure_levels(runs, accepted(1e6, figures=(figure("registers", value),)))
    assert (levels, baseline.time, level.raised) == ([n + raised for n in numbers], value + raised, raised)


@pytest.mark.parametrize(
    ("name", "sign", "exact"), [("registers", 1.0, True), ("bandwidth", -1.0, False), ("loss", 1.0, False), ("time", 1.0, False)]
)  # fmt: skip
def test_a_figure_is_better_in_the_direction_of_its_kind(name: str, sign: float, *, exact: bool) -> None:
    runs = [entry(1, **{name: 5.0})]
    ((_, _, _, level),) = figure_levels(runs, accepted(1e6, figures=(figure(name, 5.0),)))
    assert (level.sign, level.exact) == (sign, exact)


@pytest.mark.parametrize(("better", "sign"), [(Better.HIGHER, -1.0), (Better.LOWER, 1.0), (Better.NEITHER, 1.0)])
def test_a_figure_of_the_user_is_better_in_its_own_direction(better: Better, sign: float) -> None:
    one = entry(1, accuracy=0.9)
    own = replace(one, metrics=tuple(replace(metric, better=better) for metric in one.metrics))
    ((_, _, _, level),) = figure_levels([one, own], accepted(1e6, figures=(figure("accuracy", 0.9),)))
    assert level.sign == sign


def test_levels_that_are_known_are_taken() -> None:
    line = accepted(1e6, figures=(figure("registers", 128),))
    ((own, numbers, _, _),) = figure_levels(RUNS, line, {("registers", ()): [float("nan"), 32.0, 16.0]})
    assert (own, numbers) == (RUNS[1:], [32.0, 16.0])


@pytest.mark.parametrize(
    ("then", "now", "days"),
    [("2026-01-01T10:00", "2026-01-02T09:00", 1), ("2026-1-1", "2026-01-03", 2), ("2026-01", "2026-01-03", 0),
     ("2026-01-x1", "2026-01-03", 0), ("", "", 0)],
)  # fmt: skip
def test_days_are_of_the_dates_alone(then: str, now: str, days: int) -> None:
    assert _days(then, now) == days


FAST = accepted(1e6, when="2026-09-01")


@pytest.mark.parametrize(
    ("before", "line", "signature", "anchor"),
    [
        (None, accepted(1.1e6), Signature(when="2026-09-10"), (0.0, "")),
        (FAST, accepted(1.1e6), Signature(when="2026-09-10"), (1e6, "2026-09-01")),
        (FAST, accepted(1e6), Signature(when="2026-09-10"), (0.0, "")),
        (FAST, accepted(0.9e6), Signature(when="2026-09-10"), (0.0, "")),
        (FAST, accepted(1.1e6), Signature(when="2026-09-10", anchor=True), (0.0, "")),
        (replace(FAST, when=""), accepted(1.1e6), Signature(when="2026-09-10"), (0.0, "")),
        (replace(FAST, anchor=0.8e6, anchored="2026-08-01"), accepted(1.1e6), Signature(when="2026-09-10"), (0.8e6, "2026-08-01")),
        (replace(FAST, anchor=0.8e6, anchored="2026-05-01"), accepted(1.1e6), Signature(when="2026-09-10"), (1e6, "2026-09-01")),
        (replace(FAST, anchor=0.8e6, anchored=""), accepted(1.1e6), Signature(when="2026-09-10"), (0.0, "")),
        (replace(FAST, anchor=0.8e6, anchored="", when="2026-05-01"), accepted(1.1e6), Signature(when="2026-09-10"), (1e6, "2026-05-01")),
        (replace(FAST, when="2026-09-01T10:00:00"), accepted(1.1e6), Signature(when="2026-09-10"), (1e6, "2026-09-01")),
        (FAST, accepted(1.1e6, identity=Identity(device=HOST.key, calls="2")), Signature(when="2026-09-10"), (0.0, "")),
        (FAST, accepted(1.1e6, identity=None), Signature(when="2026-09-10"), (1e6, "2026-09-01")),
        (replace(FAST, identity=None), accepted(1.1e6), Signature(when="2026-09-10"), (1e6, "2026-09-01")),
    ],
)  # fmt: skip
def test_drift_is_counted_from_the_oldest_time_of_ninety_days_measured_alike(
    before: Baseline | None, line: Baseline, signature: Signature, anchor: tuple[float, str]
) -> None:
    after = anchored(replace(line, anchor=7e6, anchored="2020-01-01"), before, signature)
    assert (after.anchor, after.anchored) == anchor


@pytest.mark.parametrize(
    ("largest", "says"), [(1.049, "no single step exceeds"), (1.06, "a single step exceeds the limit")]
)
def test_a_drift_says_whether_one_step_made_it(largest: float, says: str) -> None:
    times = [1e6 * largest, 1e6 * largest * 1.04, 1e6 * largest * 1.04]
    runs = [replace(entry(at + 1), time=time) for at, time in enumerate(times)]
    result = drift(runs, 1e6, 0.05)
    assert result is not None
    assert says in result.sentence
