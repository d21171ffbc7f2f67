"""A case that the judge itself stumbled over: it fails with a sentence, and costs no other case its verdict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pytest_perfgate.core.gate.judge import JudgeContext, not_measured
from pytest_perfgate.model.faults import fault_sentence
from pytest_perfgate.model.limit import Effect, Limit, Outcome
from pytest_perfgate.model.measurement import Measurement
from pytest_perfgate.model.problem import Problem
from pytest_perfgate.model.verdict import CaseReport

_CODE = "judging-failed"


def unjudged(measurement: Measurement, limits: Iterable[Limit], fault: Exception, context: JudgeContext) -> CaseReport:
    """INVALID under each of its limits, whatever the policy says; what was measured stays in the record."""
    what = fault_sentence(fault, "judged this", _CODE)
    report = not_measured(measurement.key, tuple(limits), what, context)
    failed = tuple(
        replace(v, outcome=Outcome.INVALID, effect=Effect.FAIL, next=("report it: this is a fault of perfgate",))
        for v in report.verdicts
    )
    problem = Problem(code=_CODE, what=what, retry=False)
    return replace(report, verdicts=failed, measurement=measurement, problems=(problem,))
