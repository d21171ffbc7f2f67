"""Tests of app/judge."""

from __future__ import annotations

import shlex
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.app.conclude import keep
from pytest_perfgate.app.judge import COMMIT_FIRST, IMPORT_LATER, agreed, with_excuse
from pytest_perfgate.core.judge.acceptance import detectable
from pytest_perfgate.core.judge.judge import NOBODY
from pytest_perfgate.core.judge.policy import CI
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Environment, HistoryEntry
from pytest_perfgate.model.metric import Metric, MetricSet
from pytest_perfgate.model.plan import Base, Case, CaseKey, Effect, Outcome, Plan
from pytest_perfgate.model.project import DEPENDENCIES, REQUEST
from pytest_perfgate.model.protocol import WAITED, CaseResult
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.model.verdict import Excuse
from pytest_perfgate.plugin.ending import not_kept
from tests.reports import run
from tests.unit.app.stores import Lines, Past, captured, case, gate_judge
from tests.unit.core.judge.bench import GPU, HOST, KEY, accepted, limit, measured, samples


def test_a_limit_of_a_call_that_names_another_call_is_lost() -> None:
    named = measured(1e6, key=CaseKey(nodeid=KEY.nodeid, name="fwd"))
    reports = gate_judge(Lines(None)).judge_result(captured(named, limits=("time(case=bwd) <= 1ns",)))
    assert [report.key.name for report in reports] == ["fwd", NOBODY]
    assert reports[1].effect is Effect.FAIL


def test_a_line_of_no_commit_and_a_base_that_does_not_build_are_both_reasons() -> None:
    line = accepted(1e6, commit="a1b2c3d4e5f6+dirty")
    gate = gate_judge(Lines(line, line), confirm=lambda reports, cases: {})
    (report,) = gate.judge_result(captured(measured(1.2e6)))
    fault = PerfgateError(
        "arm-build-failed", "the base build (9927da1f93): make: exit 2\n  k.c:3:1: error: no ;", fix="fix"
    )
    (verdict,) = gate.without_arms(case(), report, fault).verdicts
    first, error, lost = dict(verdict.evidence)["no verdict by base and head"].splitlines()
    assert (first, error) == ("the base build (9927da1f93): make: exit 2", "k.c:3:1: error: no ;")
    assert lost.startswith("it was accepted from a1b2c3d with changes")
    assert verdict.next[0] == "fix"
    (verdict,) = gate.without_arms(case(), report, None, "head: failed: no such file; next: set build").verdicts
    assert verdict.next[0] == "set build"
    assert verdict.evidence[-1][1].startswith("head: failed: no such file\n")
    (verdict,) = gate.without_arms(case(), report, None, "it failed in the base").verdicts
    first, lost = dict(verdict.evidence)["no verdict by base and head"].splitlines()
    assert first == "it failed in the base"
    assert lost.startswith("it was accepted from a1b2c3d with changes")
    bare = PerfgateError("arm-no-commit", "the baseline names no commit to compare with")
    (verdict,) = gate.without_arms(case(), report, bare).verdicts
    assert dict(verdict.evidence)["no verdict by base and head"] == lost, "one reason is told once"


def test_the_step_after_a_death_is_a_command_of_a_shell_whatever_the_parameters() -> None:
    died = CaseResult(
        case=replace(case(), nodeid="t.py::test_k[it's]"), trouble=("died of SIGSEGV",), outcome="died", captures=()
    )
    (report,) = gate_judge(Lines(None)).judge_result(died)
    assert shlex.split(report.verdicts[0].next[0]) == ["pytest", "t.py::test_k[it's]", "--perfgate=off", "-s"]


