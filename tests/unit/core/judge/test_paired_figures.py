"""Tests of figures in two builds, in core/judge/rounds."""

from __future__ import annotations

import random

import pytest

from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.rounds import figure_finding
from pytest_perfgate.model.measurement import Baseline
from pytest_perfgate.model.metric import Figure, FigurePairs, Interval, Metric, MetricSet
from pytest_perfgate.model.plan import Decision, Outcome
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.model.verdict import Paired
from tests.unit.core.judge.bench import CONTEXT, accepted, limit, measured

BYTES, PART = Dimension.BYTES, Dimension.FRACTION


def pairs(factor: float, *, rounds: int = 20, scatter: float = 0.01, dimension=BYTES, base: float = 1e6) -> FigurePairs:
    source = random.Random(7)
    return FigurePairs(
        name="memory",
        labels=(),
        dimension=dimension,
        base=tuple(base * source.gauss(1, scatter) for _ in range(rounds)),
        head=tuple(base * factor * source.gauss(1, scatter) for _ in range(rounds)),
    )


@pytest.mark.parametrize(
    ("text", "found", "decision"),
    [
        ("change(metric(memory)) <= 5%", pairs(1.10), Decision.SLOWER),
        ("change(metric(memory)) <= 5%", pairs(1.00), Decision.NOT_SLOWER),
        ("change(metric(memory)) <= 5%", pairs(0.80), Decision.NOT_SLOWER),
        ("change(metric(memory)) >= -5%", pairs(0.90), Decision.SLOWER),
        ("change(metric(memory)) >= -5%", pairs(1.10), Decision.NOT_SLOWER),
        ("change(metric(memory)) <= 100 kB", pairs(1.20), Decision.SLOWER),
        ("change(metric(memory)) <= 100 kB", pairs(1.01), Decision.NOT_SLOWER),
        ("change(metric(memory)) <= 5%", pairs(1.10, rounds=4), Decision.UNDECIDED),
        ("change(metric(memory)) <= 5%", pairs(1.04, scatter=0.2), Decision.UNDECIDED),
        ("change(metric(memory)) <= 0", pairs(1.00, rounds=30), Decision.NOT_SLOWER),
        ("change(overlap) >= -2pp", pairs(0.9, dimension=PART, base=0.8, scatter=0.005), Decision.SLOWER),
        ("change(overlap) >= -2pp", pairs(0.999, dimension=PART, base=0.8, scatter=0.005), Decision.NOT_SLOWER),
        ("change(metric(memory)) <= 0", pairs(1.0, scatter=0.0), Decision.NOT_SLOWER),
        ("change(metric(memory)) <= 0", pairs(1.001, scatter=0.0), Decision.SLOWER),
        ("change(metric(memory)) == 0", pairs(0.999, scatter=0.0), Decision.SLOWER),
        ("change(metric(memory)) < 1%", pairs(1.01, scatter=0.0), Decision.SLOWER),
    ],
)
def test_rounds_decide(text: str, found: FigurePairs, decision: Decision) -> None:
    assert figure_finding(found, limit(text), gates=1).decision is decision


def outcome(value: float, heard: FigurePairs | None, *, revision: bool, before: Baseline | None) -> Outcome:
    paired = Paired(
        decision=Decision.NOT_SLOWER, differences=(0.0,) * 12, shift=0.0, interval=Interval(low=-0.01, high=0.01),
        base="a1b2c3d", revision=revision, figures=(heard,) if heard else (),
    )  # fmt: skip
    around = Interval(low=value * 0.99, high=value * 1.01)
    metrics = MetricSet(metrics=(Metric(name="memory", value=value, dimension=BYTES, interval=around),))
    report = judge(
        measured(1e6, metrics=metrics), [limit("change(metric(memory)) <= 5%")], baseline=before, context=CONTEXT, paired=paired
    )  # fmt: skip
    return report.verdicts[0].outcome


LINE = accepted(1e6, figures=(Figure(name="memory", value=1e6, dimension=BYTES),))


@pytest.mark.parametrize(
    ("value", "heard", "revision", "before", "expected"),
    [
        (1.1e6, pairs(1.1), True, None, Outcome.REGRESSED),
        (1e6, pairs(1.0), True, LINE, Outcome.PASSED),
        (1e6, None, True, LINE, Outcome.NOT_MEASURED),
        (1.1e6, pairs(1.1), False, LINE, Outcome.REGRESSED),
        (1.1e6, pairs(1.0, base=1.1e6), False, LINE, Outcome.MOVED),
        (1.1e6, pairs(1.04, scatter=0.2), False, LINE, Outcome.UNDECIDED),
        (1e6, pairs(1.1), False, LINE, Outcome.PASSED),
    ],
)
def test_a_revision_takes_the_place_of_the_line_and_else_decides_what_it_leaves_open(
    value: float, heard: FigurePairs | None, revision: bool, before: Baseline | None, expected: Outcome
) -> None:
    assert outcome(value, heard, revision=revision, before=before) is expected
