"""Each part of a condition on accepting decides something: ci/mutate took it away, and nobody noticed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.app.accept import Request, refuse_busy_machine
from pytest_perfgate.core.judge.acceptance import (
    Change,
    Proposal,
    decide,
    detectable,
    loosened,
    on_one_core,
    refuse_unconfirmed,
    refuse_unneeded,
    too_few_processes,
    unpinned,
)
from pytest_perfgate.core.judge.accepted_line import Signature
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.render.block import acceptance_lines
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import DIRTY, Baseline, Identity, Samples, Stop
from pytest_perfgate.model.metric import Metric, MetricSet, labels
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.model.verdict import Arms, CaseReport
from tests.reports import DEVICE, baseline, case, run
from tests.unit.core.judge.bench import CONTEXT, accepted, limit, measured

TODAY = Signature(when="2026-06-01", who="me")
OTHER = Identity(device=DEVICE.key, threads="9")


def decided(
    time: float, before: Baseline | None, signature: Signature = TODAY, *, add: bool = False, **fields
) -> Proposal:
    report = case("test_a", time, 1e6, **fields)
    return decide(replace(report, baseline=before), before, (), signature, add=add)


def line(time: float = 1e6, **fields) -> Baseline:
    return baseline("test_a", time, **fields)


def test_a_slower_time_is_slower_whatever_else_its_line_could_gain() -> None:
    lines = (
        line(expires="2026-05-01"),
        line(detects=0.4),
        line(processes=1),
        line(commit=f"a1b2c3d{DIRTY}"),
    )
    clean = replace(TODAY, commit="c0ffee1")
    changes = {decided(1e6, before, clean).change for before in lines}
    assert changes == {Change.RENEWED, Change.LESS_NOISY, Change.COMMITTED}, "at the same time they do gain that"
    for before in lines:
        decision = decided(1.5e6, before, clean, outcome=Outcome.REGRESSED)
        assert (decision.change, decision.asks) == (Change.SLOWER, True)
        assert decision.after is not None
        assert (decision.after.time, decision.after.processes) == (1.5e6, 0)


@pytest.mark.parametrize(
    ("time", "detects", "outcome", "change"),
    [
        (1.5e6, 0.0, Outcome.PASSED, Change.KEPT),
        (0.5e6, 0.0, Outcome.PASSED, Change.KEPT),
        (1.5e6, 0.5, Outcome.UNDECIDED, Change.KEPT),
        (1.51e6, 0.5, Outcome.UNDECIDED, Change.SLOWER),
        (0.5e6, 0.5, Outcome.UNDECIDED, Change.LESS_NOISY),
        (0.49e6, 0.5, Outcome.UNDECIDED, Change.FASTER),
        (0.49e6, 0.5, Outcome.PASSED, Change.KEPT),
        (1.5e6, 0.5, Outcome.SUSPECT, Change.KEPT),
        (1.5e6, 0.5, Outcome.MOVED, Change.SLOWER),
        (1.5e6, 0.5, Outcome.REGRESSED, Change.SLOWER),
        (0.5e6, 0.5, Outcome.IMPROVED, Change.FASTER),
    ],
)
def test_what_the_run_does_not_report_as_moved_leaves_its_line(
    time: float, detects: float, outcome: Outcome, change: Change
) -> None:
    before = line(detects=detects, commit="a1b2c3d")
    decision = decided(time, before, outcome=outcome)
    assert (decision.change, decision.writes) == (change, change is not Change.KEPT)
    assert ("name the test" in decision.why) is (change is Change.KEPT)
    moved = Change.SLOWER if time > 1e6 else Change.FASTER
    assert decided(time, before, replace(TODAY, named=True), outcome=outcome).change is moved, "it is named"
    assert decided(time, before, outcome=outcome, add=True).change is moved, "another run must be of the same code"


def test_a_time_that_passed_renews_no_line_and_gives_it_no_commit() -> None:
    dirty, clean = line(commit=f"a1b2c3d{DIRTY}"), replace(TODAY, commit="c0ffee1")
    assert decided(1.5e6, dirty, clean).change is Change.KEPT
    assert decided(1.5e6, replace(dirty, detects=0.6), clean).change is Change.COMMITTED, "so much is no difference"
    for_a_while = line(expires="2999-01-01")
    assert decided(0.5e6, for_a_while).change is Change.FASTER, "it waits for a faster time"
    report = case("test_a", 1.5e6, 1e6)
    later = decide(report, line(1.2e6), (), TODAY)
    assert later.change is Change.SLOWER, "the verdict is on another line"
    unasked_for = replace(report, verdicts=())
    assert decide(unasked_for, line(), (), TODAY).change is Change.SLOWER, "no verdict is on its slowdown"
    assert decide(unasked_for, line(detects=0.6), (), TODAY).change is Change.KEPT


def test_a_line_that_is_made_anew_says_nothing_of_what_this_run_saw() -> None:
    decision = decided(1e6, line(expires="2026-05-01"), spread=0.25)
    assert (decision.change, decision.detects) == (Change.RENEWED, None)
    assert decision.after is not None
    assert decision.after.detects == 0.0


def test_only_slowdowns_say_what_a_run_has_to_see() -> None:
    report = case("test_a", 1e6, spread=0.02)
    with_share = replace(report.verdicts[0], limit=replace(report.verdicts[0].limit, metric="mfu", bound=0.01))
    assert detectable(replace(report, verdicts=(*report.verdicts, with_share))) is None


def test_a_line_of_figures_alone_has_no_time_to_compare_with() -> None:
    decision = decided(1e6, line(0.0))
    assert (decision.change, decision.before) == (Change.NEW, line(0.0))


@pytest.mark.parametrize("measured_speedup", [True, False])
def test_a_speed_up_that_was_measured_needs_a_line(measured_speedup: bool) -> None:
    report = case("test_a", 1e6, 1e6)
    metric = report.verdicts[0].metric if measured_speedup else None
    speedup = replace(report.verdicts[0], limit=limit("speedup(over=eager) >= 1.2x"), metric=metric)
    new = decide(replace(report, verdicts=(speedup,)), None, (), TODAY)
    assert refuse_unneeded(new, {}).change is (Change.NEW if measured_speedup else Change.UNASKED)


def test_a_line_that_was_deleted_since_leaves_a_new_case() -> None:
    report = case("test_a", 1e6, 1e6, Outcome.UNBASELINED)
    assert decide(report, None, (), TODAY).change is Change.NEW


def test_more_processes_that_saw_less_are_no_better_evidence() -> None:
    before = line(processes=1, detects=0.1)
    assert decided(1e6, before, spread=0.2).change is Change.KEPT
    assert decided(1e6, before, spread=0.09).change is Change.LESS_NOISY


def test_a_run_that_was_measured_differently_is_none_of_its_line_at_the_same_commit() -> None:
    signature = replace(TODAY, commit="a1b2c3d", started="2026-06-01T10:00:00", why="a slower runner")
    assert decided(1.2e6, line(), signature, add=True).change is Change.ONE_MORE
    assert decided(1.2e6, line(identity=OTHER), signature, add=True).change is Change.OTHER


def test_a_run_of_the_same_time_counts_where_the_line_says_up_to_when_it_counted() -> None:
    signature = replace(TODAY, started="2026-06-01T10:00:00")
    assert decided(1e6, line(), signature, add=True).change is Change.COUNTED
    assert decided(1e6, line(counted="2026-05-01T10:00:00"), signature, add=True).change is Change.ONE_MORE


def test_the_same_time_at_another_commit_is_one_more_run() -> None:
    """CUPTI's stamps of short kernels are steps of 32 ns: runs often agree to the last digit."""
    signature = replace(TODAY, started="2026-06-01T10:00:00", commit="b1b2c3d4e5f6a7", same_code=True)
    assert decided(1e6, line(commit="b1b2c3d4e5f6"), signature, add=True).change is Change.COUNTED
    assert decided(1e6, line(commit="a1b2c3d4e5f6"), signature, add=True).change is Change.ONE_MORE


