"""Verdicts on a file as a document: every limit with what it came to, and what that rests on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pytest_perfgate.core.render.block import printable
from pytest_perfgate.model.document import Column, Document, Paragraph, Table
from pytest_perfgate.model.limit import Outcome
from pytest_perfgate.model.verdict import Verdict

_COLUMNS = (Column(name="outcome"), Column(name="limit"), Column(name="what was found"), Column(name="rests on"))
_ORDER = list(Outcome)


def verdicts_document(subject: str, verdicts: Sequence[Verdict]) -> Document:
    """The worst first, under a count of all."""
    counts = Counter(verdict.outcome for verdict in verdicts)
    said = ", ".join(f"{counts[outcome]} {outcome.value}" for outcome in reversed(_ORDER) if counts[outcome])
    ordered = sorted(verdicts, key=lambda verdict: -_ORDER.index(verdict.outcome))
    table = Table(columns=_COLUMNS, rows=tuple(_row(verdict) for verdict in ordered))
    return Document(title="Limits", subtitle=printable(subject), blocks=(Paragraph(text=f"{said}."), table))


def _row(verdict: Verdict) -> tuple[str, ...]:
    facts = [f"{name}: {text}" for name, text in verdict.evidence] + [f"next: {command}" for command in verdict.next]
    name = verdict.outcome.name.replace("_", " ")
    return name, printable(verdict.limit.text), printable(verdict.sentence), printable("; ".join(facts))
