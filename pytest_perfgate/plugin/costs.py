"""What measuring will cost: as it was last time, else what the plan allows; and how a budget cuts it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_perfgate.core.gate.budget import shrunk
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.plugin.spans import about

if TYPE_CHECKING:
    from pytest_perfgate.model.children import CaseResult
    from pytest_perfgate.model.plan import Case
    from pytest_perfgate.plugin.docket import Docket

STARTING = ""
"""Among the costs of cases: what a round takes beside them, the starting of its child above all."""
_START_S = 1.0
"""A guess at that, for the first run."""
_LONGEST_S = 86400.0
"""No round of a case takes a day: what reads so is of a clock that somebody set."""
_SHORTEST = 0.1
"""The part of its sampling time that a case keeps at least."""


def cost_line(cases: Iterable[Case], known: Mapping[str, float], part: float = 1.0) -> str:
    """``38 cases, 3 rounds, about 1 min 10 s``: no bound, for nobody knows how busy the machine will be."""
    cases = list(cases)
    guessed = sum(case.nodeid not in known for case in cases)
    starts, total = seconds_of(cases, known)
    whole = " if no time settles early" if guessed > len(cases) / 2 else ""
    cut = f"; sampling cut to {part:.0%} by the budget" if part < 1 else ""
    rounds = max(case.plan.rounds for case in cases)
    return f"{plural(len(cases), 'case')}, {plural(rounds, 'round')}, {about(starts + part * total)}{whole}{cut}"


def seconds_of(cases: Iterable[Case], known: Mapping[str, float]) -> tuple[float, float]:
    """What starting children takes, and all sampling."""
    cases = list(cases)
    most = {case.nodeid: (case.plan.warmup_ns + case.plan.budget_ns) / 1e9 for case in cases}
    total = sum(case.plan.rounds * known.get(case.nodeid, most[case.nodeid]) for case in cases)
    return max((case.plan.rounds for case in cases), default=0) * known.get(STARTING, _START_S), total


def affordable(cases: Iterable[Case], known: Mapping[str, float], left_s: float) -> float:
    """The part of their sampling time that so many seconds allow."""
    starts, total = seconds_of(cases, known)
    return shrunk(total, max(0.0, left_s - starts), _SHORTEST)


def sampled(case: Case, part: float) -> Case:
    """The case with a part of its sampling time."""
    if part == 1:
        return case
    return replace(
        case, plan=replace(case.plan, warmup_ns=case.plan.warmup_ns * part, budget_ns=case.plan.budget_ns * part)
    )


def quick_parts(session: Docket) -> dict[str, Case]:
    """Quick mode measures inside the tests: each gets its part of the budget beforehand."""
    once = [replace(case, plan=replace(case.plan, rounds=1)) for case in session.cases.values()]
    part = affordable(once, {}, session.left_s())
    return {nodeid: sampled(case, part) for nodeid, case in session.cases.items()}


def costs_of(results: Mapping[str, CaseResult], took_s: float) -> dict[str, float]:
    """What to expect of the next run: seconds of a round of each case, and of a round beside its cases.

    Where cases ran on several devices at once the whole takes no longer than its parts, and tells nothing of starting.
    """
    measured = {nodeid: result for nodeid, result in results.items() if result.captures}
    costs = {nodeid: round(result.seconds, 4) for nodeid, result in measured.items()}
    rounds = max((result.case.plan.rounds for result in measured.values()), default=0)
    sampling = sum(result.case.plan.rounds * result.seconds for result in measured.values())
    complete = len(measured) == len(results)
    return {**costs, STARTING: round((took_s - sampling) / rounds, 4)} if complete and took_s > sampling > 0 else costs


def read_costs(path: Path) -> dict[str, float]:
    """Seconds a round of each case took last time; what is lost or cannot be costs only a worse guess."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        costs = {str(name): float(cost) for name, cost in found.items()}
        return {name: cost for name, cost in costs.items() if 0 <= cost <= _LONGEST_S}
    except (OSError, ValueError, TypeError, AttributeError, OverflowError):
        return {}


def write_costs(path: Path, costs: Mapping[str, float]) -> None:
    """Keep them beside those of other cases."""
    try:
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({**read_costs(path), **costs}), encoding="utf-8")
    except OSError:
        return
