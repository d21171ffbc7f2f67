from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.acceptance import Change, decide, scanty
from pytest_perfgate.core.judge.accepted_line import Signature
from pytest_perfgate.core.render.logs import acceptance_json, acceptance_lines
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.verdict import CaseReport
from tests.reports import case, run


@pytest.mark.parametrize(
    ("mode", "complete", "count", "said"),
    [
        ("quick", True, 1, "from a quick run: one process, that of the tests"),
        ("full", False, 2, "from an interrupted run: 2 processes"),
        ("full", False, 3, ""),
        ("full", True, 2, ""),
    ],
)
def test_a_line_says_that_it_stands_on_few_processes(mode: str, complete: bool, count: int, said: str) -> None:
    report = case("test_a", 1e6, None, Outcome.UNBASELINED)
    assert report.measurement is not None
    few = replace(report.measurement, processes=report.measurement.processes[:1] * count)
    report = replace(report, measurement=few)
    found = scanty(decide(report, None, (), Signature()), replace(run(report), mode=mode, complete=complete))
    assert found.scanty == said
    assert found.after is not None
    assert found.after.processes == (count if said else 0)
    assert acceptance_json([found])[0]["warning"].startswith(said)
    warned = [f"warning  2 of 3 cases, {said}; a full run sees more, and takes its place"] if said else []
    assert list(acceptance_lines([found, replace(found, scanty=""), found]))[4:] == warned


def test_a_call_has_as_many_processes_as_any_other_of_its_run_or_too_few() -> None:
    found = case("test_a", 1e6, None, Outcome.UNBASELINED)
    assert found.measurement is not None

    def of(count: int) -> CaseReport:
        return replace(found, measurement=replace(found.measurement, processes=found.measurement.processes[:1] * count))

    cut = replace(run(of(7), of(9), of(3), replace(found, measurement=None)), complete=False)
    assert scanty(decide(of(7), None, (), Signature()), cut).scanty == "from an interrupted run: 7 processes"
    assert scanty(decide(of(9), None, (), Signature()), cut).scanty == ""


def test_a_whole_run_takes_the_place_of_a_quick_one() -> None:
    report = case("test_a", 1e6, 1e6, Outcome.PASSED)
    assert report.baseline is not None
    assert report.measurement is not None
    quick = replace(report.baseline, processes=1)
    found = decide(report, quick, (), Signature())
    assert (found.change, found.after.processes if found.after else None) == (Change.SHARPER, 0)
    assert decide(report, replace(quick, processes=99), (), Signature()).change is Change.KEPT
