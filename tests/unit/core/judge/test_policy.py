from __future__ import annotations

import pytest

from pytest_perfgate.core.judge.policy import CHOICES, CI, LOCAL, RULE, RULES, effect, exit_code, parse_policy
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Choice, Effect, Mode, Outcome, Policy
from pytest_perfgate.model.verdict import CaseReport, SuiteNote, Verdict
from tests.unit.core.judge.bench import KEY, limit

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
    kept = (Outcome.PASSED, P)
    assert exit_code([]) == 0
    assert exit_code([report(kept)]) == 0
    assert exit_code([report((Outcome.UNDECIDED, W), (Outcome.UNBASELINED, W))]) == 0
    assert exit_code([report(kept, undecided)]) == 3
    assert exit_code([report(undecided), report(invalid)]) == 4
    assert exit_code([report(undecided), report(invalid), report(regressed, kept)]) == 1


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
