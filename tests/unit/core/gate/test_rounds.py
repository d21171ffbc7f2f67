"""The design of rounds, and which clock speaks for a process."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.rounds import (
    Design,
    Pairs,
    cleared,
    confirming_rounds,
    convicted,
    finding,
    served,
    suspected,
    visible,
)
from pytest_perfgate.core.judge.samples import apart, computes, pair_of, time_of
from pytest_perfgate.core.stats.inference import signed_rank
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


def test_five_even_rounds_acquit_and_bound_the_slowdown() -> None:
    found = finding(pairs(1.0, 1.01, 0.99, 1.0, 1.005), 0.03)
    assert found.decision is Decision.NOT_SLOWER
    assert found.interval.high == pytest.approx(0.01)
    assert found.interval.confidence == pytest.approx(1 - 2 / 32)


def test_a_wide_scatter_leaves_it_open_and_says_what_it_could_have_seen() -> None:
    found = finding(pairs(0.9, 1.1, 1.0, 0.95, 1.05), 0.03)
    assert found.decision is Decision.UNDECIDED
    assert found.visible > 0.08
    assert math.isinf(visible([0.1]))


def test_a_shift_that_counts_but_is_no_surprise_convicts_nobody() -> None:
    fresh = {"a": pairs(1.2, 1.3, 0.9, 1.3, 0.8, 1.2, 1.1, 0.9, 1.2, 1.3)}
    assert convicted(fresh, {"a": 0.03}, Design())["a"].decision is Decision.UNDECIDED


def test_a_surprise_that_does_not_count_convicts_nobody() -> None:
    fresh = {"a": pairs(*(1.01 + 0.0001 * at for at in range(10)))}
    assert convicted(fresh, {"a": 0.03}, Design())["a"].decision is Decision.NOT_SLOWER


def test_whom_the_rest_of_the_rounds_cannot_convict_is_spared_them() -> None:
    even = pairs(1.0, 1.011, 0.99, 1.0, 1.005, 1.029, 0.98)
    assert cleared(even, 0.03, 10, Design())
    assert not cleared(pairs(*[1.0] * 6), 0.03, 10, Design()), "six lie below by chance once in 64"
    assert not cleared(even, 0.03, 30, Design()), "twenty-three slow ones would confirm after all"
    assert not cleared(pairs(1.0, 1.01, 0.99, 1.0, 1.03, 1.0, 0.98), 0.03, 10, Design()), "one lies not below"
    beyond = pairs(*(1.02 + 0.001 * at for at in range(7)))
    assert not cleared(beyond, 0.03, 10, Design()), "all beyond a third of the limit"
    assert cleared(pairs(*[1.0] * 10), 0.03, 10, Design())
    level = signed_rank([-0.01] * 7 + [709.0, 710.0, 711.0])
    assert cleared(pairs(*[1.0] * 7), 0.03, 10, Design(alpha=level * 0.999))
    assert not cleared(pairs(*[1.0] * 7), 0.03, 10, Design(alpha=level)), "three slow ones confirm at just this level"
    assert len(served(pairs(*[1.0] * 10), 0.03, Design()).head) == 7
    assert len(served(pairs(1.0, 1.04, *[1.0] * 8), 0.03, Design()).head) == 10
    assert len(served(pairs(*[1.1] * 10), 0.03, Design()).base) == 10


def test_suspects_of_other_hearings_count_as_well() -> None:
    slow = {"a": pairs(*(1.05 + 0.001 * at for at in range(10)))}
    found = [convicted(slow, {"a": 0.03}, Design(), among)["a"] for among in (0, 1, 10, 11)]
    assert [one.decision for one in found] == [*[Decision.SLOWER] * 3, Decision.UNDECIDED]
    assert found[3].p == pytest.approx(11 * found[0].p)


def test_suspects_are_tried_together() -> None:
    slow = pairs(*(1.05 + 0.001 * at for at in range(10)))
    alone = convicted({"a": slow}, {"a": 0.03}, Design())["a"]
    many = convicted({name: slow for name in range(12)}, dict.fromkeys(range(12), 0.03), Design())
    assert alone.decision is Decision.SLOWER
    assert {f.decision for f in many.values()} == {Decision.UNDECIDED}
    assert confirming_rounds(12, Design()) == 11
    assert confirming_rounds(0, Design()) == confirming_rounds(10, Design()) == 10


def test_suspicion_is_the_shift_alone() -> None:
    found = {
        "a": finding(pairs(1.0, 1.2, 1.2, 0.9, 1.2, spread=0.5), 0.03),
        "b": finding(pairs(1.0, 1.0, 1.0, 1.0, 1.5), 0.03),
    }
    assert suspected(found, {"a": 0.03, "b": 0.03}) == ("a",)


def test_processes_in_two_groups_are_unstable() -> None:
    assert finding(pairs(1.0, 1.11, 1.0, 1.11, 1.0), 0.03).unstable
    assert not finding(pairs(1.0, 1.11, 1.0, 1.0, 1.0), 0.03).unstable


def test_a_machine_that_takes_both_sides_along_is_not_unstable() -> None:
    along = (100.0, 100.0, 120.0, 120.0, 120.0)
    assert not finding(Pairs(base=along, head=tuple(t * 1.001 for t in along), spread=0.01), 0.03).unstable


def test_two_states_are_no_suspicion_unless_every_round_is_beyond() -> None:
    states, slower = finding(pairs(1.0, 1.11, 1.11, 1.0, 1.11), 0.03), finding(pairs(1.1, 1.21, 1.21, 1.1, 1.21), 0.03)
    assert states.unstable
    assert slower.unstable
    assert suspected({"a": states, "b": slower}, {"a": 0.03, "b": 0.03}) == ("b",)


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
