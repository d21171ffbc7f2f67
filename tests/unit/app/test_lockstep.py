"""Tests of app/lockstep."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.app.lockstep import BASE, HEAD, Turns, TurnTiming, _turn, joined
from pytest_perfgate.app.passes import WAITED, one_by_one
from pytest_perfgate.core.judge.metrics import metrics_of
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import IDLE, Samples, Stop
from pytest_perfgate.model.metric import Problem
from pytest_perfgate.model.plan import Cache, Plan
from tests.unit.core.judge.bench import measured


def test_calls_that_are_waited_for_one_by_one_are_not_put_together_in_a_turn() -> None:
    samples = Samples(durations=(10_000.0,), timer="host", stop=Stop.COUNT)
    assert _turn(Plan(), TurnTiming(), samples)[0].calls > 1
    waited = replace(samples, notes=((IDLE, "the time includes launching and waiting"),))
    assert _turn(Plan(cache=Cache.COLD), TurnTiming(), waited)[0].calls == 1


TURN = Samples(durations=(1.0, 2.0), cpu=(1.0, 1.5), timer="host", stop=Stop.BUDGET, unqueued=1.0, others=0.5)


@pytest.mark.parametrize(("unqueued", "mean"), [(3.0, 2.0), (None, None)])
def test_what_was_queued_is_that_of_all_turns_or_of_none(unqueued: float | None, mean: float | None) -> None:
    whole = joined([TURN, replace(TURN, durations=(4.0,), cpu=(3.0,), unqueued=unqueued, others=1.5)], TURN)
    assert (whole.durations, whole.cpu, whole.turns) == ((1.0, 2.0, 4.0), (1.0, 1.5, 3.0), (2, 1))
    assert (whole.unqueued, whole.others) == (mean, 1.0)


def test_the_busy_part_of_a_call_is_that_of_all_turns() -> None:
    turn = Samples(durations=(2.0, 2.0), busy=(1.0, 1.0), timer="cupti", stop=Stop.COUNT)
    whole = joined([turn, replace(turn, durations=(2.0,), busy=(1.0,))], turn)
    assert whole.busy == (1.0, 1.0, 1.0)
    metrics = metrics_of(measured(0, processes=(whole,)), None)
    assert metrics.find("busy")[0].value == 0.5


def test_a_timer_that_takes_no_samples_is_a_sentence_and_no_statistics_error() -> None:
    bare = replace(TURN, durations=(), cpu=(), timer="theirs")
    with pytest.raises(PerfgateError) as error:
        Turns(lambda side, plan: bare if side == HEAD else TURN, TurnTiming(), (BASE, HEAD)).sample(Plan())
    assert (error.value.code.name, "theirs" in error.value.what) == ("no-samples", True)


def test_two_different_calls_have_batches_of_their_own() -> None:
    turns: list[tuple[int, int, float]] = []

    def measured(side: int, plan: Plan) -> Samples:
        time = 1_000.0 if side == HEAD else 10e6
        turns.append((side, plan.calls, plan.warmup_ns))
        return replace(TURN, durations=(time,) * 3, cpu=(), batch=plan.calls)

    base, head = Turns(measured, TurnTiming(), (BASE, HEAD), alike=False).sample(Plan())
    calls = {side: {count for one, count, warmup in turns if one == side and not warmup} for side in (BASE, HEAD)}
    assert (calls[BASE], min(calls[HEAD]) > 1000) == ({1}, True)
    assert len(base.turns) == len(head.turns) >= 3
    assert [side for side, _, warmup in turns if not warmup][:4] == [BASE, HEAD, HEAD, BASE]


@pytest.mark.parametrize(("slower", "calls"), [(1.0, 17), (9.0, 17), (15_000.0, 1)])
def test_a_head_that_became_very_slow_decides_how_many_calls_a_turn_has(slower: float, calls: int) -> None:
    """The calls that fill a turn of the base took fifteen seconds in each turn of the head."""
    counts: set[int] = set()

    def sampled(side: int, plan: Plan) -> Samples:
        if not plan.warmup_ns:
            counts.add(plan.calls)
        time = 100_000.0 * (slower if side == HEAD else 1.0)
        return replace(TURN, durations=(time,) * 3, cpu=(), batch=plan.calls)

    Turns(sampled, TurnTiming(), (BASE, HEAD)).sample(Plan())
    assert counts == {calls}, "the same in both builds"


def test_both_sides_have_one_timer_where_one_of_them_is_too_short_for_events() -> None:
    """Times of different timers are not compared, and the timer of the short call can time the long one."""
    plans: list[Plan] = []

    def measured(side: int, plan: Plan) -> Samples:
        plans.append(plan)
        own = "cupti" if side == HEAD else "events"
        return Samples(durations=(1e5,) * 20, timer=plan.leaning or own, stop=Stop.COUNT)

    base, head = Turns(measured, TurnTiming(), (BASE, HEAD), alike=False).sample(Plan())
    assert (base.timer, head.timer) == ("cupti", "cupti")
    assert {plan.leaning for plan in plans[2:]} == {"cupti"}


@pytest.mark.parametrize("alike", [True, False])
def test_both_builds_wait_for_a_device_or_none_does(*, alike: bool) -> None:
    """Where the work that a call leaves is about as long as a wait, one process waited and the other did not."""
    plans: list[Plan] = []

    def measured(side: int, plan: Plan) -> Samples:
        plans.append(plan)
        return replace(TURN, notes=(WAITED,) if plan.waits or side == HEAD else ())

    base, head = Turns(measured, TurnTiming(), (BASE, HEAD), alike=alike).sample(Plan())
    assert not any(plan.waits for plan in plans[:2]), "each finds out for itself"
    assert ((WAITED in base.notes), (WAITED in head.notes)) == (alike, True), "two different calls are not alike"


def test_what_only_the_warm_up_of_turns_sees_is_kept() -> None:
    """Turns of 20 ms do not look for work on another stream again, nor time an idle queue."""
    escaped, slow = (Problem(code=code, what="") for code in ("work-escaped", "throttled"))

    def measured(side: int, plan: Plan) -> Samples:
        looked = {} if plan.in_turns else {"launch_gap": 12e3, "problems": (escaped, slow)}
        return replace(TURN, **looked)

    base, head = Turns(measured, TurnTiming(), (BASE, HEAD)).sample(Plan())
    assert {side.launch_gap for side in (base, head)} == {12e3}
    assert [side.problems for side in (base, head)] == [(escaped,)] * 2


def test_a_quantile_takes_its_calls_one_by_one_in_every_process() -> None:
    plans: list[Plan] = []

    def measured(side: int, plan: Plan) -> Samples:
        plans.append(plan)
        return replace(TURN, durations=(1e6,) * 3, cpu=(), batch=plan.calls, waits=(0.0, 1.0, 2.0))

    plan = one_by_one(Plan(), ("q=99%",), 1)
    base, _ = Turns(measured, TurnTiming(), (BASE, HEAD)).sample(plan)
    assert {one.calls for one in plans} == {1}
    assert plans[-1].budget_ns * len(base.turns) == pytest.approx(299e6)
    assert len(base.waits) == len(base.durations)


@pytest.mark.parametrize(("helpers", "one_core"), [((0.0, 0.0), True), ((0.0, 0.9), False), ((0.05, None), False)])
def test_calls_of_several_threads_leave_the_core_of_both(helpers: tuple, one_core: bool) -> None:
    """On one core the threads of a call wait for each other, and a product took a hundred times as long."""
    plans: list[Plan] = []

    def measured(side: int, plan: Plan) -> Samples:
        plans.append(plan)
        return replace(TURN, helpers=helpers[side])

    base, _ = Turns(measured, TurnTiming(), (BASE, HEAD)).sample(Plan())
    assert {plan.one_core for plan in plans if plan.in_turns} == {one_core}
    assert not any(plan.one_core for plan in plans if not plan.in_turns), "the warm-up shows which calls have threads"
    assert base.helpers == pytest.approx(helpers[BASE])


@pytest.mark.parametrize("late", [HEAD, BASE])
def test_threads_that_the_warm_up_missed_free_the_call_at_its_first_turn(late: int) -> None:
    """A product of 10 us ended its warm-up before OpenBLAS had woken its threads, in every second round."""
    plans: list[Plan] = []

    def measured(side: int, plan: Plan) -> Samples:
        plans.append(plan)
        pinned = plan.in_turns and plan.one_core
        return replace(TURN, durations=((9e6 if pinned else 1e5),) * 20, helpers=0.9 * (plan.in_turns and side == late))

    base, head = Turns(measured, TurnTiming(), (BASE, HEAD)).sample(Plan())
    turns = [plan for plan in plans if plan.in_turns]
    assert [plan.one_core for plan in turns] == [True] * 2 + [False] * (len(turns) - 2)
    assert {*base.durations, *head.durations} == {1e5}, "the turns on one core are left out"
    assert turns[-1].budget_ns > turns[0].budget_ns
