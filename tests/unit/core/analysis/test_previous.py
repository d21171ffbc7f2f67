from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from pytest_perfgate.core.analysis.results import Previous, previous_of
from pytest_perfgate.model.measurement import Environment
from pytest_perfgate.model.metric import Problem
from pytest_perfgate.model.verdict import CaseReport, RunReport
from tests.reports import case, run

NOW = case("test_a", 1e6, 9e5)
KEY = NOW.key


def at(commit: str, day: int, *cases: CaseReport, dirty: bool = False) -> RunReport:
    return run(*cases, environment=Environment(commit=commit, dirty=dirty), started=f"2026-06-{day:02}T10:00:00+00:00")


REPORT = at("c0ffee1234567890", 9, NOW)


def found(*earlier: RunReport, report: RunReport = REPORT) -> Previous | None:
    return previous_of(report.cases, report, earlier).get(KEY)


def test_the_newest_earlier_run_of_another_commit() -> None:
    same = at("c0ffee1234567890", 8, case("test_a", 5e6))
    older = at("b2c3d4e5f6", 7, case("test_a", 2e6))
    oldest = at("aaaaaaaaaa", 6, case("test_a", 3e6))
    later = at("dddddddddd", 10, case("test_a", 4e6))
    before = found(later, REPORT, same, older, oldest)
    assert before is not None
    assert (before.commit, before.when, before.time) == ("b2c3d4e", "2026-06-07", None)
    assert before.metrics is not None
    assert before.metrics.find("time")[0].value == 2e6


def test_changes_that_were_not_committed_are_another_version() -> None:
    bare = at("c0ffee1234567890", 9, replace(NOW, baseline=None))
    before = found(at("c0ffee1234567890", 8, case("test_a", 2e6), dirty=True), report=bare)
    assert before is not None
    assert before.commit == "c0ffee1+dirty"
    older = at("b2c3d4e5f6", 7, case("test_a", 3e6))
    tried = at("b2c3d4e5f6", 8, case("test_a", 1e6), dirty=True)
    assert found(tried) == Previous(commit="a1b2c3d", when="2026-05-02", time=9e5)
    committed = found(tried, older)
    assert committed is not None
    assert committed.commit == "b2c3d4e", "what was tried before a commit is most often that commit"


THEN = case("test_a", 2e6)
BAD = Problem(code="bad-timing", what="the clock moved")


@pytest.mark.parametrize(
    "unlike",
    [
        case("test_b", 2e6),
        replace(THEN, measurement=None),
        replace(THEN, problems=(BAD,)),
        case("test_a", 2e6, problems=(BAD,)),
        replace(THEN, measurement=replace(THEN.measurement, identity=replace(THEN.measurement.identity, threads="9"))),
        replace(THEN, measurement=replace(THEN.measurement, metrics=type(THEN.measurement.metrics)())),
    ],
)
def test_only_what_was_measured_alike(unlike: CaseReport) -> None:
    accepted = Previous(commit="a1b2c3d", when="2026-05-02", time=9e5)
    assert found(at("b2c3d4e5f6", 8, unlike)) == accepted
    further = found(at("b2c3d4e5f6", 8, unlike), at("aaaaaaaaaa", 7, THEN))
    assert further is not None
    assert further.commit == "aaaaaaa"


def test_a_line_of_this_very_commit_is_no_previous_one() -> None:
    assert found() == Previous(commit="a1b2c3d", when="2026-05-02", time=9e5)
    for commit in ("c0ffee1", "c0ffee1234567890"):
        own = replace(NOW, baseline=replace(NOW.baseline, commit=commit))
        assert found(report=at("c0ffee1234567890", 9, own)) is None
    nameless = replace(NOW, baseline=replace(NOW.baseline, commit=""))
    assert found(report=at("c0ffee1234567890", 9, nameless)) == Previous(commit="", when="2026-05-02", time=9e5)
    assert found(report=at("c0ffee1234567890", 9, replace(NOW, baseline=None))) is None


def test_without_a_commit_no_run_is_known_to_be_another_version() -> None:
    bare = at("", 9, NOW)
    assert found(at("b2c3d4e5f6", 8, THEN), report=bare) == Previous(commit="a1b2c3d", when="2026-05-02", time=9e5)
    assert found(at("", 8, THEN)) == Previous(commit="a1b2c3d", when="2026-05-02", time=9e5)


def test_no_more_runs_are_read_than_needed() -> None:
    def runs() -> Iterator[RunReport]:
        yield at("b2c3d4e5f6", 8, THEN)
        raise AssertionError("one was enough")

    assert previous_of(REPORT.cases, REPORT, runs())[KEY].commit == "b2c3d4e"
