"""Tests of core/judge/acceptance."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import fmean, stdev

import pytest

from pytest_perfgate.core.judge.acceptance import (
    Change,
    decide,
    mark_slower_successors,
    noise,
    refuse_unconfirmed,
    refuse_unneeded,
)
from pytest_perfgate.core.judge.accepted_line import Signature
from pytest_perfgate.core.judge.context import surroundings
from pytest_perfgate.core.judge.samples import scatter_of
from pytest_perfgate.core.limits.merge import explicit_selection, matching, named
from pytest_perfgate.core.render.block import acceptance_lines
from pytest_perfgate.core.render.exports import acceptance_json
from pytest_perfgate.model.measurement import HistoryEntry, Identity, commit_name, short_commit
from pytest_perfgate.model.plan import CaseKey, Outcome
from tests import reports
from tests.reports import baseline, case
from tests.unit.core.judge.bench import limit, timed

BACKWARD_KEY = CaseKey(nodeid="tests/a/test_k.py::test_gemm[4096-bf16]", name="bwd")


def entries(*times: float) -> list[HistoryEntry]:
    return [HistoryEntry(key=BACKWARD_KEY, device="d", time=t, when="") for t in times]


@pytest.mark.parametrize(
    ("times", "expected", "count"),
    [
        ((), 0.0, 0),
        ((1e6,), 0.0, 1),
        ((1e6, 1.02e6, 1e6), 0.0140, 3),
        ((9e6, 9.1e6, 1e6, 1.02e6, 1e6), 0.0140, 3),
        ((1e6, 1e6, 5e6), 0.0, 0),
        ((float("nan"), 1e6, 0.0, 1e6, 1.0e6), 0.0, 2),
    ],
)
def test_only_runs_of_this_level_count(times: tuple[float, ...], expected: float, count: int) -> None:
    scatter, n = scatter_of(entries(*times), 1e6)
    assert (scatter, n) == (pytest.approx(expected, abs=1e-4), count)


@pytest.mark.parametrize(
    ("now", "then", "outcome", "change"),
    [
        (1e6, None, Outcome.UNBASELINED, Change.NEW),
        (1e6, 1e6, Outcome.PASSED, Change.KEPT),
        (1.004e6, 1e6, Outcome.PASSED, Change.KEPT),
        (1.025e6, 1e6, Outcome.PASSED, Change.KEPT),
        (1.025e6, 1e6, Outcome.SUSPECT, Change.SLOWER),
        (1.1e6, 1e6, Outcome.UNDECIDED, Change.SLOWER),
        (0.9e6, 1e6, Outcome.UNDECIDED, Change.FASTER),
        (1.1e6, 1e6, Outcome.PASSED, Change.KEPT),
        (0.9e6, 1e6, Outcome.PASSED, Change.KEPT),
        (1.1e6, 1e6, Outcome.ACCEPTED, Change.SLOWER),
        (1.004e6, 1e6, Outcome.REGRESSED, Change.SLOWER),
    ],
)
def test_what_moved(now: float, then: float | None, outcome: Outcome, change: Change) -> None:
    report = case("test_a", now, then, outcome)
    decision = decide(report, report.baseline, (), Signature())
    assert decision.change is change
    assert decision.writes == (change is not Change.KEPT)


@pytest.mark.parametrize(
    ("now", "outcomes", "change"),
    [
        (1.9e6, (Outcome.MOVED,), Change.MOVED),
        (1.9e6, (Outcome.MOVED, Outcome.UNDECIDED), Change.MOVED),
        (1.9e6, (Outcome.MOVED, Outcome.REGRESSED), Change.SLOWER),
        (1.9e6, (Outcome.REGRESSED,), Change.SLOWER),
        (0.5e6, (Outcome.MOVED,), Change.FASTER),
    ],
)
def test_code_that_was_proved_unchanged_leaves_its_line(
    now: float, outcomes: tuple[Outcome, ...], change: Change
) -> None:
    report = case("test_a", now, 1e6)
    verdicts = tuple(replace(report.verdicts[0], outcome=outcome) for outcome in outcomes)
    decision = refuse_unconfirmed(
        decide(replace(report, verdicts=verdicts), report.baseline, (), Signature(why="any width"))
    )
    assert (decision.change, decision.writes) == (change, change is not Change.MOVED)
    assert ("the machine moved" in next(acceptance_lines([decision]))) is (change is Change.MOVED)


@pytest.mark.parametrize(
    ("name", "fields", "twin"),
    [
        ("test_one", {}, True),
        ("test_one", {"scatter": 0.5, "runs": 9}, False),
        ("test_one", {"detects": 3.0}, False),
        ("test_one", {"device": "another"}, False),
        ("test_one", {"identity": Identity(device="NVIDIA-H200", threads="9")}, False),
        ("test_softmax_backward", {}, False),
    ],
)
def test_another_name_is_no_clean_start(name: str, fields: dict, twin: bool) -> None:
    new = decide(case("test_uno", 1.9e6, None, Outcome.UNBASELINED), None, (), Signature())
    same = decide(case("test_same", 1e6, 1e6), baseline("test_same", 1e6), (), Signature())
    line = baseline(name, 1e6, **fields)
    assert (new.asks, same.asks) == (False, False)
    decision, other = mark_slower_successors([new, same], [line])
    assert (decision.predecessor, decision.asks, other) == (line if twin else None, twin, same)
    text = next(acceptance_lines([decision]))
    assert ("+90.0 % after tests/test_k.py::test_one, which is gone (1 ms)" in text) is twin
    assert acceptance_json([decision])[0]["twin"] == (str(line.key) if twin else "")


@pytest.mark.parametrize(("now", "asks"), [(1.02e6, False), (1.04e6, True), (0.5e6, False)])
def test_a_new_name_asks_only_beyond_its_limit(now: float, asks: bool) -> None:
    new = decide(case("test_uno", now, None, Outcome.UNBASELINED), None, (), Signature())
    assert mark_slower_successors([new], [baseline("test_one", 1e6)])[0].asks is asks


@pytest.mark.parametrize(("now", "asks"), [(1.5e6, False), (1.75e6, True)])
def test_a_new_name_asks_only_beyond_what_the_old_line_could_detect(now: float, asks: bool) -> None:
    new = decide(case("test_uno", now, None, Outcome.UNBASELINED), None, (), Signature())
    assert mark_slower_successors([new], [baseline("test_one", 1e6, detects=0.5)])[0].asks is asks


@pytest.mark.parametrize("now", [1.2e6, 0.8e6])
def test_what_was_accepted_from_a_report_did_not_move_any_more(now: float) -> None:
    report = case("test_a", now, 1e6, Outcome.REGRESSED if now > 1e6 else Outcome.IMPROVED)
    line = decide(report, report.baseline, (), Signature(why="exact rounding")).after
    assert decide(report, line, (), Signature()).change is Change.KEPT


def test_scatter_between_runs_is_no_movement() -> None:
    report = case("test_a", 1.05e6, 1e6)
    assert decide(report, baseline("test_a", 1e6, scatter=0.03), (), Signature()).change is Change.KEPT
    assert noise(baseline("test_a", 1e6, scatter=0.03), report.measurement.metrics.metrics[0]) > 0.06


def test_another_identity_is_another_measurement() -> None:
    before = baseline("test_a", 1e6, identity=Identity(device="NVIDIA-H200", threads="9"))
    assert decide(case("test_a", 1e6), before, (), Signature()).change is Change.OTHER


@pytest.mark.parametrize(
    "name",
    [
        "tests/a/test_k.py::test_gemm[4096-bf16]#bwd",
        "tests/a/test_k.py::test_gemm[4096-bf16]",
        "tests/a/test_k.py::test_gemm",
        "test_gemm[4096-bf16]#bwd",
        "test_gemm[4096-bf16]",
        "test_gemm",
        "tests/a/test_k.py",
        "tests/a",
        "tests/",
    ],
)
def test_names_of_a_case(name: str) -> None:
    assert named([name])(BACKWARD_KEY)
    assert explicit_selection([name])(BACKWARD_KEY) is ("gemm" in name), (
        "a file and a folder hold the case, and do not name it"
    )


@pytest.mark.parametrize(
    ("nodeid", "call", "name"),
    [
        (r"t/é.py::Té::test_a[\xfcn\xef-\u65e5::\U0001f600-x]", "", "t/é.py::Té::test_a[ünï-日::😀-x]"),
        (r"t.py::test_a[\xfc]", "überall", "test_a[ü]#überall"),
        ("t.py::test_a[ü]", "", "t.py::test_a[ü]"),
        ("t.py::test_a[p]", "fwd x/y [z]", "t.py::test_a[p]#fwd x/y [z]"),
    ],
)
def test_a_case_is_named_as_the_test_file_writes_it(nodeid: str, call: str, name: str) -> None:
    assert explicit_selection([name])(CaseKey(nodeid=nodeid, name=call))


@pytest.mark.parametrize(
    "name", ["", "gemm", "test_gem", "test_gemm[4096]", "test", "a/test_k.py", "tests/a/test_k.py::"]
)
def test_no_names_of_a_case(name: str) -> None:
    assert not named([name])(BACKWARD_KEY)


@pytest.mark.parametrize(
    ("expression", "selects"),
    [("gemm", True), ("GEMM and bf16", True), ("gemm and not bf16", False), ("copy or (gemm and 4096)", True), ("not (copy or gemm)", False)],
)  # fmt: skip
def test_expressions(expression: str, selects: bool) -> None:
    assert matching(expression)(BACKWARD_KEY) is selects


@pytest.mark.parametrize(
    ("expires", "end", "change"),
    [
        ("", "", Change.KEPT),
        ("", "2027-01-31", Change.KEPT),
        ("2026-05-31", "", Change.RENEWED),
        ("2026-06-01", "", Change.KEPT),
        ("2026-06-02", "", Change.KEPT),
        ("2026-06-02", "2026-06-02", Change.KEPT),
        ("2026-06-02", "2027-01-31", Change.RENEWED),
        ("2026-05-31", "2027-01-31", Change.RENEWED),
    ],
)
def test_an_acceptance_that_ran_out_is_accepted_anew(expires: str, end: str, change: Change) -> None:
    report = case("test_a", 1.001e6)
    before = baseline("test_a", 1e6, expires=expires, scatter=0.01, runs=4)
    decision = decide(report, before, (), Signature(when="2026-06-01", who="me", why="still", expires=end))
    assert decision.change is change
    assert decision.writes == (change is Change.RENEWED)
    if decision.after is not None:
        assert decision.after == replace(before, when="2026-06-01", who="me", why="still", expires=end)


@pytest.mark.parametrize(
    ("spread", "then", "detects"),
    [(0.029, None, None), (0.031, None, 0.031), (0.4, 2e6, 0.4), (0.4, 1e6, None)],
)
def test_a_run_that_saw_too_little_is_said(spread: float, then: float | None, detects: float | None) -> None:
    line = baseline("test_a", then) if then else None
    outcome = Outcome.IMPROVED if then == 2e6 else Outcome.PASSED
    decision = decide(case("test_a", 1e6, then, outcome, spread=spread), line, (), Signature())
    assert decision.detects == (pytest.approx(detects) if detects else None)
    lines = list(acceptance_lines([decision]))
    assert ("can detect " in lines[0]) is bool(acceptance_json([decision])[0]["warning"]) is (detects is not None)
    warning = "warning  1 of 1 case too noisy to detect a slowdown of the limit's size."
    assert [line.startswith(warning) for line in lines[2:]] == [True] * (detects is not None)


def test_beside_a_step_that_it_saw_nobody_asks_what_it_could_see() -> None:
    report = case("test_a", 3e6, 1e6, Outcome.REGRESSED, spread=0.2)
    decision = decide(report, baseline("test_a", 1e6), (), Signature())
    assert decision.detects is not None
    assert "can detect" not in next(acceptance_lines([decision]))


def test_without_a_limit_a_quarter_is_too_wide() -> None:
    for spread, detects in ((0.24, None), (0.26, pytest.approx(0.26))):
        report = replace(case("test_a", 1e6, spread=spread), verdicts=())
        assert decide(report, None, (), Signature()).detects == detects


def test_a_line_says_what_its_run_detects_until_one_detects_more() -> None:
    noisy = case("test_a", 1e6, spread=0.4)
    line = decide(noisy, None, (), Signature(why="first")).after
    assert line is not None
    assert line.detects == pytest.approx(0.4)
    again = decide(replace(noisy, baseline=line), line, (), Signature())
    assert (again.change, again.after) == (Change.KEPT, None), "as noisy as before"
    little = decide(case("test_a", 1e6, spread=0.37), line, (), Signature())
    assert little.change is Change.KEPT, "hardly better"
    better = decide(case("test_a", 1.001e6, spread=0.2), line, (), Signature(why="a new dependency"))
    assert (better.change, better.after and better.after.detects) == (Change.LESS_NOISY, pytest.approx(0.2))
    judged = case("test_a", 1.001e6, spread=0.2)
    inherits = replace(judged, baseline=line, verdicts=(replace(judged.verdicts[0], visible=line.detects),))
    assert decide(inherits, line, (), Signature()).change is Change.LESS_NOISY, "the line was blind, not this run"
    assert better.after
    assert better.after.why == "first", "a reason given for all cases is not one for a better estimate of the same time"
    sharp = decide(case("test_a", 1.001e6), line, (), Signature(why="quieter", named=True))
    assert sharp.change is Change.LESS_NOISY
    assert sharp.after is not None
    assert (sharp.after.time, sharp.after.detects, sharp.after.why) == (1.001e6, 0.0, "quieter")
    assert "less noisy" in next(acceptance_lines([sharp]))


def test_a_run_more_halves_what_a_noisy_one_may_be_off_by() -> None:
    before = baseline("test_a", 1e6, detects=3.0)
    added = decide(case("test_a", 1.001e6), before, (), Signature(), add=True)
    assert (added.change, added.after and added.after.detects) == (Change.ONE_MORE, pytest.approx(1.0))


def test_a_commit_keeps_its_mark_when_it_is_cut() -> None:
    commit = "0123456789abcdef" * 2
    for stated, expected in (
        (commit, "0123456789ab"),
        (commit_name(commit, dirty=True), "0123456789ab+dirty"),
        ("", ""),
    ):
        decision = decide(case("test_a", 1e6), None, (), Signature(commit=stated))
        assert decision.after is not None
        assert decision.after.commit == expected
    assert short_commit("0123456789+dirty", 7) == "0123456+dirty"
    assert (commit_name("", dirty=True), commit_name("ab", dirty=False)) == ("", "ab")


@pytest.mark.parametrize(
    ("text", "families", "change"),
    [
        ("time <= 1s", {}, Change.UNASKED),
        ("time <= 1s", {"tests/test_k.py::test_a": True}, Change.NEW),
        ("slowdown <= 3%", {}, Change.NEW),
        ("", {}, Change.NEW),
        ("", {"tests/test_k.py::test_a": True}, Change.NEW),
        ("", {"tests/test_k.py::test_a": False}, Change.UNASKED),
        ("slowdown <= 3%", {"tests/test_k.py::test_a": False}, Change.NEW),
    ],
    ids=["no slowdown", "a mean over the family", "a slowdown", "a record without limits", "in a mean of slowdowns alone",
         "in means of other figures alone", "a slowdown beside means of other figures"],
)  # fmt: skip
def test_a_new_line_that_no_limit_asks_for_is_not_written(text: str, families: dict[str, bool], change: Change) -> None:
    report = case("test_a[1]", 1e6, None, Outcome.UNBASELINED)
    verdicts = tuple(replace(v, limit=limit(text)) for v in report.verdicts) if text else ()
    decision = refuse_unneeded(decide(replace(report, verdicts=verdicts), None, (), Signature()), families)
    assert (decision.change, decision.writes) == (change, change is Change.NEW)
    existing = decide(report, baseline("test_a[1]", 1e6), (), Signature())
    assert refuse_unneeded(existing, {}) == existing, "a line that is there is prune's"


def test_one_limit_among_others_asks_for_a_line() -> None:
    report = case("test_a", 1e6, None, Outcome.UNBASELINED)
    other = replace(report.verdicts[0], limit=limit("time <= 1s"))
    for verdicts in ((*report.verdicts, other), (other, *report.verdicts)):
        assert (
            refuse_unneeded(decide(replace(report, verdicts=verdicts), None, (), Signature()), {}).change is Change.NEW
        )


@pytest.mark.parametrize(("why", "change"), [("TMA loads", Change.SLOWER), ("exact softmax", Change.KEPT)])
def test_a_line_that_the_change_made_slower_asks_for_a_reason_though_it_detects_no_difference(
    why: str, change: Change
) -> None:
    report = reports.case("test_a", 1.5e6, 1e6, Outcome.REGRESSED)
    noisy = replace(report.baseline, time=1.3e6, detects=0.5, why=why)
    assert decide(report, noisy, (), Signature(when="2026-06-01")).change is change


def test_one_run_more_is_the_mean_and_the_deviation_of_all() -> None:
    logs = [-0.01, 0.0, 0.01]
    before = reports.baseline("test_a", 1e6, scatter=stdev(logs), runs=3, expires="2999-01-01", who="then")
    report = reports.case("test_a", 1.01e6, 1e6)
    decision = decide(report, before, (), Signature(when="2026-06-01"), add=True)
    every = [*logs, math.log(1.01)]
    assert decision.change is Change.ONE_MORE
    assert decision.after.time == pytest.approx(1e6 * math.exp(fmean(every)))
    assert decision.after.scatter == pytest.approx(stdev(every))
    assert decision.after.runs == 4
    signature = (decision.after.when, decision.after.who, decision.after.why, decision.after.expires)
    assert signature == ("2026-05-02", "then", "TMA loads", "2999-01-01")
    assert decision.after.identity == report.measurement.identity
    signed = decide(report, before, (), Signature(who="now", why="again", expires="2999-02-02"), add=True).after
    assert (signed.who, signed.why, signed.expires, signed.when) == ("now", "again", "2999-02-02", "2026-05-02")
    other = replace(before, identity=Identity(device="NVIDIA-H200", threads="9"))
    assert decide(report, other, (), Signature(), add=True).change is Change.OTHER
    own = replace(before, identity=replace(report.measurement.identity))
    assert decide(report, own, (), Signature(), add=True).after.identity is own.identity
    assert decide(report, None, (), Signature(), add=True).change is Change.NEW


@pytest.mark.parametrize(
    ("line", "measured", "change"),
    [
        ("a1b2c3d4e5f6", "c0ffee", Change.SLOWER),
        ("a1b2c3d4e5f6", "a1b2c3d4e5f6" + "0" * 28, Change.ONE_MORE),
        ("a1b2c3d4e5f6", "a1b2c3d4e5f6+dirty", Change.SLOWER),
        ("a1b2c3d4e5f6+dirty", "a1b2c3d4e5f6+dirty", Change.SLOWER),
        ("", "", Change.SLOWER),
    ],
)
def test_only_a_run_of_the_same_code_is_added_where_the_time_moved(line: str, measured: str, change: Change) -> None:
    report = reports.case("test_a", 2e6, 1e6, Outcome.REGRESSED)
    before = reports.baseline("test_a", 1e6, commit=line)
    assert decide(report, before, (), Signature(commit=measured, why="busier"), add=True).change is change


def test_a_time_that_moved_is_added_if_only_accepted_lines_changed_since_its_line() -> None:
    report = reports.case("test_a", 2e6, 1e6, Outcome.REGRESSED)
    before = reports.baseline("test_a", 1e6, commit="a1b2c3d4e5")
    later = Signature(commit="f6", same_code=True, why="a slower runner")
    assert decide(report, before, (), later, add=True).after.runs == 2
    assert decide(report, before, (), later).change is Change.SLOWER
    dirty = replace(before, commit="a1b2c3d4e5+dirty")
    assert decide(report, dirty, (), later, add=True).change is Change.SLOWER
    stray = replace(later, untracked=("n.txt",))
    assert decide(report, before, (), stray, add=True).why == "n.txt is in no commit"
    many = replace(later, untracked=tuple("abcde"))
    assert decide(report, before, (), many, add=True).why == "a, b, c and 2 more are in no commit"
    at_its_commit = replace(stray, commit="a1b2c3d4e5", same_code=False)
    assert decide(report, before, (), at_its_commit, add=True).change is Change.SLOWER
    assert decide(reports.case("test_a", 1.001e6, 1e6), before, (), stray, add=True).after.runs == 2


@pytest.mark.parametrize(
    ("outcome", "time", "change"),
    [
        (Outcome.PASSED, 1.2e6, Change.ONE_MORE),
        (Outcome.MOVED, 1.2e6, Change.SLOWER),
        (Outcome.SUSPECT, 1.2e6, Change.SLOWER),
        (Outcome.MOVED, 1.029e6, Change.ONE_MORE),
        (Outcome.IMPROVED, 0.5e6, Change.ONE_MORE),
    ],
)
def test_without_a_reason_no_run_is_added_whose_time_would_fail_beside_the_line_before(
    outcome: Outcome, time: float, change: Change
) -> None:
    report = reports.case("test_a", time, 1e6, outcome)
    before = reports.baseline("test_a", 1e6, commit="a1b2c3d4e5")
    decision = decide(report, before, (), Signature(commit="a1b2c3d4e5"), add=True)
    assert (decision.change, decision.asks) == (change, change is Change.SLOWER)
    later = Signature(commit="f6", same_code=True, pages="table.md changed")
    text = "slower by more than its limit; table.md changed" if decision.asks else "table.md changed"
    assert decide(report, before, (), later, add=True).why == text


def test_a_slower_time_with_other_software_is_none_of_the_same_code() -> None:
    report = reports.case("test_a", 2e6, 1e6, Outcome.REGRESSED)
    signature = Signature(commit="a1b2c3d4e5", why="a slower runner")
    same = surroundings(report.measurement)
    then = replace(same, packages=(*same.packages, ("dep", "1.0")))
    before = reports.baseline("test_a", 1e6, commit="a1b2c3d4e5", surroundings=same)
    assert decide(report, before, (), signature, add=True).change is Change.ONE_MORE
    decision = decide(report, replace(before, surroundings=then), (), signature, add=True)
    assert (decision.change, decision.why) == (Change.SLOWER, "dep 1.0 -> none")
    refuse_unconfirmed = decide(
        reports.case("test_a", 1.001e6, 1e6), replace(before, surroundings=then), (), signature, add=True
    )
    assert refuse_unconfirmed.change is Change.ONE_MORE


def test_a_run_is_counted_once() -> None:
    report = reports.case("test_a", 1.01e6, 1e6)
    first, later = Signature(started="2026-06-01T10:00:00+00:00"), Signature(started="2026-06-01T11:00:00+00:00")
    before = reports.baseline("test_a", 1e6)
    once = decide(report, before, (), first, add=True).after
    assert (once.runs, once.counted) == (2, first.started)
    again = decide(report, once, (), first, add=True)
    assert (again.change, again.after) == (Change.COUNTED, None)
    assert first.started in again.why
    assert decide(report, once, (), later, add=True).after.runs == 3
    own = decide(report, decide(report, None, (), first).after, (), first, add=True)
    assert (own.change, own.why) == (Change.COUNTED, "the line was made from this time")
    slower = reports.case("test_a", 2e6, 1e6, Outcome.REGRESSED)
    other = decide(slower, replace(once, commit="a1b2c3d4e5"), (), replace(first, commit="c0ffee"), add=True)
    assert (other.change, other.why) == (Change.SLOWER, "its code may differ from that of a1b2c3d4e5")
    nameless = decide(slower, replace(once, commit=""), (), first, add=True)
    assert (nameless.change, nameless.why) == (Change.SLOWER, "its code may differ from that of the line")


@pytest.mark.parametrize("time", [0.0, -1.0, math.inf, math.nan])
def test_a_time_that_is_none_is_not_accepted(time: float) -> None:
    decision = decide(timed(time), None, (), Signature())
    assert (decision.change, decision.why) == (Change.UNTRUSTED, f"a time of {time} ns is impossible")
