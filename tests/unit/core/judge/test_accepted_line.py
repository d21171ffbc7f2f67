"""Tests of core/judge/accepted_line."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pytest

from pytest_perfgate.core.judge.acceptance import Change, Proposal, decide
from pytest_perfgate.core.judge.accepted_line import (
    LIMIT,
    Signature,
    _days,
    anchored,
    drift,
    fixed_anchor,
)
from pytest_perfgate.core.render.block import acceptance_lines, decision_lines
from pytest_perfgate.core.render.logs import history_document
from pytest_perfgate.core.render.pictures import history_text, timeline
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.core.stats.change_points import change_points
from pytest_perfgate.model.measurement import DIRTY, Baseline, HistoryEntry, Identity
from pytest_perfgate.model.plan import ANCHOR, CaseKey, Outcome
from tests.drawings import flaws, texts
from tests.reports import DEVICE, baseline, case
from tests.unit.core.judge.bench import KEY, accepted

ANCHOR_KEY = CaseKey(nodeid="t.py::test_a")


def line(*times: float) -> list[HistoryEntry]:
    return [
        HistoryEntry(key=ANCHOR_KEY, device="host-x", time=t, when=f"2030-01-{at + 1:02}T00:00:00", commit=f"{at:08x}")
        for at, t in enumerate(times)
    ]


def test_ten_steps_of_one_percent_are_an_alarm_though_none_of_them_is() -> None:
    times = [1000 * 1.01**step for step in range(1, 11)]
    result = drift(line(*times), 1000.0, 0.03)
    assert result is not None
    assert result.largest == pytest.approx(0.01)
    assert result.alarms
    assert "the median of the newest 3 runs, against the anchor" in result.sentence
    assert result.change == pytest.approx(1.01**9 - 1)


def test_a_line_that_holds_says_nothing_and_one_bad_day_is_no_alarm() -> None:
    result = drift(line(1000, 1010, 990, 1500), 1000.0, 0.03)
    assert result is not None
    assert not result.alarms
    assert result.sentence == ""


def test_only_what_came_after_the_anchor_counts() -> None:
    entries = line(500, 500, 1000, 1000, 1001)
    result = drift(entries, 1000.0, 0.03, since="00000002")
    assert result is not None
    assert (result.steps, result.largest) == (2, pytest.approx(0.001))
    assert drift([], 1000.0, 0.03) is None
    assert drift(entries, 0.0, 0.03) is None


def test_the_history_says_the_change_point_and_the_anchor() -> None:
    entries = line(*[1000.0, 1002, 999, 1001, 1000, 1003, 1100, 1102, 1099, 1101, 1100, 1098])
    baseline = Baseline(key=ANCHOR_KEY, device="host-x", time=1000.0, commit="00000000")
    text = render_text(history_document([(ANCHOR_KEY, "host-x", entries, baseline)], overview=False))
    assert "1 change point: +9.9 % at 00000006" in text
    assert "new level" in text
    assert "new level" not in render_text(history_document([(ANCHOR_KEY, "host-x", entries[:3], None)], overview=False))
    assert "ANCHOR  +10.0 %" in text
    assert "[Time over 12 runs, 999 ns to 1.10" in text, "the heading above the picture names the case"


def test_the_picture_has_a_dot_a_run_and_a_level_a_segment() -> None:
    entries = line(*[10.0] * 8, *[12.0] * 8)
    changes = change_points([s.time for s in entries])
    acceptance = Baseline(key=ANCHOR_KEY, device="host-x", time=10.0, anchor=9.5)
    drawn = timeline("a <b>", entries, changes, acceptance)
    assert not flaws(drawn)
    assert drawn.svg.count("<circle") == 16
    assert drawn.svg.count("<polyline") == 2, "a level a segment"
    assert {"accepted 10 ns", "anchor 9.5 ns"} < set(texts(drawn.svg))
    assert drawn.bars[0].text == "▃▃▃▃▃▃▃▃████████  12 ns"
    assert "+20.0 % at 0000000<" in drawn.svg
    assert "2030-01-01" in drawn.svg
    late = timeline("a" * 200, entries, [replace(changes[0], index=15)], titled=True)
    assert not flaws(late)
    assert f"…{'a' * 90}" in texts(late.svg)[0]
    assert "+20.0 % at 0000000" in texts(late.svg)
    assert "a &lt;b&gt;" in drawn.svg
    assert "a <b>" not in texts(drawn.svg), "its caption has the name"
    assert history_text(entries, changes) == "1 change point: +20.0 % at 00000008"
    assert history_text(entries, ()) == "no change point; a step counts from its third run on"


def test_an_anchor_of_less_than_a_nanosecond() -> None:
    past = [HistoryEntry(key=KEY, device="d", time=0.6, when="")]
    assert drift(past, 0.5, 0.1).alarms
    assert drift(past, 0.0, 0.1) is None


END, LATER, PASSED = "2027-01-31", "2028-01-31", "2026-05-31"
TODAY = Signature(who="me", when="2026-06-01", commit="c0ffee1", started="2026-06-01T10:00:00")
OTHER = Identity(device=DEVICE.key, threads="8")


def line_with_end(**fields) -> Baseline:
    return baseline("test_a", 1e6, **{"who": "then", "why": "slow until the rewrite", "expires": END} | fields)


def decided(time: float, before: Baseline, signature: Signature = TODAY, *, add: bool = False) -> Proposal:
    report = case("test_a", time, 1e6, Outcome.UNDECIDED)
    return decide(replace(report, baseline=before), before, (), signature, add=add)


def decision_of(after: Baseline | None) -> tuple[str, str, str, str]:
    assert after is not None
    return after.who, after.when, after.why, after.expires


STANDS = ("then", "2026-05-02", "slow until the rewrite", END)


@pytest.mark.parametrize(
    ("time", "before", "add", "change"),
    [
        (1.001e6, line_with_end(detects=0.4), False, Change.LESS_NOISY),
        (1.001e6, line_with_end(processes=1), False, Change.LESS_NOISY),
        (1.001e6, line_with_end(commit=f"a1b2c3d{DIRTY}"), False, Change.COMMITTED),
        (1.001e6, line_with_end(), True, Change.ONE_MORE),
        (0.9e6, line_with_end(), False, Change.FASTER),
        (0.9e6, line_with_end(local=True, identity=OTHER), False, Change.OTHER),
    ],
    ids=["saw more", "more processes", "committed", "one more", "faster", "a local one, otherwise"],
)
def test_a_temporary_acceptance_ends_as_it_was_to(time: float, before: Baseline, add: bool, change: Change) -> None:
    decision = decided(time, before, add=add)
    assert (decision.change, decision.asks) == (change, False)
    assert decision_of(decision.after) == STANDS
    assert decision.after is not None
    assert not decision.after.explains(before), "an old reason is none of its own on another day"


def test_a_reason_that_is_given_takes_the_place_of_the_one_before_and_the_end_stays() -> None:
    why = replace(TODAY, why="quieter")
    for time, before, change, signature in (
        (1e6, line_with_end(detects=0.4), Change.LESS_NOISY, replace(why, named=True)),
        (0.9e6, line_with_end(), Change.FASTER, why),
    ):
        decision = decided(time, before, signature)
        assert decision.change is change
        assert decision_of(decision.after) == ("me", "2026-06-01", "quieter", END)


def test_a_reason_without_an_end_stays_with_who_gave_it() -> None:
    assert decision_of(decided(1e6, line_with_end(detects=0.4, expires="")).after) == (*STANDS[:3], "")
    silent = decided(1e6, line_with_end(detects=0.4, why="")).after
    assert decision_of(silent) == (*STANDS[:2], "", END), "an end is a decision too"
    nobody = line_with_end(detects=0.4, expires="", why="")
    assert decision_of(decided(1e6, nobody).after) == ("me", "2026-06-01", "", "")
    assert decision_of(decided(1e6, nobody, Signature()).after) == ("then", "2026-05-02", "", "")


def test_a_faster_time_of_no_end_is_accepted_by_who_accepts_it() -> None:
    assert decision_of(decided(0.9e6, line_with_end(expires="")).after) == ("me", "2026-06-01", "", "")


def test_an_end_that_is_given_with_no_name_is_for_no_line_without_one() -> None:
    later = replace(TODAY, expires=LATER)
    for add, before in ((False, line_with_end(detects=0.4, expires="")), (True, line_with_end(expires=""))):
        assert decision_of(decided(1.001e6, before, later, add=add).after)[3] == ""


def test_another_end_asks_for_a_reason_also_of_a_faster_time() -> None:
    later = replace(TODAY, expires=LATER)
    decision = decided(0.9e6, line_with_end(), later)
    assert (decision.change, decision.asks) == (Change.FASTER, True)
    assert decision_of(decision.after) == ("me", "2026-06-01", "", LATER)
    assert not decided(0.9e6, line_with_end(expires=""), replace(later, named=True)).asks


def test_a_run_more_moves_no_end_without_a_reason() -> None:
    later = replace(TODAY, expires=LATER)
    decision = decided(1.001e6, line_with_end(), later, add=True)
    assert (decision.change, decision.asks) == (Change.RENEWED, True)
    named = decided(1.001e6, line_with_end(expires=""), replace(later, named=True), add=True)
    assert (named.change, named.asks) == (Change.RENEWED, True)
    why = replace(later, why="the rewrite is late")
    for before in (line_with_end(), line_with_end(expires="")):
        added = decided(1.001e6, before, replace(why, named=True), add=True)
        assert added.change is Change.ONE_MORE
        assert decision_of(added.after) == ("me", "2026-06-01", "the rewrite is late", LATER)
    at_same_commit = decided(1.2e6, line_with_end(commit="c0ffee1"), later, add=True)
    assert (at_same_commit.change, at_same_commit.asks) == (Change.SLOWER, True)


def test_what_follows_an_acceptance_that_has_ended_needs_a_reason() -> None:
    decision = decided(0.9e6, line_with_end(expires=PASSED))
    assert (decision.change, decision.asks) == (Change.FASTER, True)
    assert decision_of(decision.after) == ("me", "2026-06-01", "", "")
    local = decided(0.9e6, line_with_end(expires=PASSED, local=True, identity=OTHER))
    assert (local.change, local.asks) == (Change.OTHER, True)
    on_the_day = decided(0.9e6, line_with_end(expires="2026-06-01"))
    assert not on_the_day.asks
    slower = decided(1.5e6, line_with_end(), replace(TODAY, why="exact"))
    assert decision_of(slower.after) == ("me", "2026-06-01", "exact", ""), "a slower time is decided anew"


@pytest.mark.parametrize(
    ("commit", "measured", "expected"),
    [
        ("a1b2c3d+dirty", "c0ffee1234567890", "c0ffee123456"),
        ("a1b2c3d+dirty", "c0ffee1234567890+dirty", ""),
        ("a1b2c3d+dirty", "", ""),
        ("a1b2c3d", "c0ffee1234567890", ""),
        ("", "c0ffee1234567890", ""),
    ],
)
def test_a_line_of_no_commit_is_given_the_one_that_measures_the_same(commit: str, measured: str, expected: str) -> None:
    before = baseline("test_a", 1e6, commit=commit)
    signature = Signature(when="2026-06-01", who="me", why="", commit=measured)
    decision = decide(case("test_a", 1.001e6), before, (), signature)
    assert decision.change is (Change.COMMITTED if expected else Change.KEPT)
    assert decision.after == (replace(before, commit=expected) if expected else None), (
        "whose reason it was, and of when"
    )
    bare = decide(case("test_a", 1.001e6), replace(before, why=""), (), signature).after
    assert bare == (replace(before, commit=expected, when="2026-06-01", who="me", why="") if expected else None)
    bulk = decide(case("test_a", 1.001e6), before, (), replace(signature, why="of other lines")).after
    assert bulk == (replace(before, commit=expected) if expected else None)
    added = decide(case("test_a", 1.001e6), before, (), signature, add=True).after
    assert added is not None
    assert added.commit == (expected or commit)


def entries_of(*times: float) -> list[HistoryEntry]:
    return [HistoryEntry(key=KEY, device="d", time=time, when="") for time in times]


def test_a_drift_of_exactly_what_an_anchor_allows_is_no_alarm() -> None:
    assert not drift(entries_of(1500.0), 1000.0, 0.5).alarms
    assert drift(entries_of(1501.0), 1000.0, 0.5).alarms
    steps = drift(entries_of(1500.0, 2250.0), 1000.0, 0.5)
    assert "the median of the newest 2 runs, against the anchor" in steps.sentence
    assert "no single step" in steps.sentence


def test_today_is_the_middle_of_three_runs() -> None:
    assert drift(entries_of(1.0, 1.0, 9.0, 2.0, 4.0), 1.0, 0.05).now == 4.0


def test_an_anchor_allows_five_percent() -> None:
    assert LIMIT == 5 / 100


def test_an_anchor_that_is_the_newest_run_is_its_own_first() -> None:
    entries = [HistoryEntry(key=KEY, device="d", time=time, when="", commit=commit) for time, commit in ((5.0, "aa"), (9.0, "bb"))]  # fmt: skip
    result = drift(entries, 9.0, 0.05, since="bb")
    assert result is not None
    assert (result.steps, result.now) == (1, 9.0)


def steps(*times: float, start: str = "2026-09-01") -> list[Baseline]:
    """Lines as accepting writes them one after the other, ten days apart."""
    day, lines = date.fromisoformat(start), list[Baseline]()
    for time in times:
        when = (day + timedelta(days=10 * len(lines))).isoformat()
        line = replace(accepted(time), when=when)
        lines.append(anchored(line, lines[-1] if lines else None, Signature(when=when)))
    return lines


def test_five_accepted_steps_of_four_percent_stand_against_the_first() -> None:
    """Each passed, none was remarked: the accepted time moved along with them."""
    lines = steps(*(1e6 * 1.04**step for step in range(6)))
    assert [line.anchor for line in lines] == [0.0, *[1e6] * 5]
    assert {line.anchored for line in lines[1:]} == {"2026-09-01"}
    assert [line.drift_from_anchor > ANCHOR for line in lines] == [False, False, False, True, True, True]
    assert lines[-1].drift_from_anchor == pytest.approx(1.04**5 - 1)


def test_a_faster_time_another_way_of_measuring_and_a_person_begin_anew() -> None:
    first, slower = steps(1e6, 1.05e6)
    assert anchored(replace(slower, time=0.9e6), slower, Signature(when="2026-09-20")).anchor == 0.0
    assert anchored(replace(slower, time=1.02e6), slower, Signature(when="2026-09-20")).anchor == 1e6
    assert anchored(slower, first, Signature(when="2026-09-20", anchor=True)).anchor == 0.0
    other = replace(slower, identity=Identity(device=slower.device, timer="events"))
    assert anchored(other, first, Signature(when="2026-09-20")).anchor == 0.0
    assert first.drift_from_anchor == 0.0


def test_a_time_that_is_accepted_already_can_be_counted_anew() -> None:
    """What CI advises where a line came too far wrote nothing: the time had not changed."""
    far = line_with_end(anchor=0.8e6, anchored="2026-03-01", commit=f"abc{DIRTY}", expires=LATER)
    anew = replace(TODAY, anchor=True, why="the wider one is the truth", commit="abcdef")
    decision = decided(1.001e6, far, anew)
    assert (decision.change, decision.asks, decision.writes) == (Change.ANCHORED, True, True)
    assert decision.after is not None
    assert (decision.after.time, decision.after.anchor, decision.after.anchored) == (1e6, 0.0, "")
    assert (decision.after.why, decision.after.when, decision.after.expires) == (anew.why, TODAY.when, LATER)
    assert decided(1.001e6, replace(far, anchor=0.0), replace(anew, commit="")).change is Change.KEPT
    more = decided(1.001e6, far, anew, add=True)
    assert (more.change, more.after and more.after.anchor) == (Change.ONE_MORE, 0.0)
    ended = decided(1.001e6, replace(far, expires="2020-01-01"), anew)
    assert (ended.change, ended.after and ended.after.anchor) == (Change.RENEWED, 0.0)


def test_a_step_that_fails_in_ci_is_told_when_it_is_accepted() -> None:
    why = replace(TODAY, why="wider")
    before = line_with_end(when="2026-05-20", expires="")
    slower, anew = decided(1.2e6, before, why), decided(1.2e6, before, replace(why, anchor=True))
    assert (slower.drifts_too_far, anew.drifts_too_far, decided(1.09e6, before, why).drifts_too_far) == (
        True,
        False,
        False,
    )
    assert not decided(1.2e6, replace(before, local=True), why).drifts_too_far
    assert any("--anchor" in line for line in acceptance_lines([slower]))
    assert not any("--anchor" in line for line in acceptance_lines([anew]))
    assert "--anchor" in "".join(decision_lines(slower))


@pytest.mark.parametrize(("day", "anchor"), [("2026-11-30", 1e6), ("2026-12-01", 1.05e6)])
def test_an_anchor_is_of_the_last_ninety_days(day: str, anchor: float) -> None:
    slower = steps(1e6, 1.05e6)[1]
    assert anchored(replace(slower, time=1.09e6, when=day), slower, Signature(when=day)).anchor == anchor


@pytest.mark.parametrize("days", [0, 1, 28, 29, 59, 60, 90, 365, 366, 1461, 36525])
@pytest.mark.parametrize("start", ["2023-12-31", "2024-02-28", "2024-02-29", "2026-03-01", "1999-11-30"])
def test_days_between_two_dates_are_those_of_the_calendar(start: str, days: int) -> None:
    assert _days(start, (date.fromisoformat(start) + timedelta(days=days)).isoformat()) == days
    assert _days("", start) == _days(start, "soon") == 0


def test_how_far_a_line_may_creep_is_a_setting() -> None:
    before = Baseline(key=ANCHOR_KEY, device="host-x", time=1e6, when="2026-06-01", commit="abcdef")
    why = replace(TODAY, why="slower on purpose", commit="abcdef")
    for creep, drifts_too_far in ((0.10, True), (0.25, False), (float("inf"), False)):
        assert decided(1.2e6, before, replace(why, creep=creep)).drifts_too_far is drifts_too_far


@pytest.mark.parametrize(
    ("named", "release", "revision"),
    [("", "v1.2", "v1.2"), ("main", "v1.2", "main"), ("none", "v1.2", ""), ("", "", "")],
)
def test_the_second_anchor_is_the_last_release_where_none_is_named(named: str, release: str, revision: str) -> None:
    assert fixed_anchor(named, release) == revision
