from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.policy import (
    CHOICES,
    CI,
    LOCAL,
    RULE,
    RULES,
    by_commit,
    effect,
    exit_code,
    parse_policy,
    run_code,
    suspect_figures,
    suspects,
    verdicts_to_decide,
    with_base,
)
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import MetricSet
from pytest_perfgate.model.plan import Choice, Effect, Mode, Outcome, Policy
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.model.verdict import CaseReport, SuiteNote, Verdict
from tests.reports import case, run
from tests.unit.core.judge.bench import CONTEXT, KEY, accepted, limit, measured
from tests.unit.core.judge.figures import figure, metric
from tests.unit.core.judge.suites import key

P, W, F = Effect.PASS, Effect.WARN, Effect.FAIL
TABLE = {
    # outcome: on a laptop, in CI, exit code where it fails
    Outcome.PASSED: (P, P, 0),
    Outcome.IMPROVED: (W, W, 1),
    Outcome.ACCEPTED: (P, P, 0),
    Outcome.NOT_APPLICABLE: (P, P, 0),
    Outcome.MOVED: (W, W, 1),
    Outcome.SUSPECT: (W, W, 3),
    Outcome.UNSTABLE: (W, W, 3),
    Outcome.UNDECIDED: (W, W, 3),
    Outcome.UNBASELINED: (W, F, 4),
    Outcome.NOT_MEASURED: (W, F, 4),
    Outcome.INVALID: (F, F, 4),
    Outcome.REGRESSED: (F, F, 1),
    Outcome.BROKEN: (F, F, 1),
}


def report(*pairs) -> CaseReport:
    return CaseReport(
        key=KEY, verdicts=tuple(Verdict(limit=limit("slowdown <= 3%"), outcome=o, effect=e) for o, e in pairs)
    )


@pytest.mark.parametrize("outcome", Outcome)
def test_the_table_is_that_of_the_page(outcome: Outcome) -> None:
    local, ci, code = TABLE[outcome]
    assert effect(outcome, LOCAL) is local
    assert effect(outcome, CI) is ci
    assert RULE[outcome].exit == code
    assert [r.outcome for r in RULES] == list(RULE)
    assert set(RULE) == set(Outcome)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.outcome.name)
def test_a_policy_decides_what_is_its_own(rule) -> None:
    fails = Policy(**{key: Choice.FAIL for key in CHOICES})
    if rule.key:
        assert effect(rule.outcome, fails) is F
        assert rule.exit
    else:
        assert effect(rule.outcome, fails) is rule.effect
    assert exit_code([report((rule.outcome, F))]) == (rule.exit or 1)


def test_ignoring_an_improvement_passes() -> None:
    assert effect(Outcome.IMPROVED, parse_policy(["improved=ignore"], ci=True)) is P


def test_a_gate_that_is_off_is_counted_on_a_laptop_and_fails_in_ci() -> None:
    assert effect(Outcome.NOT_MEASURED, LOCAL, Mode.OFF) is P
    assert effect(Outcome.NOT_MEASURED, CI, Mode.OFF) is F
    assert effect(Outcome.BROKEN, LOCAL, Mode.OFF) is F


def test_exit_codes_in_order_of_weight() -> None:
    regressed, invalid, undecided = (Outcome.REGRESSED, F), (Outcome.INVALID, F), (Outcome.UNDECIDED, F)
    passed = (Outcome.PASSED, P)
    assert exit_code([]) == 0
    assert exit_code([report(passed)]) == 0
    assert exit_code([report((Outcome.UNDECIDED, W), (Outcome.UNBASELINED, W))]) == 0
    assert exit_code([report(passed, undecided)]) == 3
    assert exit_code([report(undecided), report(invalid)]) == 4
    assert exit_code([report(undecided), report(invalid), report(regressed, passed)]) == 1


