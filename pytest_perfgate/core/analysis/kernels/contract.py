"""The profiler contract: a compact result for another program, as Markdown and as JSON of one schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_perfgate.core.analysis.classify import Bottleneck
from pytest_perfgate.core.analysis.decisions import NO_ROW
from pytest_perfgate.core.analysis.kernels.advice import gain_text
from pytest_perfgate.core.analysis.kernels.comparison import moved_table, paired
from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis
from pytest_perfgate.core.analysis.kernels.health import health_sentence, unhealthy
from pytest_perfgate.core.render.quantity import ABSENT, significant
from pytest_perfgate.model.document import Block, Bullets, Column, Document, Paragraph, Section, Table
from pytest_perfgate.model.problem import Finding

SCHEMA = 1
_TOP = 3
_STAGES = ("Stage", "Duration (us)", "TC%", "DRAM%", "Occ%", "Bottleneck", "Key Issue")


def contract_document(
    diagnoses: Sequence[Diagnosis],
    *,
    version: str = "",
    configuration: Mapping[str, str] | None = None,
    baseline: Sequence[Diagnosis] = (),
) -> Document:
    """Configuration, stages, the bottleneck of the longest stage, three opportunities, the baseline."""
    longest = longest_stage(diagnoses)
    given = {**(configuration or {}), **_configuration(longest)}
    sections: list[Block] = [
        Section(
            title="Configuration",
            blocks=(Table(columns=tuple(Column(name=n) for n in given), rows=(tuple(given.values()),)),),
        ),
        Section(
            title="Stages",
            blocks=(Table(columns=tuple(Column(name=n) for n in _STAGES), rows=tuple(map(_stage, diagnoses))),),
        ),
        Section(title=f"Bottleneck: {said(longest)}", blocks=(Paragraph(text=root_cause(longest)),)),
        Section(title="Top 3 Opportunities", blocks=(Bullets(items=tuple(_opportunities(longest)), ordered=True),)),
    ]
    for old, new in paired(baseline, diagnoses):
        sections.append(Section(title=f"vs Baseline: {new.name}", blocks=(moved_table(old, new),)))
    return Document(title=f"Profile: {longest.name} {version or _written_by(diagnoses)}", blocks=tuple(sections))


def profiler_of(diagnoses: Sequence[Diagnosis]) -> str:
    """The instrument with its version, where the report says it: ``ncu 2025.3.1``."""
    told = dict.fromkeys(d.facts.notes.get("profiler", "") for d in diagnoses)
    return ", ".join(filter(None, told))


def _written_by(diagnoses: Sequence[Diagnosis]) -> str:
    return profiler_of(diagnoses) or "(version not collected)"


def longest_stage(diagnoses: Sequence[Diagnosis]) -> Diagnosis:
    return max(diagnoses, key=lambda d: d.numbers.get("duration", 0.0))


def _configuration(diagnosis: Diagnosis) -> dict[str, str]:
    launch = diagnosis.facts.launch
    return {
        "device": diagnosis.facts.device or ABSENT,
        "arch": diagnosis.facts.arch or ABSENT,
        "block": " x ".join(map(str, launch.block)) if launch else ABSENT,
        "grid": " x ".join(map(str, launch.grid)) if launch and launch.blocks else ABSENT,
    }


def said(diagnosis: Diagnosis) -> str:
    """``Memory-bound``; what is no bound keeps its own name."""
    name: Bottleneck = diagnosis.classification.bottleneck
    if name in (Bottleneck.INVALID, Bottleneck.BALANCED, Bottleneck.NOT_COLLECTED):
        return str(name.value).capitalize()
    return f"{name.value.capitalize()}-bound"


def root_cause(diagnosis: Diagnosis) -> str:
    """Two sentences at the most."""
    found = diagnosis.classification
    first = f"{diagnosis.name} is {found.sentence}."
    return f"{first} {found.notes[0][:1].upper()}{found.notes[0][1:]}." if found.notes else first


def _stage(diagnosis: Diagnosis) -> tuple[str, ...]:
    numbers = diagnosis.numbers
    return (
        diagnosis.name,
        significant(numbers["duration"] / 1e3) if "duration" in numbers else ABSENT,
        *(significant(numbers[n] * 100, 3) if n in numbers else ABSENT for n in ("tc_util", "dram", "occupancy")),
        said(diagnosis),
        _issue(diagnosis),
    )


def _issue(diagnosis: Diagnosis) -> str:
    titles = (finding.title for finding in top_opportunities(diagnosis) if finding.trigger != NO_ROW)
    ill = (health_sentence(row, number).partition(" (")[0] for row, number in unhealthy(diagnosis.numbers))
    return next(titles, None) or next(ill, "none seen")


def top_opportunities(diagnosis: Diagnosis) -> tuple[Finding, ...]:
    """What the bottleneck report says to try first, then other advice and the profiler's own rules by their gain."""
    own = diagnosis.advice
    first = [f for f in own[:1] if f.trigger != NO_ROW]
    every = [*own[len(first) :], *(f for f in diagnosis.facts.findings if f.gain)]
    return (*first, *sorted(every, key=lambda f: f.gain.high if f.gain else 0.0, reverse=True))[:_TOP]