def test_the_line_of_a_new_test_clears_it_only_where_base_and_head_cannot_decide() -> None:
    """A kernel became 8 times slower; its test moved to a new file with an edit, and its line came with the change."""
    texts = {"base": None, "HEAD": "def test_gemm(): pass"}
    repository = SimpleNamespace(base=lambda: Base(commit="base"), show=lambda revision, _path: texts[revision])
    line = accepted(1e6, scatter=0.005, runs=30)
    gate = gate_judge(Lines(line), confirm=lambda reports, cases: {}, repository=repository)
    gate.context = replace(gate.context, policy=CI)
    (report,) = gate.judge_result(captured(measured(1e6)))
    assert report.verdicts[0].outcome is Outcome.UNDECIDED
    alone = gate.without_arms(case(), report, None, "the base build could not collect it")
    assert alone.verdicts[0].outcome is Outcome.PASSED


def test_a_test_that_the_budget_did_not_reach_is_undecided_and_not_unmeasured() -> None:
    why = "the budget ended before its first round; about 2 min 29 s more may decide"
    late = CaseResult(case=case(), outcome=WAITED, trouble=(why,))
    (report,) = gate_judge(Lines(None)).judge_result(late)
    assert [(one.outcome, one.sentence) for one in report.verdicts] == [(Outcome.UNDECIDED, why)]
    assert report.verdicts[0].next == ("a larger --perfgate-budget, or this test alone",)


@pytest.mark.parametrize("unversioned", [True, False])
def test_a_revision_is_advised_only_where_git_knows_a_commit(unversioned: bool) -> None:
    why = "there is no git repository here" if unversioned else "the target branch is not known"
    repository = SimpleNamespace(base=lambda: Base(why=why, unversioned=unversioned))
    gate = gate_judge(Lines(accepted(1e6)), repository=repository)
    (report,) = gate.judge_result(captured(measured(1.2e6, shape=(0.98, 1.0, 1.02))))
    verdict = report.verdicts[0]
    assert verdict.outcome is Outcome.SUSPECT
    against = f"pytest '{KEY}' --perfgate-against a1b2c3d4e5"
    assert verdict.next == (f"in a clone with its history: {against}" if unversioned else against,)
    assert (("no verdict by base and head", why) in verdict.evidence) is unversioned


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ({"expires": "2026-09-01", "why": "not yet", "when": "2026-06-01"}, Outcome.ACCEPTED),
        ({"expires": ""}, Outcome.UNBASELINED),
        ({}, Outcome.UNBASELINED),
    ],
)
def test_the_end_of_an_acceptance_is_moved_with_a_reason_or_not_at_all(
    change: dict[str, str], outcome: Outcome
) -> None:
    then = accepted(1e6, expires="2026-05-01")
    (report,) = gate_judge(Lines(replace(then, **change), then)).judge_result(captured(measured(1e6)))
    assert report.verdicts[0].outcome is outcome


def entry(hz: float | None, commit: str = "a1b2c3d4e5f6") -> HistoryEntry:
    return HistoryEntry(key=KEY, device=GPU.key, time=1e6, when="2026-05-02", commit=commit, clock_hz=hz)


@pytest.mark.parametrize(
    ("past", "outcome"), [(Past(entry(1.5e9)), Outcome.INVALID), (Past(entry(None)), Outcome.REGRESSED)]
)
def test_the_history_tells_at_which_clock_a_line_was_measured(past: Past, outcome: Outcome) -> None:
    slow = measured(
        1.25e6, device=GPU, clocks="observe", processes=tuple(samples(1.25e6, clock_hz=(1.2e9,)) for _ in range(3))
    )
    line = accepted(1e6, device=GPU, clocks="observe")
    (report,) = gate_judge(Lines(line, line), past).judge_result(captured(slow))
    assert report.verdicts[0].outcome is outcome


