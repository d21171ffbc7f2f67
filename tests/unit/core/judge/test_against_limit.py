"""Tests of core/judge/against_limit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.against_limit import judge_artifact
from pytest_perfgate.core.judge.against_limit import missing_siblings as lacking
from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.policy import CI
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.limits.merge import no_instruction
from pytest_perfgate.core.limits.scope import proposal
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.model.device import Basis, Roof
from pytest_perfgate.model.errors import CODES, PerfgateError
from pytest_perfgate.model.metric import Absent, Analysis, Metric, MetricSet, Problem, labels
from pytest_perfgate.model.plan import Choice, Effect, Outcome
from pytest_perfgate.model.values import Dimension, Interval, Work
from tests.unit.core.judge.bench import (
    CEILING,
    CONTEXT,
    GPU,
    HOST,
    KEY,
    KINDS,
    SLOWDOWN,
    accepted,
    limit,
    measured,
    outcome_of,
    verdict,
)
from tests.unit.core.judge.paired_builds import decided_verdict, judged_arms


def of_value(value: float, low: float | None = None, high: float | None = None, name="overlap", **scope) -> MetricSet:
    interval = Interval(low=low, high=high) if low is not None and high is not None else None
    dimension = KINDS[name].dimension
    return MetricSet(
        metrics=(Metric(name=name, value=value, dimension=dimension, labels=labels(**scope), interval=interval),)
    )


@pytest.mark.parametrize(
    ("text", "low", "high", "expected"),
    [
        ("overlap >= 80%", 0.81, 0.83, Outcome.PASSED),
        ("overlap >= 80%", 0.80, 0.83, Outcome.PASSED),
        ("overlap > 80%", 0.80, 0.83, Outcome.UNDECIDED),
        ("overlap >= 80%", 0.79, 0.83, Outcome.UNDECIDED),
        ("overlap >= 80%", 0.70, 0.79, Outcome.BROKEN),
        ("overlap > 80%", 0.70, 0.80, Outcome.BROKEN),
        ("overlap <= 80%", 0.81, 0.83, Outcome.BROKEN),
        ("overlap <= 80%", 0.70, 0.80, Outcome.PASSED),
        ("overlap < 80%", 0.70, 0.80, Outcome.UNDECIDED),
        ("overlap < 80%", 0.70, 0.79, Outcome.PASSED),
    ],
)
def test_the_interval_decides(text: str, low: float, high: float, expected: Outcome) -> None:
    found = verdict(limits=[limit(text)], metrics=of_value((low + high) / 2, low, high), processes=())
    assert found.outcome is expected
    assert not found.next


@pytest.mark.parametrize(("value", "expected"), [(4, Outcome.PASSED), (5, Outcome.BROKEN)])
def test_a_count_is_exact(value: float, expected: Outcome) -> None:
    metrics = of_value(value, name="count", opcode="HMMA")
    assert outcome_of(limits=[limit("count(HMMA) == 4")], metrics=metrics, processes=()) is expected


def test_every_part_that_a_scope_selects_must_hold() -> None:
    parts = of_value(0.9, stage="stage1") | of_value(0.5, stage="stage2") | of_value(0.95, stage="stage3")
    found = verdict(limits=[limit("overlap >= 80%")], metrics=parts, processes=())
    assert found.outcome is Outcome.BROKEN
    assert found.metric.labels == (("stage", "stage2"),)
    assert outcome_of(limits=[limit("overlap(stage=stage[13]) >= 80%")], metrics=parts, processes=()) is Outcome.PASSED


def test_a_scope_that_matches_nothing_fails_and_lists_what_there_is() -> None:
    parts = of_value(0.9, stage="stage1") | of_value(0.5, stage="stage2")
    found = verdict(limits=[limit("overlap(stage=stagee2) >= 80%")], metrics=parts, processes=())
    assert (found.outcome, found.effect) == (Outcome.NOT_MEASURED, Effect.FAIL)
    assert "(stage=stage2)" in found.sentence


def test_a_metric_that_never_appeared() -> None:
    found = verdict(limits=[limit("overlap >= 80%")])
    assert (found.outcome, found.effect) == (Outcome.NOT_MEASURED, Effect.WARN)
    assert found.sentence == "overlap: nothing here produces overlap"
    assert found.next == ("capture it: it comes from capture='torch'",)
    absent = MetricSet(absent=(Absent(name="overlap", why="no NCCL kernels", mend="run on two devices"),))
    told = verdict(limits=[limit("overlap(stage=x) >= 80%")], metrics=absent)
    assert (told.sentence, told.next) == ("overlap: no NCCL kernels", ("run on two devices",))
    assert verdict(limits=[limit("mfu >= 5%")]).sentence == "mfu: no work= was given"
    assert verdict(limits=[limit("mfu >= 5%")], context=replace(CONTEXT, policy=CI)).effect is Effect.FAIL


def test_a_metric_of_another_dimension_is_not_compared() -> None:
    metrics = MetricSet(metrics=(Metric(name="ncu", value=0.6, dimension=Dimension.FRACTION, labels=labels(name="x")),))
    found = verdict(limits=[limit("ncu(x) >= 60")], metrics=metrics)
    assert (found.outcome, found.effect) == (Outcome.INVALID, Effect.FAIL)
    assert "is a fraction, its limit a plain number" in found.sentence
    assert outcome_of(limits=[limit("ncu(x) >= 60%")], metrics=metrics) is Outcome.PASSED


def test_above_a_measured_ceiling_the_ceiling_is_doubted() -> None:
    work = Work(flops=1.2e9, dtype="bf16")
    found = verdict(limits=[limit("mfu >= 50%")], work=work)
    assert (found.outcome, found.next) == (Outcome.UNDECIDED, ("perfgate ceilings",))
    assert outcome_of(limits=[limit("mfu >= 50%")], work=replace(work, flops=1.04e9)) is Outcome.PASSED
    gpu = Work(flops=760e9, dtype="bf16")
    assert outcome_of(limits=[limit("mfu_ceiling >= 50%")], work=gpu, device=GPU) is Outcome.UNDECIDED
    assert outcome_of(limits=[limit("mfu >= 50%")], work=gpu, device=GPU) is Outcome.PASSED


def test_above_the_physical_peak_nothing_is_trusted() -> None:
    impossible = Work(flops=801e9, dtype="bf16")
    for text in ("mfu >= 50%", "slowdown <= 3%", "time <= 1s"):
        found = verdict(limits=[limit(text)], work=impossible, device=GPU)
        assert (found.outcome, found.effect) == (Outcome.INVALID, Effect.FAIL)
        assert "100 % of the physical peak" in found.sentence
        assert not found.next
    bytes_ = Work(bytes=4.9e9, dtype="bf16")
    assert outcome_of(limits=[limit("time <= 1s")], work=bytes_, device=GPU) is Outcome.INVALID
    cached = Work(bytes=49e6)
    assert outcome_of(1e3, limits=[limit("time <= 1s")], work=cached, device=GPU) is Outcome.PASSED


def test_figures_of_captures_join_those_of_the_timer() -> None:
    report = judge(
        measured(1e6, metrics=of_value(0.9) | of_value(5.0, name="time")), SLOWDOWN, baseline=None, context=CONTEXT
    )
    assert report.measurement.metrics.find("overlap")
    assert [m.value for m in report.measurement.metrics.find("time")] == [pytest.approx(1e6)]


def test_an_artifact_s_own_slowdown_is_a_figure_like_any_other() -> None:
    metrics = of_value(0.2, 0.19, 0.21, name="slowdown")
    assert outcome_of(limits=SLOWDOWN, metrics=metrics, processes=()) is Outcome.BROKEN
    scoped = of_value(0.2, 0.19, 0.21, name="slowdown", op="aten::mm")
    assert outcome_of(limits=[limit("slowdown(op=aten*) <= 3%")], metrics=scoped) is Outcome.BROKEN


def test_a_rank_without_the_stage_that_others_have_does_not_pass_with_them() -> None:
    silent = Absent(name="overlap", labels=labels(rank=1), why="no communication", code="no-communication")
    found = of_value(0.9, rank=0)
    text = limit("overlap(rank=*) >= 80%")
    told = verdict(limits=[text], metrics=replace(found, absent=(silent,)), processes=())
    assert told.outcome is Outcome.INVALID
    assert told.sentence == "overlap(rank=1): no communication  [no-communication]"
    uncollected = replace(silent, code="")
    assert (
        outcome_of(limits=[text], metrics=replace(found, absent=(uncollected,)), processes=()) is Outcome.NOT_MEASURED
    )
    assert outcome_of(
        limits=[limit("overlap(rank=0) >= 80%")], metrics=replace(found, absent=(silent,)), processes=()
    ) is (Outcome.PASSED)


def test_a_counter_by_its_full_name_that_no_report_holds_is_not_measured_in_one_line() -> None:
    found = of_value(3.0, name="ncu", metric="sm__a.sum")
    asked = parse_limit("ncu(sm__b.sum) >= 3", kinds=by_name())
    told = verdict(limits=[asked], metrics=found, processes=())
    assert told.outcome is Outcome.NOT_MEASURED
    assert told.sentence == "ncu: sm__b.sum is not in the report"
    assert told.next == ("collect it with --metrics sm__b.sum",)


def test_a_long_list_of_what_there_is_ends() -> None:
    assert proposal("zzz", [f"x{n:02}" for n in range(40)], all_of="there are").endswith("x11 and 28 more")


def test_a_count_of_an_instruction_that_does_not_exist_fails_with_the_nearest() -> None:
    counts = MetricSet(
        metrics=tuple(
            Metric(name="count", value=1, dimension=Dimension.COUNT, labels=labels(opcode=name))
            for name in ("LDG", "I2F")
        )
    )
    found = verdict(limits=[limit("count(IF2) == 0")], metrics=counts, processes=())
    assert (found.outcome, found.effect) == (Outcome.NOT_MEASURED, Effect.FAIL)
    assert "IF2 is not an opcode; did you mean 'I2F'" in found.sentence
    other = verdict(limits=[limit("count(LDG, kernel=k) == 0")], metrics=counts, processes=())
    assert "matches nothing" in other.sentence


@pytest.mark.parametrize(
    ("text", "worst"),
    [("overlap >= 80%", 0.1), ("overlap <= 5%", 0.7), ("op_count == 0", 0.7), ("overlap >= 0%", 0.1)],
)
def test_of_several_figures_the_worst_is_shown(text: str, worst: float) -> None:
    """The rank that misses by most, and not the first that does."""
    values = {"0": 0.5, "1": 0.1, "2": 0.7}
    found = MetricSet(
        metrics=tuple(
            m for rank, v in values.items() for m in of_value(v, name=text.split(maxsplit=1)[0], rank=rank).metrics
        )
    )
    shown = verdict(limits=[limit(text)], metrics=found, processes=()).metric
    assert shown is not None
    assert shown.value == worst


def test_more_of_a_peak_than_there_is_keeps_no_limit() -> None:
    metric = Metric(name="mfu_datasheet", value=3.0, dimension=Dimension.FRACTION, source="trace")
    found = verdict(limits=[limit("mfu_datasheet >= 50%")], metrics=MetricSet(metrics=(metric,)), processes=())
    assert found.outcome is Outcome.INVALID
    assert "more than the hardware can do" in found.sentence


@pytest.mark.parametrize(
    ("asked", "what"),
    [
        ("QNEW", None),
        ("QOLD", "QOLD is not an opcode"),
        ("QOLD.E", "QOLD is not an opcode"),
        ("HMMA.999", "HMMA has no modifiers 999"),
        ("HMMA", None),
    ],
)
def test_an_instruction_that_its_own_figure_shows_exists(asked: str, what: str | None) -> None:
    metrics = MetricSet(metrics=tuple(
        Metric(name=name, value=1.0, dimension=Dimension.COUNT, labels=labels(opcode=opcode, kernel="k"))
        for name, opcode in (("count", "QNEW"), ("executed", "QOLD"))
    ))  # fmt: skip
    found = no_instruction(limit(f"count({asked}, kernel=other) >= 1"), metrics)
    assert (found[0] if found else None) == what


BUILT_IN_KINDS = by_name()
METRICS = MetricSet(
    metrics=tuple(
        Metric(name="overlap", value=value, dimension=Dimension.FRACTION, labels=labels(rank=rank, stage="stage2_f"))
        for rank, value in enumerate((0.9, 0.7))
    ),
    absent=(Absent(name="idle", why="no GPU in it", mend="capture CUDA activity"),),
)


def judged(*texts: str, problems: tuple[Problem, ...] = ()):
    analysis = Analysis(kind="nsys", subject="x", metrics=METRICS, views={}, problems=problems, window="window 0..9")
    return judge_artifact(analysis, [parse_limit(text, kinds=BUILT_IN_KINDS) for text in texts])


@pytest.mark.parametrize(
    ("kind", "scope", "covered", "at"),
    [
        ("kineto", {"step": 3}, 0.012, "whole trace, each step by itself; such windows cover 1.2 % of the capture"),
        ("kineto", {"step": 3}, 0.5, "whole trace, each step by itself"),
        ("kineto", {}, 0.012, "whole trace"),
        ("nsys", {}, 0.012, "whole trace; such windows cover 1.2 % of the capture"),
    ],
)
def test_what_windows_leave_out_of_a_capture_stands_under_the_verdict(kind, scope, covered, at) -> None:
    idle = Metric(name="idle", value=0.02, dimension=Dimension.FRACTION, labels=labels(rank=0, **scope))
    parts = Metric(name="window_coverage", value=covered, dimension=Dimension.FRACTION, labels=labels(rank=0))
    analysis = Analysis(
        kind=kind, subject="x", metrics=MetricSet(metrics=(idle, parts)), views={}, window="window whole trace"
    )
    (verdict,) = judge_artifact(analysis, [parse_limit("idle <= 10%", kinds=BUILT_IN_KINDS)])
    assert dict(verdict.evidence)["at"].partition(": ")[0] == at


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
    limits = [parse_limit(text, kinds=BUILT_IN_KINDS) for text in ("idle <= 5%", "overlap(rank=1) >= 80%")]
    assert [v.effect for v in judge_artifact(analysis, limits)] == [Effect.FAIL, Effect.FAIL]
    lenient = replace(CI, unmeasured=Choice.WARN)
    assert [v.effect for v in judge_artifact(analysis, limits, lenient)] == [Effect.WARN, Effect.FAIL]


def test_a_scope_that_has_to_be_quoted_is_shown_quoted() -> None:
    kernel = "void add<int, 4>(int*)"
    metric = Metric(name="time", value=5e3, dimension=Dimension.TIME, labels=labels(kernel=kernel))
    gap = Absent(name="time", labels=labels(kernel="mul"), why="never launched", mend="launch it")
    analysis = Analysis(kind="nsys", subject="x", metrics=MetricSet(metrics=(metric,), absent=(gap,)), views={})
    held, beside = judge_artifact(analysis, [parse_limit("time <= 1us", kinds=BUILT_IN_KINDS)])
    assert held.sentence == f'time(kernel="{kernel}") is 5 µs, limit <= 1 µs'
    assert (beside.outcome, beside.next) == (Outcome.NOT_MEASURED, ("launch it",))
    assert beside.sentence == "time(kernel=mul) was not collected: never launched"


def test_what_there_is_no_sense_in_asking_for_is_invalid() -> None:
    silent = Absent(
        name="overlap", labels=labels(rank=1), why="no communication in the window", code="no-communication"
    )
    held = Metric(name="overlap", value=0.9, dimension=Dimension.FRACTION, labels=labels(rank=0))
    found = Analysis(kind="nsys", subject="x", metrics=MetricSet(metrics=(held,), absent=(silent,)), views={})
    every, one = (
        parse_limit(text, kinds=BUILT_IN_KINDS) for text in ("overlap(rank=*) >= 80%", "overlap(rank=1) >= 80%")
    )
    assert [v.outcome for v in judge_artifact(found, [every])] == [Outcome.INVALID, Outcome.PASSED]
    (alone,) = judge_artifact(found, [one])
    assert alone.outcome is Outcome.INVALID
    assert alone.sentence == "overlap: no communication in the window"


def test_a_metric_by_its_full_name_that_the_report_does_not_hold_is_not_measured() -> None:
    there = Metric(name="ncu", value=3.0, dimension=Dimension.PLAIN, labels=labels(kernel="k", metric="sm__a.sum"))
    analysis = Analysis(kind="ncu", subject="x", metrics=MetricSet(metrics=(there,)), views={})
    limits = [parse_limit(text, kinds=BUILT_IN_KINDS) for text in ("ncu(sm__a.sum) >= 3", "ncu(sm__b.sum) >= 3")]
    held, absent = judge_artifact(analysis, limits)
    assert (held.outcome, absent.outcome) == (Outcome.PASSED, Outcome.NOT_MEASURED)
    assert absent.next == ("collect it with --metrics sm__b.sum",)
    with pytest.raises(PerfgateError, match="limit-scope"):
        judge_artifact(analysis, [parse_limit("ncu(sm__a.sum, kernel=other) >= 3", kinds=BUILT_IN_KINDS)])


def counted(low: float, high: float | None = None) -> Metric:
    interval = None if high is None else Interval(low=low, high=high)
    return Metric(name="count", value=low, dimension=Dimension.COUNT, interval=interval)


def test_an_exact_limit_holds_for_the_whole_interval_or_not_at_all() -> None:
    for metric, outcome, sentence in (
        (counted(5), Outcome.PASSED, "keeps the limit"),
        (counted(5, 5), Outcome.PASSED, "the whole interval keeps the limit"),
        (counted(5, 6), Outcome.BROKEN, "the whole interval misses the limit"),
        (counted(6), Outcome.BROKEN, "misses the limit"),
    ):
        found = decided_verdict(1e6, "count == 5", metrics=MetricSet(metrics=(metric,)))
        assert (found.outcome, found.sentence) == (outcome, sentence)


def test_a_metric_that_no_kind_describes_is_not_measured() -> None:
    found = decided_verdict(1e6, "overlap >= 50%", context=replace(CONTEXT, kinds={}))
    assert found.outcome is Outcome.NOT_MEASURED
    assert "perfgate.metric('overlap'" in found.next[0]


@pytest.mark.parametrize(("ranks", "said"), [(12, "8, 9"), (14, "6, 7 and 2 more")])
def test_many_scopes_are_cut_and_the_rest_is_counted(ranks: int, said: str) -> None:
    every = [
        Metric(name="overlap", value=0.9, dimension=Dimension.FRACTION, labels=labels(rank=rank))
        for rank in range(ranks)
    ]
    analysis = Analysis(kind="nsys", subject="x", metrics=MetricSet(metrics=tuple(every)), views={})
    with pytest.raises(PerfgateError) as caught:
        judge_artifact(analysis, [limit("overlap(rank=99) >= 1%")])
    assert caught.value.mend.endswith(said)
    assert caught.value.mend.count(",") == 11


def test_of_several_absences_the_one_that_was_asked_for_speaks() -> None:
    one, other = (Absent(name="idle", labels=labels(rank=rank), why=f"rank {rank} is dark") for rank in (0, 1))
    overlap = Metric(name="overlap", value=0.5, dimension=Dimension.FRACTION, labels=labels(rank=0))
    gone = Absent(name="overlap", labels=labels(stage="s"), why="no stage")
    analysis = Analysis(
        kind="nsys", subject="x", views={}, metrics=MetricSet(metrics=(overlap,), absent=(one, other, gone))
    )

    def said(text: str) -> str:
        return judge_artifact(analysis, [parse_limit(text, kinds=KINDS)])[0].sentence

    assert said("idle(rank=1) <= 5%") == "idle was not collected: rank 1 is dark"
    assert said("idle(rank=9) <= 5%") == "idle was not collected: rank 0 is dark"
    with pytest.raises(PerfgateError, match="rank"):
        said("overlap(rank=9) >= 5%")


def test_a_figure_that_no_process_gave_names_no_test_to_profile() -> None:
    counted = MetricSet(metrics=(Metric(name="count", value=5.0, dimension=Dimension.COUNT),))
    timed = judged_arms("count <= 4", device=GPU, metrics=counted)
    read = judged_arms("count <= 4", processes=(), device=GPU, metrics=counted)
    assert (timed.outcome, timed.next) == (Outcome.BROKEN, (f"perfgate profile '{KEY}'",))
    assert (read.outcome, read.next) == (Outcome.BROKEN, ())


def test_of_several_figures_the_furthest_from_an_exact_limit_speaks() -> None:
    every = tuple(
        Metric(name="count", value=n, dimension=Dimension.COUNT, labels=labels(kernel=n)) for n in (4.0, 1.0, 8.0)
    )
    found = judged_arms("count == 5", metrics=MetricSet(metrics=every))
    assert (found.outcome, found.metric.value) == (Outcome.BROKEN, 1.0)


def judged_trace(text: str, *metrics: Metric, problems: int = 0):
    wrong = tuple(Problem(code="x", what=f"problem {at}") for at in range(problems))
    analysis = Analysis(kind="nsys", subject="x", metrics=MetricSet(metrics=metrics), views={}, problems=wrong)
    return judge_artifact(analysis, [limit(text)])[0]


@pytest.mark.parametrize(
    ("name", "value", "source", "outcome"),
    [
        ("mfu", 1.04, "trace", Outcome.PASSED),
        ("mfu", 1.05, "trace", Outcome.PASSED),
        ("mfu", 1.06, "trace", Outcome.INVALID),
        ("sol_datasheet", 1.06, "trace", Outcome.INVALID),
        ("sol_ceiling", 1.06, "trace", Outcome.PASSED),
        ("overlap", 1.06, "trace", Outcome.PASSED),
        ("mfu", 1.06, "time", Outcome.PASSED),
    ],
)
def test_a_trace_that_shows_more_than_a_peak_and_its_play_keeps_no_limit(
    name: str, value: float, source: str, outcome: Outcome
) -> None:
    found = judged_trace(
        f"{name} >= 50%", Metric(name=name, value=value, dimension=Dimension.FRACTION, source=source, note="n")
    )
    assert found.outcome is outcome
    assert found.evidence == (("note", "n"),)
    assert ("more than the hardware can do" in found.sentence) is (outcome is Outcome.INVALID)


@pytest.mark.parametrize(
    ("value", "outcome"),
    [(1.05, Outcome.PASSED), (1.06, Outcome.UNDECIDED), (2.0, Outcome.UNDECIDED), (2.1, Outcome.INVALID)],
)
def test_a_measured_ceiling_is_doubted_beyond_its_play_and_the_work_beyond_twice(
    value: float, outcome: Outcome
) -> None:
    figure = MetricSet(metrics=(Metric(name="mfu_ceiling", value=value, dimension=Dimension.FRACTION),))
    assert judged_arms("mfu_ceiling >= 50%", processes=(), metrics=figure).outcome is outcome


@pytest.mark.parametrize(
    ("count", "said"), [(1, "problem 0"), (2, "problem 0 (and 1 more problem)"), (3, "problem 0 (and 2 more problems)")]
)
def test_problems_are_counted_in_english(count: int, said: str) -> None:
    assert judged_trace("mfu >= 50%", problems=count).sentence == f"mfu >= 50%: {said}"


def judged_time(text: str, time: float, *, context=CONTEXT, **fields):
    return judge(measured(time, **fields), [limit(text)], baseline=accepted(1e6), context=context).verdicts[0]


@pytest.mark.parametrize(
    ("part", "outcome"),
    [(1.04, Outcome.PASSED), (1.06, Outcome.UNDECIDED), (1.99, Outcome.UNDECIDED), (2.01, Outcome.INVALID)],
)
def test_a_ceiling_is_doubted_from_five_percent_beyond_it_on(part: float, outcome: Outcome) -> None:
    work = Work(flops=part * 1e9, bytes=1.0, dtype="bf16")
    assert judged_time("mfu_ceiling >= 50%", 1e6, work=work).outcome is outcome


GROUPS = (1.0, 1.001, 1.2, 1.201)


def share(name: str, low: float, value: float, high: float) -> Metric:
    return Metric(name=name, value=value, dimension=Dimension.FRACTION, interval=Interval(low=low, high=high))


def test_groups_of_times_say_nothing_of_what_a_capture_counted() -> None:
    seen = MetricSet(metrics=(share("overlap", 0.5, 0.6, 0.7),))
    found = verdict(1e6, [limit("overlap >= 60%")], shape=GROUPS, metrics=seen)
    assert (found.outcome, found.next) == (Outcome.UNDECIDED, ())


def test_what_nobody_collected_names_its_source() -> None:
    (found,) = judge(measured(1e6), [limit("overlap >= 60%")], baseline=None, context=CONTEXT).verdicts
    assert found.next == ("capture it: it comes from capture='torch'",)
    gap = MetricSet(absent=(Absent(name="overlap", why="one rank alone"),))
    found = verdict(1e6, [limit("overlap >= 60%")], metrics=gap)
    assert (found.sentence, found.next) == ("overlap: one rank alone", ("capture it: it comes from capture='torch'",))
    counter = verdict(1e6, [replace(limit("ncu(lts) <= 5"), labels=(("metric", "lts"),))])
    assert counter.sentence == "ncu: nothing here produces ncu", "no report lacks it: there is none"
    untimed = verdict(1e6, [limit("time <= 1ms")], processes=())
    assert not any("capture it" in step for step in untimed.next), "time is no capture"


def test_every_number_between_two_bounds_equals_one() -> None:
    counted = Metric(name="count", value=5.0, dimension=Dimension.COUNT, interval=Interval(low=4.0, high=5.0))
    for interval, expected in ((counted.interval, Outcome.BROKEN), (Interval(low=5.0, high=5.0), Outcome.PASSED)):
        seen = MetricSet(metrics=(replace(counted, interval=interval),))
        assert outcome_of(1e6, [limit("count == 5")], metrics=seen) is expected


def test_only_a_measured_ceiling_may_be_passed() -> None:
    seen = MetricSet(metrics=(share("mfu", 1.06, 1.06, 1.06),))
    for device, expected in ((GPU, Outcome.PASSED), (HOST, Outcome.UNDECIDED)):
        assert outcome_of(1e6, [limit("mfu >= 50%")], processes=(), device=device, metrics=seen) is expected


def test_a_part_of_a_call_may_be_above_the_peak_of_the_whole() -> None:
    part = replace(share("sol", 1.2, 1.2, 1.2), labels=(("part", "gemm"),))
    assert judge(measured(1e6, device=GPU, metrics=MetricSet(metrics=(part,))), [], baseline=None, context=CONTEXT).problems == ()  # fmt: skip


def test_what_lacks_beside_a_figure_is_of_the_same_level() -> None:
    whole, of_rank = share("overlap", 0.5, 0.5, 0.5), replace(share("overlap", 0.5, 0.5, 0.5), labels=labels(rank=0))
    gaps = tuple(Absent(name="overlap", why="", labels=one) for one in ((), labels(rank=1), labels(stage="fwd")))
    held = MetricSet(absent=gaps)
    assert lacking("overlap", (), [whole], held) == ()
    assert lacking("overlap", (), [of_rank], held) == gaps[1:2]
    assert lacking("overlap", labels(rank=0), [of_rank], held) == ()


def problem_of(text: str, metrics: tuple[Metric, ...]) -> str:
    analysis = Analysis(kind="nsys", subject="x", metrics=MetricSet(metrics=metrics), views={})
    with pytest.raises(PerfgateError) as caught:
        judge_artifact(analysis, [limit(text)])
    return str(caught.value)


def test_a_scope_of_what_has_none_says_so_and_one_that_matches_apart_names_what_there_is() -> None:
    assert "only no scopes" in problem_of("overlap(rank=1) >= 5%", (share("overlap", 0.1, 0.1, 0.1),))
    ranks = tuple(
        replace(share("overlap", 0.1, 0.1, 0.1), labels=(("rank", rank), ("stage", stage)))
        for rank, stage in (("0", "one"), ("1", "two"))
    )
    said = problem_of("overlap(rank=0, stage=two) >= 5%", ranks)
    assert "there are: 0, 1, one, two" in said


def test_a_problem_without_advice_of_its_own_gives_that_of_its_code() -> None:
    wrong = Problem(code="limit-syntax", what="it does not read")
    analysis = Analysis(kind="nsys", subject="x", metrics=MetricSet(), views={}, problems=(wrong,))
    assert judge_artifact(analysis, [limit("overlap >= 5%")])[0].next == (CODES["limit-syntax"].mend,)


def test_an_instruction_is_asked_for_by_counts_that_name_one() -> None:
    seen = MetricSet(metrics=tuple(replace(share("count", 1, 1, 1), dimension=Dimension.COUNT, labels=(("opcode", op), ("kernel", "k"))) for op in ("HMMA", "FFMA")))  # fmt: skip
    found = verdict(1e6, [limit("count(kernel=other) >= 1")], metrics=seen)
    assert "no opcode" not in found.sentence
    assert "opcode" in verdict(1e6, [limit("count(HMNA) >= 1")], metrics=seen).sentence


PLAIN_CONTEXT = JudgeContext(kinds=KINDS)


def test_only_a_gpu_has_a_physical_peak() -> None:
    roof = Roof(basis=Basis.CLOCK, compute=(("bf16", 1e9),), bandwidth=1e9)
    for kind, code in (("gpu", "above-peak"), ("host", "")):
        device = replace(HOST, kind=kind, roofs=(roof, CEILING))
        report = judge(
            measured(1e6, device=device, work=Work(flops=1e9, dtype="bf16")), (), baseline=None, context=PLAIN_CONTEXT
        )
        assert [problem.code for problem in report.problems] == [code] * bool(code)
