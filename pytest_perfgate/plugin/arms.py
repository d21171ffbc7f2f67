"""Two arms in a session: against a revision that the user named, or against the commit of a suspect's baseline."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_perfgate.app.compare_arms import Comparison, Stage, trial
from pytest_perfgate.core.gate.conviction import suspects
from pytest_perfgate.core.gate.rounds import Design
from pytest_perfgate.model.children import ChildSpec
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.paired import Paired, PairedRound
from pytest_perfgate.plugin.invocation import arm_arguments, child_job, environment
from pytest_perfgate.plugin.progress import Progress
from pytest_perfgate.plugin.spans import span
from pytest_perfgate.wiring import read_values, write_values
from pytest_perfgate.wiring.arms import arms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_perfgate.model.arm import Arm
    from pytest_perfgate.model.plan import Case, CaseKey
    from pytest_perfgate.model.verdict import CaseReport
    from pytest_perfgate.plugin.session import GateSession

MERGE_BASE = "@merge-base"
_START_S, _TEST_S = 2.5, 0.6
"""What starting two processes takes, and one test in both."""
_FRESH = {"PYTHONDONTWRITEBYTECODE": "1"}
"""Compiled files are read where the user's environment has them, and none is written into it."""


class Bailiff:
    """Brings two arms into court."""

    def __init__(self, session: GateSession) -> None:
        self._session = session
        self._config = session.settings.pytest
        self._project = session.settings.project
        self._prepared: dict[str, Arm] = {}
        self._progress: Progress | None = None
        self._store = arms(self._config.rootpath, self._project, [case.path for case in session.cases.values()])

    def against(self, revision: str, cases: Sequence[Case]) -> tuple[Comparison, Mapping[CaseKey, Paired]]:
        """Every case in both arms; screening and confirming."""
        design = Design(screen=max(5, self._session.settings.options.perfgate_rounds or 0))
        cost = span(design.screen * (_START_S + _TEST_S * len(cases)))
        self._progress = Progress(self._config, f"{len(cases)} cases in two arms, {design.screen} rounds, about {cost}")
        comparison = self._comparison(revision, cases, design)
        try:
            paired = trial(comparison, self._counts, screened=False, revision=revision)
        finally:
            self._progress.close()
        self._path(comparison).unlink(missing_ok=True)
        return comparison, paired

    def convict(self, reports: Mapping[CaseKey, CaseReport], cases: Mapping[str, Case]) -> Mapping[CaseKey, CaseReport]:
        """Try suspects beside the commit that their baseline names."""
        court = self._session.court
        changed: dict[CaseKey, CaseReport] = {}
        for commit, keys in self._accused(reports).items():
            try:
                found = self._tried(commit, [cases[key.nodeid] for key in keys])
            except PerfgateError as fault:
                changed.update({key: court.without_arms(cases[key.nodeid], reports[key], fault) for key in keys})
                continue
            changed.update({key: court.with_arms(cases[key.nodeid], reports[key], found.get(key)) for key in keys})
        return changed

    def _accused(self, reports: Mapping[CaseKey, CaseReport]) -> Mapping[str, list[CaseKey]]:
        accused: dict[str, list[CaseKey]] = defaultdict(list)
        for key, report in reports.items():
            if report.baseline is not None and suspects(report.verdicts):
                accused[report.baseline.commit].append(key)
        return accused

    def _tried(self, commit: str, cases: Sequence[Case]) -> Mapping[CaseKey, Paired]:
        if not commit:
            raise PerfgateError("arm-no-commit", "the baseline names no commit to measure beside")
        count = len({case.nodeid for case in cases})
        self._progress = Progress(self._config, f"{count} suspected: measured beside {commit[:10]}")
        comparison = self._comparison(commit, cases, Design())
        try:
            return trial(comparison, self._counts, screened=True, revision="")
        finally:
            self._progress.close()

    def _comparison(self, revision: str, cases: Sequence[Case], design: Design) -> Comparison:
        both = (self._arm("base", revision), self._arm("head", ""))
        comparison = Comparison(both, cases, self._stage(both), design)
        comparison.resume(read_values(self._path(comparison), PairedRound))
        return comparison

    def _arm(self, name: str, revision: str) -> Arm:
        at = f"{name}:{revision}"
        if at not in self._prepared:
            self._prepared[at] = self._store.prepare(name, revision)
        return self._prepared[at]

    def _path(self, comparison: Comparison) -> Path:
        """Where finished rounds of these two trees wait for a run that was interrupted."""
        digests = "-".join(arm.digest[:10] for arm in comparison.arms)
        return self._config.rootpath / ".perfgate" / "rounds" / f"{digests}.bin"

    def _stage(self, both: tuple[Arm, Arm]) -> Stage:
        digests = "-".join(arm.digest[:10] for arm in both)
        path = self._config.rootpath / ".perfgate" / "rounds" / f"{digests}.bin"

        def keep(rounds: Sequence[PairedRound]) -> None:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_values(path, rounds)

        return Stage(
            nursery=self._session.court.tools.nursery,
            spec=self._spec,
            job=replace(child_job(self._config), cpus=one_core(list(self._session.cases.values()))),
            timeout_s=self._project.timeout,
            say=self._say,
            keep=keep,
            clock=time.monotonic,
        )

    def _spec(self, arm: Arm, cases: Sequence[Case], seed: int) -> ChildSpec:
        env = {**environment(os.environ.items()), **dict(arm.environment), **_FRESH, "PYTHONHASHSEED": str(seed)}
        env.pop("PYTHONPYCACHEPREFIX", None)
        return ChildSpec(
            argv=tuple(arm_arguments(self._config, cases, arm)),
            python=arm.launch,
            cwd=Path(arm.cwd),
            env=tuple(sorted(env.items())),
            prefix=self._project.launcher,
            label=f"the {arm.name} arm",
        )

    def _counts(self, key: CaseKey) -> float:
        """τ of a case: its own limit; the default where it has none."""
        case = self._session.cases[key.nodeid]
        bounds = [limit.bound for limit in case.limits if limit.metric == "slowdown" and limit.bound >= 0]
        return min(bounds, default=0.03)

    def _say(self, text: str) -> None:
        if self._progress is not None:
            self._progress.tell(text)


def one_core(cases: Sequence[Case]) -> tuple[int, ...]:
    """The core that both sides share: unpinned, lock-step scatters several times as much."""
    elsewhere = any(case.plan.runtime not in {"auto", "host"} or case.plan.devices > 1 for case in cases)
    if elsewhere or not hasattr(os, "sched_getaffinity"):
        return ()
    return (max(os.sched_getaffinity(0)),)