@pytest.mark.parametrize(
    ("past", "dirty", "outcome"),
    [
        ([("c0ffee", 1.1e6), ("c0ffee", 1.14e6), ("c0ffee", 0.9e6)], False, Outcome.REGRESSED),
        ([("c0ffee+dirty", 1.1e6), ("c0ffee+dirty", 1.14e6), ("c0ffee+dirty", 0.9e6)], True, Outcome.REGRESSED),
        ([("beef", 1.5e6), ("beef", 1.6e6), ("feed", 1e6), ("feed", 1e6)], False, Outcome.REGRESSED),
        ([("beef", 0.9e6), ("feed", 1e6), ("dead", 1.14e6)], False, Outcome.SUSPECT),
        ([("beef", 0.9e6), ("feed", 1.14e6)], False, Outcome.REGRESSED),  # two runs show no scatter
    ],
)
def test_what_was_confirmed_does_not_become_noise(past: list[tuple[str, float]], dirty: bool, outcome: Outcome) -> None:
    history = Past(*(replace(entry(None, commit), time=time) for commit, time in past))
    line = accepted(1e6, device=GPU)
    bench = gate_judge(Lines(line, line), history)
    bench.tools = replace(bench.tools, environment=lambda: Environment(commit="c0ffee", dirty=dirty))
    (report,) = bench.judge_result(captured(measured(1.12e6, device=GPU)))
    assert report.verdicts[0].outcome is outcome


def test_the_accepted_commit_tells_how_its_own_runs_scatter() -> None:
    line = accepted(1e6, device=GPU, commit="c0ffee")
    bench = gate_judge(Lines(line, line), Past(*(replace(entry(None, "c0ffee"), time=t) for t in (0.9e6, 1e6, 1.14e6))))
    bench.tools = replace(bench.tools, environment=lambda: Environment(commit="c0ffee"))
    (report,) = bench.judge_result(captured(measured(1.12e6, device=GPU)))
    assert report.verdicts[0].outcome is Outcome.SUSPECT


@pytest.mark.parametrize(("how", "outcome"), [("", Outcome.SUSPECT), ("threads=8", Outcome.REGRESSED)])
def test_runs_that_were_measured_differently_are_no_scatter(how: str, outcome: Outcome) -> None:
    """One commit measured with all threads and with one: what lies between them hid any slowdown."""
    past = [replace(entry(None, "c0ffee"), time=time, identity=how) for time in (0.9e6, 8e6, 1.14e6)]
    line, now = accepted(1e6, device=GPU, commit="c0ffee"), measured(1.12e6, device=GPU)
    usual = [replace(entry(None, "c0ffee"), identity=now.identity.text())] * 2
    bench = gate_judge(Lines(line, line), Past(*past, *usual))
    bench.tools = replace(bench.tools, environment=lambda: Environment(commit="beef"))
    (report,) = bench.judge_result(captured(now))
    assert report.verdicts[0].outcome is outcome


@pytest.mark.parametrize(("witness", "outcome"), [("c0ffee", Outcome.SUSPECT), ("feed", Outcome.REGRESSED)])
def test_a_busy_machine_is_known_by_the_accepted_commit_alone(witness: str, outcome: Outcome) -> None:
    line = accepted(1e6, device=GPU, commit="c0ffee")
    times = [(witness, 1.6e6), ("feed", 1e6), ("feed", 1e6), ("feed", 1e6)]
    bench = gate_judge(Lines(line, line), Past(*(replace(entry(None, commit), time=time) for commit, time in times)))
    bench.tools = replace(bench.tools, environment=lambda: Environment(commit="beef"))
    (report,) = bench.judge_result(captured(measured(1.3e6, device=GPU)))
    assert report.verdicts[0].outcome is outcome


def test_why_no_arm_could_be_made_is_said() -> None:
    fault = PerfgateError("revision-missing", "'a1b2c3d4e5f6+dirty' is not in this clone", fix="git fetch")
    for commit, why, fix in (
        ("a1b2c3d4e5f6+dirty", "it was accepted from a1b2c3d with changes", COMMIT_FIRST),
        ("a1b2c3d4e5f6", "is not in this clone", f"pytest '{KEY}' --perfgate-against"),
    ):
        line = accepted(1e6, commit=commit)
        bench = gate_judge(Lines(line, line), confirm=lambda reports, cases: {})
        (report,) = bench.judge_result(captured(measured(1.2e6)))
        (verdict,) = bench.without_arms(case(), report, fault).verdicts
        assert why in dict(verdict.evidence)["no verdict by base and head"]
        assert verdict.next[0] == fix
        assert f"--perfgate-against {commit}" not in " ".join(verdict.next), "no server has what a squash left behind"
        assert "next" not in dict(verdict.evidence)
    (verdict,) = bench.without_arms(case(), report, None).verdicts
    assert "may not make this call" in dict(verdict.evidence)["no verdict by base and head"]
    (verdict,) = bench.without_arms(case(), report, None, "base: failed: no kernel").verdicts
    assert verdict.evidence == (("no verdict by base and head", "base: failed: no kernel"),)
    why = "the base build ended with exit code 4; its last output:\n  ImportError while loading conftest '/p/conftest.py'."
    (verdict,) = bench.without_arms(case(), report, None, why).verdicts
    assert verdict.next[0] == IMPORT_LATER


