"""What the profiler's own rules said, kernel by kernel."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_perfgate.core.analysis.kernels.advice import gain_text
from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis
from pytest_perfgate.model.document import Bullets, Document, Paragraph, Section
from pytest_perfgate.model.problem import Finding


def rules_view(diagnoses: Sequence[Diagnosis], title: str) -> Document:
    """Every result with its estimated gain, the largest first."""
    sections = tuple(
        Section(
            title=d.name, blocks=(Bullets(items=tuple(map(_said, sorted(d.facts.findings, key=_gain, reverse=True)))),)
        )
        for d in diagnoses
        if d.facts.findings
    )
    return Document(title=f"{title}: rules of the profiler", blocks=sections or (Paragraph(text="not collected"),))


def _gain(finding: Finding) -> float:
    return finding.gain.high if finding.gain else 0.0


def _said(finding: Finding) -> str:
    gain = f" ({gain_text(finding)}{f'; {finding.doubt}' if finding.doubt else ''})" if finding.gain else ""
    return f"{finding.title}{gain}: {finding.detail} [{finding.trigger}]"
