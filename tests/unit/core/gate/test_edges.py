"""Edges at which the gate says something else, each found by ci/mutate: it was moved, and nobody noticed."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist

import pytest

from pytest_perfgate.core.analysis.roofline import of_compute, of_memory
from pytest_perfgate.core.judge.against_limit import judge_artifact
from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.metrics import metrics_of
from pytest_perfgate.core.judge.rounds import (
    LEAST,
    MARGIN,
    MOST,
    SURELY,
    Design,
    Pairs,
    Want,
    allotted,
    clearing_rounds,
    finding,
    slower_rounds,
    unstable,
    visible,
)
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.limits.merge import applies_on, elsewhere
from pytest_perfgate.core.limits.scope import render_scope
from pytest_perfgate.core.stats.inference import signed_rank
from pytest_perfgate.model.device import Basis, Device, Roof
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Identity
from pytest_perfgate.model.metric import Absent, Analysis, Metric, MetricSet, labels
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.values import Dimension, Interval, Work
from pytest_perfgate.model.verdict import Decision, Paired
from tests.unit.core.gate.bench import CEILING, GPU, HOST, KINDS, accepted, limit, measured, samples, shown

CONTEXT = JudgeContext(kinds=KINDS, paired_available=True)


def ruled(time: float, paired: Paired, **fields):
    report = judge(measured(time), [limit("slowdown <= 3%")], paired=paired, context=CONTEXT, **fields)
    return report.verdicts[0]


def arms(shift: float, low: float, high: float, rounds: int, **fields) -> Paired:
    interval = Interval(low=low, high=high)
    return Paired(**{"decision": Decision.UNDECIDED, "differences": (shift,) * rounds, "shift": shift,
                     "interval": interval, "base": "a1b2c3d"} | fields)  # fmt: skip


# two arms


def test_seven_rounds_are_enough_to_acquit_and_six_are_not() -> None:
    against = {"baseline": None, "paired": arms(0.0, -0.01, 0.01, LEAST, revision=True)}
    assert ruled(1e6, **against).outcome is Outcome.PASSED
    few = {"baseline": None, "paired": arms(0.0, -0.01, 0.01, LEAST - 1, revision=True)}
    assert ruled(1e6, **few).sentence.startswith("the budget ended after 6 of at least 7 rounds")
    wide = {"baseline": None, "paired": arms(0.0, -0.1, 0.1, LEAST, revision=True)}
    assert "of 7 rounds" in ruled(1e6, **wide).sentence
    assert "spans the limit" in ruled(1e6, **wide).sentence


@pytest.mark.parametrize(("low", "outcome"), [(0.05, Outcome.ACCEPTED), (0.2, Outcome.UNDECIDED)])
def test_an_edit_is_beside_the_arms_only_within_both_ends(low: float, outcome: Outcome) -> None:
    line = accepted(1e6)
    edited = replace(line, time=1.1e6, why="a better reason", when="2026-07-01")
    context = replace(CONTEXT, edited=edited)
    found = judge(measured(1.4e6), [limit("slowdown <= 3%")], baseline=line, context=context,
                  paired=arms(0.25, low, 0.3, 10))  # fmt: skip
    assert found.verdicts[0].outcome is outcome


def test_a_clock_that_no_arm_saw_has_no_rounds() -> None:
    fast = tuple(replace(samples(1.25e6 * f), clock_hz=(1.6e9,)) for f in (0.999, 1.0, 1.001))
    context = replace(CONTEXT, then_hz=2e9, paired_available=False)
    report = judge(measured(0, processes=fast), [limit("slowdown <= 3%")], baseline=accepted(1e6), context=context)
    assert (report.verdicts[0].outcome, report.verdicts[0].rounds) == (Outcome.INVALID, 0)


# rounds


def pairs(*ratios: float, spread: float = 0.01) -> Pairs:
    return Pairs(base=(100.0,) * len(ratios), head=tuple(100.0 * r for r in ratios), spread=spread)


def test_what_rounds_show_is_counted_from_their_scatter() -> None:
    assert visible([0.0, 0.02]) == pytest.approx(math.expm1(SURELY * 0.02 / math.sqrt(2) / math.sqrt(2)))
    assert visible([]) == math.inf
    ratios = (1.02, 1.005, 1.03, 0.99, 1.012, 1.025)
    found = finding(pairs(*ratios), 0.03)
    logs = [math.log(r) for r in ratios]
    shares = 3 / 0.75
    assert found.p == pytest.approx(min(1.0, shares * signed_rank([x - MARGIN * math.log1p(0.03) for x in logs])))
    assert finding(pairs(*ratios), -0.5).p == pytest.approx(shares * signed_rank(logs))
    assert finding(pairs(*ratios), -0.5, Design(cases=5)).p == pytest.approx(5 * shares * signed_rank(logs))
    mean = sum(logs) / 6
    assert found.scatter == pytest.approx(math.sqrt(sum((x - mean) ** 2 for x in logs) / 5))


def test_sides_that_drift_together_are_steady_however_fast_one_is() -> None:
    base = (100.0, 100.0, 200.0, 200.0)
    assert not unstable(Pairs(base=base, head=tuple(1.5 * time for time in base), spread=0.01))
    assert unstable(Pairs(base=base, head=(200.0, 100.0, 100.0, 200.0), spread=0.01))


# a budget


def test_rounds_grow_with_the_square_of_the_scatter() -> None:
    gap = math.log1p(0.06) - MARGIN * math.log1p(0.03)
    expected = math.ceil(((NormalDist().inv_cdf(1 - 0.0025) + 0.8416212) * 0.06 / gap) ** 2)
    assert slower_rounds(shown(0.06, 0.06), 0.03, Design()) == expected
    assert clearing_rounds(shown(0.03, 0.02), 0.03, Design()) == MOST


def test_what_fits_exactly_is_given_and_suspects_first_even_where_they_cost_more() -> None:
    suspect, other = Want(rounds=10, seconds=1.0, suspected=True), Want(rounds=2, seconds=1.0, suspected=False)
    plan = allotted({"open": other, "suspect": suspect}, left_s=21, start_s=1)
    assert (plan.rounds, set(plan.beyond)) == ({"suspect": 10}, {"open"})
    assert not allotted({"open": other, "suspect": suspect}, left_s=22, start_s=1).beyond, "they share their starts"


# metrics


def test_two_processes_have_an_interval() -> None:
    gaps = tuple(samples(1e5, launch_gap=gap) for gap in (1000.0, 900.0))
    (gap,) = metrics_of(measured(0, processes=gaps), None).find("launch_gap")
    assert (gap.low, gap.high) == (900.0, 1000.0)


def test_a_call_of_less_than_a_nanosecond_has_its_figures() -> None:
    tiny = metrics_of(measured(0.5, work=Work(flops=64.0, dtype="bf16")), None)
    assert tiny.find("tflops")[0].value == pytest.approx(64 / 0.5e-9)


def test_a_roof_takes_exactly_so_long_and_says_what_it_knows() -> None:
    work = Work(flops=1e12, bytes=1e11, dtype="bf16", working_set=1e9)
    assert of_compute(work, CEILING).least_ns == 1e9
    assert of_memory(work, CEILING, HOST, measured(1.0).identity).least_ns == 1e9
    strange = replace(work, dtype="fp4")
    lacking = of_compute(strange, CEILING)
    assert (lacking.why, lacking.mend) == (
        "there is no measured ceiling for fp4: those of this device are for bf16",
        "`perfgate ceilings` measures no other here: count the work in one of these dtypes, or limit tflops or time",
    )
    empty = of_compute(strange, Roof(basis=Basis.CLOCK))
    assert empty.why == "there is no peak at the clock that ran for fp4"
    assert empty.mend == "add the rate to the device in [tool.perfgate]"
    unmeasured = of_compute(strange, Roof(basis=Basis.CEILING))
    assert (unmeasured.why, unmeasured.mend) == ("there is no measured ceiling for fp4", "perfgate ceilings")


def test_without_any_part_the_mend_is_that_of_compute() -> None:
    host = Device(key="k", name="n", kind="host", roofs=(replace(CEILING, cache_bytes=None),))
    found = metrics_of(measured(1e6, device=host, work=Work(flops=1e9, bytes=1e6, dtype="fp4")), None).missing("sol")
    assert found.mend.startswith("`perfgate ceilings` measures no other here")
    assert found.why.endswith("memory warm cache of unknown size")


def test_where_both_roofs_bind_alike_compute_is_named() -> None:
    work = Work(flops=1e9, bytes=1e8, dtype="bf16", working_set=1e9)
    assert metrics_of(measured(1e6, work=work), None).find("sol")[0].note.startswith("compute roof")


# limits


def test_limits_of_a_clock_that_the_project_has_are_for_other_tests() -> None:
    marker, far = limit("registers <= 128"), limit("slowdown <= 3%", source="configuration")
    code = limit("registers <= 64", source="configuration")
    read = measured(0, processes=(), identity=Identity(device=HOST.key, timer="cubin"))
    assert elsewhere([marker, far, code], read, KINDS) == (far,)
    assert elsewhere([limit("time <= 1s"), far], read, KINDS) == (far,)
    assert elsewhere([far], read, KINDS) == (), "nothing passes for want of a limit"
    time = limit("time <= 1s", source="configuration")
    assert elsewhere([marker, time], read, KINDS) == (time,)
    told = MetricSet(metrics=(Metric(name="time", value=5.0, dimension=Dimension.TIME),))
    assert elsewhere([marker, time], read.with_metrics(told), KINDS) == (), "the file that was read has it"
    assert elsewhere([marker, time], measured(1e6, identity=read.identity), KINDS) == ()
    assert elsewhere([marker, time], measured(0, processes=()), KINDS) == (), "a region that was never entered"


def test_a_part_of_an_architecture_names_no_device() -> None:
    for pattern, meant in (("sm_90", True), ("90", False), ("H200", True), ("NVIDIA H200", True), ("NVIDIA", False)):
        assert applies_on(replace(limit("time <= 1s"), on=(pattern,)), GPU) is meant


@pytest.mark.parametrize(
    ("scope", "held"),
    [
        ("f(a,b)", "f(a,b)"),
        ("f(a,b),kernel=k", "f(a,b)"),
        ("f<a,b>[c,d],kernel=k", "f<a,b>[c,d]"),
        ("f((a,b),c),kernel=k", "f((a,b),c)"),
        ("x],kernel=k", "x]"),
        ("'a,b',kernel=k", "a,b"),
        ("  'a b'  ", "a b"),
    ],
)
def test_commas_inside_of_brackets_part_nothing(scope: str, held: str) -> None:
    assert dict(limit(f"count({scope}) >= 1").labels)["opcode"] == held


def test_a_wrong_scope_is_shown_where_it_stands() -> None:
    with pytest.raises(PerfgateError) as caught:
        limit("count(kernel=k,  opcod=HMMA) >= 1")
    _, shown, marks = caught.value.what.split("\n")
    assert shown[marks.index("^") : marks.rindex("^") + 1] == "opcod"


def test_the_bare_word_stands_first_and_names_in_their_order() -> None:
    have = (("kernel", "k"), ("opcode", "HMMA"), ("case", "z"))
    assert render_scope(have, KINDS["count"]) == "(HMMA, case=z, kernel=k)"
    assert render_scope((("b", "1"), ("a", "2"))) == "(a=2, b=1)"


def test_a_word_without_a_scope_is_offered_four_of_them() -> None:
    with pytest.raises(PerfgateError) as caught:
        limit("tflops(bwd) >= 5 TFLOPS")
    assert caught.value.mend.count("tflops(") == 4


def test_units_in_examples_stand_apart_where_they_are_words() -> None:
    with pytest.raises(PerfgateError) as caught:
        limit("intensity >= x")
    assert "intensity >= 5 FLOP/B" in caught.value.mend
    with pytest.raises(PerfgateError) as caught:
        limit("time <= x")
    assert "time <= 5ns or" in caught.value.mend
    with pytest.raises(PerfgateError) as caught:
        limit("throughput >= x")
    assert "throughput >= 5/s or throughput >= 5 k/s" in caught.value.mend


def test_a_unit_of_something_else_names_the_metric_alone() -> None:
    with pytest.raises(PerfgateError) as caught:
        limit("time <= 5 GB")
    assert "'GB' measures a number of bytes, 'time' is a time" in caught.value.what


# artifacts


def test_of_several_absences_the_one_that_was_asked_for_speaks() -> None:
    one, other = (Absent(name="idle", labels=labels(rank=rank), why=f"rank {rank} is dark") for rank in (0, 1))
    overlap = Metric(name="overlap", value=0.5, dimension=Dimension.FRACTION, labels=labels(rank=0))
    gone = Absent(name="overlap", labels=labels(stage="s"), why="no stage")
    analysis = Analysis(
        kind="nsys", subject="x", views={}, metrics=MetricSet(metrics=(overlap,), absent=(one, other, gone))
    )

    def said(text: str) -> str:
        return judge_artifact(analysis, [parse_limit(text, kinds=KINDS)])[0].sentence

    assert said("idle(rank=1) <= 5%") == "idle was not collected: rank 1 is dark"
    assert said("idle(rank=9) <= 5%") == "idle was not collected: rank 0 is dark"
    with pytest.raises(PerfgateError, match="rank"):
        said("overlap(rank=9) >= 5%")
