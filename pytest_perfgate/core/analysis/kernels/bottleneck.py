"""The bottleneck report: one document a kernel, the same sections in the same order."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_perfgate.core.analysis.classify import Bottleneck
from pytest_perfgate.core.analysis.decisions import NO_ROW
from pytest_perfgate.core.analysis.kernels.advice import advice_items
from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis
from pytest_perfgate.core.analysis.kernels.sections import cliff_section, mix_section, occupancy_section, ratio_section
from pytest_perfgate.core.analysis.roofline import Placement
from pytest_perfgate.core.render.quantity import quantity
from pytest_perfgate.model.document import Block, Bullets, Document, Paragraph, Section
from pytest_perfgate.model.quantity import Dimension
from pytest_perfgate.model.values import value


@value
class Timing:
    """What a timer and the test's own statement of work say of the kernel."""

    problem: str = ""
    time_ns: float | None = None
    by: str = "device events"
    placement: Placement | None = None
    ridge: float | None = None
    dtype: str = ""
    basis: str = ""


def bottleneck_report(diagnosis: Diagnosis, timing: Timing | None = None) -> Document:
    """What holds this kernel back, from what was collected; what was not says how to collect it."""
    facts = diagnosis.facts
    time = timing or Timing(time_ns=diagnosis.numbers.get("duration"), by="the profiler")
    where = " · ".join(part for part in (facts.device, facts.arch, facts.source) if part)
    return Document(
        title=f"Bottleneck report: {diagnosis.name}",
        subtitle=where,
        blocks=(
            Section(title="Baseline", blocks=(Bullets(items=tuple(_baseline(time))),)),
            Section(title="Roofline", blocks=(Bullets(items=tuple(_roofline(diagnosis, time))),)),
            Section(title="Occupancy", blocks=tuple(occupancy_section(diagnosis))),
            Section(title="Compute/load ratio", blocks=tuple(ratio_section(diagnosis))),
            Section(title="Instruction mix", blocks=tuple(mix_section(diagnosis))),
            Section(title="Shared-memory cliff", blocks=tuple(cliff_section(diagnosis))),
            Section(title="Recommendations", blocks=tuple(_recommendations(diagnosis))),
        ),
    )


def _baseline(time: Timing) -> Iterator[str]:
    placed = time.placement
    yield f"Problem: {time.problem or 'not collected (a gated test says it with work=)'}"
    spent = quantity(time.time_ns, Dimension.TIME)
    yield (
        f"Kernel time: {spent} by {time.by}"
        if time.time_ns is not None
        else ("Kernel time: not collected (a gated test times it)")
    )
    rate = quantity(placed.flops_rate if placed else None, Dimension.FLOPS)
    moved = quantity(placed.bandwidth if placed else None, Dimension.BANDWIDTH)
    yield f"Effective rate: {rate} | effective bandwidth: {moved}"


def _roofline(diagnosis: Diagnosis, time: Timing) -> Iterator[str]:
    found, placed = diagnosis.classification, time.placement
    yield f"Arithmetic intensity: {quantity(placed.intensity if placed else None, Dimension.INTENSITY)}"
    yield f"Balance point: {quantity(time.ridge, Dimension.INTENSITY)}" + (f" ({time.dtype})" if time.dtype else "")
    if found.bottleneck is Bottleneck.NOT_COLLECTED:
        yield "Classification: not collected (counters: perfgate profile NODEID --mode annotation)"
    else:
        yield f"Classification: {found.sentence}"
    yield from (f"Note: {note}" for note in found.notes)
    if diagnosis.pipe:
        yield f"Busiest pipe that computes: {diagnosis.pipe[0]}, {quantity(diagnosis.pipe[1], Dimension.FRACTION, 3)}"
    attained = placed.fraction if placed else None
    basis = f" of {time.basis}" if time.basis and attained is not None else ""
    yield f"Attained fraction: {quantity(attained, Dimension.FRACTION, 3)}{basis}"


def _recommendations(diagnosis: Diagnosis) -> Iterator[Block]:
    advice = diagnosis.advice
    if diagnosis.classification.bottleneck is Bottleneck.NOT_COLLECTED:
        advice = tuple(finding for finding in advice if finding.trigger != NO_ROW)
        yield Paragraph(
            text="The class is not collected (perfgate profile NODEID --mode annotation), so advice that depends on it "
            "is not given." + (" What the code alone shows:" if advice else " Nothing stands out in the code alone.")
        )
    if advice:
        yield Bullets(items=tuple(advice_items(advice)), ordered=True)
