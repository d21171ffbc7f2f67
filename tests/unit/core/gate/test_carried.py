"""What people decided of a line outlives a sitting that decides nothing: its end, its reason, who gave it, and when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.acceptance import Change, Decision, decide
from pytest_perfgate.core.judge.accepted_line import Signature, reasoned
from pytest_perfgate.model.measurement import DIRTY, Baseline, Identity
from tests.reports import DEVICE, baseline, case

END, LATER, PASSED = "2027-01-31", "2028-01-31", "2026-05-31"
TODAY = Signature(who="me", when="2026-06-01", commit="c0ffee1", started="2026-06-01T10:00:00")
OTHER = Identity(device=DEVICE.key, threads="8")


def line(**fields) -> Baseline:
    return baseline("test_a", 1e6, **{"who": "then", "why": "slow until the rewrite", "expires": END} | fields)


def decided(time: float, before: Baseline, signature: Signature = TODAY, *, add: bool = False) -> Decision:
    return decide(replace(case("test_a", time, 1e6), baseline=before), before, (), signature, add=add)


def decision_of(after: Baseline | None) -> tuple[str, str, str, str]:
    assert after is not None
    return after.who, after.when, after.why, after.expires


STANDS = ("then", "2026-05-02", "slow until the rewrite", END)


@pytest.mark.parametrize(
    ("time", "before", "add", "change"),
    [
        (1.001e6, line(blind=0.4), False, Change.SHARPER),
        (1.001e6, line(processes=1), False, Change.SHARPER),
        (1.001e6, line(commit=f"a1b2c3d{DIRTY}"), False, Change.COMMITTED),
        (1.001e6, line(), True, Change.SITTING),
        (0.9e6, line(), False, Change.FASTER),
        (0.9e6, line(local=True, identity=OTHER), False, Change.OTHER),
    ],
    ids=["saw more", "more processes", "committed", "one more", "faster", "a local one, otherwise"],
)
def test_a_temporary_acceptance_ends_as_it_was_to(time: float, before: Baseline, add: bool, change: Change) -> None:
    found = decided(time, before, add=add)
    assert (found.change, found.asks) == (change, False)
    assert decision_of(found.after) == STANDS
    assert found.after is not None
    assert not reasoned(found.after, before), "an old reason is none of its own on another day"


def test_a_reason_that_is_given_takes_the_place_of_the_one_before_and_the_end_stays() -> None:
    why = replace(TODAY, why="quieter")
    for time, before, change in ((1e6, line(blind=0.4), Change.SHARPER), (0.9e6, line(), Change.FASTER)):
        found = decided(time, before, why)
        assert found.change is change
        assert decision_of(found.after) == ("me", "2026-06-01", "quieter", END)


def test_a_reason_without_an_end_stays_with_who_gave_it() -> None:
    assert decision_of(decided(1e6, line(blind=0.4, expires="")).after) == (*STANDS[:3], "")
    silent = decided(1e6, line(blind=0.4, why="")).after
    assert decision_of(silent) == (*STANDS[:2], "", END), "an end is a decision too"
    nobody = line(blind=0.4, expires="", why="")
    assert decision_of(decided(1e6, nobody).after) == ("me", "2026-06-01", "", "")
    assert decision_of(decided(1e6, nobody, Signature()).after) == ("then", "2026-05-02", "", "")


def test_a_faster_time_of_no_end_is_accepted_by_who_accepts_it() -> None:
    assert decision_of(decided(0.9e6, line(expires="")).after) == ("me", "2026-06-01", "", "")


def test_an_end_that_is_given_with_no_name_is_for_no_line_without_one() -> None:
    later = replace(TODAY, expires=LATER)
    for add, before in ((False, line(blind=0.4, expires="")), (True, line(expires=""))):
        assert decision_of(decided(1.001e6, before, later, add=add).after)[3] == ""


def test_another_end_asks_for_a_reason_also_of_a_faster_time() -> None:
    later = replace(TODAY, expires=LATER)
    found = decided(0.9e6, line(), later)
    assert (found.change, found.asks) == (Change.FASTER, True)
    assert decision_of(found.after) == ("me", "2026-06-01", "", LATER)
    assert not decided(0.9e6, line(expires=""), replace(later, named=True)).asks


def test_a_sitting_more_moves_no_end_without_a_reason() -> None:
    later = replace(TODAY, expires=LATER)
    found = decided(1.001e6, line(), later, add=True)
    assert (found.change, found.asks) == (Change.RENEWED, True)
    named = decided(1.001e6, line(expires=""), replace(later, named=True), add=True)
    assert (named.change, named.asks) == (Change.RENEWED, True)
    why = replace(later, why="the rewrite is late")
    for before in (line(), line(expires="")):
        added = decided(1.001e6, before, replace(why, named=True), add=True)
        assert added.change is Change.SITTING
        assert decision_of(added.after) == ("me", "2026-06-01", "the rewrite is late", LATER)
    at_same_commit = decided(1.2e6, line(commit="c0ffee1"), later, add=True)
    assert (at_same_commit.change, at_same_commit.asks) == (Change.SLOWER, True)


def test_what_follows_an_acceptance_that_has_ended_needs_a_reason() -> None:
    found = decided(0.9e6, line(expires=PASSED))
    assert (found.change, found.asks) == (Change.FASTER, True)
    assert decision_of(found.after) == ("me", "2026-06-01", "", "")
    local = decided(0.9e6, line(expires=PASSED, local=True, identity=OTHER))
    assert (local.change, local.asks) == (Change.OTHER, True)
    on_the_day = decided(0.9e6, line(expires="2026-06-01"))
    assert not on_the_day.asks
    slower = decided(1.5e6, line(), replace(TODAY, why="exact"))
    assert decision_of(slower.after) == ("me", "2026-06-01", "exact", ""), "a slower time is decided anew"


@pytest.mark.parametrize(
    ("commit", "measured", "kept"),
    [
        ("a1b2c3d+dirty", "c0ffee1234567890", "c0ffee123456"),
        ("a1b2c3d+dirty", "c0ffee1234567890+dirty", ""),
        ("a1b2c3d+dirty", "", ""),
        ("a1b2c3d", "c0ffee1234567890", ""),
        ("", "c0ffee1234567890", ""),
    ],
)
def test_a_line_of_no_commit_is_given_the_one_that_measures_the_same(commit: str, measured: str, kept: str) -> None:
    before = baseline("test_a", 1e6, commit=commit)
    signature = Signature(when="2026-06-01", who="me", why="", commit=measured)
    found = decide(case("test_a", 1.001e6), before, (), signature)
    assert found.change is (Change.COMMITTED if kept else Change.KEPT)
    assert found.after == (replace(before, commit=kept) if kept else None), "whose reason it was, and of when"
    bare = decide(case("test_a", 1.001e6), replace(before, why=""), (), signature).after
    assert bare == (replace(before, commit=kept, when="2026-06-01", who="me", why="") if kept else None)
    bulk = decide(case("test_a", 1.001e6), before, (), replace(signature, why="of other lines")).after
    assert bulk == (replace(before, commit=kept) if kept else None)
    added = decide(case("test_a", 1.001e6), before, (), signature, add=True).after
    assert added is not None
    assert added.commit == (kept or commit)
