"""Tests of core/judge/context."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.changes.marks import EnvironmentEdits
from pytest_perfgate.core.judge.context import (
    REASON,
    UNKNOWN,
    Fact,
    JudgeContext,
    Move,
    accepted_clock,
    clock_of,
    facts_of,
    moved,
    moves,
    named,
    paired_clocks,
    surroundings,
)
from pytest_perfgate.core.judge.judge import _judged_measurement, judge
from pytest_perfgate.core.judge.policy import CI
from pytest_perfgate.core.render.block import render_block
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.measurement import DIRTY, Environment, HistoryEntry, Identity
from pytest_perfgate.model.plan import Choice, Decision, Effect, Outcome
from pytest_perfgate.model.protocol import Capture
from tests.unit.core.judge.bench import GPU, KEY, KINDS, accepted, limit, measured, samples
from tests.unit.core.judge.paired_builds import NOT_SLOWER, PAIRED_CONTEXT, SLOWER, paired_verdict

OLD = (("driver", "570.124.06"), ("toolkit", "12.8"), ("framework", "torch 2.12.1"), ("ptxas", "12.8.93"))
NEW = (("driver", "570.195.03"), ("toolkit", "13.0"), ("framework", "torch 2.13.0"), ("power limit", "700 W"))


def between(then: tuple[Fact, ...], now: tuple[Fact, ...], level: str = "exact") -> tuple[Move, ...]:
    here = Device(key="k", name="n", kind="gpu", facts=now)
    return moves(accepted(1e6, surroundings=Environment(facts=then)), here, level)


@pytest.mark.parametrize(
    ("level", "names"),
    [
        ("exact", ["driver", "toolkit", "framework"]),
        ("minor", ["driver", "toolkit", "framework"]),
        ("major", ["toolkit"]),
    ],
)
def test_versions_are_compared_as_far_as_the_level_looks(level, names) -> None:
    assert [name for name, _, _ in between(OLD, NEW, level)] == names


def test_patches_are_seen_only_exactly() -> None:
    then, now = (("framework", "torch 2.13.0"),), (("framework", "torch 2.13.1+cu130"),)
    assert between(then, now, "minor") == ()
    assert between(then, now) == (("framework", "torch 2.13.0", "torch 2.13.1+cu130"),)
    assert between((("framework", "cupy 13.1"),), (("framework", "torch 13.1"),), "major")
    assert between((("driver", "none"),), (("driver", "unknown"),), "major")


def test_only_versions_are_kept() -> None:
    assert facts_of((("cores", "2"), *NEW[::-1], ("ptxas", ""))) == NEW[:3]


def report(level: str, slower: float = 1.0):
    measurement = measured(100_000.0 * slower)
    device = replace(measurement.device, facts=NEW)
    line = accepted(100_000.0, surroundings=Environment(facts=OLD))
    context = JudgeContext(facts=level)
    return judge(replace(measurement, device=device), [limit("slowdown <= 3%")], baseline=line, context=context)


@pytest.mark.parametrize(("level", "compared"), [("off", True), ("shown", True), ("major", False), ("exact", False)])
def test_by_the_level_a_baseline_is_not_compared(level, compared) -> None:
    (verdict,) = report(level).verdicts
    assert (verdict.outcome is Outcome.PASSED) is compared
    assert ("toolkit 12.8 -> 13.0" in verdict.sentence) is not compared


def test_what_moved_stands_beside_a_slowdown() -> None:
    text = render_block(report("shown", 1.5))
    assert "since accepted: toolkit 12.8 -> 13.0" in " ".join(text.split())
    assert "since accepted" not in render_block(report("off", 1.5))


@pytest.mark.parametrize(("now", "expected"), [(1.019e9, 0), (1.021e9, 1), (0.981e9, 0), (0.979e9, 1)])
def test_clocks_within_two_percent_are_the_same(now: float, expected: int) -> None:
    line = accepted(1e6)
    then = HistoryEntry(key=KEY, device=line.device, time=1e6, when="", commit=line.commit, clock_hz=1e9)
    here = measured(0, processes=(samples(1e6, clock_hz=(now,)),))
    assert len([name for name, _, _ in moved(line, here, [then]) if name == "clock"]) == expected


def test_a_clock_is_of_the_line_s_own_commit_clean_or_not() -> None:
    def at(commit: str, line: str) -> float | None:
        entry = HistoryEntry(key=KEY, device="d", time=1.0, when="", commit=commit, clock_hz=1.5e9)
        return accepted_clock(accepted(1e6, commit=line), [entry])

    assert at("a1b2c3d", "a1b2c3d4e5") == at("a1b2c3d4e5", "a1b2c3d") == 1.5e9
    assert at(f"a1b2c3d{DIRTY}", f"a1b2c3d4e5{DIRTY}") == 1.5e9
    assert at(f"a1b2c3d{DIRTY}", "a1b2c3d4e5") is at("a1b2c3d", f"a1b2c3d4e5{DIRTY}") is at("bbbbbbb", "a1b2") is None


def test_the_clocks_of_two_arms_are_told_where_both_are_known() -> None:
    clocked, unknown = (
        Capture(key=KEY, device=GPU, identity=Identity(device=GPU.key), samples=(samples(1e6, clock_hz=hz),))
        for hz in ((1.5e9,), ())
    )
    assert paired_clocks([(clocked, clocked)]) == (1.5e9, 1.5e9)
    assert paired_clocks([(unknown, clocked)]) is paired_clocks([(clocked, unknown)]) is paired_clocks([]) is None


def test_an_unknown_clock_did_not_move() -> None:
    taken = measured(1e6, device=GPU, processes=(samples(1e6, clock_hz=(1.5e9,)),))
    assert moved(accepted(1e6), taken, ()) == ()
    assert named(None, ()) == UNKNOWN


def test_a_fact_of_the_device_is_kept_under_its_own_name() -> None:
    around = (("device driver", "570.1"), ("driver", "1.0"), ("ptxas", "12.8"))
    assert between(around, (("driver", "571.0"), ("ptxas", "12.8"))) == (("driver", "570.1", "571.0"),)
    assert moves(accepted(1e6), Device(key="k", name="n", kind="gpu", facts=NEW)) == ()


THEN = Environment(
    python="3.12.3",
    platform="Linux-6.8",
    packages=(("numpy", "2.0.1"), ("torch", "2.8.0")),
    facts=(("governor", "performance"), ("nvidia driver", "570.86"), ("load", "0.10")),
    commit="a1b2c3d4e5",
)


def test_only_what_lasts_is_compared_and_each_difference_is_named() -> None:
    now = replace(
        THEN,
        packages=(("numpy", "2.1.0"), ("triton", "3.4.0")),
        facts=(("governor", "powersave"), ("nvidia driver", "570.86"), ("load", "7.5")),
        commit="ffff",
        dirty=True,
    )
    assert THEN.differences(THEN) == ()
    assert THEN.differences(now) == (
        ("governor", "performance", "powersave"),
        ("numpy", "2.0.1", "2.1.0"),
        ("torch", "2.8.0", "none"),
        ("triton", "none", "3.4.0"),
    )
    assert replace(THEN, python="3.13.0", platform="Linux-6.9").differences(THEN)[:2] == (
        ("system", "Linux-6.9", "Linux-6.8"),
        ("python", "3.13.0", "3.12.3"),
    )
    assert (now.lasting.commit, now.lasting.dirty, dict(now.lasting.facts).get("load")) == ("", False, None)


def test_the_accepted_run_is_held_against_this_one() -> None:
    line = accepted(1e6, surroundings=THEN.lasting)
    now = measured(1.1e6, environment=replace(THEN, python="3.13.0"))
    assert moved(line, now) == (("python", "3.12.3", "3.13.0"),)
    assert named(line, moved(line, now)) == "python 3.12.3 -> 3.13.0"
    assert named(line, ()) == "none of the facts that perfgate records"
    assert moved(None, now) == ()
    assert named(accepted(1e6), moved(accepted(1e6), now)) == UNKNOWN


def test_the_device_s_own_facts_are_kept_too() -> None:
    card = replace(GPU, facts=(("driver", "580.65"), ("governor", "said by the host already"), ("vbios", "")))
    environment = surroundings(measured(1e6, device=card, environment=THEN))
    assert dict(environment.facts) == {"governor": "performance", "nvidia driver": "570.86", "device driver": "580.65"}
    line = accepted(1e6, device=card, surroundings=environment)
    newer = replace(card, facts=(("driver", "590.1"),))
    assert moved(line, measured(1.1e6, device=newer, environment=THEN)) == (("device driver", "580.65", "590.1"),)


@pytest.mark.parametrize(("hz", "expected"), [(1.98e9, ()), (1.97e9, ()), (1.755e9, ("1.98 GHz", "1.755 GHz"))])
def test_a_clock_that_moved_is_named_from_the_runs_of_the_accepted_commit(hz: float, expected) -> None:
    line = accepted(1e6)
    entries = [
        HistoryEntry(key=KEY, device="d", time=1e6, when="2026-05-02", commit=f"{line.commit}ff", clock_hz=1.98e9),
        HistoryEntry(key=KEY, device="d", time=1e6, when="2026-05-03", commit="other", clock_hz=1.0e9),
        HistoryEntry(key=KEY, device="d", time=1e6, when="2026-05-04", commit=f"{line.commit}ff"),
    ]
    now = measured(1.1e6, processes=(samples(1.1e6, clock_hz=(hz, hz)),))
    assert clock_of(now.processes) == hz
    differences = moved(line, now, entries)
    assert differences == ((("clock", *expected),) if expected else ())
    assert moved(line, measured(1.1e6), entries) == ()


def test_a_verdict_of_moved_says_what_is_known() -> None:
    facts = replace(NOT_SLOWER, moved=(("numpy", "2.0.1", "2.1.0"), ("governor", "performance", "powersave")))
    verdict = paired_verdict(1.1e6, facts, baseline=accepted(1e6, surroundings=THEN))
    assert verdict.outcome is Outcome.MOVED
    assert verdict.sentence.endswith("what differs: numpy 2.0.1 -> 2.1.0, governor performance -> powersave")
    assert verdict.evidence == (("moved", "numpy 2.0.1 -> 2.1.0"), ("moved", "governor performance -> powersave"))
    nothing = replace(NOT_SLOWER, moved=())
    still = accepted(1e6, surroundings=THEN, runs=20, scatter=0.001)
    unexplained = paired_verdict(1.1e6, nothing, baseline=still)
    assert unexplained.sentence.endswith("what differs: none of the facts that perfgate records")
    assert unexplained.next == ("perfgate doctor",), "a machine that is busy for a day is no reason to accept"
    unknown = paired_verdict(1.1e6, nothing, baseline=replace(still, surroundings=None))
    assert all("perfgate accept" in step for one in (verdict, unknown) for step in one.next)
    assert unknown.sentence.endswith(f"what differs: {UNKNOWN}")
    one = paired_verdict(1.1e6, nothing, baseline=accepted(1e6, surroundings=THEN))
    assert one.outcome is Outcome.PASSED, "one run may lie so far from the next"


def test_moved_by_what_the_change_installs_fails_by_its_policy_and_is_named() -> None:
    facts = replace(NOT_SLOWER, moved=(("numpy", "2.0.1", "2.1.0"),))
    edits = EnvironmentEdits(requirements=("-numpy>=2.0", "+numpy>=2.1"))
    context = replace(PAIRED_CONTEXT, policy=CI, environment_edits=edits)
    line = accepted(1e6, surroundings=THEN)
    verdict = paired_verdict(1.1e6, facts, baseline=line, context=context)
    assert (verdict.outcome, verdict.effect) == (Outcome.MOVED, Effect.FAIL)
    assert verdict.sentence.endswith(
        "what differs: numpy 2.0.1 -> 2.1.0; this change edits -numpy>=2.0, +numpy>=2.1, which base and head share"
    )
    lenient = replace(context, policy=replace(CI, moved_by_change=Choice.WARN))
    unnamed = paired_verdict(1.1e6, facts, baseline=line, context=lenient)
    assert unnamed.effect is Effect.WARN
    assert (*unnamed.evidence, ("fails", "by policy moved_by_change = fail")) == verdict.evidence
    moved_fails = replace(context, policy=replace(CI, moved=Choice.FAIL))
    assert paired_verdict(1.1e6, facts, baseline=line, context=moved_fails).evidence == unnamed.evidence
    others = replace(context, environment_edits=EnvironmentEdits(requirements=("+scipy",)))
    assert paired_verdict(1.1e6, facts, baseline=line, context=others).effect is Effect.WARN, "numpy is not its edit"


def test_a_change_that_edits_its_job_answers_for_what_no_run_explains_though_one_run_was_accepted() -> None:
    """A variable that a workflow set made both builds 40 % slower: a line of one run passed it without a word."""
    edits = EnvironmentEdits(files=(".github/workflows/bench.yml",))
    context = replace(PAIRED_CONTEXT, policy=CI, environment_edits=edits)
    line, nothing = accepted(1e6, surroundings=THEN), replace(NOT_SLOWER, moved=())
    verdict = paired_verdict(9e6, nothing, baseline=line, context=context)
    assert (verdict.outcome, verdict.effect) == (Outcome.MOVED, Effect.FAIL)
    assert verdict.sentence.endswith("this change edits .github/workflows/bench.yml, which base and head share")
    assert paired_verdict(1.05e6, nothing, baseline=line, context=context).outcome is Outcome.PASSED
    detects = replace(line, detects=20.0)
    open_ = paired_verdict(9e6, nothing, baseline=detects, context=context)
    assert (open_.outcome, open_.effect) == (Outcome.UNDECIDED, Effect.WARN)
    unedited = replace(context, environment_edits=EnvironmentEdits())
    unedited_verdict = paired_verdict(9e6, replace(nothing, base_ns=9e6), baseline=line, context=unedited)
    assert (unedited_verdict.outcome, unedited_verdict.effect) == (Outcome.MOVED, Effect.WARN), (
        "the base is as slow here"
    )
    assert paired_verdict(9e6, nothing, baseline=line, context=unedited).outcome is Outcome.UNDECIDED


@pytest.mark.parametrize("revision", [False, True])
def test_unchanged_code_that_is_slower_is_the_machine_and_never_a_regression(revision: bool) -> None:
    same = replace(SLOWER, same=True, revision=revision)
    verdict = paired_verdict(1.1e6, same, context=JudgeContext(kinds=KINDS, paired_available=True))
    assert (verdict.outcome, verdict.effect) == (Outcome.MOVED, Effect.WARN)
    assert "both builds hold the same code" in verdict.sentence
    assert verdict.next == ("perfgate doctor",)
    assert paired_verdict(1.1e6, replace(same, same=False)).outcome is Outcome.REGRESSED


def test_what_is_undecided_says_how_much_more_time_it_wants() -> None:
    open_ = replace(SLOWER, decision=NOT_SLOWER.decision.UNDECIDED, wants_s=130.0)
    assert paired_verdict(1.1e6, open_).sentence.endswith("about 2 min 10 s more would decide")
    by_name = replace(open_, revision=True)
    verdict = paired_verdict(1.1e6, by_name)
    assert (verdict.outcome, verdict.effect) == (Outcome.UNDECIDED, Effect.WARN)
    assert verdict.sentence.endswith("about 2 min 10 s more would decide")
    few = replace(by_name, differences=(0.0,) * 3)
    assert "the budget ended after 3 of at least 7 rounds" in paired_verdict(1.1e6, few).sentence


def test_too_few_rounds_clear_nothing() -> None:
    few = replace(NOT_SLOWER, decision=Decision.UNDECIDED, revision=True, differences=(0.0,) * 4)
    assert paired_verdict(1.1e6, few).outcome is Outcome.UNDECIDED


@pytest.mark.parametrize(
    ("line", "now", "anew"),
    [
        ({"when": "2026-05-01"}, 2e6, True),
        ({"when": "2026-05-01", "time": 1.9e6}, 2e6, False),
        ({"when": "2026-05-01", "time": 1.9e6, "anchor": 1.8e6, "anchored": "2026-04-01"}, 2e6, True),
        ({"when": "2026-05-01", "time": 1.9e6, "anchor": 1.8e6, "anchored": "2026-01-01"}, 2e6, False),
        ({"when": "2026-05-01", "local": True}, 2e6, False),
        ({"when": "2026-05-01"}, 0.5e6, False),
        ({"when": "2026-05-01", "time": 2.5e6, "anchor": 1e6, "anchored": "2026-04-01"}, 2e6, False),
        ({"when": ""}, 2e6, False),
        ({"when": "2026-05-01", "time": 0.0}, 2e6, False),
    ],
)
def test_the_command_that_accepts_counts_anew_where_ci_would_fail_the_sum(line, now: float, *, anew: bool) -> None:
    edited = replace(accepted(1e6), **line)
    context = JudgeContext(kinds=KINDS, today="2026-05-20")
    trial = _judged_measurement(measured(now), (), edited, context, None)
    assert ("--anchor" in trial.accepting(REASON)) is anew
    assert "--anchor" not in trial.accepting(), "starting anew needs a reason"
    before = replace(trial, baseline=accepted(1e6), context=replace(context, edited=edited))
    assert ("--anchor" in before.accepting(REASON)) is anew, "accept writes over the line of the work tree"
    first = replace(trial, baseline=None)
    assert "--anchor" not in first.accepting(REASON), "there is nothing to count from"
