"""The analysis report of a set of kernels: Summary, Metrics, Findings, Recommendations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_perfgate.core.analysis.decisions import NO_ROW
from pytest_perfgate.core.analysis.kernels.advice import advice_items
from pytest_perfgate.core.analysis.kernels.contract import longest_stage
from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis
from pytest_perfgate.core.analysis.kernels.health import Health, health_sentence, unhealthy
from pytest_perfgate.core.render.quantity import quantity
from pytest_perfgate.model.document import Block, Bullets, Document, Paragraph, Section
from pytest_perfgate.model.quantity import Dimension


def analysis_report(diagnoses: Sequence[Diagnosis], title: str, extra: Sequence[tuple[str, str]] = ()) -> Document:
    """``extra`` brings figures of the whole run: throughput, MFU, speed of light, utilisation."""
    longest = longest_stage(diagnoses)
    total = sum(d.numbers.get("duration", 0.0) for d in diagnoses)
    share = longest.numbers.get("duration", 0.0) / total if total else None
    part = f" ({quantity(share, Dimension.FRACTION, 3)} of the time)" if share is not None else ""
    return Document(
        title=title,
        blocks=(
            Section(
                title="Summary", blocks=(Paragraph(text=f"{longest.name}{part}: {longest.classification.sentence}."),)
            ),
            Section(title="Metrics", blocks=(Bullets(items=tuple(_metrics(diagnoses, total, extra))),)),
            Section(title="Findings", blocks=(Bullets(items=tuple(_findings(diagnoses)), ordered=True),)),
            Section(title="Recommendations", blocks=(_advice(longest),)),
        ),
    )


def _metrics(diagnoses: Sequence[Diagnosis], total: float, extra: Sequence[tuple[str, str]]) -> Iterator[str]:
    yield from (f"{name}: {text}" for name, text in extra)
    yield f"Kernel count: {len(diagnoses)}"
    yield f"Kernel time: {quantity(total or None, Dimension.TIME)}"
    for name, words in (
        ("tc_util", "Tensor-core utilisation"),
        ("dram", "Memory bandwidth, of its peak"),
        ("sm", "Multiprocessor throughput, of its peak"),
        ("occupancy", "Achieved occupancy"),
        ("l2_hit", "L2 hit rate"),
    ):
        yield f"{words}: {quantity(_weighted(diagnoses, name), Dimension.FRACTION, 3)}"


def _weighted(diagnoses: Sequence[Diagnosis], name: str) -> float | None:
    """The mean over time; absent as soon as one kernel does not have it."""
    pairs = [(d.numbers.get(name), d.numbers.get("duration")) for d in diagnoses]
    known = [(number, spent) for number, spent in pairs if number is not None and spent]
    total = sum(spent for _, spent in known)
    return sum(number * spent for number, spent in known) / total if len(known) == len(pairs) and total else None


def _findings(diagnoses: Sequence[Diagnosis]) -> Iterator[str]:
    for d in sorted(diagnoses, key=lambda d: d.numbers.get("duration", 0.0), reverse=True):
        yield f"{d.name}: {d.classification.sentence}"
        yield from (f"{d.name}: {note}" for note in d.classification.notes)
        yield from (f"{d.name}: {health_sentence(row, n)}" for row, n in unhealthy(d.numbers) if not _noted(d, row))
        yield from (f"{d.name}: {f.title} — {f.detail}" for f in d.facts.findings if f.gain)


def _noted(diagnosis: Diagnosis, row: Health) -> bool:
    """Locality stands beside the class already."""
    return row.name == "l2_hit" and bool(diagnosis.classification.notes)


def _advice(longest: Diagnosis) -> Block:
    told = [f for f in longest.advice if f.trigger != NO_ROW] or longest.advice
    return Bullets(items=tuple(advice_items(told)), ordered=True)
