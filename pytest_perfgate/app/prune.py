"""Remove baselines that no test asks for any more; only a full run that passed can tell."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_perfgate.core.gate.suite import SKIPPED, UNUSED
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.model.baseline import Baseline
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.limit import Effect, Outcome
from pytest_perfgate.model.ports import BaselineStore
from pytest_perfgate.model.verdict import CaseReport, RunReport


def unused(report: RunReport, store: BaselineStore) -> tuple[Baseline, ...]:
    """Lines of the devices of this run that none of its cases has, or that no limit of theirs asks for."""
    check_complete(report)
    asked = {str(case.key) for case in report.cases}
    tests = {case.key.nodeid for case in report.cases if case.measurement is None}
    idle = {name for note in report.notes if note.kind == UNUSED for name in note.names}
    skipped = [name for note in report.notes if note.kind == SKIPPED for name in note.names]
    devices = sorted({case.measurement.device.key for case in report.cases if case.measurement})
    return tuple(
        line
        for device in devices
        for key, line in store.read_all(device).items()
        if key in idle or (key not in asked and line.key.nodeid not in tests and not _among(line, skipped))
    )


def _among(line: Baseline, skipped: Sequence[str]) -> bool:
    """Whether a note says of the line's test that it was skipped, with its reason or without one."""
    return any(name == line.key.nodeid or name.startswith(f"{line.key.nodeid}: ") for name in skipped)


def check_complete(report: RunReport) -> None:
    """Refuse a record that cannot tell what is gone."""
    failing = [case for case in report.cases if case.effect is Effect.FAIL]
    reasons = (
        ("the last run was interrupted", not report.complete, ""),
        ("the last run left tests out", report.filtered, ""),
        (f"the last run was a {report.mode} run", report.mode != "full", ""),
        ("the last run measured nothing", not any(case.measurement for case in report.cases), ""),
        (f"{plural(len(failing), 'case')} of the last run failed", bool(failing), _cure(failing)),
    )
    for what, holds, mend in reasons:
        if holds:
            raise PerfgateError("prune-incomplete", what, mend=mend)


def _cure(failing: Sequence[CaseReport]) -> str:
    """What makes the failed cases pass: what only lacks a line is accepted, and the rest is looked at."""
    if all(case.worst is Outcome.UNBASELINED for case in failing):
        return "perfgate accept --new, and run everything again: pytest --perfgate=full"
    return "see what failed: perfgate report; mend or accept it, and run everything again: pytest --perfgate=full"


def prune(lines: Sequence[Baseline], store: BaselineStore) -> tuple[str, ...]:
    """Remove these lines; the paths of the files that changed."""
    changed: list[str] = []
    for device in sorted({line.device for line in lines}):
        changed += map(str, store.remove(device, [line.key for line in lines if line.device == device]))
    return tuple(changed)
