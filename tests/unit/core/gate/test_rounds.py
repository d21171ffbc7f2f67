"""The design of rounds, and which clock speaks for a process."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.rounds import Design, Pairs, finding, look, more_slow, slow_processes, visible
from pytest_perfgate.core.judge.samples import apart, computes, pair_of, time_of
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.measurement import Identity, Samples, Stop
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.protocol import Capture
from pytest_perfgate.model.verdict import Decision


def pairs(*ratios: float, spread: float = 0.01) -> Pairs:
    return Pairs(base=(100.0,) * len(ratios), head=tuple(100.0 * r for r in ratios), spread=spread)


def samples(wall: tuple[float, ...], cpu: tuple[float, ...] = (), timer: str = "host") -> Samples:
    return Samples(durations=wall, cpu=cpu, timer=timer, stop=Stop.COUNT)


def capture(one: Samples) -> Capture:
    return Capture(
        key=CaseKey(nodeid="t"),
        samples=(one,),
        device=Device(key="h", name="h", kind="host"),
        identity=Identity(device="h"),
    )


def test_seven_even_rounds_clear_and_bound_the_slowdown() -> None:
    found = finding(pairs(1.0, 1.01, 0.99, 1.0, 1.005, 1.0, 0.995), 0.03)
    assert (found.decision, found.settled, found.rounds) == (Decision.NOT_SLOWER, True, 7)
    assert found.interval.high == pytest.approx(0.01)
    assert found.interval.confidence == pytest.approx(1 - 2 / 128)


def test_a_wide_scatter_leaves_it_open_and_says_what_it_could_have_seen() -> None:
    found = finding(pairs(0.9, 1.1, 1.0, 0.95, 1.05), 0.03)
    assert (found.decision, found.settled) == (Decision.UNDECIDED, False)
    assert found.visible > 0.08
    assert math.isinf(visible([0.1]))


def test_a_case_pays_for_the_others_and_for_its_other_looks() -> None:
    assert [Design(cases=cases).looks for cases in (0, 1, 4, 12, 40, 200)] == [
        (9, 13, 17), (9, 13, 17), (11, 15, 20), (13, 18, 24), (14, 19, 26), (17, 23, 30),
    ]  # fmt: skip
    assert Design(cases=40).level == pytest.approx(0.0075 / 120)
    assert all(2.0 ** -Design(cases=cases).looks[0] <= Design(cases=cases).level for cases in range(1, 400))
    assert (Design(most=5).looks, Design(most=5).last) == ((9,), 9)


def test_slower_is_found_at_a_look_and_nowhere_else() -> None:
    slow = pairs(*(1.05 + 0.001 * at for at in range(30)))
    found = [finding(slow.first(count), 0.03) for count in (8, 9, 10, 13)]
    assert [one.decision is Decision.SLOWER for one in found] == [False, True, False, True]
    assert found[1].p == pytest.approx(2**-9 * 0.01 / Design().level)
    many = finding(slow.first(13), 0.03, Design(cases=40))
    assert many.decision is Decision.UNDECIDED, "thirteen rounds cannot confirm one of forty"
    assert look(None, slow, 0.03, Design(cases=40)).rounds == 14


def test_a_shift_that_counts_but_is_no_surprise_convicts_nobody() -> None:
    wild = pairs(1.2, 1.3, 0.9, 1.3, 0.8, 1.2, 1.1, 0.9, 1.2)
    assert finding(wild, 0.03).decision is Decision.UNDECIDED


def test_a_surprise_that_does_not_count_convicts_nobody() -> None:
    assert finding(pairs(*(1.011 + 0.0001 * at for at in range(9))), 0.03).decision is Decision.NOT_SLOWER


def test_the_first_look_that_decides_stands() -> None:
    calm = pairs(*(1.0,) * 7, *(1.5,) * 23)
    found = look(None, calm, 0.03, Design())
    assert (found.decision, found.rounds) == (Decision.NOT_SLOWER, 7)
    assert look(found, calm, 0.03, Design()) is found
    late = look(None, pairs(1.0, 1.0, 1.07, 1.0, 1.0, 1.0, 1.0, 1.0), 0.03, Design())
    assert (late.decision, late.settled) == (Decision.UNDECIDED, False)
    step = look(late, pairs(1.0, 1.0, 1.07, *(1.0,) * 13), 0.03, Design())
    assert step == look(None, pairs(1.0, 1.0, 1.07, *(1.0,) * 13), 0.03, Design())
    assert (step.decision, step.rounds) == (Decision.NOT_SLOWER, 14)
    assert look(None, pairs(*(0.97, 1.09) * 15), 0.03, Design()).settled, "thirty rounds end it"


def test_what_looks_faster_has_the_rounds_that_show_it_and_stays_cleared() -> None:
    fast = [0.8 + 0.001 * at for at in range(30)]
    found = look(None, pairs(*fast[:8]), 0.03, Design())
    assert (found.decision, found.faster, found.settled) == (Decision.NOT_SLOWER, False, False)
    found = look(found, pairs(*fast), 0.03, Design())
    assert (found.decision, found.faster, found.settled, found.rounds) == (Decision.NOT_SLOWER, True, True, 9)
    torn = look(None, pairs(*fast[:8], 1.2), 0.03, Design())
    assert (torn.decision, torn.faster, torn.settled) == (Decision.NOT_SLOWER, False, True)


def groups(head: int, base: int, rounds: int = 30, times: float = 3.0) -> Pairs:
    def side(slow: int, first: int) -> tuple[float, ...]:
        return tuple((100 + at % 3 / 10) * (times if (7 * at + first) % rounds < slow else 1.0) for at in range(rounds))

    return Pairs(base=side(base, 7), head=side(head, 0), spread=0.01)


@pytest.mark.parametrize(
    ("head", "base", "slower"), [(10, 0, True), (8, 0, True), (5, 0, False), (10, 10, False), (0, 10, False)]
)
def test_more_slow_processes_than_the_base_has_are_a_regression(head: int, base: int, slower: bool) -> None:
    both = groups(head, base)
    assert slow_processes(both) == ((head, base) if head + base > 1 else None)
    found = look(None, both, 0.1, Design())
    (told,) = more_slow({"a": found}, {"a": both}, {"a": 0.1}, 0.01).values()
    assert (told.decision is Decision.SLOWER and told.slow == (head, base)) is slower
    assert slower or told == found


def test_cases_in_groups_share_the_chance_of_an_alarm_and_a_small_step_is_none() -> None:
    pairs_, counts = {"a": groups(8, 0)}, {"a": 0.1}
    found = {"a": look(None, pairs_["a"], 0.1, Design())}
    assert more_slow(found, pairs_, counts, 0.01)["a"].decision is Decision.SLOWER
    others = {name: groups(9, 9) for name in "bcdef"}
    many = {**found, **{name: look(None, one, 0.1, Design()) for name, one in others.items()}}
    shared = more_slow(many, pairs_ | others, dict.fromkeys("abcdef", 0.1), 0.01)
    assert shared["a"].decision is Decision.UNDECIDED
    small = {"a": groups(10, 0, times=1.2)}
    assert more_slow({"a": look(None, small["a"], 0.1, Design())}, small, counts, 0.01)["a"].slow is None


def test_processes_in_two_groups_are_unstable() -> None:
    assert finding(pairs(1.0, 1.11, 1.0, 1.11, 1.0), 0.03).unstable
    assert not finding(pairs(1.0, 1.11, 1.0, 1.0, 1.0), 0.03).unstable


def test_a_machine_that_takes_both_sides_along_is_not_unstable() -> None:
    along = (100.0, 100.0, 120.0, 120.0, 120.0)
    assert not finding(Pairs(base=along, head=tuple(t * 1.001 for t in along), spread=0.01), 0.03).unstable


def test_preempted_samples_do_not_speak_for_code_that_computes() -> None:
    calm, torn = samples((100.0,) * 10, (99.5,) * 10), samples((*(300.0,) * 9, 105.0), (*(105.0,) * 9, 104.5))
    assert computes([calm, torn, calm])
    found = pair_of([(capture(calm), capture(torn))] * 3)
    assert found.differences == pytest.approx([math.log(104.5 / 99.5)] * 3, rel=0.2)


def test_waiting_is_time_too() -> None:
    waits = samples((150.0,) * 10, (100.0,) * 10)
    assert not computes([waits])
    found = pair_of([(capture(samples((100.0,) * 10, (100.0,) * 10)), capture(waits))])
    assert found.head == (150.0,)
    assert not computes([samples((100.0,))])


def test_a_device_is_summed_up_by_its_median() -> None:
    assert time_of(samples((1.0, 5.0, 9.0), timer="events"), busy=False) == 5.0
    assert time_of(samples((9.0, 5.0, 1.0)), busy=False) == 1.0


def turns(*levels: float, timer: str = "host", slower: float = 1.0) -> Samples:
    """Ten turns of three samples; the clock of the machine changes between them."""
    times = tuple(slower * level * torn for level in levels for torn in (1.0, 1.01, 1.3))
    return replace(samples(times, times if timer == "host" else (), timer=timer), turns=(3,) * len(levels))


@pytest.mark.parametrize("timer", ["host", "events"])
def test_a_clock_that_changes_half_way_is_no_slowdown(timer: str) -> None:
    fast_first = turns(*(100.0,) * 6, *(140.0,) * 4, timer=timer)
    slow_soon = turns(*(100.0,) * 5, *(140.0,) * 5, timer=timer, slower=1.05)
    assert apart(fast_first, slow_soon, busy=timer == "host") == pytest.approx(1.05)
    found = pair_of([(capture(fast_first), capture(slow_soon))] * 3)
    assert found.differences == pytest.approx([math.log(1.05)] * 3)


def test_turns_are_asked_only_where_both_took_them() -> None:
    whole, cut = turns(*(100.0,) * 5), turns(*(110.0,) * 2)
    assert apart(whole, cut, busy=True) == pytest.approx(1.1)
    lost = replace(turns(*(120.0,) * 5), turns=(3, 3, 3))
    assert apart(whole, lost, busy=True) == pytest.approx(1.2)
