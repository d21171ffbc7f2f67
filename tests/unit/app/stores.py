"""Baselines and history in memory, and what judges with them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pytest_perfgate.app.judge import GateJudge
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.model.measurement import Baseline, Environment, HistoryEntry, Measurement
from pytest_perfgate.model.plan import Base, Case, CaseKey, Plan
from pytest_perfgate.model.ports import GateTools
from pytest_perfgate.model.protocol import Capture, CaseResult
from tests.unit.core.judge.bench import KEY, limit

LIMITS = (limit("slowdown <= 3%"),)


class Lines:
    """Baselines of the work tree and of the merge base."""

    def __init__(self, now: Baseline | None, then: Baseline | None = None) -> None:
        self.now, self.then, self.written = now, then, []

    def read(self, device: str, path: str, revision: str = "") -> dict[str, Baseline]:
        line = self.then if revision else self.now
        return {str(line.key): line} if line else {}

    def paths(self, device: str, revision: str) -> tuple[()]:
        return ()

    def write(self, lines: list[Baseline]) -> tuple[()]:
        self.written += lines
        return ()


class Past:
    def __init__(self, *entries: HistoryEntry) -> None:
        self.entries = list(entries)

    def read(self, key: CaseKey, device: str, last: int = 0) -> list[HistoryEntry]:
        return self.entries

    def append(self, entries: tuple[HistoryEntry, ...]) -> None:
        self.entries += entries


def gate_judge(lines: Lines, past: Past | None = None, **fields: Any) -> GateJudge:
    from pytest_perfgate.core.judge.context import JudgeContext

    repository: Any = SimpleNamespace(base=lambda: Base(commit="base"))
    settings: dict[str, Any] = {"committed": lambda device: True, "repository": repository, **fields}
    tools = GateTools(
        kinds=by_name(), spawner=None, environment=Environment, with_measured_ceilings=lambda device: device, history=past,
        **{"baselines": lines, **settings},
    )  # type: ignore[arg-type]  # fmt: skip
    return GateJudge(tools, JudgeContext(today="2026-06-01"))


def case(*limits: Any) -> Case:
    return Case(nodeid=KEY.nodeid, limits=limits or LIMITS, plan=Plan())


def captured(taken: Measurement, **fields: Any) -> CaseResult:
    one = Capture(key=taken.key, samples=taken.processes, device=taken.device, identity=taken.identity, **fields)
    return CaseResult(case=case(), captures=((one,),))
