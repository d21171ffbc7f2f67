"""Numbers that the pages promise, written out: each of them decides something, and none may move unnoticed."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from pytest_perfgate.core.judge.accepted_line import LIMIT
from pytest_perfgate.core.judge.calibration import LEAST as LEAST_TO_CALIBRATE
from pytest_perfgate.core.judge.calibration import Recorded, _suits, calibration
from pytest_perfgate.core.judge.context import JudgeContext, moved
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.rounds import SCREENING, Design, Pairs, clearing_rounds, finding, split, visible
from pytest_perfgate.core.judge.samples import apart, computes, of_level, pattern
from pytest_perfgate.core.limits.scope import nearest, proposal
from pytest_perfgate.model.measurement import Samples, Sitting, Stop
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.values import Work
from pytest_perfgate.model.verdict import Decision
from tests.unit.core.gate.bench import FLOORED, KEY, KINDS, accepted, limit, measured, samples, shown

CONTEXT = JudgeContext(kinds=KINDS, gates=40)


def pairs(*ratios: float, spread: float = 0.01) -> Pairs:
    return Pairs(base=(100.0,) * len(ratios), head=tuple(100.0 * r for r in ratios), spread=spread)


def ruled(text: str, time: float, *, context=CONTEXT, **fields):
    return judge(measured(time, **fields), [limit(text)], baseline=accepted(1e6), context=context).verdicts[0]


# units


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        *((f"time <= 1 {unit}", number) for unit, number in
          (("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("μs", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9))),
        *((f"bandwidth >= 1 {prefix}B/s", 10.0**power) for prefix, power in
          (("", 0), ("k", 3), ("K", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15))),
        *((f"bandwidth >= 1 {prefix}B/s", 1024.0**power) for prefix, power in
          (("Ki", 1), ("Mi", 2), ("Gi", 3), ("Ti", 4))),
        ("tflops >= 1 TFLOP/s", 1e12),
        ("tflops >= 1 FLOPS", 1.0),
        ("slowdown <= 1%", 0.01),
        ("intensity >= 1 FLOP/B", 1.0),
    ],
)  # fmt: skip
def test_a_unit_is_what_it_is_everywhere(text: str, inside: float) -> None:
    assert limit(text).bound == inside


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("1x", 1.0),
        ("1×", 1.0),
        ("1 °C", 1.0),
        ("1 C", 1.0),
        ("1 mW", 1e-3),
        ("1 W", 1.0),
        ("1 kW", 1e3),
        ("1 MHz", 1e6),
    ],
)
def test_a_counter_takes_every_unit(text: str, inside: float) -> None:
    assert limit(f"ncu(power) <= {text}").bound == inside


# rounds


def test_six_rounds_clear_nobody_seven_do_and_after_thirty_every_tenth() -> None:
    decided = {count: finding(pairs(*(1.0,) * count), 0.03).decision for count in (6, 7, 29, 30, 31, 39, 40)}
    assert {count for count, one in decided.items() if one is Decision.NOT_SLOWER} == {7, 29, 30, 40}


def test_a_clean_suite_alarms_in_one_of_a_hundred_and_a_look_clears_in_one_of_a_hundred() -> None:
    design = Design(cases=40)
    assert (design.alpha, design.most) == (0.01, 30)
    spent = design.level * 3 * 40 + 0.25 * design.alpha
    assert spent == pytest.approx(design.alpha)
    assert finding(pairs(*(1.0,) * 20), 0.03).interval.confidence >= 0.98


@pytest.mark.parametrize(("ratio", "slower"), [(1.0098, False), (1.0102, True)])
def test_the_test_rules_out_a_third_of_the_limit(ratio: float, slower: bool) -> None:
    assert (finding(pairs(*(ratio,) * 10), 0.03).p < 0.01) is slower


def test_what_is_surely_seen_passes_the_99_percent_point_with_a_power_of_80_percent() -> None:
    normal = NormalDist()
    errors = normal.inv_cdf(0.99) + normal.inv_cdf(0.8)
    assert visible([-0.01, 0.01] * 8) == pytest.approx(math.expm1(errors * 0.01 * math.sqrt(16 / 15) / 4), rel=0.005)


def test_what_is_slower_is_at_least_at_the_limit_and_as_sure_as_its_look_asks() -> None:
    at = pairs(*(1.5,) * 9)
    assert finding(at, 0.5).decision is Decision.SLOWER
    assert finding(at, 0.5 + 1e-9).decision is not Decision.SLOWER
    assert Design(alpha=4 * 2.0**-9).looks[0] == 9
    assert finding(at, 0.5, Design(alpha=4 * 2.0**-9)).decision is Decision.SLOWER
    assert finding(at, 0.5, Design(alpha=4 * 2.0**-9 - 1e-9)).decision is not Decision.SLOWER


def test_an_interval_acquits_below_the_limit_and_not_at_it() -> None:
    calm = pairs(1.0, 1.01, 0.99, 1.0, 1.005, 1.02, 1.0)
    high = finding(calm, 0.5).interval.high
    assert finding(calm, high).decision is Decision.UNDECIDED
    assert finding(calm, high + 1e-9).decision is Decision.NOT_SLOWER


def test_groups_are_more_than_three_quartile_ranges_apart_with_two_processes_each() -> None:
    assert split([1.0, 1.0, 1.29, 1.29], spread=0.1) is None
    assert split([1.0, 1.0, 1.31, 1.31], spread=0.1) == (1.0, 1.31)
    assert split([1.0, 1.31, 1.31], spread=0.1) is None


def test_three_turns_are_a_witness_and_two_are_not() -> None:
    def took(*times: float) -> Samples:
        return Samples(durations=times, timer="host", stop=Stop.COUNT, turns=(1,) * len(times))

    assert apart(took(10.0, 20.0, 30.0), took(15.0, 22.0, 36.0), busy=False) == pytest.approx(1.2)
    assert apart(took(10.0, 20.0), took(15.0, 24.0), busy=False) == pytest.approx(1.5)


@pytest.mark.parametrize(("wall", "alone"), [(1.019, True), (1.021, False)])
def test_a_call_that_computes_has_a_wall_time_within_two_percent(wall: float, alone: bool) -> None:
    assert computes([Samples(durations=(wall,), cpu=(1.0,), timer="host", stop=Stop.COUNT)]) is alone


# budgets, calibration


def test_no_case_is_worth_more_than_two_hundred_rounds_and_accepted_times_leave_three_fifths() -> None:
    assert clearing_rounds(shown(0.02, 9.0), 0.03, Design()) == 200
    assert pytest.approx(2 / 5) == SCREENING


def test_slowdowns_of_two_three_five_and_ten_percent_are_tried() -> None:
    found = calibration(Recorded(pairs={"a": pairs(*(1.0,) * 20)}), 0.03, suites=1)
    assert [by for by, _ in found.power] == [0.02, 0.03, 0.05, 0.1]
    assert found.seconds == 0.0


@pytest.mark.parametrize("usual", [0.01, 0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2])
def test_the_usual_limits(usual: float) -> None:
    """Each suits the test whose unchanged code moves by hardly less."""
    assert _suits(pairs(*(1 + 0.99 * usual,) * 20))[1] == usual


def test_no_more_than_a_fifth_is_ever_proposed_and_fifteen_rounds_are_the_least() -> None:
    assert _suits(pairs(*(1.5,) * 20))[1] == 0.2
    assert LEAST_TO_CALIBRATE == 15


# what counts


@pytest.mark.parametrize(("time", "said"), [(1e6 / 9.5, "faster than accepted"), (1e6 / 10.5, "ten times faster")])
def test_ten_times_faster_asks_whether_the_work_is_done(time: float, said: str) -> None:
    assert ruled("slowdown <= 3%", time).sentence.startswith(said)


@pytest.mark.parametrize(
    ("part", "outcome"),
    [(1.04, Outcome.PASSED), (1.06, Outcome.UNDECIDED), (1.99, Outcome.UNDECIDED), (2.01, Outcome.INVALID)],
)
def test_a_ceiling_is_doubted_from_five_percent_beyond_it_on(part: float, outcome: Outcome) -> None:
    work = Work(flops=part * 1e9, bytes=1.0, dtype="bf16")
    assert ruled("mfu_ceiling >= 50%", 1e6, work=work).outcome is outcome


def test_a_doubled_time_is_seen_however_short_the_call() -> None:
    baseline = accepted(10.0)
    for time, outcome in ((14.0, Outcome.PASSED), (20.0, Outcome.REGRESSED)):
        given = judge(measured(time), [limit("slowdown <= 3%")], baseline=baseline, context=replace(FLOORED, gates=1))
        assert given.verdicts[0].outcome is outcome


def test_two_microseconds_are_nothing_by_themselves() -> None:
    for time, outcome in ((11.8e3, Outcome.PASSED), (12.2e3, Outcome.SUSPECT)):
        given = judge(measured(time), [limit("slowdown <= 3%")], baseline=accepted(10e3), context=FLOORED)
        assert given.verdicts[0].outcome is outcome


def test_sittings_within_fifteen_percent_are_of_one_level() -> None:
    edge = math.exp(0.15)
    assert of_level(edge * 0.999, 1.0)
    assert of_level(1.001 / edge, 1.0)
    assert not of_level(edge * 1.001, 1.0)


def test_an_anchor_allows_five_percent() -> None:
    assert LIMIT == 5 / 100


@pytest.mark.parametrize(("now", "told"), [(1.019e9, 0), (1.021e9, 1), (0.981e9, 0), (0.979e9, 1)])
def test_clocks_within_two_percent_are_the_same(now: float, told: int) -> None:
    line = accepted(1e6)
    then = Sitting(key=KEY, device=line.device, time=1e6, when="", commit=line.commit, clock_hz=1e9)
    here = measured(0, processes=(samples(1e6, clock_hz=(now,)),))
    assert len([name for name, _, _ in moved(line, here, [then]) if name == "clock"]) == told


# poison


@pytest.mark.parametrize(("turn", "sign"), [(0, -1), (1, 1)])
def test_poison_is_near_one_in_the_formats_of_kernels(turn: int, sign: int) -> None:
    poison = np.full(4, pattern(turn), dtype=np.uint8)
    half, single = poison[:2].view(np.float16)[0], poison.view(np.float32)[0]
    brain = (poison[:2].view(np.uint16).astype(np.uint32) << 16).view(np.float32)[0]
    for number in (half, single, brain):
        assert math.copysign(1, number) == sign
        assert 0.3 < abs(number) < 1.9


# words


def test_three_words_are_proposed_and_twelve_shown() -> None:
    words = [f"kernel{at:02}" for at in range(13)]
    assert len(nearest("kernel", words)) == 3
    assert proposal("zzz", words, all_of="there are").endswith("kernel11 and 1 more")
    assert proposal("zzz", words[:12], all_of="there are").endswith("kernel10, kernel11")
