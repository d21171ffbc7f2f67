"""A pytest that only measures: the same code on both sides, for as long as it is told."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_perfgate.app.compare_arms import SCREEN, Comparison, Stage
from pytest_perfgate.core.gate.rounds import Design
from pytest_perfgate.model.arm import Arm
from pytest_perfgate.model.children import ChildSpec
from pytest_perfgate.model.paired import PairedRound
from pytest_perfgate.model.plan import Case
from pytest_perfgate.plugin import is_gated
from pytest_perfgate.plugin.arms import one_core
from pytest_perfgate.plugin.invocation import child_job, child_spec
from pytest_perfgate.plugin.progress import Progress
from pytest_perfgate.plugin.session import GateSession
from pytest_perfgate.plugin.settings import Settings
from pytest_perfgate.wiring import read_values, write_values

FILE, SECONDS = "PERFGATE_CALIBRATION", "PERFGATE_CALIBRATION_SECONDS"


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Rounds of all gated tests until the time is spent; no test runs for itself."""
    gate = GateSession(Settings(session.config))
    gate.collect([item for item in session.items if is_gated(item)])
    if gate.cases:
        _measure(gate, Path(os.environ[FILE]), float(os.environ[SECONDS]))
    return True


def _measure(gate: GateSession, path: Path, seconds: float) -> None:
    cases, until = list(gate.cases.values()), time.monotonic() + seconds
    progress = Progress(gate.settings.pytest, f"{len(cases)} cases, the same code on both sides, {seconds:.0f} s")
    comparison = Comparison((_side("base"), _side("head")), cases, _stage(gate, path, progress), Design())
    comparison.resume(read_values(path, PairedRound))
    count = 1 + max((one.number for one in comparison.rounds), default=-1)
    while time.monotonic() < until:
        count += 1
        comparison.play(SCREEN, cases, count)
        progress.tell(f"{count} rounds, {max(0.0, until - time.monotonic()):.0f} s left")
    progress.close()


def _side(name: str) -> Arm:
    """The working copy as it is installed: nothing is built, and nothing is to be proved."""
    return Arm(
        name=name, revision="", tree="", dirty=False, mode="as installed", python="", launch=(), environment=(),
        cwd="", root="", modules=(), digest="",
    )  # fmt: skip


def _stage(gate: GateSession, path: Path, progress: Progress) -> Stage:
    config, project = gate.settings.pytest, gate.settings.project

    def spec(arm: Arm, cases: list[Case], seed: int) -> ChildSpec:
        plain = child_spec(config, project, cases)
        env = {**dict(plain.env), "PYTHONHASHSEED": str(seed)}
        return replace(plain, env=tuple(sorted(env.items())), label=f"the {arm.name} side")

    return Stage(
        nursery=gate.court.tools.nursery,
        spec=spec,  # type: ignore[arg-type]
        job=replace(child_job(config), cpus=one_core(list(gate.cases.values()))),
        timeout_s=project.timeout,
        say=progress.tell,
        keep=lambda rounds: write_values(path, rounds),
        clock=time.monotonic,
    )
