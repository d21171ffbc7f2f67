"""A line that a change loosens far from what is measured is told before it judges anything."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.acceptance import loosened
from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.model.measurement import Measurement
from pytest_perfgate.model.metric import MetricSet
from pytest_perfgate.model.values import Interval
from tests.unit.core.gate.bench import KINDS, accepted, limit, measured

THEN = accepted(1e6)


def taken(time: float, **fields) -> Measurement:
    context = JudgeContext(kinds=KINDS)
    found = judge(measured(time, **fields), [limit("time <= 1s")], baseline=None, context=context).measurement
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("edited", "time", "said"),
    [
        (2e6, 1e6, "1 ms -> 2 ms, measured 1 ms"),
        (1.2e6, 1e6, "1 ms -> 1.2 ms, measured 1 ms"),
        (2e6, 0.5e6, "1 ms -> 2 ms, measured 500 µs"),
        (1.15e6, 1e6, ""),
        (1.2e6, 1.1e6, ""),
        (2e6, 2e6, ""),
        (2e6, 3e6, ""),
        (0.5e6, 0.3e6, ""),
    ],
    ids=["far", "just off", "faster too", "on its level", "accepted", "exactly", "slower still", "tightened"],
)
def test_only_what_no_accepting_would_have_written(edited: float, time: float, said: str) -> None:
    assert loosened(THEN, accepted(edited, why="because"), taken(time)) == said


def test_what_is_exactly_as_far_as_the_interval_or_the_noise_goes_is_not_told() -> None:
    def said(edited: float, low: float, high: float) -> str:
        times = taken(1e6).metrics.find("time")
        seen = tuple(replace(time, value=1e6, interval=Interval(low=low, high=high)) for time in times)
        line = accepted(edited, sittings=2)
        return loosened(THEN, line, replace(taken(1e6), metrics=MetricSet(metrics=seen)))

    assert said(2e6, 0.9e6, 2e6) == ""
    assert said(2e6, 0.9e6, 1.9e6) != ""
    assert said(1.5e6, 0.4e6, 1.4e6) == "", "half the interval is half of the time"
    assert said(1.6e6, 0.4e6, 1.4e6) != ""


def test_what_cannot_be_compared_or_says_nothing_is_not_told() -> None:
    edited = accepted(2e6)
    other = replace(edited, identity=replace(taken(1e6).identity, threads="9"))
    assert loosened(THEN, other, taken(1e6)) == ""
    assert loosened(THEN, edited, replace(taken(1e6), metrics=MetricSet())) == ""
    assert loosened(THEN, edited, taken(1e6, shape=(0.9, 1.0, 1.2))) != ""
    assert loosened(THEN, edited, taken(1e6, shape=(0.5, 1.0, 2.0))) == "", "the interval holds the line"
    assert loosened(edited, edited, taken(1e6)) == "", "the same time as before loosens nothing"
    untimed = taken(1e6)
    nothing = tuple(replace(m, value=0.0, interval=None) for m in untimed.metrics.find("time"))
    assert loosened(THEN, edited, replace(untimed, metrics=MetricSet(metrics=nothing))) == "", "no time at all"
    assert loosened(accepted(0.2), accepted(1.0), taken(0.5)) == "0.2 ns -> 1 ns, measured 0.5 ns"
    assert loosened(THEN, replace(edited, scatter=0.6, sittings=3), taken(1e6)) == "", "that far its runs lie apart"
