"""Tests of core/judge/suspects."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.accepted_line import other_identity, uncompared, unexplained
from pytest_perfgate.core.judge.context import (
    JudgeContext,
    Ruling,
    Unpaired,
    accepted_clock,
    clock_of,
    how_measured,
    limited,
    paired_clocks,
)
from pytest_perfgate.core.judge.judge import _judged_measurement, judge
from pytest_perfgate.core.judge.policy import suspects
from pytest_perfgate.core.judge.suspects import prediction, unpaired_ruling
from pytest_perfgate.model.measurement import HistoryEntry, Identity
from pytest_perfgate.model.metric import Interval
from pytest_perfgate.model.plan import Decision, Effect, Outcome
from pytest_perfgate.model.protocol import Capture
from pytest_perfgate.model.verdict import Paired, PowerLimited
from tests.reports import DEVICE
from tests.unit.core.judge.bench import (
    CONTEXT,
    FLOORED,
    GPU,
    KEY,
    KINDS,
    SHAPE,
    SLOWDOWN,
    accepted,
    limit,
    measured,
    samples,
    verdict,
)
from tests.unit.core.judge.paired_builds import (
    PAIRED_CONTEXT,
    SLOWER,
    arms,
    decided,
    decided_verdict,
    judged_arms,
    paired_verdict,
)


def test_small_and_strict_numbers_are_screened_like_others() -> None:
    assert decided_verdict(1.001e6, "slowdown <= 0%", shape=(1.0, 1.0, 1.0), context=FLOORED).outcome is Outcome.PASSED
    assert decided_verdict(0.5, baseline=accepted(0.5)).outcome is Outcome.PASSED
    renewing = accepted(1e6, expires="2026-09-01", when="2026-05-02", why="not yet")
    context = replace(CONTEXT, today="2026-05-02", edited=renewing)
    again = decided_verdict(1e6, baseline=accepted(1e6, expires="2026-05-01"), context=context)
    assert (again.outcome, again.visible) == (Outcome.ACCEPTED, 0.03)
    tiny = replace(CONTEXT, edited=accepted(0.9, why="now in double precision"))
    assert decided_verdict(0.9, baseline=accepted(0.3), context=tiny).outcome is Outcome.ACCEPTED


def test_what_chance_reaches_comes_from_the_history_or_from_the_line() -> None:
    line = accepted(1e6, scatter=0.01, runs=7)
    for scatter, runs, expected in ((0.5, 2, 2), (0.5, 1, 7), (None, 5, 7)):
        context = replace(CONTEXT, scatter=scatter, runs=runs)
        result = prediction(_judged_measurement(measured(1e6), (), line, context, None))
        assert result.runs == expected
        assert (result.scatter > 0.1) is (expected == 2)
    two = replace(CONTEXT, scatter=0.005, runs=2)
    assert "after 2 runs" in decided_verdict(1.1e6, context=two).sentence
    unstable = replace(decided(Decision.UNDECIDED, 0.04), revision=False, unstable=True)
    assert "a1b2c3d" in decided_verdict(1.1e6, paired=unstable).sentence
    nameless = replace(unstable, base="")
    assert "than in the base" in decided_verdict(1.1e6, paired=nameless).sentence


CLOCK_CONTEXT = JudgeContext(kinds=KINDS, then_hz=1.5e9)


def clock_verdict(
    time: float, hz: tuple[float, ...], context: JudgeContext = CLOCK_CONTEXT, paired: Paired | None = None
):
    processes = tuple(samples(time * factor, clock_hz=hz) for factor in (0.999, 1.0, 1.001))
    line = accepted(1e6, device=GPU, clocks="observe")
    taken = measured(time, device=GPU, clocks="observe", processes=processes)
    (result,) = judge(taken, SLOWDOWN, baseline=line, context=context, paired=paired).verdicts
    return result


def test_slower_in_time_and_not_in_cycles_is_invalid_with_the_clocks() -> None:
    result = clock_verdict(1.25e6, (1.2e9, 1.2e9, 1.2e9))
    assert (result.outcome, result.effect) == (Outcome.INVALID, Effect.FAIL)
    assert result.sentence == (
        "+25.0 % in time but +0.0 % in cycles: the clock ran at 1.2 GHz, and at 1.5 GHz when it was accepted"
    )
    assert result.evidence == (("clock now", "1.2 GHz"), ("clock then", "1.5 GHz"))
    assert result.next[0].endswith("--perfgate-clocks=lock")
    assert result.baseline is not None


@pytest.mark.parametrize(
    ("time", "hz", "context", "outcome"),
    [
        (1.25e6, (1.5e9,), CLOCK_CONTEXT, Outcome.REGRESSED),
        (1.25e6, (1.24e9,), CLOCK_CONTEXT, Outcome.REGRESSED),
        (1.25e6, (1.23e9,), CLOCK_CONTEXT, Outcome.INVALID),
        (1.25e6, (), CLOCK_CONTEXT, Outcome.REGRESSED),
        (1.25e6, (1.2e9,), replace(CLOCK_CONTEXT, then_hz=None), Outcome.REGRESSED),
        (1.25e6, (1.2e9,), replace(CLOCK_CONTEXT, paired_available=True), Outcome.SUSPECT),
        (1.0e6, (1.2e9,), CLOCK_CONTEXT, Outcome.PASSED),
        (0.8e6, (1.2e9,), CLOCK_CONTEXT, Outcome.IMPROVED),
    ],
)
def test_only_where_both_clocks_are_known_and_explain_it(
    time: float, hz: tuple[float, ...], context: JudgeContext, outcome: Outcome
) -> None:
    assert clock_verdict(time, hz, context).outcome is outcome


def paired_at(shift: float, clocks: tuple[float, float] | None, **fields) -> Paired:
    interval = Interval(low=shift - 0.01, high=shift + 0.01)
    return Paired(
        decision=Decision.SLOWER, differences=(shift,) * 10, shift=shift, interval=interval, base="a1b2c3d",
        clocks_hz=clocks, **fields,
    )  # fmt: skip


@pytest.mark.parametrize("revision", [False, True])
def test_two_arms_are_held_to_their_cycles_too(revision: bool) -> None:
    result = clock_verdict(1.25e6, (1.5e9,), paired=paired_at(0.25, (1.5e9, 1.2e9), revision=revision))
    assert result.outcome is Outcome.INVALID
    assert result.sentence.endswith("the clock ran at 1.2 GHz, and at 1.5 GHz in a1b2c3d at the same time")
    assert (result.rounds, result.baseline is None) == (10, revision)
    for clocks in (None, (1.5e9, 1.5e9)):
        assert clock_verdict(1.25e6, (), paired=paired_at(0.25, clocks, revision=revision)).outcome is Outcome.REGRESSED


def test_the_clock_is_no_event_where_the_power_limit_lowers_it_in_one_build() -> None:
    at_its_limit = paired_at(0.25, (1.5e9, 1.2e9), limited=PowerLimited(clocks_hz=(1.5e9, 1.2e9), decides=True))
    assert clock_verdict(1.25e6, (1.5e9,), paired=at_its_limit).outcome is Outcome.REGRESSED


@pytest.mark.parametrize(
    ("shift", "now_hz", "outcome"),
    [(0.5, 0.75e9, Outcome.INVALID), (1.0, 1.125e9, Outcome.INVALID), (1.0, 1.25e9, Outcome.REGRESSED)],
    ids=["time at the limit", "cycles at the limit", "cycles beyond it"],
)
def test_a_clock_explains_a_time_of_the_limit_or_more_and_cycles_of_the_limit_or_less(
    shift: float, now_hz: float, outcome: Outcome
) -> None:
    """Three quarters of the clock make of twice the time half more cycles, which is the limit."""
    arms = paired_at(shift, (1.5e9, now_hz))
    result = decided_verdict(3e6, "slowdown <= 50%", paired=arms)
    assert result.outcome is outcome


def test_a_clock_is_that_of_every_process_or_of_none() -> None:
    clocked = samples(1.0, clock_hz=(1.4e9, 1.6e9, 1.5e9))
    assert clock_of([clocked, samples(1.0, clock_hz=(1.1e9,)), clocked]) == 1.5e9
    assert clock_of([clocked, samples(1.0)]) is None
    assert clock_of([]) is None


def test_the_accepted_clock_is_of_the_newest_run_of_that_commit() -> None:
    line = accepted(1e6)
    past = [
        HistoryEntry(key=KEY, device="d", time=1e6, when="1", commit=commit, clock_hz=hz)
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
    """A run of some state, held against a line of another or the same."""
    processes = tuple(samples(time * f, clock_hz=(hz,), capped=capped) for f in (0.999, 1.0, 1.001))
    line = accepted(1e6, device=GPU, clocks="observe", limited=line_limited)
    taken = measured(time, device=GPU, clocks="observe", processes=processes)
    both = context.pop("paired", None)
    (result,) = judge(taken, SLOWDOWN, baseline=line, context=replace(CLOCK_CONTEXT, **context), paired=both).verdicts
    return result


def test_a_line_of_another_state_of_power_clears_and_confirms_nothing() -> None:
    for time, capped, line_limited in (
        (0.8e6, 0.0, True),
        (1.0e6, 0.0, True),
        (1.25e6, 0.0, True),
        (1.25e6, 0.9, False),
    ):
        result = at_limit(time, capped, line_limited)
        assert result.outcome is Outcome.UNDECIDED
        assert "power limit" in result.sentence
        assert result.next[0].endswith("--perfgate-against a1b2c3d4e5")
        waits = at_limit(time, capped, line_limited, paired_available=True)
        assert waits.outcome is Outcome.SUSPECT
    assert at_limit(1.0e6, 0.9, True).outcome is Outcome.PASSED
    assert at_limit(1.0e6, None, True).outcome is Outcome.PASSED


@pytest.mark.parametrize(("time", "outcome"), [(0.8e6, Outcome.IMPROVED), (1.0e6, Outcome.PASSED)])
def test_what_is_fast_enough_at_the_power_limit_needs_no_line_of_that_state(time: float, outcome: Outcome) -> None:
    """The limit only lowers the clock."""
    assert at_limit(time, 0.9, False).outcome is outcome


def test_two_builds_decide_between_states_of_power() -> None:
    slower = paired_at(0.25, (1.5e9, 1.2e9), limited=PowerLimited(clocks_hz=(1.5e9, 1.2e9), decides=True))
    result = at_limit(1.25e6, 0.9, False, paired=slower)
    assert result.outcome is Outcome.REGRESSED
    assert dict(result.evidence)["power"] == (
        "at the device's limit: 1500 MHz then, 1200 MHz now; turns of a second decide, because short ones share one clock"
    )
    alike = replace(slower, decision=Decision.NOT_SLOWER, shift=0.0)
    passed = at_limit(1.25e6, 0.9, False, paired=alike)
    assert passed.outcome is Outcome.PASSED
    assert passed.sentence.startswith("accepted below the device's power limit, measured at the device's power limit;")
    assert passed.baseline is not None
    freed = at_limit(1.25e6, 0.0, True, paired=alike)
    assert freed.sentence.startswith("accepted at the device's power limit, measured below the device's power limit;")


@pytest.mark.parametrize(
    ("time", "base_ns", "outcome"),
    [
        (2e6, 0.0, Outcome.PASSED),
        (2.01e6, 2e6, Outcome.MOVED),
        (9e6, 0.0, Outcome.UNDECIDED),
        (9e6, 9e6, Outcome.MOVED),
    ],
)
def test_a_state_of_power_explains_no_more_than_a_doubled_time(time: float, base_ns: float, outcome: Outcome) -> None:
    """Cleared by two builds it is the machine's doing, or stays open where the base's own time is not known."""
    limited = PowerLimited(clocks_hz=(1.5e9, 1.5e9), decides=True)
    alike = replace(paired_at(0.0, (1.5e9, 1.5e9), limited=limited), decision=Decision.NOT_SLOWER, base_ns=base_ns)
    assert at_limit(time, 0.9, False, paired=alike).outcome is outcome


def test_at_the_power_limit_a_lower_clock_is_the_code_s_doing() -> None:
    assert at_limit(1.25e6, 0.9, True, hz=1.2e9).outcome is Outcome.REGRESSED
    assert at_limit(1.25e6, 0.0, False, hz=1.2e9).outcome is Outcome.INVALID


def test_the_runs_of_one_state_are_another_measurement_s() -> None:
    how = Identity(device="x")
    assert how_measured(how, at_limit=False) == how.text()
    assert how_measured(how, at_limit=True) == f"{how.text()}, power=limited"
    assert limited([samples(1.0, capped=0.5), samples(1.0, capped=0.05), samples(1.0, capped=0.9)]) is True
    assert limited([samples(1.0)]) is None


def test_a_clock_that_no_arm_saw_has_no_rounds() -> None:
    fast = tuple(replace(samples(1.25e6 * f), clock_hz=(1.6e9,)) for f in (0.999, 1.0, 1.001))
    context = replace(PAIRED_CONTEXT, then_hz=2e9, paired_available=False)
    report = judge(measured(0, processes=fast), [limit("slowdown <= 3%")], baseline=accepted(1e6), context=context)
    assert (report.verdicts[0].outcome, report.verdicts[0].rounds) == (Outcome.INVALID, 0)


def test_a_time_beyond_chance_and_the_few_rounds_that_the_budget_left_confirm_it_together() -> None:
    """A call of 134 us took 600 ms after a change: ten minutes were three rounds, and the run ended with 0."""
    few = replace(arms(4000, 3000, 5000, 3), differences=(8.2, 8.3, 8.4))
    verdict = paired_verdict(4e9, few)
    assert (verdict.outcome, verdict.metric.value) == (Outcome.REGRESSED, pytest.approx(3999))
    assert verdict.sentence.endswith("slower than base a1b2c3d in 3 rounds: over 10,000 % too")
    others = (
        replace(few, differences=(8.2, 8.3, 0.02)),
        replace(few, differences=()),
        replace(few, differences=(8.3,) * 7),
    )
    assert {paired_verdict(4e9, one).outcome for one in others} == {Outcome.UNDECIDED}
    assert paired_verdict(1.06e6, arms(0.06, -0.5, 0.6, 3)).outcome is Outcome.UNDECIDED, "within chance"


def test_no_neighbour_excuses_a_slowdown_beside_the_base_in_turns() -> None:
    """A call that waits, as for threads or a device, shows no wait for a processor: 160 ns to 1.5 s ended with 0."""
    run = measured(0, processes=tuple(samples(4e9 * factor, others=2.0, unqueued=None) for factor in SHAPE))
    for least, outcome in ((8.2, Outcome.REGRESSED), (0.5, Outcome.UNDECIDED)):
        few = replace(arms(4000, 3000, 5000, 3), differences=(8.4, 8.3, least))
        report = judge(run, [limit("slowdown <= 3%")], baseline=accepted(1e6), context=PAIRED_CONTEXT, paired=few)
        assert report.verdicts[0].outcome is outcome


def test_what_no_second_arm_was_asked_has_no_rounds() -> None:
    assert judged_arms("time <= 1s").rounds == judged_arms("slowdown <= 3%").rounds == 0


def test_a_limit_on_the_time_can_detect_what_the_run_can_whatever_two_builds_say() -> None:
    visible = judged_arms("time <= 1s").visible
    assert visible is not None
    assert judged_arms("time <= 1s", paired=SLOWER).visible == visible


def test_a_line_that_is_slower_by_exactly_its_noise_explains_nothing() -> None:
    before = accepted(1e6)
    assert not unexplained(replace(before, time=1.5e6), before, 0.5)
    assert unexplained(replace(before, time=1.6e6), before, 0.5)


OTHER = Identity(device=DEVICE.key, threads="9")


def test_what_a_line_says_is_a_reason_where_nothing_stood_before() -> None:
    assert accepted(1e6).explains(None)
    assert not accepted(1e6).explains(accepted(1e6))


def test_a_line_that_was_only_kept_here_asks_nobody_for_a_reason() -> None:
    assert unexplained(accepted(2e6), accepted(1e6), 0.0)
    assert not unexplained(accepted(2e6), accepted(1e6, local=True), 0.0)


def test_a_line_of_another_identity_asks_for_a_reason_though_it_is_no_slower() -> None:
    then = accepted(1e6)
    assert unexplained(accepted(1e6, identity=OTHER), then, 0.0)
    assert not unexplained(accepted(1e6), then, 0.0)
    bare = replace(then, identity=None)
    assert not any(other_identity(*pair) for pair in ((then, None), (then, bare), (bare, then)))
    assert other_identity(replace(then, limited=True), then)


def test_a_line_that_was_refused_is_answered_by_a_reason_and_this_very_time() -> None:
    refused = judge(measured(1e6), SLOWDOWN, baseline=accepted(1e6, identity=OTHER), context=CONTEXT)
    time = next(iter(refused.measurement.metrics.find("time")))
    answer = accepted(1e6, why="nine threads", when="2026-06-01")
    assert not uncompared(refused, answer, time, "2026-06-01")
    assert uncompared(refused, replace(answer, time=1.1e6), time, "2026-06-01")
    assert uncompared(refused, replace(answer, why=""), time, "2026-06-01")
    ending = accepted(1e6, identity=OTHER, expires="2026-06-01")
    expires = judge(measured(1e6), SLOWDOWN, baseline=ending, context=CONTEXT)
    for now, compares in (("2026-06-01T10:00:00", False), ("2026-06-02", True)):
        assert uncompared(expires, replace(answer, why=""), time, now) is not compares


def test_of_other_limits_two_arms_decide_nothing() -> None:
    slow = verdict(1.1e6)
    other = replace(slow, limit=limit("time <= 1s"))
    assert suspects([slow, other]) == (slow,)


def test_two_arms_at_two_clocks_are_an_event_of_the_clock() -> None:
    arms = replace(SLOWER, shift=0.25, interval=Interval(low=0.2, high=0.3), clocks_hz=(1.5e9, 1.2e9))
    available = replace(CLOCK_CONTEXT, paired_available=True)
    assert clock_verdict(1.25e6, (1.2e9,), available, arms).outcome is Outcome.INVALID
    assert "in the base at the same time" in clock_verdict(1.25e6, (1.2e9,), available, replace(arms, base="")).sentence
    less = replace(arms, shift=0.02, interval=Interval(low=0.015, high=0.025))
    assert clock_verdict(1.25e6, (1.2e9,), available, less).outcome is not Outcome.INVALID, "no slower by what counts"
    wide = replace(less, decision=Decision.UNDECIDED, interval=Interval(low=-0.03, high=0.07))
    assert clock_verdict(1.25e6, (1.2e9,), available, wide).outcome is Outcome.UNDECIDED


@pytest.mark.parametrize(("detects", "more"), [(1.0, False), (0.9, True)])
def test_chance_explains_a_doubled_time_that_the_accepted_run_could_not_detect(detects: float, *, more: bool) -> None:
    line, spread = accepted(1e6, detects=detects), (2 / 3, 1.0, 4 / 3)
    result = decided_verdict(2e6, "slowdown <= 50%", baseline=line, shape=spread)
    assert (result.outcome, result.metric.value) == (Outcome.SUSPECT, 1.0)
    assert ("and this is more" in result.sentence) is more
    line = accepted(1e6, device=GPU, detects=detects)
    processes = (samples(2e6, timer="events"),) * 3
    result = decided_verdict(2e6, "slowdown <= 50%", baseline=line, device=GPU, processes=processes)
    assert (result.outcome, result.metric.value) == (Outcome.REGRESSED if more else Outcome.SUSPECT, 1.0)


@pytest.mark.parametrize(("part", "outcome"), [(1.0, Outcome.SUSPECT), (0.99, Outcome.REGRESSED)])
def test_an_interval_that_begins_at_the_limit_does_not_confirm(part: float, outcome: Outcome) -> None:
    shape = (2.0, 3.0, 3.0, 3.0)
    low = verdict(1e6, shape=shape).metric.low
    bound = replace(limit("slowdown <= 50%"), bound=low * part)
    assert verdict(1e6, (bound,), shape=shape).outcome is outcome


@pytest.mark.parametrize(
    ("unpaired", "offered"),
    [(Unpaired(why="pip: exit 1"), True), (Unpaired(why="no clone has it", base_missing=True), False)],
)
def test_the_accepted_commit_is_offered_after_a_failed_build_but_not_where_no_clone_has_it(
    unpaired: Unpaired, *, offered: bool
) -> None:
    context = replace(CONTEXT, unpaired=unpaired)
    steps = decided_verdict(1.1e6, context=context).next
    assert any(step.endswith("--perfgate-against a1b2c3d4e5") for step in steps) is offered


@pytest.mark.parametrize(
    ("why", "step", "begins"),
    [
        ("there is no git repository here", "", ["commit the accepted code"]),
        ("there is no git repository here", "git init", ["commit the accepted code"]),
        ("git was not found", "", ["commit the accepted code"]),
        ("git cannot read this repository", "git config x", ["git config x", "pytest "]),
    ],
)
def test_without_a_line_there_is_code_to_commit_unless_git_itself_fails(why: str, step: str, begins: list[str]) -> None:
    trial = _judged_measurement(measured(1e6), (), None, CONTEXT, None)
    unpaired = Unpaired(why=why, step=step, unversioned=True)
    steps = unpaired_ruling(Ruling(outcome=Outcome.UNDECIDED, sentence=""), unpaired, trial).next
    assert [one.startswith(begin) for one, begin in zip(steps, begins, strict=True)] == [True] * len(begins)
