"""Tests of core/judge/family: figures that only some calls have, the worst of a family, means exactly at a limit."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.family import extremes, family_notes, slower_in_family
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.model.metric import Interval, Metric, MetricSet, Problem
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.model.verdict import CaseReport
from tests.unit.core.judge.bench import KINDS, accepted, measured, samples
from tests.unit.core.judge.suites import FAMILY, PLAIN_CONTEXT

LOSS = Metric(name="loss", value=1.0, dimension=Dimension.PLAIN)


def member(at: int, name: str, *metrics: Metric) -> CaseReport:
    key = CaseKey(nodeid=f"{FAMILY}[{at}]", name=name)
    return judge(measured(1e6, key=key, metrics=MetricSet(metrics=metrics)), [], baseline=None, context=PLAIN_CONTEXT)


def text_of(members: list[CaseReport], text: str = "worst(loss) <= 2") -> str:
    limit = parse_limit(text, kinds=KINDS, own=lambda name: name if name == "loss" else "")
    (note,) = family_notes(members, {FAMILY: [limit]}, PLAIN_CONTEXT)
    return note.text


OURS, PLAIN = member(0, "ours", LOSS), member(0, "plain")
BROKEN = replace(PLAIN, problems=(Problem(code="clock-moved", what="it left its lock"),))


@pytest.mark.parametrize(
    ("members", "hint"),
    [
        ([OURS, PLAIN], True),
        ([OURS, BROKEN], False),
        ([OURS, PLAIN, BROKEN], False),
        ([OURS, replace(PLAIN, measurement=None)], False),
        ([OURS, member(0, "other", LOSS), PLAIN], False),
        ([member(0, "", LOSS), PLAIN], False),
        ([OURS, member(1, "ours")], False),
        ([PLAIN], False),
    ],
    ids=[
        "one call has it",
        "problems",
        "problems of one",
        "unmeasured",
        "two calls",
        "no name",
        "the same call",
        "no call",
    ],
)
def test_a_figure_of_one_call_is_proposed_with_its_call(members: list[CaseReport], *, hint: bool) -> None:
    text = text_of(members)
    assert "was not measured" in text
    assert ("it is a figure of the call" in text) is hint
    assert ("the call ours: worst(loss, case=ours)" in text) is hint


def ranged(value: float, half: float, name: str = "loss") -> Metric:
    return Metric(
        name=name, value=value, dimension=Dimension.PLAIN, interval=Interval(low=value - half, high=value + half)
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("worst(loss) <= 5", "passed: {}: worst(loss) <= 5: 3 [2.9, 3.1] at test_mm[1], of 2 cases"),
        ("worst(loss) >= 0.5", "passed: {}: worst(loss) >= 0.5: 1 [0.9, 1.1] at test_mm[0], of 2 cases"),
        ("worst(loss) <= 3", "undecided: {}: worst(loss) <= 3: 3 [2.9, 3.1] at test_mm[1], of 2 cases"),
        ("worst(loss) <= 1", "broken: {}: worst(loss) <= 1: 3 [2.9, 3.1] at test_mm[1], of 2 cases"),
    ],
)
def test_the_worst_case_of_a_family_is_named_with_its_interval(text: str, says: str) -> None:
    members = [member(0, "", ranged(1.0, 0.1)), member(1, "", ranged(3.0, 0.1))]
    assert text_of(members, text) == says.format(FAMILY)


@pytest.mark.parametrize(
    ("name", "higher", "mean", "worst", "place"),
    [
        ("loss", False, 2.0, 4.0, "b"), ("loss", True, 2.0, 1.0, "a"),
        ("slowdown", False, 10**0.5 - 1, 4.0, "b"), ("slowdown", True, 10**0.5 - 1, 1.0, "a"),
    ],
)  # fmt: skip
def test_the_mean_of_changes_is_of_their_factors(
    name: str, mean: float, worst: float, place: str, *, higher: bool
) -> None:
    figures = [(ranged(1.0, 0.0, name), "a"), (ranged(4.0, 0.0, name), "b")]
    result = extremes(figures, higher=higher)
    assert (result[0], result[1:]) == (pytest.approx(mean), (worst, place))


def test_a_family_of_one_case_has_its_figure_as_mean_and_worst() -> None:
    result = extremes([(ranged(2.0, 0.0), "a")], higher=True)
    assert (result[0], result[1:]) == (pytest.approx(2.0), (2.0, "a"))


def timed(time: float, at: int = 1, name: str = "", unqueued: float | None = None) -> CaseReport:
    """A case whose accepted run could not detect a doubled time."""
    key = CaseKey(nodeid=f"{FAMILY}[{at}]", name=name)
    processes = tuple(samples(time, unqueued=unqueued) for _ in range(3))
    line = accepted(1e6, key=key, blind=1.0)
    return judge(measured(time, key=key, processes=processes), [], baseline=line, context=PLAIN_CONTEXT)


@pytest.mark.parametrize(
    ("members", "outcome"),
    [
        ([timed(2e6, unqueued=2e6)], "suspect"),
        ([timed(2.5e6, unqueued=2.5e6)], "regressed"),
        ([timed(2e6), timed(9e6, 2, unqueued=9e6)], "regressed"),
        ([timed(2.5e6), timed(9e6, 2, unqueued=9e6)], "suspect"),
    ],
    ids=["mean at chance", "mean beyond it", "excuse of a case at chance", "excuse of a case beyond it"],
)
def test_chance_explains_a_slowdown_of_exactly_its_reach(members: list[CaseReport], outcome: str) -> None:
    assert text_of(members, "geomean(slowdown) <= 10%").startswith(outcome)


def test_a_mean_that_is_slower_by_exactly_its_limit_is_slower() -> None:
    assert slower_in_family((math.log(2.0),) * 10, 1.0, 1)


def test_why_a_slowdown_cannot_be_compared_is_named_though_one_call_has_one() -> None:
    apart = replace(timed(1e6, name="plain"), unheld="another timer")
    text = text_of([timed(1e6, name="ours"), apart], "geomean(slowdown) <= 10%")
    assert "it is a figure of the call" not in text
    assert "another timer" in text
