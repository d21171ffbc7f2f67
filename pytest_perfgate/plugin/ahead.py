"""Collect, measure, run: the measuring, with its cost said beforehand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_perfgate.app.assemble import measurements
from pytest_perfgate.app.lanes import run_spread
from pytest_perfgate.app.measure import Rounds
from pytest_perfgate.clock import seconds
from pytest_perfgate.core.gate.budget import SCREENING
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Mode
from pytest_perfgate.plugin.captures import captured
from pytest_perfgate.plugin.costs import affordable, cost_line, costs_of, read_costs, sampled, write_costs
from pytest_perfgate.plugin.crew import crew_of
from pytest_perfgate.plugin.newcomers import measured_alone, newcomers
from pytest_perfgate.plugin.progress import Progress
from pytest_perfgate.plugin.trying import triable, trying_line
from pytest_perfgate.wiring.devices import fleet, pick_device

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_perfgate.model.children import CaseResult
    from pytest_perfgate.model.plan import Case
    from pytest_perfgate.model.verdict import CaseReport
    from pytest_perfgate.plugin.docket import Docket


def measure_ahead(session: Docket) -> None:
    """Measure all cases in children, then judge them; what was measured stays when it is interrupted."""
    session.court.read_baselines(session.cases.values())
    if session.settings.options.perfgate_against:
        measure_against(session)
        return
    config = session.settings.pytest
    costs = config.rootpath / ".perfgate" / "costs.json"
    cases = on_device(session.settings.options, list(session.cases.values()))
    if session.mode is Mode.QUICK:
        cases = [replace(case, plan=replace(case.plan, rounds=1)) for case in cases]
    known = read_costs(costs)
    keeps = SCREENING if session.court.tools.convict is not None else 1.0
    part = affordable(cases, known, keeps * session.left_s())
    progress = Progress(config, cost_line(cases, known, part) + suspicion_line(session, cases), cases)
    cases = [sampled(case, part) for case in cases]
    rounds, begun = Rounds(cases, crew_of(session, progress)), seconds()
    try:
        run_spread(rounds, cases, fleet(progress.tell))
        took = seconds() - begun
        results = captured(session, rounds.results(), progress.tell)
    except BaseException:
        keep_measured(session, {nodeid: result for nodeid, result in rounds.results().items() if result.captures})
        raise
    finally:
        progress.close()
    judge_measured(session, results)
    if part == 1:
        write_costs(costs, costs_of(results, took))


def judge_measured(session: Docket, results: Mapping[str, CaseResult]) -> None:
    """Judge everything, and try the suspects; an interrupted trial leaves what the screening said."""
    fit = fit_results(session, results)
    try:
        session.reports.update(session.court.judge_all(fit))
    except BaseException:
        keep_measured(session, fit)
        raise


def keep_measured(session: Docket, results: Mapping[str, CaseResult]) -> None:
    """Somebody wants this run to end: what was measured is judged by itself, and nobody is tried any more."""
    fit = fit_results(session, results)
    session.reports.update((nodeid, _kept(session, result)) for nodeid, result in fit.items())


def _kept(session: Docket, result: CaseResult) -> tuple[CaseReport, ...]:
    """What judges may not read, and the run fails with that: its measurement is kept all the same."""
    try:
        return session.court.judge_result(result)
    except PerfgateError as fault:
        court, why = session.court, fault.what
        found = measurements(result, court.tools)
        return tuple(replace(court.unmeasured(result.case, one.key, why), measurement=one) for one in found)


def fit_results(session: Docket, results: Mapping[str, CaseResult]) -> dict[str, CaseResult]:
    """A limit of a call that does not read is the fault of its test alone; the others keep what was measured."""
    readable = dict(results)
    session.died.update(nodeid for nodeid, result in results.items() if result.outcome == "died")
    for nodeid, result in results.items():
        try:
            session.court.read_limits(result)
        except PerfgateError as fault:  # noqa: PERF203 - a wrong limit is the fault of its test alone
            session.faults[nodeid] = fault
            readable[nodeid] = replace(result, captures=(), trouble=(fault.what.splitlines()[0],))
    return readable


def on_device(options: Any, cases: list[Case]) -> list[Case]:
    """The cases on the device that was asked for, which children will see alone."""
    pick_device(options)
    asked = options.perfgate_device or ""
    return [replace(case, plan=replace(case.plan, device=asked)) for case in cases] if asked else cases


def measure_against(session: Docket) -> None:
    """Measure all cases in two arms, then judge by what they came to."""
    from pytest_perfgate.app.beside import unready
    from pytest_perfgate.app.duet import BASE
    from pytest_perfgate.app.untimed import untimed_in
    from pytest_perfgate.plugin.arms import MERGE_BASE, Bailiff

    asked = session.settings.options.perfgate_against
    before = session.court.accepted.base
    revision = asked if asked != MERGE_BASE else before.commit
    if not revision:
        raise PerfgateError("arm-no-merge-base", before.why or "no commit lies before this one", mend=before.mend)
    comparison, paired = Bailiff(session).against(revision, list(session.cases.values()))
    base, head = comparison.arms
    session.court.paired, session.court.revision = paired, base.revision
    session.court.alike = comparison.same or base.tree == head.tree
    new = newcomers(session, base.revision, comparison.troubles())
    session.court.new = frozenset(case.nodeid for case in new)
    session.court.unready = {n: why for n, why in unready(comparison).items() if n not in session.court.new}
    session.court.untimed = untimed_in(comparison.arms, comparison.rounds, (BASE,))
    alone = [*new, *(session.cases[nodeid] for nodeid in session.court.unready)]
    measured = {**comparison.results(), **(measured_alone(session, alone) if alone else {})}
    results = captured(session, measured, lambda text: Progress(session.settings.pytest, text).close())
    judge_measured(session, results)


def suspicion_line(session: Docket, cases: Iterable[Case]) -> str:
    """What two builds would cost, where there are any to be asked: a line's commit, or the base of the change."""
    store = session.court.tools.baselines
    lines = store is not None and bool(store.devices())
    if session.court.tools.convict is None or not (
        lines or (session.settings.ci and session.court.accepted.base.commit)
    ):
        return ""
    return trying_line(triable(cases))