@pytest.mark.parametrize(("dirty", "commit"), [(False, "c0ffee"), (True, "c0ffee+dirty")])
def test_what_a_run_leaves_names_the_tree_that_it_measured(dirty: bool, commit: str) -> None:
    lines, past = Lines(None), Past()
    bench = gate_judge(lines, past, committed=lambda device: False)
    clocked = measured(1e6, processes=tuple(samples(1e6, clock_hz=(2e9,)) for _ in range(3)))
    (report,) = bench.judge_result(captured(clocked))
    keep(bench, run(report, environment=Environment(commit="c0ffee", dirty=dirty, facts=((REQUEST, "tiles"),))))
    assert [(line.commit, line.time, line.device) for line in lines.written] == [(commit, 1e6, HOST.key)]
    assert [(s.commit, s.clock_hz, s.branch) for s in past.entries] == [(commit, 2e9, "tiles")]
    assert past.entries[0].identity == clocked.identity.text() != ""


def test_what_cannot_be_kept_costs_nothing_else() -> None:
    full = PerfgateError("file-unwritable", "it cannot be written: No space left on device", place="records/1.json")
    damaged = PerfgateError("history-unreadable", "file is not a database", place="history.db")
    lines = Lines(None)

    def refuse(fault: PerfgateError) -> Any:
        raise fault

    past: Any = SimpleNamespace(read=lambda *_: [], append=lambda entries: refuse(damaged))
    records = SimpleNamespace(write=lambda report: refuse(full))
    bench = gate_judge(lines, past, committed=lambda device: False, records=records)
    (case_report,) = bench.judge_result(captured(measured(1e6)))
    record = keep(bench, run(case_report))
    assert record.lost == (("the record of this run", full), ("this run's part of the history", damaged))
    assert len(lines.written) == 1
    both = not_kept([*record.lost, ("this machine's first baselines", full)])
    assert [fault.what for fault in both] == [
        "not kept: the record of this run and this machine's first baselines",
        "not kept: this run's part of the history",
    ]
    assert both[0].why.startswith("records/1.json: ")
    assert both[0].why.endswith("No space left on device")
    assert "make the folder writable, or free its disk" in both[0].fix


def test_a_mean_over_a_family_is_no_limit_of_one_call() -> None:
    with pytest.raises(PerfgateError, match="applies to the whole parametrised test") as raised:
        gate_judge(Lines(None)).limits(case(), measured(1e6, limits=("geomean(slowdown) <= 1%",)))
    assert "@pytest.mark.perfgate('geomean(slowdown) <= 1%')" in raised.value.fix


def test_a_limit_on_machine_code_without_its_capture_is_told_the_capture() -> None:
    bare = case(limit("registers <= 128"), limit("time <= 1ms"))
    (report,) = gate_judge(Lines(None)).judge_result(CaseResult(case=bare, captures=((),)))
    code, clock = report.verdicts
    assert code.outcome is clock.outcome is Outcome.NOT_MEASURED
    assert "capture='cubin'" in code.sentence
    assert code.next == ("@pytest.mark.perfgate('registers <= 128', capture='cubin')",)
    assert clock.sentence.startswith("the test did not call perfgate()")
    assert clock.next
    with_capture = replace(bare, plan=Plan(captures=("ncu",)))
    (other,) = gate_judge(Lines(None)).judge_result(CaseResult(case=with_capture, captures=((),)))
    assert {verdict.sentence for verdict in other.verdicts} == {clock.sentence}


