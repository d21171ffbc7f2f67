"""A reason that stood there before explains nothing: accepting says so at once, not the next run in CI."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.app.accept import Request, check_decisions
from pytest_perfgate.core.gate.acceptance import Change, Signature, decide
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.limit import Outcome
from tests.reports import case

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
