"""Tests of core/judge/rounds."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random
from statistics import NormalDist, median

import pytest

from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.rounds import (
    FUTILE,
    IN_CI,
    MARGIN,
    SURELY,
    TOO_WIDE_FROM,
    Design,
    Pairs,
    all_looks,
    clearing_rounds,
    further_rounds,
    more_slow,
    one_look,
    slow_processes,
    slower_rounds,
    unstable,
    visible,
)
from pytest_perfgate.core.judge.samples import computes, head_ratio, pair_of, time_of
from pytest_perfgate.core.render.words import span
from pytest_perfgate.core.stats.inference import scatter_of, signed_rank
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.measurement import Identity, Samples, Stop
from pytest_perfgate.model.plan import LEAST, CaseKey, Decision, Outcome
from pytest_perfgate.model.protocol import Capture
from pytest_perfgate.model.verdict import Paired
from tests.unit.core.judge.bench import CONTEXT, limit, measured, pairs, shown
from tests.unit.core.judge.paired_builds import PAIRED_CONTEXT, arms, paired_verdict


def turns_of(wall: tuple[float, ...], cpu: tuple[float, ...] = (), timer: str = "host") -> Samples:
    return Samples(durations=wall, cpu=cpu, timer=timer, stop=Stop.COUNT)


def capture(one: Samples) -> Capture:
    return Capture(
        key=CaseKey(nodeid="t"),
        samples=(one,),
        device=Device(key="h", name="h", kind="host"),
        identity=Identity(device="h"),
    )


def scattered(scatter: float, shift: float = 0.0) -> Pairs:
    """Return thirty rounds whose logarithms are normal, in an order that mixes them."""
    ranks = [n * 7 % 30 for n in range(30)]
    ratios = [math.exp(shift + scatter * NormalDist().inv_cdf((rank + 0.5) / 30)) for rank in ranks]
    return replace(pairs(*ratios), spread=10.0)  # as wide within a process, so that there are no groups


def test_a_case_that_no_round_in_reach_can_decide_is_given_up_early() -> None:
    for scatter, bound, rounds in ((1.0, 0.03, 17), (1.0, 0.0, 17), (0.3, 0.03, 17), (0.2, 0.05, 30)):
        result = all_looks(None, scattered(scatter), bound, Design())
        assert (result.decision, result.settled, result.rounds) == (Decision.UNDECIDED, True, rounds)


def test_the_fourteenth_round_is_the_first_that_gives_up() -> None:
    """docs/verdicts.md says so, and the rates in tests/properties/test_round_rates.py are drawn with it."""
    even = replace(pairs(*(3.0, 1 / 3) * 15), spread=10.0)  # no shift in any even number of rounds
    assert all_looks(None, even, 0.03, Design()).rounds == TOO_WIDE_FROM == 14


def test_a_large_shift_and_groups_are_not_given_up() -> None:
    assert all_looks(None, scattered(1.0, 3.0), 0.03, Design()).decision is Decision.SLOWER
    grouped = all_looks(None, pairs(*(1.0, 1.01, 3.0) * 10), 0.03, Design())
    assert (grouped.unstable, grouped.rounds) == (True, 30)


def test_seven_even_rounds_clear_and_bound_the_slowdown() -> None:
    result = one_look(pairs(1.0, 1.01, 0.99, 1.0, 1.005, 1.0, 0.995), 0.03)
    assert (result.decision, result.settled, result.rounds) == (Decision.NOT_SLOWER, True, 7)
    assert result.interval.high == pytest.approx(0.01)
    assert result.interval.confidence == pytest.approx(1 - 2 / 128)


def test_a_wide_scatter_leaves_it_open_and_says_what_it_could_have_seen() -> None:
    result = one_look(pairs(0.9, 1.1, 1.0, 0.95, 1.05), 0.03)
    assert (result.decision, result.settled) == (Decision.UNDECIDED, False)
    assert result.visible > 0.08
    assert math.isinf(visible([0.1]))


def test_what_is_cleared_would_have_shown_its_limit_whatever_a_far_round_does_to_the_scatter() -> None:
    ratios = [1.0, 1.01, 0.99, 1.0, 1.005, 1.0, 0.995, 0.6]
    assert visible([math.log(ratio) for ratio in ratios]) > 0.1
    result = one_look(pairs(*ratios), 0.03)
    assert (result.decision, result.visible) == (Decision.NOT_SLOWER, 0.03)
    faster = pairs(*(0.9 * ratio for ratio in ratios))
    assert all_looks(None, faster, 0.03, Design()).visible == 0.03, "it has more rounds for its improvement"


def test_a_case_pays_for_the_others_and_for_its_other_looks() -> None:
    assert [Design(cases=cases).looks for cases in (0, 1, 4, 12, 40, 200)] == [
        (9, 17, 30), (9, 17, 30), (11, 19, 30), (13, 20, 30), (14, 21, 30), (17, 23, 30),
    ]  # fmt: skip
    assert Design(cases=40).level == pytest.approx(0.0075 / 120)
    assert all(2.0 ** -Design(cases=cases).looks[0] <= Design(cases=cases).level for cases in range(1, 400))
    assert (Design(most=5).looks, Design(most=5).last) == ((9,), 9)
    assert Design(most=100, cases=40).looks == (14, 38, 100), "the last round of all is a look"


def test_slower_is_found_at_a_look_and_nowhere_else() -> None:
    slow = pairs(*(1.05 + 0.001 * at for at in range(30)))
    findings = [one_look(slow.first(count), 0.03) for count in (8, 9, 10, 17)]
    assert [one.decision is Decision.SLOWER for one in findings] == [False, True, False, True]
    assert findings[1].p == pytest.approx(2**-9 * 0.01 / Design().level)
    many = one_look(slow.first(13), 0.03, Design(cases=40))
    assert many.decision is Decision.UNDECIDED, "thirteen rounds cannot confirm one of forty"
    assert all_looks(None, slow, 0.03, Design(cases=40)).rounds == 14


def test_a_shift_that_counts_but_is_no_surprise_confirms_nothing() -> None:
    wild = pairs(1.2, 1.3, 0.9, 1.3, 0.8, 1.2, 1.1, 0.9, 1.2)
    assert one_look(wild, 0.03).decision is Decision.UNDECIDED


def test_a_surprise_that_does_not_count_confirms_nothing() -> None:
    assert one_look(pairs(*(1.011 + 0.0001 * at for at in range(9))), 0.03).decision is Decision.NOT_SLOWER


def test_the_first_look_that_decides_stands() -> None:
    calm = pairs(*(1.0,) * 7, *(1.5,) * 23)
    result = all_looks(None, calm, 0.03, Design())
    assert (result.decision, result.rounds) == (Decision.NOT_SLOWER, 7)
    assert all_looks(result, calm, 0.03, Design()) is result
    late = all_looks(None, pairs(1.0, 1.0, 1.07, 1.0, 1.0, 1.0, 1.0, 1.0), 0.03, Design())
    assert (late.decision, late.settled) == (Decision.UNDECIDED, False)
    step = all_looks(late, pairs(1.0, 1.0, 1.07, *(1.0,) * 13), 0.03, Design())
    assert step == all_looks(None, pairs(1.0, 1.0, 1.07, *(1.0,) * 13), 0.03, Design())
    assert (step.decision, step.rounds) == (Decision.NOT_SLOWER, 14)
    assert all_looks(None, pairs(*(0.97, 1.09) * 15), 0.03, Design()).settled, "thirty rounds end it"


def test_what_looks_faster_has_the_rounds_that_show_it_and_stays_cleared() -> None:
    fast = [0.8 + 0.001 * at for at in range(30)]
    result = all_looks(None, pairs(*fast[:8]), 0.03, Design())
    assert (result.decision, result.faster, result.settled) == (Decision.NOT_SLOWER, False, False)
    result = all_looks(result, pairs(*fast), 0.03, Design())
    assert (result.decision, result.faster, result.settled, result.rounds) == (Decision.NOT_SLOWER, True, True, 9)
    for_a_mean = all_looks(None, pairs(*fast), 0.03, Design(least=12))
    assert (for_a_mean.faster, for_a_mean.rounds) == (True, 12), "rounds for a mean take nothing back"
    torn = all_looks(None, pairs(*fast[:8], 1.2), 0.03, Design())
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
    result = all_looks(None, both, 0.1, Design())
    (decided,) = more_slow({"a": result}, {"a": both}, {"a": 0.1}, 0.01).values()
    assert (decided.decision is Decision.SLOWER and decided.slow == (head, base)) is slower
    assert slower or decided == result


def test_a_few_much_slower_processes_fail_their_case_though_the_median_shift_is_small() -> None:
    """The verdict said that the base has as many, of eight slow processes against none."""
    both, counts = groups(8, 0), {"a": 0.1}
    result = all_looks(None, both, 0.1, Design())
    (slow,) = more_slow({"a": result}, {"a": both}, counts, 0.01).values()
    assert result.shift < 0.1 < slow.shift == pytest.approx(math.exp(math.fsum(both.differences) / 30) - 1)
    evidence = Paired(
        decision=slow.decision, differences=both.differences, shift=slow.shift, interval=slow.interval,
        base="a1b2c3d", unstable=slow.unstable, slow=slow.slow,
    )  # fmt: skip
    for one in (evidence, replace(evidence, revision=True)):
        assert paired_verdict(1.2e6, one, "slowdown <= 10%").outcome is Outcome.REGRESSED


def busy(above: int, below: int = 0, rounds: int = 60) -> Pairs:
    """Rounds on a machine whose neighbours make both sides up to four times as slow, some of them far apart."""
    slow = [1.0 + 3 * (at * 7 % rounds) / rounds for at in range(rounds)]
    place = [at * 37 % rounds for at in range(rounds)]
    by = [3.0 if at < above else 1 / 3 if at < above + below else 1.0 + 0.001 * (at % 3) for at in place]
    base = tuple(100 * times for times in slow)
    return Pairs(base=base, head=tuple(time * apart for time, apart in zip(base, by)), spread=0.6)


@pytest.mark.parametrize(("above", "below", "slower"), [(20, 0, True), (10, 1, False), (10, 10, False), (0, 20, False)])
def test_far_rounds_are_found_where_neighbours_blur_the_groups(above: int, below: int, slower: bool) -> None:
    both = busy(above, below)
    assert slow_processes(both) is None
    result = all_looks(None, both, 0.1, Design(most=60))
    (decided,) = more_slow({"a": result}, {"a": both}, {"a": 0.1}, 0.01).values()
    assert (decided.decision is Decision.SLOWER and decided.slow == (above, below)) is slower
    assert slower or decided == result


def test_cases_in_groups_share_the_chance_of_an_alarm_and_a_small_step_is_none() -> None:
    pairs_, counts = {"a": groups(8, 0)}, {"a": 0.1}
    findings = {"a": all_looks(None, pairs_["a"], 0.1, Design())}
    assert more_slow(findings, pairs_, counts, 0.01)["a"].decision is Decision.SLOWER
    others = {name: groups(9, 9) for name in "bcdef"}
    many = {**findings, **{name: all_looks(None, one, 0.1, Design()) for name, one in others.items()}}
    shared = more_slow(many, pairs_ | others, dict.fromkeys("abcdef", 0.1), 0.01)
    assert shared["a"].decision is Decision.UNDECIDED
    small = {"a": groups(10, 0, times=1.2)}
    assert more_slow({"a": all_looks(None, small["a"], 0.1, Design())}, small, counts, 0.01)["a"].slow is None


def test_processes_in_two_groups_are_unstable() -> None:
    assert one_look(pairs(1.0, 1.11, 1.0, 1.11, 1.0), 0.03).unstable
    assert not one_look(pairs(1.0, 1.11, 1.0, 1.0, 1.0), 0.03).unstable


def test_a_machine_that_takes_both_sides_along_is_not_unstable() -> None:
    along = (100.0, 100.0, 120.0, 120.0, 120.0)
    assert not one_look(Pairs(base=along, head=tuple(t * 1.001 for t in along), spread=0.01), 0.03).unstable


def test_preempted_samples_do_not_speak_for_code_that_computes() -> None:
    calm, torn = turns_of((100.0,) * 10, (99.5,) * 10), turns_of((*(300.0,) * 9, 105.0), (*(105.0,) * 9, 104.5))
    assert computes([calm, torn, calm])
    assert not computes([replace(one, helpers=0.05) for one in (calm, torn, calm)]), "others worked for the thread"
    sides = pair_of([(capture(calm), capture(torn))] * 3)
    assert sides.differences == pytest.approx([math.log(104.5 / 99.5)] * 3, rel=0.2)


def test_waiting_is_time_too() -> None:
    waits = turns_of((150.0,) * 10, (100.0,) * 10)
    assert not computes([waits])
    sides = pair_of([(capture(turns_of((100.0,) * 10, (100.0,) * 10)), capture(waits))])
    assert sides.head == (150.0,)
    assert not computes([turns_of((100.0,))])


def half_waiting(ns: float) -> Samples:
    """Every second call waits so long; the others only compute, so the call counts as one that computes."""
    times = tuple(100.0 + (ns if number % 2 else 0.0) for number in range(10))
    return replace(turns_of(times, (100.0,) * 10), blocked=ns / 2)


def test_waits_of_some_calls_alone_are_time_where_one_build_has_them_in_every_round() -> None:
    """By CPU time, and by the least wall time, a mean call of twice the time was as fast as before."""
    base, head = half_waiting(0.0), half_waiting(200.0)
    assert computes([head])
    assert pair_of([(capture(base), capture(head))] * 9).differences == pytest.approx([math.log(2.0)] * 9)
    assert pair_of([(capture(head), capture(base))] * 9).differences == pytest.approx([math.log(0.5)] * 9)
    alike = [(capture(head), capture(head))] * 8
    assert pair_of([*alike, (capture(base), capture(head))]).differences == (0.0,) * 9
    small = half_waiting(8.0)
    assert pair_of([(capture(base), capture(small))] * 9).differences == (0.0,) * 9
    unknown = replace(head, blocked=None)
    assert pair_of([(capture(base), capture(unknown))] * 9).differences == (0.0,) * 9


def test_a_head_that_waits_less_by_chance_in_the_first_rounds_is_not_cleared() -> None:
    """Random waits are shorter in all of seven rounds once in 128 cases: a head slower by its limit was cleared then."""
    base, head = half_waiting(200.0), half_waiting(100.0)
    slower = replace(head, **{name: tuple(1.1 * ns for ns in getattr(head, name)) for name in ("durations", "cpu")})
    rounds = [(capture(base), capture(slower))] * 9
    assert one_look(pair_of(rounds[:7]), 0.05).decision is not Decision.NOT_SLOWER
    assert pair_of(rounds[:8]).differences == pytest.approx([math.log(1.1)] * 8)
    assert pair_of(rounds).differences[0] < 0, "in nine rounds it is not chance"
    more = pair_of([(capture(head), capture(base))] * 7)
    assert more.differences[0] > 0, "a head that waits more is not cleared by its CPU time"


def test_a_device_is_summed_up_by_its_median() -> None:
    assert time_of(turns_of((1.0, 5.0, 9.0), timer="events"), by_cpu=False) == 5.0
    assert time_of(turns_of((9.0, 5.0, 1.0)), by_cpu=False) == 1.0


def turns(*levels: float, timer: str = "host", slower: float = 1.0) -> Samples:
    """Ten turns of three samples; the clock of the machine changes between them."""
    times = tuple(slower * level * torn for level in levels for torn in (1.0, 1.01, 1.3))
    return replace(turns_of(times, times if timer == "host" else (), timer=timer), turns=(3,) * len(levels))


@pytest.mark.parametrize("timer", ["host", "events"])
def test_a_clock_that_changes_half_way_is_no_slowdown(timer: str) -> None:
    fast_first = turns(*(100.0,) * 6, *(140.0,) * 4, timer=timer)
    slow_soon = turns(*(100.0,) * 5, *(140.0,) * 5, timer=timer, slower=1.05)
    assert head_ratio(fast_first, slow_soon, by_cpu=timer == "host") == pytest.approx(1.05)
    sides = pair_of([(capture(fast_first), capture(slow_soon))] * 3)
    assert sides.differences == pytest.approx([math.log(1.05)] * 3)


def test_turns_are_asked_only_where_both_took_them() -> None:
    whole, cut = turns(*(100.0,) * 5), turns(*(110.0,) * 2)
    assert head_ratio(whole, cut, by_cpu=True) == pytest.approx(1.1)
    lost = replace(turns(*(120.0,) * 5), turns=(3, 3, 3))
    assert head_ratio(whole, lost, by_cpu=True) == pytest.approx(1.2)


def test_a_calm_suspect_needs_the_rounds_of_the_design_and_a_wild_one_more() -> None:
    assert slower_rounds(replace(shown(0.06, 0.002), rounds=3), 0.03, Design()) == 9
    assert slower_rounds(replace(shown(0.06, 0.04), rounds=3), 0.03, Design()) == 17, "the looks are fixed"
    wild = slower_rounds(shown(0.06, 0.1), 0.03, Design())
    assert 30 < wild < FUTILE
    assert slower_rounds(shown(0.06, 0.1), 0.03, Design(cases=8)) > wild
    assert slower_rounds(shown(0.01, 0.06), 0.03, Design()) == FUTILE


def test_the_nearer_to_the_limit_the_more_rounds_clear() -> None:
    near, far = (clearing_rounds(shown(by, 0.02), 0.03) for by in (0.02, 0.0))
    assert FUTILE > near > far >= 7
    assert clearing_rounds(shown(0.04, 0.02), 0.03) == FUTILE
    assert clearing_rounds(shown(0.0, 0.0), 0.03) == 7


def test_what_is_wanted_counts_the_rounds_that_were_played() -> None:
    open_ = replace(shown(0.02, 0.02), decision=Decision.UNDECIDED, rounds=8)
    assert further_rounds(open_, 0.03, Design()) == clearing_rounds(open_, 0.03) - 8
    assert further_rounds(replace(open_, scatter=0.0, rounds=3), 0.03, Design()) == 4
    assert further_rounds(replace(open_, shift=0.06, scatter=0.0, rounds=3), 0.03, Design()) == 6
    slow = replace(open_, shift=0.06, rounds=9)
    assert further_rounds(slow, 0.03, Design()) == 17 - 9
    assert further_rounds(replace(slow, rounds=30), 0.03, Design()) == 1
    assert further_rounds(replace(slow, rounds=17), 0.03, Design()) == 30 - 17
    cleared = replace(open_, decision=Decision.NOT_SLOWER)
    assert further_rounds(cleared, 0.03, Design()) == 1, "whether it is faster is shown in nine"


def test_spans_are_said_as_people_say_them() -> None:
    assert [span(s) for s in (0.3, 12.4, 70, 3600, 7500)] == [
        "under 1 s",
        "12 s",
        "1 min 10 s",
        "1 h 0 min",
        "2 h 5 min",
    ]


def ruled(time: float, paired: Paired, **fields):
    report = judge(measured(time), [limit("slowdown <= 3%")], paired=paired, context=PAIRED_CONTEXT, **fields)
    return report.verdicts[0]


def test_seven_rounds_are_enough_to_clear_and_six_are_not() -> None:
    against = {"baseline": None, "paired": arms(0.0, -0.01, 0.01, LEAST, revision=True)}
    assert ruled(1e6, **against).outcome is Outcome.PASSED
    few = {"baseline": None, "paired": arms(0.0, -0.01, 0.01, LEAST - 1, revision=True)}
    assert ruled(1e6, **few).sentence.startswith("the budget ended after 6 of at least 7 rounds")
    wide = {"baseline": None, "paired": arms(0.0, -0.1, 0.1, LEAST, revision=True)}
    assert "of 7 rounds" in ruled(1e6, **wide).sentence
    assert "spans the limit" in ruled(1e6, **wide).sentence


def test_what_rounds_show_is_counted_from_their_scatter() -> None:
    assert visible([0.0, 0.02]) == pytest.approx(math.expm1(SURELY * 0.02 / math.sqrt(2) / math.sqrt(2)))
    assert visible([]) == math.inf
    ratios = (1.02, 1.005, 1.03, 0.99, 1.012, 1.025)
    result = one_look(pairs(*ratios), 0.03)
    logs = [math.log(r) for r in ratios]
    shares = 3 / 0.75
    assert result.p == pytest.approx(min(1.0, shares * signed_rank([x - MARGIN * math.log1p(0.03) for x in logs])))
    assert one_look(pairs(*ratios), -0.5).p == pytest.approx(shares * signed_rank(logs))
    assert one_look(pairs(*ratios), -0.5, Design(cases=5)).p == pytest.approx(5 * shares * signed_rank(logs))
    assert result.scatter == pytest.approx(scatter_of(logs))


def test_a_few_far_rounds_do_not_make_a_case_seem_hopeless() -> None:
    """One round in seven is far off, as beside a busy program: twenty rounds decide, where 190 were reckoned."""
    draw, left = Random(3), []
    for _ in range(40):
        steps = [draw.gauss(0, 0.01) + (draw.random() < 0.15) * draw.uniform(-1.5, 1.5) for _ in range(60)]
        ratios = [math.exp(step) for step in steps]
        if (early := one_look(pairs(*ratios[:8]), 0.05)).decision is Decision.UNDECIDED:
            decided = all_looks(None, pairs(*ratios), 0.05, Design(most=60)).rounds
            left.append((further_rounds(early, 0.05, Design(most=60)), decided - 8))
    assert len(left) > 10
    assert median(reckoned for reckoned, _ in left) < 30
    assert median(took for _, took in left) < 30


def test_sides_that_drift_together_are_steady_however_fast_one_is() -> None:
    base = (100.0, 100.0, 200.0, 200.0)
    assert not unstable(Pairs(base=base, head=tuple(1.5 * time for time in base), spread=0.01))
    assert unstable(Pairs(base=base, head=(200.0, 100.0, 100.0, 200.0), spread=0.01))


def test_rounds_grow_with_the_square_of_the_scatter() -> None:
    gap = math.log1p(0.06) - MARGIN * math.log1p(0.03)
    expected = math.ceil(((NormalDist().inv_cdf(1 - 0.0025) + 0.8416212) * 0.1 / gap) ** 2)
    assert slower_rounds(shown(0.06, 0.1), 0.03, Design()) == expected
    assert clearing_rounds(shown(0.03, 0.02), 0.03) == FUTILE


def test_many_processes_that_scatter_on_one_level_are_no_groups() -> None:
    """Their interval is narrower than from the fastest to the slowest."""
    shape = tuple(1 + 0.02 * (n - 9.5) / 19 for n in range(20))
    report = judge(measured(1e6, shape=shape), [limit("time <= 1.005ms")], baseline=None, context=CONTEXT)
    assert report.verdicts[0].outcome is Outcome.PASSED


def test_with_processes_in_groups_either_group_may_be_the_truth() -> None:
    report = judge(
        measured(1e6, shape=(1.0,) * 10 + (1.5,) * 10), [limit("time <= 1.4ms")], baseline=None, context=CONTEXT
    )
    (time,) = report.measurement.metrics.find("time")
    assert (time.low, time.high) == (1e6, 1.5e6)
    assert report.verdicts[0].outcome is Outcome.UNSTABLE


def test_six_rounds_clear_nobody_seven_do_and_after_thirty_every_tenth() -> None:
    decided = {count: one_look(pairs(*(1.0,) * count), 0.03).decision for count in (6, 7, 29, 30, 31, 39, 40)}
    assert {count for count, one in decided.items() if one is Decision.NOT_SLOWER} == {7, 29, 30, 40}


def test_a_cleared_case_goes_on_to_the_rounds_that_its_mean_needs() -> None:
    """Two means share the error rate: seven rounds, after which each case was cleared, could confirm neither."""
    for count, least, settled in ((7, 0, True), (7, 7, True), (7, 8, False), (8, 8, True)):
        result = all_looks(None, pairs(*(1.2,) * count), 0.5, Design(least=least))
        assert (result.decision, result.settled) == (Decision.NOT_SLOWER, settled)
    assert further_rounds(all_looks(None, pairs(*(1.2,) * 7), 0.5, Design(least=12)), 0.5, Design(least=12)) == 5


def test_a_clean_suite_alarms_in_one_of_a_hundred_and_a_look_clears_in_one_of_a_hundred() -> None:
    design = Design(cases=40)
    assert (design.alpha, design.most) == (0.01, 30)
    spent = design.level * 3 * 40 + 0.25 * design.alpha
    assert spent == pytest.approx(design.alpha)
    assert one_look(pairs(*(1.0,) * 20), 0.03).interval.confidence >= 0.98


@pytest.mark.parametrize(("ratio", "slower"), [(1.0098, False), (1.0102, True)])
def test_the_test_rules_out_a_third_of_the_limit(ratio: float, slower: bool) -> None:
    assert (one_look(pairs(*(ratio,) * 10), 0.03).p < 0.01) is slower


def test_what_is_surely_seen_passes_the_99_percent_point_with_a_power_of_80_percent() -> None:
    normal = NormalDist()
    errors = normal.inv_cdf(0.99) + normal.inv_cdf(0.8)
    assert visible([-0.01, 0.01] * 8) == pytest.approx(math.expm1(errors * 0.01 * math.sqrt(16 / 15) / 4), rel=0.005)


def test_what_is_slower_is_at_least_at_the_limit_and_as_sure_as_its_look_asks() -> None:
    at = pairs(*(1.5,) * 9)
    assert one_look(at, 0.5).decision is Decision.SLOWER
    assert one_look(at, 0.5 + 1e-9).decision is not Decision.SLOWER
    assert Design(alpha=4 * 2.0**-9).looks[0] == 9
    assert one_look(at, 0.5, Design(alpha=4 * 2.0**-9)).decision is Decision.SLOWER
    assert one_look(at, 0.5, Design(alpha=4 * 2.0**-9 - 1e-9)).decision is not Decision.SLOWER


def test_an_interval_clears_below_the_limit_and_not_at_it() -> None:
    calm = pairs(1.0, 1.01, 0.99, 1.0, 1.005, 1.02, 1.0)
    high = one_look(calm, 0.5).interval.high
    assert one_look(calm, high).decision is Decision.UNDECIDED
    assert one_look(calm, high + 1e-9).decision is Decision.NOT_SLOWER


@pytest.mark.parametrize(
    ("ratio", "rounds", "faster", "settled"),
    [
        (0.8, 8, False, False),
        (0.8, 9, True, True),
        (0.8, 10, False, True),
        (0.99, 9, False, True),
        (0.99, 7, False, True),
        (0.6, 7, False, False),
    ],
)
def test_a_faster_case_is_settled_by_the_look_that_can_show_it(
    ratio: float, rounds: int, *, faster: bool, settled: bool
) -> None:
    one = one_look(pairs(*(ratio + 0.0001 * at for at in range(rounds))), 0.03)
    assert (one.faster, one.settled) == (faster, settled)


def test_a_mean_that_is_ahead_by_chance_is_not_faster() -> None:
    assert not one_look(pairs(0.5, 0.9, 1.1, 0.6, 1.2, 0.9, 0.7, 1.1, 0.8), 0.03).faster


@pytest.mark.parametrize(("alone", "slower"), [(Decision.UNDECIDED, True), (Decision.NOT_SLOWER, False)])
def test_slow_processes_decide_what_rounds_left_open(alone: Decision, *, slower: bool) -> None:
    """Eight of thirty against none: one in 437 by chance, which a quarter of the false-alarm rate pays for."""
    both = groups(8, 0)
    before = replace(one_look(both, 0.1), decision=alone)
    (after,) = more_slow({"a": before}, {"a": both}, {"a": 0.1}, 0.01).values()
    assert (after.decision is Decision.SLOWER) is slower
    assert slower is (after.p == pytest.approx(4 * 0.0022875, rel=1e-4))


@pytest.mark.parametrize(
    ("rounds", "shift", "scatter", "look_at"),
    [
        (8, 0.06, 0.001, 9),
        (9, 0.06, 0.001, 17),
        (17, 0.06, 0.001, 30),
        (30, 0.06, 0.001, 31),
        (8, 0.03, 0.01, 9),
        (8, 0.06, 0.05, 17),
        (30, 0.06, 0.1, 57),
        (8, 0.06, 0.05407, 17),
    ],
)
def test_a_slower_case_is_found_at_the_next_look_that_its_scatter_allows(
    rounds: int, shift: float, scatter: float, look_at: int
) -> None:
    """3.65 standard errors: 2.81 for one chance in 400, and 0.84 for a power of four fifths."""
    one = replace(shown(shift, scatter), rounds=rounds)
    assert slower_rounds(one, 0.03, Design()) == look_at
    assert further_rounds(one, 0.03, Design()) == look_at - rounds


@pytest.mark.parametrize(("rounds", "more"), [(7, 2), (9, 0), (12, 0)])
def test_a_cleared_case_wants_the_rounds_to_the_first_look(rounds: int, more: int) -> None:
    cleared = replace(shown(0.0), rounds=rounds, decision=Decision.NOT_SLOWER)
    assert further_rounds(cleared, 0.03, Design()) == more


def test_no_case_is_worth_more_than_two_hundred_rounds() -> None:
    assert clearing_rounds(shown(0.02, 9.0), 0.03) == 200


def test_a_cleared_case_that_no_longer_seems_faster_gets_no_further_round() -> None:
    ratios = (0.965, 0.965, 0.966, 0.975, 0.976, 0.977, 0.967, 1.03)
    seven = all_looks(None, pairs(*ratios[:7]), 0.03, Design())
    eight = all_looks(seven, pairs(*ratios), 0.03, Design())
    assert [(one.decision, one.settled, one.rounds) for one in (seven, eight)] == [
        (Decision.NOT_SLOWER, False, 7), (Decision.NOT_SLOWER, True, 8),
    ]  # fmt: skip


def test_in_ci_sixty_rounds_are_the_last() -> None:
    assert IN_CI == 60
