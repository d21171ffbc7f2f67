"""Full mode: collect, announce the cost, measure before the first test, judge."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_perfgate.app.conclude import pages_alone
from pytest_perfgate.app.first_run import MOST, SPENDS_S, FirstRun
from pytest_perfgate.app.judge import gates_of
from pytest_perfgate.app.measure import Rounds, measurements
from pytest_perfgate.app.spread import run_spread
from pytest_perfgate.clock import HOST_CLOCK, seconds
from pytest_perfgate.core.changes.tests import is_new
from pytest_perfgate.core.render.words import plural
from pytest_perfgate.core.stats.costs import (
    SCREENING,
    START_S,
    STARTING,
    affordable,
    cost_line,
    costs_of,
    pair_cost,
    starting_guess,
)
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Mode, Plan
from pytest_perfgate.plugin.arms import design_of, file_texts
from pytest_perfgate.plugin.captures import captured
from pytest_perfgate.plugin.child_arguments import child_settings, count_decidable, trying_line
from pytest_perfgate.plugin.reporting import Progress
from pytest_perfgate.wiring.devices import fleet, pick_device, release_stale_locks
from pytest_perfgate.wiring.stores import costs_path, read_costs, record_store, write_costs

if TYPE_CHECKING:
    import pytest

    from pytest_perfgate.app.spread import RunDevices
    from pytest_perfgate.model.plan import Case
    from pytest_perfgate.model.protocol import CaseResult
    from pytest_perfgate.model.verdict import CaseReport
    from pytest_perfgate.plugin.state import SessionState


def measure_ahead(session: SessionState) -> None:
    """Measure all cases in children, then judge them; an interrupt keeps what was measured."""
    session.gate_judge.read_baselines(session.cases.values())
    if session.settings.options.perfgate_against:
        measure_against(session)
        return
    config = session.settings.pytest
    costs = costs_path(config.rootpath)
    cases = on_device(session.settings.options, list(session.cases.values()))
    if session.mode is Mode.QUICK:
        cases = [replace(case, plan=replace(case.plan, rounds=1)) for case in cases]
    estimates = {**starting_guess(HOST_CLOCK.process() / 1e9), **read_costs(costs)}
    keeps = SCREENING if session.gate_judge.tools.confirm is not None else 1.0
    part = affordable(cases, estimates, keeps * session.left_s())
    progress = Progress(
        config, cost_line(cases, estimates, part) + suspects_line(session, cases, estimates), cases, estimates
    )
    cases = [sampled(case, part) for case in cases]
    rounds, begun = Rounds(cases, child_settings(session, progress)), seconds()
    try:
        devices = fleet(progress.tell)
        run_spread(rounds, cases, devices)
        took = seconds() - begun
        measure_more(session, rounds, devices, progress, took)
        results = captured(session, rounds.results(), progress.tell)
    except BaseException:
        keep_measured(session, {nodeid: result for nodeid, result in rounds.results().items() if result.captures})
        raise
    finally:
        rounds.close()
        progress.close()
    session.costs.update({n: result.seconds * len(result.captures) for n, result in results.items()})
    if part == 1:  # before the trials, whose announcement uses it
        write_costs(costs, costs_of(results, took))
    judge_measured(session, results)


def measure_more(session: SessionState, rounds: Rounds, devices: RunDevices, progress: Progress, took: float) -> None:
    """Measure more processes of cases that this run will be accepted from, unless their number was set."""
    results = rounds.results()
    cases = [result.case for result in results.values() if result.case.plan.rounds == Plan().rounds]
    if session.mode is not Mode.FULL or session.settings.project.rounds or session.settings.options.perfgate_rounds:
        return
    judge, ci = session.gate_judge, session.settings.ci
    judge.context = replace(judge.context, gates=gates_of(results.values(), judge.context.share))
    two_builds = ci and judge.tools.confirm is not None and bool(judge.accepted.base.commit)  # two builds decide times

    def play(some: Sequence[Case], number: int) -> None:
        progress.extend(some, number, MOST)
        run_spread(rounds, some, devices, range(number, number + 1))

    within_s = session.left_s() if ci else min(SPENDS_S, session.left_s())
    start_s = costs_of(results, took).get(STARTING, START_S)
    FirstRun(rounds, judge, seconds, first=not two_builds).play_more(cases, play, progress.tell, within_s, start_s)


def judge_measured(session: SessionState, results: Mapping[str, CaseResult]) -> None:
    """Judge everything and try the suspects; an interrupted trial keeps what it decided, and the rest as screened."""
    fit = fit_results(session, results)
    try:
        session.reports.update(session.gate_judge.judge_all(fit))
    except BaseException:
        keep_measured(session, fit)
        raise
    if session.interrupted:
        raise KeyboardInterrupt


def keep_measured(session: SessionState, results: Mapping[str, CaseResult]) -> None:
    """Judge the measured cases after an interrupt, without running rounds."""
    fit = fit_results(session, results)
    session.reports.update((nodeid, _reports_of(session, result)) for nodeid, result in fit.items())


def _reports_of(session: SessionState, result: CaseResult) -> tuple[CaseReport, ...]:
    """Return the reports of a result; if the judge cannot read an input, keep the measurement without a verdict."""
    try:
        return session.gate_judge.judge_result(result)
    except PerfgateError as fault:
        gate_judge, why = session.gate_judge, fault.what
        calls = measurements(result, gate_judge.tools)
        reports = [(gate_judge.unmeasured(result.case, measured.key, why), measured) for measured in calls]
        return tuple(replace(report, measurement=measured) for report, measured in reports)


def fit_results(session: SessionState, results: Mapping[str, CaseResult]) -> dict[str, CaseResult]:
    """Return the results, each without captures if a limit of its calls is unreadable; only that test fails."""
    readable = dict(results)
    session.died.update(nodeid for nodeid, result in results.items() if result.outcome == "died")
    for nodeid, result in results.items():
        try:
            session.gate_judge.read_limits(result)
        except PerfgateError as fault:  # noqa: PERF203 - a wrong limit fails only its test
            session.faults[nodeid] = fault
            readable[nodeid] = replace(result, captures=(), trouble=(fault.what.splitlines()[0],))
    return readable


def on_device(options: Any, cases: list[Case]) -> list[Case]:
    """Return the cases with the selected device in their plan."""
    pick_device(options)
    device = options.perfgate_device or ""
    return [replace(case, plan=replace(case.plan, device=device)) for case in cases] if device else cases


def measure_against(session: SessionState) -> None:
    """Measure all cases in base and head, then judge the results."""
    from pytest_perfgate.app.changed_project import base_errors
    from pytest_perfgate.app.compare_arms import untimed_in
    from pytest_perfgate.app.lockstep import BASE
    from pytest_perfgate.model.protocol import WAITED, CaseResult
    from pytest_perfgate.plugin.arms import MERGE_BASE, ArmRunner, substitute_commit

    against = session.settings.options.perfgate_against
    before = session.gate_judge.accepted.base
    revision = against if against != MERGE_BASE else before.commit
    if not revision:
        raise PerfgateError("arm-no-merge-base", before.why or "there is no commit before this one", fix=before.fix)
    if re.fullmatch("[0-9a-f]{7,64}", revision):  # such as the next step of a verdict names, from a line
        revision, why = substitute_commit(session, revision)
        if why:
            Progress(session.settings.pytest, why).close()
    runner = ArmRunner(session)
    comparison, paired = runner.against(revision, list(session.cases.values()))
    base, head = comparison.arms
    session.gate_judge.paired = paired
    session.gate_judge.same_code = all(map(comparison.has_same_code, comparison.cases)) or base.tree == head.tree
    new = new_tests(session, base.revision, comparison.troubles())
    session.gate_judge.new = added = frozenset(case.nodeid for case in new)
    session.gate_judge.base_errors = {n: e for n, e in base_errors(comparison).items() if n not in added}
    session.gate_judge.untimed = untimed_in(comparison.arms, comparison.rounds, (BASE,))
    alone = [*new, *(session.cases[nodeid] for nodeid in session.gate_judge.base_errors)]
    measured = comparison.results()
    if session.interrupted:
        judge_measured(session, {key.nodeid: measured[key.nodeid] for key in paired})
        return
    for key, why in runner.stopped.items():
        measured[key.nodeid] = CaseResult(case=session.cases[key.nodeid], outcome="crashed", trouble=(why,))
    for nodeid, why in runner.waited.items():
        measured[nodeid] = CaseResult(case=session.cases[nodeid], outcome=WAITED, trouble=(why,))
    measured |= measured_alone(session, alone) if alone else {}
    results = captured(session, measured, lambda text: Progress(session.settings.pytest, text).close())
    judge_measured(session, results)


def new_tests(session: SessionState, base: str, troubled: Mapping[str, str]) -> list[Case]:
    """Return the tests that did not run in both builds because the base does not have them."""
    if session.gate_judge.tools.repository is None:
        return []
    texts = file_texts(session, base)
    cases = (session.cases[nodeid] for nodeid in troubled)
    return [case for case in cases if is_new(*texts(case.path), case.nodeid)]


def measured_alone(session: SessionState, cases: Sequence[Case]) -> Mapping[str, CaseResult]:
    """Measure cases without a base, so that their own limits, such as on time, are judged."""
    line = f"{plural(len(cases), 'case')} that the base cannot run; they are measured without it"
    costs = read_costs(costs_path(session.settings.pytest.rootpath))
    progress = Progress(session.settings.pytest, line, cases, costs)
    rounds = Rounds(cases, child_settings(session, progress))
    try:
        run_spread(rounds, cases, fleet(progress.tell))
    finally:
        rounds.close()
        progress.close()
    return rounds.results()


def suspects_line(session: SessionState, cases: Sequence[Case], costs: Mapping[str, float]) -> str:
    """Return what two builds would cost, against the commit of a line or the base of the change; "" without either."""
    store, ci, base = session.gate_judge.tools.baselines, session.settings.ci, session.gate_judge.accepted.base
    count = count_decidable(cases)
    if session.gate_judge.tools.confirm is None:
        return f"; no two builds: {_no_builds(session)}" if ci and count and session.mode is Mode.FULL else ""
    if not count or not ((store is not None and store.devices()) or (ci and base.commit)):
        return ""
    if pages := pages_alone(session.gate_judge, session.settings.project.baselines):
        return f"; nothing is built: the change edits {pages}"
    return trying_line(count, design_of(session), session.left_s(), pair_cost((case.nodeid for case in cases), costs))


def _no_builds(session: SessionState) -> str:
    """Return why a full run in CI has no other build to decide by."""
    if session.settings.project.confirmation == "interval":
        return 'confirmation = "interval"'
    return session.gate_judge.accepted.base.why or "git knows no commit here"


def sampled(case: Case, part: float) -> Case:
    """Return the case with a part of its sampling time."""
    if part == 1:
        return case
    plan = replace(case.plan, warmup_ns=case.plan.warmup_ns * part, budget_ns=case.plan.budget_ns * part)
    return replace(case, plan=plan)


def quick_parts(session: SessionState) -> dict[str, Case]:
    """Return the cases for quick mode, which measures inside the tests: each with its part of the budget."""
    once = [replace(case, plan=replace(case.plan, rounds=1)) for case in session.cases.values()]
    part = affordable(once, {}, session.left_s())
    return {nodeid: sampled(case, part) for nodeid, case in session.cases.items()}


@contextlib.contextmanager
def cleaned_up(config: pytest.Config) -> Iterator[None]:
    """Reset the clocks that a killed child of this run has left locked."""
    try:
        yield
    finally:
        for line in release_stale_locks():
            Progress(config, line).close()


def begin(session: SessionState) -> None:
    """Mark this run as the last one, even if it is killed."""
    with contextlib.suppress(PerfgateError):  # a folder that cannot be written is reported with the record
        _pointer(session).suspend(_without_record(session))


def take_back(session: SessionState) -> None:
    """Restore the record of the earlier run as the last one, since nothing was measured."""
    with contextlib.suppress(PerfgateError):
        _pointer(session).resume(_without_record(session))


def _pointer(session: SessionState) -> Any:
    return record_store(session.settings.pytest.rootpath).pointer


def _without_record(session: SessionState) -> str:
    since = f"the run that began at {session.started.isoformat(timespec='seconds')}"
    return f"{since} left no record: it is still running, or it was killed"


def require_readable_folder(folder: Path) -> None:
    """Raise if a folder exists and may not be read; a missing one is created later."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                entry.stat(follow_symlinks=False)
                break
    except (FileNotFoundError, NotADirectoryError):  # the latter is reported where it is written
        return
    except OSError as fault:
        what = f"{fault.strerror or fault}: local baselines, the history and the record of a run lie there"
        why = "a run could not read the local baselines, nor write its record"
        fix = f"make it yours (chown, chmod u+rwx {folder}), or delete it: it belongs to this checkout only"
        raise PerfgateError("file-refused", what, why=why, fix=fix, place=str(folder)) from fault
