"""The class of a kernel as a finding: what the gate's block shows beside a broken limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_perfgate.core.analysis.classify import Bottleneck
from pytest_perfgate.core.analysis.decisions import NO_ROW
from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis
from pytest_perfgate.model.problem import Finding


def findings_of(diagnoses: Sequence[Diagnosis]) -> tuple[Finding, ...]:
    """The class of each kernel with its numbers, our advice, then the profiler's own rules; longest kernel first."""
    ranked = sorted(diagnoses, key=lambda d: d.numbers.get("duration", 0.0), reverse=True)
    return tuple(finding for d in ranked for finding in _of(d))


def _of(diagnosis: Diagnosis) -> Iterator[Finding]:
    found = diagnosis.classification
    if found.bottleneck is not Bottleneck.NOT_COLLECTED:
        yield Finding(
            title=diagnosis.name,
            detail=found.sentence,
            trigger=", ".join(found.evidence),
            scope=diagnosis.name,
        )
    yield from (finding for finding in diagnosis.advice if finding.trigger != NO_ROW)
    yield from diagnosis.facts.findings