def test_a_time_of_a_part_is_no_time_of_the_call() -> None:
    report = case("test_a", 1e6)
    part = Metric(name="time", value=1e5, dimension=Dimension.TIME, labels=labels(part="gemm"))
    metrics = MetricSet(metrics=(part,))
    of_part = replace(report, measurement=replace(report.measurement, metrics=metrics))
    assert decide(of_part, None, (), TODAY).change is Change.UNTIMED


def test_a_line_without_a_reason_is_no_matter_where_the_time_lies_off_it() -> None:
    report = case("test_a", 1e6, 1e6)
    assert decide(report, line(2e6), (), TODAY).change is Change.FASTER
    assert decide(case("test_a", 2e6, 1e6), line(2e6), (), TODAY).change is Change.SLOWER


def test_only_of_its_slowdown_a_case_is_told_to_have_moved() -> None:
    report = case("test_a", 1.004e6, 1e6, Outcome.REGRESSED)
    of_time = replace(report.verdicts[0], limit=limit("time <= 1s"))
    assert decide(report, report.baseline, (), TODAY).change is Change.SLOWER
    assert decide(replace(report, verdicts=(of_time,)), report.baseline, (), TODAY).change is Change.KEPT


def test_a_loosened_line_that_says_nothing_of_how_it_was_measured_is_told_too() -> None:
    taken = judge(measured(1e6), [limit("time <= 1s")], baseline=None, context=CONTEXT).measurement
    for edited in (accepted(2e6), accepted(2e6, identity=None)):
        assert loosened(accepted(1e6), edited, taken)
    assert not loosened(accepted(1e6), accepted(2e6, identity=OTHER), taken)


