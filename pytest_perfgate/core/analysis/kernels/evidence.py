"""The class of a kernel as a finding: what the gate's block shows beside a broken limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pytest_perfgate.core.analysis.classify import Bottleneck
from pytest_perfgate.core.analysis.decisions import NO_ROW
from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis
from pytest_perfgate.core.analysis.sass.mix import LOCAL
from pytest_perfgate.model.problem import Finding


def findings_of(diagnoses: Sequence[Diagnosis]) -> tuple[Finding, ...]:
    """The class of each kernel with its numbers, our advice, then the profiler's own rules.

    The longest kernel comes first, and without times the one with most to say.
    """
    ranked = sorted(diagnoses, key=_weight, reverse=True)
    return tuple(finding for d in ranked for finding in _of(d, alone=len(diagnoses) == 1))


def _weight(diagnosis: Diagnosis) -> tuple[float, int]:
    return diagnosis.numbers.get("duration", 0.0), len(_advice(diagnosis))


def _advice(diagnosis: Diagnosis) -> list[Finding]:
    return [finding for finding in diagnosis.advice if finding.trigger != NO_ROW]


def _of(diagnosis: Diagnosis, *, alone: bool) -> Iterator[Finding]:
    found, advice = diagnosis.classification, _advice(diagnosis)
    code = tuple(code_evidence(diagnosis))
    if found.bottleneck is not Bottleneck.NOT_COLLECTED:
        yield Finding(
            title=diagnosis.name,
            detail="; ".join((found.sentence, *found.notes)),
            trigger=", ".join(found.evidence),
            scope=diagnosis.name,
        )
    elif code and (alone or advice):
        yield Finding(title=diagnosis.name, detail=", ".join(code), trigger=code[0], scope=diagnosis.name)
    yield from (replace(finding, scope=diagnosis.name) for finding in advice)
    yield from diagnosis.facts.findings


def code_evidence(diagnosis: Diagnosis) -> Iterator[str]:
    """What resources and machine code say of a kernel, in a few words."""
    numbers, held = diagnosis.numbers, diagnosis.occupancy
    if "registers" in numbers:
        yield f"{numbers['registers']:.0f} registers"
    if numbers.get("spills"):
        touched = sum(diagnosis.whole.counts.get(name, 0) for name in LOCAL) if diagnosis.whole else 0
        by = f" ({touched:,} LDL and STL)" if touched else ""
        yield f"{numbers['spills']:,.0f} bytes of local memory a thread{by}"
    if held is not None:
        blocks = f"{held.blocks} block{'' if held.blocks == 1 else 's'}"
        yield held.why_none or f"{blocks} and {held.warps} warps/SM by {', '.join(held.limiting)}"
    yield from _loop(diagnosis)


def _loop(diagnosis: Diagnosis) -> Iterator[str]:
    inner = diagnosis.inner
    if inner is None or not inner.computing:
        return
    where = "in the main loop" if diagnosis.loop else "in the kernel"
    against = f" for {inner.loads:,} load{'' if inner.loads == 1 else 's'}" if inner.ratio is not None else ""
    yield f"{inner.computed}{against} {where}"
