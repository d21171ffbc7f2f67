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
from pytest_perfgate.model.verdict import Arms, CaseReport
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
    line = accepted(1e6, key=key, detects=1.0)
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
    apart = replace(timed(1e6, name="plain"), incomparable="another timer")
    text = text_of([timed(1e6, name="ours"), apart], "geomean(slowdown) <= 10%")
    assert "it is a figure of the call" not in text
    assert "another timer" in text


def case_of(at: int, **fields) -> CaseReport:
    key = CaseKey(nodeid=f"{FAMILY}[{at}]")
    return replace(judge(measured(1e6, key=key), [], baseline=None, context=PLAIN_CONTEXT), **fields)


@pytest.mark.parametrize(
    ("fields", "new"),
    [
        ({}, True),
        ({"problems": (Problem(code="clock-moved", what="it left its lock"),)}, False),
        ({"arms": Arms(base="c0ffee", differences=(math.inf,) * 10)}, False),
        ({"incomparable": "measured differently"}, False),
    ],
    ids=["no line", "problems", "rounds that are no times", "another line"],
)
def test_accepting_is_proposed_only_where_a_line_alone_is_missing(fields: dict, *, new: bool) -> None:
    text = text_of([case_of(0, **fields)], "geomean(slowdown) <= 5%")
    assert ("no accepted time yet for 1 of 1 case" in text) is new
    assert ("slowdown of 1 of 1 case was not measured" in text) is not new


def test_two_builds_decide_means_of_slowdowns_alone() -> None:
    steady = Arms(base="c0ffee", differences=(0.0,) * 10)
    spread = Interval(low=0.9e6, high=1.1e6)
    of_time = MetricSet(metrics=(Metric(name="latency", value=1e6, dimension=Dimension.TIME, interval=spread),))
    key = CaseKey(nodeid=f"{FAMILY}[0]")
    plain = judge(measured(1e6, key=key, metrics=of_time), [], baseline=None, context=PLAIN_CONTEXT)
    limit = parse_limit("geomean(latency) <= 1ms", kinds=KINDS, own=lambda name: name if name == "latency" else "")
    (note,) = family_notes([replace(plain, builds=steady)], {FAMILY: [limit]}, PLAIN_CONTEXT)
    assert note.text.startswith("undecided: ")
    assert "in two builds" not in note.text
    assert text_of([case_of(0, builds=steady)], "geomean(slowdown) <= 5%").startswith("passed: ")
    same = case_of(0, builds=Arms(base="c0ffee", same=True))
    assert text_of([same], "geomean(slowdown) <= 5%").startswith("passed: "), "the same code needs no rounds"
    few = case_of(0, builds=Arms(base="c0ffee", same=True, differences=(0.5,) * 5))
    assert text_of([few], "geomean(slowdown) <= 5%").startswith("not measured: "), "rounds that ran say more than that"
