from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.against_limit import judge_artifact
from pytest_perfgate.core.judge.policy import CI
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Absent, Analysis, Metric, MetricSet, Problem, labels
from pytest_perfgate.model.plan import Choice, Effect, Outcome
from pytest_perfgate.model.values import Dimension

KINDS = by_name()
METRICS = MetricSet(
    metrics=tuple(
        Metric(name="overlap", value=value, dimension=Dimension.FRACTION, labels=labels(rank=rank, stage="stage2_f"))
        for rank, value in enumerate((0.9, 0.7))
    ),
    absent=(Absent(name="idle", why="no GPU in it", mend="capture CUDA activity"),),
)


def judged(*texts: str, problems: tuple[Problem, ...] = ()):
    analysis = Analysis(kind="nsys", subject="x", metrics=METRICS, views={}, problems=problems, window="window 0..9")
    return judge_artifact(analysis, [parse_limit(text, kinds=KINDS) for text in texts])


def test_every_match_must_hold() -> None:
    verdicts = judged("overlap(stage=stage2, rank=*) >= 80%")
    assert [v.outcome for v in verdicts] == [Outcome.BROKEN, Outcome.PASSED]
    assert verdicts[0].sentence == "overlap(rank=1, stage=stage2_f) is 70 %, limit >= 80 %"
    assert dict(verdicts[0].evidence)["at"] == "0..9"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("overlap(rank=0) <= 90%", True),
        ("overlap(rank=0) >= 90%", True),
        ("overlap(rank=0) > 90%", False),
        ("overlap(rank=0) < 91%", True),
    ],
)
def test_the_number_decides(text: str, kept: bool) -> None:
    assert judged(text)[0].outcome is (Outcome.PASSED if kept else Outcome.BROKEN)


def test_what_was_not_collected_is_not_measured_and_says_how() -> None:
    absent, nothing = judged("idle <= 5%", "mfu >= 50%")
    assert absent.outcome is nothing.outcome is Outcome.NOT_MEASURED
    assert "no GPU in it" in absent.sentence
    assert absent.next == ("capture CUDA activity",)
    (alone,) = judged("slowdown <= 3%")
    assert "no slower than itself" in alone.sentence
    assert "nothing in nsys gives it" in nothing.sentence


def test_a_problem_makes_every_limit_invalid() -> None:
    low = Problem(code="trace-coverage", what="coverage is 40 %")
    verdicts = judged("overlap(rank=0) >= 1%", "idle <= 5%", problems=(low, Problem(code="x", what="odd")))
    assert {verdict.outcome for verdict in verdicts} == {Outcome.INVALID}
    assert [verdict.sentence for verdict in verdicts] == [
        "overlap(rank=0) >= 1%: coverage is 40 % (and 1 more problem)",
        "idle <= 5%: coverage is 40 % (and 1 more problem)",
    ]
    assert "record CPU activities too" in verdicts[0].next[0]
    (alone,) = judged("idle <= 5%", problems=(Problem(code="x", what="odd"),))
    assert (alone.sentence, alone.next) == ("idle <= 5%: odd", ())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("overlap(stage=stage9) >= 1%", "there are: stage2_f"),
        ("overlap(step=3) >= 1%", "has no scope 'step' here, only rank, stage"),
    ],
)
def test_a_scope_that_matches_nothing_is_an_error(text: str, said: str) -> None:
    with pytest.raises(PerfgateError) as caught:
        judged(text)
    assert said in str(caught.value)
    assert caught.value.code.name == "limit-scope"


def test_what_was_not_measured_fails_unless_the_policy_says_otherwise() -> None:
    analysis = Analysis(kind="nsys", subject="x", metrics=METRICS, views={})
    limits = [parse_limit(text, kinds=KINDS) for text in ("idle <= 5%", "overlap(rank=1) >= 80%")]
    assert [v.effect for v in judge_artifact(analysis, limits)] == [Effect.FAIL, Effect.FAIL]
    lenient = replace(CI, unmeasured=Choice.WARN)
    assert [v.effect for v in judge_artifact(analysis, limits, lenient)] == [Effect.WARN, Effect.FAIL]


def test_a_scope_that_has_to_be_quoted_is_shown_quoted() -> None:
    kernel = "void add<int, 4>(int*)"
    metric = Metric(name="time", value=5e3, dimension=Dimension.TIME, labels=labels(kernel=kernel))
    gap = Absent(name="time", labels=labels(kernel="mul"), why="never launched", mend="launch it")
    analysis = Analysis(kind="nsys", subject="x", metrics=MetricSet(metrics=(metric,), absent=(gap,)), views={})
    held, beside = judge_artifact(analysis, [parse_limit("time <= 1us", kinds=KINDS)])
    assert held.sentence == f'time(kernel="{kernel}") is 5 µs, limit <= 1 µs'
    assert (beside.outcome, beside.next) == (Outcome.NOT_MEASURED, ("launch it",))
    assert beside.sentence == "time(kernel=mul) was not collected: never launched"


def test_what_there_is_no_sense_in_asking_for_is_invalid() -> None:
    silent = Absent(
        name="overlap", labels=labels(rank=1), why="no communication in the window", code="no-communication"
    )
    held = Metric(name="overlap", value=0.9, dimension=Dimension.FRACTION, labels=labels(rank=0))
    found = Analysis(kind="nsys", subject="x", metrics=MetricSet(metrics=(held,), absent=(silent,)), views={})
    every, one = (parse_limit(text, kinds=KINDS) for text in ("overlap(rank=*) >= 80%", "overlap(rank=1) >= 80%"))
    assert [v.outcome for v in judge_artifact(found, [every])] == [Outcome.INVALID, Outcome.PASSED]
    (alone,) = judge_artifact(found, [one])
    assert alone.outcome is Outcome.INVALID
    assert alone.sentence == "overlap: no communication in the window"


def test_a_metric_by_its_full_name_that_the_report_does_not_hold_is_not_measured() -> None:
    there = Metric(name="ncu", value=3.0, dimension=Dimension.PLAIN, labels=labels(kernel="k", metric="sm__a.sum"))
    analysis = Analysis(kind="ncu", subject="x", metrics=MetricSet(metrics=(there,)), views={})
    limits = [parse_limit(text, kinds=KINDS) for text in ("ncu(sm__a.sum) >= 3", "ncu(sm__b.sum) >= 3")]
    held, absent = judge_artifact(analysis, limits)
    assert (held.outcome, absent.outcome) == (Outcome.PASSED, Outcome.NOT_MEASURED)
    assert absent.next == ("collect it with --metrics sm__b.sum",)
    with pytest.raises(PerfgateError, match="limit-scope"):
        judge_artifact(analysis, [parse_limit("ncu(sm__a.sum, kernel=other) >= 3", kinds=KINDS)])
