from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pytest_perfgate.core.gate.judge import JudgeContext, judge, not_measured, suspects
from pytest_perfgate.core.gate.policy import CI
from pytest_perfgate.model.limit import Effect, Outcome
from pytest_perfgate.model.measurement import Identity
from pytest_perfgate.model.metric import Absent, Metric, MetricSet, labels
from pytest_perfgate.model.plan import CaseKey, Mode
from pytest_perfgate.model.problem import Problem
from pytest_perfgate.model.quantity import Dimension, Interval
from pytest_perfgate.model.samples import Discard
from pytest_perfgate.model.work import Work
from tests.unit.core.gate.bench import GPU, HOST, KEY, KINDS, accepted, limit, measured, samples

CONTEXT = JudgeContext(kinds=KINDS, gates=40)
SLOWDOWN = (limit("slowdown <= 3%"),)


def verdict(time=1e6, limits=SLOWDOWN, baseline="accepted", context=CONTEXT, paired=None, **fields):
    device = fields.get("device", HOST)
    held = accepted(1e6, device=device) if baseline == "accepted" else baseline
    (found,) = judge(measured(time, **fields), limits, baseline=held, context=context, paired=paired).verdicts
    return found


def outcome(*args, **fields) -> Outcome:
    return verdict(*args, **fields).outcome


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
    assert "after one sitting chance explains up to +79.1 %" in doubled.sentence
    assert doubled.next[1] == f"perfgate accept '{KEY}' --reason \"...\""


def test_a_locked_gpu_convicts_what_a_cpu_cannot() -> None:
    assert outcome(1.1e6, device=GPU, clocks="lock", baseline=accepted(1e6, device=GPU, clocks="lock")) is (
        Outcome.REGRESSED
    )
    free = accepted(1e6, device=GPU, clocks="observe")
    assert outcome(1.1e6, device=GPU, clocks="observe", baseline=free) is Outcome.SUSPECT


def test_sittings_of_the_baseline_or_of_the_history_sharpen() -> None:
    many = accepted(1e6, scatter=0.005, sittings=30)
    assert outcome(1.2e6, baseline=many) is Outcome.REGRESSED
    assert "after 30 sittings" in verdict(1.2e6, baseline=many).sentence
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
    assert outcome(11e3, baseline=accepted(10e3)) is Outcome.PASSED
    assert outcome(12.5e3, baseline=accepted(10e3)) is Outcome.SUSPECT
    assert outcome(11e3, baseline=accepted(10e3), context=replace(CONTEXT, floor_ns=0.0)) is Outcome.SUSPECT


def test_a_batch_divides_the_floor_so_that_short_calls_are_seen() -> None:
    short = tuple(samples(200.0, batch=1000) for _ in range(3))
    assert outcome(baseline=accepted(100.0), processes=short) is Outcome.REGRESSED


