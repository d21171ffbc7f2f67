"""Collect, measure, run: the measuring, with its cost said beforehand."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_perfgate.app.lanes import run_spread
from pytest_perfgate.app.measure import Crew, Rounds
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Mode
from pytest_perfgate.plugin.captures import captured
from pytest_perfgate.plugin.invocation import child_job, child_spec
from pytest_perfgate.plugin.progress import Progress
from pytest_perfgate.plugin.spans import span
from pytest_perfgate.wiring.devices import fleet, pick_device

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_perfgate.model.children import CaseResult
    from pytest_perfgate.model.plan import Case
    from pytest_perfgate.plugin.session import GateSession

_START_S = 1.0
"""A guess at what starting one child takes, for the first run."""


def measure_ahead(session: GateSession) -> None:
    """Measure all cases in children, then judge them; what was measured stays when it is interrupted."""
    if session.settings.options.perfgate_against:
        measure_against(session)
        return
    config, project = session.settings.pytest, session.settings.project
    costs = config.rootpath / ".perfgate" / "costs.json"
    cases = on_device(session.settings.options, list(session.cases.values()))
    if session.mode is Mode.QUICK:
        cases = [replace(case, plan=replace(case.plan, rounds=1)) for case in cases]
    progress = Progress(config, cost_line(cases, read_costs(costs)))
    crew = Crew(
        nursery=session.court.tools.nursery,
        spec=lambda some: child_spec(config, project, some),
        job=child_job(config),
        timeout_s=project.timeout,
        progress=progress,
        clock=time.monotonic,
    )
    rounds = Rounds(cases, crew)
    try:
        run_spread(rounds, cases, fleet())
        results = captured(session, rounds.results(), progress.tell)
    except BaseException:
        results = {nodeid: result for nodeid, result in rounds.results().items() if result.captures}
        raise
    finally:
        progress.close()
        session.reports.update(session.court.judge_all(results))
    write_costs(costs, results)


def on_device(options: Any, cases: list[Case]) -> list[Case]:
    """The cases on the device that was asked for, which children will see alone."""
    pick_device(options)
    asked = options.perfgate_device or ""
    return [replace(case, plan=replace(case.plan, device=asked)) for case in cases] if asked else cases


def measure_against(session: GateSession) -> None:
    """Measure all cases in two arms, then judge by what they came to."""
    from pytest_perfgate.plugin.arms import MERGE_BASE, Bailiff

    asked = session.settings.options.perfgate_against
    repository = session.court.tools.repository
    found = repository.merge_base(session.settings.project.target) if repository is not None else ""
    revision = asked if asked != MERGE_BASE else found
    if not revision:
        raise PerfgateError("arm-no-merge-base", "there is no merge base to compare with")
    comparison, paired = Bailiff(session).against(revision, list(session.cases.values()))
    session.court.paired = paired
    results = captured(session, comparison.results(), lambda text: Progress(session.settings.pytest, text).close())
    session.reports.update(session.court.judge_all(results))


def cost_line(cases: Iterable[Case], known: Mapping[str, float]) -> str:
    """``38 cases, 3 rounds, about 1 min 10 s``."""
    cases = list(cases)
    rounds = max(case.plan.rounds for case in cases)
    total, guessed = rounds * _START_S, 0
    for case in cases:
        most = (case.plan.warmup_ns + case.plan.budget_ns) / 1e9
        guessed += case.nodeid not in known
        total += case.plan.rounds * known.get(case.nodeid, most)
    word = "at most about" if guessed > len(cases) / 2 else "about"
    return f"{plural(len(cases), 'case')}, {plural(rounds, 'round')}, {word} {span(total)}"


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def read_costs(path: Path) -> dict[str, float]:
    """Seconds a round of each case took last time; a lost file costs only a worse guess."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(name): float(cost) for name, cost in found.items()} if isinstance(found, dict) else {}


def write_costs(path: Path, results: Mapping[str, CaseResult]) -> None:
    costs = {**read_costs(path), **{n: round(result.seconds, 4) for n, result in results.items() if result.captures}}
    try:
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(costs), encoding="utf-8")
    except OSError:
        return