def test_a_line_that_gains_no_time_stands_on_no_few_processes() -> None:
    quick = replace(run(case("test_a", 1e6)), mode="quick")
    dirty = line(commit=f"a1b2c3d{DIRTY}")
    for before, change in ((dirty, Change.COMMITTED), (line(expires="2026-05-01"), Change.RENEWED)):
        decision = decided(1e6, before, replace(TODAY, commit="c0ffee1"))
        assert (decision.change, too_few_processes(decision, quick)) == (change, decision)


def test_only_a_new_line_is_asked_whether_a_limit_wants_it() -> None:
    report = case("test_a", 1.5e6, 1e6)
    of_time = replace(report, verdicts=(replace(report.verdicts[0], limit=limit("time <= 1s")),))
    existing, new = decide(of_time, line(), (), TODAY), decide(of_time, None, (), TODAY)
    assert refuse_unneeded(existing, {}) is existing
    assert refuse_unneeded(new, {}).change is Change.UNASKED
    assert refuse_unneeded(new, {report.key.family: True}) is new


@pytest.mark.parametrize("outcome", [Outcome.SUSPECT, Outcome.UNDECIDED])
def test_only_where_two_arms_saw_the_machine_move_a_slower_time_stays_out(outcome: Outcome) -> None:
    decision = decide(case("test_a", 1.5e6, 1e6, outcome), line(), (), TODAY)
    assert decision.change is Change.SLOWER
    assert refuse_unconfirmed(decision) is decision


def pinned(to: str, arms: Arms | None = None) -> CaseReport:
    """A slower case, measured on some cores."""
    report = case("test_a", 2e6, 1e6, Outcome.REGRESSED)
    assert report.measurement is not None
    here = replace(report.measurement, identity=Identity(device=DEVICE.key, affinity=to))
    return replace(report, measurement=here, arms=arms)


def test_a_suite_was_on_one_core_where_arms_were_and_a_case_was_pinned() -> None:
    both = Arms(base="c0ffee")
    assert on_one_core([pinned("all"), pinned("3", both)])
    assert on_one_core([pinned("3"), pinned("all", both)]), "a suite is beside a revision as a whole"
    assert not on_one_core([pinned("3")])
    assert not on_one_core([pinned("all", both)])
    assert not on_one_core([replace(pinned("3", both), measurement=None)])


