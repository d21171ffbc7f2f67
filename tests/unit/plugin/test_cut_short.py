"""What the terminal says of a run that ended before its end, and what such a run still keeps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.model.children import Capture, CaseResult
from pytest_perfgate.model.limit import Outcome
from pytest_perfgate.model.plan import Case, CaseKey, Mode, Plan
from pytest_perfgate.plugin.ahead import judge_measured
from pytest_perfgate.plugin.cut_short import cut_short_lines
from tests.reports import case as report_of

NAMES = [f"tests/test_k.py::test_{at}" for at in range(8)]


def session(measured: int, of: int = 8, processes: int = 3, started: str = "/p", **fields: Any) -> Any:
    cases = {name: Case(nodeid=name, limits=(), plan=Plan(rounds=3)) for name in NAMES[:of]}
    reports = {}
    for name in NAMES[:measured]:
        report = report_of(name.partition("::")[2], 1e6)
        taken = replace(report.measurement, processes=report.measurement.processes[:processes])
        reports[name] = (replace(report, measurement=taken),)
    court = SimpleNamespace(tools=SimpleNamespace(convict=dict))
    given = {"measured_ahead": True, "resumable": False, "mode": Mode.FULL, "court": court} | fields
    config = SimpleNamespace(rootpath=Path("/p"), invocation_params=SimpleNamespace(dir=Path(started)))
    return SimpleNamespace(cases=cases, reports=reports, settings=SimpleNamespace(pytest=config), **given)


def test_what_is_left_is_named_and_can_be_measured_alone() -> None:
    assert cut_short_lines(session(6)) == [
        "cut short: 6 of 8 cases measured and kept",
        f"  not measured  {NAMES[6]}",
        f"  not measured  {NAMES[7]}",
        f"next  pytest --perfgate=full {NAMES[6]} {NAMES[7]}",
        "that measures the rest; the same command again measures everything",
    ]
    assert f"p/{NAMES[6]} p/{NAMES[7]}" in cut_short_lines(session(6, started="/"))[-2], "from where the user stands"


def test_many_are_counted_and_fewer_processes_are_said() -> None:
    assert cut_short_lines(session(2, processes=1)) == [
        "cut short: 2 of 8 cases measured and kept; 2 of them in fewer processes than asked for",
        *(f"  not measured  {name}" for name in NAMES[2:7]),
        "  not measured  1 more case",
        "next  the same command again: it measures everything anew",
    ]
    assert "fewer" not in cut_short_lines(session(2, processes=1, measured_ahead=False))[0]


def test_nothing_measured_is_nothing_kept_but_finished_rounds() -> None:
    assert cut_short_lines(session(0, of=1)) == [
        "cut short: 0 of 1 case measured, nothing is kept",
        "next  the same command again: it measures everything anew",
    ]
    assert cut_short_lines(session(0, of=1, resumable=True)) == [
        "cut short before any verdict: the finished rounds of both arms are kept",
        "next  the same command again: it goes on behind the rounds that were finished",
    ]
    assert cut_short_lines(session(0, of=0)) == []
    assert cut_short_lines(session(8)) == [], "pytest stopped, and everything was measured before"


def test_suspects_that_nobody_tried_to_the_end_are_counted() -> None:
    held = session(2, of=2, resumable=True)
    held.reports[NAMES[0]] = (report_of("test_0", 1.2e6, 1e6, Outcome.SUSPECT),)
    assert cut_short_lines(held) == [
        "cut short: 2 of 2 cases measured and kept; 1 suspect not tried to the end",
        "next  the same command again: it goes on behind the rounds that were finished",
    ]
    held.court.tools.convict = None
    assert cut_short_lines(held) == []


def test_an_interrupted_trial_of_suspects_leaves_what_was_measured() -> None:
    name = NAMES[0]
    result = CaseResult(case=Case(nodeid=name, limits=(), plan=Plan()), captures=((Capture.__new__(Capture),),))

    def interrupted(results: object) -> None:
        raise KeyboardInterrupt

    court = SimpleNamespace(judge_all=interrupted, judge_result=lambda result: (CaseKey(nodeid=name),), read_limits=id)
    held: Any = SimpleNamespace(court=court, reports={}, faults={}, died=set())
    with pytest.raises(KeyboardInterrupt):
        judge_measured(held, {name: result})
    assert held.reports == {name: (CaseKey(nodeid=name),)}
