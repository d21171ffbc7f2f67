"""A reason that stood there before explains nothing: accepting says so at once, not the next run in CI."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.app.accept import Request, check_decisions, decisions
from pytest_perfgate.core.judge.acceptance import Change, decide
from pytest_perfgate.core.judge.accepted_line import Signature
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Baseline, Identity
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.verdict import Arms
from tests.reports import DEVICE, case, run

TODAY = "2026-05-02"  # the day of the line in tests.reports, as "TMA loads" is its reason


@pytest.mark.parametrize(
    ("why", "when", "refused"),
    [("TMA loads", TODAY, True), ("more of them", TODAY, False), ("TMA loads", "2026-05-03", False)],
)
def test_the_same_words_on_the_same_day_are_refused(why: str, when: str, *, refused: bool) -> None:
    signature = Signature(why=why, when=when)
    report = case("test_a", 2e6, 1e6, Outcome.REGRESSED)
    found = decide(report, report.baseline, (), signature)
    assert found.change is Change.SLOWER
    if not refused:
        check_decisions([found], Request(signature=signature))
        return
    mine = replace(report, baseline=replace(report.baseline, local=True))
    check_decisions([decide(mine, mine.baseline, (), signature)], Request(signature=signature))
    with pytest.raises(PerfgateError, match="stands there from an acceptance of today") as said:
        check_decisions([found], Request(signature=signature))
    assert said.value.mend == "say what is new in this change"


def test_of_many_cases_the_first_are_named_and_the_others_counted() -> None:
    signature = Signature()
    found = [decide(one, one.baseline, (), signature) for one in (case(f"test_{n}", 2e6, 1e6) for n in range(5))]
    with pytest.raises(PerfgateError, match=r"5 cases are slower: .*test_0, .*test_1, .*test_2 and 2 more"):
        check_decisions(found, Request())


def test_a_faster_time_in_the_place_of_an_acceptance_that_has_ended_is_refused_without_a_reason() -> None:
    report = case("test_a", 0.8e6, 1e6)
    before = replace(report.baseline, expires="2026-05-01")
    found = decide(report, before, (), Signature(when=TODAY))
    with pytest.raises(PerfgateError, match="1 case is faster than what was accepted for a while, which has ended"):
        check_decisions([found], Request())


class Accepted:
    """A store in which lines of before lie."""

    def __init__(self, *lines: Baseline) -> None:
        self._lines = {str(line.key): line for line in lines}

    def read(self, _device: str, _path: str, _revision: str = "") -> dict[str, Baseline]:
        return self._lines

    def read_all(self, _device: str) -> dict[str, Baseline]:
        return self._lines


@pytest.mark.parametrize(
    ("line", "pinned", "beside", "refused"),
    [
        ("all", "3", True, True),
        (None, "3", True, True),
        ("3", "3", True, False),
        ("all", "all", True, False),
        ("all", "3", False, False),
    ],
    ids=["other runs use all", "new", "other runs are pinned too", "not pinned", "no revision"],
)
def test_what_both_arms_of_a_revision_were_pinned_for_is_no_accepted_time(
    line: str | None, pinned: str, *, beside: bool, refused: bool
) -> None:
    here = Identity(device=DEVICE.key, threads="2", affinity=pinned)
    report = case("test_a", 2e6, 1e6 if line else None, Outcome.REGRESSED)
    report = replace(report, measurement=replace(report.measurement, identity=here))
    report = replace(report, arms=Arms(base="c0ffee") if beside else None)
    then = () if line is None else (replace(report.baseline, identity=replace(here, affinity=line)),)
    request = Request(signature=Signature(why="three passes", when="2026-06-01"))
    found = decisions(run(report), request, Accepted(*then), lambda _case: ())
    assert [decision.change is Change.PINNED for decision in found] == [refused]
    assert found[0].writes is not refused
    if not refused:
        check_decisions(found, request)
        return
    with pytest.raises(PerfgateError, match=r"1 case measured on one core, beside a revision: .*test_a") as said:
        check_decisions(found, request)
    assert "pytest --perfgate=full" in said.value.mend