def _opportunities(diagnosis: Diagnosis) -> Iterator[str]:
    for finding in top_opportunities(diagnosis):
        gain = f"est. {finding.gain.high * 100:.0f}% gain at most" if finding.gain else gain_text(finding)
        doubt = f" ({finding.doubt})" if finding.doubt else ""
        yield f"{finding.title} — {gain}{doubt} — trigger: {finding.trigger}"


def contract_data(diagnoses: Sequence[Diagnosis], *, version: str = "") -> dict[str, Any]:
    """The same as plain data. A number that was not collected is ``null``, never zero."""
    longest = longest_stage(diagnoses)
    return {
        "schema": SCHEMA,
        "kernel": longest.name,
        "version": version or profiler_of(diagnoses) or None,
        "stages": [_stage_data(d) for d in diagnoses],
        "bottleneck": {
            "class": longest.classification.bottleneck.value,
            "measured": longest.classification.measured,
            "evidence": list(longest.classification.evidence),
            "runner_up": longest.classification.runner_up.value if longest.classification.runner_up else None,
            "distance": longest.classification.distance,
        },
        "opportunities": [
            {
                "name": finding.title,
                "gain": [finding.gain.low, finding.gain.high] if finding.gain else None,
                "trigger": finding.trigger,
                "advice": finding.advice,
                "doubt": finding.doubt,
                "conflicts": list(finding.conflicts),
            }
            for finding in top_opportunities(longest)
        ],
    }


def contract_text(diagnoses: Sequence[Diagnosis]) -> str:
    """The JSON as a file."""
    return json.dumps(contract_data(diagnoses), indent=2, ensure_ascii=False) + "\n"


def _stage_data(diagnosis: Diagnosis) -> dict[str, Any]:
    numbers = {n: diagnosis.numbers.get(n) for n in ("duration", "tc_util", "dram", "sm", "occupancy", "l2_hit")}
    return {"name": diagnosis.name, "class": diagnosis.classification.bottleneck.value, **numbers}


CONTRACT_SCHEMA: Mapping[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "perfgate profiler contract",
    "type": "object",
    "required": ["schema", "kernel", "version", "stages", "bottleneck", "opportunities"],
    "properties": {
        "schema": {"const": SCHEMA},
        "kernel": {"type": "string"},
        "version": {"type": ["string", "null"], "description": "of the kernel, or else of the instrument"},
        "stages": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["name", "class", "duration", "tc_util", "dram", "sm", "occupancy", "l2_hit"],
                "properties": {
                    "duration": {"type": ["number", "null"], "description": "nanoseconds"},
                    **{
                        n: {"type": ["number", "null"], "description": "0 to 1"}
                        for n in ("tc_util", "dram", "sm", "occupancy", "l2_hit")
                    },
                },
            },
        },
        "bottleneck": {"type": "object", "required": ["class", "measured", "evidence", "runner_up", "distance"]},
        "opportunities": {
            "type": "array",
            "maxItems": _TOP,
            "items": {"type": "object", "required": ["name", "gain", "trigger", "advice", "doubt", "conflicts"]},
        },
    },
}
