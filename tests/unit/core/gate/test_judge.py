from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.policy import CI
from pytest_perfgate.core.judge.suite import Suite, judge_suite
from pytest_perfgate.core.judge.suspects import suspects, uncommitted
from pytest_perfgate.core.render.block import render_block
from pytest_perfgate.model.measurement import Identity, Stop
from pytest_perfgate.model.plan import Effect, Mode, Outcome
from tests.unit.core.gate.bench import (
    CONTEXT,
    FLOORED,
    GPU,
    HOST,
    KEY,
    SHAPE,
    SLOWDOWN,
    accepted,
    limit,
    measured,
    outcome,
    samples,
    verdict,
)

# against the accepted time


def test_the_same_time_passes_and_says_what_it_could_have_seen() -> None:
    found = verdict(1e6)
    assert (found.outcome, found.effect) == (Outcome.PASSED, Effect.PASS)
    assert found.visible == pytest.approx(0.03)
    assert found.baseline.commit == "a1b2c3d4e5"
    assert found.interval == found.metric.interval


def test_a_suspect_is_convicted_only_beyond_chance() -> None:
    assert outcome(1.1e6) is Outcome.SUSPECT
    assert outcome(1.75e6) is Outcome.SUSPECT
    doubled = verdict(2e6)
    assert (doubled.outcome, doubled.effect) == (Outcome.REGRESSED, Effect.FAIL)
    assert "after one run chance explains up to +79.1 %" in doubled.sentence
    assert doubled.next == (f"perfgate accept '{KEY}' --reason \"...\"",)


def test_a_locked_gpu_convicts_what_a_cpu_cannot() -> None:
    assert outcome(1.1e6, device=GPU, clocks="lock", baseline=accepted(1e6, device=GPU, clocks="lock")) is (
        Outcome.REGRESSED
    )
    free = accepted(1e6, device=GPU, clocks="observe")
    assert outcome(1.1e6, device=GPU, clocks="observe", baseline=free) is Outcome.SUSPECT


def test_only_what_has_kernels_is_looked_into_by_a_profile() -> None:
    slow = verdict(2e6, device=GPU, clocks="lock", baseline=accepted(1e6, device=GPU, clocks="lock"))
    assert slow.next[0] == f"perfgate profile '{KEY}'"


def test_sittings_of_the_baseline_or_of_the_history_sharpen() -> None:
    many = accepted(1e6, scatter=0.005, sittings=30)
    assert outcome(1.2e6, baseline=many) is Outcome.REGRESSED
    assert "after 30 runs" in verdict(1.2e6, baseline=many).sentence
    history = replace(CONTEXT, scatter=0.005, sittings=30)
    assert outcome(1.2e6, context=history) is Outcome.REGRESSED
    assert outcome(1.2e6, context=replace(history, sittings=1)) is Outcome.SUSPECT


def test_a_noisy_doubling_is_still_missed_by_nobody() -> None:
    assert outcome(2.2e6, shape=(0.95, 1.0, 1.05)) is Outcome.REGRESSED


def test_a_point_beyond_chance_with_an_interval_down_to_nothing_is_suspect() -> None:
    assert outcome(2.0e6, shape=(0.5, 1.0, 1.6)) is Outcome.SUSPECT


def test_an_interval_across_the_limit_is_undecided_and_says_what_it_could_see() -> None:
    found = verdict(1e6, shape=(0.97, 1.0, 1.03))
    assert found.outcome is Outcome.UNDECIDED
    assert found.visible == pytest.approx(math.expm1((6.9646 + 0.8416) * 0.03 / math.sqrt(3)), rel=1e-2)
    assert f"the smallest slowdown it could have seen is +{found.visible * 100:.1f} %" in found.sentence
    assert found.next == (f"pytest '{KEY}' --perfgate=full --perfgate-rounds=6",)


def test_a_limit_finer_than_the_machine_is_undecided_and_says_so() -> None:
    context = replace(CONTEXT, own_shift=0.08)
    found = verdict(1.05e6, context=context)
    assert found.outcome is Outcome.UNDECIDED
    assert "unchanged code moves by +8.0 % here" in found.sentence
    assert outcome(1.09e6, context=context) is Outcome.SUSPECT
    assert outcome(1.0e6, context=context) is Outcome.PASSED


def test_differences_below_the_floor_are_none() -> None:
    assert outcome(11e3, baseline=accepted(10e3), context=FLOORED) is Outcome.PASSED
    assert outcome(12.5e3, baseline=accepted(10e3), context=FLOORED) is Outcome.SUSPECT


def test_there_is_no_floor_unless_one_is_set() -> None:
    assert outcome(11e3, baseline=accepted(10e3)) is Outcome.SUSPECT
    assert verdict(10.4e3, baseline=accepted(10e3)).raised is None
    short = tuple(samples(4.6e3 * factor, timer="cupti", resolution=1.0) for factor in SHAPE)
    held = accepted(4.4e3, device=GPU)
    assert outcome(0, device=GPU, baseline=held, processes=short) is Outcome.SUSPECT, "4.5 % of 4.4 us"