def test_the_floor_never_hides_a_doubled_time() -> None:
    assert outcome(200.0, baseline=accepted(100.0)) is Outcome.REGRESSED
    assert outcome(149.0, baseline=accepted(100.0)) is Outcome.PASSED


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
    ci = verdict(baseline=None, context=replace(CONTEXT, policy=CI))
    assert ci.effect is Effect.FAIL
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
        (accepted(1e6, identity=Identity(device=HOST.key, cache="cold")), "cache was cold and is warm"),
        (
            accepted(1e6, identity=Identity(device=HOST.key, threads="8", clocks="lock")),
            "clocks was lock and is off, threads was 8 and is empty",
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


# the change edits the line that judges it


def edited(time: float, why: str):
    return replace(CONTEXT, edited=accepted(time, why=why))


def test_an_edit_with_a_reason_that_the_measurement_agrees_with_is_accepted() -> None:
    found = verdict(2e6, context=edited(2e6, "exact softmax"))
    assert (found.outcome, found.effect) == (Outcome.ACCEPTED, Effect.PASS)
    assert '"exact softmax"' in found.sentence
    assert outcome(1.1e6, context=replace(edited(1.1e6, "x"), mode=Mode.QUICK)) is Outcome.ACCEPTED


def test_an_edit_without_a_reason_fails() -> None:
    found = verdict(1.1e6, context=edited(1.1e6, "  "))
    assert (found.outcome, found.effect) == (Outcome.REGRESSED, Effect.FAIL)
    assert "without a reason" in found.sentence


def test_an_edit_that_the_measurement_does_not_agree_with_changes_nothing() -> None:
    assert outcome(2e6, context=edited(1.5e6, "x")) is Outcome.REGRESSED
    assert outcome(1.2e6, context=edited(1.5e6, "x")) is Outcome.SUSPECT
    assert outcome(1.2e6, context=edited(0.0, "x")) is Outcome.SUSPECT
    assert outcome(1e6, context=edited(1.5e6, "x")) is Outcome.PASSED


# against a limit


def of_value(value: float, low: float | None = None, high: float | None = None, name="overlap", **scope) -> MetricSet:
    interval = Interval(low=low, high=high) if low is not None and high is not None else None
    dimension = KINDS[name].dimension
    return MetricSet(
        metrics=(Metric(name=name, value=value, dimension=dimension, labels=labels(**scope), interval=interval),)
    )


@pytest.mark.parametrize(
    ("text", "low", "high", "expected"),
    [
        ("overlap >= 80%", 0.81, 0.83, Outcome.PASSED),
        ("overlap >= 80%", 0.80, 0.83, Outcome.PASSED),
        ("overlap > 80%", 0.80, 0.83, Outcome.UNDECIDED),
        ("overlap >= 80%", 0.79, 0.83, Outcome.UNDECIDED),
        ("overlap >= 80%", 0.70, 0.79, Outcome.BROKEN),
        ("overlap > 80%", 0.70, 0.80, Outcome.BROKEN),
        ("overlap <= 80%", 0.81, 0.83, Outcome.BROKEN),
        ("overlap <= 80%", 0.70, 0.80, Outcome.PASSED),
        ("overlap < 80%", 0.70, 0.80, Outcome.UNDECIDED),
        ("overlap < 80%", 0.70, 0.79, Outcome.PASSED),
    ],
)
def test_the_interval_decides(text: str, low: float, high: float, expected: Outcome) -> None:
    found = verdict(limits=[limit(text)], metrics=of_value((low + high) / 2, low, high), processes=())
    assert found.outcome is expected
    assert not found.next


@pytest.mark.parametrize(("value", "expected"), [(4, Outcome.PASSED), (5, Outcome.BROKEN)])
def test_a_count_is_exact(value: float, expected: Outcome) -> None:
    metrics = of_value(value, name="count", opcode="HMMA")
    assert outcome(limits=[limit("count(HMMA) == 4")], metrics=metrics, processes=()) is expected


def test_every_part_that_a_scope_selects_must_hold() -> None:
    parts = of_value(0.9, stage="stage1") | of_value(0.5, stage="stage2") | of_value(0.95, stage="stage3")
    found = verdict(limits=[limit("overlap >= 80%")], metrics=parts, processes=())
    assert found.outcome is Outcome.BROKEN
    assert found.metric.labels == (("stage", "stage2"),)
    assert outcome(limits=[limit("overlap(stage=stage[13]) >= 80%")], metrics=parts, processes=()) is Outcome.PASSED


def test_a_scope_that_matches_nothing_fails_and_lists_what_there_is() -> None:
    parts = of_value(0.9, stage="stage1") | of_value(0.5, stage="stage2")
    found = verdict(limits=[limit("overlap(stage=stagee2) >= 80%")], metrics=parts, processes=())
    assert (found.outcome, found.effect) == (Outcome.NOT_MEASURED, Effect.FAIL)
    assert "(stage=stage2)" in found.sentence


def test_a_metric_that_never_appeared() -> None:
    found = verdict(limits=[limit("overlap >= 80%")])
    assert (found.outcome, found.effect) == (Outcome.NOT_MEASURED, Effect.WARN)
    assert found.sentence == "overlap: nothing here produces overlap"
    assert found.next == ("capture it: it comes from capture='torch'",)
    absent = MetricSet(absent=(Absent(name="overlap", why="no NCCL kernels", mend="run on two devices"),))
    told = verdict(limits=[limit("overlap(stage=x) >= 80%")], metrics=absent)
    assert (told.sentence, told.next) == ("overlap: no NCCL kernels", ("run on two devices",))
    assert verdict(limits=[limit("mfu >= 5%")]).sentence == "mfu: no work= was given"
    assert verdict(limits=[limit("mfu >= 5%")], context=replace(CONTEXT, policy=CI)).effect is Effect.FAIL


def test_a_metric_of_another_dimension_is_not_compared() -> None:
    metrics = MetricSet(metrics=(Metric(name="ncu", value=0.6, dimension=Dimension.FRACTION, labels=labels(name="x")),))
    found = verdict(limits=[limit("ncu(x) >= 60")], metrics=metrics)
    assert (found.outcome, found.effect) == (Outcome.INVALID, Effect.FAIL)
    assert "is a fraction, its limit a plain" in found.sentence
    assert outcome(limits=[limit("ncu(x) >= 60%")], metrics=metrics) is Outcome.PASSED


def test_above_a_measured_ceiling_the_ceiling_is_doubted() -> None:
    work = Work(flops=1.2e9, dtype="bf16")
    found = verdict(limits=[limit("mfu >= 50%")], work=work)
    assert (found.outcome, found.next) == (Outcome.UNDECIDED, ("perfgate ceilings",))
    assert outcome(limits=[limit("mfu >= 50%")], work=replace(work, flops=1.04e9)) is Outcome.PASSED
    gpu = Work(flops=760e9, dtype="bf16")
    assert outcome(limits=[limit("mfu_ceiling >= 50%")], work=gpu, device=GPU) is Outcome.UNDECIDED
    assert outcome(limits=[limit("mfu >= 50%")], work=gpu, device=GPU) is Outcome.PASSED


def test_above_the_physical_peak_nothing_is_trusted() -> None:
    impossible = Work(flops=801e9, dtype="bf16")
    for text in ("mfu >= 50%", "slowdown <= 3%", "time <= 1s"):
        found = verdict(limits=[limit(text)], work=impossible, device=GPU)
        assert (found.outcome, found.effect) == (Outcome.INVALID, Effect.FAIL)
        assert "100 % of the physical peak" in found.sentence
        assert not found.next
    bytes_ = Work(bytes=4.9e9, dtype="bf16")
    assert outcome(limits=[limit("time <= 1s")], work=bytes_, device=GPU) is Outcome.INVALID
    cached = Work(bytes=49e6)
    assert outcome(1e3, limits=[limit("time <= 1s")], work=cached, device=GPU) is Outcome.PASSED


def test_figures_of_captures_join_those_of_the_timer() -> None:
    report = judge(
        measured(1e6, metrics=of_value(0.9) | of_value(5.0, name="time")), SLOWDOWN, baseline=None, context=CONTEXT
    )
    assert report.measurement.metrics.find("overlap")
    assert [m.value for m in report.measurement.metrics.find("time")] == [pytest.approx(1e6)]


def test_an_artifact_s_own_slowdown_is_a_figure_like_any_other() -> None:
    metrics = of_value(0.2, 0.19, 0.21, name="slowdown")
    assert outcome(limits=SLOWDOWN, metrics=metrics, processes=()) is Outcome.BROKEN
    scoped = of_value(0.2, 0.19, 0.21, name="slowdown", op="aten::mm")
    assert outcome(limits=[limit("slowdown(op=aten*) <= 3%")], metrics=scoped) is Outcome.BROKEN


# processes in groups


def test_processes_in_groups_on_both_sides_are_unstable() -> None:
    shape = (1.0, 1.001, 1.2, 1.201)
    found = verdict(1e6, shape=shape, limits=[limit("time <= 1.1ms")])
    assert (found.outcome, found.effect) == (Outcome.UNSTABLE, Effect.WARN)
    assert outcome(1e6, shape=shape) is Outcome.UNSTABLE
    assert outcome(1e6, shape=shape, limits=[limit("time <= 2ms")]) is Outcome.PASSED
    assert outcome(1e6, shape=shape, limits=[limit("time <= 500us")]) is Outcome.BROKEN
    assert outcome(3e6, shape=shape) is Outcome.REGRESSED


def test_one_odd_process_is_no_group() -> None:
    assert outcome(1e6, shape=(1.0, 1.001, 1.001, 1.2), limits=[limit("time <= 1.1ms")]) is Outcome.UNDECIDED


# not to be trusted


@pytest.mark.parametrize("bad", [0.0, -5.0, math.nan, math.inf, -math.inf])
def test_timings_that_mean_nothing(bad: float) -> None:
    broken = replace(samples(1e6), durations=(1e6, 1e6, bad, 1e6))
    report = judge(
        measured(0, processes=(samples(1e6), broken)),
        [*SLOWDOWN, limit("time <= 1s")],
        baseline=accepted(1e6),
        context=CONTEXT,
    )
    for found in report.verdicts:
        assert (found.outcome, found.effect) == (Outcome.INVALID, Effect.FAIL)
        assert f"sample 3 of process 2 reads {bad} ns" in found.sentence
    assert report.problems[0].code == "bad-timing"


def test_all_samples_discarded_is_no_table_of_nan() -> None:
    gone = replace(samples(1e6), durations=(), discarded=(Discard(reason="throttled", count=40),))
    found = verdict(processes=(gone,))
    assert found.outcome is Outcome.INVALID
    assert "every sample of process 1 was discarded: 40 x throttled" in found.sentence
    assert "process 1 is empty" in verdict(processes=(replace(gone, discarded=()),)).sentence


def test_what_an_instrument_saw_makes_every_limit_invalid_once() -> None:
    moved = Problem(code="clock-moved", what="the clock fell by 20 %", retry=False)
    both = tuple(samples(1e6, problems=(moved,)) for _ in range(3))
    other = Problem(code="foreign", what="process 77 used the device")
    found = verdict(processes=both, problems=(other,))
    assert found.sentence == "not to be trusted: process 77 used the device (and 1 more)"
    assert [text for _, text in found.evidence] == [f"{p.what}  [{p.code}]" for p in (other, moved)]
    assert found.next == (f"pytest '{KEY}' --perfgate=full",)
    assert verdict(processes=both).next == ()


# which limits are meant


def test_a_limit_of_other_devices_is_counted_as_not_applicable() -> None:
    found = verdict(2e6, limits=[limit("slowdown <= 3%", on=("H200*",))])
    assert (found.outcome, found.effect) == (Outcome.NOT_APPLICABLE, Effect.PASS)
    assert found.sentence == "meant for H200*, this is AMD EPYC 7763"


def test_a_replaced_limit_and_a_mean_over_a_family_are_not_this_case_s() -> None:
    replaced = replace(limit("time <= 1ns"), except_on=("AMD*",))
    report = judge(measured(1e6), [replaced, limit("geomean(slowdown) <= 1%")], baseline=None, context=CONTEXT)
    assert report.verdicts == ()
    assert report.effect is Effect.PASS


def test_a_named_call_answers_to_its_own() -> None:
    key = CaseKey(nodeid=KEY.nodeid, name="bwd")
    limits = [limit("time <= 1ns"), limit("time(case=bwd) <= 1s")]
    report = judge(measured(1e6, key=key), limits, baseline=None, context=CONTEXT)
    assert [v.outcome for v in report.verdicts] == [Outcome.PASSED]


def test_what_was_never_measured_says_why_for_each_limit() -> None:
    report = not_measured(KEY, [*SLOWDOWN, limit("mfu >= 5%")], "the fixture was never called", CONTEXT)
    assert [(v.outcome, v.sentence) for v in report.verdicts] == [
        (Outcome.NOT_MEASURED, "the fixture was never called")
    ] * 2
    assert report.measurement is None
    assert report.effect is Effect.WARN
    off = not_measured(KEY, SLOWDOWN, "the gate is off", replace(CONTEXT, policy=CI, mode=Mode.OFF))
    assert off.effect is Effect.FAIL
    assert off.verdicts[0].next == (f"pytest '{KEY}' --perfgate=full",)
