"""What a version is held against in its log: the newest measurement of an earlier commit, or the accepted time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pytest_perfgate.model.baseline import Baseline, commit_name, short_commit
from pytest_perfgate.model.measurement import Measurement
from pytest_perfgate.model.metric import MetricSet
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.values import value
from pytest_perfgate.model.verdict import CaseReport, RunReport


@value
class Previous:
    """One case as it was before."""

    commit: str
    """Short, marked where the tree had changes; empty where nobody knows it."""
    when: str
    """ISO date."""
    metrics: MetricSet | None = None
    """What was measured then; nothing where only a time was accepted."""
    time: float | None = None
    """The accepted time."""


def previous_of(
    cases: Sequence[CaseReport], report: RunReport, earlier: Iterable[RunReport]
) -> dict[CaseKey, Previous]:
    """By case; ``earlier`` are runs, the newest first, of which no more is read than is needed."""
    version = _version(report)
    wanted = {case.key: case.measurement for case in cases if case.measurement is not None}
    found: dict[CaseKey, Previous] = {}
    tried: dict[CaseKey, Previous] = {}
    for run in _before(report, earlier) if version else ():
        if _version(run) and _version(run) != version:
            before = tried if run.environment.dirty else found
            before |= dict(_alike(run, {key: now for key, now in wanted.items() if key not in before}))
        if len(found) == len(wanted):
            break
    for case in cases:
        line = case.baseline
        if case.key not in found and line is not None and _other(line, version):
            found[case.key] = Previous(commit=short_commit(line.commit, 7), when=line.when[:10], time=line.time)
    return tried | found  # what was tried before a commit is most often that commit: it is asked last


def _before(report: RunReport, earlier: Iterable[RunReport]) -> Iterator[RunReport]:
    return (run for run in earlier if run.started < report.started)


def _version(run: RunReport) -> str:
    return short_commit(commit_name(run.environment.commit, dirty=run.environment.dirty))


def _other(line: Baseline, version: str) -> bool:
    """Whether a line is of something else than this version; one of this very commit is no previous one."""
    commit = short_commit(line.commit)
    return not (commit and version) or not (version.startswith(commit) or commit.startswith(version))


def _alike(run: RunReport, wanted: dict[CaseKey, Measurement]) -> Iterator[tuple[CaseKey, Previous]]:
    """Cases that this run measured in the same way, on the same device."""
    for case in run.cases:
        now, then = wanted.get(case.key), case.measurement
        if now is None or then is None or case.problems or then.problems:
            continue
        if then.metrics.find("time") and not now.identity.differences(then.identity):
            commit = short_commit(commit_name(run.environment.commit, dirty=run.environment.dirty), 7)
            yield case.key, Previous(commit=commit, when=run.started[:10], metrics=then.metrics)
