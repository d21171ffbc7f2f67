"""Slower in time but not in cycles is an event of the clock."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.gate.clocks import accepted_clock, clock_of, how_measured, limited, paired_clocks
from pytest_perfgate.core.gate.judge import JudgeContext, judge
from pytest_perfgate.model.baseline import Sitting
from pytest_perfgate.model.children import Capture
from pytest_perfgate.model.limit import Effect, Outcome
from pytest_perfgate.model.measurement import Identity
from pytest_perfgate.model.paired import Decision, Paired, PowerLimited
from pytest_perfgate.model.quantity import Interval
from tests.unit.core.gate.bench import GPU, KEY, KINDS, accepted, limit, measured, samples

CONTEXT = JudgeContext(kinds=KINDS, then_hz=1.5e9)
SLOWDOWN = (limit("slowdown <= 3%"),)


def verdict(time: float, hz: tuple[float, ...], context: JudgeContext = CONTEXT, paired: Paired | None = None):
    processes = tuple(samples(time * factor, clock_hz=hz) for factor in (0.999, 1.0, 1.001))
    held = accepted(1e6, device=GPU, clocks="observe")
    taken = measured(time, device=GPU, clocks="observe", processes=processes)
    (found,) = judge(taken, SLOWDOWN, baseline=held, context=context, paired=paired).verdicts
    return found


def test_slower_in_time_and_not_in_cycles_is_invalid_with_the_clocks() -> None:
    found = verdict(1.25e6, (1.2e9, 1.2e9, 1.2e9))
    assert (found.outcome, found.effect) == (Outcome.INVALID, Effect.FAIL)
    assert found.sentence == (
        "+25.0 % in time but +0.0 % in cycles: the clock ran at 1.2 GHz, and at 1.5 GHz when it was accepted"
    )
    assert found.evidence == (("clock now", "1.2 GHz"), ("clock then", "1.5 GHz"))
    assert found.next[0].endswith("--perfgate-clocks=lock")
    assert found.baseline is not None


@pytest.mark.parametrize(
    ("time", "hz", "context", "outcome"),
    [
        (1.25e6, (1.5e9,), CONTEXT, Outcome.REGRESSED),
        (1.25e6, (1.24e9,), CONTEXT, Outcome.REGRESSED),
        (1.25e6, (1.23e9,), CONTEXT, Outcome.INVALID),
        (1.25e6, (), CONTEXT, Outcome.REGRESSED),
        (1.25e6, (1.2e9,), replace(CONTEXT, then_hz=None), Outcome.REGRESSED),
        (1.25e6, (1.2e9,), replace(CONTEXT, paired_available=True), Outcome.SUSPECT),
        (1.0e6, (1.2e9,), CONTEXT, Outcome.PASSED),
        (0.8e6, (1.2e9,), CONTEXT, Outcome.IMPROVED),
    ],
)
def test_only_where_both_clocks_are_known_and_explain_it(
    time: float, hz: tuple[float, ...], context: JudgeContext, outcome: Outcome
) -> None:
    assert verdict(time, hz, context).outcome is outcome


def paired(shift: float, clocks: tuple[float, float] | None, **fields) -> Paired:
    interval = Interval(low=shift - 0.01, high=shift + 0.01)
    return Paired(
        decision=Decision.SLOWER, differences=(shift,) * 10, shift=shift, interval=interval, base="a1b2c3d",
        clocks_hz=clocks, **fields,
    )  # fmt: skip


@pytest.mark.parametrize("revision", [False, True])
def test_two_arms_are_held_to_their_cycles_too(revision: bool) -> None:
    found = verdict(1.25e6, (1.5e9,), paired=paired(0.25, (1.5e9, 1.2e9), revision=revision))
    assert found.outcome is Outcome.INVALID
    assert found.sentence.endswith("the clock ran at 1.2 GHz, and at 1.5 GHz in a1b2c3d beside it")
    assert (found.rounds, found.baseline is None) == (10, revision)
    for clocks in (None, (1.5e9, 1.5e9)):
        assert verdict(1.25e6, (), paired=paired(0.25, clocks, revision=revision)).outcome is Outcome.REGRESSED


def test_a_clock_is_that_of_every_process_or_of_none() -> None:
    known = samples(1.0, clock_hz=(1.4e9, 1.6e9, 1.5e9))
    assert clock_of([known, samples(1.0, clock_hz=(1.1e9,)), known]) == 1.5e9
    assert clock_of([known, samples(1.0)]) is None
    assert clock_of([]) is None


def test_the_accepted_clock_is_of_the_newest_sitting_of_that_commit() -> None:
    line = accepted(1e6)
    past = [
        Sitting(key=KEY, device="d", time=1e6, when="1", commit=commit, clock_hz=hz)
        for commit, hz in (("a1b2c3d4e5f6", 1.1e9), ("a1b2c3d4e5f6", 1.3e9), ("a1b2c3d4e5f6", None), ("ffff", 1.9e9))
    ]
    assert accepted_clock(line, past) == 1.3e9
    assert accepted_clock(line, past[2:]) is None
    assert accepted_clock(replace(line, commit=""), past) is None
    assert accepted_clock(None, past) is None
    assert accepted_clock(line, [replace(past[0], commit="")]) is None


def test_the_clocks_of_two_arms() -> None:
    def capture(hz: tuple[float, ...]) -> Capture:
        return Capture(key=KEY, samples=(samples(1.0, clock_hz=hz),), device=GPU, identity=Identity(device="d"))

    assert paired_clocks([(capture((1e9,)), capture((2e9,))), (capture((3e9,)), capture((2e9,)))]) == (2e9, 2e9)
    assert paired_clocks([(capture((1e9,)), capture(()))]) is None
    assert paired_clocks(()) is None


def at_limit(time: float, capped: float | None, line_limited: bool, *, hz: float = 1.5e9, **context):
    """A sitting of some state, held against a line of another or the same."""
    processes = tuple(samples(time * f, clock_hz=(hz,), capped=capped) for f in (0.999, 1.0, 1.001))
    held = accepted(1e6, device=GPU, clocks="observe", limited=line_limited)
    taken = measured(time, device=GPU, clocks="observe", processes=processes)
    both = context.pop("paired", None)
    (found,) = judge(taken, SLOWDOWN, baseline=held, context=replace(CONTEXT, **context), paired=both).verdicts
    return found


def test_a_line_of_another_state_of_power_clears_and_convicts_nothing() -> None:
    for time in (0.8e6, 1.0e6, 1.25e6):
        for capped, line_limited in ((0.9, False), (0.0, True)):
            found = at_limit(time, capped, line_limited)
            assert found.outcome is Outcome.UNDECIDED
            assert "power limit" in found.sentence
            assert found.next[0].endswith("--perfgate-against a1b2c3d4e5")
            waits = at_limit(time, capped, line_limited, paired_available=True)
            assert waits.outcome is Outcome.SUSPECT
    assert at_limit(1.0e6, 0.9, True).outcome is Outcome.PASSED
    assert at_limit(1.0e6, None, True).outcome is Outcome.PASSED


def test_two_builds_decide_between_states_of_power() -> None:
    slower = paired(0.25, (1.5e9, 1.2e9), limited=PowerLimited(clocks_hz=(1.5e9, 1.2e9), decides=True))
    found = at_limit(1.25e6, 0.9, False, paired=slower)
    assert found.outcome is Outcome.REGRESSED
    assert dict(found.evidence)["power"] == (
        "at the device's limit: 1.5 GHz then, 1.2 GHz now; turns of a second decide, since short ones share one clock"
    )
    alike = replace(slower, decision=Decision.NOT_SLOWER, shift=0.0)
    assert at_limit(1.25e6, 0.9, False, paired=alike).outcome is Outcome.PASSED


def test_at_the_power_limit_a_lower_clock_is_the_code_s_doing() -> None:
    assert at_limit(1.25e6, 0.9, True, hz=1.2e9).outcome is Outcome.REGRESSED
    assert at_limit(1.25e6, 0.0, False, hz=1.2e9).outcome is Outcome.INVALID


def test_the_sittings_of_one_state_are_another_measurement_s() -> None:
    how = Identity(device="x")
    assert how_measured(how, at_limit=False) == how.text()
    assert how_measured(how, at_limit=True) == f"{how.text()}, power=limited"
    assert limited([samples(1.0, capped=0.5), samples(1.0, capped=0.05), samples(1.0, capped=0.9)]) is True
    assert limited([samples(1.0)]) is None