@pytest.mark.parametrize(
    ("kind", "code"),
    [("geomean", 1), ("creep", 1), ("dropped", 4), ("unused", 4), ("unmeasured", 4), ("no merge base", 4)],
)
def test_a_note_that_fails_has_an_exit_code_too(kind: str, code: int) -> None:
    assert exit_code([], [SuiteNote(kind=kind, effect=F, text="")]) == code
    assert exit_code([], [SuiteNote(kind=kind, effect=W, text="")]) == 0


def test_policies_read_from_the_command_line_and_from_configuration() -> None:
    assert parse_policy([], ci=False) == LOCAL
    assert parse_policy({}, ci=True) == CI
    read = parse_policy(["missing = warn", "unused=ignore", "missing=record"], ci=True)
    assert (read.ci, read.missing, read.unused, read.moved) == (True, Choice.RECORD, Choice.IGNORE, Choice.WARN)
    assert parse_policy({"moved": "fail"}, ci=False).moved is Choice.FAIL
    assert LOCAL.records
    assert not CI.records


@pytest.mark.parametrize(
    ("pair", "what", "fix"),
    [
        ("missing", "'missing' is not of the form KEY=VALUE", "missing=warn"),
        ("mising=warn", "no policy 'mising'", "'missing'"),
        ("qqqq=warn", "no policy 'qqqq'", "the keys: improved, missing"),
        ("undecided=ignore", "'undecided' cannot be 'ignore'", "choose warn, fail"),
        ("improved=", "'improved' cannot be ''", "choose ignore, warn, fail"),
    ],
)
def test_a_policy_that_is_not_understood_is_an_error(pair: str, what: str, fix: str) -> None:
    with pytest.raises(PerfgateError) as caught:
        parse_policy([pair], ci=False, place="--perfgate-policy")
    assert what in caught.value.what
    assert fix in caught.value.fix
    assert caught.value.place == "--perfgate-policy"
    assert caught.value.exit == 2


def test_a_merge_request_without_lines_of_before_fails_by_default() -> None:
    assert parse_policy((), ci=True, request=True).no_base is Choice.FAIL
    assert parse_policy(["no_base=warn"], ci=True, request=True).no_base is Choice.WARN
    assert parse_policy((), ci=True).no_base is parse_policy((), ci=False, request=True).no_base is Choice.WARN


def test_a_policy_of_another_name_is_named_by_its_name_of_today() -> None:
    with pytest.raises(PerfgateError) as caught:
        parse_policy(["baseless=warn"], ci=True)
    assert (caught.value.code.name, caught.value.fix) == ("policy-unknown", "no_base=warn")


@pytest.mark.parametrize(
    ("outcome", "code", "status", "expected"),
    [
        (Outcome.PASSED, 0, 0, 0), (Outcome.PASSED, 0, 1, 1), (Outcome.REGRESSED, 1, 0, 1), (Outcome.REGRESSED, 1, 1, 1),
        (Outcome.INVALID, 4, 0, 4), (Outcome.INVALID, 4, 1, 4), (Outcome.REGRESSED, 1, 2, 130), (Outcome.PASSED, 0, 3, 14),
        (Outcome.PASSED, 0, 4, 2), (Outcome.PASSED, 0, 5, 4), (Outcome.INVALID, 4, 99, 1),
    ],
)  # fmt: skip
def test_a_run_ends_by_its_verdicts_unless_pytest_ended_otherwise(
    outcome: Outcome, code: int, status: int, expected: int
) -> None:
    report = run(case("test_a", 1e6, outcome=outcome))
    assert exit_code(report.cases) == code
    assert run_code(report, status) == expected


def verdict_with(outcome: Outcome, text: str = "slowdown <= 3%", value: float | None = None) -> Verdict:
    before = None if value is None else figure("registers", value)
    return Verdict(limit=limit(text), outcome=outcome, effect=W, figure=before)


