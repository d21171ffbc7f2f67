"""Edges of suites, tolerances and samples, each found by ci/mutate: it was moved, and nobody noticed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.context import JudgeContext, tolerance
from pytest_perfgate.core.judge.judge import _trial, judge
from pytest_perfgate.core.judge.metrics import timing
from pytest_perfgate.core.judge.policy import CI
from pytest_perfgate.core.judge.samples import untrusted_samples
from pytest_perfgate.core.judge.suite import Suite, judge_suite
from pytest_perfgate.model.device import Basis, Roof
from pytest_perfgate.model.plan import CaseKey, Effect, Outcome
from pytest_perfgate.model.values import Work
from pytest_perfgate.model.verdict import CaseReport, SuiteNote, Verdict
from tests.unit.core.gate.bench import CEILING, FLOORED, HOST, KINDS, accepted, limit, measured, samples

CONTEXT = JudgeContext(kinds=KINDS)


def suite_of(collected: set[str], baselines: tuple[str, ...]) -> tuple[SuiteNote, ...]:
    lines = tuple(replace(accepted(1e6), key=CaseKey(nodeid=name)) for name in baselines)
    return judge_suite((), Suite(context=CONTEXT, collected=frozenset(collected), baselines=lines))


def test_a_twin_is_of_the_same_family_or_of_nearly_the_same_name() -> None:
    (family,) = suite_of({"t.py::test_mm[new]", "t.py::test_mn[old]"}, ("t.py::test_mm[old]",))
    assert family.names == ("t.py::test_mm[old] (renamed to t.py::test_mm[new]?)",)
    (two,) = suite_of({"t.py::test_mm[new]"}, ("t.py::test_mm[one]", "t.py::test_mm[two]"))
    assert str(two.names).count("renamed to") == 1, "a new test was one of them at most"
    (own,) = suite_of({"t.py::test_sized[two]"}, ("t.py::test_gone", "t.py::test_sized[2]"))
    assert own.names == ("t.py::test_gone", "t.py::test_sized[2] (renamed to t.py::test_sized[two]?)"), (
        "its own family first"
    )
    (name,) = suite_of({"t.py::test_gemm_fast", "t.py::nothing_alike"}, ("t.py::test_gemm_past",))
    assert "(renamed to t.py::test_gemm_fast?)" in str(name.names)


def test_a_baseline_is_asked_for_by_any_slowdown_limit() -> None:
    report = judge(
        measured(1e6), [limit("time <= 1s"), limit("slowdown <= 3%")], baseline=accepted(1e6), context=CONTEXT
    )
    suite = Suite(context=CONTEXT, collected=frozenset({report.key.nodeid}), baselines=(accepted(1e6),))
    assert judge_suite([report], suite) == ()


def test_a_scope_that_meets_no_call_is_only_warned_of_where_other_devices_were_meant() -> None:
    for on, effect in (((), Effect.FAIL), (("B200",), Effect.WARN)):
        meant = replace(limit("time(case=bwd) <= 1s"), on=on)
        verdict = Verdict(limit=meant, outcome=Outcome.NOT_APPLICABLE, effect=Effect.PASS)
        report = CaseReport(key=CaseKey(nodeid="t.py::test_a"), verdicts=(verdict,))
        (note,) = judge_suite([report], Suite(context=replace(CONTEXT, policy=CI)))
        assert (note.kind, note.effect) == ("nowhere", effect)


def test_the_floor_and_a_tick_are_shares_of_the_accepted_time() -> None:
    trial, sitting = _trial(measured(1e6), FLOORED, None, None), timing(measured(1e6))
    found = tolerance(limit("slowdown <= 1%"), trial, sitting._replace(batch=4, resolution=50.0), 1e4)
    assert found.asked == found.raised == pytest.approx(2000 / 4 / 1e4)
    assert found.own == pytest.approx(50 / 1e4)
    assert tolerance(limit("slowdown <= 20%"), trial, sitting, 1e4).raised is None


def test_a_bad_sample_is_named_by_its_place() -> None:
    sick = replace(samples(1e5), durations=(1e5, 0.5, -3.0, 1e5))
    (problem,) = untrusted_samples(measured(0, processes=(samples(1e5), sick)))
    assert problem.what == "sample 3 of 4 in process 2 reads -3.0 ns"
    assert problem.retry
    endless = replace(samples(1e5), durations=(1e308,) * 4)
    (problem,) = untrusted_samples(measured(0, processes=(endless,)))
    assert problem.what.startswith("sample 1 of 4 in process 1 reads ")


def test_only_a_gpu_has_a_physical_peak() -> None:
    roof = Roof(basis=Basis.CLOCK, compute=(("bf16", 1e9),), bandwidth=1e9)
    for kind, code in (("gpu", "above-peak"), ("host", "")):
        device = replace(HOST, kind=kind, roofs=(roof, CEILING))
        report = judge(
            measured(1e6, device=device, work=Work(flops=1e9, dtype="bf16")), (), baseline=None, context=CONTEXT
        )
        assert [problem.code for problem in report.problems] == [code] * bool(code)
