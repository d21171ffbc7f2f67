"""Tests of core/judge/against_limit: figures that are absent, doubted or of another level."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.against_limit import judge_artifact
from pytest_perfgate.core.judge.against_limit import missing_siblings as lacking
from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.metrics import metrics_of
from pytest_perfgate.core.judge.readings import figures_of
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.metric_kinds import by_name, own_reading
from pytest_perfgate.model.device import Basis, Roof
from pytest_perfgate.model.errors import PerfgateError, codes
from pytest_perfgate.model.metric import Absent, Analysis, Interval, Metric, MetricSet, Problem, labels
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.values import Dimension, Work
from tests.unit.core.judge.bench import (
    CEILING,
    CONTEXT,
    GPU,
    HOST,
    KEY,
    KINDS,
    judged_time,
    limit,
    measured,
    outcome_of,
    samples,
    share,
    verdict,
)
from tests.unit.core.judge.paired_builds import decided_verdict, judged_arms

BUILT_IN_KINDS = by_name()


def test_what_there_is_no_sense_in_asking_for_is_invalid() -> None:
    silent = Absent(name="overlap", labels=labels(rank=1), why="no communication in the window", code="nsys-silent")
    overlap = Metric(name="overlap", value=0.9, dimension=Dimension.FRACTION, labels=labels(rank=0))
    analysis = Analysis(kind="nsys", subject="x", metrics=MetricSet(metrics=(overlap,), absent=(silent,)), views={})
    every, one = (
        parse_limit(text, kinds=BUILT_IN_KINDS) for text in ("overlap(rank=*) >= 80%", "overlap(rank=1) >= 80%")
    )
    assert [v.outcome for v in judge_artifact(analysis, [every])] == [Outcome.INVALID, Outcome.PASSED]
    (alone,) = judge_artifact(analysis, [one])
    assert alone.outcome is Outcome.INVALID
    assert alone.sentence == "overlap: no communication in the window  [nsys-silent]"
    assert alone.next == (codes()["nsys-silent"].fix,)


def test_a_metric_by_its_full_name_that_the_report_does_not_hold_is_not_measured() -> None:
    there = Metric(name="ncu", value=3.0, dimension=Dimension.PLAIN, labels=labels(kernel="k", metric="sm__a.sum"))
    analysis = Analysis(kind="ncu", subject="x", metrics=MetricSet(metrics=(there,)), views={})
    limits = [parse_limit(text, kinds=BUILT_IN_KINDS) for text in ("ncu(sm__a.sum) >= 3", "ncu(sm__b.sum) >= 3")]
    present, absent = judge_artifact(analysis, limits)
    assert (present.outcome, absent.outcome) == (Outcome.PASSED, Outcome.NOT_MEASURED)
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
        (counted(5, 6), Outcome.BROKEN, "it varies, and must always equal the limit"),
        (counted(6, 7), Outcome.BROKEN, "the whole interval misses the limit"),
        (counted(6), Outcome.BROKEN, "misses the limit"),
    ):
        result = decided_verdict(1e6, "count == 5", metrics=MetricSet(metrics=(metric,)))
        assert (result.outcome, result.sentence) == (outcome, sentence)


def test_the_bound_of_a_strict_limit_is_missed_and_does_not_vary() -> None:
    result = decided_verdict(1e6, "count < 5", metrics=MetricSet(metrics=(counted(5),)))
    assert (result.outcome, result.sentence) == (Outcome.BROKEN, "misses the limit")


def test_a_metric_that_no_kind_describes_is_not_measured() -> None:
    result = decided_verdict(1e6, "overlap >= 50%", context=replace(CONTEXT, kinds={}))
    assert result.outcome is Outcome.NOT_MEASURED
    assert "perfgate.metric('overlap'" in result.next[0]


@pytest.mark.parametrize(("ranks", "ending"), [(12, "8, 9"), (14, "6, 7 and 2 more")])
def test_many_scopes_are_cut_and_the_rest_is_counted(ranks: int, ending: str) -> None:
    every = [
        Metric(name="overlap", value=0.9, dimension=Dimension.FRACTION, labels=labels(rank=rank))
        for rank in range(ranks)
    ]
    analysis = Analysis(kind="nsys", subject="x", metrics=MetricSet(metrics=tuple(every)), views={})
    with pytest.raises(PerfgateError) as caught:
        judge_artifact(analysis, [limit("overlap(rank=99) >= 1%")])
    assert caught.value.fix.endswith(ending)
    assert caught.value.fix.count(",") == 11


def test_of_several_absences_the_one_that_was_asked_for_speaks() -> None:
    one, other = (Absent(name="idle", labels=labels(rank=rank), why=f"rank {rank} is dark") for rank in (0, 1))
    overlap = Metric(name="overlap", value=0.5, dimension=Dimension.FRACTION, labels=labels(rank=0))
    of_stage = Absent(name="overlap", labels=labels(stage="s"), why="no stage")
    analysis = Analysis(
        kind="nsys", subject="x", views={}, metrics=MetricSet(metrics=(overlap,), absent=(one, other, of_stage))
    )

    def sentence_of(text: str) -> str:
        return judge_artifact(analysis, [parse_limit(text, kinds=KINDS)])[0].sentence

    assert sentence_of("idle(rank=1) <= 5%") == "idle was not collected: rank 1 is dark"
    assert sentence_of("idle(rank=9) <= 5%") == "idle was not collected: rank 0 is dark"
    with pytest.raises(PerfgateError, match="rank"):
        sentence_of("overlap(rank=9) >= 5%")


def test_a_figure_without_a_reason_says_once_that_it_was_not_collected() -> None:
    metrics = MetricSet(absent=(Absent(name="idle", why="not collected", fix="collect it"),))
    analysis = Analysis(kind="nsys", subject="x", views={}, metrics=metrics)
    (verdict,) = judge_artifact(analysis, [parse_limit("idle <= 5%", kinds=KINDS)])
    assert (verdict.sentence, verdict.next) == ("idle was not collected", ("collect it",))


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
    result = judged_arms("count == 5", metrics=MetricSet(metrics=every))
    assert (result.outcome, result.metric.value) == (Outcome.BROKEN, 1.0)


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
    result = judged_trace(
        f"{name} >= 50%", Metric(name=name, value=value, dimension=Dimension.FRACTION, source=source, note="n")
    )
    assert result.outcome is outcome
    assert result.evidence == (("note", "n"),)
    assert ("more than the hardware can do" in result.sentence) is (outcome is Outcome.INVALID)


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
    ("count", "sentence"),
    [(1, "problem 0"), (2, "problem 0 (and 1 more problem)"), (3, "problem 0 (and 2 more problems)")],
)
def test_problems_are_counted_in_english(count: int, sentence: str) -> None:
    assert judged_trace("mfu >= 50%", problems=count).sentence == f"mfu >= 50%: {sentence}"


@pytest.mark.parametrize(
    ("part", "outcome"),
    [(1.04, Outcome.PASSED), (1.06, Outcome.UNDECIDED), (1.99, Outcome.UNDECIDED), (2.01, Outcome.INVALID)],
)
def test_a_ceiling_is_doubted_from_five_percent_beyond_it_on(part: float, outcome: Outcome) -> None:
    work = Work(flops=part * 1e9, bytes=1.0, dtype="bf16")
    assert judged_time("mfu_ceiling >= 50%", 1e6, work=work).outcome is outcome


GROUPS = (1.0, 1.001, 1.2, 1.201)


def test_groups_of_times_say_nothing_of_what_a_capture_counted() -> None:
    metrics = MetricSet(metrics=(share("overlap", 0.5, 0.6, 0.7),))
    result = verdict(1e6, [limit("overlap >= 60%")], shape=GROUPS, metrics=metrics)
    assert (result.outcome, result.next) == (Outcome.UNDECIDED, ())


def test_groups_of_times_say_nothing_of_the_variation_within_a_process() -> None:
    processes = tuple(samples(1e6 * one, spread=0.001 * at) for at, one in enumerate(GROUPS, 1))
    figures = {m.name: m for m in metrics_of(measured(1e6, processes=processes), None).metrics}
    bound = (figures["cv"].low + figures["cv"].high) / 2
    result = verdict(1e6, [limit(f"cv <= {bound:.6f}")], processes=processes)
    assert result.outcome is Outcome.UNDECIDED


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("metric(speed) >= 6 apples/s", Outcome.INVALID),
        ("metric(speed) >= 6 tokens/s", Outcome.PASSED),
        ("metric(speed) >= 7 Mtokens/s", Outcome.BROKEN),
        ("metric(speed) >= 6 /s", Outcome.PASSED),
    ],
)
def test_a_rate_of_items_is_held_against_no_others(text: str, outcome: Outcome) -> None:
    figures = figures_of([(own_reading("speed", 6.5, unit="tokens/s", better="higher"),)])
    result = verdict(1e6, [limit(text)], metrics=figures)
    assert result.outcome is outcome
    assert ("is in tokens/s, its limit in apples/s" in result.sentence) is (outcome is Outcome.INVALID)


@pytest.mark.parametrize(
    ("unit", "of_limit", "outcome"),
    [
        ("rows", "tokens", Outcome.INVALID),
        ("items", "tokens", Outcome.PASSED),
        ("rows", "items", Outcome.PASSED),
        ("rows", "rows", Outcome.PASSED),
    ],
)
def test_items_of_a_work_are_held_against_no_others(unit: str, of_limit: str, outcome: Outcome) -> None:
    result = verdict(1e6, [limit(f"throughput >= 1 {of_limit}/s")], work=Work(items=5.0, unit=unit))
    assert result.outcome is outcome
    metric = Metric(name="throughput", value=9.0, dimension=Dimension.RATE, note=f"in {unit}/s; as stated")
    analysis = Analysis(kind="cubin", subject="x", metrics=MetricSet(metrics=(metric,)), views={})
    (of_a_file,) = judge_artifact(analysis, [limit(f"throughput >= 1 {of_limit}/s")])
    assert of_a_file.outcome is outcome


def test_a_rate_that_does_not_say_what_it_counts_is_held_against_any() -> None:
    metric = Metric(name="throughput", value=9.0, dimension=Dimension.RATE)
    analysis = Analysis(kind="cubin", subject="x", metrics=MetricSet(metrics=(metric,)), views={})
    assert judge_artifact(analysis, [limit("throughput >= 1 tokens/s")])[0].outcome is Outcome.PASSED


def test_what_nobody_collected_names_its_source() -> None:
    (result,) = judge(measured(1e6), [limit("overlap >= 60%")], baseline=None, context=CONTEXT).verdicts
    assert result.next == ("add capture='torch' or capture='nsys' to the marker",)
    gap = MetricSet(absent=(Absent(name="overlap", why="one rank alone"),))
    result = verdict(1e6, [limit("overlap >= 60%")], metrics=gap)
    assert (result.sentence, result.next) == (
        "overlap: one rank alone",
        ("add capture='torch' or capture='nsys' to the marker",),
    )
    counter = verdict(1e6, [replace(limit("ncu(lts) <= 5"), labels=(("metric", "lts"),))])
    assert counter.sentence == "ncu: this test does not measure ncu", "no report lacks it: there is none"
    assert verdict(1e6, [limit("peak_memory <= 1MB")]).next == (), "no capture takes what is of a timed call"
    gap = MetricSet(absent=(Absent(name="overlap", fix="collect it"),))
    assert verdict(1e6, [limit("overlap >= 60%")], metrics=gap).sentence == "overlap: not collected"
    untimed = verdict(1e6, [limit("time <= 1ms")], processes=())
    assert not any("add capture" in step for step in untimed.next), "time is no capture"


def test_every_number_between_two_bounds_equals_one() -> None:
    counted = Metric(name="count", value=5.0, dimension=Dimension.COUNT, interval=Interval(low=4.0, high=5.0))
    for interval, expected in ((counted.interval, Outcome.BROKEN), (Interval(low=5.0, high=5.0), Outcome.PASSED)):
        metrics = MetricSet(metrics=(replace(counted, interval=interval),))
        assert outcome_of(1e6, [limit("count == 5")], metrics=metrics) is expected


def test_only_a_measured_ceiling_may_be_passed() -> None:
    metrics = MetricSet(metrics=(share("mfu", 1.06, 1.06, 1.06),))
    for device, expected in ((GPU, Outcome.PASSED), (HOST, Outcome.UNDECIDED)):
        assert outcome_of(1e6, [limit("mfu >= 50%")], processes=(), device=device, metrics=metrics) is expected


def test_a_part_of_a_call_may_be_above_the_peak_of_the_whole() -> None:
    part = replace(share("sol", 1.2, 1.2, 1.2), labels=(("part", "gemm"),))
    assert judge(measured(1e6, device=GPU, metrics=MetricSet(metrics=(part,))), [], baseline=None, context=CONTEXT).problems == ()  # fmt: skip


def test_what_lacks_beside_a_figure_is_of_the_same_level() -> None:
    whole, of_rank = share("overlap", 0.5, 0.5, 0.5), replace(share("overlap", 0.5, 0.5, 0.5), labels=labels(rank=0))
    gaps = tuple(Absent(name="overlap", why="", labels=one) for one in ((), labels(rank=1), labels(stage="fwd")))
    metrics = MetricSet(absent=gaps)
    assert lacking("overlap", (), [whole], metrics) == ()
    assert lacking("overlap", (), [of_rank], metrics) == gaps[1:2]
    assert lacking("overlap", labels(rank=0), [of_rank], metrics) == ()


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
    problem = problem_of("overlap(rank=0, stage=two) >= 5%", ranks)
    assert "there are: 0, 1, one, two" in problem


def test_a_problem_without_advice_of_its_own_gives_that_of_its_code() -> None:
    wrong = Problem(code="limit-syntax", what="it does not read")
    analysis = Analysis(kind="nsys", subject="x", metrics=MetricSet(), views={}, problems=(wrong,))
    assert judge_artifact(analysis, [limit("overlap >= 5%")])[0].next == (codes()["limit-syntax"].fix,)


def test_an_instruction_is_asked_for_by_counts_that_name_one() -> None:
    metrics = MetricSet(metrics=tuple(replace(share("count", 1, 1, 1), dimension=Dimension.COUNT, labels=(("opcode", op), ("kernel", "k"))) for op in ("HMMA", "FFMA")))  # fmt: skip
    result = verdict(1e6, [limit("count(kernel=other) >= 1")], metrics=metrics)
    assert "no opcode" not in result.sentence
    assert "opcode" in verdict(1e6, [limit("count(HMNA) >= 1")], metrics=metrics).sentence


PLAIN_CONTEXT = JudgeContext(kinds=KINDS)


def test_only_a_gpu_has_a_physical_peak() -> None:
    roof = Roof(basis=Basis.CLOCK, compute=(("bf16", 1e9),), bandwidth=1e9)
    for kind, code in (("gpu", "above-peak"), ("host", "")):
        device = replace(HOST, kind=kind, roofs=(roof, CEILING))
        report = judge(
            measured(1e6, device=device, work=Work(flops=1e9, dtype="bf16")), (), baseline=None, context=PLAIN_CONTEXT
        )
        assert [problem.code for problem in report.problems] == [code] * bool(code)