def test_a_call_that_raised_has_no_measurement_and_says_what_it_raised() -> None:
    fault = (KEY, "call raised ValueError: odd")
    (report,) = gate_judge(Lines(None)).judge_result(CaseResult(case=case(), captures=((),), raised=(fault,)))
    assert (report.key, report.worst) == (KEY, Outcome.NOT_MEASURED)
    assert "ValueError: odd" in report.verdicts[0].sentence
    (silent,) = gate_judge(Lines(None)).judge_result(CaseResult(case=case(), captures=((),)))
    assert "did not call" in silent.verdicts[0].sentence


def test_nothing_is_kept_of_what_raised_whatever_else_was_timed_of_it() -> None:
    second, region = (replace(KEY, name=name) for name in ("second", "region"))
    raised = tuple((key, f"call raised {key.name}") for key in (KEY, second, region))
    empty = replace(captured(measured(1e6)).captures[0][0], key=region, samples=())
    fine = captured(measured(1e6))
    result = replace(fine, captures=((*fine.captures[0], empty),), raised=raised)
    reports = gate_judge(Lines(None)).judge_result(result)
    assert {report.key: report.measurement is None for report in reports} == {KEY: True, region: True, second: True}
    assert "raised region" in reports[1].verdicts[0].sentence
    later = agreed(gate_judge(Lines(None)), case(), reports, (KEY, second, region))
    assert later == reports


def test_a_limit_of_the_project_on_times_is_not_for_a_test_that_reads_figures_without_one() -> None:
    """It was NOT MEASURED beside every trace, with no way out, and failed in CI."""
    overlap = Metric(name="overlap", value=0.9, dimension=Dimension.FRACTION)
    figures = measured(0, processes=()).with_metrics(MetricSet(metrics=(overlap,)))
    trace = replace(figures, identity=replace(figures.identity, timer="read"))
    far, own = limit("slowdown <= 5%", source="configuration"), limit("overlap >= 80%")
    plan = Case(nodeid=KEY.nodeid, limits=(far, own), plan=Plan())
    (only,) = gate_judge(Lines(None)).judged(plan, trace).verdicts
    assert (only.limit, only.outcome) == (own, Outcome.PASSED)
    here = replace(trace, limits=("overlap >= 95%",))
    assert [v.outcome for v in gate_judge(Lines(None)).judged(plan, here).verdicts] == [Outcome.BROKEN]
    (alone,) = gate_judge(Lines(None)).judged(replace(plan, limits=(far,)), trace).verdicts
    assert (alone.limit, alone.outcome) == (far, Outcome.NOT_MEASURED), "nothing passes for want of a limit"
    assert alone.next == ("give the test a limit on a figure that it read: overlap",)
    commanded = replace(far, source="command line")
    both = gate_judge(Lines(None)).judged(replace(plan, limits=(own, commanded)), trace).verdicts
    assert [v.outcome for v in both] == [Outcome.PASSED, Outcome.NOT_APPLICABLE], "what was asked for now is answered"
    timed = replace(trace, metrics=trace.metrics | MetricSet(metrics=(replace(overlap, name="time", value=5.0),)))
    (slower,) = gate_judge(Lines(None)).judged(replace(plan, limits=(far,)), timed).verdicts
    assert (slower.outcome, "perfgate.record(" in slower.next[0]) == (Outcome.NOT_MEASURED, True)
    late = limit("time <= 1s", source="configuration")
    assert late in gate_judge(Lines(None)).limits(replace(plan, limits=(late, own)), timed)


