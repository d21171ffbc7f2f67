"""Tests of core/judge/family."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.family import (
    _metric,
    _reach,
    effective_member,
    family_limits,
    family_notes,
    geometric_mean,
)
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.policy import CI
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.stats.inference import Prior, predict
from pytest_perfgate.model.measurement import Baseline, Reference
from pytest_perfgate.model.metric import Interval, Metric, MetricSet, Problem, labels
from pytest_perfgate.model.plan import Case, CaseKey, Decision, Limit, Plan
from pytest_perfgate.model.values import Better, Dimension
from pytest_perfgate.model.verdict import CaseReport, Paired
from tests.unit.core.judge.bench import CONTEXT, GPU, KINDS, SHAPE, accepted, limit, measured, share
from tests.unit.core.judge.suites import FAMILY as MATRIX_FAMILY
from tests.unit.core.judge.suites import PLAIN_CONTEXT

FAMILY = "t.py::test_f"
MEAN = limit("geomean(slowdown) <= 5%")


def report(time: float | None, param: str = "1", **fields) -> CaseReport:
    key = CaseKey(nodeid=f"{MATRIX_FAMILY}[{param}]")
    if time is None:
        return CaseReport(key=key, verdicts=())
    line = accepted(1e6, key=key, **fields)
    return judge(measured(time, key=key, shape=(1.0, 1.0, 1.0)), [], baseline=line, context=PLAIN_CONTEXT)


def note(text: str, *times: float | None):
    members = [report(time, str(at)) for at, time in enumerate(times)]
    (result,) = family_notes(members, {MATRIX_FAMILY: [limit(text)]}, PLAIN_CONTEXT)
    return result


def test_a_mean_says_what_it_is_of() -> None:
    assert "+10.0 % [+10.0, +10.0] over 2 cases" in note("geomean(slowdown) <= 50%", 1.21e6, 1e6).text
    assert "1.1 ms [1.1 ms, 1.1 ms] over 2 cases" in note("geomean(time) <= 2ms", 1.21e6, 1e6).text
    assert "slowdown of 1 of 3 cases was not measured" in note("geomean(slowdown) <= 1%", 1e6, None, 1e6).text
    assert note("geomean(slowdown) <= 0%", 1.05e6).text.startswith("suspect: ")
    assert note("geomean(slowdown) <= -1%", 1.05e6).text.startswith("broken: ")
    assert note("geomean(slowdown) <= 1%", 3e6).text.startswith("regressed: ")


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("geomean(loss) <= 1.5", "passed: "),
        ("geomean(loss) <= 1.4", "broken: "),
        ("worst(loss) <= 1.9", "broken: "),
        ("worst(loss) <= 2 MB", "invalid: "),
    ],
)
def test_a_mean_of_figures_of_the_tests_own(text: str, outcome: str) -> None:
    losses = [Metric(name="loss", value=value, dimension=Dimension.PLAIN, better=Better.LOWER) for value in (1.0, 2.0)]
    keys = [CaseKey(nodeid=f"{MATRIX_FAMILY}[{at}]") for at in range(2)]
    members = [
        judge(measured(1e6, key=key, metrics=MetricSet(metrics=(one,))), [], baseline=None, context=PLAIN_CONTEXT)
        for key, one in zip(keys, losses)
    ]
    demand = parse_limit(text, kinds=KINDS, own=str)
    (result,) = family_notes(members, {MATRIX_FAMILY: [demand]}, PLAIN_CONTEXT)
    assert result.text.startswith(outcome)


def test_a_figure_that_one_call_of_each_test_has_is_named_with_its_call() -> None:
    loss = MetricSet(metrics=(Metric(name="loss", value=1.0, dimension=Dimension.PLAIN),))
    members = [
        judge(measured(1e6, key=CaseKey(nodeid=f"{MATRIX_FAMILY}[{at}]", name=name), metrics=metrics), [], baseline=None,
              context=PLAIN_CONTEXT)
        for at in range(2) for name, metrics in (("ours", loss), ("plain", MetricSet()))
    ]  # fmt: skip

    def told(text: str) -> str:
        demand = parse_limit(text, kinds=KINDS, own=lambda name: name if name == "loss" else "")
        (result,) = family_notes(members, {MATRIX_FAMILY: [demand]}, PLAIN_CONTEXT)
        return result.text

    assert told("worst(loss) <= 2").endswith(
        "was not measured: it is a figure of the call ours: worst(loss, case=ours)"
    )
    for text in ("worst(loss, case=ours) <= 2", "worst(loss(case=ours)) <= 2", "geomean(loss, case=o*) <= 2"):
        assert told(text).startswith("passed: ")


@pytest.mark.parametrize(
    ("runs", "text", "outcome"),
    [
        ((0, 0), "geomean(slowdown) <= 10%", "undecided: "),
        ((0, 1), "geomean(slowdown) <= 10%", "undecided: "),
        ((1, 1), "geomean(slowdown) <= 10%", "passed: "),
        ((0, 0), "geomean(time) <= 10ms", "passed: "),
    ],
)
def test_lines_that_came_with_the_change_clear_no_mean(runs: tuple[int, int], text: str, outcome: str) -> None:
    """A change accepted first times of its own slower code; a limit on each slowdown was UNDECIDED, and this PASSED."""
    members = [report(1e6, str(at), runs=count) for at, count in enumerate(runs)]
    (result,) = family_notes(members, {MATRIX_FAMILY: [limit(text)]}, PLAIN_CONTEXT)
    assert result.text.startswith(outcome)


def test_a_mean_against_lines_of_noisy_runs_is_not_known() -> None:
    def of(time: float, *detects: float) -> str:
        members = [report(time, str(at), detects=unknown) for at, unknown in enumerate(detects)]
        (result,) = family_notes(members, {MATRIX_FAMILY: [limit("geomean(slowdown) <= 10%")]}, PLAIN_CONTEXT)
        return result.text

    assert of(1e6, 1.07, 0.0).startswith("undecided: ")
    assert "too noisy to detect less than 43.9 %" in of(1e6, 1.07, 0.0)
    assert of(0.69e6, 1.07, 0.0).startswith("passed: ")  # faster by more than that
    assert of(0.7e6, 1.07, 0.0).startswith("undecided: ")
    assert of(1e6, 0.09, 0.09).startswith("passed: ")  # as well known as the limit asks
    assert "a whole run may be off by 107 % here, so this is not confirmed; --perfgate-" in of(2e6, 1.07, 1.07)
    assert of(2e6, 1.07, 1.07).startswith("suspect: ")  # slower by less than the lines may be off by
    assert of(2e6, 1.07, 0.0).startswith("regressed: ")
    assert of(2.1e6, 1.07, 1.07).startswith("regressed: ")


def test_a_mean_against_lines_as_noisy_as_its_limit_still_keeps_it() -> None:
    for time, detects, outcome in ((1e6, 0.5, "passed"), (1e6, 1.0, "undecided"), (0.5e6, 1.0, "undecided")):
        members = [report(time, str(at), detects=detects) for at in range(2)]
        (result,) = family_notes(members, {MATRIX_FAMILY: [limit("geomean(slowdown) <= 50%")]}, PLAIN_CONTEXT)
        assert result.text.startswith(outcome)


def ratio(low: float, middle: float, high: float) -> Metric:
    return share("mfu", low, middle, high)


def test_the_mean_of_one_is_that_one_and_errors_average_out() -> None:
    one = geometric_mean([ratio(0.4, 0.5, 0.8)], change=False)
    assert (one.value, one.low, one.high) == pytest.approx((0.5, 0.4, 0.8))
    two = geometric_mean([ratio(0.25, 0.5, 1.0), ratio(0.125, 0.125, 0.125)], change=False)
    assert (two.value, two.low, two.high) == pytest.approx((0.25, 0.25 / 2**0.5, 0.25 * 2**0.5))


def test_a_mean_is_of_one_plain_figure_a_case() -> None:
    plain = Metric(name="overlap", value=0.5, dimension=Dimension.FRACTION)
    for metrics, expected in (
        ((plain,), plain),
        ((replace(plain, labels=labels(rank=0)),), None),
        ((plain,) * 2, None),
    ):
        case = CaseReport(
            key=report(1e6).key, verdicts=(), measurement=measured(1e6, metrics=MetricSet(metrics=metrics))
        )
        assert _metric(case, "overlap") == expected


def test_the_least_known_member_says_what_chance_reaches() -> None:
    settled, fresh = report(1e6, runs=30), report(1e6)
    one = predict(Prior.CPU, scatter=Prior.CPU, runs=1, gates=1).reach
    assert _reach([settled, fresh], PLAIN_CONTEXT) == _reach([replace(fresh, baseline=None)], PLAIN_CONTEXT) == one
    assert _reach([settled], PLAIN_CONTEXT) < one
    locked = replace(fresh, measurement=measured(1e6, device=GPU, clocks="lock"))
    assert _reach([locked], PLAIN_CONTEXT) == predict(Prior.GPU_LOCKED, scatter=Prior.GPU_LOCKED, runs=1, gates=1).reach


HELD = limit("geomean(slowdown) <= 20%")


def mean(*members: CaseReport) -> str:
    (result,) = family_notes(members, {MATRIX_FAMILY: [HELD]}, PLAIN_CONTEXT)
    return result.text.partition(f"{MATRIX_FAMILY}: ")[0] + result.text.partition("20%: ")[2]


def test_a_mean_is_not_held_against_lines_that_the_case_itself_would_not_be_held_against() -> None:
    other = replace(accepted(1e6).identity, timer="cupti")
    apart = "measured differently, not compared: timer cupti -> host"
    for time in (1e6, 1.5e6):
        other_report = report(time, identity=other)
        assert (
            mean(report(time, "2"), other_report) == f"not measured: slowdown of 1 of 2 cases was not measured: {apart}"
        )
    (of_time,) = family_notes([other_report], {MATRIX_FAMILY: [limit("geomean(time) <= 2ms")]}, PLAIN_CONTEXT)
    assert of_time.text.startswith("passed: ")


def test_a_mean_is_not_held_against_an_acceptance_that_ran_out_unless_the_change_renews_it() -> None:
    def of(**fields) -> CaseReport:
        context = replace(PLAIN_CONTEXT, today="2026-05-10", **fields)
        line = accepted(1e6, key=report(1e6).key, expires="2026-05-01")
        return judge(measured(1e6, key=line.key), [HELD], baseline=line, context=context)

    assert mean(of()).endswith('was not measured: the acceptance expired on 2026-05-01: "TMA loads"')
    again = accepted(1e6, why="no compiler yet", when="2026-05-09", expires="2026-06-01")
    assert mean(of(edited=again)).startswith("accepted: +0.0 %")
    for stale in (replace(again, why=""), replace(again, expires="2026-05-09"), replace(again, time=2e6)):
        assert mean(of(edited=stale)).startswith("not measured: ")


def test_a_mean_takes_a_slower_time_that_the_change_accepts_with_a_reason() -> None:
    def of(time: float, scatter=(1.0, 1.0, 1.0), **fields) -> CaseReport:
        edited = accepted(3e6, why="exact softmax", when="2026-05-09", **fields)
        line = accepted(1e6, key=report(1e6).key)
        return judge(
            measured(time, key=line.key, shape=scatter),
            [HELD],
            baseline=line,
            context=replace(PLAIN_CONTEXT, edited=edited),
        )

    assert mean(of(3e6)).startswith("accepted: +0.0 % [+0.0, +0.0]")
    assert mean(of(3.3e6, scatter=SHAPE)).startswith("accepted: +10.0 % [+9.7, +10.3]")
    assert mean(of(3e6)).endswith("over 1 case; 1 of 1 case against what this change accepts")
    assert mean(of(4e6)).startswith("regressed: +300.0 %"), "what was measured does not agree"
    assert mean(of(2e6)).startswith("regressed: +100.0 %")
    assert mean(of(3e6, expires="2026-05-01")).startswith("accepted: "), "no day is known"
    bare = judge(
        measured(3e6), [HELD], baseline=accepted(1e6), context=replace(PLAIN_CONTEXT, edited=accepted(3e6, why=""))
    )
    assert bare.accepts is None


def test_what_a_change_accepts_and_nothing_measured_agrees_with_makes_no_mean_better() -> None:
    """A line that says 15 % slower of a case that is as fast as before would take 13 % off the mean."""

    def of(time: float, param: str, accepts: float) -> CaseReport:
        line = accepted(1e6, key=report(1e6, param).key)
        context = replace(PLAIN_CONTEXT, edited=accepted(accepts, why="exact softmax", when="2026-05-09"))
        return judge(measured(time, key=line.key), [HELD], baseline=line, context=context)

    assert mean(of(1e6, "1", 1.15e6)).startswith("passed: +0.0 %")
    assert mean(of(1.1e6, "1", 1.15e6), report(1.1e6, "2")).startswith("passed: +10.0 %")
    assert mean(of(1.25e6, "1", 1.25e6), report(1e6, "2")).startswith("accepted: +0.0 %")


def test_at_exactly_what_a_mean_allows_the_line_of_before_counts_and_that_of_the_change_agrees() -> None:
    case = report(1.5e6)
    line, exact = accepted(1e6, key=case.key), measured(1.5e6, shape=(1.0, 1.0, 1.0), key=case.key)
    none, half = limit("geomean(slowdown) <= 0%"), limit("geomean(slowdown) <= 50%")
    same, past = replace(line, time=1.5e6), replace(line, time=1e6)

    def taken(bound: Limit, accepts: Baseline, before: float) -> bool:
        judged = judge(exact, [bound], baseline=replace(line, time=before), context=PLAIN_CONTEXT)
        return effective_member(replace(judged, accepts=accepts), bound).baseline == accepts

    assert taken(none, same, 1e6)
    assert taken(half, past, 0.9e6)
    assert not taken(half, same, 1e6)
    assert not taken(half, replace(past, time=0.99e6), 0.9e6)
    assert not taken(replace(none, bound=-0.1), same, 1e6)
    brought = measured(1e6, processes=(), metrics=MetricSet(metrics=(replace(ratio(1, 1, 1), name="time"),)))
    untimed = CaseReport(key=case.key, verdicts=(), measurement=brought, accepts=same, unheld="it has run out")
    assert effective_member(untimed, none) is untimed


def test_a_mean_under_two_arms_asks_no_accepted_run() -> None:
    def of(shift: float, **fields) -> CaseReport:
        interval = Interval(low=shift - 0.01, high=shift + 0.01)
        rounds = {"differences": (shift,) * 5, "shift": shift, "interval": interval, "base": "HEAD~1"}
        arms = Paired(decision=Decision.UNDECIDED, revision=True, **rounds, **fields)
        line = accepted(5e6, key=report(1e6).key, detects=5.0, expires="2026-05-01")
        context = replace(PLAIN_CONTEXT, today="2026-05-10")
        return judge(measured(1e6, key=line.key), [HELD], baseline=line, context=context, paired=arms)

    assert mean(of(0.0)) == "passed: +0.0 % [-1.0, +1.0] over 1 case"
    assert mean(of(0.5)).startswith("regressed: +50.0 %")
    assert mean(of(0.5, same=True)).startswith("moved: ")
    assert mean(of(0.5, same=True), of(0.5)).startswith("moved: "), "one that ran the same code moved with the others"
    assert "edits kernel.py" in mean(of(0.0, bare=True, edited=("kernel.py",)))
    rounds_for_new_tests = Paired(decision=Decision.UNDECIDED, revision=True, base="HEAD~1")
    line = accepted(1e6, key=report(1e6).key)
    by_line = judge(
        measured(1.22e6, key=line.key), [HELD], baseline=line, context=PLAIN_CONTEXT, paired=rounds_for_new_tests
    )
    assert "a whole run may be off by 23.6 % here" in mean(by_line), "without a round the accepted time counts"


def test_a_first_run_has_no_accepted_time_to_take_the_mean_of() -> None:
    new = judge(measured(1e6, key=report(1e6, "1").key), [HELD], baseline=None, context=PLAIN_CONTEXT)
    assert mean(new, report(1e6, "2")).endswith("no accepted time yet for 1 of 2 cases; next: perfgate accept --new")
    assert mean(new, report(None)).endswith("slowdown of 2 of 2 cases was not measured"), "it lacks more than a line"
    untimed = judge(measured(1e6, processes=(), key=new.key), [HELD], baseline=accepted(1e6), context=PLAIN_CONTEXT)
    assert mean(untimed).endswith("slowdown of 1 of 1 case was not measured"), "it has a line, of figures"
    (note,) = family_notes([new], {MATRIX_FAMILY: [HELD]}, replace(PLAIN_CONTEXT, policy=CI))
    assert note.text.endswith("for 1 of 1 case; next: perfgate accept --from RECORD --new")


def test_why_a_case_is_missing_is_told_of_slowdowns_only_and_of_the_first_that_knows() -> None:
    silent, apart = report(None), replace(report(1e6), unheld="another timer")
    assert mean(silent, apart) == "not measured: slowdown of 2 of 2 cases was not measured: another timer"
    untimed = replace(apart, measurement=None)
    (of_time,) = family_notes([untimed], {MATRIX_FAMILY: [limit("geomean(time) <= 2ms")]}, PLAIN_CONTEXT)
    assert of_time.text.endswith("time of 1 of 1 case was not measured")


def family_report(time: float, param: str = "1", name: str = "", **fields) -> CaseReport:
    key = CaseKey(nodeid=f"t.py::test_mm[{param}]", name=name)
    line = accepted(1e6, key=key, **fields)
    return judge(measured(time, key=key, shape=(1.0,) * 3), [], baseline=line, context=CONTEXT)


def mean_note(text: str, *members: CaseReport, family: str = "t.py::test_mm") -> str:
    texts = [note.text for note in family_notes(members, {family: [limit(text)]}, CONTEXT)]
    return texts[0].partition(":")[0] if texts else ""


def test_a_mean_takes_the_named_calls_of_its_family_too() -> None:
    (note,) = family_notes([family_report(1e6), family_report(1e6, name="bwd")], {"t.py::test_mm": [limit("geomean(time) <= 2ms")]}, CONTEXT)  # fmt: skip
    assert "over 2 cases" in note.text


def test_a_family_is_known_by_its_whole_name_and_by_that_of_its_function() -> None:
    for pattern, expected in (("t.py::test_*", True), ("test_m?", True), ("test_x*", False)):
        assert bool(mean_note(f"geomean(time, family={pattern}) <= 2ms", family_report(1e6))) is expected


def test_a_case_may_say_itself_of_which_family_it_is() -> None:
    bound = limit("geomean(time) <= 2ms")
    assert family_limits([Case(nodeid="t.py::test_a[1]", plan=Plan(), limits=(bound,))]) == {"t.py::test_a": (bound,)}
    named_so = Case(nodeid="t.py::test_a[1]", plan=Plan(), family="t.py::kernels", limits=(bound,))
    assert family_limits([named_so]) == {"t.py::kernels": (bound,)}


def test_a_case_that_is_not_to_be_trusted_is_in_no_mean() -> None:
    wrong = replace(family_report(1e6), problems=(Problem(code="foreign", what="process 77 used the device"),))
    assert mean_note("geomean(time) <= 2ms", wrong, family_report(1e6, "2")) == "not measured"


def test_a_mean_whose_interval_spans_its_limit_from_either_side_is_undecided() -> None:
    key = CaseKey(nodeid="t.py::test_mm[1]")
    measurement = measured(1e6, key=key, metrics=MetricSet(metrics=(share("overlap", 0.4, 0.5, 0.6),)))
    case = CaseReport(key=key, verdicts=(), measurement=measurement)
    for text in ("geomean(overlap) >= 50%", "geomean(overlap) <= 50%"):
        assert mean_note(text, case) == "undecided"
    assert mean_note("geomean(overlap) >= 30%", case) == mean_note("geomean(overlap) <= 70%", case) == "passed"
    assert mean_note("geomean(overlap) >= 70%", case) == mean_note("geomean(overlap) <= 30%", case) == "broken"


def test_lines_of_noisy_runs_are_no_matter_to_a_mean_of_times() -> None:
    assert mean_note("geomean(time) <= 2ms", family_report(1e6, detects=3.0)) == "passed"
    noisy = family_report(1e6, detects=3.0)
    shared = noisy.measurement.with_metrics(MetricSet(metrics=(share("overlap", 0.4, 0.5, 0.6),)))
    assert mean_note("geomean(overlap) <= 70%", replace(noisy, measurement=shared)) == "passed"


def faster(number: int, ratio: float, name: str = "ours") -> CaseReport:
    references = (Reference(over="eager", ours=(1e6,) * 3, theirs=(1e6 * ratio,) * 3),) if name != "eager" else ()
    key = CaseKey(nodeid=f"{FAMILY}[{number}]", name=name)
    return judge(measured(1e6 * number, key=key, references=references), [MEAN], baseline=None, context=CONTEXT)


@pytest.mark.parametrize(
    ("text", "outcome", "figure"),
    [
        ("geomean(speedup(over=eager)) >= 1.2x", "passed", "1.225x"),
        ("geomean(speedup(over=eager)) >= 1.3x", "broken", "1.225x"),
        ("worst(speedup(over=eager)) >= 0.9x", "passed", "1x"),
        ("worst(speedup(over=eager)) >= 1.2x", "broken", "1x"),
        ("worst(time) <= 2.1 ms", "passed", "at test_f[2]#ours"),
        ("worst(time) <= 1.5 ms", "broken", "at test_f[2]"),
        ("worst(time) <= 2 ms", "undecided", "at test_f[2]"),
        ("worst(mfu) >= 5%", "not measured", "mfu of 4 of 4 cases"),
        ("worst(time, case=eager) <= 2.5 ms", "passed", "at test_f[2]#eager, of 2 cases"),
        ("worst(time(case=our*)) <= 2.5 ms", "passed", "at test_f[2]#ours, of 2 cases"),
        ("geomean(speedup(case=ours, over=eager)) >= 1.2x", "passed", "over 2 cases"),
        ("worst(time, case=none) <= 2 ms", "not measured", "no case was measured"),
    ],
)
def test_a_family_by_its_mean_and_by_its_worst(text: str, outcome: str, figure: str) -> None:
    members = [faster(1, 1.5), faster(2, 1.0), faster(1, 1.5, "eager"), faster(2, 1.0, "eager")]
    (note,) = family_notes(members, {FAMILY: [limit(text)]}, CONTEXT)
    assert note.text.startswith(f"{outcome}: {FAMILY}")
    assert figure in note.text
