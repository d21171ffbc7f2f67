"""The bottleneck report: one document a kernel, the same sections in the same order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_perfgate.core.analysis.classify import Bottleneck
from pytest_perfgate.core.analysis.decisions import NO_ROW
from pytest_perfgate.core.analysis.kernels.advice import advice_items
from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis
from pytest_perfgate.core.analysis.kernels.evidence import code_evidence
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


_FLOPS, _BYTES = "--set flops=137.4GFLOP", "--set bytes=201MB"
_STATED = {
    "problem": ("--set problem='GEMM, M=N=K=4096'",),
    "kernel time": ("--set time=11.2ms",),
    "effective rate": (_FLOPS,),
    "effective bandwidth": (_BYTES,),
    "arithmetic intensity": (_FLOPS, _BYTES),
    "balance point": ("--set dtype=fp16", "--device 'H100 SXM'"),
}
"""How a person states what no file says."""
_COUNTERS = "perfgate profile NODEID --mode annotation"


def bottleneck_report(diagnosis: Diagnosis, timing: Timing | None = None) -> Document:
    """What holds this kernel back, from what was collected; what was not says how to collect it."""
    facts = diagnosis.facts
    time = timing or Timing(time_ns=diagnosis.numbers.get("duration"), by="the profiler")
    where = " · ".join(part for part in (facts.device, facts.arch, facts.source) if part)
    return Document(
        title=f"Bottleneck report: {diagnosis.name}",
        subtitle=where,
        blocks=(
            Paragraph(text=in_short(diagnosis)),
            Section(title="Baseline", blocks=(_listed(_baseline(time), _no_baseline(time)),)),
            Section(title="Roofline", blocks=(_listed(_roofline(diagnosis, time), _no_roofline(diagnosis, time)),)),
            Section(title="Occupancy", blocks=tuple(occupancy_section(diagnosis))),
            Section(title="Compute/load ratio", blocks=tuple(ratio_section(diagnosis))),
            Section(title="Instruction mix", blocks=tuple(mix_section(diagnosis))),
            Section(title="Shared-memory cliff", blocks=tuple(cliff_section(diagnosis))),
            Section(title="Recommendations", blocks=tuple(_recommendations(diagnosis))),
        ),
    )


def in_short(diagnosis: Diagnosis) -> str:
    """The class, what the code shows, and the first thing to try."""
    found, told = diagnosis.classification, list(code_evidence(diagnosis))
    collected = found.bottleneck is not Bottleneck.NOT_COLLECTED
    parts = [_sentence(found.sentence)] if collected else []
    parts += [_sentence(", ".join(told))] if told else []
    first = next((f for f in diagnosis.advice if f.trigger != NO_ROW), None)
    parts += [f"First to try: {first.title[:1].lower()}{first.title[1:]} ({first.trigger})."] if first else []
    return " ".join(parts) or "Nothing was collected."


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _listed(known: Iterator[str], missing: str) -> Block:
    """What is known, and one line for all that is not."""
    items = tuple(known)
    if items:
        return Bullets(items=(*items, missing) if missing else items)
    return Paragraph(text=missing)


def _baseline(time: Timing) -> Iterator[str]:
    placed = time.placement
    if time.problem:
        yield f"Problem: {time.problem}"
    if time.time_ns is not None:
        yield f"Kernel time: {quantity(time.time_ns, Dimension.TIME)} by {time.by}"
    if placed and placed.flops_rate is not None:
        yield f"Effective rate: {quantity(placed.flops_rate, Dimension.FLOPS)}"
    if placed and placed.bandwidth is not None:
        yield f"Effective bandwidth: {quantity(placed.bandwidth, Dimension.BANDWIDTH)}"


def _no_baseline(time: Timing) -> str:
    return _missing(_unknown(time))


def _unknown(time: Timing) -> list[str]:
    placed = time.placement
    known = {
        "problem": bool(time.problem),
        "kernel time": time.time_ns is not None,
        "effective rate": placed is not None and placed.flops_rate is not None,
        "effective bandwidth": placed is not None and placed.bandwidth is not None,
    }
    return [name for name, there in known.items() if not there]


def _missing(names: Sequence[str], told: Sequence[str] = (), device: str = "") -> str:
    """What is not there, and how to state it: neither what was asked for further up, nor a device that is known."""
    asked = [flag for name in names for flag in _STATED.get(name, ()) if not (device and flag.startswith("--device"))]
    fresh = " ".join(dict.fromkeys(flag for flag in asked if flag not in told))
    above = "the work as above" if any(flag in told for flag in asked) else ""
    how = " and ".join(filter(None, (above, fresh)))
    state = f"state {how}" if above else f"state {'them' if len(names) > 1 else 'it'}: {how}"
    return f"Not collected: {', '.join(names)}" + (f" ({state})" if how else "") if names else ""


def _roofline(diagnosis: Diagnosis, time: Timing) -> Iterator[str]:
    found, placed = diagnosis.classification, time.placement
    if placed and placed.intensity is not None:
        yield f"Arithmetic intensity: {quantity(placed.intensity, Dimension.INTENSITY)}"
    if time.ridge is not None:
        yield f"Balance point: {quantity(time.ridge, Dimension.INTENSITY)} ({time.dtype})"
    if found.bottleneck is not Bottleneck.NOT_COLLECTED:
        yield f"Classification: {found.short}"
        yield from (f"{told[:1].upper()}{told[1:]}" for told in found.evidence)
    yield from (f"Note: {note}" for note in found.notes)
    if diagnosis.pipe:
        yield f"Busiest pipe that computes: {diagnosis.pipe[0]}, {quantity(diagnosis.pipe[1], Dimension.FRACTION, 3)}"
    if placed and placed.fraction is not None:
        basis = f" of {time.basis}" if time.basis else ""
        yield f"Attained fraction: {quantity(placed.fraction, Dimension.FRACTION, 3)}{basis}"


def _no_roofline(diagnosis: Diagnosis, time: Timing) -> str:
    placed, told = time.placement, []
    if diagnosis.classification.bottleneck is Bottleneck.NOT_COLLECTED:
        told.append(f"Not collected: classification ({_COUNTERS})")
    missing = [] if placed and placed.intensity is not None else ["arithmetic intensity"]
    missing += [] if time.ridge is not None else ["balance point"]
    missing += [] if placed and placed.fraction is not None else ["attained fraction"]
    above = [flag for name in _unknown(time) for flag in _STATED[name]]
    told += [_missing(missing, above, diagnosis.facts.device)] if missing else []
    return "; ".join(told[:1] + [text[:1].lower() + text[1:] for text in told[1:]])


def _recommendations(diagnosis: Diagnosis) -> Iterator[Block]:
    advice = diagnosis.advice
    if diagnosis.classification.bottleneck is Bottleneck.NOT_COLLECTED:
        advice = tuple(finding for finding in advice if finding.trigger != NO_ROW)
        yield Paragraph(
            text=f"The class is not collected ({_COUNTERS}), so advice that depends on it "
            "is not given." + (" What the code alone shows:" if advice else " Nothing stands out in the code alone.")
        )
    if advice:
        yield Bullets(items=tuple(advice_items(advice)), ordered=True)