def test_times_that_were_measured_elsewhere_have_no_floor() -> None:
    recorded = tuple(samples(11e3 * factor, stop=Stop.RECORDED) for factor in SHAPE)
    found = verdict(11e3, baseline=accepted(10e3), processes=recorded, context=FLOORED)
    assert (found.outcome, found.raised) == (Outcome.SUSPECT, None)
    tiny = tuple(samples(20.0, stop=Stop.RECORDED) for _ in SHAPE)
    assert verdict(20.0, baseline=accepted(20.0), processes=tiny, context=FLOORED).raised is None
    beside = (*tiny[1:], samples(20.0))
    found = verdict(20.0, baseline=accepted(20.0), processes=beside, context=FLOORED)
    assert found.raised == 0.5, "one was timed here"


def test_a_floor_that_lets_a_slower_case_pass_is_said() -> None:
    held = accepted(10e3)
    slower, quiet = (judge(measured(time), SLOWDOWN, baseline=held, context=FLOORED) for time in (11e3, 10e3))
    (found,) = slower.verdicts
    assert (found.outcome, found.raised) == (Outcome.PASSED, pytest.approx(0.2))
    assert found.sentence.endswith("keeps the limit (the floor raised it to +20.0 %)")
    assert "limit +3 % (the floor raised it to +20.0 %)" in render_block(slower)
    (note,) = judge_suite([slower, quiet], Suite(context=CONTEXT))
    assert (note.kind, note.effect) == ("floor", Effect.WARN)
    assert note.names == (f"{slower.key}: slowdown <= 3%, the floor raised it to +20.0 %: +10.0 %",)
    assert note.text.startswith("the floor raised limits of 2 of 2 cases; 1 limit kept by that alone")
    (note,) = judge_suite([quiet], Suite(context=CONTEXT))
    assert (note.text.partition(":")[0], note.names) == ("the floor raised limits of 1 of 1 case", ())
    exactly = replace(
        slower, verdicts=(replace(found, limit=limit("slowdown <= 10%"), metric=replace(found.metric, value=0.1)),)
    )
    (note,) = judge_suite([exactly], Suite(context=CONTEXT))
    assert note.names == (), "the limit as it stands allows that"


def test_a_batch_divides_the_floor_so_that_short_calls_are_seen() -> None:
    short = tuple(samples(200.0, batch=1000) for _ in range(3))
    assert outcome(baseline=accepted(100.0), processes=short, context=FLOORED) is Outcome.REGRESSED


def test_the_floor_never_hides_a_doubled_time() -> None:
    assert outcome(200.0, baseline=accepted(100.0), context=FLOORED) is Outcome.REGRESSED
    assert outcome(149.0, baseline=accepted(100.0), context=FLOORED) is Outcome.PASSED


def test_what_is_less_than_a_tick_of_the_timer_is_undecided() -> None:
    coarse = tuple(samples(200.0, batch=1000, resolution=300e3) for _ in range(3))
    assert outcome(baseline=accepted(100.0), processes=coarse) is Outcome.UNDECIDED


def test_strict_and_closed_limits_differ_at_the_edge() -> None:
    fields = {"processes": (samples(1.5e6, spread=0.0),), "baseline": accepted(1e6)}
    assert outcome(limits=[limit("slowdown <= 50%")], **fields) is Outcome.PASSED
    assert outcome(limits=[limit("slowdown < 50%")], **fields) is Outcome.UNDECIDED


def test_faster_is_improved_and_ten_times_faster_asks_for_a_look() -> None:
    found = verdict(0.9e6)
    assert (found.outcome, found.effect, found.sentence) == (Outcome.IMPROVED, Effect.WARN, "faster than accepted")
    assert outcome(0.98e6) is Outcome.PASSED
    assert "is the work still done" in verdict(0.5e5).sentence
    assert outcome(0.9e6, context=replace(CONTEXT, own_shift=0.2)) is Outcome.PASSED


def test_a_demanded_improvement_is_held_like_any_limit() -> None:
    demanded = [limit("slowdown <= -10%")]
    assert outcome(0.8e6, limits=demanded) is Outcome.PASSED
    assert outcome(1.0e6, limits=demanded) is Outcome.BROKEN
    assert outcome(0.9e6, limits=demanded) is Outcome.UNDECIDED
    assert verdict(1.0e6, limits=demanded).baseline == accepted(1e6)


def test_a_demanded_improvement_is_more_than_the_accepted_time_may_be_off_by() -> None:
    demanded, blind = [limit("slowdown <= -10%")], accepted(1e6, blind=0.2)
    found = verdict(0.8e6, limits=demanded, baseline=blind)
    assert found.outcome is Outcome.UNDECIDED
    assert found.sentence.startswith("the accepted run was too noisy to detect less than +20.0 %: the accepted time")
    assert found.next == (f"pytest '{KEY}' --perfgate-against a1b2c3d4e5",)
    assert (found.visible, found.baseline) == (0.2, blind)
    assert outcome(0.7e6, limits=demanded, baseline=blind) is Outcome.PASSED
    assert outcome(1.0e6, limits=demanded, baseline=blind) is Outcome.BROKEN


