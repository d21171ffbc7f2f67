"""Tests of core/judge/metrics."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.metrics import DERIVED, OF_WORK, metrics_of, rounds_to_decide
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.measurement import Identity
from pytest_perfgate.model.metric import Interval, Metric, MetricSet
from pytest_perfgate.model.values import Better, Dimension, Work
from tests.unit.core.judge.bench import CEILING, GEMM, GPU, HOST, KINDS, accepted, limit, measured, samples, share

WORK = Work(flops=1e9, bytes=1e8, dtype="bf16", items=1000, unit="tokens", working_set=2e8)


def one(measurement, name: str, baseline=None, scope=()):
    (metric,) = metrics_of(measurement, baseline).find(name, scope)
    return metric


def why(measurement, name: str) -> str:
    metrics = metrics_of(measurement, None)
    assert not metrics.find(name)
    return metrics.missing(name).why


def test_every_name_is_either_there_or_absent_with_a_reason() -> None:
    for measurement in (
        measured(1e6),
        measured(1e6, work=WORK),
        measured(1e6, work=Work()),
        measured(1e6, processes=()),
        measured(1e6, device=GPU, work=WORK),
        measured(1e6, device=Device(key="k", name="n", kind="gpu"), work=WORK),
    ):
        for baseline in (None, accepted(1e6)):
            metrics = metrics_of(measurement, baseline)
            assert set(metrics.names()) | {a.name for a in metrics.absent} >= DERIVED - {"speedup"}
            assert not set(metrics.names()) & {a.name for a in metrics.absent}
            assert all(a.why for a in metrics.absent)


def test_absolute_figures() -> None:
    gemm = measured(1e6, work=WORK)
    assert one(gemm, "time").value == pytest.approx(1e6)
    assert one(gemm, "tflops").value == pytest.approx(1e12)
    assert one(gemm, "bandwidth").value == pytest.approx(1e11)
    assert one(gemm, "throughput").value == pytest.approx(1e6)
    assert one(gemm, "intensity").value == pytest.approx(10.0)
    for name in ("tflops", "bandwidth", "throughput", "mfu_ceiling"):
        metric = one(gemm, name)
        time = one(gemm, "time")
        assert metric.interval.high / metric.value == pytest.approx(time.value / time.interval.low)
        assert metric.interval.low / metric.value == pytest.approx(time.value / time.interval.high)


def test_rates_are_of_the_time_that_is_shown_and_compared() -> None:
    slow = [samples(1000.0, batch=2, overhead=400.0)] * 3
    gemm = measured(0, processes=tuple(slow), work=Work(flops=800.0, dtype="bf16"))
    assert one(gemm, "time").value == pytest.approx(1000.0)
    assert one(gemm, "tflops").value == pytest.approx(0.8e9)
    assert one(gemm, "slowdown", accepted(1000.0)).value == pytest.approx(0.0, abs=1e-12)


def test_a_call_shorter_than_its_overhead_has_no_absolute_figures() -> None:
    empty = measured(0, processes=(samples(100.0, overhead=100.0),) * 3, work=WORK)
    for name in OF_WORK:
        assert "overhead" in why(empty, name)
    assert one(empty, "time").value == pytest.approx(100.0)


def test_processes_that_differ_by_decades_have_no_rates_and_say_so() -> None:
    wide = measured(0, processes=tuple(samples(t, overhead=100.0) for t in (1e3, 1e8, 1e9)), work=WORK)
    assert one(wide, "time").low < 100.0
    assert why(wide, "tflops").startswith("the processes differ so much")


def test_three_denominators_on_a_gpu() -> None:
    gemm = measured(1e6, device=GPU, work=Work(flops=350e9, bytes=1e8, dtype="bf16"))
    assert one(gemm, "mfu").value == pytest.approx(350 / 800)
    assert one(gemm, "mfu_datasheet").value == pytest.approx(350 / 989)
    assert one(gemm, "mfu_ceiling").value == pytest.approx(350 / 700)
    assert one(gemm, "sol").value == pytest.approx(350 / 800)
    assert one(gemm, "sol").note == "compute roof; 3.5e+03 FLOP/B, ridge at 167"


def test_sol_is_the_larger_fraction_and_names_its_roof() -> None:
    copy = measured(1e6, device=GPU, work=Work(flops=80e9, bytes=2.4e9, dtype="bf16"))
    assert one(copy, "sol").value == pytest.approx(0.5)
    assert one(copy, "sol").note.startswith("memory roof")
    assert one(copy, "sol", scope=(("roof", "memory"),)).value == pytest.approx(0.5)
    assert one(copy, "sol", scope=(("roof", "compute"),)).value == pytest.approx(0.1)


def test_on_a_host_mfu_is_the_ceiling_s_by_another_name_and_says_so() -> None:
    gemm = measured(1e6, work=Work(flops=5e8, bytes=1e6, dtype="bf16"))
    assert one(gemm, "mfu").value == one(gemm, "mfu_ceiling").value == pytest.approx(0.5)
    assert "a host has no other roof" in one(gemm, "mfu").note
    assert not one(gemm, "mfu_ceiling").note
    assert "a host has no other roof" in one(gemm, "sol").note
    assert why(gemm, "mfu_datasheet") == "no data sheet for AMD EPYC 7763"


def test_what_fits_in_the_cache_has_no_memory_fraction() -> None:
    small = Work(bytes=1e6)
    assert why(measured(1e6, work=small), "sol") == (
        "compute the work counts no operations; memory not applicable: fits in the cache"
    )
    assert "fits in the cache" in one(measured(1e6, work=Work(flops=1e8, bytes=1e6, dtype="bf16")), "sol").note
    cold = measured(1e6, work=small, identity=Identity(device=HOST.key, cache="cold"))
    assert one(cold, "sol").value == pytest.approx(0.01)
    touched = measured(1e6, work=Work(bytes=1e6, working_set=1e9))
    assert one(touched, "sol").value == pytest.approx(0.01)
    at_the_edge = measured(1e6, work=Work(bytes=32e6))
    assert "fits" in why(at_the_edge, "sol")


def test_a_warm_cache_of_unknown_size_is_not_guessed() -> None:
    from dataclasses import replace

    unknown = replace(HOST, cache_bytes=None)
    assert "warm cache of unknown size" in why(measured(1e6, device=unknown, work=Work(bytes=1e9)), "sol")
    roof = replace(HOST.roofs[0], cache_bytes=1e6)
    sized = replace(unknown, roofs=(roof,))
    assert one(measured(1e6, device=sized, work=Work(bytes=1e7)), "sol").value == pytest.approx(0.1)


def test_a_dtype_without_a_peak_names_those_that_have_one() -> None:
    gemm = measured(1e6, work=Work(flops=1e9, dtype="fp8"))
    assert why(gemm, "mfu") == "there is no measured ceiling for fp8: those of this device are for bf16"
    bare = measured(1e6, work=Work(flops=1e9))
    assert "without dtype" in why(bare, "mfu")


def test_missing_roofs_say_what_would_give_them() -> None:
    bare = Device(key="k", name="Card", kind="gpu")
    card = metrics_of(measured(1e6, device=bare, work=WORK), None)
    assert card.missing("mfu").why == "the clock that ran is not known"
    assert card.missing("mfu_ceiling").fix == "perfgate ceilings"
    host = metrics_of(measured(1e6, device=Device(key="k", name="n", kind="host"), work=WORK), None)
    assert host.missing("mfu").fix == "perfgate ceilings"


def test_a_fraction_without_a_roof_and_without_work_for_it_names_the_work_first() -> None:
    """Ceilings would not help a call whose work counts items alone."""
    device = Device(key="h", name="CPU", kind="host")
    items = metrics_of(measured(1e6, device=device, work=Work(items=1000, unit="tokens")), None)
    for name in ("mfu", "mfu_ceiling", "sol"):
        assert (items.missing(name).why, items.missing(name).fix) == (
            "the work counts no operations",
            "pass work= with flops",
        )
    assert items.missing("bandwidth").fix == "pass work= with bytes"
    moved = metrics_of(measured(1e6, device=device, work=Work(bytes=1e8)), None)
    assert moved.missing("throughput").fix == "pass work= with items, such as work.items(n, 'rows', of=WORK)"
    assert moved.missing("mfu").why == "the work counts no operations"
    assert moved.missing("sol").fix == "perfgate ceilings"


def test_a_roof_without_bandwidth_has_no_memory_side() -> None:
    from dataclasses import replace

    flat = replace(HOST, roofs=(replace(HOST.roofs[0], bandwidth=None),))
    metrics = metrics_of(measured(1e6, device=flat, work=WORK), None)
    assert metrics.find("sol")[0].note.startswith("compute roof; of the measured ceiling")
    assert "for memory" in metrics.find("sol")[0].note


def test_no_work_is_said() -> None:
    for name in OF_WORK:
        assert why(measured(1e6), name) == "no work= was given"
    fixes = {one.name: one.fix for one in metrics_of(measured(1e6), None).absent}
    assert "work.items(" in fixes["throughput"]
    assert "work.gemm(" in fixes["tflops"]


def test_slowdown_against_the_accepted_time() -> None:
    slower = one(measured(1.1e6), "slowdown", accepted(1e6))
    assert slower.value == pytest.approx(0.1)
    assert slower.interval.low < 0.1 < slower.interval.high
    assert why(measured(1e6), "slowdown") == "no baseline for this device"
    assert metrics_of(measured(1e6), accepted(0.0)).missing("slowdown")


def test_launch_gap_is_the_median_over_processes() -> None:
    processes = tuple(samples(1e5, launch_gap=gap) for gap in (900.0, 1000.0, 1500.0))
    gap = one(measured(0, processes=processes), "launch_gap")
    assert (gap.value, gap.low, gap.high) == (1000.0, 900.0, 1500.0)
    single = one(measured(0, processes=(samples(1e5, launch_gap=5.0),)), "launch_gap")
    assert (single.value, single.interval) == (5.0, None)


def test_cv_is_the_middle_process_s_deviation_over_its_mean() -> None:
    processes = tuple(replace(samples(100.0), durations=(100.0 - n, 100.0, 100.0 + n)) for n in (4.0, 1.0, 2.0))
    cv = one(measured(0, processes=processes), "cv")
    assert (cv.value, cv.low, cv.high) == pytest.approx((0.02, 0.01, 0.04))
    single = one(measured(0, processes=processes[:1]), "cv")
    assert (single.value, single.interval) == (pytest.approx(0.04), None)
    assert one(measured(0, processes=(replace(samples(5.0), durations=(5.0, 5.0)),)), "cv").value == 0


def test_cv_can_be_limited_where_every_process_has_two_samples() -> None:
    texts = ("cv <= 5%", "cv <= 1%", "cv <= 2.5%")
    noisy = tuple(replace(samples(100.0), durations=(100.0 - n, 100.0, 100.0 + n)) for n in (2.0, 3.0, 4.0))
    report = judge(measured(0, processes=noisy), [limit(t) for t in texts], baseline=None, context=JudgeContext())
    assert [verdict.outcome.value for verdict in report.verdicts] == ["passed", "broken", "undecided"]
    alone = measured(0, processes=(*noisy, samples(100.0, count=1)))
    assert why(alone, "cv") == "one sample does not vary"
    report = judge(alone, [limit("cv <= 5%")], baseline=None, context=JudgeContext())
    assert report.verdicts[0].outcome.value == "not measured"


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_of_samples_that_mean_nothing_nothing_is_made(bad: float) -> None:
    from dataclasses import replace

    broken = replace(samples(1e5), durations=(1e5, bad, 1e5))
    metrics = metrics_of(measured(0, processes=(broken,), work=WORK), accepted(1e5))
    assert not metrics.metrics
    assert metrics.missing("time").why == "the samples cannot be trusted"
    untimed = metrics_of(measured(0, processes=()), None).missing("time")
    assert (untimed.why, untimed.fix) == ("nothing was timed", "")


def test_what_timed_nothing_is_told_what_it_read() -> None:
    figures = MetricSet(
        metrics=tuple(
            Metric(name=name, value=1.0, dimension=Dimension.FRACTION) for name in ("overlap", "idle", *"abcd")
        )
    )
    gap = metrics_of(measured(0, processes=()).with_metrics(figures), None).missing("slowdown")
    assert gap.fix.endswith(": a, b, c, d, idle and 1 more")
    odd = Metric(name="metric", value=1.0, dimension=Dimension.PLAIN, labels=(("name", "a/s"),), better=Better.NEITHER)
    of_file = replace(measured(0, processes=()), identity=Identity(device="d", timer="read"))
    figures = MetricSet(metrics=(replace(odd, name="probes", labels=()), odd, *figures.metrics[:1]))
    gap = metrics_of(of_file.with_metrics(figures), None).missing("slowdown")
    assert gap.fix.endswith(": metric(name=a/s), metric(probes), overlap")


def test_kernels_seen_apart_give_span_and_how_full_it_is() -> None:
    processes = tuple(samples(125.0 + n, spread=0.0, timer="cupti", busy=(100.0,) * 21) for n in range(3))
    metrics = metrics_of(measured(0, processes=processes), None)
    span, busy_time, busy = (metrics.find(name)[0] for name in ("span", "busy_time", "busy"))
    assert (span.value, span.interval.low, span.interval.high) == (126.0, 125.0, 127.0)
    assert busy_time.value == 100.0
    assert busy.value == pytest.approx(100 / 126)


def test_without_kernel_records_in_every_process_there_is_no_span() -> None:
    mixed = (samples(125.0, busy=(100.0,) * 21), samples(125.0))
    metrics = metrics_of(measured(0, processes=mixed), None)
    assert not metrics.find("span")
    assert 'timer="cupti"' in next(absent.fix for absent in metrics.absent if absent.name == "span")
    assert not metrics.find("busy")


def test_span_can_be_limited() -> None:
    from pytest_perfgate.core.judge.context import JudgeContext
    from pytest_perfgate.core.judge.judge import judge
    from tests.unit.core.judge.bench import limit

    processes = tuple(samples(125.0, timer="cupti", busy=(100.0,) * 21) for _ in range(3))
    texts = ("span <= 110ns", "busy >= 75%", "busy_time <= 1us", "launch_gap <= 1us")
    report = judge(measured(0, processes=processes), [limit(t) for t in texts], baseline=None, context=JudgeContext())
    assert [verdict.outcome.value for verdict in report.verdicts] == ["broken", "passed", "passed", "not measured"]


def test_two_processes_have_an_interval() -> None:
    gaps = tuple(samples(1e5, launch_gap=gap) for gap in (1000.0, 900.0))
    (gap,) = metrics_of(measured(0, processes=gaps), None).find("launch_gap")
    assert (gap.low, gap.high) == (900.0, 1000.0)


def test_a_call_of_less_than_a_nanosecond_has_its_figures() -> None:
    tiny = metrics_of(measured(0.5, work=Work(flops=64.0, dtype="bf16")), None)
    assert tiny.find("tflops")[0].value == pytest.approx(64 / 0.5e-9)


def test_without_any_part_the_fix_is_that_of_compute() -> None:
    host = Device(key="k", name="n", kind="host", roofs=(replace(CEILING, cache_bytes=None),))
    absence = metrics_of(measured(1e6, device=host, work=Work(flops=1e9, bytes=1e6, dtype="fp4")), None).missing("sol")
    assert absence.fix.startswith("`perfgate ceilings` measures no other:")
    assert absence.why.endswith("memory warm cache of unknown size")


def test_where_both_roofs_bind_alike_compute_is_named() -> None:
    work = Work(flops=1e9, bytes=1e8, dtype="bf16", working_set=1e9)
    assert metrics_of(measured(1e6, work=work), None).find("sol")[0].note.startswith("compute roof")


PLAIN_CONTEXT = JudgeContext(kinds=KINDS)


def test_what_was_brought_is_not_absent() -> None:
    brought = MetricSet(metrics=(Metric(name="time", value=5.0, dimension=Dimension.TIME),))
    report = judge(measured(1e6, processes=(), metrics=brought), [], baseline=None, context=PLAIN_CONTEXT)
    absent = {gap.name for gap in report.measurement.metrics.absent}
    assert "time" not in absent
    assert "mfu" in absent


def test_launch_gaps_and_rates_to_the_bit() -> None:
    several = measured(1e6, processes=tuple(samples(1e6, launch_gap=gap) for gap in (3.0, 1.0, 2.0)))
    (gap,) = metrics_of(several, None).find("launch_gap")
    assert (gap.value, gap.interval) == (2.0, Interval(low=1.0, high=3.0, confidence=0.0))
    single = measured(1e6, processes=(samples(1e6, launch_gap=0.0),), work=GEMM)
    (gap,) = metrics_of(single, None).find("launch_gap")
    assert (gap.value, gap.interval) == (0.0, None)
    timed = measured(1e6, processes=tuple(samples(1e6 * f, overhead=1e5) for f in (0.9, 1.0, 1.1)), work=GEMM)
    metrics = metrics_of(timed, None)
    (time,), (tflops,) = metrics.find("time"), metrics.find("tflops")
    assert tflops.value == GEMM.flops * 1e9 / time.value
    assert tflops.low == GEMM.flops * 1e9 / time.high
    assert tflops.high == GEMM.flops * 1e9 / time.low


@pytest.mark.parametrize(
    ("name", "low", "high", "bound", "count", "rounds"),
    [
        ("slowdown", 0.01, 0.09, 0.05, 3, 9),
        ("slowdown", 0.02, 0.04, 0.03, 8, 16),
        ("slowdown", 0.02, 0.03, 0.05, 2, 6),
        ("slowdown", 0.01, 0.04, 0.03, 5, 14),
        ("slowdown", 0.01, 0.09, 0.03, 8, 60),
        ("slowdown", -0.5, 0.5, 0.03, 1, 6),
        ("time", 1e6, 4e6, 2e6, 3, 6),
        ("mfu", 0.4, 0.6, 0.45, 4, 42),
        ("speedup", 0.9, 1.1, 1.05, 5, 42),
    ],
)
def test_rounds_that_decide_follow_from_the_interval(
    name: str, low: float, high: float, bound: float, count: int, rounds: int
) -> None:
    """At least twice as many as there were, which is all that is known of one process and of a time at its limit."""
    assert rounds_to_decide(share(name, low, (low + high) / 2, high), bound, count) == rounds