@pytest.mark.parametrize(
    ("share", "limits", "gates"),
    [
        (1.0, (limit("slowdown <= 3%"),), 2),
        (0.25, (limit("slowdown <= 3%"),), 8),
        (0.3, (limit("slowdown <= 3%"),), 7),
        (1.0, (limit("slowdown <= 3%"), limit("time <= 1s"), limit("change(registers) <= 0")), 4),
    ],
    ids=["one machine", "a quarter of a suite", "a part", "a change of a figure"],
)
def test_every_call_and_gated_figure_of_a_suite_may_alarm(share: float, limits: Any, gates: int) -> None:
    bench, taken = gate_judge(Lines(None)), captured(measured(1e6))
    bench.context = replace(bench.context, share=share)
    other = replace(taken.captures[0][0], key=replace(KEY, name="other"))
    taken = replace(taken, case=case(*limits), captures=((*taken.captures[0], other), taken.captures[0]))
    bench.judge_all({KEY.nodeid: taken})
    assert bench.context.gates == gates


@pytest.mark.parametrize(("floor_ns", "outcome"), [(0.0, Outcome.SUSPECT), (5e5, Outcome.PASSED)])
def test_a_difference_below_the_floor_of_a_test_is_not_slower(floor_ns: float, outcome: Outcome) -> None:
    line = accepted(1e6)
    floored = replace(case(), plan=Plan(floor_ns=floor_ns))
    assert gate_judge(Lines(line, line)).judged(floored, measured(1.2e6)).verdicts[0].outcome is outcome


def test_a_limit_of_the_command_line_replaces_that_of_a_call_and_this_one_that_of_its_test() -> None:
    texts = {"configuration": "time <= 1s", "marker": "time <= 2s", "command line": "time <= 4s"}
    far = tuple(limit(text, source=source) for source, text in texts.items())
    for stated, text in ((far, "time <= 4s"), (far[:2], "time <= 3s")):
        (closest,) = gate_judge(Lines(None)).limits(case(*stated), measured(1e6, limits=("time <= 3s",)))
        assert closest.text == text


def test_requirements_that_a_change_edits_are_those_that_it_removes_and_adds() -> None:
    declared = {"base": '["numpy==1", "torch"]', "": '["numpy==2", "torch"]'}
    repository = SimpleNamespace(base=lambda: Base(commit="base"), changed=lambda base: ())
    gate = gate_judge(Lines(None), repository=repository, settings=lambda revision: {DEPENDENCIES: declared[revision]})
    assert gate.environment_edits.requirements == ("-numpy==1", "+numpy==2")


@pytest.mark.parametrize(("timer", "outcome"), [("host", Outcome.NOT_MEASURED), ("cubin", Outcome.PASSED)])
def test_machine_code_belongs_to_no_call_and_a_time_does(timer: str, outcome: Outcome) -> None:
    gate, taken = gate_judge(Lines(None)), measured(1e6)
    taken = replace(taken, identity=replace(taken.identity, timer=timer))
    stored = (gate.judged(case(limit("time <= 1s")), replace(taken, identity=measured(1e6).identity)),)
    stored = (replace(stored[0], measurement=taken),)
    (report,) = agreed(gate, case(limit("time <= 1s")), stored, ())
    assert report.verdicts[0].outcome is outcome


def test_a_first_line_of_a_machine_holds_what_its_run_can_detect_and_its_state_of_power() -> None:
    for is_limited in (False, True):
        processes = tuple(samples(1e6 * part, capped=float(is_limited)) for part in (0.8, 1.0, 1.2))
        lines = Lines(None)
        gate = gate_judge(lines, committed=lambda device: False)
        (report,) = gate.judge_result(captured(measured(1e6, processes=processes)))
        keep(gate, run(report, environment=Environment(commit="c0ffee")))
        (line,) = lines.written
        assert (line.detects, line.limited) == (pytest.approx(detectable(report)), is_limited)
        assert line.detects > 0


@pytest.mark.parametrize(("measurement", "excuse"), [(measured(1e6), Excuse.NONE), (None, Excuse.NOT_RUN)])
def test_a_skipped_test_is_excused_unless_it_was_measured(measurement: Any, excuse: Excuse) -> None:
    report = replace(gate_judge(Lines(None)).judged(case(), measured(1e6)), measurement=measurement)
    assert with_excuse(report).excuse is excuse
