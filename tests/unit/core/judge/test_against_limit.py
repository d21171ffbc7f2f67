"""Tests of core/judge/against_limit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.against_limit import judge_artifact
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.policy import CI
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.limits.merge import no_instruction
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.model.errors import PerfgateError, codes, proposal
from pytest_perfgate.model.measurement import Identity
from pytest_perfgate.model.metric import Absent, Analysis, Interval, Labels, Metric, MetricSet, Problem, labels
from pytest_perfgate.model.plan import Choice, Effect, Outcome
from pytest_perfgate.model.values import Better, Dimension, Work
from tests.unit.core.judge.bench import (
    CONTEXT,
    GPU,
    HOST,
    KINDS,
    SLOWDOWN,
    limit,
    measured,
    outcome_of,
    samples,
    verdict,
)


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
    result = verdict(limits=[limit(text)], metrics=of_value((low + high) / 2, low, high), processes=())
    assert result.outcome is expected
    assert not result.next


@pytest.mark.parametrize(("value", "expected"), [(4, Outcome.PASSED), (5, Outcome.BROKEN)])
def test_a_count_is_exact(value: float, expected: Outcome) -> None:
    metrics = of_value(value, name="count", opcode="HMMA")
    assert outcome_of(limits=[limit("count(HMMA) == 4")], metrics=metrics, processes=()) is expected


def test_every_part_that_a_scope_selects_must_hold() -> None:
    parts = of_value(0.9, stage="stage1") | of_value(0.5, stage="stage2") | of_value(0.95, stage="stage3")
    result = verdict(limits=[limit("overlap >= 80%")], metrics=parts, processes=())
    assert result.outcome is Outcome.BROKEN
    assert result.metric.labels == (("stage", "stage2"),)
    assert outcome_of(limits=[limit("overlap(stage=stage[13]) >= 80%")], metrics=parts, processes=()) is Outcome.PASSED


def test_a_scope_that_matches_nothing_fails_and_lists_what_there_is() -> None:
    parts = of_value(0.9, stage="stage1") | of_value(0.5, stage="stage2")
    result = verdict(limits=[limit("overlap(stage=stagee2) >= 80%")], metrics=parts, processes=())
    assert (result.outcome, result.effect) == (Outcome.NOT_MEASURED, Effect.FAIL)
    assert "(stage=stage2)" in result.sentence


def test_a_metric_that_never_appeared() -> None:
    result = verdict(limits=[limit("overlap >= 80%")])
    assert (result.outcome, result.effect) == (Outcome.NOT_MEASURED, Effect.WARN)
    assert result.sentence.startswith("overlap: ")
    assert result.next == ("add capture='torch' or capture='nsys' to the marker",)
    absent = MetricSet(absent=(Absent(name="overlap", why="no NCCL kernels", fix="run on two devices"),))
    explained = verdict(limits=[limit("overlap(stage=x) >= 80%")], metrics=absent)
    assert (explained.sentence, explained.next) == ("overlap: no NCCL kernels", ("run on two devices",))
    assert verdict(limits=[limit("mfu >= 5%")]).sentence == "mfu: no work= was given"
    assert verdict(limits=[limit("mfu >= 5%")], context=replace(CONTEXT, policy=CI)).effect is Effect.FAIL


def test_a_metric_of_another_dimension_is_not_compared() -> None:
    metrics = MetricSet(metrics=(Metric(name="ncu", value=0.6, dimension=Dimension.FRACTION, labels=labels(name="x")),))
    result = verdict(limits=[limit("ncu(x) >= 60")], metrics=metrics)
    assert (result.outcome, result.effect) == (Outcome.INVALID, Effect.FAIL)
    assert "is a fraction, its limit a plain number" in result.sentence
    assert outcome_of(limits=[limit("ncu(x) >= 60%")], metrics=metrics) is Outcome.PASSED


@pytest.mark.parametrize("text", ["overlap >= 80%", "overlap <= 80%"])
@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_what_is_not_a_finite_number_keeps_no_limit(text: str, value: float) -> None:
    metrics = of_value(value)
    analysis = Analysis(kind="nsys", subject="x", views={}, metrics=metrics)
    for result in (
        verdict(limits=[limit(text)], metrics=metrics, processes=()),
        *judge_artifact(analysis, [limit(text)]),
    ):
        assert result.outcome is Outcome.INVALID
        assert "overlap is not a finite number" in result.sentence


def test_above_a_measured_ceiling_the_ceiling_is_doubted() -> None:
    work = Work(flops=1.2e9, dtype="bf16")
    result = verdict(limits=[limit("mfu >= 50%")], work=work)
    assert (result.outcome, result.next) == (Outcome.UNDECIDED, ("perfgate ceilings",))
    assert outcome_of(limits=[limit("mfu >= 50%")], work=replace(work, flops=1.04e9)) is Outcome.PASSED
    gpu = Work(flops=760e9, dtype="bf16")
    assert outcome_of(limits=[limit("mfu_ceiling >= 50%")], work=gpu, device=GPU) is Outcome.UNDECIDED
    assert outcome_of(limits=[limit("mfu >= 50%")], work=gpu, device=GPU) is Outcome.PASSED


def test_above_the_physical_peak_nothing_is_trusted() -> None:
    impossible = Work(flops=801e9, dtype="bf16")
    for text in ("mfu >= 50%", "slowdown <= 3%", "time <= 1s"):
        result = verdict(limits=[limit(text)], work=impossible, device=GPU)
        assert (result.outcome, result.effect) == (Outcome.INVALID, Effect.FAIL)
        assert "100 % of the physical peak" in result.sentence
        assert result.next == (codes()["above-peak"].fix,)
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
    silent = Absent(name="overlap", labels=labels(rank=1), why="no communication", code="nsys-silent")
    metrics = of_value(0.9, rank=0)
    text = limit("overlap(rank=*) >= 80%")
    result = verdict(limits=[text], metrics=replace(metrics, absent=(silent,)), processes=())
    assert result.outcome is Outcome.INVALID
    assert result.sentence.startswith("overlap(rank=1): ")
    assert result.sentence.endswith("[nsys-silent]")
    uncollected = replace(silent, code="")
    assert (
        outcome_of(limits=[text], metrics=replace(metrics, absent=(uncollected,)), processes=()) is Outcome.NOT_MEASURED
    )
    assert outcome_of(
        limits=[limit("overlap(rank=0) >= 80%")], metrics=replace(metrics, absent=(silent,)), processes=()
    ) is (Outcome.PASSED)


def test_a_counter_by_its_full_name_that_no_report_holds_is_not_measured_in_one_line() -> None:
    metrics = of_value(3.0, name="ncu", metric="sm__a.sum")
    demand = parse_limit("ncu(sm__b.sum) >= 3", kinds=by_name())
    result = verdict(limits=[demand], metrics=metrics, processes=())
    assert result.outcome is Outcome.NOT_MEASURED
    assert result.sentence == "ncu: sm__b.sum is not in the report"
    assert result.next == ("collect it with --metrics sm__b.sum",)


def test_a_long_list_of_what_there_is_ends() -> None:
    assert proposal("zzz", [f"x{n:02}" for n in range(40)], all_of="there are").endswith("x11 and 28 more")


def test_a_count_of_an_instruction_that_does_not_exist_fails_with_the_nearest() -> None:
    counts = MetricSet(
        metrics=tuple(
            Metric(name="count", value=1, dimension=Dimension.COUNT, labels=labels(opcode=name))
            for name in ("LDG", "I2F")
        )
    )
    result = verdict(limits=[limit("count(IF2) == 0")], metrics=counts, processes=())
    assert (result.outcome, result.effect) == (Outcome.NOT_MEASURED, Effect.FAIL)
    assert "IF2 is not an opcode; did you mean 'I2F'" in result.sentence
    other = verdict(limits=[limit("count(LDG, kernel=k) == 0")], metrics=counts, processes=())
    assert "matches nothing" in other.sentence


@pytest.mark.parametrize(
    ("text", "worst"),
    [("overlap >= 80%", 0.1), ("overlap <= 5%", 0.7), ("op_count == 0", 0.7), ("overlap >= 0%", 0.1)],
)
def test_of_several_figures_the_worst_is_shown(text: str, worst: float) -> None:
    """The rank that misses by most, and not the first that does."""
    values = {"0": 0.5, "1": 0.1, "2": 0.7}
    metrics = MetricSet(
        metrics=tuple(
            m for rank, v in values.items() for m in of_value(v, name=text.split(maxsplit=1)[0], rank=rank).metrics
        )
    )
    shown = verdict(limits=[limit(text)], metrics=metrics, processes=()).metric
    assert shown is not None
    assert shown.value == worst


def test_more_of_a_peak_than_there_is_keeps_no_limit() -> None:
    metric = Metric(name="mfu_datasheet", value=3.0, dimension=Dimension.FRACTION, source="trace")
    result = verdict(limits=[limit("mfu_datasheet >= 50%")], metrics=MetricSet(metrics=(metric,)), processes=())
    assert result.outcome is Outcome.INVALID
    assert "more than the hardware can do" in result.sentence


@pytest.mark.parametrize(
    ("instruction", "what"),
    [
        ("QNEW", None),
        ("QOLD", "QOLD is not an opcode"),
        ("QOLD.E", "QOLD is not an opcode"),
        ("HMMA.999", "HMMA has no modifiers 999"),
        ("HMMA", None),
    ],
)
def test_an_instruction_that_its_own_figure_shows_exists(instruction: str, what: str | None) -> None:
    metrics = MetricSet(metrics=tuple(
        Metric(name=name, value=1.0, dimension=Dimension.COUNT, labels=labels(opcode=opcode, kernel="k"))
        for name, opcode in (("count", "QNEW"), ("executed", "QOLD"))
    ))  # fmt: skip
    problem = no_instruction(limit(f"count({instruction}, kernel=other) >= 1"), metrics)
    assert (problem[0] if problem else None) == what


BUILT_IN_KINDS = by_name()
METRICS = MetricSet(
    metrics=tuple(
        Metric(name="overlap", value=value, dimension=Dimension.FRACTION, labels=labels(rank=rank, stage="stage2_f"))
        for rank, value in enumerate((0.9, 0.7))
    ),
    absent=(Absent(name="idle", why="no GPU in it", fix="capture CUDA activity"),),
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
    assert dict(verdict.evidence)["at"].partition("; their")[0] == at


@pytest.mark.parametrize(
    ("name", "of_rank", "at"),
    [
        ("idle", (0.9, 0.012), "whole trace"),
        ("idle", (0.012, 0.9), "whole trace; such windows cover 1.2 % of the capture"),
        ("idle", (0.01234, 0.9), "whole trace; such windows cover 1.2 % of the capture"),
        ("idle", (), "whole trace"),
        ("window_coverage", (0.012, 0.9), "whole trace"),
        ("step_to_step", (0.012, 0.9), "whole trace"),
    ],
)
def test_what_windows_leave_out_is_that_of_the_figure_s_own_rank(
    name: str, of_rank: tuple[float, ...], at: str
) -> None:
    parts = [
        Metric(name="window_coverage", value=part, dimension=Dimension.FRACTION, labels=labels(rank=rank))
        for rank, part in enumerate(of_rank)
    ]
    time = name == "step_to_step"
    own = Metric(name=name, value=0.01, dimension=Dimension.TIME if time else Dimension.FRACTION, labels=labels(rank=0))
    metrics = parts if name == "window_coverage" else [*parts, own]
    analysis = Analysis(
        kind="nsys", subject="x", metrics=MetricSet(metrics=tuple(metrics)), views={}, window="whole trace"
    )
    text = f"{name}(rank=0) <= {'1us' if time else '50%'}"
    (verdict,) = judge_artifact(analysis, [parse_limit(text, kinds=BUILT_IN_KINDS)])
    assert verdict.outcome is Outcome.PASSED
    assert dict(verdict.evidence)["at"].partition("; their")[0] == at


def test_what_windows_leave_out_of_a_figure_of_all_ranks_is_that_of_the_least_covered() -> None:
    ranks = [
        Metric(name="window_coverage", value=part, dimension=Dimension.FRACTION, labels=labels(rank=rank))
        for rank, part in enumerate((0.9, 0.012))
    ]
    own = Metric(name="idle", value=0.01, dimension=Dimension.FRACTION)
    analysis = Analysis(kind="nsys", subject="x", metrics=MetricSet(metrics=(*ranks, own)), views={}, window="all")
    (verdict,) = judge_artifact(analysis, [parse_limit("idle <= 50%", kinds=BUILT_IN_KINDS)])
    assert "such windows cover 1.2 % of the capture" in dict(verdict.evidence)["at"]


def test_a_limit_on_thousands_of_launches_looks_at_all_of_them_once(monkeypatch) -> None:
    """Once for each launch, it took 35 s of CPU for 60,000 of them."""
    find, sizes = MetricSet.find, []

    def counted(self: MetricSet, name: str, scope: Labels = ()) -> tuple[Metric, ...]:
        sizes.append(len(self.metrics))
        return find(self, name, scope)

    monkeypatch.setattr(MetricSet, "find", counted)
    launches = (
        Metric(name="duration", value=1.0, dimension=Dimension.TIME, labels=labels(launch=n)) for n in range(500)
    )
    metrics = MetricSet(metrics=tuple(launches))
    analysis = Analysis(kind="rocprof", subject="x", metrics=metrics, views={}, window="500 dispatches")
    assert len(judge_artifact(analysis, [parse_limit("duration <= 1us", kinds=BUILT_IN_KINDS)])) == 500
    assert sum(sizes) == 500


def test_every_match_must_hold() -> None:
    verdicts = judged("overlap(stage=stage2, rank=*) >= 80%")
    assert [v.outcome for v in verdicts] == [Outcome.BROKEN, Outcome.PASSED]
    assert "(rank=1, stage=stage2_f) is 70 %" in verdicts[0].sentence
    assert dict(verdicts[0].evidence)["at"] == "0..9"


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("overlap(rank=0) <= 90%", True),
        ("overlap(rank=0) >= 90%", True),
        ("overlap(rank=0) > 90%", False),
        ("overlap(rank=0) < 91%", True),
    ],
)
def test_the_number_decides(text: str, passes: bool) -> None:
    assert judged(text)[0].outcome is (Outcome.PASSED if passes else Outcome.BROKEN)


def test_what_was_not_collected_is_not_measured_and_says_how() -> None:
    absent, nothing = judged("idle <= 5%", "mfu >= 50%")
    assert absent.outcome is nothing.outcome is Outcome.NOT_MEASURED
    assert "no GPU in it" in absent.sentence
    assert absent.next == ("capture CUDA activity",)
    (alone,) = judged("slowdown <= 3%")
    assert "nothing to be compared with" in alone.sentence
    assert "an nsys export does not hold this metric" in nothing.sentence
    assert "--set flops=" in nothing.next[0]
    (timed,) = judged("cv <= 5%")
    assert "pytest --perfgate" in timed.next[0]
    (counted,) = judged("registers <= 64")
    assert "cubin" in counted.next[0]


def test_a_figure_of_this_kind_of_file_that_this_one_lacks_sends_nobody_to_the_same_file() -> None:
    (balance,) = judged("balance <= 5%")
    assert "no part of this file has it: the busiest part's compute" in balance.sentence
    assert balance.next == ()
    (edits,) = judged("tree_edits <= 5")
    assert edits.next == ("compare two: perfgate compare BEFORE AFTER LIMIT",)


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
    ("text", "message"),
    [
        ("overlap(stage=stage9) >= 1%", "there are: stage2_f"),
        ("overlap(step=3) >= 1%", "has no scope 'step' here, only rank, stage"),
    ],
)
def test_a_scope_that_matches_nothing_is_an_error(text: str, message: str) -> None:
    with pytest.raises(PerfgateError) as caught:
        judged(text)
    assert message in str(caught.value)
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
    gap = Absent(name="time", labels=labels(kernel="mul"), why="never launched", fix="launch it")
    analysis = Analysis(kind="nsys", subject="x", metrics=MetricSet(metrics=(metric,), absent=(gap,)), views={})
    named, other = judge_artifact(analysis, [parse_limit("time <= 1us", kinds=BUILT_IN_KINDS)])
    assert named.sentence.startswith(f'time(kernel="{kernel}") is 5 µs')
    assert (other.outcome, other.next) == (Outcome.NOT_MEASURED, ("launch it",))
    assert "time(kernel=mul)" in other.sentence
    assert other.sentence.endswith(": never launched")


def test_a_metric_of_the_test_s_own_is_proposed_by_its_name() -> None:
    own = Metric(name="loss", value=0.5, dimension=Dimension.PLAIN, better=Better.LOWER)
    others = Metric(name="lost", value=0.5, dimension=Dimension.PLAIN)
    taken = measured(1e6, metrics=MetricSet(metrics=(own, others)))
    (verdict,) = judge(taken, [limit("metric(losss) <= 1")], baseline=None, context=CONTEXT).verdicts
    assert verdict.next == ("did you mean 'loss'?",)


@pytest.mark.parametrize(("timer", "steps"), [("host", 1), ("read", 0)])
def test_no_capture_adds_a_figure_to_what_a_file_stated(timer: str, steps: int) -> None:
    taken = measured(1e6, identity=Identity(device=HOST.key, timer=timer))
    (verdict,) = judge(taken, [limit("overlap >= 80%")], baseline=None, context=CONTEXT).verdicts
    assert len(verdict.next) == steps


@pytest.mark.parametrize(("kind", "states"), [("nsys", True), ("kineto", False)])
def test_only_an_nsys_export_takes_its_work_on_the_command_line(kind: str, *, states: bool) -> None:
    analysis = Analysis(subject="x", kind=kind, metrics=MetricSet(), views={})
    (verdict,) = judge_artifact(analysis, [parse_limit("tflops >= 1 TFLOPS", kinds=by_name())])
    assert ("--set" in verdict.next[0]) is states


def test_a_limit_that_is_missed_beside_busy_programs_names_them() -> None:
    for others, tail in ((1.5, "; other programs used 1.5 processors meanwhile"), (0.2, "")):
        busy = measured(1e6, processes=tuple(samples(1e6 * by, others=others) for by in (0.999, 1.0, 1.001)))
        (late,) = judge(busy, [parse_limit("time <= 500us", kinds=by_name())], baseline=None, context=CONTEXT).verdicts
        assert (late.outcome, late.sentence) == (Outcome.BROKEN, f"the whole interval misses the limit{tail}")
        count = of_value(5, name="count", opcode="HMMA")
        exact = verdict(limits=[limit("count(HMMA) == 4")], metrics=count, processes=busy.processes)
        assert exact.sentence == "misses the limit", "programs change no count"
