"""What accepting writes because somebody was told to ask for it."""

from __future__ import annotations

import pytest

from pytest_perfgate.core.judge.acceptance import Change, decide
from pytest_perfgate.core.judge.accepted_line import Signature
from pytest_perfgate.model.plan import Outcome
from tests.reports import baseline, case


@pytest.mark.parametrize("time", [1e6, 1.4e6, 0.6e6])
def test_a_line_that_the_gate_refused_to_compare_with_is_written_anew_whatever_its_time(time: float) -> None:
    """Its versions, for one: the command that the verdict names must do what it says."""
    report = case("test_a", time, 1e6, Outcome.UNBASELINED)
    before = report.baseline
    signature = Signature(when="2026-06-01", why="driver 600")
    found = decide(report, before, (), signature)
    assert (found.change, found.asks, found.writes) == (Change.OTHER, True, True)
    assert decide(report, found.after, (), signature).change is Change.KEPT, "that is the answer"
    silent = decide(report, before, (), Signature(when="2026-05-02", why="TMA loads")).after
    assert decide(report, silent, (), signature).change is Change.OTHER, "a line without a reason of its own is none"


@pytest.mark.parametrize("named", [True, False])
def test_an_end_is_given_to_a_line_without_one_where_the_case_is_named(named: bool) -> None:
    signature = Signature(when="2026-06-01", why="until 600", expires="2027-01-31", named=named)
    found = decide(case("test_a", 1e6, 1e6), baseline("test_a", 1e6), (), signature)
    assert found.change is (Change.RENEWED if named else Change.KEPT)
    assert not named or (found.after is not None and found.after.expires == "2027-01-31")
