"""Why a measurement is not to be trusted, whatever it says."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from pytest_perfgate.model.device import Basis
from pytest_perfgate.model.measurement import Measurement
from pytest_perfgate.model.metric import MetricSet
from pytest_perfgate.model.problem import Problem
from pytest_perfgate.model.samples import Samples

SHORTEST_NS, LONGEST_NS = 1e-6, 1e18
"""A femtosecond and some thirty years: what lies outside is no time of a call, whoever recorded it."""


def untrusted_samples(measurement: Measurement) -> tuple[Problem, ...]:
    """What is wrong with the samples themselves."""
    return tuple(_samples(measurement))


def sound(ordered: Sequence[float]) -> bool:
    """Sorted samples that are times of a call, and some of them; what is no number spoils the sum."""
    return bool(ordered) and _plausible(ordered[0]) and _plausible(ordered[-1]) and math.isfinite(sum(ordered))


def untimed(samples: Samples) -> str:
    """Why one process's samples are no times of a call; empty where they are."""
    if not samples.durations:
        return f"every sample was discarded: {gone}" if (gone := _gone(samples)) else "there is no sample"
    lost = next((problem.what for problem in samples.problems if problem.code == "bad-timing"), "")
    return lost or ("" if sound(sorted(samples.durations)) else _reads(samples.durations, ""))


def _gone(samples: Samples) -> str:
    return ", ".join(f"{d.count} x {d.reason}" for d in samples.discarded)


def _reads(durations: Sequence[float], within: str) -> str:
    at = next(n for n, d in enumerate(durations) if not _plausible(d))
    absurd = ", which is no time that a call can take" if 0 < durations[at] < math.inf else ""
    return f"sample {at + 1} of {len(durations)}{within} reads {durations[at]} ns{absurd}"


def _plausible(duration: float) -> bool:
    return SHORTEST_NS <= duration <= LONGEST_NS


def problems_of(measurement: Measurement, metrics: MetricSet, *, timed: bool) -> tuple[Problem, ...]:
    """Everything that makes all limits on this measurement INVALID; ``timed`` when its samples were summed up."""
    recorded = [*measurement.problems, *[p for process in measurement.processes for p in process.problems]]
    samples = () if timed else untrusted_samples(measurement)
    return (*dict.fromkeys(recorded), *samples, *_above_peak(measurement, metrics))


def _samples(measurement: Measurement) -> Iterator[Problem]:
    for number, process in enumerate(measurement.processes, 1):
        durations = process.durations
        if not durations:
            gone = _gone(process)
            what = f"every sample of process {number} was discarded: {gone}" if gone else f"process {number} is empty"
            yield Problem(code="no-samples", what=what)
        elif not sound(sorted(durations)):
            what = _reads(durations, f" in process {number}")
            yield Problem(code="bad-timing", what=what, retry=process.timer != "record")


def _above_peak(measurement: Measurement, metrics: MetricSet) -> Iterator[Problem]:
    """Faster than a physical peak; a measured ceiling is no such thing."""
    if measurement.device.roof(Basis.CLOCK) is None or measurement.device.kind != "gpu":
        return
    for metric in metrics.find("sol"):
        if not metric.labels and metric.value > 1:
            yield Problem(
                code="above-peak",
                what=f"{metric.value * 100:.3g} % of the physical peak ({metric.note})",
                evidence=(("sol", f"{metric.value:.4g}"),),
                retry=False,
            )
