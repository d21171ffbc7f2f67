"""Captures of a case: taken after its timing, in a run of their own, and joined to what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from pytest_perfgate.app.profiled import Profiled
from pytest_perfgate.core.gate.policy import chosen
from pytest_perfgate.model.analysis import Analysis
from pytest_perfgate.model.children import Capture, CaseResult
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.limit import Outcome
from pytest_perfgate.model.metric import Absent, MetricSet
from pytest_perfgate.model.plan import Case
from pytest_perfgate.model.policy import Policy
from pytest_perfgate.model.problem import Finding, Severity
from pytest_perfgate.model.profiling import external
from pytest_perfgate.model.verdict import CaseReport, SuiteNote

Take = Callable[[Case, Capture, str], Profiled]
"""Takes one capture of one call."""
_BROUGHT = frozenset({"record", "read", "cubin"})
"""What a test took by itself: no run of ours would see it."""
LOST = "was not taken"


def with_captures(result: CaseResult, take: Take) -> CaseResult:
    """The case's last round with what its captures say; its timing stays as it was."""
    if not result.captures or result.outcome != "passed":
        return result
    *rounds, last = result.captures
    return replace(result, captures=(*rounds, tuple(_captured(result.case, one, take) for one in last)))


def _captured(case: Case, one: Capture, take: Take) -> Capture:
    if one.identity.timer in _BROUGHT:
        return one
    for mode in external(case.plan.captures):
        one = _joined(case, one, mode, take)
    return one


def _joined(case: Case, one: Capture, mode: str, take: Take) -> Capture:
    try:
        return _with(one, take(case, one, mode))
    except PerfgateError as fault:
        return _without(case, one, mode, fault)


def _with(one: Capture, done: Profiled) -> Capture:
    """The figures, the files, and the line that says where the figures are from."""
    version = f" {done.version}" if done.version else ""
    seen = Finding(title=f"captured by {done.mode}{version}", detail=done.evidence, scope=done.mode)
    return replace(
        one,
        metrics=one.metrics | trusted(done.analysis),
        findings=(*one.findings, seen, *done.analysis.findings),
        artifacts=(*one.artifacts, *done.artifacts),
    )


def _without(case: Case, one: Capture, mode: str, fault: PerfgateError) -> Capture:
    """A capture that failed: whatever is limited and came from nowhere else says why it is not there."""
    log = f"; see {fault.place}" if "\n" in fault.what and fault.place else ""
    said = fault.what.partition("\n")[0].removesuffix("; it said:") + log
    seen = lost(mode, said, fault.mend)
    why = f"{seen.title}: {said}"
    return replace(one, metrics=one.metrics | lacking(case, why, fault.mend), findings=(*one.findings, seen))


def lost(mode: str, why: str, mend: str) -> Finding:
    """A capture that was asked for and is not there."""
    title = f"capture {mode} {LOST}"
    return Finding(title=title, detail=why, advice=mend, trigger=why, severity=Severity.INFO, scope=mode)


def lacking(case: Case, why: str, mend: str) -> MetricSet:
    """The reason in the place of every metric that the case limits."""
    names = dict.fromkeys(limit.metric for limit in case.limits)
    return MetricSet(absent=tuple(Absent(name=name, why=why, mend=mend) for name in names))


def trusted(analysis: Analysis) -> MetricSet:
    """The metrics of an analysis; with a problem none of them counts, and limits on them are INVALID."""
    if not analysis.problems:
        return analysis.metrics
    first = analysis.problems[0]
    why = "; ".join(problem.what for problem in analysis.problems)
    held = [(m.name, m.labels) for m in analysis.metrics.metrics]
    held += [(a.name, a.labels) for a in analysis.metrics.absent]
    return MetricSet(absent=tuple(Absent(name=n, labels=s, why=why, code=first.code) for n, s in held))


def capture_notes(reports: Iterable[CaseReport], policy: Policy) -> tuple[SuiteNote, ...]:
    """Captures that failed where no limit says so already: asked for and not taken must not look taken."""
    names = tuple(
        f"{report.key}: {finding.title}: {finding.detail}" + (f"; next: {finding.advice}" if finding.advice else "")
        for report in reports
        if report.measurement and all(v.outcome is not Outcome.NOT_MEASURED for v in report.verdicts)
        for finding in report.measurement.findings
        if finding.title.endswith(LOST)
    )
    text = f"{len(names)} capture{'' if len(names) == 1 else 's'} asked for and not taken"
    note = SuiteNote(kind="captures", effect=chosen(policy, "unmeasured"), text=text, names=names)
    return (note,) if names else ()
