"""Cases whose test failed in a later process: they stand on fewer than were asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.model.children import CaseResult
from pytest_perfgate.model.limit import Effect
from pytest_perfgate.model.measurement import Measurement
from pytest_perfgate.model.problem import Finding
from pytest_perfgate.model.verdict import CaseReport, SuiteNote

UNFINISHED = "measured in fewer processes than asked for"


def with_trouble(measurement: Measurement, result: CaseResult) -> Measurement:
    """The measurement with what ended its rounds before their time."""
    if not result.trouble:
        return measurement
    asked = plural(result.case.plan.rounds, "process", "processes")
    said = " ".join(result.trouble[0].split())
    told = Finding(title=UNFINISHED, detail=f"{len(result.captures)} of {asked}, then {said}")
    return replace(measurement, findings=(*measurement.findings, told))


def unfinished(reports: Sequence[CaseReport]) -> Iterator[SuiteNote]:
    """One note for all of them: what is judged saw less, and a test that fails now and then is no steady one."""
    found = [(r.key, one) for r in reports if r.measurement for one in r.measurement.findings]
    names = tuple(f"{key}: {one.detail}" for key, one in found if one.title == UNFINISHED)
    if names:
        yield SuiteNote(
            kind="unfinished", effect=Effect.WARN, text=f"{plural(len(names), 'case')} {UNFINISHED}", names=names
        )