@pytest.mark.parametrize("outcome", Outcome)
def test_two_builds_decide_what_an_accepted_time_did_not_clear(outcome: Outcome) -> None:
    open_ = {
        Outcome.SUSPECT, Outcome.REGRESSED, Outcome.UNDECIDED, Outcome.UNSTABLE, Outcome.IMPROVED,
    }  # fmt: skip
    report = CaseReport(key=KEY, verdicts=(verdict_with(outcome),), baseline=accepted(1e6))
    for ci in (False, True):
        assert bool(verdicts_to_decide(report, ci=ci)) is (outcome in open_)


@pytest.mark.parametrize(("ci", "line", "asks"), [(True, False, True), (True, True, False), (False, False, False)])
def test_in_ci_two_builds_decide_a_case_without_a_line(*, ci: bool, line: bool, asks: bool) -> None:
    report = CaseReport(
        key=KEY, verdicts=(verdict_with(Outcome.UNBASELINED),), baseline=accepted(1e6) if line else None
    )
    assert bool(verdicts_to_decide(report, ci=ci)) is asks


@pytest.mark.parametrize(
    ("text", "outcome", "value", "asks"),
    [
        ("change(registers) <= 0", Outcome.SUSPECT, 128, True),
        ("change(registers) <= 0", Outcome.UNDECIDED, 128, True),
        ("change(registers) <= 0", Outcome.REGRESSED, 128, False),
        ("change(registers) <= 0", Outcome.UNDECIDED, None, False),
        ("registers <= 128", Outcome.UNDECIDED, 128, False),
        ("slowdown <= -3%", Outcome.UNDECIDED, None, False),
        ("slowdown <= 0%", Outcome.UNDECIDED, None, True),
        ("time <= 1s", Outcome.UNDECIDED, None, False),
    ],
)
def test_two_builds_decide_slowdowns_and_measured_figures(
    text: str, outcome: Outcome, value: float | None, *, asks: bool
) -> None:
    """An improvement that is demanded is of the accepted time, and a count needs no second build."""
    report = CaseReport(key=KEY, verdicts=(verdict_with(outcome, text, value),), baseline=accepted(1e6))
    assert bool(verdicts_to_decide(report, ci=True)) is asks


@pytest.mark.parametrize("outcome", Outcome)
def test_what_was_found_slower_is_a_suspect(outcome: Outcome) -> None:
    slower = outcome in {Outcome.SUSPECT, Outcome.REGRESSED}
    assert suspects([verdict_with(outcome)]) == ((verdict_with(outcome),) if slower else ())
    assert suspects([verdict_with(outcome, "slowdown <= -3%"), verdict_with(outcome, "time <= 1s")]) == ()


@pytest.mark.parametrize(
    ("text", "outcome", "value", "sends"),
    [
        ("change(registers) <= 0", Outcome.SUSPECT, 128, True),
        ("change(registers) <= 0", Outcome.UNDECIDED, 128, False),
        ("change(registers) <= 0", Outcome.SUSPECT, None, False),
        ("registers <= 128", Outcome.SUSPECT, 128, False),
        ("slowdown <= 3%", Outcome.SUSPECT, None, False),
    ],
)
def test_a_figure_that_got_worse_is_compared_with_the_commit_of_its_line(
    text: str, outcome: Outcome, value: float | None, *, sends: bool
) -> None:
    verdict = verdict_with(outcome, text, value)
    assert suspect_figures([verdict]) == ((verdict,) if sends else ())


@pytest.mark.parametrize(
    ("open_", "expected"),
    [
        ({"line": ["a"], "base": ["b"], "old": ["c"]}, {"base": ["a", "b"], "old": ["c"]}),
        ({"line": ["a"], "old": ["c"]}, {"line": ["a"], "old": ["c"]}),
        ({"base": ["b"]}, {"base": ["b"]}),
    ],
)
def test_commits_with_the_code_of_the_base_are_one_build(open_: Any, expected: Any) -> None:
    """Where nothing is held against the base, a commit of a line stays what it is."""

    def alike(commit: str, base: str) -> bool:
        assert commit != base, "no build is made twice"
        return (commit, base) == ("line", "base")

    assert with_base(open_, "base", alike) == expected


