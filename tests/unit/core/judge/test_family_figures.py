"""Tests of core/judge/family: figures that only some calls have, the worst of a family, and rounds that nearly confirm."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.family import extremes, family_notes
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.model.metric import Interval, Metric, MetricSet, Problem
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.model.verdict import CaseReport
from tests.unit.core.judge.bench import KINDS, measured
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
        ([OURS, replace(PLAIN, measurement=None)], False),
        ([OURS, member(0, "other", LOSS), PLAIN], False),
        ([member(0, "", LOSS), PLAIN], False),
        ([OURS, member(1, "ours")], False),
        ([PLAIN], False),
    ],
    ids=["one call has it", "problems", "unmeasured", "two calls", "no name", "the same call", "no call"],
)
def test_a_figure_of_one_call_is_proposed_with_its_call(members: list[CaseReport], *, hint: bool) -> None:
    text = text_of(members)
    assert "was not measured" in text
    assert ("it is a figure of the call ours: worst(loss, case=ours)" in text) is hint


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
