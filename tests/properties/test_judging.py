from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.metrics import metrics_of
from pytest_perfgate.core.limits.merge import applies_on, merge_limits
from pytest_perfgate.core.stats.summary import of_samples, summary
from pytest_perfgate.model.plan import Effect, Operator, Outcome
from pytest_perfgate.model.values import Work
from tests.unit.core.judge.bench import GPU, HOST, KINDS, accepted, limit, measured, samples

TIMES = st.floats(1e3, 1e9)
FACTORS = st.lists(st.floats(0.5, 2.0), min_size=1, max_size=6)
SCATTER = st.lists(st.floats(0.98, 1.02), min_size=1, max_size=6)
CONTEXTS = st.builds(JudgeContext, kinds=st.just(KINDS), gates=st.integers(1, 200))
DECIDED = {Outcome.PASSED, Outcome.BROKEN, Outcome.IMPROVED, Outcome.REGRESSED}


def verdict(time, shape, line, text="slowdown <= 3%", context=None, bound=None, **fields):
    demand = limit(text)
    demand = demand if bound is None else replace(demand, bound=bound)
    report = judge(
        measured(time, shape=shape, **fields), [demand], baseline=line, context=context or JudgeContext(kinds=KINDS)
    )
    return report.verdicts[0]


@given(TIMES, TIMES, SCATTER)
def test_swapping_now_and_then_inverts_the_ratio(now: float, then: float, shape: list[float]) -> None:
    centre_now, centre_then = (summary(measured(t, shape=shape).processes).time for t in (now, then))
    forth = metrics_of(measured(now, shape=shape), accepted(centre_then)).find("slowdown")[0].value
    back = metrics_of(measured(then, shape=shape), accepted(centre_now)).find("slowdown")[0].value
    assert (1 + forth) * (1 + back) == pytest.approx(1, rel=1e-9)


@given(TIMES, st.floats(0.3, 4.0), FACTORS | SCATTER, CONTEXTS, st.floats(0, 3), st.floats(0, 3))
def test_loosening_a_slowdown_limit_never_fails_what_passed(then, ratio, shape, context, one, other) -> None:
    tight, loose = sorted((one, other))
    before = verdict(then * ratio, shape, accepted(then), context=context, bound=tight)
    after = verdict(then * ratio, shape, accepted(then), context=context, bound=loose)
    if before.effect is not Effect.FAIL:
        assert after.effect is not Effect.FAIL
    if before.outcome is Outcome.PASSED:
        assert after.outcome is Outcome.PASSED


@given(TIMES, FACTORS | SCATTER, st.sampled_from([op for op in Operator if op is not Operator.EQUAL]), TIMES, TIMES)
def test_loosening_a_limit_never_fails_what_passed(time, shape, operator, one, other) -> None:
    loose, tight = sorted((one, other), reverse=operator in {Operator.AT_MOST, Operator.LESS})
    text = f"time {operator.value} 1us"
    before = verdict(time, shape, None, text, bound=tight)
    after = verdict(time, shape, None, text, bound=loose)
    if before.outcome is Outcome.PASSED:
        assert after.outcome is Outcome.PASSED
    if before.effect is not Effect.FAIL:
        assert after.effect is not Effect.FAIL


@given(TIMES, st.floats(0.3, 4.0), st.integers(1, 6), CONTEXTS, st.sampled_from(["slowdown <= 3%", "time <= 1ms"]))
def test_an_identical_process_never_flips_a_verdict_away(then, ratio, count, context, text) -> None:
    before = verdict(then * ratio, (1.0,) * count, accepted(then), text, context)
    after = verdict(then * ratio, (1.0,) * (count + 1), accepted(then), text, context)
    assume(before.outcome in DECIDED)
    assert after.outcome is before.outcome


@given(TIMES, st.floats(0.3, 4.0), st.lists(st.floats(0.98, 1.02), min_size=2, max_size=6), CONTEXTS)
def test_a_process_like_the_run_never_flips_a_verdict_away(then, ratio, shape, context) -> None:
    time = then * ratio
    line = accepted(then)
    before = judge(measured(time, shape=shape), [limit("slowdown <= 3%")], baseline=line, context=context)
    assume(before.worst in DECIDED)
    middle = summary(before.measurement.processes)
    more = replace(before.measurement, processes=(*before.measurement.processes, samples(middle.time)))
    after = judge(more, [limit("slowdown <= 3%")], baseline=line, context=context)
    better = {Outcome.IMPROVED} if before.worst is Outcome.PASSED else set()
    assert after.worst in {before.worst, Outcome.UNSTABLE} | better


@given(TIMES, st.floats(1.0, 3.0), st.floats(1.0, 1.5), SCATTER, CONTEXTS)
def test_slower_is_never_judged_better(then, ratio, more, shape, context) -> None:
    order = [Outcome.IMPROVED, Outcome.PASSED, Outcome.UNDECIDED, Outcome.UNSTABLE, Outcome.SUSPECT, Outcome.REGRESSED]
    first = verdict(then * ratio, shape, accepted(then), context=context).outcome
    second = verdict(then * ratio * more, shape, accepted(then), context=context).outcome
    assert order.index(second) >= order.index(first)


@given(st.floats(1e6, 1e9), SCATTER, st.floats(1e6, 1e12), st.floats(1.0, 10.0))
def test_twice_the_work_in_the_same_time_is_twice_the_rate(time, shape, flops, more) -> None:
    one, two = (
        metrics_of(measured(time, shape=shape, work=Work(flops=f, dtype="bf16")), None) for f in (flops, flops * more)
    )
    for name in ("tflops", "mfu", "sol"):
        assert two.find(name)[0].value == pytest.approx(one.find(name)[0].value * more)


@given(st.lists(st.floats(1.0, 1e6), min_size=1, max_size=60))
def test_the_interval_of_a_median_holds_it(durations: list[float]) -> None:
    ordered = sorted(durations)
    interval = of_samples(ordered)
    assert interval.low <= ordered[len(ordered) // 2] <= interval.high


@given(TIMES, FACTORS)
def test_a_run_does_not_depend_on_the_order_of_its_processes(time, shape) -> None:
    assert (
        summary(measured(time, shape=shape).processes).time == summary(measured(time, shape=shape[::-1]).processes).time
    )


LIMITS = st.builds(
    lambda text, on, source: limit(text, on=on, source=source),
    st.sampled_from(["mfu >= 40%", "mfu >= 50%", "mfu <= 90%", "time <= 1ms", "mfu(case=bwd) >= 30%"]),
    st.sampled_from([(), ("H200*",), ("AMD*",), ("H200*", "AMD*"), ("A100*",)]),
    st.sampled_from(["default", "marker", "command line"]),
)
LAYERS = st.lists(LIMITS, max_size=4)


@given(LAYERS, LAYERS, LAYERS)
def test_merging_is_associative(a, b, c) -> None:
    whole = merge_limits(a, b, c)
    assert merge_limits(merge_limits(a, b), c) == whole
    assert merge_limits(a, merge_limits(b, c)) == whole
    assert merge_limits(a) == tuple(a)


@given(LAYERS, LAYERS, st.sampled_from([HOST, GPU]))
def test_of_each_key_the_closest_layer_that_applies_holds(far, near, device) -> None:
    merged = [one for one in merge_limits(far, near) if applies_on(one, device)]
    for key in {one.key for one in (*far, *near)}:
        close = [n for n in near if n.key == key and applies_on(n, device)]
        expected = close or [f for f in far if f.key == key and applies_on(f, device)]
        assert [(h.text, h.on) for h in merged if h.key == key] == [(e.text, e.on) for e in expected]