def test_no_floor_raises_a_demanded_improvement() -> None:
    demanded = [limit("slowdown <= -20%")]
    found = verdict(95.0, limits=demanded, baseline=accepted(100.0))
    assert (found.outcome, found.raised) == (Outcome.BROKEN, None)


def test_quick_mode_suspects_and_names_what_decides() -> None:
    found = verdict(2e6, context=replace(CONTEXT, mode=Mode.QUICK))
    assert (found.outcome, found.effect) == (Outcome.SUSPECT, Effect.WARN)
    assert found.next == (f"pytest '{KEY}' --perfgate=full",)


def test_where_two_arms_will_decide_nothing_else_convicts() -> None:
    found = verdict(2e6, context=replace(CONTEXT, paired_available=True))
    assert found.outcome is Outcome.SUSPECT
    assert "to be confirmed" in found.sentence
    assert suspects([found]) == (found,)
    assert suspects([verdict(1e6)]) == ()


# no baseline to hold against


def test_without_a_baseline() -> None:
    local = verdict(baseline=None)
    assert (local.outcome, local.effect) == (Outcome.UNBASELINED, Effect.WARN)
    assert "kept under .perfgate/" in local.sentence
    assert local.next == (), "it judges the next run, whether anybody accepts it or not"
    ci = verdict(baseline=None, context=replace(CONTEXT, policy=CI))
    assert ci.effect is Effect.FAIL
    assert ci.next
    assert ci.sentence == "there is no baseline for this device"
    told = verdict(baseline=None, context=replace(CONTEXT, unbaselined="renamed from test_mm"))
    assert told.sentence.startswith("renamed from test_mm")


@pytest.mark.parametrize(
    ("baseline", "said"),
    [
        (accepted(1e6, device=GPU), "the baseline is of NVIDIA-H200-lock, this is host-epyc-2"),
        (accepted(0.0), "the accepted time reads 0.0 ns"),
        (accepted(math.nan), "the accepted time reads nan ns"),
        (accepted(math.inf), "the accepted time reads inf ns"),
        (accepted(1e6, identity=Identity(device=HOST.key, cache="cold")), "cache cold -> warm"),
        (accepted(1e6, identity=Identity(device=HOST.key, calls="2")), "calls 2 -> 1"),
        (
            accepted(1e6, identity=Identity(device=HOST.key, threads="8", clocks="lock")),
            "clocks lock -> off, threads 8 -> none",
        ),
        (accepted(1e6, expires="2026-01-01"), "the acceptance expired on 2026-01-01"),
    ],
)
def test_a_baseline_that_cannot_be_compared(baseline, said: str) -> None:
    context = replace(CONTEXT, today="2026-05-02")
    found = verdict(2e6, baseline=baseline, context=context)
    assert found.outcome is Outcome.UNBASELINED
    assert said in found.sentence
    assert "kept under" not in found.sentence
    assert found.baseline is baseline


def test_an_acceptance_holds_through_its_last_day_and_an_imported_one_without_identity() -> None:
    context = replace(CONTEXT, today="2026-05-02")
    assert outcome(baseline=accepted(1e6, expires="2026-05-02"), context=context) is Outcome.PASSED
    assert outcome(baseline=accepted(1e6, expires="2026-05-01")) is Outcome.PASSED
    assert outcome(baseline=accepted(1e6, identity=None)) is Outcome.PASSED


def test_a_line_of_a_tree_that_was_never_committed_has_no_arm_to_decide() -> None:
    found = verdict(1.1e6, baseline=accepted(1e6, commit="a1b2c3d4e5f6+dirty"))
    assert found.outcome is Outcome.SUSPECT
    assert found.next == (f"perfgate accept '{KEY}' --reason \"...\"",)
    assert verdict(1.1e6).next[0] == f"pytest '{KEY}' --perfgate-against a1b2c3d4e5"
    nowhere = verdict(1.1e6, baseline=accepted(1e6, commit=""))
    assert nowhere.next == (f"perfgate accept '{KEY}' --reason \"...\"",), "without git there is nothing beside it"
    assert uncommitted(accepted(1e6, commit="a1b2c3d4e5f6+dirty")).startswith(
        "it was accepted from a1b2c3d with changes"
    )
    assert uncommitted(accepted(1e6)) == uncommitted(None) == ""


def test_what_is_not_kept_is_not_said_to_be() -> None:
    """On a device whose baselines are committed only an acceptance writes one."""
    committed = replace(CONTEXT, unbaselined="none has been accepted for gpu yet")
    assert verdict(baseline=None, context=committed).sentence == "none has been accepted for gpu yet"
    assert "kept under .perfgate/" in verdict(baseline=None, context=CONTEXT).sentence
