"""Captures that work inside the measuring process: a profile around what the test measures, read at once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pytest_perfgate.model.analysis import Analysis
from pytest_perfgate.model.measurement import Artifact
from pytest_perfgate.model.metric import Absent, MetricSet
from pytest_perfgate.model.plan import CaseKey, Plan
from pytest_perfgate.model.ports import Inspector, Profiler
from pytest_perfgate.model.profiling import IN_PROCESS

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
    key: CaseKey, profilers: Sequence[Profiler], inspectors: Sequence[Inspector]
) -> tuple[MetricSet, tuple[Artifact, ...]]:
    """What the last profile of each says, and every artifact."""
    metrics = MetricSet()
    artifacts: tuple[Artifact, ...] = ()
    for profiler in profilers:
        left = profiler.artifacts(folder(key, profiler))
        artifacts += left
        if left:
            metrics |= trusted(_inspected(Path(left[-1].path), inspectors))
    return metrics, artifacts


def trusted(analysis: Analysis) -> MetricSet:
    """The metrics of an analysis; with a problem, the reason why none of them counts."""
    if not analysis.problems:
        return analysis.metrics
    why = "; ".join(problem.what for problem in analysis.problems)
    absent = tuple(Absent(name=m.name, labels=m.labels, why=why) for m in analysis.metrics.metrics)
    return MetricSet(absent=(*absent, *analysis.metrics.absent))


def _inspected(path: Path, inspectors: Sequence[Inspector]) -> Analysis:
    with path.open("rb") as file:
        head = file.read(4096)
    inspector = next(one for one in inspectors if one.recognises(path, head))
    return inspector.inspect([path], {})
