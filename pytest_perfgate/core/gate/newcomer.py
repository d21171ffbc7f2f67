"""A test that the revision under comparison does not have, or cannot run."""

from __future__ import annotations

from dataclasses import replace

from pytest_perfgate.core.gate.context import JudgeContext
from pytest_perfgate.model.policy import Choice
from pytest_perfgate.model.verdict import CaseReport

NEW = "new here: nothing to compare with"


def newcomer(context: JudgeContext, why: str = NEW) -> JudgeContext:
    """Its slowdown has nothing to be held against, and nobody needs to accept it first."""
    policy = replace(context.policy, missing=Choice.WARN)
    return replace(context, policy=policy, unbaselined=why)


def by_its_line(report: CaseReport, why: str) -> CaseReport:
    """Judged by the stored line, for want of a base that can run it: that is said with each slowdown."""
    said = tuple(
        replace(v, evidence=(*v.evidence, ("no arms", why))) if v.limit.metric == "slowdown" else v
        for v in report.verdicts
    )
    return replace(report, verdicts=said)
