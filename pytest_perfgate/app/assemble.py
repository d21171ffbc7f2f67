"""The rounds of a case become measurements, one for each of its calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pytest_perfgate.app.machine import begins
from pytest_perfgate.core.gate.metrics import metrics_of
from pytest_perfgate.model.children import Capture, CaseResult
from pytest_perfgate.model.measurement import Measurement
from pytest_perfgate.model.metric import MetricSet
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.problem import Problem
from pytest_perfgate.model.tools import GateTools
from pytest_perfgate.model.verdict import CaseReport, RunReport


def measurements(result: CaseResult, tools: GateTools) -> tuple[Measurement, ...]:
    """One measurement a key, its processes in the order of the rounds."""
    by_key: dict[CaseKey, list[Capture]] = {}
    for captures in result.captures:
        for capture in captures:
            by_key.setdefault(capture.key, []).append(capture)
    rounds = len(result.captures)
    made = (_measurement(captures, rounds, tools) for captures in by_key.values())
    return tuple(_on(measurement, result.case.plan.device) for measurement in made)


def _on(measurement: Measurement, asked: str) -> Measurement:
    """Whether it ran on the device that ``--perfgate-device`` names, by index, name, key or UUID."""
    device = measurement.device
    plain = asked.removeprefix("GPU-")
    named = asked in {str(device.index), device.name, device.key} or plain == device.uuid.removeprefix("GPU-")
    if not asked or named or begins(device, asked):
        return measurement
    what = f"asked for device {asked}, and it ran on {device.name} (index {device.index}, {device.key})"
    other = Problem(code="device-other", what=what, retry=False)
    return replace(measurement, problems=(*measurement.problems, other))


def _measurement(captures: list[Capture], rounds: int, tools: GateTools) -> Measurement:
    last = captures[-1]
    return Measurement(
        key=last.key,
        processes=tuple(samples for capture in captures for samples in capture.samples),
        device=tools.roofed(last.device),
        identity=last.identity,
        environment=tools.environment(),
        work=last.work,
        metrics=last.metrics,
        findings=last.findings,
        problems=(*_problems(captures, rounds), *last.problems),
        artifacts=tuple(artifact for capture in captures for artifact in capture.artifacts),
        limits=last.limits,
    )


def _problems(captures: list[Capture], rounds: int) -> Iterable[Problem]:
    """What makes the processes of one sitting no sitting."""
    measured = sum(bool(capture.samples) for capture in captures) or len(captures)
    if measured < rounds:
        what = f"measured in {measured} of {rounds} rounds: the call does not always happen"
        yield Problem(code="rounds-differ", what=what)
    first = captures[0]
    for other in captures[1:]:
        for name, here, there in first.identity.differences(other.identity):
            if name == "notes":
                yield _restless(dict(first.identity.notes), dict(other.identity.notes))
                return
            yield Problem(code="rounds-differ", what=f"{name} differs between rounds: {here!r} and {there!r}")
            return


def _restless(here: Mapping[str, str], there: Mapping[str, str]) -> Problem:
    """Notes that are others in each process: measuring again only makes more of them."""
    key = next(key for key in (*here, *there) if here.get(key) != there.get(key))
    values = " and ".join(repr(notes.get(key, "nothing")) for notes in (here, there))
    what = f"the note {key!r} differs between rounds: {values}; such a one cannot join the identity: leave it out"
    return Problem(code="rounds-differ", what=what, retry=False)


def metrics_of_capture(capture: Capture) -> MetricSet:
    """What one process's samples say, for the test that took them."""
    return metrics_of(_alone(capture), None) | capture.metrics


def record_of(capture: Capture) -> RunReport:
    """One call alone, as a record: its samples and what they come to, without a verdict."""
    alone = replace(_alone(capture), metrics=metrics_of_capture(capture))
    case = CaseReport(key=capture.key, verdicts=(), measurement=alone)
    return RunReport(cases=(case,), environment=alone.environment, mode="profile", started="")


def _alone(capture: Capture) -> Measurement:
    return Measurement(
        key=capture.key,
        processes=capture.samples,
        device=capture.device,
        identity=capture.identity,
        work=capture.work,
    )
