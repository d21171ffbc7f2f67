"""Captures that work inside the measuring process: a profile around what the test measures, read at once."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pytest_perfgate.app.captures import LOST, lacking, lost, trusted
from pytest_perfgate.model.analysis import Analysis
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Artifact
from pytest_perfgate.model.metric import MetricSet
from pytest_perfgate.model.plan import Case, CaseKey, Plan
from pytest_perfgate.model.ports import Inspector, Profiler
from pytest_perfgate.model.problem import Finding
from pytest_perfgate.model.profiling import IN_PROCESS, external
from pytest_perfgate.plugin.reading import options_of

FOLDER = Path(".perfgate") / "profiles"
_ODD = re.compile(r"[^\w.-]+")


def profilers_of(plan: Plan, profilers: Sequence[Profiler]) -> tuple[Profiler, ...]:
    """Those that the plan asks for and that work in this process."""
    return tuple(p for p in profilers if p.name in plan.captures and p.name in IN_PROCESS)


def folder(key: CaseKey, profiler: Profiler) -> Path:
    """Where this process keeps the profiles of one measurement."""
    return FOLDER / profiler.name / _ODD.sub("-", str(key)).strip("-")[-120:] / str(os.getpid())


@contextmanager
def profiled(key: CaseKey, profilers: Sequence[Profiler]) -> Iterator[None]:
    """Every profiler around the same stretch."""
    with ExitStack() as stack:
        for profiler in profilers:
            stack.enter_context(profiler.region(folder(key, profiler)))
        yield


def taken(
    key: CaseKey, profilers: Sequence[Profiler], inspectors: Sequence[Inspector], limits: str = ""
) -> tuple[MetricSet, tuple[Artifact, ...]]:
    """What the last profile of each says, and every artifact."""
    metrics = MetricSet()
    artifacts: tuple[Artifact, ...] = ()
    for profiler in profilers:
        left = profiler.artifacts(folder(key, profiler))
        artifacts += left
        if left:
            metrics |= trusted(_inspected(Path(left[-1].path), inspectors, limits))
    return metrics, artifacts


def untaken(case: Case) -> tuple[MetricSet, tuple[Finding, ...]]:
    """In quick mode: what only a run of its own captures, and how to have it."""
    modes = [name for name in external(case.plan.captures) if name not in IN_PROCESS]
    if not modes:
        return MetricSet(), ()
    quoted = shlex.quote(case.nodeid)
    why = "it needs a run of its own, and --perfgate=quick has none"
    commands = " or ".join(f"perfgate profile {quoted} --mode {mode}" for mode in modes)
    mend = f"pytest {quoted} --perfgate=full, or {commands}"
    found = tuple(lost(mode, why, mend) for mode in modes)
    return lacking(case, f"capture {' and '.join(modes)} {LOST}: {why}", mend), found


def untimed(case: Case) -> MetricSet:
    """In quick mode a region under a profiler has no time of its own."""
    why = "the region ran under a profiler, which costs time"
    return lacking(case, why, "--perfgate=full times it first and captures it after")


def _inspected(path: Path, inspectors: Sequence[Inspector], limits: str) -> Analysis:
    with path.open("rb") as file:
        head = file.read(4096)
    inspector = next((one for one in inspectors if one.recognises(path, head)), None)
    if inspector is None:
        raise PerfgateError("artifact-unknown", "a capture left a file that nothing here reads", place=str(path))
    return inspector.inspect([path], options_of(inspector, limits))