def test_a_line_of_one_core_is_refused_unless_it_was_one_before() -> None:
    before = line()
    same = replace(before, identity=Identity(device=DEVICE.key, affinity="3"))
    decision = decide(pinned("3"), before, (), TODAY)
    assert decision.writes
    assert unpinned(decision, one_core=True).change is Change.PINNED
    assert unpinned(decision, one_core=False) is decision
    new = decide(pinned("3"), None, (), TODAY)
    assert unpinned(new, one_core=True).change is Change.PINNED
    nameless = replace(decision, before=replace(before, identity=None))
    assert unpinned(nameless, one_core=True).change is Change.PINNED
    everywhere = replace(decision, before=replace(before, identity=Identity(device=DEVICE.key, affinity="all")))
    assert unpinned(everywhere, one_core=True).change is Change.PINNED
    again = decide(pinned("3"), same, (), TODAY)
    assert unpinned(again, one_core=True) is again
    wide = decide(pinned("all"), same, (), TODAY)
    assert unpinned(wide, one_core=True) is wide
    unwritten = replace(decision, change=Change.KEPT, after=None)
    assert not unwritten.writes
    assert unpinned(unwritten, one_core=True) is unwritten


def on_a_busy_host(report: CaseReport, *others: float | None) -> CaseReport:
    """The case measured on a host, in so many processes, beside so many busy processors."""
    assert report.measurement is not None
    one = Samples(durations=(1e6,) * 20, timer="host", stop=Stop.SETTLED)
    processes = tuple(replace(one, others=number) for number in others)
    return replace(report, measurement=replace(report.measurement, processes=processes))


@pytest.mark.parametrize(
    ("others", "detects"),
    [
        ((1.656, 1.378, 1.15), 1.378),
        ((0.5, 0.5, 0.5), None),
        ((0.1, 0.2, 5.0), None),
        ((9.0, 9.0, 9.0), 2.0),
        ((None, 1.0, 1.0), 1.0),
        ((None,), None),
    ],
)
def test_a_run_beside_busy_neighbours_is_one_that_could_not_see(others, detects: float | None) -> None:
    """Its processes agreed with each other: +42 % was passed against a line that was taken beside two busy loops."""
    decision = decide(on_a_busy_host(case("test_a", 1e6, spread=0.01), *others), None, (), Signature())
    assert decision.detects == (pytest.approx(detects) if detects else None)
    assert decision.after is not None
    assert decision.after.detects == pytest.approx(detects or 0.0)
    note = f": other programs used {detects:.1f} processors meanwhile. " if detects else ""
    assert note in "\n".join(acceptance_lines([decision]))


def test_in_ci_nothing_that_was_measured_beside_busy_neighbours_is_accepted_without_a_reason() -> None:
    decisions = [decide(on_a_busy_host(case("test_a", 1e6), 1.4), None, (), Signature())]
    with pytest.raises(PerfgateError, match=r"1 case was measured while other programs were busy: .*test_a") as refused:
        refuse_busy_machine(decisions, Request(signature=Signature()), 'perfgate accept --reason "..."')
    assert refused.value.fix == 'perfgate accept --reason "..."'
    refuse_busy_machine(decisions, Request(signature=Signature(why="the runner is never quieter")), "")
    refuse_busy_machine(
        [decide(on_a_busy_host(case("test_a", 1e6), 0.1), None, (), Signature())], Request(signature=Signature()), ""
    )


@pytest.mark.parametrize("time", [1e6, 1.4e6, 0.6e6])
def test_a_line_that_the_gate_refused_to_compare_with_is_written_anew_whatever_its_time(time: float) -> None:
    """Its versions, for one: the command that the verdict names must do what it says."""
    report = case("test_a", time, 1e6, Outcome.UNBASELINED)
    before = report.baseline
    signature = Signature(when="2026-06-01", why="driver 600")
    decision = decide(report, before, (), signature)
    assert (decision.change, decision.asks, decision.writes) == (Change.OTHER, True, True)
    assert decide(report, decision.after, (), signature).change is Change.KEPT, "that is the answer"
    silent = decide(report, before, (), Signature(when="2026-05-02", why="TMA loads")).after
    assert decide(report, silent, (), signature).change is Change.OTHER, "a line without a reason of its own is none"


@pytest.mark.parametrize("named", [True, False])
def test_an_end_is_given_to_a_line_without_one_where_the_case_is_named(named: bool) -> None:
    signature = Signature(when="2026-06-01", why="until 600", expires="2027-01-31", named=named)
    decision = decide(case("test_a", 1e6, 1e6), baseline("test_a", 1e6), (), signature)
    assert decision.change is (Change.RENEWED if named else Change.KEPT)
    assert not named or (decision.after is not None and decision.after.expires == "2027-01-31")
