"""What moved around a case: compared fact by fact, and named in the verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.context import UNKNOWN, JudgeContext, clock_of, moved, named, surroundings
from pytest_perfgate.model.measurement import Environment, Sitting
from pytest_perfgate.model.plan import Effect, Outcome
from tests.unit.core.gate.bench import GPU, KEY, KINDS, accepted, measured, samples
from tests.unit.core.gate.test_paired import NOT_SLOWER, SLOWER, verdict

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


def test_the_accepted_sitting_is_held_against_this_one() -> None:
    line = accepted(1e6, surroundings=THEN.lasting)
    now = measured(1.1e6, environment=replace(THEN, python="3.13.0"))
    assert moved(line, now) == (("python", "3.12.3", "3.13.0"),)
    assert named(line, moved(line, now)) == "python 3.12.3 -> 3.13.0"
    assert named(line, ()) == "nothing that perfgate records"
    assert moved(None, now) == ()
    assert named(accepted(1e6), moved(accepted(1e6), now)) == UNKNOWN


def test_the_device_s_own_facts_are_kept_too() -> None:
    card = replace(GPU, facts=(("driver", "580.65"), ("governor", "said by the host already"), ("vbios", "")))
    kept = surroundings(measured(1e6, device=card, environment=THEN))
    assert dict(kept.facts) == {"governor": "performance", "nvidia driver": "570.86", "device driver": "580.65"}
    line = accepted(1e6, device=card, surroundings=kept)
    newer = replace(card, facts=(("driver", "590.1"),))
    assert moved(line, measured(1.1e6, device=newer, environment=THEN)) == (("device driver", "580.65", "590.1"),)


@pytest.mark.parametrize(("hz", "expected"), [(1.98e9, ()), (1.97e9, ()), (1.755e9, ("1.98 GHz", "1.755 GHz"))])
def test_a_clock_that_moved_is_named_from_the_sittings_of_the_accepted_commit(hz: float, expected) -> None:
    line = accepted(1e6)
    sittings = [
        Sitting(key=KEY, device="d", time=1e6, when="2026-05-02", commit=f"{line.commit}ff", clock_hz=1.98e9),
        Sitting(key=KEY, device="d", time=1e6, when="2026-05-03", commit="other", clock_hz=1.0e9),
        Sitting(key=KEY, device="d", time=1e6, when="2026-05-04", commit=f"{line.commit}ff"),
    ]
    now = measured(1.1e6, processes=(samples(1.1e6, clock_hz=(hz, hz)),))
    assert clock_of(now.processes) == hz
    found = moved(line, now, sittings)
    assert found == ((("clock", *expected),) if expected else ())
    assert moved(line, measured(1.1e6), sittings) == ()


def test_a_verdict_of_moved_says_what_is_known() -> None:
    facts = replace(NOT_SLOWER, moved=(("numpy", "2.0.1", "2.1.0"), ("governor", "performance", "powersave")))
    said = verdict(1.1e6, facts, baseline=accepted(1e6, surroundings=THEN))
    assert said.outcome is Outcome.MOVED
    assert said.sentence.endswith("what differs: numpy 2.0.1 -> 2.1.0, governor performance -> powersave")
    assert said.evidence == (("moved", "numpy 2.0.1 -> 2.1.0"), ("moved", "governor performance -> powersave"))
    nothing = replace(NOT_SLOWER, moved=())
    still = accepted(1e6, surroundings=THEN, sittings=20, scatter=0.001)
    known = verdict(1.1e6, nothing, baseline=still)
    assert known.sentence.endswith("what differs: nothing that perfgate records")
    assert known.next == ("perfgate doctor",), "a machine that is busy for a day is no reason to accept"
    unknown = verdict(1.1e6, nothing, baseline=replace(still, surroundings=None))
    assert all("perfgate accept" in step for one in (said, unknown) for step in one.next)
    assert unknown.sentence.endswith(f"what differs: {UNKNOWN}")
    one = verdict(1.1e6, nothing, baseline=accepted(1e6, surroundings=THEN))
    assert one.outcome is Outcome.PASSED, "one run may lie so far from the next"


@pytest.mark.parametrize("revision", [False, True])
def test_unchanged_code_that_is_slower_is_the_machine_and_never_a_regression(revision: bool) -> None:
    same = replace(SLOWER, same=True, revision=revision)
    found = verdict(1.1e6, same, context=JudgeContext(kinds=KINDS, paired_available=True))
    assert (found.outcome, found.effect) == (Outcome.MOVED, Effect.WARN)
    assert "both sides ran the same code" in found.sentence
    assert found.next == ("perfgate doctor",)
    assert verdict(1.1e6, replace(same, same=False)).outcome is Outcome.REGRESSED


def test_what_is_undecided_says_how_much_more_time_it_wants() -> None:
    open_ = replace(SLOWER, decision=NOT_SLOWER.decision.UNDECIDED, wants_s=130.0)
    assert verdict(1.1e6, open_).sentence.endswith("about 2 min 10 s more would decide it")
    by_name = replace(open_, revision=True)
    said = verdict(1.1e6, by_name)
    assert (said.outcome, said.effect) == (Outcome.UNDECIDED, Effect.WARN)
    assert said.sentence.endswith("about 2 min 10 s more would decide it")
    few = replace(by_name, differences=(0.0,) * 3)
    assert "the budget ended after 3 of at least 7 rounds" in verdict(1.1e6, few).sentence


def test_too_few_rounds_acquit_nobody() -> None:
    few = replace(NOT_SLOWER, revision=True, differences=(0.0,) * 4)
    assert verdict(1.1e6, few).outcome is Outcome.UNDECIDED