@pytest.mark.parametrize(
    ("registers", "line", "commit"),
    [
        (130, {}, "a1b2c3d4e5"),
        (130, {"commit": "a1b2c3d4e5+dirty"}, "base"),
        (130, {"runs": 0}, "base"),
        (128, {"time": 5e5}, "base"),
        (128, {"time": 5e5, "runs": 2}, "a1b2c3d4e5"),
    ],
)
def test_what_is_worse_than_its_line_is_compared_with_the_commit_of_the_line(
    registers: int, line: dict[str, Any], commit: str
) -> None:
    """A figure was worse since it was accepted, in whichever change; a time that rests on one run may only scatter."""
    figures = (figure("registers", 128),)
    metrics = MetricSet(metrics=(metric("registers", registers),))
    report = judge(
        measured(1e6, metrics=metrics),
        [limit("slowdown <= 5%"), limit("change(registers) <= 0")],
        baseline=accepted(**{"time": 1e6, "figures": figures} | line),
        context=replace(CONTEXT, mode=Mode.FULL, paired_available=True),
    )
    assert by_commit({KEY: report}, ci=True, base="base") == {commit: [KEY]}


def test_a_case_of_an_open_mean_is_measured_in_two_builds_though_its_own_limit_is_kept() -> None:
    report = judge(measured(1e6), [limit("slowdown <= 50%")], baseline=accepted(1e6), context=CONTEXT)
    assert by_commit({KEY: report}, ci=True, base="base") == {}
    assert by_commit({KEY: report}, {KEY}, ci=True, base="base") == {"base": [KEY]}


LINE = {"commit": "line", "runs": 2}


@pytest.mark.parametrize(
    ("outcome", "line", "base", "commit"),
    [
        (Outcome.UNBASELINED, None, "base", "base"),
        (Outcome.UNBASELINED, None, "", None),
        (Outcome.SUSPECT, LINE, "base", "line"),
        (Outcome.SUSPECT, LINE, "", "line"),
        (Outcome.IMPROVED, LINE, "base", "base"),
        (Outcome.IMPROVED, LINE, "", "line"),
        (Outcome.IMPROVED, {"commit": "line+dirty"}, "", ""),
    ],
)
def test_an_open_case_is_compared_with_the_base_or_with_its_line(
    outcome: Outcome, line: dict[str, Any] | None, base: str, commit: str | None
) -> None:
    """A line without a commit that can be built asks for one; without line and base there is nothing to compare."""
    baseline = None if line is None else accepted(1e6, **line)
    report = CaseReport(key=KEY, verdicts=(verdict_with(outcome),), baseline=baseline)
    assert by_commit({KEY: report}, ci=True, base=base) == ({} if commit is None else {commit: [KEY]})


def test_the_largest_excess_over_a_limit_is_compared_first() -> None:
    def slower(*excesses: tuple[float, str]) -> CaseReport:
        verdicts = [
            replace(verdict_with(Outcome.SUSPECT, text), metric=metric("slowdown", value, Dimension.FRACTION))
            for value, text in excesses
        ]
        return CaseReport(key=KEY, verdicts=tuple(verdicts), baseline=accepted(1e6))

    reports = {
        key("faster"): CaseReport(key=KEY, verdicts=(verdict_with(Outcome.IMPROVED),), baseline=accepted(1e6)),
        key("near its limit"): slower((0.55, "slowdown <= 50%")),
        key("far beyond one"): slower((0.2, "slowdown <= 3%"), (0.2, "slowdown <= 19%")),
    }
    assert by_commit(reports, ci=True, base="base") == {"base": list(reversed(reports))}
