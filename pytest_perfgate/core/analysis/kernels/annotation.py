"""Where in the code a kernel waits: the instructions with the most samples."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis
from pytest_perfgate.model.document import Block, Column, Document, Paragraph, Section, Table
from pytest_perfgate.model.quantity import Dimension

_MISSING = (
    "not collected: the report holds no samples with machine code (--section SourceCounters, and --import-source yes "
    "for the source)"
)


def annotation_view(diagnoses: Sequence[Diagnosis], title: str) -> Document:
    """Samples by instruction with its place in the source, the hottest first."""
    return Document(
        title=f"{title}: hottest instructions",
        blocks=tuple(Section(title=d.name, blocks=(_table(d),)) for d in diagnoses),
    )


def _table(diagnosis: Diagnosis) -> Block:
    lines = diagnosis.facts.lines
    if not lines:
        return Paragraph(text=_MISSING)
    total = sum(line.samples for line in lines)
    return Table(
        columns=(
            Column(name="samples", dimension=Dimension.COUNT),
            Column(name="share", dimension=Dimension.FRACTION, digits=3),
            Column(name="executed", dimension=Dimension.COUNT),
            Column(name="instruction"),
            Column(name="place"),
        ),
        rows=tuple((line.samples, line.samples / total, line.executed, line.text, line.place) for line in lines),
    )
